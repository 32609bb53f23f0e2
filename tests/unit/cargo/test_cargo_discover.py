"""What is made of cargo's answer; what cargo answers is tested with cargo."""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

import fakes
from integration.tools import require_tool
from releasekit.ecosystems.cargo import build, crate_file, discover
from releasekit.ecosystems.cargo.build import Packager
from releasekit.ecosystems.cargo.destination import CargoConfig, Destination
from releasekit.ecosystems.cargo.discover import Crate, Need, explain_unpublishable_need
from releasekit.ecosystems.cargo.mirror import Indexes
from releasekit.ecosystems.cargo.sparse_index import SparseDirectory
from releasekit.errors import BuildFailed, ConfigError, PackageError, PlanError
from releasekit.fields import replace
from releasekit.host.process import Processes
from releasekit.model import DependencyKind
from releasekit.plan.order import in_order, without_soft_cycles
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from releasekit.ecosystems.interface import Built
    from releasekit.model import Package


ENTRY: dict[str, Any] = {
    "name": "a", "version": "1.0.0", "manifest_path": "/w/a/Cargo.toml", "publish": ["x"],
    "dependencies": [], "description": None, "license": None, "license_file": None,
    "homepage": None, "documentation": None, "repository": None, "keywords": [], "categories": [],
    "features": {},
}  # fmt: skip
CRATES_IO = Destination(name="crates-io")


def crate(root: Path, name: str, *needs: Need, publish: tuple[str, ...] | None = None) -> Crate:
    manifest = root / name / "Cargo.toml"
    return Crate(
        name=name, version="1.0.0", manifest=manifest, workspace=root, publish=publish, needs=needs
    )


def found_of(root: Path, crates: Iterable[Crate], destination: Destination) -> tuple[Package, ...]:
    by_name, twins = discover.merge_crates(root, crates, destination)
    return discover.make_packages(by_name, destination, twins)


def test_edges_are_what_stays_when_cargo_publishes(tmp_path: Path) -> None:
    where = {"a": tmp_path / "a", "b": tmp_path / "b", "out": tmp_path / "out"}
    crates = [
        crate(
            tmp_path,
            "a",
            Need(name="b", path=where["b"], requirement="*", kind="normal"),
            Need(name="b", path=where["b"], requirement="^1", kind="build"),
            Need(name="a", path=where["a"], requirement="*", kind="dev"),
            Need(name="out", path=where["out"], requirement="^1", kind="normal"),
        ),
        crate(
            tmp_path,
            "b",
            Need(name="a", path=where["a"], requirement="*", kind="dev"),
            Need(name="c", path=tmp_path / "c", requirement="^1", kind="dev"),
        ),
        crate(tmp_path, "c"),
    ]
    found = found_of(tmp_path, crates, CRATES_IO)
    edges = {each.id.name: [edge.on.name for edge in each.dependencies] for each in found}
    assert edges == {"a": ["b"], "b": ["c"], "c": []}
    assert {each.inherits for each in found} == {(tmp_path / "Cargo.toml",)}


def by_version(name: str, requirement: str = "^1", **fields: Any) -> Need:
    """A dependency that the manifest gives no path."""
    return Need(
        **{"path": None, "kind": "normal", **fields, "name": name, "requirement": requirement}
    )


@pytest.mark.parametrize(
    ("need", "is_edge"),
    [
        (by_version("b"), True),
        (by_version("b", "=1.0.0", kind="build"), True),
        (by_version("b", kind="dev"), True),
        (by_version("b", "^2"), False),
        (by_version("b", "*", kind="dev"), False),
        (by_version("b", registry="sparse+https://corp.example/"), False),
        (by_version("b", registry="https://github.com/rust-lang/crates.io-index"), True),
        (by_version("private"), False),
        (by_version("a"), False),
        (by_version("serde"), False),
    ],
)
def test_a_version_alone_is_an_edge_where_it_means_the_member(
    tmp_path: Path, need: Need, is_edge: bool
) -> None:
    """R1: `[patch]` ties them together in the workspace, and cargo knows of no order."""
    members = [
        crate(tmp_path, "a", need),
        crate(tmp_path, "b"),
        crate(tmp_path, "private", publish=()),
    ]
    found = found_of(tmp_path, members, CRATES_IO)
    edges = {each.id.name: [*each.dependencies] for each in found}
    assert [edge.on.name for edge in edges["a"]] == (["b"] if is_edge else [])
    assert all(edge.visible_first for edge in edges["a"])
    assert discover.find_alone(found) == ({"a"} if is_edge else set())


