"""The CI that a run takes place on, as one value that is made from its environment."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import urlsplit

from releasekit.host.files import read_head
from releasekit.host.github import API, REPOSITORY, SERVER, page_of_run
from releasekit.text.json_text import parse_json

if TYPE_CHECKING:
    from collections.abc import Mapping

# https://docs.github.com/en/actions/reference/workflows-and-actions/variables
API_URL: Final = "GITHUB_API_URL"
SERVER_URL: Final = "GITHUB_SERVER_URL"
HOW_TO_NAME_REPOSITORY: Final = (
    f"set GITHUB_REPOSITORY=OWNER/NAME, and for GitHub Enterprise GITHUB_SERVER_URL and {API_URL}, "
    "as its runners do."
)
# A directory of the job, in which the runner also keeps the files that it obeys.
TEMPORARY: Final = "RUNNER_TEMP"
OUTPUTS: Final = "GITHUB_OUTPUT"
SUMMARY: Final = "GITHUB_STEP_SUMMARY"
# The files that the runner makes before a step and obeys after it.
COMMAND_FILES: Final = ("GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE", OUTPUTS, SUMMARY)
# Where a job asks for an ID token, and what with.
IDENTITY_URL: Final = "ACTIONS_ID_TOKEN_REQUEST_URL"
IDENTITY_BEARER: Final = "ACTIONS_ID_TOKEN_REQUEST_TOKEN"
# What every child process may see, as an expression.
HARMLESS: Final = (
    "CI|GITHUB_ACTIONS|GITHUB_(SHA|REF|REF_NAME|REPOSITORY|SERVER_URL|WORKSPACE)"
    "|RUNNER_(OS|ARCH|TEMP|TOOL_CACHE)"
)
# An address that a page may link to; plain HTTP stays on this machine.
_LINKED: Final = re.compile(
    r"https://[A-Za-z0-9.-]+(:[0-9]+)?|http://(127\.0\.0\.1|localhost|\[::1\])(:[0-9]+)?"
)

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
_MAX_EVENT_BYTES: Final = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a run takes place. `project` is what a heading calls what is released, `repository` the
    page of its sources, and `run_url` that of the workflow run; both may be empty.
    """

    project: str = ""
    repository: str = ""
    run_url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PullRequest:
    """`commit` is the newest of its `branch`, in a `repository` that may be another than the one it
    is to be merged `into`, on top of the commit `base`, the newest of the branch `target`; both are
    OWNER/NAME. All of it may be somebody else's text.
    """

    number: int
    title: str
    commit: str
    branch: str
    repository: str
    into: str
    base: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CI:
    """`is_actions` for a job of GitHub Actions; a laptop may give the addresses too. `server` and
    `api` are those of its GitHub, `repository` is OWNER/NAME, and `checkout` the directory of the
    sources; both may be empty. `is_debugged` where somebody runs it again with debug logging.
    """

    is_actions: bool
    server: str
    api: str
    repository: str
    event: str
    ref: str
    checkout: str
    is_debugged: bool
    _event_file: str
    _run: str

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Self:
        repository = environment.get("GITHUB_REPOSITORY", "")
        return cls(
            is_actions=environment.get("GITHUB_ACTIONS") == "true",
            server=environment.get(SERVER_URL, SERVER).rstrip("/"),
            api=environment.get(API_URL, API),
            repository=repository if REPOSITORY.fullmatch(repository) else "",
            event=environment.get("GITHUB_EVENT_NAME", ""),
            ref=environment.get("GITHUB_REF", ""),
            checkout=environment.get("GITHUB_WORKSPACE", ""),
            is_debugged=environment.get("RUNNER_DEBUG") == "1",
            _event_file=environment.get("GITHUB_EVENT_PATH", ""),
            _run=environment.get("GITHUB_RUN_ID", ""),
        )

    @property
    def host(self) -> str:
        return urlsplit(self.server).hostname or ""

    @property
    def is_public(self) -> bool:
        """Whether registries that know jobs of github.com alone may know this one."""
        return self.host == "github.com"

    @property
    def pull_request(self) -> str:
        """By which event, and at which ref, this is a job of a pull request; empty where it is
        none, or where that was merged.

        https://docs.github.com/en/actions/reference/workflows-and-actions/contexts (`github.ref`)
        """
        merged = self.ref.startswith("refs/heads/") and self.event != "pull_request_target"
        is_of_one = self.ref.startswith(_QUEUE) or (
            self.event in PULL_REQUEST_EVENTS and not merged
        )
        return f"{self.event} at {self.ref or 'no ref'}" if is_of_one else ""

    def is_from_fork(self) -> bool:
        """Whether the pull request is, which GitHub gives neither secrets nor ID tokens."""
        request = self.read_pull_request()
        return request is not None and request.repository != request.into

    def read_pull_request(self) -> PullRequest | None:
        """None where no event `pull_request` says which it is.

        https://docs.github.com/webhooks/webhook-events-and-payloads#pull_request
        """
        if self.event != "pull_request":
            return None
        try:
            event = parse_json(read_head(Path(self._event_file), _MAX_EVENT_BYTES))
            told = event["pull_request"]
            return PullRequest(
                number=int(told.get("number", 0)),
                title=str(told.get("title", "")),
                commit=str(told["head"].get("sha", "")),
                branch=str(told["head"].get("ref", "")),
                repository=str(told["head"]["repo"]["full_name"]),
                into=str(told["base"]["repo"]["full_name"]),
                base=str(told["base"].get("sha", "")),
                target=str(told["base"].get("ref", "")),
            )
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            return None

    def origin(self, root: Path) -> Origin:
        """`root` is that of the workspace. Away from a runner, a run has no page, and its project
        is named after its directory.
        """
        if not self.is_actions or not self.repository:
            return Origin(project=root.name)
        project = "/".join((self.repository, *_below(root, self.checkout)))
        page = f"{self.server}/{self.repository}" if _LINKED.fullmatch(self.server) else ""
        shown = page and _NUMBER.fullmatch(self._run)
        run_url = page_of_run(page, self._run) if shown else ""
        return Origin(project=project, repository=page, run_url=run_url)


def _below(root: Path, checkout: str) -> tuple[str, ...]:
    """The parts of the path from one to the other; none where it leads elsewhere."""
    try:
        top = Path(checkout).resolve() if checkout else root
    except (RuntimeError, OSError):  # a loop of links, before Python 3.13 and since
        return ()
    return root.relative_to(top).parts if root.is_relative_to(top) else ()
