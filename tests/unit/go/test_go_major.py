"""Where a Go file has the paths of what it imports."""

from __future__ import annotations

import pytest

from releasekit.ecosystems.go.major import find_imports

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
