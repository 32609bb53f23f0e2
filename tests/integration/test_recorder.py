"""What the tests believe of a server: the recorder itself."""

from __future__ import annotations

import contextlib
import http.client
from typing import TYPE_CHECKING

from harness.http_server import Handler, serving
from integration.servers import recorded

if TYPE_CHECKING:
    from collections.abc import Iterator

# More than sockets on both sides hold for a client that does not read.
LARGE = 64 << 20


@contextlib.contextmanager
def talkative() -> Iterator[str]:
    """A server that takes every PUT and has a lot to say about it."""

    class Talker(Handler):
        def do_PUT(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send(201, body=bytes(LARGE))

    with serving(Talker) as origin:
        yield origin


def test_an_upload_is_over_and_on_record_before_its_client_can_know() -> None:
    """Else a client's next upload could be counted beside the one it has the answer of."""
    with talkative() as origin, recorded(origin) as recorder:
        address = recorder.url.removeprefix("http://")
        with contextlib.closing(http.client.HTTPConnection(address)) as connection:
            connection.request("PUT", "/a.jar", b"content")
            # From here the recorder is still busy with the body, which nobody reads.
            assert connection.getresponse().status == 201
            assert recorder.uploading == 0
            assert [(seen.filename, seen.status) for seen in recorder.exchanges] == [("a.jar", 201)]
