"""Which modules there are and what they require: what the go command says is right."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from go_workspaces import go
from integration.tools import require_tool
from releasekit.ecosystems.go import GoOptions, discover

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

MODULES = {
    "": """\
// Deprecated: not really.
module example.com/mono/v2 // with a comment

go 1.22.0

toolchain go1.22.1

godebug default=go1.21

require "example.com/mono/sub" v0.1.0
require (
	example.com/mono/deep/v2 v2.0.0 // indirect
	example.com/elsewhere v1.0.0
	// example.com/mono/commented v1.0.0
	example.com/mono/tool v0.3.0
)

exclude example.com/mono/lone v0.0.1

replace (
	example.com/mono/sub => ./sub
	example.com/elsewhere v1.0.0 => example.com/mono/lone v1.2.0
)

retract (
	v2.0.1 // by mistake
	[v2.1.0, v2.1.5]
)
""",
    "sub": "module\texample.com/mono/sub\r\nrequire example.com/mono/lone v1.0.0\r\n",
    "deep/v2": "module example.com/mono/deep/v2\n\ngo 1.22\n\nrequire (\n)\n",
    "tool": """\
module example.com/mono/tool

go 1.24

tool example.com/mono/lone/cmd

require (
	example.com/mono/lone v1.0.0

	// The one below stands alone.

	example.com/mono/sub v0.1.0
)
""",
    "lone": 'module (\n\t"example.com/mono/lone"\n)\n',
    "tool/testdata": "module example.com/mono/tool/testdata\n",
}
WORK = """\
go 1.24

toolchain go1.24.1

use . // the root
use (
	"./sub"
	./deep/../deep/v2

	./tool
	./lone
	// ./commented
)

replace example.com/elsewhere v1.0.0 => ./lone
"""
Edges = dict[str, tuple["Path", set[str]]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    require_tool("go")
    for where, text in MODULES.items():
        directory = tmp_path / "mono" / where
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "go.mod").write_bytes(text.encode())
    return (tmp_path / "mono").resolve()


def ours(root: Path) -> Edges:
    by_path = discover.find_modules(root, GoOptions())
    return {
        package.id.name: (package.directory, {on.on.name for on in package.dependencies})
        for package in discover.make_packages(by_path)
    }


def theirs(uses: list[str], root: Path, environment: Mapping[str, str]) -> Edges:
    """The modules in these directories, and which of them require which."""
    found: Edges = {}
    for use in uses:
        directory = (root / use).resolve()
        mod = json.loads(go(directory, "mod", "edit", "-json", environment=environment))
        required = {require["Path"] for require in mod["Require"] or ()}
        found[mod["Module"]["Path"]] = (directory, required)
    return {
        path: (directory, required & found.keys()) for path, (directory, required) in found.items()
    }


def environment(**changes: str) -> dict[str, str]:
    return {**os.environ, "GOTOOLCHAIN": "local", "GOPROXY": "off", "GOFLAGS": "", **changes}


def test_with_a_go_work(root: Path) -> None:
    (root / "go.work").write_text(WORK)
    work = json.loads(go(root, "work", "edit", "-json", environment=environment()))
    uses = [use["DiskPath"] for use in work["Use"]]
    assert ours(root) == theirs(uses, root, environment())
    assert len(uses) == 5


def test_the_main_modules_of_a_go_work(root: Path) -> None:
    # A replacement and its loop through `exclude` are no business of a list of main modules.
    (root / "go.work").write_text("go 1.24\n\nuse (\n\t./lone\n\t./sub\n)\n")
    form = "{{.Path}}\t{{.Dir}}"
    listed = go(root, "list", "-m", "-f", form, environment=environment()).splitlines()
    directories = dict(line.split("\t") for line in listed)
    assert {name: str(where) for name, (where, _) in ours(root).items()} == directories


def test_without_a_go_work(root: Path, tmp_path: Path) -> None:
    """Those that `go work use -r` would list, but for the data of tests."""
    work = tmp_path / "go.work"
    work.write_text("go 1.24\n")
    there = environment(GOWORK=str(work))
    go(root, "work", "use", "-r", ".", environment=there)
    listed = json.loads(go(tmp_path, "work", "edit", "-json", str(work), environment=there))
    uses = [use["DiskPath"] for use in listed["Use"]]
    found = theirs(uses, tmp_path, there)
    assert found.pop("example.com/mono/tool/testdata")
    assert ours(root) == found
