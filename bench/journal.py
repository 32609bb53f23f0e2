"""What reading the journal costs: `python bench/journal.py`."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from statistics import median

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).resolve().parents[1] / part) for part in ("src", "tests")]

from memory_log import MemoryLog
from releasekit.model import Artifact, Outcome, Package, PackageId
from releasekit.state.history import fold
from releasekit.state.journal import Journal

STATE = Path("/state")
READS = 20


def written(packages: int) -> bytes:
    """The journal of one release: nine records a package."""
    log = MemoryLog()
    journal = Journal(log, state_directory=STATE, run_id="run", clock=lambda: 0.0)
    journal.run_started(plan_digest="", commit="", tool="", started_at="", ecosystems=["pypi"])
    names = [PackageId("pypi", f"package-{number}") for number in range(packages)]
    journal.planned({name: names[max(0, number - 2) : number] for number, name in enumerate(names)})
    for number in range(packages):
        record(journal, number)
    return log.data


def record(journal: Journal, number: int) -> None:
    package = Package(
        id=PackageId("pypi", f"package-{number}"), version="1.0.0", directory=STATE, manifest=STATE
    )
    files = [STATE / "dist" / "pypi" / package.id.name / name for name in ("a.whl", "b.tar.gz")]
    artifacts = [Artifact(path=path, size=1, digests={"sha256": "a" * 64}) for path in files]
    digests = {artifact.filename: artifact.sha256 for artifact in artifacts}
    for phase in ("build", "upload", "confirm"):
        journal.phase_started(f"{phase} {package.id}")
        journal.phase_ended(f"{phase} {package.id}", duration_s=1.5)
    for step in (
        journal.built(package, artifacts, fingerprint="f" * 64),
        journal.intent(package, registry="https://upload.pypi.org/legacy/", digests=digests),
    ):
        # In memory nothing of it waits for a loop.
        try:
            step.send(None)
        except StopIteration:
            continue
    journal.outcome(package, Outcome.PUBLISHED, "uploaded")


def main() -> None:
    print(
        f"{'packages':>8} {'records':>8} {'MB':>6} {'best ms':>8} {'median ms':>9} {'us/record':>9}"
    )
    for packages in (100, 1_000, 10_000):
        data = written(packages)
        took_s = []
        for _ in range(READS if packages <= 1_000 else 3):
            before = time.process_time()
            fold(data, state_directory=STATE)
            took_s.append(time.process_time() - before)
        records = data.count(b"\n")
        print(
            f"{packages:8} {records:8} {len(data) / 1e6:6.2f} {min(took_s) * 1e3:8.1f} "
            f"{median(took_s) * 1e3:9.1f} {min(took_s) / records * 1e6:9.2f}"
        )


if __name__ == "__main__":
    main()
