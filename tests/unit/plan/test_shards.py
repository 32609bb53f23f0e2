"""How a plan is split over several jobs, and what each of them makes of it."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

import pytest

from fakes import DECLARED, FakeRegistry, FakeTarget, FakeWorkspace, config, package, plan
from releasekit.config.config import load
from releasekit.config.inputs import Inputs
from releasekit.config.shards import Shard, ShardCounts
from releasekit.ecosystems.interface import Deployment
from releasekit.errors import ConfigError, PlanError
from releasekit.fields import replace
from releasekit.model import Action, Dependency, Outcome, Package, PackageId, Plan, Report
from releasekit.plan.file import PlanFile
from releasekit.plan.shards import SLACK, expected, partition, with_shards
from releasekit.report import join, plan_json, plan_outputs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

KNOWN = ("pypi", "npm", "fake")


def graph(seed: int, count: int = 200) -> list[Package]:
    """Layers, as of a monorepo: most need some of the few below them."""
    rng = random.Random(seed)
    names = [f"p{number:03}" for number in range(count)]
    found = []
    for number, name in enumerate(names):
        below = names[max(0, number - 40) : number]
        needs = rng.sample(below, min(len(below), rng.choice((0, 1, 1, 2, 3))))
        found.append(package(name, *needs))
    return found


def even(packages: Sequence[Package]) -> dict[PackageId, float]:
    return {each.id: 2.0 for each in packages}


def loads(parts: Mapping[PackageId, int], seconds: Mapping[PackageId, float]) -> list[float]:
    found = [0.0] * max(parts.values())
    for name, part in parts.items():
        found[part - 1] += seconds[name]
    return found


def cut(packages: Sequence[Package], parts: Mapping[PackageId, int]) -> float:
    edges = [(each.id, need.on) for each in packages for need in each.dependencies]
    return sum(parts[one] != parts[other] for one, other in edges) / len(edges)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("count", [2, 4, 7])
def test_parts_are_of_equal_work_and_cut_few_edges(seed: int, count: int) -> None:
    packages = graph(seed)
    rng = random.Random(seed)
    seconds = {each.id: rng.uniform(0.5, 8.0) for each in packages}
    parts = partition(packages, seconds, count)
    assert parts.keys() == {each.id for each in packages}
    work = loads(parts, seconds)
    assert len(work) == count
    mean = sum(work) / count
    assert mean / 2 < min(work)
    assert max(work) <= mean * SLACK + max(seconds.values())
    at_random = {each.id: rng.randrange(count) for each in packages}
    assert cut(packages, parts) < 0.8 * cut(packages, at_random)


@pytest.mark.parametrize("seed", range(5))
def test_the_same_packages_are_split_the_same_way(seed: int) -> None:
    packages = graph(seed, 80)
    shuffled = list(packages)
    random.Random(seed + 1).shuffle(shuffled)
    assert partition(packages, even(packages), 4) == partition(shuffled, even(packages), 4)


def test_chains_stay_together() -> None:
    packages = [
        package(f"{chain}{link:02}", *([f"{chain}{link - 1:02}"] if link else []))
        for chain in "abcd"
        for link in range(20)
    ]
    parts = partition(packages, even(packages), 4)
    assert cut(packages, parts) == 0
    assert loads(parts, even(packages)) == [40.0] * 4


def test_a_few_packages_are_cut_where_little_is_cut() -> None:
    """Eight over three parts: two of them have three, which is more than a tenth over the mean."""
    edges = {"a": "", "b": "a", "c": "a", "d": "bc", "e": "d", "f": "", "g": "f", "h": "eg"}
    packages = [package(name, *needs) for name, needs in edges.items()]
    parts = partition(packages, even(packages), 3)
    assert sorted(loads(parts, even(packages))) == [4.0, 6.0, 6.0]
    assert cut(packages, parts) == 3 / 8
    pairs = [package(f"{name}{end}", *[f"{name}0"] * end) for name in "abcdefg" for end in (0, 1)]
    assert cut(pairs, partition(pairs, even(pairs), 4)) == 0


def test_every_part_has_work_from_the_beginning() -> None:
    """Levels are not laid one behind the other: nobody waits for a whole other part."""
    names = [[f"l{level}-{number:02}" for number in range(20)] for level in range(5)]
    packages = [
        package(name, *([names[level - 1][number]] if level else []))
        for level, row in enumerate(names)
        for number, name in enumerate(row)
    ]
    parts = partition(packages, even(packages), 4)
    first = [parts[package(name).id] for name in names[0]]
    assert {first.count(part) for part in (1, 2, 3, 4)} == {5}


def test_a_cycle_is_never_cut() -> None:
    edge = Dependency(on=package("a").id, soft=True)
    ring = [replace(package("a", "b")), replace(package("b"), set_aside=(edge,))]
    packages = [*ring, *(package(f"x{number}") for number in range(6))]
    for count in range(2, 8):
        parts = partition(packages, even(packages), count)
        assert parts[ring[0].id] == parts[ring[1].id]


def test_there_are_no_more_parts_than_packages() -> None:
    assert sorted(
        partition([package("a"), package("b")], even([package("a"), package("b")]), 5).values()
    ) == [1, 2]
    assert partition([], {}, 3) == {}
    heavy = [package("a"), package("b"), package("c")]
    parts = partition(heavy, dict(zip([p.id for p in heavy], (1.0, 1.0, 90.0), strict=True)), 3)
    assert set(parts.values()) == set(range(1, max(parts.values()) + 1))


def test_what_earlier_runs_took_counts_else_the_number_of_files(tmp_path: Path) -> None:
    packages = [package(name, root=tmp_path) for name in ("known", "small", "large")]
    for each, count in zip(packages, (5, 20, 60), strict=True):
        (each.directory / "node_modules/other").mkdir(parents=True)
        (each.directory / "node_modules/other/index.js").write_text("")
        for number in range(count):
            (each.directory / f"{number}.py").write_text("")
    seconds = expected(packages, {"build fake:known": 5.0, "upload fake:known": 1.0, "confirm": 9})
    assert [seconds[each.id] for each in packages] == [6.0, 4.0, 8.0]
    assert expected(packages[1:], {})[packages[1].id] == 2.0


def split(*packages: Package, rows: str = "2", **target: object) -> Plan:
    counts = ShardCounts.parse(rows.split(","), KNOWN, "shards")
    made = FakeTarget(FakeWorkspace(), FakeRegistry(), **target)
    return with_shards(plan(*packages), counts, {"fake": made}, {})


def test_the_matrix_has_a_row_for_each_part(tmp_path: Path) -> None:
    made = split(package("a"), package("b", "a"), package("c"), package("d", "c"))
    rows = json.loads(plan_outputs(made)["matrix"])["include"]
    assert rows == [
        {"ecosystem": "fake", "shard": "1/2", "row": "fake-1", "packages": "a\nb"},
        {"ecosystem": "fake", "shard": "2/2", "row": "fake-2", "packages": "c\nd"},
    ]
    assert made.notes == (
        "fake: 2 jobs of 2 packages; dependencies that lead from one to another: 0 of 2",
    )


def test_parts_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    made = split(*(package(f"p{number:02}") for number in range(12)), rows="fake=12")
    rows = json.loads(plan_outputs(made)["matrix"])["include"]
    assert [row["shard"] for row in rows] == [f"{number}/12" for number in range(1, 13)]


def test_what_is_there_is_in_one_part_and_is_no_work(tmp_path: Path) -> None:
    actions = {"a": Action.KEEP, "b": Action.KEEP}
    counts = ShardCounts(2)
    target = FakeTarget(FakeWorkspace(), FakeRegistry())
    packages = [package(name) for name in "abcd"]
    made = with_shards(plan(*packages, actions=actions), counts, {"fake": target}, {})
    assert sorted(each.shard for each in made.packages) == ["1/2", "1/2", "2/2", "2/2"]
    rows = json.loads(plan_outputs(made)["matrix"])["include"]
    assert [row["packages"] for row in rows] == ["c", "d"]
    nothing = plan(*packages, actions=dict.fromkeys("abcd", Action.KEEP))
    made = with_shards(nothing, counts, {"fake": target}, {})
    assert {each.shard for each in made.packages} == {""}


def test_what_goes_out_at_once_is_not_split(tmp_path: Path) -> None:
    class Portal(Deployment):
        whole = True

        async def deploy(self, release: object) -> None:
            raise NotImplementedError

    packages = [package("a"), package("b")]
    made = split(*packages, deployment=Portal())
    assert {each.shard for each in made.packages} == {"1/1"}
    reason = "its registry takes all packages of a release at once"
    assert made.notes == (f"fake: one job, since {reason}",)
    with pytest.raises(ConfigError, match=f"shards: fake cannot be split: {reason}"):
        split(*packages, rows="fake=2", deployment=Portal())


def test_an_ecosystem_without_packages_has_no_parts(tmp_path: Path) -> None:
    """It is in the plan by its registry alone, and was not discovered."""
    two = replace(plan(package("a"), package("b")), registries={"fake": "", "npm": ""})
    target = FakeTarget(FakeWorkspace(), FakeRegistry())
    made = with_shards(two, ShardCounts(2), {"fake": target}, {})
    assert {each.shard for each in made.packages} == {"1/2", "2/2"}


def test_without_shards_a_plan_stays_what_it_is(tmp_path: Path) -> None:
    made = plan(package("a"))
    assert with_shards(made, ShardCounts(), {}, {}) is made
    assert "shard" not in json.loads(plan_json(made, tmp_path))["packages"][0]


def written(root: Path, made: Plan) -> PlanFile:
    (root / "plan.json").write_text(plan_json(made, root))
    return PlanFile.read(root / "plan.json")


def test_a_job_publishes_its_part_of_the_plan_file(tmp_path: Path) -> None:
    """R20: every job has the same parts, from the same file."""
    made = split(package("a"), package("b", "a"), package("c"), package("d", "c"))
    file = written(tmp_path, made)
    parts = [
        file.narrowed(config(tmp_path, known_ecosystems=KNOWN, shard=f"{number}/2")).packages
        for number in (1, 2)
    ]
    assert parts == [("fake:a", "fake:b"), ("fake:c", "fake:d")]


def test_a_part_that_there_is_not_is_refused(tmp_path: Path) -> None:
    file = written(tmp_path, split(package("a"), package("b")))
    with pytest.raises(ConfigError, match="has no part 3/4") as caught:
        file.narrowed(config(tmp_path, shard="3/4"))
    assert caught.value.hint == "Its parts: fake 1/2, fake 2/2."
    with pytest.raises(ConfigError, match="has no part 1/2") as caught:
        written(tmp_path, plan(package("a"))).narrowed(config(tmp_path, shard="1/2"))
    assert caught.value.hint == "It was not split: plan with `shards`."


def test_nobody_waits_for_what_nobody_plans_to_publish(tmp_path: Path) -> None:
    file = written(tmp_path, plan(package("a"), package("b")))
    made = replace(plan(package("a")), foreign=(package("b"),))
    file.check(made)
    with pytest.raises(PlanError, match="fake:c would be waited for, and this plan does not"):
        file.check(replace(made, foreign=(package("c"),)))


@pytest.mark.parametrize(
    ("parts", "everywhere", "of"),
    [
        (["4"], 4, {}),
        (["pypi=4", " npm = 2"], 0, {"pypi": 4, "npm": 2}),
        (["3", "npm=1"], 3, {"npm": 1}),
        ([], 0, {}),
    ],
)
def test_how_many_jobs(parts: list[str], everywhere: int, of: dict[str, int]) -> None:
    rows = ShardCounts.parse(parts, KNOWN, "shards")
    assert (rows.everywhere, rows.of) == (everywhere, of)
    assert bool(rows) == bool(parts)
    assert rows.count("npm") == of.get("npm", everywhere)


@pytest.mark.parametrize("text", ["0", "257", "x", "pypi=", "=4", "pip=2", "1.5", "٤", "9" * 5000])
def test_a_wrong_number_of_jobs_is_named(text: str) -> None:
    with pytest.raises(ConfigError, match=r"shards \(test\): ") as caught:
        ShardCounts.parse([text], KNOWN, "shards (test)")
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        (["3", "4"], "shards: 3 and 4 jobs for every ecosystem; write one of them"),
        (["pypi=2", "npm=2", "pypi=3"], "shards: 2 and 3 jobs for pypi; write one of them"),
    ],
)
def test_two_numbers_for_one_ecosystem_are_refused(parts: list[str], says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ShardCounts.parse(parts, KNOWN, "shards")
    assert str(caught.value) == says


@pytest.mark.parametrize("text", ["", "2", "0/4", "5/4", "1/300", "a/b", "1/2/3", " 1/2"])
def test_a_wrong_part_is_named(text: str) -> None:
    with pytest.raises(ConfigError, match=r"shard: .* is not a part of a plan; write NUMBER/COUNT"):
        Shard.parse(text, "shard")


def test_a_part_is_shown_as_it_is_written() -> None:
    assert str(Shard.parse("2/4", "shard")) == "2/4"


def test_a_part_without_a_plan_is_refused(tmp_path: Path) -> None:
    for given, says in (
        ({"shard": "1/2"}, "shard: '1/2' is a part of a plan, and there is no `plan-file`"),
        (
            {"shard": "3/2", "further": {"plan-file": "plan.json"}},
            "shard: '3/2' is not a part of a plan",
        ),
    ):
        inputs = Inputs(mode="publish", given={name: name for name in given}, **given)
        with pytest.raises(ConfigError) as caught:
            load(inputs, tmp_path, DECLARED)
        assert str(caught.value).startswith(says)


def test_a_report_accounts_for_what_no_job_had_to_do_with() -> None:
    """An ecosystem without work has no row; what nobody did is another thing."""
    planned = plan(package("a"), package("b"), actions={"a": Action.KEEP})
    report = Report(
        run_id="1",
        plan_digest="",
        commit="c0ffee",
        started_at="2026-01-01T00:00:00+00:00",
        duration_s=1.0,
    )
    found = join([report], plan=planned).results
    assert (found[0].outcome, found[0].reason) == (
        Outcome.ALREADY_PUBLISHED,
        "because",
    )
    assert found[1].outcome is Outcome.UNKNOWN
