"""How what a registry holds back is let out, or taken back, by a person: the only thing that the
command for it knows about a registry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from msgspec import Struct, field

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from releasekit.errors import CodeWanted
    from releasekit.model import Artifact, Result


class Waiting(Struct, frozen=True, kw_only=True):
    """What a registry says of a version that waits. `by` has staged it; `tag` is empty without
    dist-tags.
    """

    id: str
    name: str
    version: str
    tag: str = ""
    by: str = ""


class Contents(Struct, frozen=True, kw_only=True):
    """What the files of one version hold: their `names`, and the `scripts` that run on the machine
    of its users, by name.
    """

    version: str
    size: int
    names: frozenset[str] = frozenset()
    scripts: Mapping[str, str] = field(default_factory=dict)


class Approval(Protocol):
    """How a person lets out, or takes back, what waits at one registry. Nothing but results.json is
    known of a release: a `recorded` result of it has package, version, `staged` and `artifacts`
    (sha256 and size, or more digests once they were compared).

    Every method may be called again after any failure; all of them raise Transient, Denied and
    Rejected. A Resource where it holds something open.
    """

    @property
    def url(self) -> str:
        """For messages; never holds credentials."""

    def check_credentials(self) -> str:
        """As `Registry.check_credentials`."""

    async def waiting(self, recorded: Result) -> Waiting | None:
        """What waits under this version, recorded id or not; None when surely nothing does."""

    async def files(self, recorded: Result, waiting: Waiting, into: Path) -> Sequence[Artifact]:
        """Its files, downloaded to `into`, a private directory, with the digests of these bytes,
        sha256 among them. What is recorded bounds how many bytes are taken.
        """

    async def is_visible(self, recorded: Result, into: Path) -> bool:
        """Whether everybody can install it; raises DigestMismatch where that is other bytes. What
        has to be downloaded for that goes to `into`, as below.
        """

    async def last_published(self, recorded: Result, into: Path) -> Contents | None:
        """The version before this one, for comparison; None where there is none, or none is told.
        Files that have to be downloaded for that go to `into`.
        """

    def contents(self, recorded: Result, artifacts: Sequence[Artifact]) -> Contents:
        """Of what `files` brought; blocks. Raises PackageError for what cannot be read."""

    async def approve(self, waiting: Waiting, code: str) -> None:
        """Raises CodeWanted for a code that is empty or not taken (any longer), where one is
        needed, and UnderReview. After anything else it is to be asked what became of it.
        """

    async def reject(self, waiting: Waiting, code: str) -> None:
        """As `approve`; what is rejected is gone."""

    async def confirmed(self, wanted: CodeWanted) -> str:
        """Wait until a person has been at `wanted.page`, and return the code that comes of it."""
