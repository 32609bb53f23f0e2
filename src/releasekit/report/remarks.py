"""What every presentation of a run or a plan says beside its packages: which tags and releases are
missing, what was signed, what is warned about, and what to do about failures.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from releasekit.announced import Status, Tag
from releasekit.attested import COMPLETE
from releasekit.problems import mark
from releasekit.report.text import count_of, end_block, few, trusted_page
from releasekit.text.escape import clip, html, html_link, link, log_line, markdown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from releasekit.announced import Announcement
    from releasekit.model import Artifact, Package, PackageWarning, PlannedPackage, Report, Result
    from releasekit.problems import Problem

    Followed = Iterable[Result | PlannedPackage]
    Warned = Iterable[tuple[Package, Sequence[PackageWarning]]]

_FETCH: Final = " (on the remote; `git fetch --tags` brings tags into a clone)"
_FEW: Final = 3
_MAX_CHARS: Final = 1_000
_MAX_SIGNED: Final = 500
_NAME: Final = 100
# The order of what is missing: what needs a person most first.
_ORDER: Final = (
    ("tag", Status.FOREIGN),
    ("tag", Status.PENDING),
    ("release", Status.PENDING),
    ("release", Status.FOREIGN),
    ("release", Status.DRAFT),
)


class Lack(Struct, frozen=True, kw_only=True):
    """Tags or releases that are missing for one reason. `names` are those of the tags, each once,
    and `packages` those whose versions they belong to.
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
        """False for a release that somebody else created, since users can read what changed, and
        for one that is left to somebody else.
        """
        return self.what == "tag" or self.status is Status.PENDING

    @property
    def words(self) -> str:
        """`2 tags are owed`."""
        return _count(len(self.names), self.what, self.status)

    @property
    def advice(self) -> str:
        """What to do; empty where there is nothing to do."""
        if self.hint or not self.is_wrong:
            return self.hint
        if self.status is Status.FOREIGN:
            return (
                "Nothing is ever moved. If the tag is wrong, delete it on the remote (`git push "
                "REMOTE --delete TAG`), and run the same command again; if it is right, publish "
                "what is here under a higher version."
            )
        return "Run the same command again: it makes what is missing, and nothing twice."


def find_lacks(followed: Followed) -> list[Lack]:
    """Tags before releases; first the tags whose name something else has."""
    groups: dict[tuple[str, Status, str, str, Problem | None], dict[str, list[str]]] = {}
    for package, each in _each_of(followed):
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
        for place in _ORDER
        for (what, status, note, hint, problem), named in groups.items()
        if place == (what, status)
    ]


def _each_of(followed: Followed) -> Iterator[tuple[str, Tag | Announcement]]:
    for one in followed:
        for each in (one.tag, one.announcement):
            if each is not None:
                yield str(one.package.id), each


def _name(each: Tag | Announcement) -> str:
    return each.name if isinstance(each, Tag) else each.tag


def _count(count: int, what: str, status: Status) -> str:
    is_draft = status is Status.DRAFT
    if count == 1:
        return f"1 {what} is {'left as a draft' if is_draft else status}"
    return f"{count} {what}s are {'left as drafts' if is_draft else status}"


def headline_words(followed: Followed) -> list[str]:
    """`6 tagged`, by packages, and `2 tags are owed`, by tags; empty where nothing changes."""
    everyone = list(followed)
    counts = Counter((isinstance(each, Tag), each.status) for _, each in _each_of(everyone))
    words = [
        f"{counts[is_tag, status]} {word}"
        for status, is_tag, word in (
            (Status.CREATED, True, "tagged"),
            (Status.CREATED, False, "announced"),
            (Status.DRAFT, False, "left as drafts"),
            (Status.WANTED, True, "to tag"),
            (Status.WANTED, False, "to announce"),
        )
        if counts[is_tag, status]
    ]
    return [*words, *lack_words(find_lacks(everyone))]


def lack_words(lacking: Iterable[Lack]) -> list[str]:
    """`2 tags are owed`, of what a person has to look after."""
    names: dict[tuple[str, Status], set[str]] = {}
    for lack in lacking:
        if lack.is_wrong:
            names.setdefault((lack.what, lack.status), set()).update(lack.names)
    return [_count(len(named), what, status) for (what, status), named in names.items()]


def tagged_lines(followed: Followed) -> list[str]:
    """For a log: what was made, then what is lacking and what to do about it."""
    everyone = list(followed)
    made = [each for _, each in _each_of(everyone) if each.status is Status.CREATED]
    tags = dict.fromkeys(_name(each) for each in made if isinstance(each, Tag))
    releases = dict.fromkeys(
        trusted_page(each.url) or _name(each) for each in made if not isinstance(each, Tag)
    )
    return [
        *([log_line(f"tagged: {_few_names(list(tags))}{_FETCH}")] if tags else []),
        *([log_line(f"announced: {_few_names(list(releases))}")] if releases else []),
        *(
            log_line(
                f"{lack.words}: {_few_names(lack.names)}: "
                + ". ".join(clip(text, _MAX_CHARS) for text in (lack.note, lack.advice) if text)
                + (f" {lack.problem.url}" if lack.problem else "")
            )
            for lack in find_lacks(everyone)
        ),
    ]


