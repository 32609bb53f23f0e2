"""What is said of tags and releases, wherever people read of a run or a plan."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from releasekit.announced import Status, Tag
from releasekit.problems import mark
from releasekit.report.links import trusted_page
from releasekit.report.text import few
from releasekit.text.escape import clip, log_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from releasekit.announced import Announcement
    from releasekit.model import PlannedPackage, Result
    from releasekit.problems import Problem

    Followed = Iterable[Result | PlannedPackage]

_FEW: Final = 3
_MOST_CHARS: Final = 1_000
_NAME: Final = 100
# What is told, what needs a person most first.
_TOLD: Final = (
    ("tag", Status.FOREIGN),
    ("tag", Status.OWED),
    ("release", Status.OWED),
    ("release", Status.FOREIGN),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lack:
    """Tags or releases that are not there for one reason; `names` are those of the tags, each once,
    and `packages` those of whose versions they are.
    """

    what: Literal["tag", "release"]
    status: Status
    note: str
    hint: str
    problem: Problem | None
    names: Sequence[str]
    packages: Sequence[str]

    @property
    def is_wrong(self) -> bool:
        """A release of somebody else has said what there is to say."""
        return not (self.what == "release" and self.status is Status.FOREIGN)

    @property
    def words(self) -> str:
        """`2 tags are owed`."""
        return _count(len(self.names), self.what, self.status)

    @property
    def advice(self) -> str:
        """What to do; empty where nobody has to do anything."""
        if self.hint or not self.is_wrong:
            return self.hint
        if self.status is Status.FOREIGN:
            return "Look at what has the name; nothing is ever moved."
        return "Run the same command again: it makes what is missing, and nothing twice."


def lacks(followed: Followed) -> list[Lack]:
    """Tags before releases, what something else has the name of first."""
    groups: dict[tuple[str, Status, str, str, Problem | None], dict[str, list[str]]] = {}
    for package, each in _each(followed):
        what = "tag" if isinstance(each, Tag) else "release"
        key = (what, each.status, each.note, each.hint, each.problem)
        groups.setdefault(key, {}).setdefault(_name(each), []).append(package)
    return [
        Lack(
            what="tag" if what == "tag" else "release",
            status=status,
            note=note,
            hint=hint,
            problem=problem,
            names=list(named),
            packages=[package for packages in named.values() for package in packages],
        )
        for told in _TOLD
        for (what, status, note, hint, problem), named in groups.items()
        if told == (what, status)
    ]


def _each(followed: Followed) -> Iterator[tuple[str, Tag | Announcement]]:
    for one in followed:
        for each in (one.tag, one.announcement):
            if each is not None:
                yield str(one.package.id), each


def _name(each: Tag | Announcement) -> str:
    return each.name if isinstance(each, Tag) else each.tag


def _count(count: int, what: str, status: Status) -> str:
    return f"1 {what} is {status}" if count == 1 else f"{count} {what}s are {status}"


def headline_words(followed: Followed) -> list[str]:
    """`6 tagged`, by packages, and `2 tags are owed`, by tags; empty where there is no news."""
    everyone = list(followed)
    counts = Counter((isinstance(each, Tag), each.status) for _, each in _each(everyone))
    words = [
        f"{counts[is_tag, status]} {word}"
        for status, is_tag, word in (
            (Status.MADE, True, "tagged"),
            (Status.MADE, False, "announced"),
            (Status.WANTED, True, "to tag"),
            (Status.WANTED, False, "to announce"),
        )
        if counts[is_tag, status]
    ]
    return [*words, *lack_words(everyone)]


def lack_words(followed: Followed) -> list[str]:
    """`2 tags are owed`, of what somebody has to look after."""
    names: dict[tuple[str, Status], set[str]] = {}
    for lack in lacks(followed):
        if lack.is_wrong:
            names.setdefault((lack.what, lack.status), set()).update(lack.names)
    return [_count(len(named), what, status) for (what, status), named in names.items()]


def tagged_lines(followed: Followed) -> list[str]:
    """For a log: what was made, then what is lacking and what to do about it."""
    everyone = list(followed)
    made = [each for _, each in _each(everyone) if each.status is Status.MADE]
    tags = dict.fromkeys(_name(each) for each in made if isinstance(each, Tag))
    releases = dict.fromkeys(
        trusted_page(each.url) or _name(each) for each in made if not isinstance(each, Tag)
    )
    return [
        *([log_line(f"tagged: {_few(list(tags))}")] if tags else []),
        *([log_line(f"announced: {_few(list(releases))}")] if releases else []),
        *(_line(lack) for lack in lacks(everyone)),
    ]


def _line(lack: Lack) -> str:
    said = ". ".join(filter(None, (clip(lack.note, _MOST_CHARS), clip(lack.advice, _MOST_CHARS))))
    page = f" {lack.problem.url}" if lack.problem else ""
    return log_line(f"{lack.words}: {_few(lack.names)}: {said}{page}")


def lack_annotations(lacking: Iterable[Lack]) -> list[tuple[str, str]]:
    """Title and message of each."""
    return [
        (
            f"{lack.words}: {_few(lack.names)}{mark(lack.problem)}",
            ". ".join(filter(None, (lack.note, lack.advice))),
        )
        for lack in lacking
    ]


def short(each: Tag | Announcement | None) -> str:
    """What to call it in a table: its name, and how far it is where that is no matter of course."""
    if each is None:
        return ""
    name = clip(_name(each), _NAME)
    return name if each.status in {Status.MADE, Status.WANTED} else f"{name} ({each.status})"


def page_of(each: Tag | Announcement | None) -> str:
    """Empty where it may be no link."""
    return trusted_page(each.url) if each is not None else ""


def _few(names: Sequence[str]) -> str:
    return few([clip(name, _NAME) for name in names], _FEW)
