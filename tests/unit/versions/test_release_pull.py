"""What a run does with the release pull request, in the words of the pages that tell of it."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from releasekit.announced import ForgePullRequest
from releasekit.versions.release_branch import ReleaseBranch
from releasekit.versions.release_pr import Choice, Seen, decide_pull
from workspaces import PROJECT

DOCS = PROJECT / "docs"
PULL = ForgePullRequest(forge="github", number=57, url="", title="", body="", author="")
BEHIND = ForgePullRequest(
    forge="github", number=57, url="", title="", body="", author="", is_behind=True
)
GONE = ReleaseBranch(head="")
OURS = ReleaseBranch(head="of the branch", base="first", edits="of core")
SOMEBODYS = ReleaseBranch(head="of somebody", is_foreign=True)
AGAIN = Seen(
    here="first",
    tip="first",
    there=OURS,
    pull=PULL,
    edits="of core",
    is_base_newer=False,
    is_here_outdated=False,
    is_said=True,
    was_overtaken=False,
)
PUSHED = AGAIN._replace(here="second", tip="second")
HELD = PUSHED._replace(here="first")
MOVED = Choice("updated", "second", moves=True)


@pytest.mark.parametrize(
    ("told", "seen", "choice"),
    [
        ("Each push to `main` brings it up to date", PUSHED._replace(edits="of cli"), MOVED),
        (
            "from then on it is yours, and is not brought up to date",
            PUSHED._replace(there=SOMEBODYS, edits="of cli"),
            Choice("edited"),
        ),
        (
            "delete its branch; the next push opens it anew",
            PUSHED._replace(there=GONE, pull=None),
            Choice("created", "second", moves=True),
        ),
        (
            "Title, description, labels and comments are never read",
            PUSHED._replace(is_said=False),
            Choice("updated", "first"),
        ),
        ("the same commit gives the same pull request", AGAIN, Choice("current", "first")),
        (
            "A push that changes nothing of the next release leaves its commit alone",
            PUSHED,
            Choice("current", "first"),
        ),
        (
            "A rule that wants branches up to date moves it, too",
            PUSHED._replace(pull=BEHIND),
            MOVED,
        ),
        ("moves only for a difference", HELD._replace(pull=BEHIND), Choice("current", "first")),
        ("moves only for a difference", PUSHED._replace(pull=None), Choice("created", "first")),
        (
            "A run on an older commit that ends last changes nothing",
            HELD._replace(
                there=ReleaseBranch(head="of the branch", base="second", edits="of cli"),
                is_base_newer=True,
            ),
            Choice("newer", "second"),
        ),
        (
            "or `main` has changed a file that is to be edited",
            HELD._replace(there=GONE, pull=None, is_here_outdated=True),
            Choice("newer", "second"),
        ),
        (
            "where the newer run has closed the pull request, the older one opens it again",
            HELD._replace(there=GONE, pull=None),
            Choice("created", "first", moves=True),
        ),
        ("and the next push closes it", PUSHED._replace(edits=""), Choice("closed", moves=True)),
        (
            "when nothing is left to release, and its branch goes",
            PUSHED._replace(pull=None, edits=""),
            Choice("none", moves=True),
        ),
        (
            "when nothing is left to release",
            PUSHED._replace(there=GONE, edits=""),
            Choice("closed"),
        ),
    ],
)
def test_a_run_does_what_the_pages_tell(told: str, seen: Seen, choice: Choice) -> None:
    pages = (DOCS / f"{name}.md" for name in ("release-pull-request", "architecture"))
    assert told in " ".join(" ".join(page.read_text() for page in pages).split())
    assert decide_pull(seen) == choice


EVERYTHING: list[dict[str, Any]] = [
    {"pull": pull, "edits": edits, "is_base_newer": newer, "is_here_outdated": outdated}
    for pull, edits, newer, outdated in product(
        (None, PULL, BEHIND), ("", "of core", "of cli"), (False, True), (False, True)
    )
]


@pytest.mark.parametrize("facts", EVERYTHING)
def test_commits_of_somebody_else_stay_whatever_else_holds(facts: dict[str, Any]) -> None:
    assert decide_pull(PUSHED._replace(there=SOMEBODYS, **facts)) == Choice("edited")


@pytest.mark.parametrize("was_overtaken", [False, True])
@pytest.mark.parametrize(
    "facts", [each for each in EVERYTHING if each["is_base_newer"] or each["is_here_outdated"]]
)
def test_an_older_run_at_most_gives_back_what_it_wrote_over(
    facts: dict[str, Any], *, was_overtaken: bool
) -> None:
    choice = decide_pull(HELD._replace(was_overtaken=was_overtaken, **facts))
    assert (choice.operation, choice.moves, choice.restores) == ("newer", False, was_overtaken)
