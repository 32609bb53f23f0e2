"""What crates.io refuses of a crate is known before anything is built, and by its key."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest

import fakes
from releasekit.config.shards import Shard
from releasekit.ecosystems.cargo import CRATES_IO_INDEX, CargoOptions, discover
from releasekit.ecosystems.cargo.destination import Destination
from releasekit.ecosystems.cargo.registry import SparseRegistry
from releasekit.ecosystems.cargo.target import Cargo, CargoTarget, CargoWorkspace
from releasekit.errors import PlanError
from releasekit.fields import replace
from releasekit.model import Action, PlannedPackage
from releasekit.problems import Problem

if TYPE_CHECKING:
    from pathlib import Path

GOOD: Final[dict[str, Any]] = {
    "name": "acme", "version": "1.0.0", "publish": None, "dependencies": [],
    "description": "A crate", "license": "MIT", "license_file": None, "homepage": None,
    "documentation": None, "repository": "https://example.com/acme", "keywords": ["c++", "1st"],
    "categories": ["os::unix-apis"], "features": {"default": []},
}  # fmt: skip
NEED: Final[dict[str, Any]] = {
    "name": "other", "source": "registry+x", "req": "^1", "kind": None, "rename": None,
    "optional": False, "features": [], "target": None, "registry": None,
}  # fmt: skip


def read(root: Path, **further: Any) -> discover.Crate:
    manifest = root / "Cargo.toml"
    entry = {**GOOD, "manifest_path": str(manifest), **further}
    features = "".join(f'"{name}" = {values}\n' for name, values in entry["features"].items())
    manifest.write_text(f"[features]\n{features}")
    said = json.dumps({"workspace_root": str(root), "packages": [entry]})
    (crate,) = discover.parse_metadata(said, root)
    return crate


@pytest.mark.parametrize(
    ("further", "whats"),
    [
        ({}, []),
        ({"name": "a" * 64, "version": f"1.0.0-{'a' * 144}"}, []),
        (
            {"name": "a" * 65},
            [f"package.name is {'a' * 65!r}, but crates.io accepts at most 64 characters"],
        ),
        ({"name": "_a"}, ["package.name is '_a', but crates.io requires a letter, then"]),
        ({"name": "über"}, ["package.name is 'über', but crates.io requires a letter, then"]),
        ({"name": "Compiler-RT"}, ["package.name is 'Compiler-RT', which crates.io reserves"]),
        (
            {"version": f"1.0.0-{'a' * 145}"},
            ["package.version has 151 characters, but crates.io accepts at most 150"],
        ),
        ({"description": ""}, ["package.description is missing, but crates.io requires one"]),
        ({"description": "ä" * 500}, []),
        (
            {"description": "ä" * 501},
            ["package.description has 1002 bytes, but crates.io accepts at most"],
        ),
        ({"license": None, "license_file": "LICENSE"}, []),
        ({"license": None}, ["package.license is missing, but crates.io requires one"]),
        ({"license": ""}, ["package.license is missing, but crates.io requires one"]),
        ({"license": "", "license_file": "L"}, ["package.license is '', which crates.io cannot"]),
        ({"license": "BSD"}, ["package.license is 'BSD', which crates.io cannot read: 'BSD' is"]),
        (
            {"homepage": "acme.example", "documentation": "", "repository": "git@host:a/b.git"},
            [
                "package.homepage is 'acme.example', but crates.io accepts only http and",
                "package.documentation is '', but crates.io accepts only http and https URLs",
                "package.repository is 'git@host:a/b.git', but crates.io accepts only http",
            ],
        ),
        ({"homepage": "https://ä.example/a b?c#d", "documentation": "http://[::1]:80"}, []),
        ({"homepage": "https://"}, ["package.homepage is 'https://', but crates.io accepts"]),
        ({"homepage": "http://a:99999"}, ["package.homepage is 'http://a:99999', but"]),
        ({"homepage": "http://a:" + "0" * 5_000 + "80"}, []),
        ({"homepage": "http://a:" + "1" * 5_000}, ["package.homepage is 'http://a:1"]),
        (
            {"keywords": [*"abcdef"]},
            ["package.keywords has 6 entries, but crates.io accepts at most 5"],
        ),
        (
            {"keywords": ["a" * 21, "a b", "é"]},
            [f"package.keywords has {each!r}, which" for each in ("a" * 21, "a b", "é")],
        ),
        (
            {"categories": ["wasm"] * 5 + ["unix"]},
            [
                "package.categories has 6 entries, but crates.io accepts at most 5",
                "package.categories has 'unix', which crates.io does not have",
            ],
        ),
        (
            {"dependencies": [NEED] * 501},
            ["it has 501 dependencies, but crates.io accepts at most 500"],
        ),
        (
            {"dependencies": [{**NEED, "kind": "dev", "req": "*", "path": "/x"}] * 501},
            [],
        ),
        ({"dependencies": [{**NEED, "rename": "_other"}]}, []),
        (
            {"dependencies": [{**NEED, "rename": "ä"}]},
            ["dependencies.ä is 'ä', but crates.io requires a letter or _, then letters, digits"],
        ),
        (
            {"dependencies": [{**NEED, "features": ["1.x+y", "a b"]}]},
            ["dependencies.other: features has 'a b', which is not a valid feature name"],
        ),
    ],
)
def test_each_rule_is_known_by_its_key(
    tmp_path: Path, further: dict[str, Any], whats: list[str]
) -> None:
    """R63"""
    found = [refusal.what for refusal in read(tmp_path, **further).refused]
    assert len(found) == len(whats)
    assert all(one.startswith(what) for one, what in zip(found, whats, strict=True)), found


def test_optional_dependencies_are_no_features(tmp_path: Path) -> None:
    """R63: of what cargo lists, the manifest counts."""
    many: dict[str, list[str]] = {f"f{at}": [] for at in range(300)}
    listed = {**many, "other": ["dep:other"]}
    crate = read(tmp_path, features=many)
    entry = {**GOOD, "manifest_path": str(crate.manifest), "features": listed}
    said = json.dumps({"workspace_root": str(tmp_path), "packages": [entry]})
    (again,) = discover.parse_metadata(said, tmp_path)
    assert (crate.refused, again.refused) == ((), ())


MANY: Final[dict[str, list[str]]] = {f"f{at}": [] for at in range(301)}
WHOLE: Final = {"all": [f"f{at}" for at in range(301)]}


@pytest.mark.parametrize("features", [MANY, WHOLE])
def test_more_features_are_for_crates_that_were_granted_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, features: dict[str, list[str]]
) -> None:
    """R63: which may be any that is there already, and none that is new."""
    crate = read(tmp_path, features=features)
    target, planned = planning(tmp_path, crate, CRATES_IO_INDEX)
    monkeypatch.setattr(SparseRegistry, "is_new", lambda _, package: package.name == "acme")
    with pytest.raises(PlanError, match=r"has 301 entries, but crates\.io accepts at most 300"):
        target.plan_notes(planned)
    assert not target.preflight.find_excess(planned)
    monkeypatch.setattr(SparseRegistry, "is_new", lambda *_: False)
    target.plan_notes(planned)
    (warning,) = target.preflight.find_excess(planned).values()
    assert warning.name == "over-limit"
    assert warning.message.endswith(
        "has 301 entries, but crates.io accepts at most 300, unless it has raised the limit for "
        "this crate: remove some, or ask help@crates.io to raise the limit"
    )


def test_all_limits_that_may_have_been_raised_are_in_one_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R68"""
    both = {"a": [f"f{at}" for at in range(301)], "b": [f"f{at}" for at in range(302)]}
    target, planned = planning(tmp_path, read(tmp_path, features=both), CRATES_IO_INDEX)
    monkeypatch.setattr(SparseRegistry, "is_new", lambda *_: False)
    (warning,) = target.preflight.find_excess(planned).values()
    assert "features.a has 301 entries" in warning.message
    assert "features.b has 302 entries" in warning.message


