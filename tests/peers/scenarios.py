"""What a test of another project is here: files to write, or a question, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

Kind = Literal["equal", "explained", "unusable", "fault"]


class Verdict(NamedTuple):
    """`why` is a sentence of our documentation for what is `explained`, what the tool says of what
    is `unusable`, and all that is needed to mend a `fault`.
    """

    kind: Kind
    why: str = ""


EQUAL = Verdict("equal")


def compare(asked: object, ours: object, theirs: object) -> Verdict:
    return EQUAL if ours == theirs else Verdict("fault", f"{asked}\nours {ours}, theirs {theirs}")


@dataclass(frozen=True, kw_only=True)
class Case:
    """Names are those of the test it is from, and each is there once in its ecosystem. `judge` gets
    an empty directory.
    """

    name: str
    judge: Callable[[Path], Verdict]


@dataclass(frozen=True, kw_only=True)
class Peer:
    """A part of a test suite. `read` takes the directories of its sources, in their order."""

    name: str
    ecosystem: str
    sources: tuple[str, ...]
    read: Callable[..., Iterator[Case]]


@dataclass(frozen=True, kw_only=True)
class Files:
    """What a test writes, by paths relative to the root, and targets of links."""

    files: Mapping[str, str | bytes]
    links: Mapping[str, str] = field(default_factory=dict)
    executable: frozenset[str] = frozenset()

    def write(self, root: Path) -> None:
        """Raises ValueError where a path leads out of the root, or two contradict each other."""
        for name, content in self.files.items():
            path = _place(root, name)
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content if isinstance(content, bytes) else content.encode())
            except OSError as error:
                raise ValueError(f"{name} cannot be written: {error.strerror}") from None
            if name in self.executable:
                path.chmod(0o755)
        for name, target in self.links.items():
            path = _place(root, name)
            if PurePosixPath(target).is_absolute() or path.exists():
                raise ValueError(f"{name} cannot link to {target}")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(target)


def _place(root: Path, name: str) -> Path:
    path = PurePosixPath(name)
    if path.is_absolute() or not path.parts or {"..", ".git"} & {*path.parts}:
        raise ValueError(f"{name} leads out of the root")
    return root / path
