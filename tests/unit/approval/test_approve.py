from __future__ import annotations

import asyncio
import io
from typing import TYPE_CHECKING, Any

import httpx
import pytest

import fakes
from approvals import FakeApproval, on_page, recorded
from releasekit.cli import approve
from releasekit.cli.commands.approve import ApproveInputs
from releasekit.cli.session import Session
from releasekit.cli.terminal import Terminal
from releasekit.ecosystems import ECOSYSTEMS, folders
from releasekit.errors import ConfigError, MissingCredentials, Transient
from releasekit.fields import replace
from releasekit.host.runner import open_runner
from releasekit.http.client import http_client
from releasekit.http.credentials import Credentials, snapshot
from releasekit.model import Outcome, PackageId, Report
from releasekit.report import results_json
from unit.approval.test_workflow_run import A_RUN, RUN, GitHub, archive

if TYPE_CHECKING:
    from pathlib import Path

    from releasekit.model import Result

CORE, WEB = recorded("core"), recorded("web")
BEHIND = replace(
    CORE,
    package=replace(CORE.package, id=PackageId("pypi", "acme")),
    outcome=Outcome.BLOCKED,
    staged=None,
)


class Case:
    """One call of the command; `out` is what it printed."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch, *results: Result) -> None:
        self.directory = directory
        self.registry = FakeApproval.holding([each for each in results if each.staged])
        self.out = io.StringIO()
        self.answers: list[bool] = []
        self.registries = {"npm": "https://registry.example"}
        self.results = results
        self.run_url = ""
        self.github = GitHub({})
        monkeypatch.setattr(folders, "approval", lambda *_: self.registry)
        case = self

        class Answering(Terminal):
            async def confirm(self, question: str) -> bool:
                print(question, file=case.out)
                return case.answers.pop(0)

        def at(*_: object) -> Terminal | None:
            return Answering(0, case.out) if case.answers else None

        monkeypatch.setattr(Terminal, "at", at)

    def run(self, command: str = "approve", **changes: object) -> int:
        names = [each.package.id for each in self.results]
        report = Report(
            run_id="run",
            plan_digest="",
            commit="",
            started_at="2026-11-22T12:00:00+00:00",
            duration_s=1.0,
            results=self.results,
            edges={name: frozenset(names[:place]) for place, name in enumerate(names)},
            registries=self.registries,
            run_url=self.run_url,
        )
        path = self.directory / "results.json"
        path.write_text(results_json(report))
        asked: dict[str, Any] = {"results_file": path, "yes": not self.answers}
        asked |= {
            name: changes.pop(name) for name in {"results_file", "run", "yes"} & changes.keys()
        }
        own = ApproveInputs(**asked)
        config = fakes.config(self.directory, mode=command, own_inputs=own, **changes)
        environ = {
            "RUNNER_TEMP": str(self.directory),
            "RELEASEKIT_NPM_OTP": "123456",
            "GH_TOKEN": "gho_token",
        }
        taken = snapshot(environ, {"RELEASEKIT_NPM_OTP"})
        credentials = Credentials(taken, mask=lambda _: None)
        actions = open_runner({}, self.out)
        session = Session(credentials, actions, actions.ci, ECOSYSTEMS, self.out)
        return asyncio.run(approve.run(config, session))

    def answer_as_github(self, request: httpx.Request) -> httpx.Response:
        results = (self.directory / "results.json").read_text()
        self.github.artifacts = {"releasekit-results": archive(results=results)}
        return self.github.answer(request)


@pytest.fixture
def case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Case:
    made = Case(tmp_path, monkeypatch, CORE, WEB, BEHIND)
    made.registry.codes = {"123456"}
    return made


def test_what_waits_is_approved_once_somebody_agrees(case: Case) -> None:
    case.answers = [True]
    assert case.run() == 0
    assert case.registry.approvals == ["core", "web"]
    assert "Approve 2 packages?" in case.out.getvalue()
    assert case.out.getvalue().startswith("Comparing 2 packages with what was built\n")
    assert "Approved. pypi:acme waits for this elsewhere" in case.out.getvalue()
    assert list(case.directory.iterdir()) == [case.directory / "results.json"]


def test_what_needs_something_that_failed_is_not_approved(case: Case) -> None:
    """R1"""
    case.results = (replace(CORE, outcome=Outcome.FAILED, staged=None), WEB)
    assert case.run() == 1
    assert case.registry.approvals == []
    assert "needs npm:core, which was neither published nor staged" in case.out.getvalue()
    assert case.run("reject") == 0


def test_whoever_disagrees_changes_nothing(case: Case) -> None:
    case.answers = [False]
    assert case.run() == 1
    assert case.registry.sent == []
    assert case.out.getvalue().endswith("Nothing was decided.\n")


def test_a_review_needs_somebody_to_answer_it(case: Case) -> None:
    with pytest.raises(ConfigError, match="no terminal to ask whether to approve 2 packages"):
        case.run(yes=False)
    assert "2 packages wait for approval" in case.out.getvalue()
    assert case.registry.sent == []


def test_a_release_is_taken_back_from_its_end(case: Case) -> None:
    assert case.run("reject") == 0
    assert case.registry.rejections == ["web", "core"]
    assert "Bump the versions before the next release" in case.out.getvalue()


def test_nothing_left_behind_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case(tmp_path, monkeypatch, CORE)
    case.registry.codes = {"123456"}
    assert case.run() == 0
    assert "There is nothing left to do" in case.out.getvalue()


@pytest.mark.parametrize("command", ["approve", "reject"])
def test_whose_run_it_is_is_shown_before_anything_is_asked(
    case: Case, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R35: its title is that of whoever opened the pull request."""
    evil = "\x1b[2J::error::\u202e"
    case.github = GitHub(
        {}, run=A_RUN | {"event": "pull_request", "head_branch": evil, "display_title": evil}
    )
    monkeypatch.setattr(
        "releasekit.cli.result_files.http_client",
        lambda: http_client(transport=httpx.MockTransport(case.answer_as_github)),
    )
    case.answers = [False]
    assert case.run(command, results_file=None, run=RUN) == 1
    shown, _, _ = case.out.getvalue().partition(f"{command.title()} 2 packages?")
    for line in (
        "  repository: acme/widgets",
        "  workflow: .github/workflows/release.yml",
        "  event: pull_request, of a pull request, which anybody may open",
        f"  commit: {'ab12' * 10}",
        "  started by: octocat",
    ):
        assert line in shown.splitlines()
    assert "  title: \\x1b[2J::error::\\u202e" in shown.splitlines()


