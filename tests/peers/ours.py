"""ReleaseKit, run in this process on what a scenario wrote."""

from __future__ import annotations

import contextlib
import io
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from releasekit.__main__ import main
from workspaces import git

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Ran:
    code: int
    out: str
    error: str

    @property
    def packages(self) -> list[dict[str, Any]]:
        """Of a plan that was made, with `--format json`."""
        found: list[dict[str, Any]] = json.loads(self.out)["packages"]
        return found

    def refuses(self, *problems: str) -> bool:
        """Whether it was refused for one of these: RK-307."""
        return self.code != 0 and any(f"[{problem}]" in self.error for problem in problems)


def run(command: str, root: Path, *arguments: str | Path) -> Ran:
    out, error = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        code = main([command, str(root), *map(str, arguments)])
    return Ran(code=code, out=out.getvalue(), error=error.getvalue())


def plan(root: Path, *arguments: str | Path) -> Ran:
    """Into a static directory beside the root."""
    registry = f"dir:{root.parent / 'registry'}"
    return run("plan", root, "--format", "json", "--registry", registry, *arguments)


def commit(root: Path) -> None:
    """All that is there, in a repository of its own."""
    git(root, "init", "--quiet")
    git(root, "add", "--all", "--force")
    git(root, "commit", "--quiet", "--allow-empty", "--message", "Start")
