"""What signing adds to a release: npm packages into a directory, signed and unsigned by turns, with
a log of signatures that takes its time for each entry.

    python bench/provenance.py [--packages 100] [--rounds 3]

Sigstore's services are those of the tests, in a process of their own on this machine. What is
signed is checked: every file has an attestation, and the release has its statement.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.release.place import PROJECT, STATE
from bench.release.shape import shape
from bench.release.workspaces import write

if TYPE_CHECKING:
    from collections.abc import Iterator

# How long a build takes, and the log for an entry; the public one takes about a second.
CASES_S: Final = ((0.0, 0.0), (0.0, 0.2), (0.0, 1.0), (0.5, 0.2), (0.5, 1.0))
_REPOSITORY: Final = "acme/bench"  # as the package.json of each package says
_KEPT: Final = ("LANG", "PATH", "SSL_CERT_FILE")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--packages", type=int, default=100, metavar="N")
    parser.add_argument("--rounds", type=int, default=3, metavar="N")
    chosen = parser.parse_args()
    released(chosen.packages, {}, build_s=0.0, signed=False)  # caches
    print("s a build | s an entry | unsigned s | signed s | ratio | entries")
    for build_s, delay_s in CASES_S:
        with sigstore(delay_s) as environment:
            pairs = [
                (
                    released(chosen.packages, environment, build_s=build_s, signed=False),
                    released(chosen.packages, environment, build_s=build_s, signed=True),
                )
                for _ in range(chosen.rounds)
            ]
        unsigned_s, signed_s = (median(each) for each in zip(*pairs, strict=True))
        ratio = median(signed / unsigned for unsigned, signed in pairs)
        cells = (f"{build_s:g}", f"{delay_s:g}", f"{unsigned_s:.2f}", f"{signed_s:.2f}")
        print(f"{' | '.join(cells)} | {ratio:.2f} | {chosen.packages + 1}", flush=True)


@contextlib.contextmanager
def sigstore(delay_s: float) -> Iterator[dict[str, str]]:
    """What a job of a workflow has in its environment, with services of its own."""
    with tempfile.TemporaryDirectory(prefix="bench-sigstore-") as directory:
        argv = [sys.executable, "-m", "provenance.sigstore_double", directory]
        argv += ["--delay-s", str(delay_s), "--repository", _REPOSITORY]
        paths = os.pathsep.join(str(PROJECT / part) for part in ("src", "tests"))
        with subprocess.Popen(
            argv,
            env={**os.environ, "PYTHONPATH": paths},
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as process:
            assert process.stdout is not None
            assert process.stdin is not None
            where: dict[str, Any] = json.loads(process.stdout.readline())
            yield {**where["environment"], "RELEASEKIT_TRUST_CONFIG": where["trust_config"]}
            process.stdin.close()  # it ends with its input


def released(packages: int, environment: dict[str, str], *, build_s: float, signed: bool) -> float:
    """Seconds that a new release took, from a new checkout into an empty directory. Each build
    takes `build_s` at least.
    """
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        place = Path(directory).resolve()
        root = write("npm", place / "workspace", shape(packages))
        for path in root.glob("packages/*/package.json") if build_s else ():
            manifest = json.loads(path.read_text())
            path.write_text(json.dumps({**manifest, "scripts": {"prepack": f"sleep {build_s}"}}))
        argv: list[str | Path] = [PROJECT / "entrypoint.sh", "publish", root]
        argv += ["--npm-registry", f"dir:{place / 'registry'}", "--no-summary"]
        began = time.perf_counter()
        done = subprocess.run(
            argv,
            check=False,
            env={
                **{name: os.environ[name] for name in _KEPT if name in os.environ},
                **environment,
                "HOME": directory,
                "XDG_STATE_HOME": STATE,  # our own environment is made once
                "NPM_CONFIG_CACHE": str(place / "npm-cache"),
                "RELEASEKIT_NPM_ACCESS": "public",
                "RELEASEKIT_ATTESTATIONS": "required" if signed else "off",
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        took_s = time.perf_counter() - began
        if done.returncode:
            raise SystemExit(f"the release failed:\n{done.stdout[-4000:]}")
        _check(json.loads((root / ".releasekit" / "results.json").read_text()), packages, signed)
        return took_s


def _check(results: dict[str, Any], packages: int, signed: bool) -> None:
    files = [file for package in results["packages"] for file in package["artifacts"]]
    attested = sum(file["attestation"] is not None for file in files)
    stated = (results["statement"] or {"subjects": 0})["subjects"]
    if (attested, stated) != ((packages, packages) if signed else (0, 0)):
        raise SystemExit(f"{attested} files are signed, {stated} in the statement")


if __name__ == "__main__":
    main()
