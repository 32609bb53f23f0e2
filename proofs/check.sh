#!/bin/sh
# Check every proof, by coqc and once more by the small independent checker coqchk; nothing may rest
# on an axiom. Needs coq and its standard library (Debian: apt-get install coq libcoq-stdlib).
set -eu
cd "$(dirname "$0")"
into=$(mktemp -d)
trap 'rm -rf "$into"' EXIT
cp ./*.v "$into"
cd "$into"

for proof in *.v; do
    coqc -q "$proof" >"$proof.out"
    wanted=$(grep -c '^Print Assumptions' "$proof")
    closed=$(grep -c '^Closed under the global context' "$proof.out" || true)
    if [ "$wanted" -eq 0 ] || [ "$closed" -ne "$wanted" ]; then
        cat "$proof.out" >&2
        echo "$proof: $closed of $wanted theorems are free of axioms" >&2
        exit 1
    fi
    echo "$proof: $closed theorems, no axioms"
done

set --
for proof in *.v; do
    set -- "$@" "${proof%.v}"
done
coqchk -silent -o "$@" >summary 2>&1
grep -q 'Axioms: <none>' summary || { cat summary >&2; exit 1; }
echo "coqchk agrees"
