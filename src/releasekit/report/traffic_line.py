"""One line of a log about a request, or about a pause."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from releasekit.report.text import seconds
from releasekit.spent import Delay, Exchange
from releasekit.text.escape import clip, log_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from releasekit.spent import Wait

_MAX_CHARS: Final = 1_000
_WAITED_FOR: Final[Mapping[Wait, str]] = {
    "slot": "a slot",
    "build-slot": "a slot to build in",
}


def traffic_line(seen: Exchange | Delay) -> str:
    """For a log: no command to the runner, whatever a server's words are."""
    what = _exchange(seen) if isinstance(seen, Exchange) else _delay(seen)
    line = log_line(clip(f"{seen.package or '-'}  {what}", _MAX_CHARS))
    return f"{seen.at_s:8.1f} s    {line}"


def _exchange(seen: Exchange) -> str:
    came = f"{seen.status}" if seen.status else ""
    came = ", ".join(filter(None, [came, seen.trouble]))
    size = f"sent {seen.sent_bytes} bytes, received {seen.received_bytes} bytes"
    number = f" (attempt {seen.attempt})" if seen.attempt > 1 else ""
    return f"{seen.method} {seen.url} -> {came}; {size}, {seen.lasted_s * 1000:.0f} ms{number}"


def _delay(seen: Delay) -> str:
    lasts = seconds(seen.lasted_s)
    if seen.end:
        return f"waited {lasts} for {seen.what or _WAITED_FOR.get(seen.cause, seen.cause)}"
    asked = ": its server wants no more requests for now" if seen.cause == "rate-limit" else ""
    return f"asks again in {lasts}{asked}"