def test_a_version_alone_means_the_registry_that_it_names(tmp_path: Path) -> None:
    members = [
        crate(tmp_path, "a", by_version("b")),
        crate(tmp_path, "c", by_version("b", registry="sparse+https://corp.example/index")),
        crate(tmp_path, "b"),
    ]
    corp = Destination(name="corp", index="https://corp.example/index/")
    own = replace(corp, stands_for=corp.index)
    for destination, alone in ((own, {"c"}), (corp, {"a", "c"})):
        found = found_of(tmp_path, members, destination)
        assert discover.find_alone(found) == alone


def test_what_is_needed_for_development_gives_way(tmp_path: Path) -> None:
    """R48: but where both kinds are, it does not."""

    def path(name: str, kind: Literal["normal", "dev"]) -> Need:
        return Need(name=name, path=tmp_path / name, requirement="^1", kind=kind)

    members = [
        crate(tmp_path, "a", path("b", "dev"), path("b", "normal")),
        crate(tmp_path, "b", path("a", "dev")),
        crate(tmp_path, "c", path("b", "normal")),
        crate(tmp_path, "d", path("e", "dev")),
        crate(tmp_path, "e"),
    ]
    found = found_of(tmp_path, members, Destination())
    edges = {(each.id.name, on.on.name): on for each in found for on in each.dependencies}
    assert {pair for pair, edge in edges.items() if edge.soft} == {("b", "a"), ("d", "e")}
    assert {edge.kind for edge in edges.values() if edge.soft} == {DependencyKind.DEV}
    # Whatever is on a cycle, and all that depends on it.
    assert discover.find_alone(found) == {"a", "b", "c"}
    assert {pair for pair, edge in edges.items() if not edge.visible_first} == {("d", "e")}


def test_a_version_alone_closes_no_cycle(tmp_path: Path) -> None:
    """Cargo takes an older release from the registry, and publishes the two one after the other."""
    back = Need(name="a", path=tmp_path / "a", requirement="^1", kind="normal")
    members = [
        crate(tmp_path, "a", by_version("b"), by_version("c"), replace(back, name="b", kind="dev")),
        crate(tmp_path, "b", back),
        crate(tmp_path, "c"),
    ]
    found = found_of(tmp_path, members, CRATES_IO)
    public, notes = without_soft_cycles({each.id: each for each in found})
    assert [each.id.name for each in in_order(list(public.values()))] == ["c", "a", "b"]
    assert not notes


def test_what_another_workspace_has_is_taken_from_the_registry(tmp_path: Path) -> None:
    need = Need(name="b", path=tmp_path / "b", requirement="^1", kind="normal")
    members = [
        crate(tmp_path, "a", need),
        replace(crate(tmp_path, "b"), workspace=tmp_path / "other"),
    ]
    assert discover.find_alone(found_of(tmp_path, members, Destination())) == {"a"}


@pytest.mark.parametrize(
    ("publish", "name", "reason"),
    [
        (None, "crates-io", ""),
        (("corp",), "corp", ""),
        ((), "corp", "its `publish` is false"),
        (("corp", "x"), "crates-io", "its `publish` allows corp, x only, and this is crates-io"),
        (("corp",), "", "a registry that cargo has no name for"),
    ],
)
def test_packages_go_nowhere_they_must_not(
    tmp_path: Path, publish: tuple[str, ...] | None, name: str, reason: str
) -> None:
    said = discover.explain_unpublishable(
        crate(tmp_path, "a", publish=publish), Destination(name=name)
    )
    assert reason in said
    assert bool(said) is bool(reason)


