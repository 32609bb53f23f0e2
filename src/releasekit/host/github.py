"""The addresses of GitHub and GitHub Enterprise Server: their API, and the pages of a repository,
which is given as its own page, or empty where there is none to link to.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote

# GitHub Enterprise Server has other ones, and so does Gitea, whose runner runs actions too.
SERVER: Final = "https://github.com"
API: Final = "https://api.github.com"
# OWNER/NAME.
REPOSITORY: Final = re.compile(r"[A-Za-z0-9._-]{1,100}/[A-Za-z0-9._-]{1,100}")
# OWNER, NAME and the number, in the path of a run's page, or of one below it.
RUN_PATH: Final = re.compile(r"/?([\w.-]+)/([\w.-]+)/actions/runs/(\d{1,20})(?:/.*)?")


def page_of_tag(repository: str, tag: str) -> str:
    return _page(repository, f"releases/tag/{quote(tag, safe='@/')}")


def page_of_commit(repository: str, commit: str) -> str:
    return _page(repository, f"commit/{quote(commit)}")


def page_of_file(repository: str, commit: str, path: str) -> str:
    return _page(repository, f"blob/{quote(commit)}/{quote(path)}")


def page_of_new_file(repository: str, branch: str, path: str, text: str) -> str:
    """Where a person writes it, with a text to begin with."""
    directory, _, name = path.rpartition("/")
    filled = f"filename={quote(name, safe='')}&value={quote(text, safe='')}"
    return _page(repository, f"new/{quote(branch)}/{quote(directory)}?{filled}")


def page_of_comparison(repository: str, since: str, until: str) -> str:
    return _page(repository, f"compare/{quote(since)}...{quote(until)}")


def page_of_run(repository: str, number: str) -> str:
    return _page(repository, f"actions/runs/{number}")


def page_of_attestations(repository: str, number: str = "") -> str:
    """Of one, or of all."""
    return _page(repository, f"attestations/{number}".rstrip("/"))


def _page(repository: str, path: str) -> str:
    return f"{repository}/{path}" if repository else ""
