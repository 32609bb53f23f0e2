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
    AttestationAddress,
    FileVerdict,
    LocalFile,
    LocalFolder,
    ReleaseStatements,
    Signers,
    Verified,
    count_unnamed,
    find_attestations,
    find_filename,
    parse_bundles,
    read_bundles,
    read_file_at,
    verify_file,
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
                        find_attestations(require_safe(place.text, name="files"))
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

    def _load_given(self) -> ReleaseStatements | None:
        """What `--bundle` names, in place of what lies elsewhere. Blocks."""
        path = self.inputs.bundle
        if path is None:
            return None
        try:
            return self._judge(path, read_bundles(path))
        except FileNotFoundError as error:
            raise PathError(f"--bundle: {path} is not there; write its path") from error
        except ValueError as error:
            raise PathError(
                f"--bundle: {path} {error}; write the path of a file of attestations"
            ) from error

    def _verify_path(self, place: Path, given: ReleaseStatements | None) -> list[FileVerdict]:
        """Blocks."""
        if not place.is_dir():
            file = read_file_at(place, place.name, alone=given is not None)
            return [verify_file(file, self.signers, given or ReleaseStatements())]
        folder = LocalFolder.read(place)
        release = self._release(folder) if given is None else given
        files = list(folder.list_files(alone=given is not None))
        found = [verify_file(each, self.signers, release) for each in files]
        missing = [FileVerdict(name, reason=reason) for name, reason in folder.list_missing()]
        if left := count_unnamed(release, files):
            _say(self.session, f"not here, and not verified: {left} more of what is signed")
        return [*found, *missing, *(release.broken if given is None else ())]

    def _release(self, folder: LocalFolder) -> ReleaseStatements:
        """What is said about the whole release."""
        sound: list[Verified] = []
        broken: list[FileVerdict] = []
        for path in folder.statements:
            try:
                found = self._judge(path, read_bundles(path))
            except FileNotFoundError:
                found = ReleaseStatements(
                    broken=(FileVerdict(path.name, reason="it is a link to nothing"),)
                )
            except ValueError as error:
                found = ReleaseStatements(broken=(FileVerdict(path.name, reason=f"it {error}"),))
            sound += found.sound
            broken += found.broken
        return ReleaseStatements(tuple(sound), tuple(broken))

    def _judge(self, path: Path, bundles: Sequence[Bundle]) -> ReleaseStatements:
        sound, broken = [], []
        for number, each in enumerate(bundles, start=1):
            try:
                sound.append(self.signers.verify(each))
            except NotVerified as error:
                which = f"{path.name}:{number}" if len(bundles) > 1 else path.name
                broken.append(FileVerdict(which, reason=str(error)))
        return ReleaseStatements(tuple(sound), tuple(broken))

    async def _verify_url(
        self, url: str, into: Path, given: ReleaseStatements | None
    ) -> FileVerdict:
        place = require_safe(url, name="files")
        address = find_attestations(place) if given is None else None
        name = find_filename(place)
        try:
            digests = await self._download(place, into)
            bundles = tuple(await self._fetch_attestations(address)) if address else ()
        except (PackageError, ValueError) as error:
            return FileVerdict(name, reason=str(error))
        return verify_file(
            LocalFile(name, digests, bundles), self.signers, given or ReleaseStatements()
        )

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

    async def _fetch_attestations(self, address: AttestationAddress) -> list[Bundle]:
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
            return await asyncio.to_thread(parse_bundles, answer.content)
        except ValueError as error:
            raise NotVerified(f"the answer of {url} {error}") from error


def _outcome_line(found: FileVerdict) -> str:
    verified = found.verified
    if verified is None:
        return f"FAILED {found.name}: {found.reason}{mark(Problem.NOT_VERIFIED)}"
    claims = verified.claims
    where = claims.repository.removeprefix(f"{SERVER}/")
    who = f"{where} {claims.workflow} {claims.ref} {claims.event} {claims.commit}"
    return f"ok {found.name} sha256:{found.sha256} {who}, log entry {verified.log_index}"
