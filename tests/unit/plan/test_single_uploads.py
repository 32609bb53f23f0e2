"""Releases of two ecosystems, one of which goes out at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from fakes import FakeRegistry, FakeTarget, FakeWorkspace
from releasekit.errors import PlanError
from releasekit.model import Action, Dependency, Package, PackageId, PlannedPackage
from releasekit.plan.make import check_single_uploads


@dataclass
class AtOnce(FakeRegistry):
    whole: bool = True

    async def deploy(self, release: object) -> None:
        raise NotImplementedError


def check(
    edges: dict[str, tuple[str, ...]],
    *,
    single_upload: bool = True,
    published: tuple[str, ...] = (),
) -> None:
    registry = AtOnce(whole=single_upload)
    targets = {
        "maven": FakeTarget(FakeWorkspace(), registry, deployment=registry),
        "pypi": FakeTarget(FakeWorkspace(), FakeRegistry()),
    }
    steps = [
        PlannedPackage(
            package=Package(
                id=PackageId.parse(name),
                version="1",
                directory=Path("/w"),
                manifest=Path("/w/m"),
                dependencies=tuple(Dependency(on=PackageId.parse(need)) for need in needs),
            ),
            action=Action.KEEP if name in published else Action.PUBLISH,
            reason="",
        )
        for name, needs in edges.items()
    ]
    check_single_uploads(steps, targets)


DIVIDED: dict[str, tuple[str, ...]] = {
    "maven:a": (),
    "pypi:b": ("maven:a",),
    "maven:c": ("maven:a", "pypi:b"),
}


def test_what_goes_out_at_once_cannot_wait_for_what_waits_for_it() -> None:
    """R7"""
    with pytest.raises(PlanError, match=r"^all of maven -> pypi:b -> all of maven: ") as caught:
        check(DIVIDED)
    assert "Publish in two runs with `packages`" in caught.value.hint


def test_what_goes_out_one_by_one_may_wait_in_between() -> None:
    check(DIVIDED, single_upload=False)


@pytest.mark.parametrize("published", DIVIDED)
def test_what_is_published_already_divides_nothing(published: str) -> None:
    check(DIVIDED, published=(published,))


def test_one_side_may_wait_for_the_other() -> None:
    check({"maven:a": (), "maven:b": ("maven:a",), "pypi:c": ("maven:a", "maven:b")})
    check({"pypi:c": (), "maven:a": ("pypi:c",), "maven:b": ("maven:a", "pypi:c")})
