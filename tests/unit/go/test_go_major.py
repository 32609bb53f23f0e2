"""Where a Go file has the paths of what it imports, and what moves with a module."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from releasekit.ecosystems.go.major import find_imports
from releasekit.errors import PlanError, told_of
from releasekit.problems import Problem
from unit.go.test_go_edits import MARK, find, write
from versioning.writing import write_versions
from watchdog import assert_no_worse_than_linear

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

MANY = """package a

import (
\t"x.y/a"

\t_ "x.y/b" // "x.y/no"
\t. "x.y/c"
\td "x.y/d"
\t/* "x.y/no" */
)
"""
COMMENTED = """//go:build linux
// Code generated. DO NOT EDIT.

// Package a has import "x.y/no".
package a // import "x.y/no"

import "x.y/a"
"""


@pytest.mark.parametrize(
    ("source", "imported"),
    [
        ('package a\nimport "x.y/a"\n', ["x.y/a"]),
        ('package a; import "x.y/a"; import b "x.y/b"', ["x.y/a", "x.y/b"]),
        (MANY, ["x.y/a", "x.y/b", "x.y/c", "x.y/d"]),
        (MANY.replace("\n", "\r\n"), ["x.y/a", "x.y/b", "x.y/c", "x.y/d"]),
        ('package a\nimport ("x.y/a"; "x.y/b")\nimport "x.y/c"\n', ["x.y/a", "x.y/b", "x.y/c"]),
        ("package a\nimport `x.y/a`\n", ["x.y/a"]),
        ('package a\n\n/*\n#include <a.h>\n*/\nimport "C"\nimport "x.y/a"\n', ["C", "x.y/a"]),
        (COMMENTED, ["x.y/a"]),
        (f"\ufeff{COMMENTED}", ["x.y/a"]),
        ('package a\nimport ()\nimport "x.y/a"\n', ["x.y/a"]),
        ('package a\nvar s = "x.y/no"\nimport "x.y/no"\n', []),
        ('package a\nfunc f() { g("x.y/no") }\n', []),
        ('package a\nconst import1 = `import "x.y/no"`\n', []),
        ('package a\n/* import "x.y/no"\n', []),
        ('import "x.y/no"\n', []),
        ('package a\nimport "x.y/a\n"x.y/no"\n', []),
        ('package a\nimport "x.y/\\"no"\n', []),
        ("", []),
    ],
)
def test_imports_are_found_and_other_text_is_none(source: str, imported: list[str]) -> None:
    found = list(find_imports(source))
    assert [path for _, path in found] == imported
    assert [source[start + 1 : end - 1] for (start, end), _ in found] == imported


def test_a_hostile_file_is_read_once() -> None:
    for source in ("/*" * 200_000, "package a\n" + "/*" * 200_000, 'import "' * 100_000):
        assert list(find_imports(source)) == []


# `«old|new»`. Of the modules below a.b/m, `one` is used and `far` is not looked at.
MOVES = {
    "releasekit.toml": "[go]\nversions = { '.' = '«1.2.0|2.0.0»', one = '0.1.0' }\n"
    "exclude = ['far']\n",
    "go.mod": "module «a.b/m|a.b/m/v2»\n\nrequire a.b/m/far v0.1.0\n\nreplace a.b/m/far => ./far\n",
    "a.go": 'package m\n\nimport (\n\t"a.b/m/far/x"\n\t"a.b/m/one"\n'
    '\t"«a.b/m|a.b/m/v2»/x"\n\t"«a.b/m|a.b/m/v2»/internal/y"\n)\n',
    "x/x.go": "package x\n",
    "far/go.mod": "module a.b/m/far\n",
    "far/far.go": 'package far\n\nimport "a.b/m/x"\n',
    "one/go.mod": "module a.b/m/one\n\nrequire (\n\ta.b/m/far v0.1.0\n"
    '\t«"a.b/m" v1.2.0|a.b/m/v2 v2.0.0» // indirect\n)\n\n'
    "replace «a.b/m v1.2.0|a.b/m/v2 v2.0.0» => ..\n\n"
    "tool «a.b/m|a.b/m/v2»/x\n\ntool (\n\t«a.b/m|a.b/m/v2»\n\ta.b/m/far/x\n)\n\n"
    "exclude a.b/m v1.1.0\n",
}


def test_what_names_a_module_moves_and_what_names_another_one_stays(tmp_path: Path) -> None:
    root = write(tmp_path, MOVES)
    (root / "y").mkdir()
    (root / "y" / "linked.go").symlink_to("../a.go")
    (root / "y" / "lost.go").symlink_to("nowhere.go")
    write_versions(root, find(root), {"a.b/m": "2.0.0"})
    after = {name: MARK.sub(r"\2", text) for name, text in MOVES.items()}
    assert {name: (root / name).read_text() for name in MOVES} == after
    assert (root / "y" / "linked.go").is_symlink()


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"go.mod": "module a.b/m\nretract v1.0.1 // broken\n"}, "go.mod: retracts versions"),
        ({"v2/go.mod": "module a.b/m/v2\n"}, "go.mod: there is another module for a.b/m/v2"),
        ({"one/vendor/modules.txt": "# a.b/m v1.2.0\n"}, "one/vendor: has a.b/m by its path"),
        (
            {"one/one.go": 'package one\nimport "a.b/m/x/internal/y"\n'},
            "one/one.go: imports a.b/m/x/internal/y, and only a.b/m/v2 itself could then",
        ),
        ({"go.mod": "module gopkg.in/m.v1\n"}, "go.mod: v2.0.0 does not belong to gopkg.in/m.v1"),
    ],
)
def test_what_cannot_move_is_named_and_nothing_is_written(
    tmp_path: Path, files: Mapping[str, str], message: str
) -> None:
    plain = {name: MARK.sub(r"\1", text) for name, text in MOVES.items()}
    plain |= files
    plain["releasekit.toml"] = (
        "[go]\nversion = '1.2.0'\nprivate = ['one']\nexclude = ['far', 'v2']\n"
    )
    root = write(tmp_path, plain)
    (name,) = (each.id.name for each in find(root).workspace.packages if not each.unpublishable)
    with pytest.raises(PlanError) as raised:
        write_versions(root, find(root), {name: "2.0.0"})
    (error,) = told_of(raised.value)
    assert str(error).startswith(message)
    assert error.problem is Problem.CANNOT_WRITE
    assert {name: (root / name).read_text() for name in plain} == plain


def test_a_directory_that_is_named_after_its_major_version_stays(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        {"releasekit.toml": "[go]\nversion = '2.1.0'\n", "v2/go.mod": "module a.b/m/v2\n"},
    )
    with pytest.raises(PlanError, match="its directory is named after its major version"):
        write_versions(root, find(root), {"a.b/m/v2": "3.0.0"})


def test_its_own_vendor_directory_has_no_module_by_its_path(tmp_path: Path) -> None:
    root = write(tmp_path, {**MOVES, "vendor/modules.txt": "# a.b/m/far v0.1.0 => ./far\n"})
    assert "go.mod" in write_versions(root, find(root), {"a.b/m": "2.0.0"})


def test_a_long_import_takes_linear_time(tmp_path: Path) -> None:
    root = write(
        tmp_path, {"go.mod": "module a.b/m\n", "releasekit.toml": "[go]\nversion = '1.0.0'\n"}
    )
    target = find(root)

    def move(count: int) -> None:
        (root / "go.mod").write_text("module a.b/m\n")
        (root / "releasekit.toml").write_text("[go]\nversion = '1.0.0'\n")
        (root / "a.go").write_text(f'package m\nimport "{"x/" * count}"\n')
        write_versions(root, target, {"a.b/m": "2.0.0"})

    assert_no_worse_than_linear(move, 200_000)
