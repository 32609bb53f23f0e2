"""What a pause, or the end of one, or a cancellation means, in the words of a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from releasekit.report.text import seconds
from releasekit.text.escape import clip, log_line

if TYPE_CHECKING:
    from releasekit.model import Course

_MAX_CHARS = 300


def course_line(course: Course) -> str:
    """For a log, where nobody sees how it goes on."""
    match course.name:
        case "running":
            return "resumed"
        case "paused":
            return "paused: nothing new starts, what is in flight goes on; SIGUSR2 resumes it"
        case "cancelling":
            return f"cancelling, {because(course)}: {_left(course)}"


def because(course: Course) -> str:
    """Who or what asked for it, as a clause."""
    reason = course.reason.removeprefix("cancelled ")
    return log_line(clip(reason, _MAX_CHARS))


def _left(course: Course) -> str:
    if course.until_s is None:
        return "nothing new starts, what is in flight is finished"
    left_s = course.until_s - course.at_s
    if left_s <= 0:
        return "what is in flight is interrupted"
    return f"builds are interrupted, uploads in flight have {seconds(left_s)}"
