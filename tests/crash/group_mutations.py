"""Ways to break the group that owns what is open. None hangs, for that would take long to judge."""

from __future__ import annotations

from mutation import always, change, mutants, never, without

MUTANTS = mutants(
    "aio",
    {
        "the first opened closes first": change(
            "Group._close_children", "reversed(self._children)", "self._children"
        ),
        "all children close at once": always("Group._close_children", "self._together"),
        "children never close at once": never("Group._close_children", "self._together"),
        "leaving the block can be cut short": change(
            "Group.__aexit__", "uncancellable(self._close())", "asyncio.shield(self._close())"
        ),
        "closing can be cut short": change(
            "Group.aclose", "uncancellable(self._close())", "asyncio.shield(self._close())"
        ),
        "starts while it closes": without("Group._close", "self._is_open = False"),
        "leaves a refused coroutine unawaited": without("Group._start", "coroutine.close()"),
        "a failure is lost": without("Group._ended", "self._failures.append(error)"),
        "a failure closes nothing": without("Group._ended", "_ = self._close()"),
        "a cancelled child is a failure": change(
            "Group._ended",
            "None if child.cancelled() else child.exception()",
            "asyncio.CancelledError() if child.cancelled() else child.exception()",
        ),
        "the error of the block is lost": without(
            "Group.__aexit__", "self._failures.append(error)"
        ),
        "an interruption is not taken back": without("Group.__aexit__", "block.uncancel()"),
        "an interruption strikes later": without("Group.__aexit__", "await asyncio.sleep(0)"),
        "what comes after the first failure is lost": change(
            "_chained", "rest.__cause__, first.__cause__ = ...", "rest.__cause__ = None"
        ),
        "the cause of the first failure is lost": change(
            "_chained", "rest.__cause__, first.__cause__ = ...", "first.__cause__ = rest"
        ),
        "an opening is cancelled twice": always("_Holding.end", "not self._ending"),
        "whoever is cancelled does not wait": without(
            "Group.enter", "await uncancellable(asyncio.wait((keeper,)))"
        ),
        "a cancellation swallows why it could not be opened": always(
            "Group.enter", "isinstance(...)"
        ),
        "uncancellable swallows the cancellation": without("uncancellable", "_cancel_later()"),
    },
)
