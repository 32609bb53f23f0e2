"""What a run spent, in words: a section of its summary, the last line of its log, a sentence about
each package; and the log's line about each request and each pause.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from releasekit.report.text import count_of, seconds, size
from releasekit.spent import WAITS, WORK, PauseEvent, RequestEvent
from releasekit.text.escape import clip, log_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from releasekit.model import Report
    from releasekit.spent import Spent, Wait, Work

# What a package was doing.
WORDS: Final[Mapping[Work | Wait, str]] = {
    "build": "building",
    "attest": "signing",
    "upload": "uploading",
    "follow-up": "running follow-ups",
    "dependency": "waiting for dependencies",
    "slot": "waiting for other uploads",
    "build-slot": "waiting for other builds",
    "rate-limit": "waiting for rate limits",
    "index-lag": "waiting for the registry",
    "retry": "waiting to retry",
    "approval": "waiting for approval",
}
# Less would read "0.0 s".
LEAST_S: Final = 0.05
_MATTERS: Final = 0.1
_PAUSES: Final = ("rate-limit", "retry")
_MAX_LINE: Final = 1_000
WAITED_FOR: Final[Mapping[Wait, str]] = {
    "slot": "a slot",
    "build-slot": "a slot to build in",
    "rate-limit": "a rate limit",
    "retry": "another attempt",
}


def spent_section(spent: Spent | None) -> list[str]:
    """Markdown; nothing where nothing was spent."""
    if spent is None or not (lines := totals(spent)):
        return []
    return ["### What the run spent", "", *(part for line in lines for part in (line, ""))]


def was_held_up(report: Report) -> bool:
    """Whether a package paused for a tenth of the time that the run took, because a server asked
    for it or after failures.
    """
    known = (result.spent.seconds for result in report.results if result.spent)
    paused_s = max((sum(each.get(what, 0.0) for what in _PAUSES) for each in known), default=0.0)
    return paused_s > 0 and paused_s >= _MATTERS * report.duration_s


def spent_line(spent: Spent | None, duration_s: float) -> list[str]:
    """One line of a log, or none: what the run took, then what all packages together spent."""
    if spent is None or not (told := totals(spent)):
        return []
    return [log_line(f"spent: {seconds(duration_s)} in all. {' '.join(told)}")]


def package_words(spent: Spent | None) -> str:
    """What one package spent and waited for, as sentences; empty where nothing is known."""
    if spent is None:
        return ""
    lines = totals(spent)
    if spent.waited_for and spent.longest_s >= LEAST_S:
        name = clip(spent.waited_for, 200)
        lines.append(f"Waited longest for {name}: {seconds(spent.longest_s)}.")
    return " ".join(lines)


def totals(total: Spent) -> list[str]:
    """Sentences; seconds are those of all packages together, many of them at the same time."""
    lines = []
    if total.requests:
        sent, received = size(total.sent_bytes), size(total.received_bytes)
        again = f", {count_of(total.retries, 'retry', 'retries')}" if total.retries else ""
        requests = count_of(total.requests, "request", "requests")
        lines.append(f"{requests} ({sent} sent, {received} received{again}).")
    work = _parts((total.seconds.get(what, 0.0), WORDS[what]) for what in WORK)
    waits = _parts(
        (total.seconds.get(what, 0.0), WORDS[what].removeprefix("waiting ")) for what in WAITS
    )
    if work:
        lines.append(f"At work for {seconds(total.work_s)}: {work}.")
    if waits:
        lines.append(f"Waited {seconds(total.waits_s)}: {waits}.")
    return lines


def _parts(parts: Iterable[tuple[float, str]]) -> str:
    """The longest first."""
    known = sorted((part for part in parts if part[0] >= LEAST_S), reverse=True)
    return ", ".join(f"{words} {seconds(lasted_s)}" for lasted_s, words in known)


def traffic_line(seen: RequestEvent | PauseEvent) -> str:
    """For a log: a server's words never become a command to the runner."""
    lasts = seconds(seen.lasted_s)
    if isinstance(seen, RequestEvent):
        came = ", ".join(filter(None, [str(seen.status or ""), seen.trouble]))
        sizes = f"sent {seen.sent_bytes} bytes, received {seen.received_bytes} bytes"
        number = f" (attempt {seen.attempt})" if seen.attempt > 1 else ""
        what = f"{seen.method} {seen.url} -> {came}; {sizes}, {seen.lasted_s * 1000:.0f} ms{number}"
    elif seen.end:
        what = f"waited {lasts} for {seen.what or WAITED_FOR.get(seen.cause, seen.cause)}"
    else:
        asked = ": its server wants no more requests for now" if seen.cause == "rate-limit" else ""
        what = f"asks again in {lasts}{asked}"
    line = log_line(clip(f"{seen.package or '-'}  {what}", _MAX_LINE))
    return f"{seen.at_s:8.1f} s    {line}"
