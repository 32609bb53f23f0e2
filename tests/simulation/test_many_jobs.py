"""What many jobs come to together, by counts and on the virtual clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from releasekit.ecosystems.cargo.rates import NEW_VERSIONS
from releasekit.model import Outcome
from simulation.many_jobs import Index, layers, lower_bound_s, release

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from releasekit.model import Package, PackageId
    from simulation.many_jobs import Outcomes


def two_seconds(packages: Sequence[Package]) -> dict[PackageId, float]:
    return {each.id: 2.0 for each in packages}


def assert_all_published(found: Outcomes, packages: Sequence[Package]) -> None:
    assert found.outcomes == {Outcome.PUBLISHED: len(packages)}
    assert sorted(found.index.puts) == sorted(each.id.name for each in packages)
    assert found.index.early == []


def test_four_jobs_take_a_third_of_the_time_of_one(tmp_path: Path) -> None:
    """R1, R3: 200 packages in five levels, builds of 2 s, and 3 s until the registry shows one."""
    packages = layers(40, 5)
    took = []
    for jobs in (1, 4):
        (tmp_path / f"{jobs}").mkdir()
        found = release(tmp_path / f"{jobs}", packages, two_seconds(packages), Index(), jobs=jobs)
        assert_all_published(found, packages)
        took.append(found.took_s)
    assert took[0] >= 3 * took[1]


def test_many_jobs_come_near_to_what_is_possible(tmp_path: Path) -> None:
    """R1, R51: and nobody asks more than ten times a second."""
    packages, jobs = layers(100, 6), 12
    found = release(tmp_path, packages, two_seconds(packages), Index(), jobs=jobs)
    assert_all_published(found, packages)
    bound_s = lower_bound_s(packages, two_seconds(packages), Index(), jobs=jobs, builds=2)
    assert found.took_s <= 1.2 * bound_s
    assert found.index.questions <= len(packages) * 10 + jobs * found.took_s * 10


def test_a_limit_that_jobs_share_is_spent_and_not_exceeded_for_long(tmp_path: Path) -> None:
    """100 crates, of which crates.io takes 30 and then one a minute, from four jobs of one user."""
    packages, index = layers(25, 4), Index(limit=NEW_VERSIONS)
    found = release(tmp_path, packages, two_seconds(packages), index, jobs=4)
    assert_all_published(found, packages)
    bound_s = lower_bound_s(packages, two_seconds(packages), index, jobs=4, builds=2)
    assert bound_s == NEW_VERSIONS.duration_s(100)
    assert found.took_s <= 1.3 * bound_s
    assert index.refused <= len(packages)
