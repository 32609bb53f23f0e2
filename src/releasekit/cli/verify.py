"""`releasekit verify`: files on this machine or on a registry, held against their attestations."""

from __future__ import annotations

import asyncio
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import httpx
from msgspec import Struct

from releasekit.aio import Group
from releasekit.cli.commands.verify import VerifyInputs
from releasekit.cli.interruption import Interruption
from releasekit.cli.request_log import request_logger
from releasekit.errors import ConfigError, PackageError, PathError, Rejected
from releasekit.host.forges import SERVER
from releasekit.host.scratch import scratch
from releasekit.http.answers import check
from releasekit.http.client import RetryPolicy, download, http_client, request_with_retry, retry
from releasekit.http.identity import GITHUB
from releasekit.http.origins import require_safe
from releasekit.http.traffic import collect
from releasekit.problems import Problem, mark
from releasekit.provenance.certificate import NotVerified
from releasekit.provenance.verify_files import (
    ALGORITHMS,
    Address,
    CheckedFile,
    Release,
    SignedFile,
    SignedFolder,
    Signers,
    Verified,
    address_of,
    bundles_in,
    bundles_of,
    file_at,
    filename_of,
    outcome,
    unnamed,
)
from releasekit.text.escape import log_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from releasekit.cli.session import Session
    from releasekit.config.config import Config
    from releasekit.provenance.bundle import Bundle

# PyPI takes files of 10 GB at most, and npm less. https://docs.pypi.org/project-management/storage-limits/
MAX_FILE_BYTES: Final = 10 * 1024**3
_MAX_ATTESTATION_BYTES: Final = 4 * 1024 * 1024
# https://git-scm.com/docs/git-check-ref-format
_REF: Final = re.compile(r"refs(?:/[^\x00-\x20\x7f~^:?*\[\\/]+){2,}")
_EVENT: Final = re.compile(r"[a-z_]+")


async def run(config: Config, session: Session) -> int:
    """One line for each file; 0 where all of them are what the repository's workflow signed."""
    inputs = config.own(VerifyInputs)
    _check_signer(inputs.repository, inputs.ref, inputs.event)
    if not inputs.files:
        raise ConfigError(
            "there is nothing to verify: write releasekit verify PATH… or URL… --repository "
            "OWNER/NAME",
            hint="releasekit verify --help-all lists the flags.",
            problem=Problem.COMMAND_LINE,
        )
    interruption = Interruption("cancelled; nothing was changed")
    with interruption, collect(request_logger(session, verbose=config.verbose, mode=config.mode)):
        async with Group() as group:
            into = await group.enter(scratch(session.credentials.environment))
            http = await group.enter(http_client())
            if inputs.bundle is None:
                # Nothing is told of the first file where the last is a mistake.
                for place in inputs.files:
                    if not isinstance(place, Path):
                        address_of(require_safe(place.text, name="files"))
            signers = await asyncio.to_thread(
                _load_signers, inputs, config.trust_config, session, into / "keys"
            )
            retries = config.retry_policy(redact=session.credentials.redact)
            return await _Question(inputs, retries, session, signers, http, into).run()


def _check_signer(repository: str, ref: str, event: str) -> None:
    if not repository:
        raise ConfigError(
            "--repository is missing: write --repository OWNER/NAME, the repository whose "
            "workflows must have signed the files, or of GitLab https://gitlab.com/GROUP/PROJECT",
            problem=Problem.COMMAND_LINE,
        )
    _check_ref(ref)
    if event and not _EVENT.fullmatch(event):
        raise ConfigError(
            f'--event = "{event[:100]}" is not the event of a run: write its name, like push',
            problem=Problem.COMMAND_LINE,
        )


def _check_ref(ref: str) -> None:
    if not ref or _REF.fullmatch(ref):
        return
    if _REF.fullmatch(f"refs/heads/{ref}") and not ref.startswith("refs/"):
        # Who may make a tag need not be who may push to the branch of that name.
        raise ConfigError(
            f'--ref = "{ref[:100]}" may be a branch or a tag: write refs/heads/{ref[:100]} or '
            f"refs/tags/{ref[:100]}",
            problem=Problem.COMMAND_LINE,
        )
    raise ConfigError(
        f'--ref = "{ref[:100]}" is not the ref of a run: write one like refs/heads/main or '
        "refs/tags/v1.2",
        problem=Problem.COMMAND_LINE,
    )


def _load_signers(
    inputs: VerifyInputs, trust_config: Path | None, session: Session, scratch: Path
) -> Signers:
    """Blocks. For files at hand, nothing is asked of the network."""
    try:
        from releasekit.provenance.verifier import check, load_keys  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise ConfigError(
            "verify takes Sigstore's client, which is not installed: pip install "
            "'releasekit-action[verify]'",
            problem=Problem.TOOL_MISSING,
        ) from error
    is_at_hand = all(isinstance(place, Path) for place in inputs.files)
    keys = load_keys(
        trust_config, scratch=None if is_at_hand else scratch, tell=partial(_say, session)
    )
    # A GitLab signs what its jobs are in its own name; the page of a project begins with that.
    server = inputs.repository.partition("://")[2].partition("/")[0]
    return Signers(
        partial(check, keys=keys, issuer=f"https://{server}" if server else GITHUB),
        inputs.repository,
        inputs.workflow,
        ref=inputs.ref,
        event=inputs.event,
    )


def _say(session: Session, line: str) -> None:
    print(log_line(session.redacted.text(line)), file=session.out, flush=True)


