"""Packages of three ecosystems, in a repository without tags, whose remote is a forge."""

from __future__ import annotations

from typing import TYPE_CHECKING

from effort import SEARCHING
from workspaces import git, write_json, write_member

if TYPE_CHECKING:
    from pathlib import Path

# Twenty in a search.
SIZE = 6 if SEARCHING else 2
PYTHON = {f"acme-p{n}": ((f"acme-p{n - 1}",) if n else ()) for n in range(8 if SEARCHING else 3)}
NODE = {f"n{n}": ((f"n{n - 1}",) if n else ()) for n in range(SIZE)}
GO = tuple(f"g{n}" for n in range(SIZE))
MODULES = "example.com/acme/mono"
PACKAGES = len(PYTHON) + len(NODE) + len(GO)
TAGS = frozenset(
    [
        *(f"{name}-v1.0.0" for name in PYTHON),
        *(f"@acme/{name}-v1.0.0" for name in NODE),
        *(f"go/{name}/v1.0.0" for name in GO),
    ]
)
NOTES = "- Text with **marks**.\n"
CHANGELOG = f"# Changelog\n\n## Unreleased\n\n- Later.\n\n## 1.0.0 (2026-11-01)\n\n{NOTES}"


def monorepo(root: Path, remote: str) -> Path:
    """`remote` is the URL of `origin`, to which everything is pushed but tags. Every second Python
    package has a changelog.
    """
    root.mkdir(parents=True)
    (root / "pyproject.toml").write_text('[tool.uv.workspace]\nmembers = ["python/*"]\n')
    for name, needs in PYTHON.items():
        write_member(root / "python" / name, name, needs)
        if int(name[-1]) % 2:
            (root / "python" / name / "CHANGELOG.md").write_text(CHANGELOG)
    write_json(root / "package.json", {"private": True, "workspaces": ["node/*"]})
    for name, needs in NODE.items():
        document = {
            "name": f"@acme/{name}",
            "version": "1.0.0",
            "publishConfig": {"access": "public"},
            "dependencies": {f"@acme/{need}": "1.0.0" for need in needs},
        }
        write_json(root / "node" / name / "package.json", document)
    for name in GO:
        module = root / "go" / name
        module.mkdir(parents=True)
        (module / "go.mod").write_text(f"module {MODULES}/go/{name}\n\ngo 1.22\n")
        (module / f"{name}.go").write_text(f"package {name}\n")
    (root / "releasekit.toml").write_text(
        '[go]\nversion = "v1.0.0"\nproxy = false\nverify = false\n'
    )
    git(root, "init", "--quiet", "--initial-branch", "main")
    git(root, "remote", "add", "origin", remote)
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "Start (#1)")
    git(root, "push", "--quiet", "origin", "main")
    return root
