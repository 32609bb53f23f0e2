"""What is seen first: of which project, how it ended in colour, the counts as a bar, and where the
commit and the run are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from releasekit.report.links import commit_page, trusted_page
from releasekit.report.marks import bar, legend
from releasekit.text.escape import clip, code_link, link, markdown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from releasekit.report.marks import Mark

# https://docs.github.com/en/get-started/writing-on-github/getting-started-with-writing-and-formatting-on-github/basic-writing-and-formatting-syntax#alerts
Alert = Literal["NOTE", "TIP", "IMPORTANT", "WARNING", "CAUTION"]
_NAME: Final = 100
_SHORT: Final = 10


def title(sign: str, project: str, words: str) -> list[str]:
    """`words` are markup."""
    named = f"{markdown(clip(project, _NAME))}: " if project else ""
    return [f"## {sign} {named}{words}", ""]


def alert_box(alert: Alert, sentences: Sequence[str]) -> list[str]:
    """`sentences` are markup, a paragraph each."""
    first, *others = sentences
    return [f"> [!{alert}]", f"> {first}", *(f">\n> {other}" for other in others), ""]


def counted(counts: Sequence[tuple[Mark, int]]) -> list[str]:
    squares = bar(counts)
    return [squares, "", legend(counts), ""] if squares else []


def facts(commit: str, repository: str, run: str, others: Sequence[str]) -> list[str]:
    """Where it is all from, as links where there are pages; `others` are markup."""
    parts = [link("workflow run", page)] if (page := trusted_page(run)) else []
    if commit:
        page = commit_page(repository, commit)
        shown = f"{commit[:_SHORT]}{'+dirty' if '+' in commit else ''}" if page else commit
        parts.append(f"commit {code_link(clip(shown, _NAME), page)}")
    return [" · ".join([*parts, *others]), ""] if parts or others else []
