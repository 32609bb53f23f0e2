"""What is scheduled, and how far it has come."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Generic

from releasekit.priority import K


@dataclass(frozen=True, slots=True)
class Task(Generic[K]):
    """`after` names the tasks that must be done first; `weight` is in any unit, usually seconds.

    A task takes a slot of its `lane` while an attempt at it runs, and at no other time. Tasks of
    one `group` go one at a time once an attempt has failed because of others beside it.
    """

    name: K
    lane: str = "publish"
    after: frozenset[K] = frozenset()
    weight: float = 1.0
    group: str = ""


class State(Enum):
    """Where a task is in its life. Only `SETTLED` is final and has an outcome."""

    PENDING = auto()  # waits for dependencies
    READY = auto()
    RUNNING = auto()  # holds a slot
    WAITING = auto()  # backs off before another attempt
    SETTLED = auto()
