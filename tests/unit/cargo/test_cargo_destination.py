"""Where crates go, by inputs, releasekit.toml and cargo's configuration."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

import fakes
from releasekit.ecosystems.cargo import CargoOptions, destination
from releasekit.ecosystems.cargo.destination import CRATES_IO, CargoConfig
from releasekit.ecosystems.cargo.sparse_index import Home
from releasekit.errors import ConfigError
from releasekit.fields import replace
from releasekit.host.sandbox import UNCONFINED

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

CORP = '[registries.corp]\nindex = "sparse+https://corp.example/index"\n'
GIT = '[registries.old]\nindex = "https://git.example/index.git"\n'


def configure(directory: Path, text: str, name: str = "config.toml") -> None:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / name).write_text(text)


def of(
    root: Path,
    place: str = "",
    table: Mapping[str, object] | None = None,
    environment: Mapping[str, str] | None = None,
) -> destination.Destination:
    config = fakes.config(root, registries=fakes.registries(cargo=place))
    known = {"CARGO_HOME": str(root / "home"), **(environment or {})}
    services = replace(
        fakes.services(config, SimpleNamespace(sandbox=UNCONFINED)), environment=known
    )
    options = CargoOptions.from_table(table or {})
    return destination.find_destination(root, config.registries.get("cargo"), options, services)


def test_crates_io_where_nothing_else_is_said(tmp_path: Path) -> None:
    goes_to = of(tmp_path)
    assert (goes_to.name, goes_to.index) == ("crates-io", "https://index.crates.io/")
    assert goes_to.api == "https://crates.io"
    assert goes_to.manifest_index == CRATES_IO
    for place in ("https://crates.io", "https://crates.io/", "https://index.crates.io"):
        assert of(tmp_path, place) == goes_to
    assert of(tmp_path, "https://staging.crates.io").is_crates_io


def test_a_name_leads_to_the_index_that_cargo_knows(tmp_path: Path) -> None:
    configure(tmp_path / ".cargo", CORP + GIT)
    goes_to = of(tmp_path, table={"registry": "corp"})
    assert (goes_to.name, goes_to.index) == ("corp", "https://corp.example/index/")
    assert not goes_to.is_crates_io
    assert goes_to.manifest_index == "sparse+https://corp.example/index/"
    assert of(tmp_path, "https://corp.example/index/") == replace(goes_to, only_in="")
    assert of(tmp_path, "https://other.example/").name == ""
    elsewhere = {"CARGO_REGISTRIES_CORP_INDEX": "sparse+https://moved.example/"}
    moved = of(tmp_path, table={"registry": "corp"}, environment=elsewhere)
    assert moved.index == "https://moved.example/"
    with pytest.raises(ConfigError, match="did you mean 'corp'"):
        of(tmp_path, table={"registry": "korp"})
    with pytest.raises(ConfigError, match="is a git repository"):
        of(tmp_path, table={"registry": "old"})


def test_the_input_may_be_what_cargo_writes(tmp_path: Path) -> None:
    """A name from its configuration, and an index as it stands there."""
    configure(tmp_path / ".cargo", CORP + GIT)
    by_url = of(tmp_path, "https://corp.example/index")
    assert replace(of(tmp_path, "corp"), only_in="") == by_url
    assert of(tmp_path, "sparse+https://corp.example/index/") == by_url
    assert replace(of(tmp_path, "corp", table={"registry": "old"}), only_in="") == by_url
    assert of(tmp_path, "crates-io") == of(tmp_path, "https://crates.io")
    with pytest.raises(ConfigError, match="did you mean 'corp'"):
        of(tmp_path, "korp")


def test_a_variable_alone_makes_a_registry(tmp_path: Path) -> None:
    """https://doc.rust-lang.org/cargo/reference/config.html#registriesnameindex"""
    variables = {"CARGO_REGISTRIES_MY_CORP_INDEX": "sparse+https://my.example/"}
    for name in ("my-corp", "my_corp"):
        goes_to = of(tmp_path, name, environment=variables)
        assert (goes_to.name, goes_to.index) == (name, "https://my.example/")
    by_default = {**variables, "CARGO_REGISTRY_DEFAULT": "my-corp"}
    assert of(tmp_path, environment=by_default).index == "https://my.example/"
    with pytest.raises(ConfigError, match="'other' is not configured"):
        of(tmp_path, "other", environment=variables)


def test_who_names_an_index(tmp_path: Path) -> None:
    """R37: the user, or nothing but files of the workspace."""
    root = tmp_path / "workspace"
    configure(root / ".cargo", CORP)
    variables = {
        "CARGO_HOME": str(tmp_path / "home"),
        "CARGO_REGISTRIES_ODD_INDEX": "sparse+https://[",
        "CARGO_REGISTRIES_OLD_INDEX": "https://corp.example/index.git",
    }
    alone = of(root, "corp", environment=variables)
    assert alone.only_in == ".cargo/config.toml: registries.corp"
    assert of(root, "https://corp.example/index/", environment=variables).only_in == ""
    assert of(root, environment=variables).only_in == ""
    # Whatever it is called there: what counts is where it is.
    configure(tmp_path / "home", CORP.replace("corp]", "other]"))
    assert of(root, "corp", environment=variables).only_in == ""


