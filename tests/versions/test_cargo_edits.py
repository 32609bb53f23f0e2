"""Versions written into crates; cargo says whether manifests and lock files agree."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from typing import TYPE_CHECKING, Final

import pytest

import fakes
from integration.tools import require_tool
from releasekit.ecosystems.cargo import CargoOptions
from releasekit.ecosystems.cargo.destination import Destination
from releasekit.ecosystems.cargo.requirements import edit_requirement
from releasekit.ecosystems.cargo.target import Cargo, CargoTarget
from releasekit.errors import ConfigError, PlanError
from releasekit.host.process import Processes
from releasekit.problems import Problem
from versions.writing import write_versions

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def write(root: Path, files: Mapping[str, str]) -> Path:
    """Each manifest gets an empty library, unless it is of a workspace only."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        if "[package]" in text:
            (path.parent / "src").mkdir(exist_ok=True)
            (path.parent / "src" / "lib.rs").touch()
    return root.resolve()


def crate(name: str, version: str, *needs: str, more: str = "") -> str:
    table = "\n".join(needs)
    return f'[package]\nname = "{name}"\nversion = "{version}"\n{more}\n[dependencies]\n{table}\n'


def vendor(root: Path, *crates: tuple[str, str, str]) -> None:
    """Make these, with names, versions and a need, all that crates.io has for this workspace."""
    for name, version, need in crates:
        where = f"vendor/{name}-{version}"
        write(root, {f"{where}/Cargo.toml": crate(name, version, need)})
        (root / where / ".cargo-checksum.json").write_text(
            json.dumps({"files": {}, "package": "0" * 64})
        )
    write(
        root,
        {
            ".cargo/config.toml": '[source.crates-io]\nreplace-with = "here"\n'
            '[source.here]\ndirectory = "vendor"\n'
        },
    )


