"""What a release leaves at the forge, as values: its tag, its release page, its pull request."""

from enum import StrEnum
from typing import Literal

from msgspec import Struct

from releasekit.fields import Identity, Links
from releasekit.problems import Problem

# Forgejo has the API and the pages of Gitea, from which it was made.
ForgeKind = Literal["github", "gitlab", "gitea"]


class Status(StrEnum):
    """How far one of them is; every run looks at the remote, and does what is missing."""

    WANTED = "wanted"  # to be made: in a plan, and in a dry run
    CREATED = "made"  # by this run
    EXISTING = "there"  # already
    FOREIGN = "foreign"  # something else has its name, and keeps it
    PENDING = "owed"  # was to be made, and could not be; the next run tries it again
    DRAFT = "draft"  # whole, for somebody else to add to and to publish

    @property
    def done(self) -> bool:
        return self in {Status.CREATED, Status.EXISTING, Status.DRAFT}


class Tag(Struct, frozen=True, kw_only=True):
    """The tag of one version. `commit` is what it names in the end, `object` the id of the tag
    itself; either is empty where it is not known. `note` says why it is pending or foreign, as a
    sentence without a final stop; `hint` and `problem` are those of an error. `url` is its page.
    """

    name: Links
    commit: Identity = ""
    object: Identity = ""
    status: Status
    url: str = ""
    note: str = ""
    hint: Links = ""
    problem: Problem | None = None


class Announcement(Struct, frozen=True, kw_only=True):
    """The release of one tag at the forge, as `Tag` has it. A foreign one is somebody else's, who
    has said what there is to say: nothing is pending.
    """

    tag: Links
    status: Status
    url: str = ""
    note: str = ""
    hint: Links = ""
    problem: Problem | None = None


def is_made(each: Tag | Announcement) -> bool:
    """Whether this run has made it; of a draft that an earlier one has left, a note says so."""
    return each.status is Status.CREATED or (each.status is Status.DRAFT and not each.note)


class ForgePullRequest(Struct, frozen=True, kw_only=True):
    """`is_behind` where rules want what its base branch has by now."""

    forge: ForgeKind
    number: int
    url: str
    title: str
    body: str
    author: str
    is_behind: bool = False
    is_open: bool = True
    is_merged: bool = False

    @property
    def name(self) -> str:
        """As the forge calls it."""
        mark = "Merge request !" if self.forge == "gitlab" else "Pull request #"
        return f"{mark}{self.number}"
