"""The addresses of forges: their APIs, and the pages of a repository, which is given as its own
page, or empty where there is none to link to.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import quote, urlsplit

from msgspec import Struct

if TYPE_CHECKING:
    from releasekit.announced import ForgeKind

# GitHub Enterprise Server has other ones.
SERVER: Final = "https://github.com"
API: Final = "https://api.github.com"
# OWNER/NAME.
REPOSITORY: Final = re.compile(r"[A-Za-z0-9._-]{1,100}/[A-Za-z0-9._-]{1,100}")
# Groups of GitLab have groups in them: up to 20.
# https://docs.gitlab.com/user/group/subgroups/
NESTED_REPOSITORY: Final = re.compile(r"[A-Za-z0-9._-]{1,255}(?:/[A-Za-z0-9._-]{1,255}){1,21}")
# OWNER, NAME and the number, in the path of a run's page, or of one below it.
RUN_PATH: Final = re.compile(r"/?([\w.-]+)/([\w.-]+)/actions/runs/(\d{1,20})(?:/.*)?")
_APIS: Final[dict[ForgeKind, str]] = {"github": "/api/v3", "gitlab": "/api/v4", "gitea": "/api/v1"}
# Those that are known by their host alone.
_KNOWN: Final[dict[str, ForgeKind]] = {
    "github.com": "github",
    "gitlab.com": "gitlab",
    "codeberg.org": "gitea",
}
# What the address of a file's page has behind that of the repository.
_FILES: Final[dict[ForgeKind, str]] = {
    "github": "blob",
    "gitlab": "-/blob",
    "gitea": "src/commit",
}


def is_repository(kind: ForgeKind, path: str) -> bool:
    return bool((NESTED_REPOSITORY if kind == "gitlab" else REPOSITORY).fullmatch(path))


class ForgePlace(Struct, frozen=True, kw_only=True):
    """A repository at a forge. `server` is like https://codeberg.org, `repository` OWNER/NAME, or
    GROUP/…/PROJECT of a GitLab.
    """

    kind: ForgeKind
    server: str
    repository: str
    api: str

    @classmethod
    def at(cls, kind: ForgeKind, server: str, repository: str) -> Self:
        """With the usual API of such a server."""
        api = API if server == SERVER else f"{server}{_APIS[kind]}"
        return cls(kind=kind, server=server, repository=repository, api=api)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Of KIND:URL. Raises ValueError, which says what to write."""
        kind, _, url = text.partition(":")
        if kind == "forgejo":
            kind = "gitea"
        if kind not in _APIS:
            raise ValueError(
                "names no forge; write it as gitlab:https://git.example.com/group/project, or with "
                "github: or gitea: in front"
            )
        place = urlsplit(url)  # raises ValueError for brackets without an address
        path = place.path.strip("/").removesuffix(".git")
        whole = place.scheme in {"https", "http"} and place.hostname and not place.query
        if not is_repository(kind, path) or not whole or place.username or place.fragment:
            raise ValueError(
                "is not the page of a repository; write it as "
                f"{kind}:https://git.example.com/group/project"
            )
        return cls.at(kind, f"{place.scheme}://{place.netloc}", path)

    @classmethod
    def of_remote(cls, url: str) -> Self | None:
        """What is known of a git remote by its host."""
        host, path = split_remote(url)
        kind = _KNOWN.get(host)
        return cls.at(kind, f"https://{host}", path) if kind and is_repository(kind, path) else None

    @property
    def page(self) -> str:
        return f"{self.server}/{self.repository}"

    @property
    def pages(self) -> Pages:
        return Pages(self.kind, self.page)

    @property
    def host(self) -> str:
        return urlsplit(self.server).hostname or ""

    @property
    def name(self) -> str:
        """As sentences call it."""
        return "GitHub" if self.kind == "github" else self.host

    def __str__(self) -> str:
        return f"{self.kind}:{self.page}"


class Pages(Struct, frozen=True):
    """Those of a repository, whose own page is `repository`; all are empty where that is."""

    kind: ForgeKind
    repository: str

    def tag(self, tag: str) -> str:
        if self.kind == "gitlab":
            return self._at("-/releases/", tag, "@")  # a name with `/` is one part of the path
        return self._at("releases/tag/", tag, "@/")

    def commit(self, commit: str) -> str:
        return self._at("-/commit/" if self.kind == "gitlab" else "commit/", commit)

    def file(self, commit: str, path: str) -> str:
        return self._at(f"{_FILES[self.kind]}/{quote(commit)}/", path)

    def releases(self) -> str:
        return self._at("-/releases" if self.kind == "gitlab" else "releases", "")

    def comparison(self, since: str, until: str) -> str:
        place = "-/compare/" if self.kind == "gitlab" else "compare/"
        return self._at(f"{place}{quote(since)}...", until)

    def new_file(self, branch: str, path: str, text: str) -> str:
        """Where a person writes it: at GitHub with a text to begin with, at Gitea without its name.

        https://github.com/go-gitea/gitea/blob/v1.26.0/routers/web/repo/editor.go (EditFile)
        """
        directory, _, name = path.rpartition("/")
        if self.kind == "gitlab":
            return self._at(f"-/new/{quote(branch)}?file_name=", path, "")
        if self.kind == "gitea":
            return self._at(f"_new/{quote(branch)}/", directory)
        filled = f"filename={quote(name, safe='')}&value={quote(text, safe='')}"
        return _page(self.repository, f"new/{quote(branch)}/{quote(directory)}?{filled}")

    def _at(self, place: str, name: str, safe: str = "/") -> str:
        return _page(self.repository, f"{place}{quote(name, safe=safe)}")


def page_of_run(repository: str, number: str) -> str:
    return _page(repository, f"actions/runs/{number}")


def page_of_attestations(repository: str, number: str = "") -> str:
    """Of one, or of all."""
    return _page(repository, f"attestations/{number}".rstrip("/"))


def split_remote(url: str) -> tuple[str, str]:
    """The host of a git remote and the path there; both are empty for one of another shape.

    https://git-scm.com/docs/git-push#URLS
    """
    scp = re.fullmatch(r"(?:[^@/]+@)?([^:/]+):(?!//)(.+)", url)
    try:
        where, path = (scp[1], scp[2]) if scp else (urlsplit(url).hostname, urlsplit(url).path)
    except ValueError:  # brackets, and no address of a host between them
        return "", ""
    return where or "", path.strip("/").removesuffix(".git")


def _page(repository: str, path: str) -> str:
    return f"{repository}/{path}" if repository else ""
