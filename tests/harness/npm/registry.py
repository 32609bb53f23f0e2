"""npmjs.com's double on loopback: every request is on record, and tests step in around each."""

from __future__ import annotations

import contextlib
import re
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness import http_server
from harness.http_server import Handler, HangUp
from harness.npm.documents import Request
from harness.npm.npmjs import Npmjs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harness.npm.documents import Answer


@dataclass(frozen=True)
class Exchange:
    """`status` is None where no answer went out."""

    request: Request
    status: int | None


@dataclass
class Registry:
    """`before` sees each request before anything is done about it, and may answer in npm's place;
    `after` sees the answer to it, and may change that; each may also end the client, or raise
    HangUp. Neither is called twice at the same time, nor while the other one is.
    """

    npm: Npmjs
    before: Callable[[Request], Answer | None] = lambda request: None
    after: Callable[[Request, Answer], Answer] = lambda request, answer: answer
    exchanges: list[Exchange] = field(default_factory=list)
    _received: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def url(self) -> str:
        return f"{self.npm.origin}/"

    @property
    def runner(self) -> dict[str, str]:
        """The environment of a job on GitHub that may identify itself."""
        return self.npm.accounts.github.environment(self.npm.origin)

    def seen(self, method: str, path: str = ".*") -> list[Exchange]:
        """In order of arrival; `path`, a regular expression, is of the whole target."""
        return [
            exchange
            for exchange in self.exchanges
            if exchange.request.method == method and re.fullmatch(path, exchange.request.target)
        ]

    def tell(self, around: Callable[[str, Request], None]) -> None:
        """`around` is told of each request, "before" and "after" it is answered."""

        def before(request: Request) -> None:
            around("before", request)

        def after(request: Request, answer: Answer) -> Answer:
            around("after", request)
            return answer

        self.before, self.after = before, after

    def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
        with self._lock:
            self._received += 1
            request = Request(
                number=self._received, method=method, target=target, headers=headers, body=body
            )
            answer: Answer | None = None
            try:
                answer = self.before(request) or self.npm.answer(request)
                answer = self.after(request, answer)
            except HangUp:
                answer = None
                raise
            finally:
                status = None if answer is None else answer.status
                self.exchanges.append(Exchange(request, status))
            return answer


@contextlib.contextmanager
def serving(npm: Npmjs | None = None) -> Iterator[Registry]:
    """An empty one, unless `npm` says otherwise."""
    registry = Registry(npm or Npmjs())
    with http_server.serving(_Handler, checked=True, registry=registry) as registry.npm.origin:
        yield registry


class _Handler(Handler):
    registry: Registry

    def do_GET(self) -> None:
        if (received := self.received()) is None:
            return
        headers, body = received
        try:
            answer = self.registry.answer(self.command, self.path, headers, body)
        except HangUp:
            self.hang_up()
            return
        self.send(answer.status, answer.headers, answer.body)

    do_POST = do_PUT = do_DELETE = do_GET
