"""What a status says of packages: their order, what needs what, and the last lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fakes import package, package_id
from releasekit.errors import Denied, PackageError, Transient
from releasekit.fields import replace
from releasekit.model import DependencyKind, Published, Withdrawal
from releasekit.report.status import StatusAnswers, status_table

if TYPE_CHECKING:
    from releasekit.model import Package

THERE = Published(files={"a": "sha256:00"})
PARTLY = replace(THERE, complete=False)
FINISH = (
    "`releasekit publish` (`mode: publish` of the action) on the commit of these versions "
    "publishes only what is missing"
)
REST = (
    "what is partly there takes files of the same build: where another tool built them, give their "
    "directory, as `--dist DIR`"
)

Answer = Published | PackageError | None


def status(answers: dict[str, Answer], *packages: Package, **more: object) -> StatusAnswers:
    """Of packages without dependencies where none are given."""
    return StatusAnswers(
        packages=packages or [package(name) for name in answers],
        answers={package_id(name): answer for name, answer in answers.items()},
        **more,  # type: ignore[arg-type]
    )


def last(made: StatusAnswers) -> list[str]:
    return status_table(made).partition("\n\n")[2].splitlines()


def test_the_worst_come_first() -> None:
    made = status(
        {
            "a": THERE,
            "b": None,
            "c": replace(THERE, lacks="its list does not name it"),
            "d": Transient("fake:d: HTTP 503"),
            "e": PARTLY,
            "f": THERE,
        },
        unresolved={package_id("f"): "npm: no b"},
    )
    assert status_table(made).splitlines() == [
        "package  version  registry      why",
        "fake:b   1.0      missing",
        "fake:e   1.0      partly there",
        "fake:d   1.0      unknown       HTTP 503",
        "fake:c   1.0      there         its list does not name it",
        "fake:f   1.0      there         npm: no b",
        "fake:a   1.0      there",
        "",
        *last(made),
    ]
    assert last(made)[-3:] == [
        "3 of 6 are there; 1 is missing, 1 is partly there, 1 is unknown, and 1 is not resolved",
        FINISH,
        REST,
    ]
    assert not made.is_installable


def test_the_nearest_missing_one_is_named_through_those_that_are_there() -> None:
    made = status(
        {"app": THERE, "base": None, "far": None, "io": THERE, "lone": THERE},
        package("app", "io"),
        package("base", "far"),
        package("far"),
        package("io", "base"),
        package("lone"),
    )
    rows = status_table(made).splitlines()[1:6]
    assert [row for row in rows if "needs" in row] == [
        "fake:app   1.0      there     needs fake:base 1.0, which is missing",
        "fake:io    1.0      there     needs fake:base 1.0, which is missing",
    ]
    assert last(made)[0] == "3 of 5 are there; 2 are missing, and 2 that are there need them"


@pytest.mark.parametrize("kind", DependencyKind)
def test_only_what_is_installed_with_a_package_counts(kind: DependencyKind) -> None:
    made = status({"app": THERE, "base": None}, package("app", "base", kind=kind), package("base"))
    installed = {
        DependencyKind.RUNTIME,
        DependencyKind.INDIRECT,
        DependencyKind.PEER,
        DependencyKind.BUILD,
    }
    assert bool(made.find_needed()) is (kind in installed)


def test_packages_that_need_each_other_come_to_an_end() -> None:
    made = status(
        {"a": THERE, "b": THERE, "c": None},
        package("a", "b"),
        package("b", "a", "c"),
        package("c", "a"),
    )
    assert made.find_needed() == dict.fromkeys(map(package_id, "ab"), package_id("c"))


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ({"a": THERE}, ["the package is there"]),
        ({"a": THERE, "b": THERE}, ["all 2 packages are there"]),
        ({"a": None, "b": THERE}, ["1 of 2 is there; 1 is missing", FINISH]),
        ({"a": Transient("down"), "b": THERE}, ["1 of 2 is there; 1 is unknown"]),
    ],
)
def test_the_last_lines_say_what_it_comes_to(answers: dict[str, Answer], said: list[str]) -> None:
    made = status(answers)
    assert last(made)[-len(said) :] == said
    assert made.is_installable is (said[0].endswith("there"))


def test_what_to_do_stands_below_the_table() -> None:
    made = status(
        {"a": Denied("fake:a: HTTP 401", hint="Check the token."), "b": None},
        gone=["fake:old 1.0"],
    )
    told = last(made)
    assert told[0].startswith("fake:a: Check the token. https://")
    assert told[1] == "not in this workspace any more, and not looked up: fake:old 1.0"
    assert told[-1] == FINISH


def test_what_a_client_does_not_resolve_is_no_success() -> None:
    made = status({"a": THERE}, is_smoked=True)
    assert made.is_installable
    assert last(made) == ["the package is there, and clients resolve all that is needed"]
    assert not replace(made, unresolved={package_id("a"): "npm: no b"}).is_installable


def test_what_clients_were_asked_is_said_beside_what_is_missing() -> None:
    """R68: silence could be taken for yes."""
    some = last(status({"a": THERE, "b": None}, is_smoked=True))
    assert "clients resolve the 1 package that is there" in some
    none = last(status({"b": None}, is_smoked=True))
    assert "clients have nothing to resolve: no package is there" in none
    assert not any("client" in line for line in last(status({"a": THERE, "b": None})))


def test_the_registries_that_packages_go_to_are_named() -> None:
    made = status({"a": None}, places=["https://registry.npmjs.org/", "https://me@i.example/x"])
    assert last(made)[0] == "goes to: registry.npmjs.org, https://i.example/x"


def test_registries_move_no_cursor() -> None:
    made = status({"a": Transient("fake:a: \x1b[2J\n::error::gone")})
    assert "\x1b" not in status_table(made)
    assert not any(line.startswith("::") for line in status_table(made).splitlines())


def test_a_client_may_print_lines_of_any_length() -> None:
    """R40"""
    made = status({"a": THERE}, unresolved={package_id("a"): "x" * 60_000})
    assert len(status_table(made)) < 500


@pytest.mark.parametrize("unreachable", [True, False])
def test_what_is_yanked_is_not_there_for_users(*, unreachable: bool) -> None:
    """R65: what needs it is told where clients do not take it."""
    taken_back = Withdrawal(word="yanked", cure="un-yank it", reason="bad")
    core, app = package("core"), package("app", "core")
    pairs = {(app.id, core.id)} if unreachable else set()
    yanked = replace(THERE, withdrawal=taken_back)
    made = status({"core": yanked, "app": THERE}, core, app, unreachable=pairs)
    assert not made.is_installable
    row = "fake:app   1.0      there"
    assert status_table(made).splitlines()[1:3] == [
        "fake:core  1.0      yanked    yanked (bad): un-yank it",
        f"{row}     needs fake:core 1.0, which is yanked" if unreachable else row,
    ]
    needing = ", and 1 that is there needs it" if unreachable else ""
    counts = f"1 is yanked{needing}" if unreachable else "1 is yanked"
    assert last(made)[0] == f"1 of 2 is there; {counts}"
    assert last(made)[1].startswith("a yanked version cannot be published again: un-yank it")


@pytest.mark.parametrize("word", ["deprecated", "retracted", "yanked in part"])
def test_what_clients_warn_of_is_there(word: str) -> None:
    """R65"""
    taken_back = Withdrawal(word=word, cure="take it back")  # type: ignore[arg-type]
    made = status({"core": replace(THERE, withdrawal=taken_back)})
    assert made.is_installable
    assert f"there     {word}: take it back" in status_table(made)
