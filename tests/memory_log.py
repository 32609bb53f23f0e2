"""A journal's log in memory: for simulations of thousands of runs, crashes included."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence
    from pathlib import Path


class MemoryLog:
    """Satisfies `journal.Log`. `data` is what is written, `durable` how much of it is for good.

    The next run gets a new MemoryLog of what `killed` or `cut_off` left: whatever the dead one
    writes afterwards is lost.
    """

    def __init__(self, data: bytes = b"") -> None:
        self._written = bytearray(data)
        self.durable = len(data)
        self.syncs = 0
        self.closed = False

    @property
    def data(self) -> bytes:
        return bytes(self._written)

    def heal(self, intact: Callable[[bytes], int]) -> None:
        del self._written[intact(self.data) :]
        self.durable = len(self._written)

    def rewrite(self, shorter: Callable[[bytes], bytes]) -> None:
        self._written[:] = shorter(self.data)
        self.durable = len(self._written)

    def append(self, line: Callable[[int], bytes]) -> None:
        assert not self.closed
        self._written += line(self.durable)

    async def sync(self) -> None:
        self.syncs += 1
        self.durable = len(self._written)

    async def persist(self, files: Sequence[Path]) -> None:
        """Files in memory are as durable as they will ever be."""

    def close(self) -> None:
        self.closed = True

    def killed(self, rng: random.Random) -> bytes:
        """What is left by kill -9: everything, and now and then half of the next line."""
        data = self.data
        torn = data[: rng.randrange(40)] if rng.random() < 0.3 else b""
        return data + torn.partition(b"\n")[0]

    def cut_off(self, rng: random.Random) -> bytes:
        """What is left when the power fails: all that is durable and any part of the rest."""
        rest = self._written[self.durable :]
        for _ in range(rng.randrange(3)):
            if rest:
                start = rng.randrange(len(rest))
                end = rng.randrange(start, len(rest) + 1)
                rest[start:end] = bytes(end - start)
        return bytes(self._written[: self.durable] + rest[: rng.randrange(len(rest) + 1)])
