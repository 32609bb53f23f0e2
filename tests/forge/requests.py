"""The forges at which the cases of the release request run: what each has to offer, whichever it
is, the doubles that do, and a clone with jobs in it.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from harness import github, gitlab
from harness.github import MERGED, serving_github
from harness.gitlab import MERGED_AT, PERSONAL_TOKEN, serving_gitlab
from releasekit.__main__ import main
from versions.test_version_command import PYTHON, PYTHON_TAGS, write
from workspaces import git

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    import pytest

    from harness.github import GitHubDouble
    from harness.gitlab import GitLabDouble

MAIN = "refs/heads/main"
BRANCH = "releasekit/main"

# What is asked of a forge for a request: `find` looks for the open one, `read` reads one again,
# `move` moves its branch, `open` opens it, and `say` changes what it says, or closes it.
Moment = Literal["find", "read", "move", "open", "say"]
State = Literal["open", "closed", "merged"]
How = Literal["merge", "squash", "rebase"]


@dataclass(frozen=True, kw_only=True)
class Request:
    """As a visitor sees it. `head` is the commit that it shows, of its branch while it is open."""

    number: int
    url: str
    title: str
    body: str
    head: str
    state: State
    author: str


class RequestWorld(Protocol):
    """A forge with one repository, whose branch is `main`; numbers are those of requests.

    `around` is told "before" and "after" of each request and what it was ("POST /path?query"), and
    may raise HangUp: before it, nothing has happened; after it, the answer is lost. Requests take
    turns, and what it does here itself is not told to it. `asked` are those so far, and `failing`
    answers to the next ones of the API that write. `states` are the branches that pushes and the
    API have moved, each with the commit that it was moved to, zeros where it went. `longest_title`
    is how many characters the forge takes.
    """

    around: Callable[[str, str], None]

    @property
    def asked(self) -> list[str]: ...

    @property
    def failing(self) -> list[tuple[int, Any, dict[str, str]]]: ...

    @property
    def states(self) -> list[tuple[str, str]]: ...

    @property
    def name(self) -> str:
        """Of the forge, as messages spell it."""

    @property
    def url(self) -> str:
        """Of the git repository, with a login in it that may push."""

    @property
    def page(self) -> str:
        """Of the repository, for people."""

    @property
    def token(self) -> str:
        """The one that keeps requests, in RELEASEKIT_FORGE_TOKEN."""

    @property
    def longest_title(self) -> int: ...

    @property
    def defects(self) -> Sequence[str]:
        """What a run should not have asked; a test ends with none."""

    def environment(self, ref: str = MAIN) -> dict[str, str]:
        """Of a job with the `token` for a push to `ref`: a branch, a tag, or `refs/pull/7/merge`
        for a request.
        """

    def name_moment(self, what: str) -> Moment | None:
        """Of what was asked; None for all else, as for what git reads."""

    def git(self, *arguments: str) -> str:
        """In the repository at the forge."""

    def set_ref(self, ref: str, oid: str) -> None:
        """As if it had been pushed by force, by no run; it goes where `oid` is empty."""

    @property
    def requests(self) -> Sequence[Request]:
        """All of them, the oldest first."""

    def merge(self, number: int, how: How, *, deletes: bool = True) -> None:
        """As its page does, with the messages that it proposes in a repository that is set up as
        the request asks.
        """

    def end_as(self, number: int, state: State) -> None:
        """Without a change of branches, so that `merged` is merged elsewhere; `open` opens it."""

    def say(self, number: int, *, title: str, body: str) -> None:
        """As a person who edits it."""

    def update_branch(self, number: int, how: Literal["merge", "rebase"]) -> None:
        """Its branch is brought up to date with its base as the forge's page does it, or as people
        do, where that has no button.
        """

    def be_strict(self) -> None:
        """From now on, a request is said to be behind that lacks commits of its base. Skips the
        test where the forge says nothing of that.
        """


class _OfDouble:
    """What the doubles have in common; `double` is one."""

    moments: tuple[tuple[str, Moment], ...]

    def __init__(self, double: Any) -> None:
        self.double = double
        self.asked: list[str] = double.asked
        self.failing: list[tuple[int, Any, dict[str, str]]] = double.failing
        self.states: list[tuple[str, str]] = double.states

    @property
    def around(self) -> Callable[[str, str], None]:
        around: Callable[[str, str], None] = self.double.around
        return around

    @around.setter
    def around(self, around: Callable[[str, str], None]) -> None:
        self.double.around = around

    @property
    def url(self) -> str:
        return str(self.double.url)

    @property
    def page(self) -> str:
        return f"{self.double.origin}/{self.double.repository}"

    @property
    def defects(self) -> Sequence[str]:
        return tuple(self.double.defects)

    def name_moment(self, what: str) -> Moment | None:
        for pattern, moment in self.moments:
            if re.fullmatch(pattern, what.partition("?")[0]):
                return moment
        return None

    def git(self, *arguments: str) -> str:
        return str(self.double.git(*arguments))

    def set_ref(self, ref: str, oid: str) -> None:
        self.double.set_ref(ref, oid)
        self.double.look_at_branches()

    def merge(self, number: int, how: How, *, deletes: bool = True) -> None:
        self.double.merge(number, how, deletes=deletes)


class AtGitHub(_OfDouble):
    """Implements `RequestWorld`."""

    double: GitHubDouble
    name = "GitHub"
    token = github.TOKEN
    longest_title = github.MAX_TITLE
    moments = (
        (r"GET .*/pulls", "find"),
        (r"GET .*/pulls/\d+", "read"),
        (r"POST .*/graphql", "move"),
        (r"POST .*/pulls", "open"),
        (r"PATCH .*/pulls/\d+", "say"),
    )

    def environment(self, ref: str = MAIN) -> dict[str, str]:
        return {**self.double.environment, "GITHUB_ACTIONS": "true", "GITHUB_REF": ref}

    @property
    def requests(self) -> Sequence[Request]:
        self.double.look_at_branches()
        return [
            Request(
                number=each["number"],
                url=each["html_url"],
                title=each["title"],
                body=each["body"] or "",
                head=each["head"]["sha"],
                state="merged" if each["merged"] else each["state"],
                author=each["user"]["login"],
            )
            for each in self.double.pulls
        ]

    def end_as(self, number: int, state: State) -> None:
        ends: dict[State, dict[str, Any]]
        ends = {"merged": MERGED, "closed": {"state": "closed"}, "open": {"state": "open"}}
        self.double.find_pull(number).update(ends[state])

    def say(self, number: int, *, title: str, body: str) -> None:
        self.double.find_pull(number).update(title=title, body=body)

    def update_branch(self, number: int, how: Literal["merge", "rebase"]) -> None:
        self.double.update_branch(number, how)

    def be_strict(self) -> None:
        self.double.strict = True


class AtGitLab(_OfDouble):
    """Implements `RequestWorld`. GitLab rebases a branch; people merge into it."""

    double: GitLabDouble
    name = "GitLab"
    token = PERSONAL_TOKEN
    longest_title = gitlab.MAX_TITLE
    moments = (
        (r"GET .*/merge_requests", "find"),
        (r"GET .*/merge_requests/\d+", "read"),
        (r"POST .*/git-receive-pack", "move"),
        (r"POST .*/merge_requests", "open"),
        (r"PUT .*/merge_requests/\d+", "say"),
    )

    def environment(self, ref: str = MAIN) -> dict[str, str]:
        _, kind, name = ref.split("/", 2)
        number = name.partition("/")[0]
        named = {
            "heads": {"CI_COMMIT_BRANCH": name, "CI_PIPELINE_SOURCE": "push"},
            "tags": {"CI_COMMIT_TAG": name, "CI_PIPELINE_SOURCE": "push"},
            "pull": {
                "CI_MERGE_REQUEST_IID": number,
                "CI_MERGE_REQUEST_REF_PATH": f"refs/merge-requests/{number}/head",
                "CI_PIPELINE_SOURCE": "merge_request_event",
            },
        }[kind]
        return {**self.double.environment, "RELEASEKIT_FORGE_TOKEN": self.token, **named}

    @property
    def requests(self) -> Sequence[Request]:
        self.double.look_at_branches()
        return [
            Request(
                number=each["iid"],
                url=each["web_url"],
                title=each["title"],
                body=each["description"] or "",
                head=each["sha"],
                state="open" if each["state"] == "opened" else each["state"],
                author=each["author"]["username"],
            )
            for each in self.double.merge_requests
        ]

    def end_as(self, number: int, state: State) -> None:
        merged_at = MERGED_AT if state == "merged" else None
        named = "opened" if state == "open" else state
        self.double.find_request(number).update(state=named, merged_at=merged_at)

    def say(self, number: int, *, title: str, body: str) -> None:
        self.double.find_request(number).update(title=title, description=body)

    def update_branch(self, number: int, how: Literal["merge", "rebase"]) -> None:
        if how == "rebase":
            self.double.rebase_branch(number)
        else:
            self.double.merge_base(number)

    def be_strict(self) -> None:
        self.double.merge_method = "rebase_merge"


@contextlib.contextmanager
def _at_github(directory: Path) -> Iterator[AtGitHub]:
    with serving_github(directory) as double:
        yield AtGitHub(double)


@contextlib.contextmanager
def _at_gitlab(directory: Path) -> Iterator[AtGitLab]:
    with serving_gitlab(directory) as double:
        double.squash_template = "%{title}\n\n%{description}"
        yield AtGitLab(double)


WORLDS: Mapping[str, Callable[[Path], AbstractContextManager[RequestWorld]]] = {
    "github": _at_github,
    "gitlab": _at_gitlab,
}


@dataclass
class Job:
    """What one has told, besides its exit code."""

    code: int
    outputs: dict[str, str]
    summary: str
    out: str
    err: str

    @property
    def operation(self) -> str:
        return self.outputs["operation"]


class Place:
    """A clone with three packages, and jobs in it."""

    def __init__(
        self,
        tmp_path: Path,
        world: RequestWorld,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
        *,
        begun: Path | None = None,
    ) -> None:
        """A directory that is `begun` has files of its own instead, and no tags."""
        self.world = world
        self.root = begun or tmp_path / "a clone"
        self.tmp_path, self._monkeypatch, self._capsys = tmp_path, monkeypatch, capsys
        if not begun:
            write(self.root, PYTHON)
            for name in ("core", "cli", "web"):
                write(self.root, {f"packages/{name}/src/acme_{name}/__init__.py": "\n"})
        git(self.root, "init", "--quiet", "--initial-branch=main")
        git(self.root, "remote", "add", "origin", world.url)
        self.push("chore: start", {})
        self.tag(() if begun else PYTHON_TAGS)

    def tag(self, names: Collection[str]) -> None:
        """What is checked out, in one push."""
        for name in names:
            git(self.root, "tag", name)
        if names:
            git(self.root, "push", "--quiet", "origin", *names)

    def commit(self, message: str, files: Mapping[str, str]) -> str:
        write(self.root, files)
        git(self.root, "add", "--all")
        git(self.root, "commit", "--quiet", "--allow-empty", "--message", message)
        return git(self.root, "rev-parse", "HEAD").strip()

    def push(self, message: str, files: Mapping[str, str]) -> str:
        commit = self.commit(message, files)
        git(self.root, "push", "--quiet", "origin", "HEAD:main")
        return commit

    def pull(self, commit: str = "origin/main") -> None:
        """As a job checks out."""
        git(self.root, "fetch", "--quiet", "--tags", "--prune", "origin")
        git(self.root, "switch", "--quiet", "--detach", commit)

    def run(self, mode: str = "release-pr", *flags: str, ref: str = MAIN, **variables: str) -> Job:
        told = {"GITHUB_OUTPUT": "out", "GITHUB_STEP_SUMMARY": "summary"}
        environment = {
            **self.world.environment(ref),
            "RUNNER_TEMP": str(self.tmp_path),
            "RELEASEKIT_MODE": mode,
            "RELEASEKIT_WORKING_DIRECTORY": str(self.root),
            "RELEASEKIT_RETRY_BASE_DELAY": "0s",
            **{name: str(self.tmp_path / file) for name, file in told.items()},
            **variables,
        }
        with self._monkeypatch.context() as patch:
            for name, value in environment.items():
                patch.setenv(name, value)
            for name in told.values():
                (self.tmp_path / name).write_text("")
            self._capsys.readouterr()
            code = main([mode, str(self.root), *flags] if flags else [])
        said, token = self._capsys.readouterr(), self.world.token
        assert token not in (said.out + said.err).replace(f"::add-mask::{token}\n", "")
        assert git(self.root, "status", "--porcelain") == ""
        summary = (self.tmp_path / "summary").read_text()
        return Job(code, self._read_outputs(), summary, said.out, said.err)

    def _read_outputs(self) -> dict[str, str]:
        """From the file of Actions, or that of GitLab."""
        told = (self.tmp_path / "out").read_text().splitlines()
        outputs = {
            line.partition("<<")[0]: told[at + 1] for at, line in enumerate(told) if "<<" in line
        }
        file = self.root / ".releasekit/outputs.env"
        if outputs or not file.exists():
            return outputs
        rows = [line.partition("=") for line in file.read_text().splitlines()]
        return {name[3:].lower().replace("_", "-"): value for name, _, value in rows}

    @property
    def head(self) -> str:
        return self.world.git("rev-parse", BRANCH).strip()

    def show(self, path: str, commit: str = BRANCH) -> str:
        return self.world.git("show", f"{commit}:{path}")

    @property
    def open(self) -> list[Request]:
        return [each for each in self.world.requests if each.state == "open"]

    def find(self, number: int) -> Request:
        (found,) = [each for each in self.world.requests if each.number == number]
        return found

    @property
    def writes(self) -> list[str]:
        """What has been asked that changes something."""
        return [
            each
            for each in self.world.asked
            if not each.startswith("GET ") and "upload-pack" not in each
        ]

    @property
    def moves(self) -> list[str]:
        """Where the branch of the request has been, each time that something has moved it."""
        return [commit for branch, commit in self.world.states if branch == BRANCH]

    def hold(self) -> dict[str, str]:
        """What a run has made: the branch, what stands beside it, and what the request says."""
        listed = self.world.git("for-each-ref", "--format=%(refname) %(objectname)")
        rows = dict(line.split(" ") for line in listed.splitlines())
        (request,) = self.open
        refs = {name: oid for name, oid in rows.items() if "/releasekit/" in name}
        return {**refs, "title": request.title, "body": request.body}

    def become(self, state: Mapping[str, str], *, says: bool = True) -> None:
        """As if a run made it; of one that was killed, no request `says` so."""
        for name, oid in state.items():
            if name.startswith("refs/"):
                self.world.set_ref(name, oid)
        if says:
            (request,) = self.open
            self.world.say(request.number, title=state["title"], body=state["body"])


def interrupt(
    world: RequestWorld, when: str, moment: Moment, act: Callable[[], object], *, at: int = 1
) -> list[str]:
    """Act once "before" or "after" the request of that name is answered, of several the one `at`
    this place. Returns what was asked then, which is empty until it happens.
    """
    met: list[str] = []
    left = at

    def watch(now: str, what: str) -> None:
        nonlocal left
        if now != when or world.name_moment(what) != moment:
            return
        left -= 1
        if left == 0:
            world.around = lambda when, what: None
            met.append(what)
            act()

    world.around = watch
    return met
