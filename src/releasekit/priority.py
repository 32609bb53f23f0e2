"""A priority queue for what becomes ready by the thousand and leaves one by one."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

T = TypeVar("T", tuple[float, str], str)

FEW = 64


class PriorityQueue(Generic[T]):
    """Smallest first. Most of a long queue is a list, sorted once for all that came together, and
    popped from its end, where a heap would compare on every level. The rest is in a heap.
    """

    __slots__ = ("_heap", "_sorted")

    def __init__(self, items: Iterable[T] = ()) -> None:
        self._sorted: list[T] = sorted(items, reverse=True)
        self._heap: list[T] = []

    def __iter__(self) -> Iterator[T]:
        """In no order."""
        yield from self._sorted
        yield from self._heap

    def __len__(self) -> int:
        return len(self._sorted) + len(self._heap)

    def push(self, item: T) -> None:
        heapq.heappush(self._heap, item)

    def pop(self) -> T | None:
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