def test_what_a_file_says_of_its_run_is_shown_as_that(case: Case) -> None:
    case.run_url = RUN
    case.answers = [False]
    assert case.run() == 1
    assert f"Staged by this run:\n  page, as the file says: {RUN}\n" in case.out.getvalue()


def test_a_second_run_asks_nobody(case: Case) -> None:
    """R19"""
    case.registry.held.clear()
    case.registry.visible = {"core", "web"}
    assert case.run(yes=False) == 0
    assert case.registry.sent == []


def test_what_was_not_staged_needs_no_decision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = Case(tmp_path, monkeypatch, replace(CORE, outcome=Outcome.PUBLISHED, staged=None))
    assert case.run() == 0
    assert "nothing of this run waits for approval" in case.out.getvalue()


@pytest.mark.parametrize("command", ["approve", "reject"])
def test_a_code_that_is_refused_ends_it(case: Case, command: str) -> None:
    case.registry.codes = {"654321"}
    assert case.run(command) == 1
    assert "a code, please" in case.out.getvalue()
    assert "Not all of it is done" in case.out.getvalue()


@pytest.mark.parametrize("command", ["approve", "reject"])
def test_stopped_in_the_middle_it_says_how_far_it_came(case: Case, command: str) -> None:
    """R28"""

    class Stopped(FakeApproval):
        async def approve(self, waiting: object, code: str) -> None:
            task = asyncio.current_task()
            assert task is not None
            main = next(
                each for each in asyncio.all_tasks() if "object run at" in repr(each.get_coro())
            )
            main.cancel()
            await asyncio.sleep(60)

        reject = approve

    case.registry = Stopped(held=case.registry.held, data=case.registry.data)
    assert case.run(command) == 130
    told = case.out.getvalue()
    assert "not decided" in told
    assert "stopped while it was being decided" in told


def test_nobody_is_logged_in(case: Case) -> None:
    case.registry.is_logged_in = False
    with pytest.raises(MissingCredentials):
        case.run()


