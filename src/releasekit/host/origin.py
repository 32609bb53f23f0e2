"""Where a run takes place: what people call the project, its page, and the page of the run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping

GITHUB_HOST: Final = "github.com"
# An address that a page may link to; plain HTTP stays on this machine.
_SERVER: Final = re.compile(
    r"https://[A-Za-z0-9.-]+(:[0-9]+)?|http://(127\.0\.0\.1|localhost|\[::1\])(:[0-9]+)?"
)
_REPOSITORY: Final = re.compile(r"[A-Za-z0-9._-]{1,100}/[A-Za-z0-9._-]{1,100}")
# Events that start a job for a pull request, which any user may open.
# https://docs.github.com/en/actions/reference/workflows-and-actions/events-that-trigger-workflows
PULL_REQUEST_EVENTS: Final = frozenset(
    {
        "pull_request",
        "pull_request_target",
        "pull_request_review",
        "pull_request_review_comment",
        "merge_group",
    }
)
# The refs where a merge queue tries out what waits in it: the event `merge_group`.
_QUEUE: Final = "refs/heads/gh-readonly-queue/"
_NUMBER: Final = re.compile(r"[0-9]{1,20}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a run takes place. `project` is what a heading calls what is released, `repository` the
    page of its sources, and `run_url` that of the workflow run; both may be empty.
    """

    project: str = ""
    repository: str = ""
    run_url: str = ""


def on_actions(environment: Mapping[str, str]) -> bool:
    return environment.get("GITHUB_ACTIONS") == "true"


def server_of(environment: Mapping[str, str]) -> str:
    """The host of the server that the job runs on: Gitea, for example, runs actions too."""
    return urlsplit(environment.get("GITHUB_SERVER_URL", f"https://{GITHUB_HOST}")).hostname or ""


def pull_request_of(environment: Mapping[str, str]) -> str:
    """By which event, and at which ref, this is a job of a pull request; empty where it is none, or
    where that was merged: https://docs.github.com/en/actions/reference/workflows-and-actions/contexts
    (`github.ref`).
    """
    event, ref = (environment.get(name, "") for name in ("GITHUB_EVENT_NAME", "GITHUB_REF"))
    merged = ref.startswith("refs/heads/") and event != "pull_request_target"
    of_one = ref.startswith(_QUEUE) or (event in PULL_REQUEST_EVENTS and not merged)
    return f"{event} at {ref or 'no ref'}" if of_one else ""


def origin(environment: Mapping[str, str], root: Path) -> Origin:
    """`root` is that of the workspace. Away from a runner there is no page, and the project has the
    name of its directory.

    https://docs.github.com/en/actions/reference/workflows-and-actions/variables
    """
    names = ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_RUN_ID", "GITHUB_WORKSPACE")
    server, repository, run, checkout = (environment.get(name, "") for name in names)
    if not on_actions(environment) or not _REPOSITORY.fullmatch(repository):
        return Origin(project=root.name)
    project = "/".join((repository, *_below(root, checkout)))
    page = f"{server}/{repository}" if _SERVER.fullmatch(server) else ""
    shown = page and _NUMBER.fullmatch(run)
    return Origin(
        project=project, repository=page, run_url=f"{page}/actions/runs/{run}" if shown else ""
    )


def _below(root: Path, checkout: str) -> tuple[str, ...]:
    """The parts of the path from one to the other; none where it leads elsewhere."""
    try:
        top = Path(checkout).resolve() if checkout else root
    except (RuntimeError, OSError):  # a loop of links, before Python 3.13 and since
        return ()
    return root.relative_to(top).parts if root.is_relative_to(top) else ()
