from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from releasekit.scheduler.retries import Deadlines
from simulation.virtual_loop import run

if TYPE_CHECKING:
    from simulation.virtual_loop import VirtualLoop


def test_each_task_has_its_own_deadline_and_one_timer_serves_all() -> None:
    ends: dict[str, tuple[float, bool]] = {}

    async def main(loop: VirtualLoop) -> None:
        deadlines = Deadlines(10.0)

        async def work(name: str, start_s: float, seconds: float) -> None:
            await asyncio.sleep(start_s)
            task = asyncio.current_task()
            assert task is not None
            deadlines.start(name, task)
            try:
                await asyncio.sleep(seconds)
            except asyncio.CancelledError:
                pass
            finally:
                deadlines.stop(name)
                ends[name] = (loop.time(), deadlines.expired(name))

        async with asyncio.TaskGroup() as group:
            for name, start_s, seconds in (("a", 0, 4), ("b", 1, 60), ("c", 3, 60), ("d", 40, 5)):
                group.create_task(work(name, start_s, seconds))
        deadlines.close()

    run(main)
    assert ends == {"a": (4, False), "b": (11, True), "c": (13, True), "d": (45, False)}


def test_without_a_limit_nothing_expires() -> None:
    async def main(_loop: VirtualLoop) -> None:
        deadlines = Deadlines(None)
        task = asyncio.current_task()
        assert task is not None
        deadlines.start("a", task)
        await asyncio.sleep(1e6)
        assert not deadlines.expired("a")
        deadlines.stop("a")
        deadlines.close()

    run(main)
