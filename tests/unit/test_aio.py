from __future__ import annotations

import asyncio
import gc
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from releasekit.aio import Lifetime, Stage, backoff, gather_all, uncancellable


async def slow(turns: int, result: str) -> str:
    for _ in range(turns):
        await asyncio.sleep(0)
    return result


def test_uncancellable_loses_neither_result_nor_cancellation() -> None:
    """R29"""
    seen: list[str] = []

    async def victim() -> None:
        seen.append(await uncancellable(slow(20, "closed")))
        await asyncio.sleep(0)
        seen.append("went on")

    async def main() -> None:
        task = asyncio.create_task(victim())
        for _ in range(3):
            await asyncio.sleep(0)
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert task.cancelling() == 3

    asyncio.run(main())
    assert seen == ["closed"]


def test_uncancellable_ends_the_task_when_nothing_follows() -> None:
    async def main() -> None:
        task = asyncio.create_task(uncancellable(slow(5, "closed")))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


def test_a_time_out_around_uncancellable_still_times_out() -> None:
    """R29"""
    seen: list[str] = []

    async def limited() -> None:
        async with asyncio.timeout(0):
            seen.append(await uncancellable(slow(5, "closed")))
            await asyncio.sleep(0)

    async def main() -> None:
        with pytest.raises(TimeoutError):
            await limited()
        await asyncio.sleep(0)

    asyncio.run(main())
    assert seen == ["closed"]


def test_uncancellable_passes_errors_on() -> None:
    async def broken() -> None:
        await asyncio.sleep(0)
        raise OSError("disk full")

    async def main() -> None:
        with pytest.raises(OSError, match="disk full"):
            await uncancellable(broken())
        assert await uncancellable(slow(0, "fine")) == "fine"

    asyncio.run(main())


def test_all_of_waits_for_those_beside_the_one_that_failed() -> None:
    ended: list[str] = []

    async def noted(turns: int, text: str) -> str:
        ended.append(await slow(turns, text))
        return text

    async def broken() -> str:
        raise OSError("disk full")

    async def main() -> None:
        with pytest.raises(OSError, match="disk full"):
            await gather_all([noted(9, "slow"), broken(), noted(2, "quick")])
        assert ended == ["quick", "slow"]
        assert await gather_all([noted(3, "a"), noted(1, "b")]) == ["a", "b"]
        assert await gather_all([]) == []

    asyncio.run(main())


def test_all_of_takes_an_error_that_is_returned_for_an_answer() -> None:
    async def answer() -> Exception:
        return OSError("disk full")

    (error,) = asyncio.run(gather_all([answer()]))
    assert isinstance(error, OSError)


def test_all_of_cancels_what_it_waits_for() -> None:
    """R29"""

    async def main() -> None:
        inner = asyncio.create_task(slow(1000, "never"))
        outer = asyncio.create_task(gather_all([inner]))
        await asyncio.sleep(0)
        outer.cancel()
        with pytest.raises(asyncio.CancelledError):
            await outer
        assert inner.cancelled()

    asyncio.run(main())


def test_a_lifetime_is_closed_when_all_it_owns_is_done() -> None:
    async def main() -> None:
        lifetime = Lifetime()
        stages = [lifetime.stage]

        async def watch() -> None:
            await asyncio.sleep(0)
            stages.append(lifetime.stage)

        async with lifetime:
            stages.append(lifetime.stage)
            task = lifetime.start(watch())
        assert task.done()
        stages.append(lifetime.stage)
        assert stages == [Stage.CLOSED, Stage.OPEN, Stage.CLOSING, Stage.CLOSED]
        with pytest.raises(RuntimeError, match="nothing can be started: closed"):
            _ = lifetime.start(watch())

    asyncio.run(main())


def test_a_failing_task_closes_the_lifetime_at_once() -> None:
    async def main() -> None:
        lifetime = Lifetime()

        async def fail() -> None:
            raise OSError("broken")

        async def late() -> None:
            try:
                await asyncio.sleep(60)
            finally:
                with pytest.raises(RuntimeError, match="closing"):
                    _ = lifetime.start(fail())

        async def both() -> None:
            async with lifetime:
                _ = lifetime.start(late())
                await asyncio.sleep(0)
                _ = lifetime.start(fail())

        with pytest.raises(ExceptionGroup) as caught:
            await both()
        assert [str(error) for error in caught.value.exceptions] == ["broken"]

    asyncio.run(main())


def test_a_cancelled_task_ends_alone() -> None:
    async def main() -> None:
        async with Lifetime() as lifetime:
            task = lifetime.start(asyncio.sleep(60))
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert lifetime.stage is Stage.OPEN

    asyncio.run(main())


def test_a_task_cancelled_before_its_first_step_leaves_nothing_unawaited() -> None:
    async def main() -> None:
        async with Lifetime() as lifetime:
            lifetime.start(asyncio.sleep(60)).cancel()

    asyncio.run(main())
    gc.collect()  # the warning about it would be an error


@given(st.integers(0, 10_000), st.floats(0.001, 60), st.integers())
def test_backoff_is_full_jitter_up_to_a_minute(attempt: int, base: float, seed: int) -> None:
    """R12"""
    delay = backoff(attempt, base, random.Random(seed))
    assert 0 <= delay <= min(base * 2 ** min(attempt, 20), 60)
