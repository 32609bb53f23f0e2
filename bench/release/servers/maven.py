"""A Maven repository: files go in by PUT, and come out by GET.
https://maven.apache.org/repository/layout.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.release.servers.lagging import Lagging
from bench.release.servers.wire import MISSING, Answer, Request

if TYPE_CHECKING:
    import argparse


def open_app(options: argparse.Namespace) -> Maven:
    return Maven(options.lag)


class Maven:
    def __init__(self, lag_s: float) -> None:
        self._files: Lagging[bytes] = Lagging(lag_s)

    def index_latency_s(self, _request: Request) -> float | None:
        return None

    def package_of(self, request: Request) -> str:
        """By the directory, so that metadata counts for the package that lists itself there."""
        if request.method != "PUT":
            return ""
        return next(part for part in request.path.split("/") if part.startswith("bench-"))

    def published(self) -> dict[str, int]:
        """Versions with a POM and its checksum, and how many files each has."""
        made: dict[str, int] = {}
        names = self._files.everything()
        for path in names:
            if path.endswith(".pom") and f"{path}.sha1" in names:
                directory = path.rpartition("/")[0]
                *_, name, version = directory.split("/")
                made[f"{name} {version}"] = sum(it.rpartition("/")[0] == directory for it in names)
        return made

    async def answer(self, request: Request) -> Answer:
        if request.method == "PUT":
            if "if-none-match" in request.headers and self._files.shown(request.path):
                return Answer(412)
            self._files.add(request.path, request.body)
            return Answer(201)
        held = self._files.shown(request.path)
        return Answer(body=held[-1], kind="application/octet-stream") if held else MISSING
