"""Runs what other projects test on ReleaseKit and on the tool itself: `make peers`.

    PYTHONPATH=tests python -m peers [--ecosystem NAME] [--only PATTERN] [--keep]

The verdict on each case is in build/peers/verdicts.json. The exit status is 1 if there is a fault,
and 2 if something could not be tried: a source that cannot be fetched, or no case of that name.
"""

from __future__ import annotations

import argparse
import ctypes
import fnmatch
import glob
import importlib
import json
import multiprocessing
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

ROOT: Final = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "src"))

from peers.scenarios import Case, Peer, Verdict  # noqa: E402
from peers.sources import Fetched, Source, fetch  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import FrameType

ECOSYSTEMS: Final = ("cargo", "npm", "pypi", "go", "maven", "versions")
INTO: Final = ROOT / "build" / "peers"
KINDS: Final = ("equal", "explained", "unusable", "fault")
# A case that takes longer hangs.
MOST_S: Final = 300
_PROGRESS_S: Final = 30
_PR_SET_PDEATHSIG: Final = 1
_VERSIONS: Final = {
    "uv": (sys.executable, "-m", "uv", "--version"),
    "npm": ("npm", "--version"),
    "node": ("node", "--version"),
    "cargo": ("cargo", "--version"),
    "go": ("go", "version"),
    "mvn": ("mvn", "--version"),
}


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="peers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ecosystem", choices=ECOSYSTEMS, action="append", help="may be repeated")
    parser.add_argument(
        "--only", default="*", metavar="PATTERN", help="cases whose name matches, as 'package::*'"
    )
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="cases at a time")
    parser.add_argument("--list", action="store_true", help="print the names of cases, and end")
    parser.add_argument("--keep", action="store_true", help="leave what faults wrote")
    given = parser.parse_args()
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    _forget_environment()
    modules = [importlib.import_module(f"peers.{each}") for each in given.ecosystem or ECOSYSTEMS]
    peers = [peer for module in modules for peer in module.PEERS]
    (INTO / "verdicts.json").unlink(missing_ok=True)
    fetched = _fetch([source for module in modules for source in module.SOURCES])
    print(f"judged by: {', '.join(_list_tools())}", flush=True)
    began = time.monotonic()
    cases, untried = _read(peers, fetched)
    cases = [(peer, case) for peer, case in cases if fnmatch.fnmatchcase(case.name, given.only)]
    if given.list:
        print("\n".join(f"{peer.ecosystem}: {case.name}" for peer, case in cases))
        return 0
    if not cases:
        print(f"INCOMPLETE: no case has a name like {given.only!r}; --list prints the names")
        return 2
    print(f"{len(cases)} cases", flush=True)
    verdicts = _judge_all(cases, given.workers, keep=given.keep)
    INTO.mkdir(parents=True, exist_ok=True)
    rows = {
        f"{peer.ecosystem}: {peer.name}: {case.name}": verdict._asdict()
        for (peer, case), verdict in zip(cases, verdicts, strict=True)
    }
    (INTO / "verdicts.json").write_text(json.dumps(rows, indent=1))
    for (peer, case), verdict in zip(cases, verdicts, strict=True):
        if verdict.kind == "fault":
            print(_describe(peer, case, verdict, fetched))
    table = _table([peer for peer, _ in cases], verdicts)
    print(table)
    if summary:
        with Path(summary).open("a") as file:
            file.write(f"{table}\n")
    print("\n".join([*untried, f"{time.monotonic() - began:.0f} s"]))
    faults = sum(verdict.kind == "fault" for verdict in verdicts)
    if faults:
        print(f"FAILED: {faults} of {len(cases)} cases are faults")
        return 1
    if untried:
        print(f"INCOMPLETE: {len(untried)} of {len(peers)} parts were not tried")
        return 2 if os.environ.get("PEERS") else 0
    return 0


def _list_tools() -> Iterable[str]:
    """What each says of its version, as far as it is there."""
    for program, argv in _VERSIONS.items():
        try:
            done = subprocess.run(argv, capture_output=True, text=True, check=True)
            yield f"{program} {done.stdout.splitlines()[0].removeprefix(program).strip()}"
        except (OSError, subprocess.CalledProcessError, IndexError):
            yield f"no {program}"