class _Question(Struct, frozen=True):
    """What was asked for in one command."""

    inputs: VerifyInputs
    retries: RetryPolicy
    session: Session
    signers: Signers
    http: httpx.AsyncClient
    into: Path

    async def run(self) -> int:
        given = await asyncio.to_thread(self._load_given)
        outcomes = list(given.broken) if given else []
        for each in outcomes:
            _say(self.session, _outcome_line(each))
        for number, place in enumerate(self.inputs.files):
            if isinstance(place, Path):
                found = await asyncio.to_thread(self._verify_path, place, given)
            else:
                found = [await self._verify_url(place.text, self.into / str(number), given)]
            for each in found:
                _say(self.session, _outcome_line(each))
            outcomes += found
        bad = sum(each.verified is None for each in outcomes)
        _say(self.session, f"{len(outcomes) - bad} of {len(outcomes)} verified")
        if bad:
            print(f"  {Problem.NOT_VERIFIED.url}", file=self.session.out, flush=True)
        return 1 if bad else 0

    def _load_given(self) -> Release | None:
        """What `--bundle` names, in place of what lies elsewhere. Blocks."""
        path = self.inputs.bundle
        if path is None:
            return None
        try:
            return self._judge(path, bundles_in(path))
        except FileNotFoundError as error:
            raise PathError(f"--bundle: {path} is not there; write its path") from error
        except ValueError as error:
            raise PathError(
                f"--bundle: {path} {error}; write the path of a file of attestations"
            ) from error

    def _verify_path(self, place: Path, given: Release | None) -> list[CheckedFile]:
        """Blocks."""
        if not place.is_dir():
            file = file_at(place, place.name, alone=given is not None)
            return [outcome(file, self.signers, given or Release())]
        folder = SignedFolder.at(place)
        release = self._release(folder) if given is None else given
        files = list(folder.files(alone=given is not None))
        found = [outcome(each, self.signers, release) for each in files]
        missing = [CheckedFile(name, reason=reason) for name, reason in folder.missing()]
        if left := unnamed(release, files):
            _say(self.session, f"not here, and not verified: {left} more of what is signed")
        return [*found, *missing, *(release.broken if given is None else ())]

    def _release(self, folder: SignedFolder) -> Release:
        """What is said about the whole release."""
        sound: list[Verified] = []
        broken: list[CheckedFile] = []
        for path in folder.statements:
            try:
                found = self._judge(path, bundles_in(path))
            except FileNotFoundError:
                found = Release(broken=(CheckedFile(path.name, reason="it is a link to nothing"),))
            except ValueError as error:
                found = Release(broken=(CheckedFile(path.name, reason=f"it {error}"),))
            sound += found.sound
            broken += found.broken
        return Release(tuple(sound), tuple(broken))

    def _judge(self, path: Path, bundles: Sequence[Bundle]) -> Release:
        sound, broken = [], []
        for number, each in enumerate(bundles, start=1):
            try:
                sound.append(self.signers.verified(each))
            except NotVerified as error:
                which = f"{path.name}:{number}" if len(bundles) > 1 else path.name
                broken.append(CheckedFile(which, reason=str(error)))
        return Release(tuple(sound), tuple(broken))

    async def _verify_url(self, url: str, into: Path, given: Release | None) -> CheckedFile:
        place = require_safe(url, name="files")
        address = address_of(place) if given is None else None
        name = filename_of(place)
        try:
            digests = await self._download(place, into)
            bundles = tuple(await self._fetch_attestations(address)) if address else ()
        except (PackageError, ValueError) as error:
            return CheckedFile(name, reason=str(error))
        return outcome(SignedFile(name, digests, bundles), self.signers, given or Release())

    async def _download(self, url: httpx.URL, into: Path) -> dict[str, str]:
        async def attempt() -> dict[str, str]:
            found = await download(
                self.http,
                url,
                into,
                headers={},
                max_bytes=MAX_FILE_BYTES,
                algorithms=ALGORITHMS,
            )
            if isinstance(found, httpx.Response):
                check(found, str(url))
                raise Rejected(
                    f"{url}: HTTP {found.status_code}, and no file", problem=Problem.STRANGE_ANSWER
                )
            return dict(found.digests)

        digests = await retry(attempt, self.retries)
        await asyncio.to_thread(into.unlink)
        return digests

    async def _fetch_attestations(self, address: Address) -> list[Bundle]:
        url = address.attestations
        answer = await request_with_retry(
            self.http,
            "GET",
            url,
            headers={"Accept": address.accept},
            policy=self.retries,
            max_bytes=_MAX_ATTESTATION_BYTES,
        )
        if answer.status_code in {404, 410}:
            raise NotVerified(f"there is no attestation about it at {url}")
        check(answer, str(url))
        try:
            return await asyncio.to_thread(bundles_of, answer.content)
        except ValueError as error:
            raise NotVerified(f"the answer of {url} {error}") from error


def _outcome_line(found: CheckedFile) -> str:
    verified = found.verified
    if verified is None:
        return f"FAILED {found.name}: {found.reason}{mark(Problem.NOT_VERIFIED)}"
    claims = verified.claims
    where = claims.repository.removeprefix(f"{SERVER}/")
    who = f"{where} {claims.workflow} {claims.ref} {claims.event} {claims.commit}"
    return f"ok {found.name} sha256:{found.sha256} {who}, log entry {verified.log_index}"
