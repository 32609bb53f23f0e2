"""What an ecosystem gives the contract suite: a workspace in its own form, and its registries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol

from msgspec import Struct, field

from releasekit.fields import replace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from integration.recorder import Recorder

# How a dependency is spelled: with nothing that tells a version (so that there is something to
# pin), with a range that holds the planned version, with one that excludes it.
Requirement = Literal["open", "fits", "excludes"]


class Member(Struct, frozen=True, kw_only=True):
    """One package of a workspace; `key` is its name without what the ecosystem puts around it.

    `text` goes into its code, so that another text makes other bytes. A `broken` one cannot be
    built, a `private` one is never published.
    """

    key: str
    needs: Mapping[str, Requirement] = field(default_factory=dict)
    private: bool = False
    broken: bool = False
    text: str = "one"


WORKSPACE = (
    Member(key="core"),
    Member(key="text", needs={"core": "open"}),
    Member(key="web", needs={"core": "fits", "text": "open"}),
    Member(key="internal", needs={"web": "open"}, private=True),
)


class Place(Struct, frozen=True, kw_only=True):
    """A registry as a user would name it, as whom, and what it sees; a directory sees nothing.

    `inputs` are those of the ecosystem besides its registry and its secrets.
    """

    registry: str
    environment: Mapping[str, str] = field(default_factory=dict)
    wrong_environment: Mapping[str, str] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)
    recorder: Recorder | None = None

    @property
    def seen(self) -> Recorder:
        assert self.recorder is not None
        return self.recorder

    def moved(self, origin: str) -> Place:
        """The same place behind another origin."""
        old = self.seen.url
        inputs = {key: value.replace(old, origin) for key, value in self.inputs.items()}
        return replace(self, registry=self.registry.replace(old, origin), inputs=inputs)


class Case(Protocol):
    """One ecosystem; `tests/contract/<ecosystem>.py` holds one as `CASE`.

    Where a workspace cannot do without more than its members, `around` are the names of that; where
    it lists them one by one, `include(root, directory)` adds one that was put there later. `table`
    is what releasekit.toml says of the ecosystem, where that takes anything.
    """

    @property
    def tools(self) -> Sequence[str]:
        """Programs a build needs."""
        ...

    @property
    def servers(self) -> Sequence[str]:
        """Fixtures of real servers; directory registries come on top by themselves."""
        ...

    @property
    def upload(self) -> tuple[str, str]:
        """Method and path (a regular expression) of the request that carries bytes."""
        ...

    @property
    def version(self) -> str:
        """Of every package."""
        ...

    def name(self, key: str) -> str:
        """The canonical name of a member."""
        ...

    def write(self, root: Path, members: Sequence[Member]) -> None:
        """A workspace in `root`, an empty directory, that `discover` and `build` work on."""
        ...

    def place(self, server: object) -> Place:
        """What a fixture of `servers` gave."""
        ...
