"""The three steps of a package: build, upload, confirm; and what each answer means."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from releasekit.aio import all_of
from releasekit.errors import (
    BuildFailed,
    Denied,
    DigestMismatch,
    PackageError,
    Rejected,
    ReleasekitError,
    Transient,
    Undecided,
)
from releasekit.model import Event, Outcome, Span
from releasekit.plan.decision import compare, mismatch
from releasekit.plan.make import read_manifest
from releasekit.state.pins import EphemeralPin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from releasekit.config.config import Config
    from releasekit.ecosystems.interface import Ecosystem, Registry, Target
    from releasekit.model import Artifact, Package, PackageId, Phase
    from releasekit.release.life import Life
    from releasekit.state.journal import Journal

FIRST_PAUSE_S = 0.25
LONGEST_PAUSE_S = 5.0
# How long to look for a package whose last upload ended without an answer.
DOUBT_WINDOW_S = 20.0
LAST_LOOK_S = 0.75
BY_HAND = "It is published, and no later run does this again: do by hand what is left of it."


class Steps:
    """Effects only: every step may be called again after any failure, and after a restart."""

    def __init__(
        self,
        targets: Mapping[str, Target],
        *,
        config: Config,
        journal: Journal,
        watch: Callable[[Event], None],
        along: Callable[[Life], Sequence[Life]],
    ) -> None:
        self._targets = targets
        self._config = config
        self._journal = journal
        self._watch = watch
        self._along = along
        # Who goes along with whom is decided, and done, one upload after the other.
        self._turns = {name: asyncio.Lock() for name in targets}
        self._began = asyncio.get_running_loop().time()

    def now_s(self) -> float:
        """Seconds since the run started."""
        return asyncio.get_running_loop().time() - self._began

    async def build(self, lives: Sequence[Life], versions: Mapping[str, str]) -> None:
        """Build one batch with its manifests pinned to `versions`.

        Raises BuildFailed when the batch is one package; else each life keeps its own error, for
        its upload to raise.
        """
        packages = [life.step.package for life in lives]
        name = packages[0].id.ecosystem
        ecosystem = self._targets[name].ecosystem
        pins = pinned(ecosystem, packages, versions)
        config = self._config
        with self._span("build", *lives):
            with EphemeralPin(config.state_directory, pins, ecosystem=name, root=config.root):
                built = await self._build(ecosystem, packages)
            for life in lives:
                answer = built[life.id]
                if isinstance(answer, BuildFailed):
                    life.error = answer
                    continue
                life.artifacts = answer
                await self._journal.built(
                    life.step.package, answer, fingerprint=life.step.fingerprint
                )
            if len(lives) == 1 and lives[0].error is not None:
                raise lives[0].error

    async def _build(
        self, ecosystem: Ecosystem, packages: Sequence[Package]
    ) -> Mapping[PackageId, tuple[Artifact, ...] | BuildFailed]:
        into = self._config.state_directory / "dist" / packages[0].id.ecosystem
        limit_s = self._config.task_timeout_s
        try:
            async with asyncio.timeout(limit_s):
                return await ecosystem.build(packages, into)
        except TimeoutError:
            error = BuildFailed(
                f"the build did not end within {limit_s:g} s", hint="Raise `task-timeout`."
            )
            return {package.id: error for package in packages}

    async def upload(self, lives: Sequence[Life]) -> None:
        """Send what the registry lacks of packages that go out together, usually of one; returns
        too when only `confirm` can tell how it went.

        Raises Transient for another attempt, any other PackageError for the last word.
        """
        for life in lives:
            if life.error is not None:
                raise _spoilt(life, lives)
        for life in lives:
            life.attempts += 1
        try:
            with self._span("upload", *lives):
                await self._send(lives)
        except PackageError as error:
            if isinstance(error, Transient) and lives[0].attempts <= self._config.max_retries:
                raise
            for life in lives:
                life.error = error
            if isinstance(error, DigestMismatch):
                raise
            there = [await self._there(life) for life in lives]
            if not (all(there) or any(life.doubt for life in lives)):
                raise
            if self._config.gate == "accepted" and not all(there):
                raise Undecided(lives[0].doubt) from error

    async def _there(self, life: Life) -> bool:
        """A registry may refuse what it has: npmjs answers 403 to a version that is there."""
        try:
            life.published = await self._registry(life).lookup(life.step.package)
            self._see(life)
        except DigestMismatch as error:
            life.error = error
            raise
        except Transient as silence:
            if life.step.begun and not life.doubt:
                life.doubt = f"an earlier run had begun to upload it, and now: {silence}"
        except PackageError:
            pass  # the upload's own error tells more
        return life.visible

    async def _send(self, lives: Sequence[Life]) -> None:
        target = self._targets[lives[0].id.ecosystem]
        if target.deployment is None or target.whole:
            await self._send_missing(target, lives)
            return
        async with self._turns[lives[0].id.ecosystem]:
            along = self._along(lives[0])
            try:
                await self._send_missing(target, lives, along)
            except Rejected as error:
                if not along or isinstance(error, Denied):
                    raise
                # One of them is refused, and only that one may fail of it.
                await self._send_missing(target, lives)

    async def _send_missing(
        self, target: Target, lives: Sequence[Life], along: Sequence[Life] = ()
    ) -> None:
        release: dict[Package, Sequence[Artifact]] = {}
        sending = []
        for life in lives:
            if life.attempts > 1 or life.doubt:
                life.published = await target.registry.lookup(life.step.package)
            if not life.sent and (missing := self._missing(life)):
                release[life.step.package] = missing
                sending.append(life)
        if sending:
            release |= {life.step.package: life.artifacts for life in along}
            sending += along
        await self._intend(target.registry.url, sending)
        doubts = [life.doubt for life in sending]
        for life in sending:
            life.doubt = "the upload was interrupted before the registry answered"
        try:
            await self._deliver(target, release)
        except PackageError as error:
            ambiguous = isinstance(error, Transient) and error.ambiguous
            for life, doubt in zip(sending, doubts, strict=True):
                life.doubt = str(error) if ambiguous else doubt
                if life in along and not life.doubt:
                    # Nothing of it was sent, and its own turn may never come.
                    self._journal.outcome(life.step.package, Outcome.FAILED, str(error))
            raise
        for life in sending:
            life.doubt, life.sent = "", True

    async def _intend(self, url: str, lives: Sequence[Life]) -> None:
        intents = []
        for life in lives:
            digests = {artifact.filename: artifact.sha256 for artifact in life.artifacts}
            intents.append(self._journal.intent(life.step.package, registry=url, digests=digests))
        await all_of(intents)

    async def _deliver(self, target: Target, release: Mapping[Package, Sequence[Artifact]]) -> None:
        limit_s = self._config.task_timeout_s
        try:
            async with asyncio.timeout(limit_s):
                if target.deployment is not None and release:
                    await target.deployment.deploy(release)
                    return
                for package, artifacts in release.items():
                    await target.registry.upload(package, artifacts)
        except TimeoutError as error:
            names = ", ".join(str(package.id) for package in release)
            raise Transient(
                f"{target.registry.url} did not take {names} within {limit_s:g} s", ambiguous=True
            ) from error

    async def confirm(self, life: Life) -> None:
        """Ask the registry until it shows all our bytes.

        Raises DigestMismatch when it shows others, Undecided when it does not within the time for
        a package (`task-timeout`; less when the upload's own answer was lost).
        """
        registry = self._registry(life)
        patience_s = min(self._config.task_timeout_s, DOUBT_WINDOW_S if life.doubt else 1e9)
        deadline, pause_s = self.now_s() + patience_s, FIRST_PAUSE_S
        try:
            with self._span("confirm", life):
                while trouble := await self.look(life):
                    if self.now_s() + pause_s > deadline:
                        raise Undecided(
                            f"{registry.url}: {trouble}, {patience_s:g} s after the upload"
                            f"{life.doubt and f', which had ended with: {life.doubt}'}",
                            hint="Run the same command again later: it asks the registry first.",
                        )
                    await asyncio.sleep(pause_s)
                    pause_s = min(pause_s * 1.5, LONGEST_PAUSE_S)
        except PackageError as error:
            life.error = error
            raise

    def _owed(self, life: Life) -> BuildFailed | None:
        """What follows what this run has published; that of an earlier run is not done again."""
        target = self._targets[life.id.ecosystem]
        if target.follow_up is None or not (life.sent or life.doubt):
            return None
        due = target.follow_up.due(life.step.package)
        if not due:
            return None
        return BuildFailed(f"{due} did not run to the end, because this run ended", hint=BY_HAND)

    async def follow_up(self, life: Life) -> None:
        """What is owed; whatever becomes of it, the package stays published."""
        target = self._targets[life.id.ecosystem]
        if target.follow_up is None or life.owed is None:
            return
        limit_s = self._config.task_timeout_s
        try:
            with self._span("follow-up", life):
                async with asyncio.timeout(limit_s):
                    await target.follow_up.follow_up(life.step.package)
        except TimeoutError:
            due = target.follow_up.due(life.step.package)
            life.owed = BuildFailed(f"{due} did not end within {limit_s:g} s", hint=BY_HAND)
        except BuildFailed as error:
            error.hint = f"{BY_HAND} {error.hint}".rstrip()
            life.owed = error
        else:
            life.owed = None

    async def look(self, life: Life) -> str:
        """One look at the registry: sets `life.visible`, or says what stands in the way."""
        try:
            life.published = await self._registry(life).lookup(life.step.package)
        except Transient as error:
            return str(error)
        missing = self._see(life)
        return f"{missing[0].filename} is not visible" if missing else ""

    async def last_look(self, life: Life) -> None:
        """For a package whose run is being ended before it could be confirmed."""
        with contextlib.suppress(TimeoutError, PackageError):
            async with asyncio.timeout(LAST_LOOK_S):
                await self.look(life)

    def _see(self, life: Life) -> list[Artifact]:
        """What of ours the last answer does not show; sets `life.visible`, and what follows it."""
        missing = self._missing(life)
        life.visible = not missing
        if life.visible:
            life.owed = self._owed(life)
        return missing

    def _missing(self, life: Life) -> list[Artifact]:
        comparison = compare(life.artifacts, life.published)
        if comparison.differing:
            raise DigestMismatch(mismatch(life.artifacts, life.published, comparison.differing[0]))
        return [a for a in life.artifacts if a.filename in comparison.missing]

    def _registry(self, life: Life) -> Registry:
        return self._targets[life.id.ecosystem].registry

    @contextlib.contextmanager
    def _span(self, phase: Phase, *lives: Life) -> Iterator[None]:
        """Time one attempt, for the report, the journal and whoever watches."""
        node, attempt = f"{phase} {lives[0].id}", max(lives[0].attempts, 1)
        start_s = self.now_s()
        self._journal.step_started(node, attempt=attempt)
        for life in lives:
            self._watch(
                Event(package=life.id, state="started", at_s=start_s, phase=phase, attempt=attempt)
            )
        trouble = ""
        try:
            yield
        except BaseException as error:
            trouble = str(error) or type(error).__name__
            raise
        finally:
            end_s = self.now_s()
            self._journal.step_ended(
                node, attempt=attempt, duration_s=end_s - start_s, error=trouble
            )
            for life in lives:
                life.spans.append(Span(phase=phase, start_s=start_s, end_s=end_s))
                self._watch(
                    Event(
                        package=life.id,
                        state="ended",
                        at_s=end_s,
                        phase=phase,
                        attempt=attempt,
                        detail=trouble,
                    )
                )


def _spoilt(failed: Life, lives: Sequence[Life]) -> ReleasekitError:
    """What failed before anything was sent; the others of the deployment are told why they stay."""
    assert failed.error is not None  # noqa: S101 (why we are here)
    for life in lives:
        if life.error is None:
            life.error = PackageError(
                f"it goes out in one deployment with {failed.id}, which failed: nothing was sent",
                hint=f"Mend {failed.id.name}, or leave it out with `exclude-packages`.",
            )
    return failed.error


def pinned(
    ecosystem: Ecosystem, packages: Sequence[Package], versions: Mapping[str, str]
) -> dict[Path, bytes]:
    """The manifests that have to change for the build, and their bytes then."""
    pins = {}
    for manifest in dict.fromkeys(path for package in packages for path in package.manifests):
        before = read_manifest(manifest)
        after = ecosystem.pin(before, versions)
        if after != before:
            pins[manifest] = after.encode()
    return pins
