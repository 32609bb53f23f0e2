"""What a package, and a whole run, spent: requests, bytes, and what each second of it went into;
and what is told of each of these while it happens.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Final, Literal, get_args

from msgspec import Struct, field

from releasekit.fields import Identity

Work = Literal["build", "attest", "upload", "follow-up"]
# docs/spent.md says exactly what each of them means.
Wait = Literal["dependency", "slot", "build-slot", "rate-limit", "index-lag", "retry", "approval"]
WORK: Final[tuple[Work, ...]] = get_args(Work)
WAITS: Final[tuple[Wait, ...]] = get_args(Wait)


class Spent(Struct, frozen=True, kw_only=True):
    """Bytes are those of bodies, as they were on the way. `seconds` has what is not zero: of one
    package they add up to the time from the run's start to its own end. `waited_for` is the
    dependency that it waited for longest, `ECOSYSTEM:NAME`, and `longest_s` for how long.
    """

    requests: int = 0
    sent_bytes: int = 0
    received_bytes: int = 0
    retries: int = 0
    seconds: Mapping[Work | Wait, float] = field(default_factory=dict)
    waited_for: Identity = ""
    longest_s: float = 0.0

    @property
    def work_s(self) -> float:
        return math.fsum(self.seconds.get(work, 0.0) for work in WORK)

    @property
    def waits_s(self) -> float:
        return math.fsum(self.seconds.get(wait, 0.0) for wait in WAITS)


class RequestEvent(Struct, frozen=True, kw_only=True):
    """One request, and its answer, whose body has been read. `package` is the one it was made for,
    `ECOSYSTEM:NAME`, if it was for one; `at_s` counts from the start of the run, or of what comes
    before it. Without an answer `status` is 0, and `trouble` says why. The attempts at one request
    are numbered.
    """

    package: Identity
    method: str
    url: str
    at_s: float
    lasted_s: float
    status: int = 0
    trouble: str = ""
    sent_bytes: int = 0
    received_bytes: int = 0
    attempt: int = 1


class PauseEvent(Struct, frozen=True, kw_only=True):
    """A pause of `lasted_s` that begins now, or has just come to its `end`; `what` was waited for,
    where `cause` does not say enough.
    """

    package: Identity
    cause: Wait
    at_s: float
    lasted_s: float
    end: bool = False
    what: str = ""


def added(parts: Iterable[Spent]) -> Spent:
    """All of them as one, which waited for no single dependency."""
    every = list(parts)
    seconds = {
        what: total
        for what in (*WORK, *WAITS)
        if (total := round(math.fsum(part.seconds.get(what, 0.0) for part in every), 3))
    }
    return Spent(
        requests=sum(part.requests for part in every),
        sent_bytes=sum(part.sent_bytes for part in every),
        received_bytes=sum(part.received_bytes for part in every),
        retries=sum(part.retries for part in every),
        seconds=seconds,
    )
