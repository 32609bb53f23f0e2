"""A registry of its own process: `python -m bench.release.servers npm --latency 0.2 --lag 3`.

Prints its port; answers each line on standard input by what it has seen, as JSON, and ends with it.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import sys
from importlib import import_module
from typing import TYPE_CHECKING

from bench.release.servers.wire import Connection, Seen

if TYPE_CHECKING:
    from bench.release.servers.wire import App


async def serve(app: App, latency_s: float, read_latency_s: float) -> None:
    loop, seen, over = asyncio.get_running_loop(), Seen(), asyncio.Event()
    server = await loop.create_server(
        lambda: Connection(app, seen, latency_s, read_latency_s), "127.0.0.1", 0, backlog=1024
    )
    print(server.sockets[0].getsockname()[1], flush=True)

    def asked() -> None:
        if not sys.stdin.readline():
            over.set()
            return
        print(json.dumps(seen.summary(app)), flush=True)

    loop.add_reader(sys.stdin, asked)
    await over.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("protocol", choices=("npm", "pypi", "cargo", "maven", "go"))
    parser.add_argument("--latency", type=float, default=0.0)
    parser.add_argument("--read-latency", type=float, default=None)
    parser.add_argument("--lag", type=float, default=0.0)
    parser.add_argument("--index-latency", type=float, default=None)
    parser.add_argument("--directory", default="")
    options = parser.parse_args()
    module = import_module(f"bench.release.servers.{options.protocol}")
    app: App = module.open_app(options)
    gc.freeze()
    reads = options.latency if options.read_latency is None else options.read_latency
    asyncio.run(serve(app, options.latency, reads))


if __name__ == "__main__":
    main()
