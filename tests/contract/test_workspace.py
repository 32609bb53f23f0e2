"""Discovery, pins and builds, the same of every ecosystem."""

from __future__ import annotations

import asyncio
import hashlib
from typing import TYPE_CHECKING

import pytest

from contract import workbench
from contract.case import WORKSPACE, Member
from integration.tools import require_tool
from releasekit.errors import BuildFailed, ConfigError, PlanError
from releasekit.fields import replace
from releasekit.plan.make import read_manifest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from contract.case import Case
    from contract.conftest import Builds
    from contract.workbench import Built
    from releasekit.model import Package


def discovered(ecosystem: str, case: Case, root: Path) -> list[Package]:
    async def main() -> list[Package]:
        async with workbench.opened(ecosystem, case, root) as bench:
            return bench.packages

    return asyncio.run(main())


def built(ecosystem: str, case: Case, root: Path) -> Built:
    async def main() -> Built:
        async with workbench.opened(ecosystem, case, root) as bench:
            return await bench.build(bench.publishable)

    return asyncio.run(main())


def pins(ecosystem: str, case: Case, root: Path, *, times: int = 1, pin: str = "auto") -> list[str]:
    """Every manifest, pinned so many times."""

    async def main() -> list[str]:
        async with workbench.opened(ecosystem, case, root, pin=pin) as bench:
            texts = manifests(bench.publishable)
            for _ in range(times):
                texts = bench.pinned(texts)
            return texts

    return asyncio.run(main())


def manifests(packages: Sequence[Package]) -> list[str]:
    return [read_manifest(package.manifest) for package in packages]


def test_every_package_is_found_with_its_version_and_edges(
    ecosystem: str, case: Case, root: Path
) -> None:
    case.write(root, WORKSPACE)
    packages = {package.id.name: package for package in discovered(ecosystem, case, root)}
    around = set(getattr(case, "around", ()))
    assert packages.keys() - around == {case.name(member.key) for member in WORKSPACE}
    assert all(packages[name].unpublishable for name in around)
    for member in WORKSPACE:
        package = packages[case.name(member.key)]
        assert package.id.ecosystem == ecosystem
        assert bool(package.unpublishable) is member.private, package.unpublishable
        assert package.manifest.is_relative_to(package.directory)
        assert package.directory.is_relative_to(root.resolve())
        edges = {dependency.on.name for dependency in package.dependencies}
        assert edges == {case.name(key) for key in member.needs}
        if not member.private:
            assert package.version == case.version


def test_nothing_can_be_asked_of_an_ecosystem_before_its_discovery(
    ecosystem: str, case: Case, root: Path
) -> None:
    """What pins, splits and builds is what a discovery gives."""

    async def main() -> None:
        async with workbench.opened(ecosystem, case, root) as bench:
            asked = ("packages", "pin", "batches", "build")
            assert all(hasattr(bench.workspace, name) for name in asked)
            assert not any(hasattr(bench.discovery, name) for name in asked)

    asyncio.run(main())


def test_a_later_discovery_changes_nothing_of_an_earlier_one(
    ecosystem: str, case: Case, root: Path
) -> None:
    """Nor of what it builds: see `builds`."""
    elsewhere = root.with_name("elsewhere")
    elsewhere.mkdir()
    core, web = Member(key="core"), Member(key="web", needs={"core": "open"})
    case.write(root, [core, web])
    case.write(elsewhere, [replace(core, text="two"), Member(key="text")])

    async def main() -> None:
        async with workbench.opened(ecosystem, case, root) as bench:
            packages, texts = bench.packages, manifests(bench.publishable)
            pinned, batches = bench.pinned(texts), bench.workspace.batches(bench.publishable)
            later = (await bench.discovery.discover(elsewhere.resolve())).workspace
            names = {package.id.name for package in later.packages if not package.unpublishable}
            assert names == {case.name("core"), case.name("text")}
            assert bench.packages == packages
            assert bench.pinned(texts) == pinned
            assert bench.workspace.batches(bench.publishable) == batches

    asyncio.run(main())


def test_packages_are_split_into_batches_without_loss(
    ecosystem: str, case: Case, root: Path
) -> None:
    case.write(root, WORKSPACE)

    async def main() -> None:
        async with workbench.opened(ecosystem, case, root) as bench:
            batches = bench.workspace.batches(bench.publishable)
            split = sorted(package.id for batch in batches for package in batch)
            assert split == sorted(package.id for package in bench.publishable)
            assert all(batches)
            assert list(bench.workspace.batches([])) == []

    asyncio.run(main())


def test_nothing_is_found_where_the_ecosystem_is_not_used(
    ecosystem: str, case: Case, root: Path
) -> None:
    (root / "README.md").write_text("Nothing to publish.\n")
    assert discovered(ecosystem, case, root) == []


def test_discovery_is_the_same_every_time_and_writes_nothing(
    ecosystem: str, case: Case, root: Path
) -> None:
    """R13, R25: also when the directories were made in another order."""
    case.write(root, WORKSPACE)
    before = workbench.files(root)
    first = discovered(ecosystem, case, root)
    assert discovered(ecosystem, case, root) == first
    assert workbench.files(root) == before
    elsewhere = root.parent / "elsewhere"
    elsewhere.mkdir()
    case.write(elsewhere, WORKSPACE[::-1])
    moved = [
        replace(
            package,
            directory=root.resolve() / package.directory.relative_to(elsewhere.resolve()),
            manifest=root.resolve() / package.manifest.relative_to(elsewhere.resolve()),
            inherits=tuple(
                root.resolve() / path.relative_to(elsewhere.resolve()) for path in package.inherits
            ),
        )
        for package in discovered(ecosystem, case, elsewhere)
    ]
    assert moved == first


