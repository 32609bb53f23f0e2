"""A registry that has no crate, on this machine: cargo looks there for all that is on crates.io."""

from __future__ import annotations

import functools
import http.server
import json
import threading
from http import HTTPStatus


class _Empty(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        is_config = self.path == "/config.json"
        body = json.dumps({"dl": f"http://{self.headers['Host']}/dl"}).encode() * is_config
        self.send_response(HTTPStatus.OK if is_config else HTTPStatus.NOT_FOUND)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """To nobody."""


@functools.cache
def serve() -> str:
    """Its address, once in each process."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Empty)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/"
