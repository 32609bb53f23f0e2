"""Results that are fetched from the artifacts of a workflow run."""

from __future__ import annotations

import asyncio
import io
import json
import zipfile
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import httpx
import pytest

from releasekit.approval import workflow_run
from releasekit.approval.workflow_run import WorkflowRun
from releasekit.errors import ConfigError, Denied, PackageError
from releasekit.http.client import RetryPolicy, http_client
from releasekit.http.credentials import Credentials, snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from releasekit.http.credentials import Secret

RUN = "https://github.com/acme/widgets/actions/runs/17"
API = "https://api.github.com/repos/acme/widgets/actions"
BLOB = "https://results.blob.example/artifact?sig=x"


# https://docs.github.com/en/rest/actions/workflow-runs#get-a-workflow-run
A_RUN = {
    "id": 17,
    "path": ".github/workflows/release.yml",
    "event": "push",
    "head_branch": "main",
    "head_sha": "ab12" * 10,
    "display_title": "Release 1.1",
    "actor": {"login": "octocat"},
    "triggering_actor": {"login": "octocat"},
    "repository": {"full_name": "acme/widgets"},
    "head_repository": {"full_name": "acme/widgets"},
}


def secrets(environ: Mapping[str, str]) -> Callable[[str], Secret | None]:
    """As a command has them: no token is left in its environment."""
    return Credentials(snapshot(environ), mask=lambda _: None).get


