"""When the next look is worth it, from what the looks before have shown."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import fakes
import virtual_time
from releasekit.aio import growing_pauses
from releasekit.release.package_run import PackageRun
from releasekit.release.polling import POLLING, Lag, Lookups

if TYPE_CHECKING:
    from pathlib import Path


def looks(lag: Lag, takes_s: float, pause_s: float = 0.25) -> list[float]:
    """When a package is looked for until it is there, which takes it so long."""
    elapsed_s, missed_s = 0.0, 0.0
    seen = [elapsed_s]
    pauses = growing_pauses(lag.first_pause_s(pause_s), math.inf)
    while elapsed_s < takes_s:
        missed_s = elapsed_s
        lag.hidden(missed_s)
        elapsed_s += min(next(pauses), lag.pause_s(elapsed_s) or math.inf)
        seen.append(elapsed_s)
    lag.shown(elapsed_s, missed_s)
    return seen


def test_what_was_seen_of_one_package_says_when_to_look_for_the_next() -> None:
    lag = Lag()
    first = looks(lag, 3.0)
    assert len(first) == 6
    later = [looks(lag, 3.0) for _ in range(30)]
    assert sum(map(len, later)) < 5 * len(later)
    assert all(seen[-1] < 3.0 * 1.07 for seen in later[10:])


def test_one_that_took_long_keeps_nobody_else_waiting() -> None:
    """Registries have caches: what is seen of one package need not hold for the next."""
    lag = Lag()
    looks(lag, 10.0)
    first, second, *_ = (looks(lag, 0.5)[-1] for _ in range(3))
    assert first < 10.0 / 3
    assert second < 1.0


def test_several_at_once_are_looked_for_one_after_the_other() -> None:
    lag = Lag(hidden_s=2.0, shown_s=3.0)
    found = sorted(lag.pause_s(0.0) for _ in range(8))
    assert len(set(found)) == len(found)
    assert 2.0 < found[0] < found[-1] <= 3.0


def test_it_follows_a_registry_that_becomes_slower_or_faster() -> None:
    lag = Lag()
    for takes_s in (3.0, 9.0, 1.0):
        seen = [looks(lag, takes_s) for _ in range(40)][-1]
        assert takes_s <= seen[-1] < takes_s * 1.1, takes_s
        assert len(seen) <= 4


def test_nothing_is_waited_for_where_a_registry_shows_things_at_once() -> None:
    lag = Lag()
    for takes_s in (0.0, 0.0, 0.2, 0.0):
        assert looks(lag, takes_s)[0] == 0.0
        assert not lag.is_known


def test_what_takes_longer_than_the_others_is_left_to_growing_pauses() -> None:
    lag = Lag(hidden_s=2.0, shown_s=3.0)
    assert lag.pause_s(3.0) == lag.pause_s(4.0) == 0.0
    lag.hidden(4.0)
    assert lag.pause_s(1.0) <= 2.0


def test_each_package_is_asked_for_less_often_than_the_one_before(tmp_path: Path) -> None:
    """R1: and none counts as visible before the registry has shown it."""
    lag_s = 3.0
    registry = fakes.FakeRegistry()
    began: dict[str, float] = {}
    asked: dict[str, list[float]] = {}

    def look(name: str) -> None:
        asked.setdefault(name, []).append(virtual_time.now() - began[name])
        registry.lag[name] = asked[name][-1] < lag_s

    registry.on_lookup = look

    async def main() -> None:
        targets = fakes.target(fakes.FakeWorkspace(), registry)
        lookups = Lookups(targets, polling=POLLING, patience_s=60.0, now_s=virtual_time.now)
        for number in range(12):
            name = f"p{number}"
            (step,) = fakes.plan(fakes.package(name)).packages
            run = PackageRun.from_plan(step)
            run.artifacts, run.sent = (fakes.artifact(tmp_path / name, name.encode()),), True
            registry.store(name, run.artifacts)
            began[name] = virtual_time.now()
            await lookups.poll_until_shown(run)
            assert run.visible

    virtual_time.run(main())
    first, *_, last = asked.values()
    assert first[0] == 0.0
    assert len(last) < len(first)
    assert all(lag_s <= looked[-1] for looked in asked.values())
    assert last[-1] < first[-1]
