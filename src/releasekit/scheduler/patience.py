"""How long a run waits because somebody asks for it, and what is said where that is too long."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final, Self

from releasekit.errors import Transient
from releasekit.problems import Problem

# Whoever asks for more than a century is told this much. https://www.rfc-editor.org/rfc/rfc9110
# sets no limit to Retry-After, and a calendar has one.
_LONGEST_S: Final = 100 * 365 * 86_400.0


@dataclass(frozen=True, slots=True)
class Patience:
    """A registry's wish to be asked again later is granted up to `max_wait_s`, and up to `until`,
    when the loop's clock shows the end of the run, or of a `task-timeout`: `ends_by` is the input
    that says so.
    """

    max_wait_s: float = math.inf
    until: float = math.inf
    ends_by: str = "deadline"

    @classmethod
    def from_now(cls, *, max_wait_s: float, deadline_s: float | None) -> Self:
        """For a run that begins now; inside its loop."""
        if deadline_s is None:
            return cls(max_wait_s)
        return cls(max_wait_s, asyncio.get_running_loop().time() + deadline_s)

    def within(self, until: float, ends_by: str) -> Patience:
        """For a part of the run that ends no later than that."""
        return self if self.until <= until else replace(self, until=until, ends_by=ends_by)

    def allows(self, error: BaseException) -> bool:
        """Whether what `error` asks for is waited for; what asks for nothing is always allowed."""
        return not self._exceeded_by(error)

    def explain(self, error: BaseException) -> None:
        """Where `error` asks for too long a wait, have it say, once, when to come back, and which
        input would have allowed for that.
        """
        name = self._exceeded_by(error)
        if not name or not isinstance(error, Transient) or error.come_back:
            return
        wait_s = min(error.retry_after or 0.0, _LONGEST_S)
        then = datetime.now(UTC) + timedelta(seconds=wait_s)
        limit = f"the `{name}` ends before"
        if name == "max-wait":
            limit = f"`max-wait` is {in_words(self.max_wait_s)}"
        error.come_back = (
            f"come back in {in_words(wait_s)}, at {then:%Y-%m-%d %H:%M} UTC ({limit}, so this run "
            "does not wait)"
        )
        error.args = (f"{error}; {error.come_back}",)
        error.problem = Problem.RATE_LIMITED
        error.hint = f"Run the same command again then, or raise `{name}`. {error.hint}".rstrip()

    def _exceeded_by(self, error: BaseException) -> str:
        """The input that does not allow for the wait; empty where there is none."""
        if not isinstance(error, Transient) or error.retry_after is None:
            return ""
        asked_s = error.retry_after if error.asked_s is None else error.asked_s
        if asked_s > self.max_wait_s:
            return "max-wait"
        if self.until == math.inf:
            return ""
        # A place in a line of ours that lies behind the end is none's refusal: it ends with the
        # run, and to run again is enough.
        over = asyncio.get_running_loop().time() + asked_s > self.until
        return self.ends_by if over else ""


PATIENT: Final = Patience()


def in_words(seconds: float) -> str:
    """The two largest units of it, rounded up to the smaller one."""
    whole = math.ceil(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s".removesuffix(" 0 s")
    minutes = math.ceil(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min".removesuffix(" 0 min")
