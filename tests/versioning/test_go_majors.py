"""Go modules that go to /v2, with what is built with them here."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from integration.tools import require_tool
from releasekit.__main__ import main
from versioning.test_version_command import bare_environment, commit, lines, repository
from workspaces import git

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["bare_environment"]

SDK = "example.com/acme/sdk"
KIT = "example.com/acme/cmd/kit"
FILES = {
    "go.mod": "module example.com/acme\n\ngo 1.22\n",
    "VERSION": "v1.8.0\n",
    "acme.go": "package acme\n",
    "sdk/go.mod": f"module {SDK}\n\ngo 1.22\n",
    "sdk/VERSION": "v1.2.0\n",
    "sdk/sdk.go": f'package sdk\n\nimport "{SDK}/inner"\n\nconst Name = inner.Name\n',
    "sdk/sdk_test.go": f'package sdk_test\n\nimport (\n\t"testing"\n\n\t"{SDK}"\n)\n\n'
    'func TestName(t *testing.T) {\n\tif sdk.Name == "" {\n\t\tt.Fail()\n\t}\n}\n',
    "sdk/inner/inner.go": "package inner\n\n// Name is that of " + SDK + '.\nconst Name = "n"\n',
    "sdk/testdata/old.go": f'package old\n\nimport "{SDK}"\n',
    "sdk/README.md": f"go get {SDK}\n",
    "cmd/kit/go.mod": f"module {KIT}\n\ngo 1.22\n\nrequire {SDK} v1.2.0\n",
    "cmd/kit/VERSION": "v0.3.0\n",
    "cmd/kit/main.go": f'package main\n\nimport (\n\t"fmt"\n\n\tsdk "{SDK}"\n)\n\n'
    "func main() {\n\tfmt.Println(sdk.Name)\n}\n",
    "releasekit.toml": '[go]\nversion-file = "VERSION"\n',
}
WORK = {"go.work": "go 1.22\n\nuse (\n\t.\n\t./cmd/kit\n\t./sdk\n)\n"}
BREAKING = {"sdk/inner/more.go": "package inner\n"}


def make(root: Path, files: dict[str, str]) -> Path:
    repository(root, files)
    for tag in ("v1.8.0", "sdk/v1.2.0", "cmd/kit/v0.3.0"):
        git(root, "tag", tag)
    commit(root, "feat(sdk)!: contexts everywhere (#97)", BREAKING)
    return root


def build(root: Path, *places: str) -> None:
    go = require_tool("go")
    for place in places:
        for command in ("build", "vet"):
            subprocess.run(
                [go, command, "./..."],
                cwd=root / place,
                check=True,
                env={**os.environ, "GOPROXY": "off", "GOSUMDB": "off"},
            )


def test_a_breaking_change_moves_the_module_and_what_imports_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = make(tmp_path / "w", FILES | WORK)
    assert main(["version", str(root)]) == 0
    told = lines(capsys)
    assert [" ".join(line.split()) for line in told if " → " in line] == [
        f"{SDK} v1.2.0 → v2.0.0 major feat(sdk)!: contexts everywhere (#97)",
        f"{KIT} v0.3.0 → v0.3.1 patch imports {SDK}/v2",
    ]
    assert f"{SDK} is now {SDK}/v2" in told
    assert (
        "left alone, please look: sdk/README.md:1, sdk/inner/inner.go:3, sdk/testdata/old.go:3"
        in told
    )
    assert (root / "sdk/go.mod").read_text() == f"module {SDK}/v2\n\ngo 1.22\n"
    assert f"\nrequire {SDK}/v2 v2.0.0\n" in (root / "cmd/kit/go.mod").read_text()
    assert f'import "{SDK}/v2/inner"' in (root / "sdk/sdk.go").read_text()
    assert f'sdk "{SDK}/v2"' in (root / "cmd/kit/main.go").read_text()
    assert f"// Name is that of {SDK}." in (root / "sdk/inner/inner.go").read_text()
    assert (root / "sdk/VERSION").read_text() == "v2.0.0\n"
    build(root, "sdk", "cmd/kit")
    commit(root, "chore: release", {})
    git(root, "tag", "sdk/v2.0.0")
    git(root, "tag", "cmd/kit/v0.3.1")
    assert main(["version", str(root), "--check"]) == 0
    commit(root, "fix: more", {"sdk/fix.go": "package sdk\n"})
    lines(capsys)
    assert main(["version", str(root), "--dry-run"]) == 0
    assert f"{SDK}/v2  v2.0.0 → v2.0.1  patch  fix: more" in lines(capsys)


def test_a_replacement_ties_as_a_workspace_does(tmp_path: Path) -> None:
    mod = f"{FILES['cmd/kit/go.mod']}\nreplace {SDK} => ../../sdk\n"
    root = make(tmp_path / "w", {**FILES, "cmd/kit/go.mod": mod})
    assert main(["version", str(root)]) == 0
    assert f"replace {SDK}/v2 => ../../sdk" in (root / "cmd/kit/go.mod").read_text()
    build(root, "sdk", "cmd/kit")


def test_a_module_that_is_not_tied_stays_with_what_is_published(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = make(tmp_path / "w", FILES)
    before = (root / "cmd/kit/go.mod").read_text()
    assert main(["version", str(root)]) == 0
    assert KIT not in capsys.readouterr().out
    assert (root / "cmd/kit/go.mod").read_text() == before


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"releasekit.toml": '[go]\nversion-file = "VERSION"\nmajor = "refuse"\n'}, "in go.mod"),
        ({"vendor/modules.txt": "# none\n"}, "vendor/ has modules by their paths"),
    ],
)
def test_what_cannot_be_moved_is_refused(
    tmp_path: Path, files: dict[str, str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    root = make(tmp_path / "w", FILES | WORK | files)
    assert main(["version", str(root)]) == 3
    assert said in capsys.readouterr().err
    assert git(root, "status", "--porcelain") == ""


def test_the_configuration_names_the_module_by_its_new_path(tmp_path: Path) -> None:
    config = (
        f'[go]\nversions = {{ "." = "1.8.0", "{SDK}" = "1.2.0", "cmd/kit" = "0.3.0" }}  # don\'t\n'
        f"[version.groups]\nall = {{ packages = ['{SDK}'], kind = \"linked\" }}\n"
        f'[dependencies]\n"go:{KIT}" = ["go:{SDK}"]\n'
    )
    files = {name: text for name, text in FILES.items() if not name.endswith("VERSION")}
    root = make(tmp_path / "w", files | WORK | {"releasekit.toml": config})
    assert main(["version", str(root)]) == 0
    after = config.replace(SDK, f"{SDK}/v2").replace("1.2.0", "2.0.0").replace("0.3.0", "0.3.1")
    assert (root / "releasekit.toml").read_text() == after
    commit(root, "chore: release", {})
    assert main(["version", str(root), "--check"]) == 0
    assert main(["plan", str(root)]) == 0


def test_a_change_file_speaks_of_the_module_until_it_is_stable(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = f"{FILES['releasekit.toml']}[version]\nbranches = {{ next = 'rc' }}\n"
    words = {".changeset/a.md": f'---\n"{SDK}": major\n---\nContexts\n'}
    root = make(tmp_path / "w", FILES | WORK | {"releasekit.toml": config} | words)
    assert main(["version", str(root), "--branch", "next"]) == 0
    commit(root, "chore: release", {})
    git(root, "tag", "sdk/v2.0.0-rc.1")
    git(root, "tag", "cmd/kit/v0.3.1-rc.1")
    assert main(["version", str(root), "--branch", "next", "--check"]) == 0
    lines(capsys)
    assert main(["version", str(root)]) == 0
    told = lines(capsys)
    assert f"{SDK}/v2   v1.2.0 → v2.0.0  major  a: Contexts" in told
    assert not (root / ".changeset/a.md").exists()


def test_only_what_names_the_module_itself_is_to_be_looked_at(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    readme = (
        "example.com/acme, https://example.com/acme/issues\nexample.com/acme/v2 example.com/acmes\n"
        f"{SDK}/inner {KIT}\n-X example.com/acme/internal.version=1\n"
        "https://pkg.go.dev/example.com/acme.\n"
    )
    asks = '---\n"example.com/acme": major\n---\nOf example.com/acme\n'
    files = {"README.md": readme, "go.sum": "example.com/acme v1.0.0 h1:\n", "a.bin": "\0" + readme}
    root = make(tmp_path / "w", FILES | WORK | files)
    commit(root, "chore: words", {".changeset/a.md": asks})
    assert main(["version", str(root), "--dry-run", "--set", f"{SDK}=1.3.0"]) == 0
    told = lines(capsys)
    assert "example.com/acme is now example.com/acme/v2" in told
    assert told[-1] == "left alone, please look: README.md:1, README.md:4, README.md:5"