def test_a_plan_for_crates_io_says_all_that_it_refuses(tmp_path: Path) -> None:
    """R63, R64: other registries take it, and nobody asks of what is there."""
    crate = read(tmp_path, license="BSD", keywords=["a b"])
    target, planned = planning(tmp_path, crate, CRATES_IO_INDEX)
    with pytest.raises(PlanError) as refused:
        target.plan_notes(planned)
    said = [
        str(each).removeprefix(f"{crate.manifest}: ")
        for each in (refused.value, *refused.value.others)
    ]
    assert said == [
        (
            "package.license is 'BSD', which crates.io cannot read: 'BSD' is not a license that "
            "it knows"
        ),
        "package.keywords has 'a b', which crates.io does not take",
    ]
    assert refused.value.problem is Problem.NEVER_TAKEN
    kept = [replace(each, action=Action.KEEP) for each in planned]
    assert target.plan_notes(kept) == ""
    elsewhere, planned = planning(tmp_path, crate, "https://crates.example/index/")
    assert elsewhere.plan_notes(planned) == ""


def planning(
    root: Path, crate: discover.Crate, index: str
) -> tuple[CargoTarget, list[PlannedPackage]]:
    destination = Destination(name="x", index=index)
    services = fakes.services(fakes.config(root), None)
    cargo = Cargo("auto", CargoOptions(), services, destination, {})
    (package,) = discover.make_packages({crate.name: crate}, destination)
    workspace = CargoWorkspace(
        packages=(package,), crates={crate.name: crate}, root=root, cargo=cargo
    )
    registry = SparseRegistry(services, destination, {}, trusted_publishing="never", shard=Shard())
    planned = PlannedPackage(package=package, action=Action.PUBLISH, reason="")
    return CargoTarget(workspace, registry), [planned]
