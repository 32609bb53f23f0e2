"""Sends no requests to a registry that is down, and fewer to one that limits rates."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final

from releasekit.errors import CircuitOpen, Transient
from releasekit.http import traffic
from releasekit.http.answers import PASSING, is_contended
from releasekit.http.pool import CONNECTIONS
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import httpx

MAX_PAUSE_S: Final = 60.0
# What has been down for longer may stay so: from then on, finding it down counts as an attempt.
PATIENCE_S: Final = 300.0
# Between two requests, once there were too many: first, and at most. Each success makes it shorter,
# so that a limit is met again after dozens of requests, and costs one of them.
FIRST_GAP_S: Final = 0.05
MAX_GAP_S: Final = 5.0
MAX_HOLD_S: Final = 10.0  # after a refusal
SHORTER: Final = 0.98
# What is refused more often, while other requests get through, is refused for itself.
MOST_REFUSALS: Final = 3
# What servers and proxies answer that limit rates; nginx says 503 unless it is told otherwise.
# https://nginx.org/en/docs/http/ngx_http_limit_req_module.html#limit_req_status
_TOO_MANY: Final = frozenset({429, 503})


class Circuit:
    """Of one address: every `RegistryClient` has its own, so lookups have another one than uploads
    where they go elsewhere.

    It keeps requests from a registry that is down. `failures` failed requests in a row open it for
    `pause_s`, then for twice that, up to a minute. A status below 500 shows that the registry is
    up. `reached` tells whether it has ever given an answer.

    One that answers that there were too many requests gets them spaced: each begins a gap after the
    one before it, which may still be under way. The gap doubles each time; whoever waits for it
    holds its slot. What a Retry-After asks for is not waited for here but, without a slot, by the
    scheduler, or for a read by `client.retry`. `refusals` counts such answers since the last
    success; requests that were under way at the time of one count no more. A kind of request that
    is refused time and again while others get through slows nothing down.
    """

    def __init__(self, name: str, *, failures: int = 5, pause_s: float = 5.0) -> None:
        self._name = name
        self._limit = failures
        self._pause_s = pause_s
        self._failures = 0
        self._pauses = 0
        self._open_until = 0.0
        self._down_since = 0.0
        self._last = ""
        self.reached = False
        self.refusals = 0
        # A request that waited for a connection after its turn would escape a pace that begins
        # meanwhile, so there are no more turns than connections.
        self._turns = asyncio.Semaphore(CONNECTIONS)
        self._line = asyncio.Lock()
        self._gap_s = 0.0
        self._slowed_s = -1.0
        self._next_s = 0.0
        # Of each kind that has not got through since: how often, and the gap before the first.
        self._refused: dict[str, tuple[int, float]] = {}

    def check(self) -> None:
        """While the circuit is open, raises CircuitOpen, with the time left as `retry_after`; and
        Transient where that has been so for too long.
        """
        now = asyncio.get_running_loop().time()
        left_s = self._open_until - now
        if left_s > 0:
            kind = CircuitOpen if now - self._down_since < PATIENCE_S else Transient
            raise kind(
                f"{self._name} is down: it has failed {self._failures} times in a row, the last "
                f"time with {self._last!r}; asking again in {max(left_s, 1):.0f} s",
                retry_after=left_s,
                asked_s=0.0,
                limited=False,
                problem=Problem.DOWN,
                hint=PASSING,
            )

    def record_answer(self, response: httpx.Response, sent_s: float) -> None:
        """Of a request that was sent at `sent_s`; marks `response` where it is one too many."""
        request, status = response.request, response.status_code
        self.reached = True
        # Some refuse by the last part of a path: of the pages that list all versions, for instance.
        kind = f"{request.method} {request.url.path.rstrip('/').rpartition('/')[2]}"
        if status in _TOO_MANY:
            if self._slow_down(kind, sent_s):
                response.extensions["slowed_down"] = True
        elif status < 500:
            self._speed_up(kind)
        if status >= 500 and not is_contended(response):
            self.record_failure(f"HTTP {status}")
        else:
            self.record_success()

    def record_failure(self, reason: str) -> None:
        now = asyncio.get_running_loop().time()
        if self._failures < self._limit:
            self._down_since = now
        self._failures += 1
        self._last = reason
        # Requests that were under way when it opened say nothing new.
        if self._failures >= self._limit and now >= self._open_until:
            self._open_until = now + min(self._pause_s * 2**self._pauses, MAX_PAUSE_S)
            self._pauses = min(self._pauses + 1, 16)

    def record_success(self) -> None:
        """The server is up, even if it refused the request."""
        self._failures = self._pauses = 0
        self._open_until = 0.0

    @contextlib.asynccontextmanager
    async def turn(self) -> AsyncIterator[float]:
        """One request, when the pace of a registry that limits rates allows it; yields when that
        was. Raises as `check`.
        """
        clock = asyncio.get_running_loop().time
        async with self._turns:
            self.check()
            if self._gap_s:
                with traffic.record_wait("rate-limit"):
                    async with self._line:
                        while (left_s := self._next_s - clock()) > 0:  # noqa: ASYNC110 (may grow)
                            await asyncio.sleep(left_s)
                        self._next_s = clock() + self._gap_s
            yield clock()

    def _slow_down(self, kind: str, sent_s: float) -> bool:
        """Whether a request of this kind that was sent at `sent_s` was refused as one too many,
        rather than for itself.
        """
        times, gap_s = self._refused.get(kind, (0, self._gap_s))
        if times >= MOST_REFUSALS and times > self.refusals:  # others got through in between
            self._gap_s = min(self._gap_s, gap_s)
            return False
        if sent_s <= self._slowed_s:
            return True
        self._refused[kind] = (times + 1, gap_s)
        self.refusals += 1
        self._slowed_s = asyncio.get_running_loop().time()
        self._gap_s = min(max(2 * self._gap_s, FIRST_GAP_S), MAX_GAP_S)
        self._next_s = self._slowed_s + min(self._gap_s * 2**self.refusals, MAX_HOLD_S)
        return True

    def _speed_up(self, kind: str) -> None:
        """A request of this kind got through."""
        self._refused.pop(kind, None)
        self.refusals = 0
        self._gap_s *= SHORTER
        if self._gap_s < FIRST_GAP_S / 4:
            self._gap_s = 0.0
