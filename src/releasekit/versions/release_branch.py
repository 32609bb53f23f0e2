"""The branch of the release pull request: what stands on it, and whether that is ours.

Its commit says on which commit its versions were decided, and names what it changes. So it is ours
as long as the branch changes exactly that, also once the forge has merged the base branch into it.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from releasekit.errors import CommandFailed
from releasekit.git.commits import parse_id
from releasekit.git.trailers import find_base, find_edits, find_text
from releasekit.versions.history import read_changes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from releasekit.git.commits import Commits

# Ours is below the merges of the base branch, if there are any.
_MOST_COMMITS: Final = 100


def name_branch(base: str) -> str:
    """That of the release pull request into the branch `base`."""
    return f"releasekit/{base}"


class ReleaseBranch(Struct, frozen=True, kw_only=True):
    """`head` is its commit, empty where there is no branch. `base` is the commit that its versions
    were decided on, and `edits` names what it changes, as `name_edits` does; both are empty where
    it holds nothing of ours. Its pull request has the `title`, and says what the blob `text` does.
    """

    head: str
    base: str = ""
    edits: str = ""
    title: str = ""
    text: str = ""
    is_foreign: bool = False


def name_edits(changed: Mapping[str, str]) -> str:
    """The sha256 (hex) of paths, each with the id of its new blob; empty for a file that goes."""
    rows = (f"{blob} {path}\0" for path, blob in sorted(changed.items()))
    return hashlib.sha256("".join(rows).encode("utf-8", "surrogateescape")).hexdigest()


async def read_release_branch(commits: Commits, head: str, tip: str) -> ReleaseBranch:
    """`tip` is the newest commit of the base branch; both are here. Raises CommandFailed."""
    if not head or await commits.is_in_history(head, of=tip):
        return ReleaseBranch(head=head)  # what is merged is nobody's any more
    try:
        fork = (await commits.run_git("merge-base", head, tip)).parse(parse_id)
    except CommandFailed:
        return ReleaseBranch(head=head, is_foreign=True)  # without a common history
    most = f"--max-count={_MOST_COMMITS}"
    own = await commits.list_parents("--first-parent", most, head, f"^{fork}", "--")
    messages = [each.message for each in await read_changes(commits, tuple(own))]
    message = next(filter(find_edits, messages), "")
    edits = find_edits(message)
    # What merges the base branch has two parents.
    is_edited = sum(len(parents) < 2 for parents in own.values()) > 1
    if is_edited or edits != name_edits(await commits.list_changed(fork, head)):
        return ReleaseBranch(head=head, is_foreign=True)
    title, text = message.partition("\n")[0], find_text(message)
    return ReleaseBranch(head=head, base=find_base(message), edits=edits, title=title, text=text)