def _describe(peer: Peer, case: Case, verdict: Verdict, fetched: Mapping[str, Fetched]) -> str:
    only = ["--only", glob.escape(case.name), "--keep"]
    options = shlex.join(["--ecosystem", peer.ecosystem, *only])
    sources = [f"from: {fetched[name].directory} ({fetched[name].what})" for name in peer.sources]
    title = f"\n## {peer.ecosystem}: {peer.name}: {case.name}"
    return "\n".join([title, *sources, f"again: make peers ONLY={options!r}", verdict.why])


def _forget_environment() -> None:
    for name in [*os.environ]:
        if name.startswith(("RELEASEKIT_", "GITHUB_", "ACTIONS_", "RUNNER_", "CI")):
            del os.environ[name]


def _fetch(sources: Iterable[Source]) -> dict[str, Fetched]:
    checkouts = Path(os.environ["PEERS"]).resolve() if os.environ.get("PEERS") else None
    found = {}
    for source in sources:
        found[source.name] = fetch(source, INTO / "sources", checkouts)
        print(f"{source.name}: {found[source.name].what} ({source.licence})", flush=True)
    return found


def _read(
    peers: Iterable[Peer], fetched: Mapping[str, Fetched]
) -> tuple[list[tuple[Peer, Case]], list[str]]:
    """All cases, and a line for each part that has none."""
    found, untried = [], []
    for peer in peers:
        directories = [fetched[name].directory for name in peer.sources]
        cases: list[Case] = []
        why = "; ".join(fetched[name].what for name in peer.sources if not fetched[name].directory)
        try:
            cases = [] if None in directories else [*peer.read(*directories)]
        except Exception:  # noqa: BLE001 # the others are tried
            why = f"its sources cannot be read: {traceback.format_exc()}"
        found += [(peer, case) for case in cases]
        if not cases:
            why = why or f"no scenarios are in {', '.join(map(str, directories))}"
            untried.append(f"not tried: {peer.ecosystem}: {peer.name}: {why}")
    return found, untried


def _judge_all(cases: list[tuple[Peer, Case]], workers: int, *, keep: bool) -> list[Verdict]:
    """Cases are handed to forked workers by their places, since a judge cannot be pickled."""
    global _CASES  # noqa: PLW0603
    _CASES = [case for _, case in cases]
    fork = multiprocessing.get_context("fork")
    found: dict[int, Verdict] = {}
    told = time.monotonic()
    with ProcessPoolExecutor(workers, mp_context=fork, initializer=_end_with_parent) as pool:
        waiting = {pool.submit(_judge, place, keep=keep): place for place in range(len(cases))}
        for done in as_completed(waiting):
            found[waiting[done]] = verdict = done.result()
            if verdict.kind == "fault":
                print(f"a fault: {cases[waiting[done]][1].name}", flush=True)
            if time.monotonic() > told + _PROGRESS_S:
                told = time.monotonic()
                print(f"{len(found)} of {len(cases)}", flush=True)
    return [found[place] for place in range(len(cases))]


def _end_with_parent() -> None:
    """https://man7.org/linux/man-pages/man2/PR_SET_PDEATHSIG.2const.html"""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


_CASES: list[Case] = []


def _judge(place: int, *, keep: bool) -> Verdict:
    directory = Path(tempfile.mkdtemp(prefix="releasekit-peer-")).resolve()
    signal.signal(signal.SIGALRM, _give_up)
    signal.alarm(MOST_S)
    try:
        verdict = _CASES[place].judge(directory)
    except Exception:  # noqa: BLE001 # what breaks a judge is looked at like what it judges
        verdict = Verdict("fault", traceback.format_exc())
    finally:
        signal.alarm(0)
    if keep and verdict.kind == "fault":
        return verdict._replace(why=f"in {directory}\n{verdict.why}")
    shutil.rmtree(directory, ignore_errors=True)
    return verdict


def _give_up(_number: int, _frame: FrameType | None) -> NoReturn:
    raise TimeoutError(f"not over after {MOST_S} s")


def _table(peers: list[Peer], verdicts: list[Verdict]) -> str:
    counts: dict[tuple[str, str], Counter[str]] = {}
    for peer, verdict in zip(peers, verdicts, strict=True):
        for row in ((peer.ecosystem, peer.name), (peer.ecosystem, "in all"), ("", "in all")):
            counts.setdefault(row, Counter())[verdict.kind] += 1
    lines = [
        "| ecosystem | scenarios of | found | usable | equal | explained | faults |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for (ecosystem, name), count in sorted(counts.items(), key=lambda each: each[0]):
        usable = count.total() - count["unusable"]
        cells = (count.total(), usable, count["equal"], count["explained"], count["fault"])
        lines.append(f"| {ecosystem} | {name} | {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