def test_nothing_outside_the_root_is_published(tmp_path: Path) -> None:
    """R36"""
    root = tmp_path / "root"
    with pytest.raises(ConfigError, match="leads out"):
        discover.merge_crates(root, [crate(tmp_path, "a")], CRATES_IO)
    with pytest.raises(ConfigError, match="leads out"):
        discover.find_directories(root, ("../elsewhere",))
    with pytest.raises(ConfigError, match=r"'here' has no Cargo.toml"):
        discover.find_directories(root, ("here",))


def test_two_workspaces_share_no_name(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "Cargo.toml").touch()
    found = discover.find_directories(tmp_path, ("one", "two", "one"))
    assert found == [tmp_path / "one", tmp_path / "two"]
    twins = [crate(directory, "same") for directory in found]
    assert len(discover.merge_crates(tmp_path, twins[:1] * 2, CRATES_IO)[0]) == 1
    with pytest.raises(ConfigError, match="both named 'same'"):
        discover.merge_crates(tmp_path, twins, CRATES_IO)


def test_without_cargo_the_message_says_what_to_install(tmp_path: Path) -> None:
    async def main() -> None:
        async with Processes(environment={"PATH": str(tmp_path)}) as processes:
            await discover.read_metadata(tmp_path, processes)

    with pytest.raises(ConfigError, match="cargo is not on PATH") as caught:
        asyncio.run(main())
    assert "rustup.rs" in caught.value.hint


@pytest.mark.parametrize(
    "said",
    [
        *("hello", "", "[]", "\x1b[31mhello", '{"packages": []}'),
        '{"workspace_root": "/", "packages": 1}',
        '{"workspace_root": "/", "packages": [{"publish": null}]}',
    ],
)
def test_what_is_no_metadata_is_told_with_the_program_that_prints_it(
    tmp_path: Path, said: str
) -> None:
    """R63: a wrapper on PATH may print anything, and end in order."""
    program = tmp_path / "cargo"
    program.write_text(f"#!/bin/sh\necho '{said}'\n")
    program.chmod(0o755)

    async def main() -> None:
        async with Processes(environment={"PATH": str(tmp_path)}) as processes:
            await discover.read_metadata(tmp_path, processes)

    with pytest.raises(PlanError, match=r"^`cargo metadata .*` prints ") as caught:
        asyncio.run(main())
    assert str(caught.value).isprintable()
    assert str(program) in caught.value.hint
    assert caught.value.problem is Problem.STRANGE_OUTPUT


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (("warning: x", "error: no", "", "Caused by:", "  because"), "no: because"),
        (("error: first", "error: second"), "second"),
        ((), "it says nothing"),
        (
            ("error: odd", "key", " --> a b/Cargo.toml:3:9", "  |", "error: failed to load"),
            "a b/Cargo.toml:3:9: odd key",
        ),
        (("error: odd", "warning: w", " --> Cargo.toml:3:9", "error: failed"), "failed"),
    ],
)
def test_cargo_complains_in_one_line(log: tuple[str, ...], words: str) -> None:
    assert discover.extract_error(log) == words


@pytest.mark.parametrize(
    ("kinds", "is_foreign"),
    [
        ([["cdylib"], ["custom-build"], ["test"]], True),
        ([["cdylib", "rlib"]], False),
        ([["cdylib"], ["bin"]], False),
        ([["lib"]], False),
        ([["staticlib", "cdylib"]], True),
    ],
)
def test_a_library_for_other_languages_is_told_from_a_crate(
    kinds: list[list[str]], is_foreign: bool
) -> None:
    """R1: as of maturin and napi."""
    entry = ENTRY | {"targets": [{"kind": each} for each in kinds]}
    (found,) = discover.parse_metadata(
        json.dumps({"workspace_root": "/w", "packages": [entry]}), Path("/w")
    )
    assert found.is_foreign is is_foreign


def test_a_crate_that_a_python_package_is_built_of_is_doubted(tmp_path: Path) -> None:
    """R1: as maturin lays it out, with an rlib beside for tests."""
    plain, bound = crate(tmp_path, "core"), crate(tmp_path, "core-python")
    bound.manifest.parent.mkdir(parents=True)
    (bound.manifest.parent / "pyproject.toml").touch()
    found = found_of(tmp_path, [plain, bound], CRATES_IO)
    assert {each.id.name: each.doubt.partition(",")[0] for each in found} == {
        "core": "",
        "core-python": "shares its directory with a Python package",
    }


