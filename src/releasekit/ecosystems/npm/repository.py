"""Where the sources of a package are, `repository` in its package.json, in the one way that npm
spells it when it publishes, and that its registry compares with where a job comes from.

https://github.com/npm/package-json/blob/main/lib/normalize.js (fixRepositoryField) and
https://github.com/npm/hosted-git-info
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from releasekit.ecosystems.shared.documents import text_in

if TYPE_CHECKING:
    from collections.abc import Mapping

_MAX_CHARS: Final = 1_000
_HOSTS: Final = {"github": "github.com", "gitlab": "gitlab.com", "bitbucket": "bitbucket.org"}
_PATH: Final = r"(?P<owner>[\w-][\w.-]*)/(?P<name>[\w.-]+)"
_END: Final = r"/?(?:#(?P<commit>.*))?"
_SHORTHAND: Final = re.compile(rf"(?:(?P<host>{'|'.join(_HOSTS)}):)?{_PATH}{_END}", re.DOTALL)
_URL: Final = re.compile(
    r"(?:(?P<scheme>(?:git\+)?https|(?:git\+)?ssh|http|git)://(?:(?P<user>[^@/]+)@)?|[^@/:]+@)"
    rf"(?:www\.)?(?P<host>{'|'.join(map(re.escape, _HOSTS.values()))})[/:]{_PATH}{_END}",
    re.DOTALL | re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Hosted:
    """A repository at one of the hosts that npm knows: its `page`, and its `url` as npm has it."""

    page: str
    url: str

    @classmethod
    def parse(cls, text: str) -> Hosted | None:
        """None for what is no repository, and for one that is anywhere else."""
        if len(text) > _MAX_CHARS:
            return None
        if found := _SHORTHAND.fullmatch(text):
            return cls._of(found, _HOSTS[found["host"] or "github"], "git+https://")
        if not (found := _URL.fullmatch(text)):
            return None
        scheme = (found["scheme"] or "ssh").lower()
        if scheme == "git":
            before = "git://"
        elif scheme.endswith("https"):
            before = f"git+https://{found['user']}@" if found["user"] else "git+https://"
        else:
            before = "git+ssh://git@"
        return cls._of(found, found["host"].lower(), before)

    @classmethod
    def _of(cls, found: re.Match[str], host: str, before: str) -> Hosted:
        place = f"{host}/{found['owner']}/{found['name'].removesuffix('.git')}"
        commit = f"#{found['commit']}" if found["commit"] else ""
        return cls(f"https://{place}", f"{before}{place}.git{commit}")


def url_in(manifest: Mapping[str, object]) -> str:
    """`repository.url` as npm publishes it; empty where there is none."""
    return text_in(spelled(manifest.get("repository")), "url")


def spelled(repository: object) -> object:
    """`repository` of a manifest as npm publishes it."""
    if isinstance(repository, str) and repository:
        repository = {"type": "git", "url": repository}
    if not isinstance(repository, dict):
        return repository
    hosted = Hosted.parse(text_in(repository, "url"))
    found: dict[str, Any] = {**repository, "url": hosted.url} if hosted else repository
    return found