def test_two_packages_of_one_name_are_refused(ecosystem: str, case: Case, root: Path) -> None:
    """By discovery, or by the plan that follows."""
    case.write(root, WORKSPACE[:1])
    before = set(workbench.files(root))
    (member,) = [p for p in discovered(ecosystem, case, root) if not p.unpublishable]
    assert member.directory != root.resolve(), "a twin beside the root would be outside"
    twin = member.directory.with_name("twin")
    twin.mkdir()
    for path in before:
        if (root.resolve() / path).is_relative_to(member.directory):
            copy = twin / (root.resolve() / path).relative_to(member.directory)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes((root / path).read_bytes())
    if hasattr(case, "include"):
        case.include(root, twin)

    async def main() -> None:
        async with workbench.opened(ecosystem, case, root) as bench:
            await bench.plan()

    with pytest.raises(ConfigError):
        asyncio.run(main())


def test_nothing_is_pinned_that_needs_no_pin(ecosystem: str, case: Case, root: Path) -> None:
    """R24"""
    case.write(root, [Member(key="core"), Member(key="web", needs={"core": "fits"})])
    packages = discovered(ecosystem, case, root)
    texts = manifests([package for package in packages if not package.unpublishable])
    assert pins(ecosystem, case, root, pin="none") == texts
    assert pins(ecosystem, case, root) == texts


def test_pinning_twice_changes_nothing_more(ecosystem: str, case: Case, root: Path) -> None:
    case.write(root, WORKSPACE)
    once = pins(ecosystem, case, root)
    assert pins(ecosystem, case, root, times=2) == once
    exact = pins(ecosystem, case, root, pin="exact")
    assert pins(ecosystem, case, root, pin="exact", times=2) == exact


def test_a_requirement_that_excludes_the_planned_version_is_refused_or_no_edge(
    ecosystem: str, case: Case, root: Path
) -> None:
    """R24: as the ecosystem's own tools take another version from the registry, or do not."""
    case.write(root, [Member(key="core"), Member(key="web", needs={"core": "excludes"})])
    packages = discovered(ecosystem, case, root)
    (web,) = (package for package in packages if package.id.name == case.name("web"))
    if not web.elsewhere:
        with pytest.raises(PlanError, match=case.name("web")):
            pins(ecosystem, case, root)
        return
    assert [need.on.name for need in web.elsewhere] == [case.name("core")]
    assert case.name("core") not in {need.on.name for need in web.dependencies}
    published = [package for package in packages if not package.unpublishable]
    for mode in ("auto", "exact"):
        assert pins(ecosystem, case, root, pin=mode) == manifests(published)


def test_what_an_example_asks_for_binds_nobody_else(ecosystem: str, case: Case, root: Path) -> None:
    """Only what is published constrains what is published."""
    members = [Member(key="core"), Member(key="text", needs={"core": "open"})]
    case.write(root, [*members, Member(key="internal", needs={"core": "excludes"}, private=True)])
    for mode in ("auto", "exact", "none"):
        assert pins(ecosystem, case, root, pin=mode)


def test_each_package_is_built_where_it_belongs(ecosystem: str, case: Case, builds: Builds) -> None:
    into = builds.root.resolve() / ".releasekit" / "dist" / ecosystem
    assert builds.artifacts.keys() == {case.name(m.key) for m in WORKSPACE if not m.private}
    for name, artifacts in builds.artifacts.items():
        assert artifacts, name
        for artifact in artifacts:
            assert artifact.path.resolve().parent == into.joinpath(*name.split(":"), case.version)
            data = artifact.path.read_bytes()
            assert artifact.size == len(data)
            assert artifact.sha256 == digest_of("sha256", data)
            for algorithm, digest in artifact.digests.items():
                # What only one ecosystem can compute is in its own tests.
                if algorithm not in {"git", "h1", "version"}:
                    assert digest == digest_of(algorithm, data)


def digest_of(algorithm: str, data: bytes) -> str:
    if algorithm == "blake2b_256":
        return hashlib.blake2b(data, digest_size=32).hexdigest()
    return hashlib.new(algorithm, data).hexdigest()


def test_other_sources_make_other_bytes(builds: Builds) -> None:
    for name, artifacts in builds.artifacts.items():
        others = {it.filename: it.sha256 for it in builds.others[name]}
        assert others.keys() == {artifact.filename for artifact in artifacts}
        assert any(others[artifact.filename] != artifact.sha256 for artifact in artifacts)


def test_a_build_leaves_the_tree_as_it_was(builds: Builds) -> None:
    """R22, R25"""
    assert workbench.files(builds.root) == builds.before


def test_a_package_that_cannot_be_built_fails_alone(ecosystem: str, case: Case, root: Path) -> None:
    """R6"""
    for tool in case.tools:
        require_tool(tool)
    case.write(root, [Member(key="core"), Member(key="web", broken=True), Member(key="text")])
    results = {package.name: result for package, result in built(ecosystem, case, root).items()}
    assert results.keys() == {case.name(key) for key in ("core", "web", "text")}
    failed = {name for name, result in results.items() if isinstance(result, BuildFailed)}
    assert failed == {case.name("web")}
    error = results[case.name("web")]
    assert isinstance(error, BuildFailed)
    assert case.name("web") in str(error)
    assert "\n" not in str(error)
