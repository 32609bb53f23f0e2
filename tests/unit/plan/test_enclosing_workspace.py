"""A run in a mere member of a workspace is refused, before it leaves anything there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from releasekit.__main__ import main
from releasekit.ecosystems import ECOSYSTEMS
from releasekit.errors import ConfigError
from releasekit.plan.enclosing_workspace import refuse_member

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

UV = '[project]\nname = "a"\nversion = "1"\n[build-system]\nrequires = []\n'
NPM = '{"name": "a", "version": "1.0.0"}'
CRATE = '[package]\nname = "a"\nversion = "1.0.0"\n'
COORDINATES = (
    "<modelVersion>4.0.0</modelVersion>"
    "<groupId>g</groupId><artifactId>a</artifactId><version>1</version>"
)
POM = f"<project>{COORDINATES}</project>"


def aggregator(module: str) -> str:
    return f"<project>{COORDINATES}<modules><module>{module}</module></modules></project>"


def write(root: Path, files: Mapping[str, str]) -> Path:
    (root / ".git").mkdir()
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root.resolve()


def refusal(directory: Path, home: str = "", ecosystem: Sequence[str] = tuple(ECOSYSTEMS)) -> str:
    try:
        refuse_member(directory, {name: ECOSYSTEMS[name] for name in ecosystem}, home=home)
    except ConfigError as error:
        return str(error)
    return ""


MEMBERS = {
    "uv": {
        "pyproject.toml": '[tool.uv.workspace]\nmembers = ["packages/*"]\n',
        "packages/a/pyproject.toml": UV,
    },
    "npm": {"package.json": '{"workspaces": ["packages/*"]}', "packages/a/package.json": NPM},
    "pnpm": {"pnpm-workspace.yaml": "packages: ['packages/*']", "packages/a/package.json": NPM},
    "cargo": {
        "Cargo.toml": '[workspace]\nmembers = ["packages/*"]',
        "packages/a/Cargo.toml": CRATE,
    },
    "by a path": {
        "Cargo.toml": '[package]\nname = "b"\n[dependencies]\na.path = "packages/a"\n'
        "[workspace]\nresolver = '2'",
        "packages/a/Cargo.toml": CRATE,
    },
    "go": {"go.work": "go 1.24\nuse ./packages/a\n", "packages/a/go.mod": "module x.org/a\n"},
    "maven": {"pom.xml": aggregator("packages/a"), "packages/a/pom.xml": POM},
    "maven in two steps": {
        "pom.xml": aggregator("packages"),
        "packages/pom.xml": aggregator("a"),
        "packages/a/pom.xml": POM,
    },
}


@pytest.mark.parametrize("files", MEMBERS.values(), ids=MEMBERS)
def test_a_member_is_refused_with_the_root_of_its_workspace(
    tmp_path: Path, files: Mapping[str, str]
) -> None:
    root = write(tmp_path, files)
    said = refusal(root / "packages/a")
    assert said.startswith(f"{root}/packages/a is a member of the ")
    assert said.endswith(f" workspace {root}")
    assert refusal(root) == ""


@pytest.mark.parametrize(
    ("named", "refused"),
    [
        ("['packages/*']", True),
        ("['packages/a']", True),
        ("['other/*']", False),
        ("'packages/a'", False),  # told in the root
    ],
)
def test_a_package_that_a_file_above_names_is_refused(
    tmp_path: Path, named: str, refused: bool
) -> None:
    """It would go out before what it needs, of which nothing is known there."""
    files = {"releasekit.toml": f"[npm]\npackages = {named}\n", "packages/a/package.json": NPM}
    root = write(tmp_path, files)
    said = f"[npm] in {root}/releasekit.toml names {root}/packages/a"
    assert refusal(root / "packages/a") == (said if refused else "")
    assert refusal(root) == ""


@pytest.mark.parametrize(
    ("table", "manifest"),
    [
        ("[cargo]\nworkspaces = ['packages/a']", {"Cargo.toml": "[workspace]\n"}),
        ("[maven]\nreactors = ['.', 'packages/a']", {"pom.xml": POM}),
        ("[npm]\nworkspaces = ['packages/a']", {"package.json": NPM}),
        ("[pypi]\nworkspaces = ['packages/a']", {"pyproject.toml": "[tool.uv.workspace]\n"}),
    ],
)
def test_a_workspace_that_a_file_above_names_is_refused(
    tmp_path: Path, table: str, manifest: Mapping[str, str]
) -> None:
    """What that file leaves out would go out, as it does not hold there."""
    files = {f"packages/a/{name}": text for name, text in manifest.items()}
    root = write(tmp_path, {"releasekit.toml": f"{table}\n", **files})
    assert refusal(root / "packages/a").endswith(f"names {root}/packages/a")
    assert refusal(root) == ""
    (root / "packages/a/releasekit.toml").touch()
    assert refusal(root / "packages/a") == ""


@pytest.mark.parametrize("command", ["plan", "publish"])
def test_nothing_is_left_behind(
    tmp_path: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    root = write(tmp_path, MEMBERS["uv"])
    member = root / "packages/a"
    assert main([command, str(member)]) == 2
    said = capsys.readouterr().err
    assert f"{member} is a member of the pypi workspace {root}" in said
    assert "`working-directory`" in said
    assert [path.name for path in member.iterdir()] == ["pyproject.toml"]


ALONE = {
    "excluded by uv": {
        "pyproject.toml": '[tool.uv.workspace]\nmembers = ["packages/*"]\nexclude = ["packages/a"]',
        "packages/a/pyproject.toml": UV,
    },
    "not listed": {"package.json": '{"workspaces": ["libs/*"]}', "packages/a/package.json": NPM},
    "taken back": {
        "pnpm-workspace.yaml": "packages: ['packages/*', '!packages/a']",
        "packages/a/package.json": NPM,
    },
    "excluded by cargo": {
        "Cargo.toml": '[workspace]\nexclude = ["packages"]',
        "packages/a/Cargo.toml": CRATE,
    },
    "a workspace of its own": {
        "Cargo.toml": '[workspace]\nmembers = ["packages/*"]',
        "packages/a/Cargo.toml": f"{CRATE}[workspace]\nresolver = '2'",
    },
    "not used": {"go.work": "go 1.24\nuse ./b\n", "packages/a/go.mod": "module x.org/a\n"},
    "a parent alone": {"pom.xml": POM, "packages/a/pom.xml": POM},
    "never published": {
        "package.json": '{"workspaces": ["packages/*"]}',
        "packages/a/package.json": '{"name": "a", "version": "1.0.0", "private": true}',
    },
    "unreadable here": {**MEMBERS["npm"], "packages/a/package.json": "{"},
    "another repository": {**MEMBERS["npm"], "packages/a/.git": "gitdir: elsewhere"},
}


@pytest.mark.parametrize(("name", "files"), ALONE.items(), ids=ALONE)
def test_what_stands_alone_is_not_refused(
    tmp_path: Path, name: str, files: Mapping[str, str]
) -> None:
    root = write(tmp_path, files)
    said = refusal(root / "packages/a")
    # The root lists it, whatever it holds.
    assert bool(said) is (name == "unreadable here")


UNREAD = {
    "uv": ("pyproject.toml", "[", "pyproject.toml", UV),
    "npm": ("package.json", "{", "package.json", NPM),
    "npm members": ("package.json", '{"workspaces": 7}', "package.json", NPM),
    "pnpm": ("pnpm-workspace.yaml", "packages: [", "package.json", NPM),
    "cargo": ("Cargo.toml", "[", "Cargo.toml", CRATE),
    "go": ("go.work", "use (", "go.mod", "module x.org/a\n"),
    "maven": ("pom.xml", "<project><modules>", "pom.xml", POM),
    "our globs": (
        "releasekit.toml",
        "[npm]\npackages = ['../packages/a']",
        "package.json",
        NPM,
    ),
    "ours": ("releasekit.toml", "[", "package.json", NPM),
}


@pytest.mark.parametrize(("above", "broken", "own", "text"), UNREAD.values(), ids=UNREAD)
def test_a_root_that_cannot_be_read_is_named(
    tmp_path: Path, above: str, broken: str, own: str, text: str
) -> None:
    """R66, R68: nobody knows whether it lists the package, and uv and cargo refuse it as well."""
    root = write(tmp_path, {above: broken, f"packages/a/{own}": text})
    said = refusal(root / "packages/a")
    assert said.startswith(f"{root}/packages/a may be a member of the ")
    assert above in said
    (root / "packages/a" / own).unlink()
    assert refusal(root / "packages/a") == ""


def test_an_ecosystem_that_the_run_leaves_out_refuses_nothing(tmp_path: Path) -> None:
    root = write(tmp_path, MEMBERS["npm"])
    assert refusal(root / "packages/a", ecosystem=("pypi",)) == ""
    assert refusal(root / "packages/a", ecosystem=("npm",))


def test_outside_of_git_nothing_from_home_on_is_read(tmp_path: Path) -> None:
    root = write(tmp_path, MEMBERS["npm"])
    (root / ".git").rmdir()
    member = root / "packages/a"
    assert refusal(member, home=str(root)) == ""
    assert refusal(member, home=str(root.parent))
    assert refusal(member)
