"""What whole releases take: ours beside the ecosystems' own tools, and beside the bare limit.

    python -m bench.release [--quick] [--rounds 3] [--beside TREE] [--write] [npm] [pypi] …

All ways of a scenario take turns; medians are compared, ratios are medians of those of each round.
A way that fails, or publishes less than all packages, is an error at the end. What was measured is
in build/bench by then, and `--rounds 0 --write` writes the tables and the plot from it.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from pathlib import Path

from bench.release import further, plots, rounds, tables
from bench.release.peers import PROJECT, fetched
from bench.release.ways import beside


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("ecosystems", nargs="*", metavar="ECOSYSTEM", help="default: all of them")
    parser.add_argument("--quick", action="store_true", help="small, once, and the fastest peers")
    parser.add_argument("--rounds", type=int, default=None, metavar="N", help="at most; default: 3")
    parser.add_argument("--minutes", type=float, default=30, help="no further round after these")
    parser.add_argument("--write", action="store_true", help="write docs/performance.md")
    parser.add_argument(
        "--beside", type=Path, metavar="TREE", help="another checkout of ours in place of peers"
    )
    options = parser.parse_args()
    if unknown := {*options.ecosystems} - {*rounds.ECOSYSTEMS}:
        parser.error(f"no {', '.join(unknown)} here; write some of {', '.join(rounds.ECOSYSTEMS)}")
    chosen = options.ecosystems or rounds.ECOSYSTEMS
    number = options.rounds if options.rounds is not None else 1 if options.quick else 3
    place = PROJECT / "build" / "bench"
    place.mkdir(parents=True, exist_ok=True)
    releases = place / ("quick.json" if options.quick else "releases.json")
    parts = place / ("quick-parts.json" if options.quick else "parts.json")
    peers = fetched(Path(os.environ.get("BENCH_PEERS") or PROJECT / "build" / "bench-peers"))
    tree: Path | None = options.beside and options.beside.resolve()
    if number:
        rounds.warm(chosen, peers)
        compared = rounds.comparisons(chosen, quick=options.quick)
        if tree is not None:
            compared = [replace(it, ways=tuple(beside(tree, it.ways))) for it in compared]
        measured, failed = [], 0
        for result in rounds.run(compared, peers, rounds=number, minutes=options.minutes):
            if isinstance(result, rounds.Measured):
                measured.append(result)
                rounds.saved(measured, releases)
            else:
                failed += 1
                print(f"wrong: {result}", flush=True)
        figures = further.figures(peers, rounds=number, quick=options.quick, beside=tree)
        further.saved(figures, parts)
        if failed:
            raise SystemExit(f"{failed} results were wrong, as said above; nothing is written")
    rows = rounds.medians(rounds.read(releases))
    text = tables.document(rows, further.read(parts), peers.versions())
    if not options.write:
        print(f"\n{text}")
        return
    page = PROJECT / "docs" / "performance.md"
    page.write_text(tables.between_marks(page.read_text(), text))
    main_rows = [
        row for row in rows if row.scenario == rounds.main_scenario(row.scenario.ecosystem)
    ]
    (PROJECT / "docs" / "release-performance.svg").write_text(plots.bars(main_rows or rows))


if __name__ == "__main__":
    main()
