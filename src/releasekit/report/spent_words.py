"""What a run spent, for people: a short section of its summary, and the last line of its log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from releasekit.report.text import seconds
from releasekit.spent import WAITS, WORK
from releasekit.text.escape import clip, code, log_line, markdown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from releasekit.spent import RunSpent, Spent, Step, Wait, Work

_FIRST: Final = 4
_LAST: Final = 4
_MAX_CHARS: Final = 500
_WORDS: Final[dict[Work | Wait, str]] = {
    "build": "building",
    "attest": "signing",
    "upload": "uploading",
    "follow-up": "follow-ups",
    "dependency": "dependencies",
    "slot": "upload slots",
    "build-slot": "build slots",
    "rate-limit": "rate limits",
    "index-lag": "index lag",
    "retry": "retries",
    "approval": "approval",
}
# Less than that would be told as "0.0 s".
_LEAST_S: Final = 0.05


def spent_section(spent: RunSpent | None) -> list[str]:
    """Markdown; nothing where nothing was spent."""
    if spent is None or not (lines := totals(spent.total)):
        return []
    if spent.chain:
        steps = " → ".join(_shown(spent.chain, code))
        parts = _parts((_summed(spent.chain, what), _WORDS[what]) for what in (*WORK, *WAITS))
        lines.append(f"Longest chain ({parts}): {steps}.")
    if spent.advice:
        lines.append(f"**{markdown(clip(spent.advice, _MAX_CHARS))}.**")
    return ["### What the run spent", "", *(part for line in lines for part in (line, ""))]


def spent_line(spent: RunSpent | None) -> list[str]:
    """One line of a log, or none."""
    if spent is None or not (told := totals(spent.total)):
        return []
    line = f"spent: {' '.join(told)}"
    if spent.advice:
        line += f" {clip(spent.advice, _MAX_CHARS)}."
    return [log_line(line)]


def package_words(spent: Spent | None) -> str:
    """What one package spent and waited for, as sentences; empty where nothing is known."""
    if spent is None:
        return ""
    lines = totals(spent)
    if spent.waited_for and spent.longest_s >= _LEAST_S:
        name = clip(spent.waited_for, 200)
        lines.append(f"Waited longest for {name}: {seconds(spent.longest_s)}.")
    return " ".join(lines)


def totals(total: Spent) -> list[str]:
    """Sentences; seconds are those of all packages together, many of them at the same time."""
    lines = []
    if total.requests:
        sent, received = size(total.sent_bytes), size(total.received_bytes)
        again = f", {_counted(total.retries, 'retry', 'retries')}" if total.retries else ""
        requests = _counted(total.requests, "request", "requests")
        lines.append(f"{requests} ({sent} sent, {received} received{again}).")
    work = _parts((total.seconds.get(what, 0.0), _WORDS[what]) for what in WORK)
    waits = _parts((total.seconds.get(what, 0.0), _WORDS[what]) for what in WAITS)
    if work:
        lines.append(f"At work for {seconds(total.work_s)}: {work}.")
    if waits:
        lines.append(f"Waited {seconds(total.waits_s)}: {waits}.")
    return lines


def _parts(parts: Iterable[tuple[float, str]]) -> str:
    """The longest first."""
    known = sorted((part for part in parts if part[0] >= _LEAST_S), reverse=True)
    return ", ".join(f"{words} {seconds(lasted_s)}" for lasted_s, words in known)


def _summed(chain: Sequence[Step], what: Work | Wait) -> float:
    return sum(step.lasted_s for step in chain if step.what == what)


def _shown(chain: Sequence[Step], named: Callable[[str], str]) -> list[str]:
    """Its first and last steps that take long enough to be told."""
    steps = [
        f"{named(clip(step.package, 100))} {step.what} {seconds(step.lasted_s)}"
        for step in chain
        if step.lasted_s >= _LEAST_S
    ]
    left = len(steps) - _FIRST - _LAST
    return [*steps[:_FIRST], f"{left} more", *steps[-_LAST:]] if left > 1 else steps


def _counted(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def size(count: int) -> str:
    """Of bytes, no more exact than a reader needs: "512 bytes", "3.1 kB", "12 MB"."""
    if count < 1000:
        return _counted(count, "byte", "bytes")
    amount, units = count / 1000, ["kB", "MB", "GB", "TB"]
    while amount >= 999.5 and len(units) > 1:
        amount /= 1000
        del units[0]
    return f"{amount:.1f} {units[0]}" if amount < 10 else f"{amount:.0f} {units[0]}"
