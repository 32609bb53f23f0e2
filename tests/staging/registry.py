"""npmjs.com's double on loopback: every request is on record, and tests step in around each."""

from __future__ import annotations

import contextlib
import re
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from integration import http_server
from integration.http_server import HangUp
from staging.documents import Request
from staging.npmjs import Npmjs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from staging.documents import Answer


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

    class Handler(_Handler):
        pass

    Handler.registry = registry
    with http_server.CheckedServer(("127.0.0.1", 0), Handler) as server:
        registry.npm.origin = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield registry
        finally:
            server.shutdown()
            thread.join()
    assert not server.defects, "".join(server.defects)


class _Handler(http_server.Handler):
    registry: Registry

    def do_GET(self) -> None:  # noqa: N802 (as the library calls it)
        if (received := self.received()) is None:
            return
        headers, body = received
        try:
            answer = self.registry.answer(self.command, self.path, headers, body)
        except HangUp:
            self.hang_up()
            return
        self.send_response(answer.status)
        for name, value in answer.headers:
            self.send_header(name, value)
        if answer.status != 204:
            self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)

    do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815
