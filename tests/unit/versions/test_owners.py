"""Whose files a change touches, by their paths alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from fakes import package
from releasekit.errors import ConfigError
from releasekit.fields import replace
from releasekit.plan.places import Places
from releasekit.versions.owners import Owners

TOP = Path("/repository")


def make_owners(
    *places: str,
    below: str = "",
    ignore: tuple[str, ...] = (),
    paths: dict[str, tuple[str, ...]] | None = None,
) -> Owners:
    """A package in each of these places below the workspace, called after it."""
    root = TOP / below
    packages = [replace(package(place or "root"), directory=root / place) for place in places]
    return Owners(
        packages,
        TOP,
        root,
        packs=lambda _, path: not path.startswith(("docs/", "scripts/", "tests/")),
        ignore=ignore,
        paths=paths or {},
        places=Places(packages, root),
    )


def touched(owners: Owners, path: str) -> set[str]:
    return {each.name for each in owners.find_touched(path)}


@pytest.mark.parametrize(
    ("path", "owner"),
    [
        ("setup.py", "root"),
        ("packages/shared.py", "root"),
        ("packages/core/a.py", "packages/core"),
        ("packages/core-extra/a.py", "root"),
        ("packages/core/plugins/one/a.py", "packages/core/plugins/one"),
        ("packages/core/plugins/a.py", "packages/core"),
        ('packages/core/"a\nb\ufffd\x1b.py', "packages/core"),
        ("packages/core\n/a.py", "root"),
    ],
)
def test_the_deepest_directory_owns_a_file_and_the_root_what_is_left(path: str, owner: str) -> None:
    owners = make_owners("", "packages/core", "packages/core/plugins/one")
    assert touched(owners, path) == {owner}


def test_packages_of_one_directory_own_its_files_together() -> None:
    crate = replace(package("measure"), directory=TOP / "measure")
    wheel = replace(crate, id=replace(crate.id, ecosystem="pypi"))
    places = Places([crate, wheel], TOP)
    owners = Owners(
        [crate, wheel], TOP, TOP, packs=lambda *_: True, ignore=(), paths={}, places=places
    )
    assert owners.find_touched("measure/src/lib.rs") == {crate.id, wheel.id}


def test_a_workspace_below_the_top_owns_nothing_outside() -> None:
    owners = make_owners("", "core", below="work")
    assert touched(owners, "work/core/a.py") == {"core"}
    assert touched(owners, "work/a.py") == {"root"}
    assert touched(owners, "core/a.py") == touched(owners, "workshop/a.py") == set()


@pytest.mark.parametrize("path", ["core/scripts/a.py", "core/gen/a.py"])
def test_what_users_do_not_get_touches_nobody(path: str) -> None:
    owners = make_owners("core", ignore=("core/gen/**",))
    assert touched(owners, path) == set()


def test_the_last_glob_that_matches_decides() -> None:
    owners = make_owners("core", ignore=("core/**", "!core/tests/**", "core/tests/big/**"))
    assert touched(owners, "core/a.py") == set()
    assert touched(owners, "core/tests/data.bin") == {"core"}
    assert touched(owners, "core/tests/big/data.bin") == set()


def test_further_paths_count_wherever_they_lie() -> None:
    """Also where their own package is moved away from, and where they are ignored for it."""
    owners = make_owners("core", "cli", paths={"fake:cli": ("proto/**", "core/docs/**")})
    assert touched(owners, "proto/a.proto") == {"cli"}
    assert touched(owners, "core/docs/a.md") == {"cli"}
    assert touched(owners, "core/a.py") == {"core"}


def test_what_lies_above_the_workspace_touches_who_takes_it_in() -> None:
    """R64: and not the package at the root of the workspace, nor whom `paths` name."""
    root = TOP / "work/space"
    whole, core = (replace(package(each), directory=root / each) for each in ("", "core"))
    found = [replace(whole, id=replace(whole.id, name="whole")), core]
    elsewhere = {
        "../../README.md": [(core.id, "README.md")],
        "../lib": [(core.id, "src/lib")],
        "../x": [(core.id, "scripts/x")],
    }
    owners = Owners(
        found,
        TOP,
        root,
        packs=lambda _, path: path != "scripts/x",
        ignore=(),
        paths={"fake:whole": ("**",)},
        places=Places(found, root, elsewhere),
    )
    assert touched(owners, "README.md") == touched(owners, "work/lib/a/b.rs") == {"core"}
    assert touched(owners, "work/x") == touched(owners, "lib/a") == set()
    assert touched(owners, "work/space/core/a") == {"core", "whole"}


def test_what_packages_take_in_touches_them_too() -> None:
    """R64: by what it is called in there."""
    cli, core = (replace(package(each), directory=TOP / "js" / each) for each in ("cli", "core"))
    elsewhere = {
        "shared": [(cli.id, "src/shared")],
        "core/one.js": [(cli.id, "docs/one.md")],
        "LICENSE": [(core.id, ".."), (cli.id, "..")],
    }
    owners = Owners(
        [core, cli],
        TOP,
        TOP / "js",
        packs=lambda _, path: not path.endswith(".md"),
        ignore=(),
        paths={},
        places=Places([core, cli], TOP / "js", elsewhere),
    )
    assert touched(owners, "js/shared/a/b.js") == {"cli"}
    assert touched(owners, "js/shared/a/b.md") == set()
    assert touched(owners, "js/core/one.js") == {"core"}
    assert touched(owners, "js/LICENSE") == {"core", "cli"}
    assert touched(owners, "LICENSE") == touched(owners, "shared/a.js") == set()


def test_a_name_that_two_packages_have_is_refused() -> None:
    one = replace(package("core"), directory=TOP / "one")
    two = replace(one, id=replace(one.id, ecosystem="pypi"), directory=TOP / "two")
    places = Places([one, two], TOP)
    with pytest.raises(ConfigError, match="'core' is the name of several packages"):
        Owners(
            [one, two],
            TOP,
            TOP,
            packs=lambda *_: True,
            ignore=(),
            paths={"core": ("a",)},
            places=places,
        )
