"""Do the tests notice broken code? Each mutant is judged by itself, in a copy of the package."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mutation import Mutant

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "releasekit"
# No judge takes that long, however busy the machine: what does, hangs.
GIVE_UP_S = 900.0


def try_out(
    mutant: Mutant | None, judge: Sequence[str], *, environment: Mapping[str, str] | None = None
) -> str:
    """By what the mutant was caught; empty when it was not. None is the unchanged code.

    `judge` is what Python runs: it fails, or does not come to its end, where it notices something.
    """
    # In memory, where it can be: to make hundreds of files may take longer than to judge.
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as directory:
        _copy(Path(directory) / "releasekit", mutant)
        kept = {name: text for name, text in os.environ.items() if name != "PYTHONSAFEPATH"}
        kept["TMPDIR"] = directory
        path = os.pathsep.join((directory, str(ROOT / "tests")))
        try:
            ended = subprocess.run(  # a mutant must not be able to hang or crash us
                [sys.executable, *judge],
                cwd=ROOT,
                env={**kept, **(environment or {}), "PYTHONPATH": path},
                capture_output=True,
                text=True,
                timeout=GIVE_UP_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"not over after {GIVE_UP_S:g} s"
    if not ended.returncode:
        return ""
    lines = [*ended.stdout.splitlines(), *ended.stderr.strip().splitlines()]
    failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    return (failed[-1] if failed else lines[-1] if lines else f"exit {ended.returncode}")[:150]


def _copy(package: Path, mutant: Mutant | None) -> None:
    """Unchanged code is written from its syntax trees too: that must make no difference."""
    # With their bytecode, which is valid for as long as a source keeps its time and size.
    shutil.copytree(SOURCE, package)
    for path in package.rglob("*.py") if mutant is None else ():
        path.write_text(ast.unparse(ast.parse(path.read_text())))
    if mutant is not None:
        module = package / f"{mutant.module}.py"
        module.write_text(mutant.applied(module.read_text()))


def report(mutants: Sequence[Mutant], trial: Callable[[Mutant | None], str]) -> int:
    """Print what caught each of them; 0 when all were, and the unchanged code was not."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        broken, *caught = pool.map(trial, (None, *mutants))
    for mutant, by in zip(mutants, caught, strict=True):
        print(f"{'caught  ' if by else 'SURVIVED'} {mutant.name}: {by}")  # noqa: T201
    print(f"{sum(map(bool, caught))} of {len(caught)} mutants caught")  # noqa: T201
    if broken:
        print(f"but the unchanged code fails as well: {broken}")  # noqa: T201
    return 0 if all(caught) and not broken else 1
