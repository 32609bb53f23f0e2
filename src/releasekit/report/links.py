"""Where the pages are that a report links to. Results may have been written by anybody: what is no
plain web address of a reasonable length is no link.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from releasekit.model import Report, Result

MAX_CHARS: Final = 300
# No user, no quotes, no spaces: the same in HTML, in Markdown and in an SVG. A registry may be one
# of a company without TLS.
_PAGE: Final = re.compile(
    r"https?://(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:]+\])(?::[0-9]{1,5})?"
    r"(?:/[A-Za-z0-9._~:/@!&=+,;%-]*)?(?:[?#][A-Za-z0-9._~:/?#@!&=+,;%-]*)?"
)
# Of a page that vouches for what is said: plain HTTP stays on this machine.
_TRUSTED: Final = re.compile(r"https://|http://(?:127\.0\.0\.1|localhost|\[::1\])[:/]")
# A commit as git names it; what follows says how the work tree differed.
_COMMIT: Final = re.compile(r"([0-9a-f]{7,64})(?:\+dirty\.[0-9a-f]+)?")


def web_page(url: str) -> str:
    """`url` if a page may link to it; else nothing."""
    return url if len(url) <= MAX_CHARS and _PAGE.fullmatch(url) else ""


def package_url(result: Result) -> str:
    """The page that the registry has of the version, or where it waits for approval."""
    return web_page(result.url or (result.staged.url if result.staged else ""))


def run_url(report: Report) -> str:
    return trusted_page(report.run_url)


def commit_page(repository: str, commit: str) -> str:
    """The page of the commit that `commit` names, as a plan or a report has it."""
    page, named = trusted_page(repository).rstrip("/"), _COMMIT.fullmatch(commit)
    return web_page(f"{page}/commit/{named[1]}") if page and named else ""


def trusted_page(url: str) -> str:
    """`url` if it may be said to be a page of the repository or of the run."""
    return url if web_page(url) and _TRUSTED.match(url) else ""