@pytest.mark.parametrize(
    ("further", "directory", "tool"),
    [
        ({"build_directory": "/w/target"}, "/w", "cargo 1.91 or later"),
        ({"build_directory": "/w/target"}, "/w/a", ""),
        ({}, "/w", ""),
    ],
)
def test_metadata_tells_of_a_recent_cargo(
    further: dict[str, str], directory: str, tool: str
) -> None:
    """R70: of the one that runs in that directory."""
    said = {"workspace_root": "/w", "packages": [ENTRY], **further}
    (found,) = discover.parse_metadata(json.dumps(said), Path(directory))
    assert found.tool == tool


def test_what_crates_io_wants_is_missed() -> None:
    said = {"workspace_root": "/w", "packages": [ENTRY]}
    (found,) = discover.parse_metadata(json.dumps(said), Path("/w"))
    missing = [refusal.what.partition(",")[0] for refusal in found.refused]
    assert missing == ["package.description is missing", "package.license is missing"]
    assert found.publish == ("x",)
    assert found.needs == ()


def packaged(
    scratch: Path,
    *crates: Crate,
    search: str,
    edges: Mapping[str, list[str]],
    lost: dict[str, BuildFailed] | None = None,
) -> dict[str, Built]:
    """What a packager makes of them all that has the programs on `search`, a PATH."""

    indexes = Indexes.of(
        CargoConfig(registries={}, replaced=True),
        fakes.services(fakes.config(scratch), None),
        seen={},
        destination=Destination(),
        members=(),
        downloads=False,
    )

    async def open_mirror(_named: object, _home: str) -> None:
        return None

    async def main() -> dict[str, Built]:
        async with Processes(environment={"PATH": search}) as processes:
            packager = Packager(
                processes=processes,
                crates={crate.name: crate for crate in crates},
                edges=edges,
                scratch=scratch,
                logs=fakes.logs(scratch),
                environment={},
                indexes=indexes,
                open_mirror=open_mirror,
                lost={} if lost is None else lost,
            )
            return await packager.package({name: scratch / name for name in edges})

    return asyncio.run(main())


def test_without_cargo_nothing_is_packaged(tmp_path: Path) -> None:
    built = packaged(tmp_path, crate(tmp_path, "a"), search=str(tmp_path), edges={"a": []})
    error = built["a"]
    assert isinstance(error, BuildFailed)
    assert "cargo is not on PATH" in str(error)
    assert "rustup.rs" in error.hint


def failing(tmp_path: Path, said: str) -> BuildFailed:
    """What becomes of a crate named a if cargo says this."""
    program = tmp_path / "bin" / "cargo"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{said}\nEND\nexit 101\n")
    program.chmod(0o755)

    search = f"{program.parent}:/usr/bin:/bin"
    error = packaged(tmp_path, crate(tmp_path, "a"), search=search, edges={"a": []})["a"]
    assert isinstance(error, BuildFailed)
    return error


def test_rustc_says_why_a_crate_does_not_compile(tmp_path: Path) -> None:
    error = failing(
        tmp_path,
        "   Packaging a v1.0.0 (/w/a)\n   Verifying a v1.0.0 (/w/a)\n"
        "error[E0425]: cannot find type `Nope` in this scope\n --> src/lib.rs:3:13\n\n"
        "error: could not compile `a` (lib) due to 1 previous error\n"
        "error: failed to verify package tarball",
    )
    assert str(error) == (
        "cargo:a could not be packaged: it does not compile: "
        "error[E0425]: cannot find type `Nope` in this scope"
    )
    assert "`[cargo] verify = false`" in error.hint
    assert "The whole output is in" in error.hint


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("checksum for `a v1.0.0` changed between lock files", "Bump its version"),
        ("no token found for `corp`, please run `cargo login`", "cargo login --registry NAME"),
        ("no matching package named `a` found", "The whole output is in"),
        ("readme `nowhere.md` does not appear to exist", "The whole output is in"),
    ],
)
def test_what_cargo_says_comes_with_what_to_do(tmp_path: Path, words: str, hint: str) -> None:
    """Its words as they stand below `Packaging`, which tells of which crate they are."""
    said = f"   Packaging a v1.0.0 (/w/a)\nerror: failed to prepare\n\nCaused by:\n  {words}"
    error = failing(tmp_path, said)
    assert words in str(error)
    assert hint in error.hint