def cargo(directory: Path, *arguments: str) -> str:
    done = subprocess.run(
        [require_tool("cargo"), *arguments],
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def discover(root: Path, *workspaces: str) -> CargoTarget:
    async def run() -> CargoTarget:
        async with Processes(environment=os.environ) as processes:
            services = fakes.services(fakes.config(root), processes)
            found = Cargo(
                "auto",
                CargoOptions(workspaces=workspaces),
                services,
                Destination(name="crates-io"),
                {},
            )
            return CargoTarget(await found.discover(root), fakes.FakeRegistry())

    require_tool("cargo")
    return asyncio.run(run())


def assert_agreed(directory: Path) -> None:
    """Cargo takes the lock file as it is, and would write the same."""
    before = (directory / "Cargo.lock").read_bytes()
    cargo(directory, "metadata", "--locked", "--offline", "--format-version=1")
    cargo(directory, "update", "--workspace", "--offline")
    assert (directory / "Cargo.lock").read_bytes() == before


def changed_lines(before: Mapping[str, str], root: Path) -> dict[str, list[str]]:
    """Of each file that was edited, the lines that are new in it."""
    found = {}
    for name, text in before.items():
        now = (root / name).read_bytes().decode()
        assert now.count("\n") == text.count("\n")
        pairs = zip(text.splitlines(keepends=True), now.splitlines(keepends=True), strict=True)
        if lines := [new for old, new in pairs if old != new]:
            found[name] = lines
    return found


MANIFESTS: Final = {
    "Cargo.toml": """\
[workspace]
members = ["crates/*"]
exclude = ["python", "template"]
resolver = "2"
[workspace.package]
version = '1.4.0'  # of all tools
[workspace.dependencies]
core = { version = "1.2", path = "crates/core" }
util.version = "1.4.0"
util.path = "crates/util"
[patch.crates-io]
macros = { path = "crates/macros" }
""",
    "crates/core/Cargo.toml": "\ufeff" + crate("core", "1.2.0").replace("\n", "\r\n"),
    "crates/macros/Cargo.toml": crate(
        "macros", "0.3.0", 'core = "1"  # of crates.io', "util.workspace = true"
    ),
    "crates/cli/Cargo.toml": """\
[package]
name = "cli"
version = "0.4.1"
[dependencies]
core.workspace = true
macros = "0.3"
[dependencies.util]
version = "1"
path = "../util"
[dev-dependencies]
cli = { path = ".", version = "=0.4.1" }
""",
    "crates/idle/Cargo.toml": """\
[package]
name = "idle"
version = "3.0.0"
[dependencies]
util = { workspace = true }
other = "1"
macros = "=0.3.0"
[target.'cfg(unix)'.build_dependencies]
base = { package = "core", path = "../core", version = ">= 1.2.0 , < 2" }
[dev-dependencies]
xtask = { path = "../xtask", version = "=1.4.0" }
""",
    "crates/util/Cargo.toml": """\
[package]
name = "util"
version.workspace = true
[dependencies]
core = { path = "../core" }
""",
    "crates/xtask/Cargo.toml": """\
[package]
name = "xtask"
version = { workspace = true }
publish = false
[dependencies]
cli = { path = "../cli", version = "0.4" }
util = { path = "../util", version = "~1.4" }""",
    "python/Cargo.toml": """\
[package]
name = "python"
version = "1.2.0"
[workspace]
[dependencies]
util = { path = "../crates/util", version = "1.4.0" }
core = { path = "../crates/core", version = "1" }
""",
    "template/Cargo.toml": '[package]\nname = {{ name }}\ncore = { path = "../crates/core" }\n',
}
VERSIONS: Final = {"core": "2.0.0", "cli": "0.4.2", "util": "1.5.0", "macros": "0.4.0"}
EDITED: Final = {
    "Cargo.toml": [
        "version = '1.5.0'  # of all tools\n",
        'core = { version = "2.0", path = "crates/core" }\n',
        'util.version = "1.5.0"\n',
    ],
    "crates/core/Cargo.toml": ['version = "2.0.0"\r\n'],
    "crates/macros/Cargo.toml": ['version = "0.4.0"\n'],
    "crates/cli/Cargo.toml": [
        'version = "0.4.2"\n',
        'macros = "0.4"\n',
        'cli = { path = ".", version = "=0.4.2" }\n',
    ],
    "crates/idle/Cargo.toml": [
        'macros = "=0.4.0"\n',
        'base = { package = "core", path = "../core", version = ">= 1.2.0 , < 3" }\n',
        'xtask = { path = "../xtask", version = "=1.5.0" }\n',
    ],
    "crates/xtask/Cargo.toml": ['util = { path = "../util", version = "~1.5" }'],
    "python/Cargo.toml": ['core = { path = "../crates/core", version = "2" }\n'],
}


def workspace(root: Path) -> Path:
    vendor(root, ("core", "1.2.0", ""), ("other", "1.0.0", 'core = "1"'))
    write(root, MANIFESTS)
    cargo(root, "generate-lockfile", "--offline")
    cargo(root / "python", "generate-lockfile", "--offline")
    return root.resolve()


def test_versions_are_written_wherever_cargo_reads_them(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    written = write_versions(root, discover(root), VERSIONS)
    assert changed_lines(MANIFESTS, root) == EDITED
    assert written == {*EDITED, "Cargo.lock", "python/Cargo.lock"}
    for directory in (root, root / "python"):
        assert_agreed(directory)
    assert write_versions(root, discover(root), VERSIONS) == set()


@pytest.mark.parametrize(
    ("requirement", "new", "excluding", "raised"),
    [
        ("1.2", "1.3.1", "1.2", "1.3"),
        ("1", "1.3.1", "1", "1"),
        ("^1.2.3", "2.0.0", "^2.0.0", "^2.0.0"),
        ("=1.2.3", "1.2.4", "=1.2.4", "=1.2.4"),
        ("~1.2", "1.3.0", "~1.3", "~1.3"),
        ("~ 1.2 ", "1.3.0", "~ 1.3 ", "~ 1.3 "),
        ("1.*", "1.3.0", "1.*", "1.*"),
        ("1.2.x", "1.3.0", "1.3.x", "1.3.x"),
        (">=1.2, <2", "1.3.0", ">=1.2, <2", ">=1.3, <2"),
        (">=1.2, <2", "2.0.0", ">=1.2, <3", ">=2.0, <3"),
        (">1.0 ,<1.3", "1.4.1", ">1.0 ,<1.5", ">1.0 ,<1.5"),
        ("<2.0.0", "3.1.0", "<4.0.0", "<4.0.0"),
        ("<=1.2", "1.3.4", "<=1.3", "<=1.3"),
        (">=1.0.0", "3.0.0", ">=1.0.0", ">=3.0.0"),
        ("1.2.3+old", "2.0.0+new", "2.0.0", "2.0.0"),
        ("1.2", "1.3.0-rc.1", "1.3.0-rc.1", "1.3.0-rc.1"),
        (">=1.2, <2", "1.3.0-rc.1", ">=1.3.0-rc.1, <2", ">=1.3.0-rc.1, <2"),
        # Another version is meant.
        ("0.9", "1.3.0", "0.9", "0.9"),
        ("=1.2.2", "1.3.0", "=1.2.2", "=1.2.2"),
    ],
)
def test_a_requirement_keeps_its_shape(
    requirement: str, new: str, excluding: str, raised: str
) -> None:
    """Of a crate that is 1.2.3: what is written where only exclusion counts, and otherwise."""
    for raises, wanted in ((False, excluding), (True, raised)):
        edited = edit_requirement(requirement, "1.2.3", new, raises=raises)
        assert edited == wanted
        assert edit_requirement(edited, new, new, raises=raises) == edited


def two(root: Path, *needs: str, more: str = "") -> Path:
    files = {
        "Cargo.toml": f'[workspace]\nmembers = ["core", "cli"]\nresolver = "2"\n{more}',
        "core/Cargo.toml": crate("core", "1.2.3"),
        "cli/Cargo.toml": crate("cli", "0.4.1", *needs),
    }
    return write(root, files)


def test_ranges_may_be_kept(tmp_path: Path) -> None:
    root = two(tmp_path, 'core = { path = "../core", version = "1.2" }')
    versions = {"core": "1.3.0", "cli": "0.4.2"}
    found = discover(root)
    assert write_versions(root, found, versions, ranges="keep")
    assert 'version = "1.2"' in (root / "cli/Cargo.toml").read_text()
    assert write_versions(root, found, versions) == {"cli/Cargo.toml"}
    assert 'version = "1.3"' in (root / "cli/Cargo.toml").read_text()
    assert not (root / "Cargo.lock").exists()


def test_what_has_no_fitting_shape_is_named(tmp_path: Path) -> None:
    root = two(
        tmp_path,
        'core = { path = "../core", version = "1.*" }',
        'again = { package = "core", path = "../core", version = ">1.0" }',
    )
    with pytest.raises(PlanError) as caught:
        write_versions(root, discover(root), {"core": "1.3.0-rc.1"})
    assert caught.value.problem is Problem.CANNOT_WRITE
    assert [str(each) for each in (caught.value, *caught.value.others)] == [
        f"cli/Cargo.toml: dependencies.{name}.version: {text!r} cannot admit 1.3.0-rc.1 in this "
        "form; write '1.3.0-rc.1'"
        for name, text in (("core", "1.*"), ("again", ">1.0"))
    ]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_lock_file_keeps_its_format(tmp_path: Path, end: str) -> None:
    """Also where it was stale."""
    root = two(tmp_path, 'core = { path = "../core" }')
    cargo(root, "generate-lockfile", "--offline")
    lock = root / "Cargo.lock"
    text = lock.read_text()
    stale = text.replace("version = 4", "version = 3").replace('"0.4.1"', '"0.4.0"')
    lock.write_text(stale.replace("\n", end), newline="")
    write_versions(root, discover(root), {"core": "2.0.0"})
    written = lock.read_bytes().decode()
    assert written.count(end) == written.count("\n") == text.count("\n")
    assert "version = 3" in written
    assert_agreed(root)


@pytest.mark.parametrize("need", ['core = { path = "../core", version = "1" }', ""])
def test_another_workspace_follows(tmp_path: Path, need: str) -> None:
    """Where it needs the crate, and where its patch has no effect."""
    root = two(tmp_path, need, more='exclude = ["core"]\n[patch.crates-io]\ncore.path = "core"\n')
    manifest = root / "Cargo.toml"
    manifest.write_text(manifest.read_text().replace('"core", "cli"', '"cli"'))
    cargo(root, "generate-lockfile", "--offline")
    assert ("patch.unused" in (root / "Cargo.lock").read_text()) == (not need)
    write_versions(root, discover(root, "core"), {"core": "2.0.0"})
    assert_agreed(root)


def test_packages_of_one_name_change_places(tmp_path: Path) -> None:
    """With a package that was locked before, and one of the very version that it gets."""
    vendor(tmp_path, ("core", "1.10.0", ""), ("core", "2.0.0", ""), ("core", "3.0.0", ""))
    needs = [f'c{major} = {{ package = "core", version = "{major}" }}' for major in (1, 2, 3)]
    root = two(tmp_path, *needs, 'core = { path = "../core" }')
    cargo(root, "generate-lockfile", "--offline")
    for version in ("1.9.0", "1.10.0", "2.0.0", "2.10.0", "4.0.0"):
        assert "Cargo.lock" in write_versions(root, discover(root), {"core": version})
        assert_agreed(root)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("version = 4\n", "", "its format is neither 3 nor 4"),
        ("version = 4\n", "version = 5\n", "its format is neither 3 nor 4"),
        ('"cli"', '"else"', "lacks cli"),
        ('name = "core"\n', 'name =  "core"\n', "lacks core"),
    ],
)
def test_a_lock_file_that_cannot_be_brought_along_is_refused(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    root = two(tmp_path, 'core = { path = "../core" }')
    cargo(root, "generate-lockfile", "--offline")
    lock = root / "Cargo.lock"
    lock.write_text(lock.read_text().replace(old, new, 1))
    found = discover(root)
    with pytest.raises(PlanError, match=rf"^Cargo\.lock: {said}: run `cargo update") as caught:
        write_versions(root, found, {"core": "1.3.0"})
    assert caught.value.problem is Problem.CANNOT_WRITE
    assert write_versions(root, found, {}) == set()


def test_versions_that_cannot_be_told_apart_are_refused(tmp_path: Path) -> None:
    """tomlkit moves the tables of an array together, so a place is looked for by its text."""
    root = two(tmp_path)
    need = 'core = { path = "../core", version = "1" }'
    (root / "cli/Cargo.toml").write_text(
        '[package]\nname = "cli"\nversion = "0.4.1"\n'
        f'[[bin]]\nname = "a"\npath = "src/lib.rs"\n[dependencies]\n{need}\n'
        f'[[bin]]\nname = \'b\'\npath = \'src/lib.rs\'\nx = """\n[dependencies]\n{need}\n"""\n'
    )
    with pytest.raises(PlanError, match=r"^cli/Cargo\.toml: its versions cannot be told") as caught:
        write_versions(root, discover(root), {"core": "2.0.0"})
    assert caught.value.problem is Problem.CANNOT_WRITE


def test_a_version_that_is_not_there_is_refused(tmp_path: Path) -> None:
    root = two(tmp_path)
    (root / "core/Cargo.toml").write_text('[package]\nname = "core"\n')
    with pytest.raises(PlanError, match=r"^core/Cargo\.toml: has no package\.version: write '0.1"):
        write_versions(root, discover(root), {"core": "0.1.0"})


def test_a_patch_that_would_stop_to_apply_is_refused(tmp_path: Path) -> None:
    """Cargo would lock a version of crates.io instead."""
    vendor(tmp_path, ("other", "1.0.0", 'core = "1"'))
    root = two(tmp_path, 'other = "1"', more='[patch.crates-io]\ncore = { path = "core" }\n')
    cargo(root, "generate-lockfile", "--offline")
    found = discover(root)
    with pytest.raises(PlanError, match=r"^Cargo\.lock: other 1\.0\.0 comes from elsewhere"):
        write_versions(root, found, {"core": "2.0.0"})
    write_versions(root, found, {"core": "1.3.0"})
    assert_agreed(root)


def test_manifests_beside_the_workspace_cannot_harm(tmp_path: Path) -> None:
    """Nothing outside is read, and what cannot be read is no reason to fail."""
    outside = write(tmp_path / "outside", {"Cargo.toml": crate("out", "1.0.0")})
    root = two(tmp_path / "here", 'core = { path = "../core", version = "1.2" }')
    need = 'core = {{ path = "{}", version = "1" }}'
    beside = {
        "nul/Cargo.toml": crate("nul", "1.0.0", need.format("\\u0000")),
        "out/Cargo.toml": crate("out", "1.0.0", need.format("../../outside")),
        "odd/Cargo.toml": "dependencies = { a = 1, b = { path = 2, version = [] } }\npatch = 3",
        "bytes/Cargo.toml": crate("bytes", "1.0.0", need.format("../core")) + "# \x7f",
        "git/.git": "gitdir: elsewhere",
        "git/Cargo.toml": crate("git", "1.0.0", need.format("../core")),
        "target/CACHEDIR.TAG": "",
        "target/Cargo.toml": crate("made", "1.0.0", need.format("../core")),
        "fine/Cargo.toml": crate("fine", "1.0.0", need.format("../core")),
    }
    write(root, beside)
    (root / "link").mkdir()
    (root / "link/Cargo.toml").symlink_to(outside / "Cargo.toml")
    (root / "fine/Cargo.lock").mkdir()
    with pytest.raises(ConfigError, match=r"fine/Cargo\.lock"):
        write_versions(root, discover(root), {"core": "2.0.0"})
    (root / "fine/Cargo.lock").rmdir()
    written = write_versions(root, discover(root), {"core": "2.0.0"})
    assert written == {"core/Cargo.toml", "cli/Cargo.toml", "fine/Cargo.toml"}
