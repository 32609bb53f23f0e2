"""Where the files of a package come from, signed before any of them is sent, and never twice."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct, field

from releasekit.aio import gather_all, in_time, uncancellable
from releasekit.attested import bundle_name, unfinished_name
from releasekit.ecosystems.shared.artifacts import no_place
from releasekit.errors import Transient
from releasekit.fields import replace
from releasekit.host import durable
from releasekit.http.traffic import wait_for_turn
from releasekit.problems import Problem
from releasekit.release.spending import ATTEST_SLOTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from releasekit.ecosystems.interface import Attesting, Target
    from releasekit.model import Artifact
    from releasekit.provenance.bundle import Bundle
    from releasekit.provenance.job import Job
    from releasekit.release.package_run import PackageRun
    from releasekit.state.journal import Journal


class Signing(Protocol):
    """What signs in this run, and the job in whose name."""

    @property
    def job(self) -> Job: ...

    @property
    def log_url(self) -> str: ...

    async def sign(self, statement: bytes) -> Bundle:
        """One attempt. Raises Transient, Denied, Rejected."""
        ...

    def signed(self, artifact: Artifact) -> bool:
        """Whether what an earlier run has left with it is of this very file, and of this job's
        repository and workflow; blocks.
        """
        ...


class Attestations(Struct):
    """Those of the files of packages. `limit_s` is how long one attempt at a package may take."""

    targets: Mapping[str, Target]
    signing: Signing | None
    journal: Journal
    limit_s: float
    # A package has several files.
    _slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(ATTEST_SLOTS))

    async def sign(self, run: PackageRun) -> None:
        """Sign what has no attestation of this job yet, and keep it beside the files. Raises
        PackageError; what was signed by then is kept all the same.
        """
        attesting, signing = self.targets[run.id.ecosystem].attesting, self.signing
        assert signing is not None  # noqa: S101 (the plan says so)
        assert attesting is not None  # noqa: S101 (likewise)
        before = run.artifacts
        signed = dict(enumerate(before))

        async def sign(place: int, artifact: Artifact) -> None:
            async with wait_for_turn(self._slots, "slot"):
                signed[place] = await self._signed(run, artifact, attesting, signing)

        try:
            async with in_time(asyncio.timeout(self.limit_s)):
                await gather_all(sign(place, each) for place, each in enumerate(before))
        except TimeoutError as error:
            raise Transient(
                f"{run.planned.package}: it was not signed within {self.limit_s:g} s",
                problem=Problem.NOT_SIGNED,
            ) from error
        finally:
            # Of several files, some may have been signed before another one failed.
            run.artifacts = tuple(signed.values())
            if run.artifacts != before:
                self.journal.attested(run.planned.package, run.artifacts)

    async def _signed(
        self, run: PackageRun, artifact: Artifact, attesting: Attesting, signing: Signing
    ) -> Artifact:
        if artifact.attestation is not None and await asyncio.to_thread(signing.signed, artifact):
            return artifact
        package = run.planned.package
        statement = await uncancellable(
            asyncio.to_thread(attesting.statement, package, artifact, signing.job)
        )
        bundle = await signing.sign(statement)
        # What the log has is not to be signed a second time for a run that is stopped just now.
        return await uncancellable(asyncio.to_thread(_kept, artifact, bundle, signing.log_url))


def _kept(artifact: Artifact, bundle: Bundle, log_url: str) -> Artifact:
    """With its bundle beside it, on the disk; blocks."""
    path = artifact.path.with_name(bundle_name(artifact.filename))
    temporary = artifact.path.with_name(unfinished_name(artifact.filename))
    try:
        durable.replace(path, bundle.text, temporary=temporary)
    except OSError as error:
        raise no_place(error) from error
    return replace(artifact, attestation=bundle.at(path, log_url=log_url))