def test_a_file_does_not_say_where_credentials_go(case: Case) -> None:
    """R37"""
    case.registries = {"npm": "https://evil.example/"}
    with pytest.raises(ConfigError, match=r"staged at https://evil.example/, and npm-registry is"):
        case.run()


PAGE = "https://central.sonatype.com/publishing/deployments"


def with_maven(case: Case, *deployed: Result) -> None:
    case.results = (CORE, WEB, BEHIND, *deployed)


@pytest.mark.parametrize("command", ["approve", "reject"])
def test_what_waits_on_a_page_is_named_with_it_and_left_alone(case: Case, command: str) -> None:
    """R15: what npm holds is decided, and success is not claimed."""
    with_maven(case, on_page(), on_page("com.acme:app"))
    case.answers = [True]
    assert case.run(command) == 1
    told = case.out.getvalue()
    assert (case.registry.approvals or case.registry.rejections[::-1]) == ["core", "web"]
    words = (
        f"Press Publish or Drop at {PAGE} for maven:com.acme:core, maven:com.acme:app: "
        f"`{command}` leaves that to you.\n"
    )
    assert told.startswith(words)
    assert told.endswith(words)
    assert f"{command.title()} 2 packages?" in told
    assert "nothing left to do" not in told
    assert "Not all of it is done" not in told


@pytest.mark.parametrize("command", ["approve", "reject"])
def test_a_release_on_a_page_alone_asks_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """R15: neither a registry nor a person, with no login; and all are named."""
    names = [f"com.acme:m{number}" for number in range(9)]
    case = Case(tmp_path, monkeypatch, *map(on_page, names))
    case.registry.is_logged_in = False
    assert case.run(command, yes=False) == 1
    (line,) = case.out.getvalue().splitlines()
    assert PAGE in line
    assert all(f"maven:{name}" in line for name in names)
    assert case.registry.sent == []


def test_a_page_that_is_gone_leaves_the_registry_to_look_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = Case(tmp_path, monkeypatch, on_page(page=""))
    assert case.run() == 1
    assert "at the registry for maven:com.acme:core" in case.out.getvalue()


@pytest.mark.parametrize(
    "page", ["https://evil.example/", "https://central.sonatype.com.evil.example/publishing"]
)
def test_a_file_sends_nobody_to_a_page_of_its_own(case: Case, page: str) -> None:
    """R37"""
    with_maven(case, on_page(page=page))
    with pytest.raises(
        ConfigError, match=r"waits at https://.*, and maven-registry is https://cen"
    ):
        case.run()
    assert case.registry.sent == []
    registries = fakes.registries(maven="https://evil.example")
    if page.startswith("https://evil.example/"):
        assert case.run(registries=registries) == 1


def test_a_chosen_ecosystem_leaves_the_others_out(case: Case) -> None:
    with_maven(case, on_page())
    assert case.run(ecosystem=("go",)) == 0
    assert case.out.getvalue().endswith("results.json: nothing of go waits for approval\n")
    case.results = (CORE, WEB, on_page())
    assert case.run(ecosystem=("npm",)) == 0
    assert case.registry.approvals == ["core", "web"]
    assert "maven" not in case.out.getvalue()
    assert case.out.getvalue().endswith("Approved.\n")


def test_what_needs_something_on_a_page_is_not_approved(case: Case) -> None:
    """R1"""
    case.results = (on_page(), CORE)
    assert case.run() == 1
    assert case.registry.approvals == []
    assert "npm:core: needs maven:com.acme:core" in case.out.getvalue()


@pytest.mark.parametrize("ecosystem", ["pypi", "conda"])
def test_not_every_ecosystem_holds_something_back(
    ecosystem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = replace(CORE, package=replace(CORE.package, id=PackageId(ecosystem, "core")))
    with pytest.raises(ConfigError, match=f"{ecosystem}: nothing of this ecosystem"):
        Case(tmp_path, monkeypatch, other).run()


def test_a_registry_in_trouble_is_no_success(case: Case) -> None:
    case.registry.trouble = [Transient("HTTP 503") for _ in range(9)]
    assert case.run(retry_base_delay=0.0) == 1
    assert "unknown" in case.out.getvalue()
