"""Who may begin beside whom: tasks of one group go one at a time, once one of them has failed
because there were others.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Generic

from releasekit.priority import K

if TYPE_CHECKING:
    from collections.abc import Mapping


class Turns(Generic[K]):
    """`groups` has the group of each task that has one; any other may always begin."""

    def __init__(self, groups: Mapping[K, str]) -> None:
        self._groups = groups
        self._running: dict[str, set[K]] = defaultdict(set)
        self._waiting: dict[str, list[K]] = {}  # of the groups that go one at a time
        self._crowd: set[K] = set()  # who was running when it came to that

    def begin(self, name: K) -> bool:
        """Whether it is its turn; if not, `end` of another one tells that it may try again."""
        group = self._groups.get(name)
        if group is None:
            return True
        if group in self._waiting and self._running[group]:
            self._waiting[group].append(name)
            return False
        self._running[group].add(name)
        return True

    def crowded(self, name: K) -> bool:
        """It failed because of others: from now on its group goes one at a time. False where it
        had its turn for itself.
        """
        group = self._groups.get(name)
        if group is None:
            return False
        if group not in self._waiting:
            self._waiting[group] = []
            self._crowd |= self._running[group]
        return name in self._crowd

    def end(self, name: K) -> list[K]:
        """Its attempt is over; those that may try to begin now."""
        group = self._groups.get(name)
        if group is None:
            return []
        self._crowd.discard(name)
        self._running[group].discard(name)
        if self._running[group] or group not in self._waiting:
            return []
        waiting, self._waiting[group] = self._waiting[group], []
        return waiting