def lack_annotations(lacking: Iterable[Lack]) -> list[tuple[str, str]]:
    """Title and message of each."""
    return [
        (
            f"{lack.words}: {_few_names(lack.names)}{mark(lack.problem)}",
            "\n".join(filter(None, (lack.note, lack.advice, lack.problem and lack.problem.url))),
        )
        for lack in lacking
    ]


def short_name(each: Tag | Announcement | None) -> str:
    """Its name in a table, with its status unless this run makes or made it."""
    if each is None:
        return ""
    name = clip(_name(each), _NAME)
    return name if each.status in {Status.CREATED, Status.WANTED} else f"{name} ({each.status})"


def page_of(each: Tag | Announcement | None) -> str:
    """Empty where a report must not link to it."""
    return trusted_page(each.url) if each is not None else ""


def _few_names(names: Sequence[str]) -> str:
    return few([clip(name, _NAME) for name in names], _FEW)


def signed_line(report: Report) -> list[str]:
    """One line of a log, or none: the plan says at the beginning why nothing is signed."""
    words = _signed_so_far(report, lambda text, page: f"{text}: {page}" if page else text, str)
    return [log_line(f"provenance: {words}")] if words else []


def signed_summary(report: Report) -> list[str]:
    """One line of Markdown, or none."""
    words = _signed_words(report, link, markdown)
    return [f"provenance: {words}"] if words else []


def signed_fact(report: Report) -> str:
    """HTML; empty where there is nothing to say."""
    return _signed_words(report, html_link, html)


def entry_link(artifact: Artifact) -> tuple[str, str]:
    """The words for the log's entry about a file, and its page, which is empty where a report must
    not link to it. Both are empty for a file that is not signed.
    """
    signed = artifact.attestation
    if signed is None:
        return "", ""
    return f"log entry {signed.log_index}", trusted_page(signed.link)


def _signed_words(
    report: Report, linked: Callable[[str, str], str], escaped: Callable[[str], str]
) -> str:
    """What was signed and, where that is not all of it, what was planned: it says why."""
    done = _signed_so_far(report, linked, escaped)
    planned = escaped(clip(report.provenance, _MAX_SIGNED))
    all_signed = report.statement is not None and report.statement.subjects == _count_signed(report)
    # Several jobs each have their own words.
    as_planned = all(each.endswith(COMPLETE) for each in report.provenance.split("; "))
    if not (done and planned) or all_signed or as_planned:
        return done or planned
    return f"{done.removesuffix('.')}. Planned: {planned}"


def _count_signed(report: Report) -> int:
    return sum(bool(file.attestation) for each in report.results for file in each.artifacts)


def _signed_so_far(
    report: Report, linked: Callable[[str, str], str], escaped: Callable[[str], str]
) -> str:
    parts = []
    if count := _count_signed(report):
        parts.append(f"{count_of(count, 'file', 'files')} signed")
    statement, note = report.statement, ""
    if statement is not None:
        note = escaped(clip(statement.note, _MAX_SIGNED))
        files = count_of(statement.subjects, "file", "files")
        about = "" if statement.subjects == count else f" about {files}"
        page = trusted_page(statement.url)
        where = "" if page else f" in {escaped(clip(statement.path.name, 100))}"
        if statement.attestations:
            parts.append(f"{linked(f'release statement{about}', page)}{where}")
    return ". ".join(filter(None, (", ".join(parts), note)))


def group_warnings(warned: Warned) -> dict[PackageWarning, list[Package]]:
    """Each warning once, with the packages that have it, sorted by name."""
    groups: dict[PackageWarning, list[Package]] = {}
    for package, warnings in warned:
        for warning in warnings:
            groups.setdefault(warning, []).append(package)
    return dict(sorted(groups.items(), key=lambda group: (group[0].name, group[0].message)))


def warning_lines(warned: Warned) -> list[str]:
    """`new-name: pypi:acme: …`, for a log."""
    return [
        log_line(
            f"{warning.name}: {few([str(p.id) for p in packages])}: {warning.message}"
            f"{mark(warning.name.problem)}"
        )
        for warning, packages in group_warnings(warned).items()
    ]


def warning_table(warned: Warned) -> list[str]:
    """For a terminal or a log, with an empty line below."""
    lines = [f"warning: {line}" for line in warning_lines(_no_errors(warned))]
    return end_block(lines)


def warning_annotations(warned: Warned) -> list[tuple[str, str]]:
    """Title and message of each."""
    return [
        (
            f"{warning.name}: {few([str(p.id) for p in packages])}{mark(warning.name.problem)}",
            warning.message,
        )
        for warning, packages in group_warnings(_no_errors(warned)).items()
    ]


def _no_errors(warned: Warned) -> Warned:
    """An error is already shown as the reason why the plan or the package ended."""
    for package, warnings in warned:
        yield package, [warning for warning in warnings if not warning.error]


def hint_lines(hints: Iterable[tuple[str, str, Problem | None]]) -> list[str]:
    """`hints` name, for each package, what to do about it and the problem it has: one line for each
    thing to do, however many packages it is about, with the page that says more.
    """
    by_hint: dict[str, list[str]] = {}
    for name, hint, problem in hints:
        if told := " ".join(filter(None, (hint, problem and problem.url))):
            by_hint.setdefault(told, []).append(name)
    return [log_line(f"{few(names, 3)}: {told}") for told, names in by_hint.items()]
