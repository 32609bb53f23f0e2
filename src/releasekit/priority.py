"""A priority queue for what becomes ready by the thousand and leaves one by one."""

from __future__ import annotations

import heapq
from collections.abc import Hashable
from typing import TYPE_CHECKING, Generic, Protocol, Self, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

FEW = 64


class Key(Hashable, Protocol):
    """What graphs, tasks and queues are made of: names, or any values that have an order."""

    def __lt__(self, other: Self, /) -> bool: ...


K = TypeVar("K", bound=Key)


class PriorityQueue(Generic[K]):
    """Smallest first. Most of a long queue is a list, sorted once for all that came together, and
    popped from its end, where a heap would compare on every level. The rest is in a heap.
    """

    __slots__ = ("_heap", "_sorted")

    def __init__(self, items: Iterable[K] = ()) -> None:
        self._sorted: list[K] = sorted(items, reverse=True)
        self._heap: list[K] = []

    def __iter__(self) -> Iterator[K]:
        """In no order."""
        yield from self._sorted
        yield from self._heap

    def __len__(self) -> int:
        return len(self._sorted) + len(self._heap)

    def push(self, item: K) -> None:
        heapq.heappush(self._heap, item)

    def pop(self) -> K | None:
        """None when it is empty."""
        many, few = self._sorted, self._heap
        if len(few) > len(many) + FEW:
            # Nothing is sorted again before the queue has doubled.
            many += few
            many.sort(reverse=True)
            few.clear()
        if few and not (many and many[-1] < few[0]):
            return heapq.heappop(few)
        return many.pop() if many else None