def test_dependencies_mean_a_destination_by_its_index(tmp_path: Path) -> None:
    stands_in = f'{CORP}[source.crates-io]\nreplace-with = "corp"\n'
    corp, crates_io = "sparse+https://corp.example/index/", ""
    for place, holds in (
        ("https://crates.io", {crates_io}),
        ("corp", {corp}),
        (f"dir:{tmp_path}", {crates_io}),
    ):
        configure(tmp_path / ".cargo", CORP)
        goes_to = of(tmp_path, place)
        assert {each for each in (corp, crates_io) if goes_to.holds(each)} == holds
    named = of(tmp_path, f"dir:{tmp_path}", {"registry": "corp"})
    assert named.holds(corp)
    assert not named.holds(crates_io)
    configure(tmp_path / ".cargo", stands_in)
    assert of(tmp_path, "corp").holds(crates_io)
    assert of(tmp_path, "corp").holds(corp)
    assert of(tmp_path, "corp").holds(CRATES_IO)


def test_what_cargo_would_publish_to_by_default_is_not_overlooked(tmp_path: Path) -> None:
    configure(tmp_path / "home", f'{CORP}[registry]\ndefault = "corp"\n')
    assert of(tmp_path).name == "corp"
    assert of(tmp_path, environment={"CARGO_REGISTRY_DEFAULT": "crates-io"}).is_crates_io
    assert of(tmp_path, "https://crates.io").is_crates_io


def test_a_directory_keeps_the_name_it_is_given(tmp_path: Path) -> None:
    goes_to = of(tmp_path, f"dir:{tmp_path}", {"registry": "corp"})
    assert (goes_to.name, goes_to.directory, goes_to.manifest_index) == ("corp", tmp_path, "")


def test_the_nearer_file_wins(tmp_path: Path) -> None:
    root = tmp_path / "a" / "b"
    configure(root / ".cargo", '[registries.one]\nindex = "sparse+https://near/"\n', "config")
    configure(tmp_path / ".cargo", '[registries.one]\nindex = "sparse+https://far/"\n' + CORP)
    found = CargoConfig.from_files(root, {"HOME": str(tmp_path / "nobody")}, UNCONFINED)
    assert found.registries["one"] == "sparse+https://near/"
    assert "corp" in found.registries


@pytest.mark.parametrize(
    ("text", "stand_in"),
    [
        ("", ""),
        (f'{CORP}[source.crates-io]\nreplace-with = "corp"\n', "sparse+https://corp.example/index"),
        (
            '[source]\ncrates-io.replace-with = "a"\na.replace-with = "b"\nb.registry = "x:"',
            "x:",
        ),
        ('[source.crates-io]\nreplace-with = "v"\n[source.v]\ndirectory = "vendor"\n', ""),
        ('[source.crates-io]\nreplace-with = "crates-io"\n', ""),
        ("source = 1\nregistries = 2\nregistry = 3\n", ""),
    ],
)
def test_what_stands_in_for_crates_io(tmp_path: Path, text: str, stand_in: str) -> None:
    configure(tmp_path / ".cargo", text)
    found = CargoConfig.from_files(tmp_path, {"CARGO_HOME": str(tmp_path / "home")}, UNCONFINED)
    assert found.stand_in == stand_in


def test_a_configuration_that_cannot_be_read(tmp_path: Path) -> None:
    configure(tmp_path / ".cargo", "= what")
    with pytest.raises(ConfigError, match=r"config\.toml is not valid TOML"):
        of(tmp_path)


def test_what_no_registry_means_depends_on_who_is_asked() -> None:
    """In a manifest it is crates.io, in an index the same registry."""
    at_home, elsewhere = Home(CRATES_IO, ()), Home("sparse+https://corp.example/", {"ours"})
    assert at_home.registry_of("serde", None) is None
    assert (
        at_home.registry_of("x", "sparse+https://corp.example/") == "sparse+https://corp.example/"
    )
    assert elsewhere.registry_of("serde", None) == CRATES_IO
    assert elsewhere.registry_of("ours", None) is None
    assert elsewhere.registry_of("x", "sparse+https://corp.example") is None


@pytest.mark.parametrize("table", [{"verify": 1}, {"workspaces": "x"}, {"registry": []}])
def test_a_table_that_cannot_be_used(table: Mapping[str, object]) -> None:
    with pytest.raises(ConfigError, match=r"releasekit.toml: \[cargo\]"):
        CargoOptions.from_table(table)
