"""The release statement: one attestation over all files of a release, whatever their ecosystems, in
a file of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import Struct

from releasekit.aio import gather_all, uncancellable
from releasekit.attested import ReleaseStatement
from releasekit.errors import BuildFailed, ConfigError, PackageError, Rejected, Transient
from releasekit.fields import replace
from releasekit.host import durable
from releasekit.host.forges import page_of_attestations
from releasekit.http.client import RetryPolicy, retry
from releasekit.problems import Problem
from releasekit.provenance.bundle import Bundle
from releasekit.provenance.certificate import signer_of
from releasekit.provenance.statement import MAX_SUBJECTS, SLSA, Subject, slsa
from releasekit.text.json_text import parse_json

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence
    from pathlib import Path

    import httpx

    from releasekit.http.credentials import Secret
    from releasekit.http.github import GitHub
    from releasekit.model import Artifact
    from releasekit.provenance.job import Job


_MAX_BYTES: Final = 64 * 1024 * 1024
# Both end the run, which must not wait for long, and the next run can make up for it.
BRIEF: Final = RetryPolicy(max_retries=3, deadline_s=60.0)


class Signs(Protocol):
    """What of a `Signer` is needed here."""

    @property
    def log_url(self) -> str: ...

    async def sign(self, statement: bytes) -> Bundle:
        """One attempt. Raises Transient, Denied, Rejected."""
        ...


def subjects_of(artifacts: Iterable[Artifact]) -> tuple[Subject, ...]:
    """Every file once, by name: its filename, behind as many of the directories above it as tell it
    from other files of that name. The same bytes under the same name are one file.
    """
    found: dict[str, dict[str, Path]] = {}
    for each in artifacts:
        found.setdefault(each.filename, {}).setdefault(each.sha256, each.path)
    subjects = [
        Subject(name=name, digests={"sha256": sha256})
        for files in found.values()
        for sha256, name in zip(files, _names(files.values()), strict=True)
    ]
    return tuple(sorted(subjects, key=lambda each: (each.name, each.digests["sha256"])))


def _names(paths: Collection[Path]) -> list[str]:
    """As short as they may be."""
    depths = range(1, 1 + max(len(path.parts) for path in paths))
    apart = (each for each in depths if len({path.parts[-each:] for path in paths}) == len(paths))
    depth = next(apart, depths[-1])
    return ["/".join(path.parts[-depth:]) for path in paths]


async def sign_release(
    artifacts: Iterable[Artifact],
    job: Job,
    signer: Signs,
    path: Path,
    *,
    seals: Path,
    seal: Callable[[bytes], str],
    policy: RetryPolicy = BRIEF,
) -> tuple[ReleaseStatement, Sequence[Bundle]]:
    """Sign what is not signed already: what `path` holds of an earlier run of the same workflow is
    kept where it is about the same files, and where `seals` has its `seal`. There is at least one
    of them.

    Raises PackageError, with `path` as it was: Transient, Denied or Rejected, or that it cannot be
    written.
    """
    subjects = subjects_of(artifacts)
    parts = [subjects[at : at + MAX_SUBJECTS] for at in range(0, len(subjects), MAX_SUBJECTS)]
    kept = await asyncio.to_thread(_kept, path, job, seals, seal)

    async def signed(part: Sequence[Subject]) -> Bundle:
        if (stored := kept.get(_told(part))) is not None:
            return stored
        return await retry(partial(signer.sign, slsa(part, job)), policy)

    bundles = await gather_all(map(signed, parts))
    lines = [bundle.text + b"\n" for bundle in bundles]
    is_new = not all(_told(part) in kept for part in parts)
    sealed = "".join(f"{seal(bundle.text)}\n" for bundle in bundles)
    await uncancellable(asyncio.to_thread(_write, path, b"".join(lines), seals, sealed.encode()))
    statement = ReleaseStatement(
        path=path,
        subjects=len(subjects),
        attestations=tuple(bundle.at(path, log_url=signer.log_url) for bundle in bundles),
        kept=not is_new,
    )
    return statement, bundles


def _write(path: Path, data: bytes, seals: Path, sealed: bytes) -> None:
    """And nothing else that may be there, as GitHub is sent all of it. Without seals the next run
    signs anew.
    """
    try:
        durable.make_directory(path.parent)
        durable.replace(path, data)
    except OSError as error:
        raise BuildFailed(
            f"{path}: cannot be written: {error.strerror}",
            hint="Make room, or move away what is in the way.",
            problem=Problem.NO_PLACE_TO_BUILD,
        ) from error
    with contextlib.suppress(OSError):
        durable.make_directory(seals.parent)
        durable.replace(seals, sealed)


def stored_bundles(path: Path) -> tuple[Bundle, ...]:
    """What `sign_release` has written; blocks. Raises OSError, and ValueError for anything else."""
    lines = durable.read_file(path, max_bytes=_MAX_BYTES).splitlines()
    return tuple(Bundle.parse(line) for line in lines)


_Told = frozenset[tuple[str, str]]


def _told(subjects: Iterable[Subject]) -> _Told:
    """Names and digests."""
    return frozenset((each.name, each.digests.get("sha256", "")) for each in subjects)


def _kept(path: Path, job: Job, seals: Path, seal: Callable[[bytes], str]) -> dict[_Told, Bundle]:
    """Of each statement what it is about; whatever else the file holds is signed anew. Where it
    lies, others may write, and anyone can make a certificate that names our job.
    """
    found: dict[_Told, Bundle] = {}
    try:
        sealed = set(durable.read_file(seals, max_bytes=_MAX_BYTES).decode().split())
        for bundle in stored_bundles(path):
            is_sealed = seal(bundle.text) in sealed
            if is_sealed and bundle.predicate_type == SLSA and signer_of(bundle).is_of(job):
                found[_told(bundle.subjects)] = bundle
    except (OSError, ValueError):
        return {}
    return found


_MAX_DIGITS: Final = 20
_AGAIN: Final = "Run the job again: what is signed is kept, and sent."
_PERMISSION: Final = "Give the job the permission `attestations: write`."
# What else a refusal is about; its own words come first.
_CURES: Final = {
    401: "`forge-token` has to be a token of this GitHub; leave it out for the job's own.",
    403: f"{_PERMISSION} For private repositories it takes GitHub Enterprise Cloud.",
    404: f"{_PERMISSION} A GitHub Enterprise Server may have no attestations.",
}


async def send_to_github(
    statement: ReleaseStatement,
    bundles: Sequence[Bundle],
    job: Job,
    github: GitHub,
    *,
    policy: RetryPolicy = BRIEF,
) -> ReleaseStatement:
    """`statement` with the page on which GitHub shows it, or with a note that says why there is
    none; a release fails for want of neither.

    https://docs.github.com/en/rest/repos/attestations#create-an-attestation
    """
    if github.token is None:
        return replace(statement, note=f"GitHub was not sent it: there is no token. {_PERMISSION}")
    try:
        kept = _Kept(github, github.token, github.at(f"{job.repository}/attestations"))
        send = kept.send_unless_there if statement.kept else kept.send
        numbers = await gather_all(retry(partial(send, each), policy) for each in bundles)
    except (ConfigError, PackageError) as error:
        cure = _AGAIN if isinstance(error, Transient) else error.hint
        return replace(statement, note=f"GitHub has not taken it: {error}. {cure}".rstrip())
    # Each has a page; several, or one of an unknown number, are on the one that lists all.
    number = numbers[0] if len(numbers) == 1 else ""
    return replace(statement, url=page_of_attestations(job.repository_url, number))


class _Kept(Struct, frozen=True):
    """The attestations that GitHub keeps at `place`. Each call is one attempt. Raises Transient,
    Denied, Rejected.
    """

    github: GitHub
    token: Secret
    place: httpx.URL

    async def send(self, bundle: Bundle) -> str:
        """The number that it gets; empty where GitHub tells none."""
        content = b'{"bundle":%s}' % bundle.text
        document = _document(await self._ask("POST", self.place, content))
        number = str(document.get("id")) if isinstance(document, dict) else ""
        is_number = number.isascii() and number.isdigit() and len(number) < _MAX_DIGITS
        return number if is_number else ""

    async def send_unless_there(self, bundle: Bundle) -> str:
        """The run that signed it may have come as far as that. GitHub tells no numbers here.

        https://docs.github.com/en/rest/repos/attestations#list-attestations
        """
        digest = bundle.subjects[0].digests.get("sha256", "")
        page = self.place.copy_with(path=f"{self.place.path}/sha256:{digest}")
        found = _document(await self._ask("GET", page, b"", missing=True))
        if isinstance(found, dict) and _has(found.get("attestations"), bundle):
            return ""
        return await self.send(bundle)

    async def _ask(
        self, method: str, url: httpx.URL, content: bytes, *, missing: bool = False
    ) -> httpx.Response:
        try:
            return await self.github.send_once(method, url, content=content, missing=missing)
        except Rejected as error:
            raise error.with_(hint=_CURES.get(error.status, "")) from error.__cause__


def _document(response: httpx.Response) -> object:
    """None for what is not JSON: there it is, whatever GitHub says of it."""
    try:
        return parse_json(response.content)
    except ValueError:
        return None


def _has(attestations: object, bundle: Bundle) -> bool:
    """Whether one of a list from GitHub is this one: no other one has its signature."""
    envelope = bundle.document["dsseEnvelope"]
    for each in attestations if isinstance(attestations, list) else ():
        match each:
            case {"bundle": {"dsseEnvelope": found}} if found == envelope:
                return True
    return False