@pytest.mark.parametrize(
    ("need", "hint"),
    [
        (by_version("b"), build.PATHLESS),
        (by_version("b", path=Path("/w/b"), kind="dev"), build.CIRCULAR),
        (by_version("b", path=Path("/w/b")), "The whole output is in"),
    ],
)
def test_what_cargo_does_not_find_is_cured_where_it_is_written(
    tmp_path: Path, need: Need, hint: str
) -> None:
    """And such a build may succeed once the release has come further."""
    program = tmp_path / "bin" / "cargo"
    program.parent.mkdir()
    said = "   Packaging a v1.0.0 (/w/a)\nerror: failed\n\nCaused by:\n  no matching package named"
    program.write_text(f"#!/bin/sh\nprintf '%s `b` found\\n' '{said}' >&2\nexit 101\n")
    program.chmod(0o755)

    search = f"{program.parent}:/usr/bin:/bin"
    members = [crate(tmp_path, "a", need), crate(tmp_path, "b")]
    built = packaged(tmp_path, *members, search=search, edges={"a": ["b"], "b": []})
    error = built["a"]
    assert isinstance(error, BuildFailed)
    assert hint in error.hint
    assert error.premature


def test_what_one_call_did_not_find_the_next_does_not_look_for(tmp_path: Path) -> None:
    """R6: each call named it once more, with a log of its own."""
    program = tmp_path / "bin" / "cargo"
    program.parent.mkdir()
    said = "   Packaging a v1.0.0 (/w/a)\nerror: failed\n\nCaused by:\n  no matching package named"
    program.write_text(f"#!/bin/sh\nprintf '%s `gone` found\\n' '{said}' >&2\nexit 101\n")
    program.chmod(0o755)

    search = f"{program.parent}:/usr/bin:/bin"
    crates = [crate(tmp_path, name, by_version("gone")) for name in ("a", "b")]
    lost: dict[str, BuildFailed] = {}
    (first,) = packaged(tmp_path, crates[0], search=search, edges={"a": []}, lost=lost).values()
    program.write_text("#!/bin/sh\nexit 0\n")
    (second,) = packaged(tmp_path, *crates, search=search, edges={"b": []}, lost=lost).values()
    assert isinstance(first, BuildFailed)
    assert isinstance(second, BuildFailed)
    assert str(second) == str(first).replace("cargo:a", "cargo:b")
    assert (second.log, second.hint) == (first.log, first.hint)


def test_what_needs_one_that_lacks_the_same_is_not_tried_again(tmp_path: Path) -> None:
    """R6: that packaged the other one once more, which got a log of its own."""
    program = tmp_path / "bin" / "cargo"
    program.parent.mkdir()
    said = "   Packaging a v1.0.0 (/w/a)\nerror: failed\n\nCaused by:\n  no matching package named"
    program.write_text(f"#!/bin/sh\nprintf '%s `gone` found\\n' '{said}' >&2\nexit 101\n")
    program.chmod(0o755)

    search = f"{program.parent}:/usr/bin:/bin"
    gone = by_version("gone")
    crates = [crate(tmp_path, "a", gone), crate(tmp_path, "b", gone), crate(tmp_path, "c")]
    edges: dict[str, list[str]] = {"a": [], "b": [], "c": ["b"]}
    built = packaged(tmp_path, *crates, search=search, edges=edges)
    assert str(built["c"]).endswith(": b, which it needs, could not be packaged")
    assert len({getattr(error, "hint", "") for error in built.values()}) == 1


