"""All that may happen to a run of the scheduler, drawn from a seed before it starts."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from releasekit.errors import Rejected, Transient, Undecided
from releasekit.scheduler import Task

if TYPE_CHECKING:
    from collections.abc import Callable

LANES: dict[str, int | None] = {"build": 2, "upload": 3, "confirm": None}
COMPLETING = frozenset({"confirm"})
TIMEOUT_S = 20.0
BASE_DELAY_S = 2.0


@dataclass(frozen=True)
class Scenario:
    """All that happens to a run, drawn before it starts: a seed is a scenario."""

    seed: int
    tasks: dict[str, Task[str]]
    lanes: dict[str, int | None]
    max_retries: int
    done: frozenset[str]
    behaviours: dict[tuple[str, int], tuple[str, float]]
    events: list[tuple[float, str, str]]
    outer_timeout_s: float | None
    sequential: bool

    @property
    def strict(self) -> bool:
        return "publish" not in self.lanes


ANY_END = ("ok",) * 12 + ("error",) * 3 + ("transient", "after", "rejected", "undecided", "hang")
ROUGH_END = (*ANY_END, "itself", "foreign", "late", "at once", "at once", "busy")
ERRORS: dict[str, Callable[[], BaseException]] = {
    "error": lambda: ConnectionError("reset"),
    "transient": lambda: Transient("busy"),
    "after": lambda: Transient("busy", retry_after=45.0),
    "rejected": lambda: Rejected("not welcome"),
    "undecided": lambda: Undecided("may be there"),
    "itself": asyncio.CancelledError,
}
FINAL = {"Rejected", "Undecided"}
OWN_CANCEL = {"itself", "foreign", "hang"}
# The grace and the lanes of each, beside `finish`, which has neither.
CANCELS: dict[str, tuple[float | None, frozenset[str] | None]] = {
    "cancel": (0.0, None),
    "grace": (2.0, None),
    "lane": (4.0, frozenset({"upload", "publish"})),
}
STRICT = {"error": "transient", "itself": "rejected"}


def draw(seed: int) -> Scenario:
    rng = random.Random(seed)
    strict = rng.random() < 0.4
    lanes: dict[str, int | None] = dict(LANES) if strict else {"publish": rng.randint(1, 4)}
    names = rng.sample("abcdefghijklmnop", rng.randint(1, 9))
    tasks: dict[str, Task[str]] = {}
    for at, name in enumerate(names):
        after = rng.sample(names[:at], min(at, rng.choice((0, 0, 1, 1, 2, 3))))
        weight = rng.choice((1.0, 1.0, 2.0, 5.0))
        tasks[name] = Task(name, rng.choice(sorted(lanes)), frozenset(after), weight)
    retries = rng.randint(0, 2)
    ends = ROUGH_END if rng.random() < 0.5 else ANY_END
    behaviours = {}
    for name in (*names, "new0", "new1", "new2"):
        for attempt in range(1, retries + 2):
            end = rng.choice(ends)
            end = STRICT.get(end, end) if strict else end
            behaviours[name, attempt] = (end, rng.choice((0.0, 0.5, 1.0, 1.0, 3.0, rng.random())))
    calm = rng.random() < 0.3
    events = [] if calm else _events(rng, names)
    outer = rng.choice((None,) * 9 + (rng.uniform(0.0, 12.0),))
    done = frozenset(n for n in names if not strict and rng.random() < 0.07)
    sequential = strict and rng.random() < 0.3
    return Scenario(seed, tasks, lanes, retries, done, behaviours, events, outer, sequential)


def _events(rng: random.Random, names: list[str]) -> list[tuple[float, str, str]]:
    events: list[tuple[float, str, str]] = []
    for at in range(rng.randint(0, 4)):
        kind = rng.choice(
            ("pause", "remove", "bar", "mark", "mark", "add", "add", "finish", *CANCELS)
        )
        when = rng.choice((0.0, 1.0, rng.uniform(0.0, 10.0)))
        events.append((when, kind, f"new{at % 3}" if kind == "add" else rng.choice(names)))
        if kind == "pause":
            events.append((when + rng.choice((0.001, 1.0, 30.0)), "resume", ""))
    return events
