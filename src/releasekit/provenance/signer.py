"""Signing: statements become bundles, under one short-lived certificate after the other."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from releasekit.aio import Resource
from releasekit.errors import PackageError, Rejected, ReleasekitError, Transient
from releasekit.http.circuit import Circuit
from releasekit.http.identity import SIGSTORE
from releasekit.problems import Problem
from releasekit.provenance.bundle import bundled
from releasekit.provenance.job import Job
from releasekit.provenance.log import Signed, record
from releasekit.provenance.services import explain
from releasekit.provenance.statement import pae

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

    from releasekit.http.credentials import Credentials, Secret
    from releasekit.http.identity import IdTokens
    from releasekit.provenance.bundle import Bundle
    from releasekit.provenance.certificate import Identity
    from releasekit.provenance.instance import Instance

# An entry that is asked for now has to be made before the certificate ends.
_RENEWED_BEFORE_S: Final = 60.0


class Signer(Resource):
    """Signs as one job. Certificates, of ten minutes each, are asked for when first needed and
    again before they end, once for all who wait.
    """

    def __init__(
        self,
        instance: Instance,
        tokens: IdTokens,
        http: httpx.AsyncClient,
        *,
        credentials: Credentials,
        server: str,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__()
        self.log_url = str(instance.log).rstrip("/")
        self._instance = instance
        self._tokens = tokens
        self._http = http
        self._circuit = Circuit(self.log_url)
        self._redact = credentials.redact
        self._environment = credentials.environment
        self._server = server
        self._clock = clock
        self._job: Job | None = None
        self._asking_for_job = asyncio.Lock()
        self._certifying: asyncio.Task[Identity | ReleasekitError] | None = None

    async def job(self) -> Job:
        """Who signs; asked once. Raises Transient, Denied, Rejected."""
        async with self._asking_for_job:
            if self._job is None:
                try:
                    token = await self._tokens.fetch(SIGSTORE)
                    self._job = self._job_of(token)
                except PackageError as error:
                    raise explain(error) from error.__cause__
            return self._job

    def _job_of(self, token: Secret) -> Job:
        try:
            return Job.from_token(
                token.reveal(), server=self._server, environment=self._environment
            )
        except ValueError as error:
            raise Rejected(
                f"the ID token of this job: not a job's token: {error}",
                problem=Problem.STRANGE_ANSWER,
            ) from error

    async def sign(self, statement: bytes) -> Bundle:
        """One attempt. Raises Transient, which is never ambiguous: what is signed twice does no
        harm; Denied, Rejected.
        """
        identity = await self._identity()
        signed = Signed(
            statement=statement, signature=identity.sign(pae(statement)), certificate=identity.pem
        )
        try:
            entry = await record(
                self._http,
                self._instance.log,
                signed,
                redact=self._redact,
                circuit=self._circuit,
            )
            if not identity.covers(entry.integrated_s):
                self._forget(identity)
                raise Transient(
                    f"{self.log_url}: took the signature when its certificate was not valid",
                    problem=Problem.STRANGE_ANSWER,
                )
        except PackageError as error:
            raise explain(error) from error.__cause__
        return bundled(signed, entry, certificate=identity.der)

    async def _identity(self) -> Identity:
        if self._certifying is None or self._is_over(self._certifying):
            self._certifying = self.group.start(self._certified())
        certifying = self._certifying
        # A task that is cancelled leaves it to the others.
        await asyncio.wait((certifying,))
        outcome = certifying.result()
        if isinstance(outcome, ReleasekitError):
            # Each raises one of its own.
            raise outcome.with_() from outcome.__cause__
        return outcome

    async def _certified(self) -> Identity | ReleasekitError:
        """A failure is handed on, since this task would end all that is open with it."""
        from releasekit.provenance.certificate import certify  # noqa: PLC0415 - cryptography

        try:
            token = await self._tokens.fetch(SIGSTORE)
            return await certify(self._http, self._instance.authority, token, redact=self._redact)
        except PackageError as error:
            return explain(error)
        except ReleasekitError as error:
            return error

    def _is_over(self, certifying: asyncio.Task[Identity | ReleasekitError]) -> bool:
        if not certifying.done():
            return False
        outcome = None if certifying.cancelled() else certifying.result()
        if outcome is None or isinstance(outcome, ReleasekitError):
            return True
        return outcome.ends_s - self._clock() < _RENEWED_BEFORE_S

    def _forget(self, identity: Identity) -> None:
        certifying = self._certifying
        if certifying is not None and certifying.done() and certifying.result() is identity:
            self._certifying = None
