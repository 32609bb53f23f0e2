"""Words, columns and links that tables, sentences and pages share.

Anybody may have written the results that a report links to: only a plain web address of a
reasonable length becomes a link.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from releasekit.fields import replace
from releasekit.model import Outcome
from releasekit.text.escape import log_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from releasekit.host.forges import Pages
    from releasekit.model import Package, Result

_MAX_WIDTH: Final = 100
_BECAME: Final[Mapping[str, str]] = {
    Outcome.FAILED: "failed",
    Outcome.CANCELLED: "was cancelled",
    Outcome.REMOVED: "was left out",
}
MAX_CHARS: Final = 300
# No user, no quotes, no spaces: the same in HTML, in Markdown and in an SVG. A registry may be one
# of a company without TLS.
_PAGE: Final = re.compile(
    r"https?://(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:]+\])(?::[0-9]{1,5})?"
    r"(?:/[A-Za-z0-9._~:/@!&=+,;%-]*)?(?:[?#][A-Za-z0-9._~:/?#@!&=+,;%-]*)?"
)
# A page that readers trust comes over TLS; plain HTTP stays on this machine.
_TRUSTED: Final = re.compile(r"https://|http://(?:127\.0\.0\.1|localhost|\[::1\])[:/]")
# All of a release waits there as one deployment, and the page has two buttons for it.
# https://central.sonatype.org/publish/publish-portal-upload/
_ON_PAGES: Final = frozenset({"maven"})
# A commit as git names it; what follows says how the work tree differed.
_COMMIT: Final = re.compile(r"([0-9a-f]{7,64})(?:\+dirty\.[0-9a-f]+)?")


def packages(count: int) -> str:
    return count_of(count, "package", "packages")


def few(names: Sequence[str], most: int = 5) -> str:
    """The first of them, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def count_of(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def without_name(reason: str, package: Package) -> str:
    """`reason` without the package's name at its beginning, for a place that names it already."""
    for name in (str(package), str(package.id)):
        if reason.startswith(name) and reason[len(name) : len(name) + 1] in {":", " "}:
            return reason[len(name) :].lstrip(": ") or reason
    return reason


def became(how: str) -> str:
    """The end of "it needs X, which …"; `how` begins with the outcome of X, or says what it is."""
    word, space, rest = how.partition(" ")
    return f"{_BECAME.get(word, f'is {word}')}{space}{rest}"


def by_reason(private: Sequence[Package]) -> dict[str, list[Package]]:
    """Groups packages that are never published: hundreds may share a reason."""
    groups: dict[str, list[Package]] = {}
    for package in private:
        groups.setdefault(package.unpublishable, []).append(package)
    return groups


def describe_private(private: Sequence[Package]) -> list[str]:
    """A sentence for each reason."""
    return [
        f"never published: {few([str(each.id) for each in group])}: {reason}"
        for reason, group in by_reason(private).items()
    ]


def seconds(duration_s: float) -> str:
    """No more exact than a reader needs: "0.4 s", "12 s", "3 min 5 s", "2 h 10 min"."""
    if duration_s < 10:
        return f"{duration_s:.1f} s"
    minutes, rest = divmod(round(duration_s), 60)
    if not minutes:
        return f"{rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def minutes(duration_s: float) -> str:
    """Of what takes minutes at least: "10 min", "1 h 10 min"."""
    whole = round(duration_s / 60)
    return f"{whole // 60} h {whole % 60} min" if whole >= 60 else f"{whole} min"


def size(count: int) -> str:
    """Of bytes, no more exact than a reader needs: "512 bytes", "3.1 kB", "12 MB"."""
    if count < 1000:
        return count_of(count, "byte", "bytes")
    amount, units = count / 1000, ["kB", "MB", "GB", "TB"]
    while amount >= 999.5 and len(units) > 1:
        amount /= 1000
        del units[0]
    return f"{amount:.1f} {units[0]}" if amount < 10 else f"{amount:.0f} {units[0]}"


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """`rows` as lines with aligned columns; the last column may have any width."""
    shown = [[log_line(cell) for cell in row] for row in rows]
    # A long cell only shifts its own row: padding all others would multiply its length.
    widths = [min(max(map(len, column)), _MAX_WIDTH) for column in zip(*shown, strict=True)]
    widths[-1:] = [0]  # of no rows there is no last column
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in shown
    ]


def web_page(url: str) -> str:
    """`url` if a page may link to it; else nothing."""
    return url if len(url) <= MAX_CHARS and _PAGE.fullmatch(url) else ""


def package_url(result: Result) -> str:
    """The page of the version at its registry, or the page where it waits for approval."""
    return web_page(result.url or (result.staged.url if result.staged else ""))


def split_staged(results: Iterable[Result]) -> tuple[list[Result], list[Result]]:
    """What is staged: first what `approve` decides about, then what a person does, on the page of a
    registry.
    """
    parts: tuple[list[Result], list[Result]] = ([], [])
    for each in results:
        if each.outcome is Outcome.STAGED:
            parts[each.package.id.ecosystem in _ON_PAGES].append(each)
    return parts


def describe_pages(paged: Sequence[Result], most: int = 5) -> str:
    """What the person does; empty where nothing waits on a page."""
    names = few([str(each.package.id) for each in paged], most)
    pages = sorted({package_url(each) for each in paged} - {""})
    return f"Press Publish or Drop at {few(pages) or 'the registry'} for {names}" if names else ""


def end_block(lines: Sequence[str]) -> list[str]:
    """With an empty line below them, if there are any."""
    return [*lines, ""] if lines else []


def commit_page(pages: Pages, commit: str) -> str:
    """The page of the commit that `commit` names, as a plan or a report has it."""
    page, named = trusted_page(pages.repository).rstrip("/"), _COMMIT.fullmatch(commit)
    return web_page(replace(pages, repository=page).commit(named[1])) if named else ""


def trusted_page(url: str) -> str:
    """`url` if a report may call it a page of the repository or of the run."""
    return url if web_page(url) and _TRUSTED.match(url) else ""
