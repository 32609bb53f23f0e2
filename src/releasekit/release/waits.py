"""Why a task has begun no sooner: the package that it waited for last, a pause, a slot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from releasekit.report.text import seconds

if TYPE_CHECKING:
    from collections.abc import Iterable

    from releasekit.model import Node
    from releasekit.scheduler import Task

# What begins so soon has waited for no slot, only for its turn in the event loop.
_AT_ONCE_S: Final = 0.05


class Waits:
    """Of the tasks of one run, told of their ends and pauses as these come, in seconds since its
    start. What a whole run waited for is told by the timesheet, once it has ended.
    """

    def __init__(self, tasks: Iterable[Task[Node]] = ()) -> None:
        self._after = {task.name: task.after for task in tasks}
        self._settled_s: dict[Node, float] = {}
        self._again_s: dict[Node, float] = {}

    def settled(self, node: Node, at_s: float) -> None:
        self._settled_s[node] = at_s

    def paused(self, node: Node, until_s: float) -> None:
        self._again_s[node] = until_s

    def why(self, node: Node, at_s: float) -> str:
        """For an attempt that begins at that moment; empty where it has begun at once."""
        if node in self._again_s:
            slot = _slot(at_s - self._again_s[node])
            return f"it waited {slot}" if slot else ""
        own_s, others = 0.0, {}
        for on in self._after.get(node, ()):
            ended_s = self._settled_s.get(on, 0.0)
            # An upload comes after its own build, which may be that of others, too.
            if on.package == node.package or (on.phase == "build" and node.phase == "upload"):
                own_s = max(own_s, ended_s)
            else:
                others[on] = ended_s
        last = max(others, key=lambda on: (others[on], on), default=None)
        ready_s = max(own_s, others[last] if last else 0.0)
        words = []
        if last and ready_s - own_s >= _AT_ONCE_S:
            words.append(f"{seconds(ready_s - own_s)} for {last.package}")
        words += filter(None, [_slot(at_s - ready_s)])
        return f"it waited {', then '.join(words)}" if words else ""


def _slot(lasted_s: float) -> str:
    return f"{seconds(lasted_s)} for a slot" if lasted_s >= _AT_ONCE_S else ""
