"""Does the battery notice a broken scheduler? Each mutant is one edit of the real code, and each
has to be caught. `python tests/simulation/mutants.py` prints by what.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from simulation.mutations import MUTANTS, Mutant

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "releasekit"
GIVE_UP_S = 60.0


def try_out(mutant: Mutant | None) -> str:
    """By what the mutant was caught; empty when it was not. None is the unchanged code."""
    with tempfile.TemporaryDirectory() as directory:
        package = Path(directory) / "releasekit"
        shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("ecosystems", "__pycache__"))
        if mutant is not None:
            module = package / f"{mutant.module}.py"
            text = module.read_text()
            for old, new in mutant.edits:
                if text.count(old) != 1:
                    raise ValueError(f"{mutant.name}: {old!r} is there {text.count(old)} times")
                text = text.replace(old, new)
            module.write_text(text)
        # Without what would have the judge measure the coverage of a mutant's lines.
        environment = {name: text for name, text in os.environ.items() if name[:3] != "COV"}
        environment["PYTHONPATH"] = os.pathsep.join((directory, str(ROOT / "tests")))
        environment.pop("PYTHONSAFEPATH", None)
        try:
            ended = subprocess.run(  # the judge of a mutant must not be able to hang or crash us
                [sys.executable, "-m", "simulation.judge"],
                env=environment,
                capture_output=True,
                text=True,
                timeout=GIVE_UP_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"not over after {GIVE_UP_S:g} s"
    if not ended.returncode:
        return ""
    return ended.stderr.strip().splitlines()[-1][:150]


def try_out_all() -> dict[str, str]:
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        caught = pool.map(try_out, (None, *MUTANTS))
        return dict(zip(("", *(mutant.name for mutant in MUTANTS)), caught, strict=True))


def main() -> int:
    caught = try_out_all()
    broken = caught.pop("")
    for name, by in caught.items():
        print(f"{'caught  ' if by else 'SURVIVED'} {name}: {by}")  # noqa: T201
    print(f"{sum(map(bool, caught.values()))} of {len(caught)} mutants caught")  # noqa: T201
    if broken:
        print(f"but the unchanged code fails as well: {broken}")  # noqa: T201
    return 0 if all(caught.values()) and not broken else 1


if __name__ == "__main__":
    sys.exit(main())
