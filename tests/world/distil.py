"""Puts down what a repository is like, as JSON: names, versions, requirements, directories, flags.

    python tests/world/distil.py DIRECTORY ECOSYSTEM URL [CONFIG] >tests/world/facts/NAME.json

CONFIG is what releasekit.toml would say of the ecosystem, as JSON. What there has to be in a plan
is asked of the ecosystem's own tool, which has to be installed; it reads the repository and builds
nothing of it.
"""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2] / "src")]


def main(directory: str, ecosystem: str, url: str, config: str = "{}") -> None:
    root, options = Path(directory).resolve(), json.loads(config)
    module = importlib.import_module(f"world.{ecosystem}")
    shape, expected = module.distilled(root, options)
    document = {
        "ecosystem": ecosystem,
        "source": {
            "url": url,
            "commit": commit_of(root),
            "tool": version_of(module.tool(root), root),
        },
        "at": within_repository(root),
        "config": {ecosystem: options} if options else {},
        "shape": shape,
        "expected": expected.document(),
    }
    sys.stdout.write(compact(document))


def commit_of(root: Path) -> str:
    return first_line(["git", "rev-parse", "HEAD"], root)


def within_repository(root: Path) -> str:
    """Where the workspace lies, `.` for the root of the repository."""
    top = first_line(["git", "rev-parse", "--show-toplevel"], root)
    return root.relative_to(Path(top).resolve()).as_posix()


def version_of(argv: list[str], root: Path) -> str:
    """With the tool's name, which some leave out."""
    line = re.sub(r"\x1b\[[0-9;]*m", "", first_line(argv, root))
    return line if line[0].isalpha() else f"{argv[-2]} {line}"


def first_line(argv: list[str], directory: Path) -> str:
    done = subprocess.run(argv, cwd=directory, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()[0]


def compact(document: dict[str, Any]) -> str:
    """One line for each entry of the third level: short, and a change shows where it is."""

    def lines(value: object, depth: int) -> str:
        if isinstance(value, dict) and value and depth < 3:
            inner = ",\n".join(
                f"{json.dumps(key)}: {lines(each, depth + 1)}" for key, each in value.items()
            )
            return f"{{\n{inner}\n}}"
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False)

    return f"{lines(document, 0)}\n"


if __name__ == "__main__":
    main(*sys.argv[1:])
