"""Conversations with a real child, and what no well-behaved one would say."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

import pytest

from processes import PATIENCE_S
from releasekit.aio import GroupClosed
from releasekit.ecosystems.shared import jsonlines
from releasekit.ecosystems.shared.jsonlines import Conversation, Ended, conversation
from releasekit.errors import BuildFailed
from releasekit.host.process import Processes

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

# Answers "hold" only with the next "say"; every other question at once, with all it was told.
CHILD = """\
import json, sys
held = []
told = []
for line in sys.stdin:
    asked = json.loads(line)
    told.append(asked)
    match asked.get("do"):
        case "hold":
            held.append(asked["id"])
        case "say":
            print(asked["what"], flush=True)
        case "fail":
            print(json.dumps({"id": asked["id"], "error": "no"}), flush=True)
        case "die":
            print("last words", file=sys.stderr)
            sys.exit(1)
        case "tell":
            for number in (asked["id"], *held):
                print(json.dumps({"id": number, "told": told}), flush=True)
"""


def talk(tmp_path: Path, body: Callable[[Conversation], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(PATIENCE_S), Processes(environment={}) as processes:
            argv = [sys.executable, "-I", "-c", CHILD]
            async with conversation(
                "it is gone", argv, processes=processes, cwd=tmp_path, env={}
            ) as there:
                await body(there)
            assert there.ended
            assert not processes.group._children

    asyncio.run(main())


def test_questions_are_answered_in_any_order(tmp_path: Path) -> None:
    async def body(there: Conversation) -> None:
        held = asyncio.ensure_future(there.ask({"do": "hold"}))
        await asyncio.sleep(0)
        assert (await there.ask({"do": "tell"}))["id"] == 1
        assert (await held)["id"] == 0
        with pytest.raises(BuildFailed, match=r"^no$"):
            await there.ask({"do": "fail"})
        assert not there.ended

    talk(tmp_path, body)


@pytest.mark.parametrize("cancellable", [True, False])
def test_the_answer_for_a_caller_that_was_cancelled_is_dropped(
    tmp_path: Path, *, cancellable: bool
) -> None:
    """R29: a child that knows what it means is told."""

    async def body(there: Conversation) -> None:
        held = asyncio.ensure_future(there.ask({"do": "hold"}, cancellable=cancellable))
        await asyncio.sleep(0)
        held.cancel()
        with pytest.raises(asyncio.CancelledError):
            await held
        said = await there.ask({"do": "tell"})
        assert ({"cancel": 0} in said["told"]) is cancellable
        await there.ask({"do": "tell"})  # after the answers that nobody waits for

    talk(tmp_path, body)


def test_who_waits_when_the_child_dies_is_told_with_its_last_words(tmp_path: Path) -> None:
    async def body(there: Conversation) -> None:
        waiting = [asyncio.ensure_future(there.ask({"do": "hold"})) for _ in range(2)]
        await asyncio.sleep(0)
        waiting[1].cancel()
        with pytest.raises(Ended, match="it is gone") as caught:
            await there.ask({"do": "die"})
        assert caught.value.log == ("last words",)
        with pytest.raises(Ended):
            await waiting[0]
        with pytest.raises(Ended, match="it is gone") as caught:
            await there.ask({"do": "tell"})
        assert caught.value.log == ("last words",)

    talk(tmp_path, body)


@pytest.mark.parametrize(
    "line", ["nonsense", "[]", "null", '"id"', '{"id": 7}', '{"id": []}', "{}", "[" * 10_000]
)
def test_what_is_no_answer_ends_the_conversation(tmp_path: Path, line: str) -> None:
    """R36: rather than leave a question without one."""

    async def body(there: Conversation) -> None:
        waiting = asyncio.ensure_future(there.ask({"do": "hold"}))
        with pytest.raises(Ended, match="it is gone") as caught:
            await there.ask({"do": "say", "what": line})
        (told,) = caught.value.log
        assert told.startswith(f"this is not an answer: {line[:100]}")
        assert len(told) < 300
        with pytest.raises(Ended):
            await waiting

    talk(tmp_path, body)


def test_what_comes_after_the_end_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Millions of empty lines took minutes."""
    read: list[str] = []

    def refuse(line: str, **_: object) -> None:
        read.append(line)
        raise ValueError(line)

    monkeypatch.setattr(jsonlines, "parse_json", refuse)
    there = Conversation("it is gone")
    for line in ("no answer", "nor this"):
        there.receive(line)
    assert read == ["no answer"]


def test_a_conversation_that_is_closed_early_is_closed_once(tmp_path: Path) -> None:
    async def body(there: Conversation) -> None:
        waiting = asyncio.ensure_future(there.ask({"do": "hold"}))
        await asyncio.sleep(0)
        await asyncio.gather(there.aclose(), there.aclose())
        with pytest.raises(Ended):
            await waiting

    talk(tmp_path, body)


def test_a_child_that_is_started_while_its_group_closes_is_killed(tmp_path: Path) -> None:
    """R46"""

    async def main() -> None:
        async with Processes(environment={}) as processes:
            starting = asyncio.ensure_future(
                processes.run([sys.executable, "-c", "import time; time.sleep(600)"], cwd=tmp_path)
            )
            await asyncio.sleep(0)
        with pytest.raises(GroupClosed):
            await starting

    asyncio.run(main())
