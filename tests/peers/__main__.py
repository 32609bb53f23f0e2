"""Runs what other projects test on ReleaseKit and on the tool itself: `make peers`.

    PYTHONPATH=tests python -m peers [--ecosystem NAME] [--only PATTERN] [--keep]

The verdict on each case is in build/peers/verdicts.json. The exit status is 1 where there is a
fault, and 2 where a source cannot be fetched.
"""

from __future__ import annotations

import argparse
import fnmatch
import importlib
import json
import multiprocessing
import os
import shutil
import signal
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


def main() -> int:
    parser = argparse.ArgumentParser(prog="peers", description=__doc__)
    parser.add_argument("--ecosystem", choices=ECOSYSTEMS, action="append")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="cases of this name")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--keep", action="store_true", help="leave what cases wrote, and say where")
    given = parser.parse_args()
    _forget_environment()
    modules = [importlib.import_module(f"peers.{each}") for each in given.ecosystem or ECOSYSTEMS]
    peers = [peer for module in modules for peer in module.PEERS]
    fetched = _fetch([source for module in modules for source in module.SOURCES])
    began = time.monotonic()
    cases = _read(peers, fetched, given.only)
    verdicts = _judge_all(cases, given.workers, keep=given.keep)
    INTO.mkdir(parents=True, exist_ok=True)
    rows = {
        f"{peer.ecosystem}: {peer.name}: {case.name}": verdict._asdict()
        for (peer, case), verdict in zip(cases, verdicts, strict=True)
    }
    (INTO / "verdicts.json").write_text(json.dumps(rows, indent=1))
    for name, row in rows.items():
        if row["kind"] == "fault":
            print(f"\n## {name}\n{row['why']}")
    print(_table([peer for peer, _ in cases], verdicts))
    print(f"{time.monotonic() - began:.0f} s")
    for name, each in fetched.items():
        if each.directory is None:
            print(f"missing: {name}: {each.what}")
    if any(verdict.kind == "fault" for verdict in verdicts):
        return 1
    return 2 if any(each.failed for each in fetched.values()) else 0


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
    peers: Iterable[Peer], fetched: Mapping[str, Fetched], only: str
) -> list[tuple[Peer, Case]]:
    found = []
    for peer in peers:
        directories = [fetched[name].directory for name in peer.sources]
        if None not in directories:
            cases = peer.read(*directories)
            found += [(peer, case) for case in cases if fnmatch.fnmatchcase(case.name, only)]
    return found


def _judge_all(cases: list[tuple[Peer, Case]], workers: int, *, keep: bool) -> list[Verdict]:
    """Cases are handed to forked workers by their places, since a judge cannot be pickled."""
    global _CASES  # noqa: PLW0603
    _CASES = [case for _, case in cases]
    fork = multiprocessing.get_context("fork")
    found: dict[int, Verdict] = {}
    with ProcessPoolExecutor(workers, mp_context=fork) as pool:
        waiting = {pool.submit(_judge, place, keep=keep): place for place in range(len(cases))}
        for done in as_completed(waiting):
            found[waiting[done]] = done.result()
            if len(found) % 100 == 0:
                print(f"{len(found)} of {len(cases)}", flush=True)
    return [found[place] for place in range(len(cases))]


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
        if not keep:
            shutil.rmtree(directory, ignore_errors=True)
    return verdict._replace(why=f"in {directory}\n{verdict.why}") if keep else verdict


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
