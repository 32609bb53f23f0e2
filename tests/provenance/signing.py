"""A Signer as a run would make it, without the run, and statements for it."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import time
from typing import TYPE_CHECKING

from releasekit.host.ci import CI
from releasekit.http.client import http_client
from releasekit.http.credentials import Credentials, snapshot
from releasekit.http.identity import open_tokens
from releasekit.provenance.instance import instance_at
from releasekit.provenance.signer import Signer
from releasekit.provenance.statement import Subject, publish

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Mapping

    from provenance.sigstore_double import Sigstore
    from releasekit.provenance.bundle import Bundle

SERVER = "https://github.com"
WHEEL = "widgets-1.0.0-py3-none-any.whl"


@contextlib.asynccontextmanager
async def signer(
    sigstore: Sigstore,
    *,
    environment: Mapping[str, str] | None = None,
    masked: list[str] | None = None,
    clock: Callable[[], float] = time.time,
) -> AsyncIterator[Signer]:
    """`masked` receives every secret."""
    seen: list[str] = [] if masked is None else masked
    credentials = Credentials(snapshot(environment or sigstore.environment), mask=seen.append)
    ci = CI.of(credentials.environment)
    async with (
        http_client() as http,
        Signer(
            instance_at(sigstore.trust_config),
            open_tokens(ci, credentials, http),
            http,
            credentials=credentials,
            server=ci.server,
            clock=clock,
        ) as opened,
    ):
        yield opened


def signed(sigstore: Sigstore, statements: Iterable[bytes]) -> list[Bundle]:
    """One after the other."""

    async def main() -> list[Bundle]:
        async with signer(sigstore) as opened:
            return [await opened.sign(statement) for statement in statements]

    return asyncio.run(main())


def about(content: bytes, name: str = WHEEL) -> bytes:
    """What PyPI wants about a file."""
    return publish(Subject(name=name, digests={"sha256": hashlib.sha256(content).hexdigest()}))
