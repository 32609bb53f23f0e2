from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pytest

from fakes import FakeRegistry, FakeWorkspace, package
from releasekit.ecosystems.interface import Target
from releasekit.errors import (
    Denied,
    MissingCredentials,
    Rejected,
    ReleasekitError,
    Transient,
    UnnamedRegistry,
    told_of,
)
from releasekit.fields import replace
from releasekit.model import PackageId, Published
from releasekit.plan.registries import (
    AT_ONCE,
    ask_all,
    check_credentials,
    find_unnamed,
    look_up_all,
    refuse_unnamed,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from releasekit.model import Package

NAMES = ("cargo", "npm", "pypi")
PACKAGES = [replace(package(n), id=PackageId(name, n)) for name in NAMES for n in ("a", "b")]


@dataclass
class Guarded(FakeRegistry):
    error: Exception | None = None

    async def lookup(self, package: Package) -> Published | None:
        if self.error is not None:
            raise self.error
        return await super().lookup(package)


class Busy(FakeRegistry):
    """It answers the first one once `expected` are asked for; `most` were under way at a time."""

    def __init__(self, expected: int) -> None:
        super().__init__()
        self.under_way = self.most = 0
        self._full = asyncio.Barrier(expected)

    async def lookup(self, package: Package) -> Published | None:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await self._full.wait()
        self.under_way -= 1
        return await super().lookup(package)


def targets(**registries: FakeRegistry) -> dict[str, Target]:
    return {name: Target(FakeWorkspace(), registries.get(name, FakeRegistry())) for name in NAMES}


def looked_up(found: dict[str, Target], *, uploading: bool = True) -> None:
    asyncio.run(look_up_all(PACKAGES, found, uploading=uploading))


def lines(error: ReleasekitError) -> list[tuple[str, str]]:
    """What a person reads, each with what to do about it."""
    return [(str(each), each.hint) for each in told_of(error)]


def test_every_registry_that_refuses_to_be_read_is_named() -> None:
    """One run tells of all wrong tokens, each once; a registry that is down comes later."""
    found = targets(
        cargo=Guarded(error=Denied("cargo: HTTP 401", hint="Check CARGO.")),
        npm=Guarded(error=Transient("npm is down")),
        pypi=Guarded(error=Denied("pypi: HTTP 403", hint="Check PYPI.")),
    )
    with pytest.raises(Denied) as caught:
        looked_up(found)
    assert lines(caught.value) == [
        ("cargo: HTTP 401", "Check CARGO."),
        ("pypi: HTTP 403", "Check PYPI."),
    ]


def test_of_many_packages_some_are_asked_about_at_a_time() -> None:
    """Each one that waits for a connection takes memory."""
    many = [package(f"p{number}") for number in range(3 * AT_ONCE)]

    async def ask() -> int:
        registry = Busy(AT_ONCE)
        asked = {many[0].id.ecosystem: Target(FakeWorkspace(), registry)}
        assert len(await ask_all(many, asked)) == len(many)
        return registry.most

    assert asyncio.run(ask()) == AT_ONCE


def test_what_else_will_be_missing_is_named_with_it() -> None:
    full = {name: {"x": "sha256:00"} for name in "ab"}
    for npm, uploading, told in (
        (FakeRegistry(url="npm", credentials=False), True, ["npm: no token"]),
        (FakeRegistry(url="npm", credentials=False), False, []),
        (FakeRegistry(url="npm", credentials=False, files=full), True, []),
    ):
        wrong = Guarded(error=Denied("cargo: HTTP 401"))
        with pytest.raises(Denied) as caught:
            looked_up(targets(cargo=wrong, npm=npm), uploading=uploading)
        assert [message for message, _ in lines(caught.value)] == ["cargo: HTTP 401", *told]


def test_one_error_comes_out_as_it_is() -> None:
    error = Rejected("npm: HTTP 418", hint="Tea?")
    with pytest.raises(Rejected) as caught:
        looked_up(targets(npm=Guarded(error=error)))
    assert caught.value is error


def test_every_missing_credential_is_named() -> None:
    found = targets(**{name: FakeRegistry(url=name, credentials=False) for name in NAMES})
    with pytest.raises(MissingCredentials) as caught:
        check_credentials({"pypi", "npm"}, found)
    assert lines(caught.value) == [("npm: no token", ""), ("pypi: no token", "")]
    check_credentials((), found)


def test_every_registry_that_nothing_names_is_named() -> None:
    def refuse(name: str) -> None:
        raise UnnamedRegistry(f"{name}-registry names it", hint=f"Add {name}.")

    def miss() -> None:
        raise MissingCredentials("no token")

    checks: dict[str, Callable[[], None]] = {
        "pypi": partial(refuse, "pypi"),
        "npm": partial(refuse, "npm"),
        "cargo": miss,
    }
    unnamed = find_unnamed(checks)
    assert list(unnamed) == ["npm", "pypi"]
    with pytest.raises(UnnamedRegistry) as caught:
        refuse_unnamed(unnamed)
    assert lines(caught.value) == [
        ("npm-registry names it", "Add npm."),
        ("pypi-registry names it", "Add pypi."),
    ]
    refuse_unnamed({})
