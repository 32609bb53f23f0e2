"""What a registry tells of uploads before the first of them: of the login, of names and limits, and
whom it trusts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self

from msgspec import Struct, field

from releasekit.errors import Denied, Rejected

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from releasekit.errors import PackageError
    from releasekit.model import Package, PackageId, PackageWarning, PlannedPackage

    Planned = Sequence[PlannedPackage]


class RightsFound(Struct, frozen=True):
    """`denied` are the packages that a registry would surely not let this run publish, and why;
    `note` is a sentence on what is doubtful or not known, or empty.
    """

    denied: Mapping[PackageId, PackageError] = field(default_factory=dict)
    note: str = ""

    @classmethod
    async def of_attempt(cls, attempt: Awaitable[None], packages: Iterable[Package]) -> Self:
        """All of them are denied where the attempt raises Denied or Rejected."""
        try:
            await attempt
        except (Denied, Rejected) as error:
            return cls(dict.fromkeys((each.id for each in packages), error))
        return cls()


class Rights(Protocol):
    """What a registry says of a login before anything is sent."""

    async def find_rights(self, packages: Sequence[Package], *, proving: bool) -> RightsFound:
        """Find what a login may do with these, once all were looked up. With `proving`, it may be
        used as for an upload: the identity of a job is shown, which makes the projects of pending
        publishers. Raises PackageError.
        """


class Publisher(Struct, frozen=True):
    """The jobs of a workflow, a file of `repository`, which is OWNER/NAME at github.com; those of
    any environment where that is empty.
    """

    repository: str
    workflow: str
    environment: str = ""

    def __str__(self) -> str:
        environment = f", environment {self.environment}" if self.environment else ""
        return f"{self.workflow} of {self.repository}{environment}"

    def admits(self, job: Publisher) -> bool:
        """https://github.com/rust-lang/crates.io/blob/main/src/controllers/trustpub/tokens/exchange/mod.rs"""
        is_same = (
            self.repository.lower() == job.repository.lower() and self.workflow == job.workflow
        )
        return is_same and self.environment.lower() in {"", job.environment.lower()}


class TrustState(Struct, frozen=True, kw_only=True):
    """Whom a registry trusts with a package, which may be new to it; `unknown` is why that is not
    known, and it is `hidden` where the registry tells nobody, or nobody but a person.
    """

    publishers: tuple[Publisher, ...] = ()
    is_new: bool = False
    unknown: str = ""
    hidden: bool = False


class Trust(Protocol):
    """Which jobs a registry lets publish without a token."""

    async def find_trust(self, package: Package) -> TrustState:
        """Find whom it trusts with a package that was looked up. Raises PackageError."""

    async def add_trust(self, package: Package, job: Publisher) -> bool:
        """Trust the job from now on; False where only a person can do that. Raises PackageError."""

    def explain_trust(self, package: Package, job: Publisher, *, is_new: bool) -> tuple[str, str]:
        """Return what a person does for all packages, and the page or command for this one."""


class Preflight(Struct, frozen=True, kw_only=True):
    """`rights` is None where a registry says nothing of a login, as a directory, and `trust` where
    it has no trusted publishing, as far as is known. `is_new` tells whether it lacks a package that
    was looked up, whatever the version; None where that means nothing.

    Once all were looked up, `find_excess` warns of packages that exceed its limits, and
    `find_earliest` tells after how many seconds it takes each. `token_ends` is when the token that
    uploads ends, as `time.time` counts; None where that is not known, or another one is made in
    time. It checks a package for `shows_after_s`, at least, before it shows it. That may take
    `shows_within_s`, where the time for a package is shorter.
    """

    rights: Rights | None = None
    trust: Trust | None = None
    is_new: Callable[[PackageId], bool] | None = None
    find_excess: Callable[[Planned], Mapping[PackageId, PackageWarning]] = lambda _: {}
    find_earliest: Callable[[Planned], Mapping[PackageId, float]] = lambda _: {}
    token_ends: float | None = None
    shows_after_s: float = 0.0
    shows_within_s: float = 0.0