def archive(**files: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as made:
        for name, text in files.items():
            made.writestr(name.replace("__", "/") + ".json", text)
    return buffer.getvalue()


@dataclass
class GitHub:
    """Answers as the REST API does: an archive lies elsewhere, and is found by a redirect."""

    artifacts: dict[str, bytes]
    expired: tuple[str, ...] = ()
    sizes: dict[str, int] = field(default_factory=dict)
    status: int = 200
    run: object = field(default_factory=lambda: dict(A_RUN))
    requests: list[httpx.Request] = field(default_factory=list)

    def answer(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        names = list(self.artifacts)
        if request.url.host == "results.blob.example":
            return httpx.Response(200, content=self.artifacts[request.url.params["name"]])
        if self.status != 200:
            return httpx.Response(self.status, json={"message": "Bad credentials"})
        if request.url.path.endswith("/runs/17"):
            return httpx.Response(200, json=self.run)
        if request.url.path.endswith("/zip"):
            name = names[int(request.url.path.split("/")[-2])]
            return httpx.Response(302, headers={"Location": f"{BLOB}&name={name}"})
        rows = [
            {
                "id": number,
                "name": name,
                "size_in_bytes": self.sizes.get(name, len(self.artifacts[name])),
                "expired": name in self.expired,
            }
            for number, name in enumerate(names)
        ]
        return httpx.Response(200, json={"total_count": len(rows), "artifacts": rows})

    def facts(self) -> Mapping[str, str]:
        async def fetched() -> Mapping[str, str]:
            run = WorkflowRun.named(RUN, secrets({"GH_TOKEN": "gho_token"}))
            async with http_client(transport=httpx.MockTransport(self.answer)) as http:
                return await run.describe(http, RetryPolicy(0, 0.0))

        return asyncio.run(fetched())

    def results(self) -> list[tuple[str, bytes]]:
        async def fetched() -> list[tuple[str, bytes]]:
            run = WorkflowRun.named(RUN, secrets({"GH_TOKEN": "gho_token"}))
            transport = httpx.MockTransport(self.answer)
            async with http_client(transport=transport) as http:
                return await run.results(http, RetryPolicy(0, 0.0))

        return asyncio.run(fetched())


def test_the_results_of_every_job_are_found_newest_first() -> None:
    github = GitHub({"state-npm": archive(results="1", deep__results="2"), "log": archive(x="3")})
    assert github.results() == [
        ("state-npm: results.json", b"1"),
        ("state-npm: deep/results.json", b"2"),
    ]


def test_it_says_whose_run_it_is() -> None:
    github = GitHub({})
    assert github.facts() == {
        "repository": "acme/widgets",
        "workflow": ".github/workflows/release.yml",
        "event": "push",
        "ref": "main",
        "commit": "ab12" * 10,
        "started by": "octocat",
        "title": "Release 1.1",
    }
    assert [str(each.url) for each in github.requests] == [f"{API}/runs/17"]


def test_it_says_that_a_run_is_of_a_pull_request_and_of_a_fork() -> None:
    of_fork = {
        "event": "pull_request_target",
        "head_repository": {"full_name": "evil/widgets"},
        "triggering_actor": {"login": "maintainer"},
    }
    facts = GitHub({}, run=A_RUN | of_fork).facts()
    assert facts["event"] == "pull_request_target, of a pull request, which anybody may open"
    assert facts["ref"] == "main of evil/widgets"
    assert facts["started by"] == "octocat, and again by maintainer"


def test_what_is_deleted_since_is_said_to_be_unknown() -> None:
    gone = {"head_branch": None, "actor": None, "head_repository": None, "display_title": ""}
    facts = GitHub({}, run=A_RUN | gone).facts()
    assert (facts["ref"], facts["started by"]) == ("unknown", "unknown, and again by octocat")
    assert facts["title"] == "none"


@pytest.mark.parametrize(
    "answer",
    [
        [],
        {},
        A_RUN | {"id": 18},
        A_RUN | {"event": None},
        A_RUN | {"path": 7},
        A_RUN | {"repository": "acme/widgets"},
    ],
)
def test_an_answer_about_no_run_or_another_is_an_error(answer: object) -> None:
    with pytest.raises(PackageError, match="not the workflow run 17"):
        GitHub({}, run=answer).facts()


def test_the_token_goes_to_github_alone() -> None:
    """R37: an archive lies at another origin, whose address is its own password."""
    github = GitHub({"releasekit-results": archive(results="1"), "other": archive(results="2")})
    assert github.results() == [("releasekit-results: results.json", b"1")]
    by_host = {request.url.host: request for request in github.requests}
    assert by_host["api.github.com"].headers["Authorization"] == "Bearer gho_token"
    assert "Authorization" not in by_host["results.blob.example"].headers
    assert [str(r.url) for r in github.requests][:2] == [
        f"{API}/runs/17/artifacts?per_page=100",
        f"{API}/artifacts/0/zip",
    ]


def test_what_is_gone_or_too_large_is_not_fetched() -> None:
    """R40"""
    github = GitHub(
        {"old": archive(results="1"), "large": archive(results="2")},
        expired=("old",),
        sizes={"large": workflow_run.MAX_ARTIFACT_BYTES + 1},
    )
    with pytest.raises(ConfigError, match="none of the 1 artifacts of run 17 of acme/widgets"):
        github.results()
    assert len(github.requests) == 1


def test_an_archive_that_unpacks_without_end_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """R40"""
    monkeypatch.setattr(workflow_run, "MAX_BYTES", 10_000)
    github = GitHub({"a": archive(results="x" * 6_000, deep__results="x" * 6_000)})
    with pytest.raises(PackageError, match=r"a: its results.json is over 10000 bytes"):
        github.results()


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04 and no more", b"<html>"])
def test_no_archive_is_an_error(data: bytes) -> None:
    with pytest.raises(PackageError, match="not an archive that can be read"):
        GitHub({"a": data}).results()


def test_the_results_of_all_artifacts_have_one_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """R40: a run may have a hundred artifacts."""
    monkeypatch.setattr(workflow_run, "MAX_BYTES", 10_000)
    github = GitHub({name: archive(results="x" * 6_000) for name in ("a", "b")})
    with pytest.raises(PackageError, match=r"a: its results.json is over 10000 bytes"):
        github.results()


def test_what_unpacks_at_once_is_refused() -> None:
    """R40: four kilobytes of bzip2 may be gigabytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_BZIP2) as made:
        made.writestr("results.json", "1")
    with pytest.raises(PackageError, match="a file in it is packed by method 12"):
        GitHub({"a": buffer.getvalue()}).results()


def test_a_token_that_may_not_read_it_is_told_of() -> None:
    with pytest.raises(Denied) as caught:
        GitHub({}, status=401).results()
    assert "read the repository's artifacts" in caught.value.hint


@pytest.mark.parametrize("document", ["[]", "{}", '{"artifacts": [{}]}', "x"])
def test_an_answer_that_lists_nothing_is_an_error(document: str) -> None:
    def answer(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, text=document)

    async def fetched() -> None:
        run = WorkflowRun.named(RUN, secrets({"GH_TOKEN": "t"}))
        async with http_client(transport=httpx.MockTransport(answer)) as http:
            await run.results(http, RetryPolicy(0, 0.0))

    with pytest.raises(PackageError, match="not a list of artifacts"):
        asyncio.run(fetched())


def test_each_github_has_a_token_of_its_own() -> None:
    """R37"""
    both = {"GITHUB_TOKEN": "public", "GH_ENTERPRISE_TOKEN": "ours"}
    public = WorkflowRun.named(f"{RUN}/attempts/2", secrets(both))
    assert (public.api, public.token.reveal()) == ("https://api.github.com", "public")
    ours = WorkflowRun.named("https://git.acme.example/a/b/actions/runs/3?pr=1", secrets(both))
    assert (ours.api, ours.token.reveal()) == ("https://git.acme.example/api/v3", "ours")
    assert (ours.repository, ours.number) == ("a/b", "3")
    with pytest.raises(ConfigError, match="GH_TOKEN or GITHUB_TOKEN has to hold a token"):
        WorkflowRun.named(RUN, secrets({"GH_ENTERPRISE_TOKEN": "ours"}))


@pytest.mark.parametrize(
    "url",
    [
        "https://github.com/acme/widgets",
        "https://github.com/acme/widgets/actions/runs/x",
        "https://github.com/acme/../../actions/runs/1",
        "http://github.com/acme/widgets/actions/runs/1",
        "12345",
    ],
)
def test_what_is_no_address_of_a_run_is_an_error(url: str) -> None:
    """R37, R40"""
    with pytest.raises(ConfigError, match="--run"):
        WorkflowRun.named(url, secrets({"GH_TOKEN": json.dumps(url)}))


def test_a_rate_limit_is_waited_for() -> None:
    """R36: GitHub answers 403 for one, which is no refusal."""
    github = GitHub({"releasekit-results": archive(results="1")})
    limits = [httpx.Response(403, headers={"Retry-After": "0"})]

    def answer(request: httpx.Request) -> httpx.Response:
        return limits.pop() if limits else github.answer(request)

    async def fetched() -> list[tuple[str, bytes]]:
        run = WorkflowRun.named(RUN, secrets({"GH_TOKEN": "t"}))
        async with http_client(transport=httpx.MockTransport(answer)) as http:
            return await run.results(http, RetryPolicy(1, 0.0))

    assert asyncio.run(fetched()) == [("releasekit-results: results.json", b"1")]
