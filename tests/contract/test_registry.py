"""Lookups and uploads, the same of every registry: a real server, or a directory."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

import pytest

from contract import workbench
from integration.recorder import Fault
from integration.servers import free_port
from releasekit.errors import Denied, MissingCredentials, PackageError, Transient
from releasekit.fields import replace
from releasekit.model import Action
from releasekit.plan.decision import compare

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from contract.case import Case, Place
    from contract.conftest import Builds
    from releasekit.model import Artifact, Package, Published

T = TypeVar("T")


class Publisher:
    """One call at a time, each from a registry object that knows nothing of those before."""

    def __init__(self, ecosystem: str, case: Case, builds: Builds) -> None:
        self.ecosystem, self.case, self.builds = ecosystem, case, builds

    def run(self, place: Place, use: Callable[[workbench.Workbench], Awaitable[T]]) -> T:
        async def main() -> T:
            root = self.builds.root
            async with workbench.opened(self.ecosystem, self.case, root, place) as bench:
                return await use(bench)

        return asyncio.run(main())

    def lookup(self, place: Place, package: Package) -> Published | None:
        return self.run(place, lambda bench: bench.registry.lookup(package))

    def upload(self, place: Place, package: Package, artifacts: Sequence[Artifact]) -> None:
        self.run(place, lambda bench: bench.registry.upload(package, artifacts))


@pytest.fixture
def publisher(ecosystem: str, case: Case, builds: Builds) -> Publisher:
    return Publisher(ecosystem, case, builds)


@pytest.fixture
def package(builds: Builds) -> Package:
    """One that needs no other."""
    return builds.packages[0]


@pytest.fixture
def artifacts(builds: Builds, package: Package) -> tuple[Artifact, ...]:
    return builds.artifacts[package.id.name]


def assert_ours(artifacts: Sequence[Artifact], published: Published | None) -> None:
    assert published is not None
    assert compare(artifacts, published) == compare((), None)
    assert published.complete


def test_absent_then_partly_there_and_complete_however_often_it_is_uploaded(
    publisher: Publisher, place: Place, package: Package, artifacts: tuple[Artifact, ...]
) -> None:
    """R17, R21"""
    assert publisher.lookup(place, package) is None
    for number, artifact in enumerate(artifacts, start=1):
        publisher.upload(place, package, [artifact])
        published = publisher.lookup(place, package)
        assert published is not None
        missing = compare(artifacts, published).missing
        assert missing == tuple(it.filename for it in artifacts[number:])
        assert published.complete is not bool(missing)
    publisher.upload(place, package, artifacts)
    published = publisher.lookup(place, package)
    assert_ours(artifacts, published)
    assert published is not None
    assert published.files.keys() == {artifact.filename for artifact in artifacts}
    later = replace(package, version="1.0.1" if package.version[0] != "v" else "v1.0.1")
    assert publisher.lookup(place, later) is None


def test_other_bytes_never_replace_what_is_there(
    publisher: Publisher, place: Place, package: Package, builds: Builds
) -> None:
    """R17: whatever the registry says to them, its lookup shows whose bytes won."""
    ours, theirs = (it[package.id.name] for it in (builds.others, builds.artifacts))
    publisher.upload(place, package, theirs)
    try:
        publisher.upload(place, package, ours)
    except PackageError as error:
        assert not isinstance(error, Transient)  # noqa: PT017 (either answer is right)
    published = publisher.lookup(place, package)
    assert_ours(theirs, published)
    assert compare(ours, published).differing


def test_several_at_once_all_arrive_and_are_kept_by_the_next_plan(
    publisher: Publisher, place: Place, builds: Builds
) -> None:
    """R19: with the registry alone, without a journal."""

    async def upload_all(bench: workbench.Workbench) -> list[Published | None]:
        async with asyncio.TaskGroup() as group:
            for package in builds.packages:
                artifacts = builds.artifacts[package.id.name]
                group.create_task(bench.registry.upload(package, artifacts))
        looks = [bench.registry.lookup(package) for package in builds.packages]
        return list(await asyncio.gather(*looks))

    first = publisher.run(place, lambda bench: bench.plan())
    assert [step.action for step in first.packages] == [Action.PUBLISH] * len(builds.packages)
    assert [step.package.id for step in first.packages] == [it.id for it in builds.packages]
    found = publisher.run(place, upload_all)
    for package, published in zip(builds.packages, found, strict=True):
        assert_ours(builds.artifacts[package.id.name], published)
    second = publisher.run(place, lambda bench: bench.plan())
    assert [step.action for step in second.packages] == [Action.KEEP] * len(builds.packages)


def test_credentials_are_missed_before_anything_is_sent(
    publisher: Publisher, server: Place
) -> None:
    nobody = replace(server, environment=dict.fromkeys(server.environment, ""))

    async def check(bench: workbench.Workbench) -> None:
        bench.registry.check_credentials()

    with pytest.raises(MissingCredentials) as caught:
        publisher.run(nobody, check)
    assert "RELEASEKIT_" in str(caught.value) + caught.value.hint
    publisher.run(server, check)


def test_wrong_credentials_are_denied_without_being_shown(
    publisher: Publisher, server: Place, package: Package, artifacts: tuple[Artifact, ...]
) -> None:
    """R34"""
    stranger = replace(server, environment=server.wrong_environment)
    with pytest.raises(Denied) as caught:
        publisher.upload(stranger, package, artifacts)
    assert str(package.id) in str(caught.value)
    assert "\n" not in str(caught.value)
    shown = f"{caught.value!r} {caught.value.hint}"
    assert "RELEASEKIT_" in shown
    assert not any(secret in shown for secret in stranger.environment.values())
    assert publisher.lookup(server, package) is None


def test_a_server_that_is_down_is_no_verdict(
    publisher: Publisher, server: Place, package: Package, artifacts: tuple[Artifact, ...]
) -> None:
    """R15, R16"""
    nowhere = server.moved(f"http://127.0.0.1:{free_port()}")
    with pytest.raises(Transient) as caught:
        publisher.upload(nowhere, package, artifacts)
    assert not caught.value.ambiguous
    with pytest.raises(Transient):
        publisher.lookup(nowhere, package)


@pytest.mark.parametrize(("status", "ambiguous"), [(429, False), (503, True)])
def test_a_busy_server_is_worth_another_attempt(
    publisher: Publisher,
    server: Place,
    package: Package,
    artifacts: tuple[Artifact, ...],
    status: int,
    ambiguous: bool,
) -> None:
    """R12"""
    method, path = publisher.case.upload
    busy = Fault(
        kind="status", method=method, path=path, status=status, headers=(("Retry-After", "7"),)
    )
    server.seen.faults.append(busy)
    with pytest.raises(Transient) as caught:
        publisher.upload(server, package, artifacts[:1])
    assert (caught.value.retry_after, caught.value.ambiguous) == (7.0, ambiguous)
    assert str(package.id) in str(caught.value)
    publisher.upload(server, package, artifacts)
    assert_ours(artifacts, publisher.lookup(server, package))


def test_an_answer_that_is_lost_is_ambiguous_and_the_registry_knows(
    publisher: Publisher, server: Place, package: Package, artifacts: tuple[Artifact, ...]
) -> None:
    """R15, R16"""
    method, path = publisher.case.upload
    server.seen.faults.append(Fault(kind="lost", method=method, path=path))
    with pytest.raises(Transient) as caught:
        publisher.upload(server, package, artifacts)
    assert caught.value.ambiguous
    assert_ours(artifacts, publisher.lookup(server, package))


def test_a_registry_in_trouble_is_never_taken_for_an_empty_one(
    publisher: Publisher, server: Place, package: Package
) -> None:
    """R16"""
    server.seen.faults.append(Fault(kind="status", method="GET", status=500))
    with pytest.raises(Transient):
        publisher.lookup(server, package)
    server.seen.faults.append(Fault(kind="reset", method="GET"))
    with pytest.raises(Transient):
        publisher.lookup(server, package)
    assert publisher.lookup(server, package) is None