def test_a_trouble_that_is_no_crates_own_ends_them_all(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "cargo"
    program.parent.mkdir()
    program.write_text(
        f"#!/bin/sh\necho >> {tmp_path}/calls\necho 'error: no disk' >&2\nexit 101\n"
    )
    program.chmod(0o755)

    crates = [crate(tmp_path, name) for name in ("a", "b")]
    search = f"{program.parent}:/usr/bin:/bin"
    built = packaged(tmp_path, *crates, search=search, edges={"a": [], "b": ["a"]})
    assert [str(error) for error in built.values()] == [
        "cargo:a could not be packaged: no disk",
        "cargo:b could not be packaged: no disk",
    ]
    assert (tmp_path / "calls").read_text().count("\n") == 1


def packed(**files: bytes) -> io.BytesIO:
    """A .crate of `a` 1.0.0; names without their directory, `_` for a dot."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(f"a-1.0.0/{name.replace('_', '.')}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    stream.seek(0)
    return stream


OWN = b'package = { name = "a", version = "1.0.0", readme = "README.md" }'


def test_a_crate_is_read_as_it_was_packaged() -> None:
    def readme(**files: bytes) -> str | None:
        return crate_file.read_crate(packed(**files), "a", "1.0.0").readme

    assert readme(Cargo_toml=OWN, README_md=b"# A") == "# A"
    assert readme(README_md=b"# A", Cargo_toml=OWN) == "# A"
    assert readme(Cargo_toml=OWN) is None
    assert readme(Cargo_toml=OWN.replace(b'"README.md"', b"false"), README_md=b"# A") is None


@pytest.mark.parametrize(
    ("files", "limit", "words"),
    [
        ({"Cargo_toml": OWN.replace(b"1.0.0", b"1.0.1")}, 1000, "is another package's"),
        ({"Cargo_toml": OWN, "README_md": b"#" * 200}, 100, "larger than 100 bytes"),
        ({"Cargo_toml": OWN, "other": b"#" * 900}, 100, "unpacks to more than 800 bytes"),
        ({"other": OWN}, 1000, "a-1.0.0/Cargo.toml"),
        ({"Cargo_toml": b"["}, 1000, "is not its package"),
        ({"Cargo_toml": b"package = 1"}, 1000, "is another package's"),
        ({"Cargo_toml": b"a = " + b"[" * 20_000}, 100_000, "is not its package"),
    ],
)
def test_another_file_is_no_crate(
    monkeypatch: pytest.MonkeyPatch, files: dict[str, bytes], limit: int, words: str
) -> None:
    """R40"""
    monkeypatch.setattr(crate_file, "MAX_FILE_BYTES", limit)
    monkeypatch.setattr(crate_file, "MAX_UNPACKED_BYTES", 8 * limit)
    with pytest.raises(PackageError, match=re.escape(words)):
        crate_file.read_crate(packed(**files), "a", "1.0.0")


def test_only_its_own_file_has_a_place(tmp_path: Path) -> None:
    package = discover.make_packages({"a": crate(tmp_path, "a")}, Destination())[0]
    layout = SparseDirectory()
    assert str(layout.path_for(package, "a-1.0.0.crate")) == "crates/a/a-1.0.0.crate"
    assert layout.path_for(package, "../a-1.0.0.crate") is None


def test_a_private_twin_is_meant_by_who_names_its_path(tmp_path: Path) -> None:
    """The name is that of the other one, which is published."""
    ours, fork = crate(tmp_path / "ours", "core"), crate(tmp_path / "fork", "core", publish=())
    need = Need(name="core", path=fork.manifest.parent, requirement="^1", kind="normal")
    web = crate(tmp_path / "web", "web", need)
    crates, twins = discover.merge_crates(tmp_path, [fork, ours, web], CRATES_IO)
    assert (crates["core"], twins) == (ours, [fork])
    found = {each.id.name: each for each in discover.make_packages(crates, CRATES_IO, twins)}
    assert [edge.private for edge in found["web"].dependencies] == ["its `publish` is false"]


def test_a_crate_that_takes_one_version_only_says_so(tmp_path: Path) -> None:
    """R49"""

    def path(name: str, requirement: str, kind: Literal["normal", "dev"] = "normal") -> Need:
        return Need(name=name, path=tmp_path / name, requirement=requirement, kind=kind)

    members = [
        crate(tmp_path, "a", path("core", "=1.0.0")),
        crate(tmp_path, "b", path("core", "^1")),
        crate(tmp_path, "c", path("core", "=1.0.0", "dev")),
        crate(tmp_path, "core"),
    ]
    by_name, twins = discover.merge_crates(tmp_path, members, CRATES_IO)
    found = discover.make_packages(by_name, CRATES_IO, twins)
    assert {each.id.name for each in found for on in each.dependencies if on.exact} == {"a"}


@pytest.mark.parametrize(
    ("need", "anywhere", "on_crates_io"),
    [
        (by_version("x", "*", git="git+https://x.y/z"), "https://x.y/z and has no", "has no"),
        (by_version("x", "^1", git="git+https://x.y/z"), "", ""),
        (by_version("x", "*", git="git+https://x.y/z", kind="dev"), "", ""),
        (by_version("x", "*", git="git+https://x.y/z", is_wild=True), "", 'is "*", which'),
        (by_version("x", "*", path=Path("/x"), is_wild=True), "", 'is "*", which'),
        (by_version("a", "*", path=Path("/a"), is_wild=True), "", 'is "*", which'),
        (by_version("x", "*", path=Path("/x")), "/x and has no version", "has no version"),
        (by_version("a", "*", path=Path("/a")), "", ""),
        (by_version("x", "*"), "", 'is "*", which crates.io refuses'),
        (by_version("x", registry="sparse+https://a.b/"), "", "accepts no dependency from"),
        (by_version("x", registry="https://github.com/rust-lang/crates.io-index"), "", ""),
        (by_version("x", "*", kind="dev", is_wild=True), "", 'is "*", which crates.io refuses'),
        (by_version("x", registry="sparse+https://a.b/", kind="dev"), "", "accepts no dependency"),
    ],
)
def test_a_need_that_cargo_cannot_publish_is_known_from_the_manifest(
    need: Need, anywhere: str, on_crates_io: str
) -> None:
    """R63: `cargo package` refuses the first ones, in the middle of a release."""
    for is_crates_io, says in ((False, anywhere), (True, on_crates_io)):
        crates: Any = {"a": None}
        why = explain_unpublishable_need(need, crates, on_crates_io=is_crates_io, pins="auto")
        assert (says in why) if says else not why


def test_a_path_alone_needs_a_pin() -> None:
    """R63"""
    crates: Any = {"a": None}
    need = by_version("a", "*", path=Path("/a"))
    why = explain_unpublishable_need(need, crates, on_crates_io=False, pins="none")
    assert "`pin: none` writes none" in why


@pytest.mark.parametrize(
    ("table", "shared", "is_wild"),
    [
        ('dependencies.x = { git = "file:///x", version = "*" }', "", True),
        ('dependencies.x = { git = "file:///x" }', "", False),
        ('dependencies.x = { git = "file:///x" }\ndependencies.y = "*"', "", False),
        ('dependencies.z = { package = "x", path = "../x", version = "x" }', "", True),
        ('dev-dependencies.x = { path = "../x", version = " * " }', "", True),
        ('target."cfg(any(unix,windows))".build-dependencies.x = { path = "../x", version = "*" }',
         "", True),
        ("dependencies.x = { workspace = true }", 'x = { path = "x", version = "*" }', True),
        ("dependencies.x = { workspace = true }", 'x = { path = "x" }\ny = "*"', False),
    ],
)  # fmt: skip
def test_a_wildcard_is_told_from_no_version(
    tmp_path: Path, table: str, shared: str, is_wild: bool
) -> None:
    """R63: `cargo metadata` says "*" for both, and `cargo package` takes the wildcard."""
    require_tool("cargo")
    top = f'[workspace]\nmembers = ["a"]\n[workspace.dependencies]\n{shared}\n'
    for name, text in (("", top), ("a", f"{table}\n"), ("x", "")):
        directory = tmp_path / name
        (directory / "src").mkdir(parents=True)
        package = f'[package]\nname = "{name}"\nversion = "1.0.0"\n' if name else ""
        (directory / "Cargo.toml").write_text(f"{text}{package}")
        (directory / "src/lib.rs").touch()

    async def main() -> list[Crate]:
        async with Processes(environment=dict(os.environ)) as processes:
            return await discover.read_metadata(tmp_path, processes)

    (found,) = [each for each in asyncio.run(main()) if each.name == "a"]
    assert [need.has_version for need in found.needs if need.name == "x"] == [is_wild]
