"""The command trust, with the registries of its packages as doubles: what they tell, and to whom.

https://github.com/npm/api-documentation/blob/main/api/registry.npmjs.com/trust.yaml,
https://github.com/rust-lang/crates.io/tree/main/src/controllers/trustpub/github_configs and
https://docs.pypi.org/api/integrity/
"""

from __future__ import annotations

import contextlib
import json
import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from harness.http_server import Handler, serving
from integration.tools import require_tool
from releasekit.__main__ import main
from releasekit.cli.terminal import Terminal
from releasekit.cli.trust import _list_environments
from releasekit.http.client import http_client
from watchdog import assert_no_worse_than_linear
from workspaces import git, write_json, write_member

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
MATRIX = (EXAMPLES / "matrix.yml").read_text()
# What only files that builds can write tell has to be said, or confirmed.
WRITE = (
    *("--write", "--repository", "acme/kit", "--workflow", "release.yml"),
    *("--environment", "release"),
)


@dataclass
class Registries:
    """`npm` and `crates` are what there is, each with the publishers that it trusts; `proved` says
    that npm sees a second factor.
    """

    npm: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    crates: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    projects: set[str] = field(default_factory=set)
    proved: bool = False
    scopes: tuple[str, ...] = ("trusted-publishing",)
    asked: list[httpx.Request] = field(default_factory=list)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        name = request.url.path.split("/")[2] if request.url.path.count("/") > 1 else ""
        match request.url.host:
            case "registry.npmjs.org":
                return self._answer_npm(request)
            case "crates.io":
                return self._answer_crates(request)
            case "index.crates.io":
                known = request.url.path.rpartition("/")[2] in self.crates
                return httpx.Response(200 if known else 404)
            case "pypi.org" if name in self.projects:
                kind = {"Content-Type": "application/vnd.pypi.simple.v1+json"}
                return httpx.Response(200, json={"files": []}, headers=kind)
            case "pypi.org":
                return httpx.Response(404)
            case host:
                raise AssertionError(host)

    def _answer_npm(self, request: httpx.Request) -> httpx.Response:
        path = request.url.raw_path.decode().replace("%2f", "/")
        name = path.removeprefix("/-/package/").removesuffix("/trust").removeprefix("/")
        if name not in self.npm:
            return httpx.Response(404, json={"message": "Package not found"})
        if not path.endswith("/trust"):
            return httpx.Response(200, json={"versions": {}, "dist-tags": {}})
        if request.headers.get("Authorization") != "Bearer npm_of_me" or not self.proved:
            return httpx.Response(401, json={"message": "Unauthorized"})
        if request.method == "POST":
            if self.npm[name]:
                words = "trusted publisher config already exists for the package."
                return httpx.Response(409, json={"message": words})
            self.npm[name] += json.loads(request.content)
        return httpx.Response(200, json=self.npm[name])

    def _answer_crates(self, request: httpx.Request) -> httpx.Response:
        assert request.url.path == "/api/v1/trusted_publishing/github_configs"
        sent = json.loads(request.content)["github_config"] if request.content else {}
        name = sent.get("crate") or request.url.params["crate"]
        if request.headers["Authorization"] != "cio_of_me" or not self.scopes:
            words = "this token does not have the required permissions to perform this action"
            return httpx.Response(403, json={"errors": [{"detail": words}]})
        if name not in self.crates:
            words = f"crate `{name}` does not exist"
            return httpx.Response(404, json={"errors": [{"detail": words}]})
        if request.method == "POST":
            self.crates[name].append(sent)
            return httpx.Response(200, json={"github_config": {"id": 1, **sent}})
        meta = {"total": len(self.crates), "next_page": None}
        return httpx.Response(200, json={"github_configs": self.crates[name], "meta": meta})


def of_npm(repository: str, file: str, environment: str = "") -> dict[str, Any]:
    claims = {"repository": repository, "workflow_ref": {"file": file}}
    claims |= {"environment": environment} if environment else {}
    return {"type": "github", "claims": claims, "permissions": ["createPackage"]}


def of_crates(repository: str, file: str, environment: str | None = None) -> dict[str, Any]:
    owner, _, name = repository.partition("/")
    return {
        "repository_owner": owner,
        "repository_name": name,
        "workflow_filename": file,
        "environment": environment,
    }


class OnLoopback(Handler):
    """A server that is each of the registries, by the name that it is asked under."""

    answer: Callable[[httpx.Request], httpx.Response]

    def _respond(self) -> None:
        if received := self.received():
            headers, body = received
            url = f"https://{headers['host']}{self.path}"
            asked = httpx.Request(self.command, url, headers=headers, content=body)
            response = type(self).answer(asked)
            kind = response.headers.get("Content-Type", "")
            self.send(response.status_code, [("Content-Type", kind)], response.content)

    do_GET = do_POST = _respond


class ToLoopback(httpx.AsyncHTTPTransport):
    """Sends what is meant for the registries to a server on this machine."""

    def __init__(self, origin: str) -> None:
        super().__init__()
        self._origin = httpx.URL(origin)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        request.url = self._origin.copy_with(raw_path=request.url.raw_path)
        return await super().handle_async_request(request)


@contextlib.contextmanager
def answering(answer: Callable[[httpx.Request], httpx.Response]) -> Iterator[None]:
    with (
        serving(OnLoopback, checked=True, answer=staticmethod(answer)) as origin,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(
            "releasekit.cli.session.http_client",
            lambda **_: http_client(transport=ToLoopback(origin)),
        )
        yield


@pytest.fixture
def registries() -> Iterator[Registries]:
    made = Registries()
    with answering(made):
        yield made


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of acme/kit, with a package of each of three ecosystems, that release.yml publishes."""
    require_tool("cargo")
    for name in os.environ:
        if name.startswith(("RELEASEKIT_", "GITHUB_", "ACTIONS_", "RUNNER_")):
            monkeypatch.delenv(name)
    rust = os.environ.get("RUSTUP_HOME", str(Path.home() / ".rustup"))
    monkeypatch.setenv("RUSTUP_HOME", rust)
    monkeypatch.setenv("HOME", str(tmp_path))  # without anybody's .npmrc
    root = tmp_path / "w"
    write_member(root, "acme-core")
    write_json(root / "package.json", {"name": "@acme/ui", "version": "1.0.0"})
    crate = '[package]\nname = "acme"\nversion = "1.0.0"\nedition = "2021"\n'
    (root / "Cargo.toml").write_text(crate)
    (root / "src" / "lib.rs").touch()
    git(root, "init", "--quiet")
    git(root, "remote", "add", "origin", "git@github.com:acme/kit.git")
    write_workflow(root, MATRIX)
    return root


@pytest.fixture
def logins(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELEASEKIT_NPM_TOKEN", "npm_of_me")
    monkeypatch.setenv("RELEASEKIT_CARGO_TOKEN", "cio_of_me")


def write_workflow(root: Path, text: str, name: str = "release.yml") -> None:
    path = root / ".github" / "workflows" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def rows(said: str) -> list[str]:
    """Of the table, without its heading."""
    blocks = [block.splitlines() for block in said.split("\n\n")]
    return next((lines[1:] for lines in blocks if lines[0].endswith("trusts it")), [])


@pytest.mark.usefixtures("logins")
def test_each_package_is_listed_with_whom_its_registry_trusts(
    root: Path, registries: Registries, capsys: pytest.CaptureFixture[str]
) -> None:
    """R38. Capitals do not count, and what names no environment trusts any."""
    registries.proved = True
    registries.npm["@acme/ui"] = [of_npm("Acme/Kit", "release.yml")]
    old = of_crates("acme/old", "release.yml", "release")
    registries.crates["acme"] = [old, of_crates("acme/kit", "release.yml", "Release")]
    asked = ["trust", str(root), "--ecosystem", "npm,cargo"]
    assert main([*asked, "--check"]) == 0
    heading, end = (
        "the workflow: release.yml of acme/kit, environment release\n",
        "trusted by 2 of ",
    )
    assert capsys.readouterr().out == f"{heading}\n{end}2 packages\n"
    assert len(registries.asked) == 4
    assert main(asked) == 0
    table = "package       trusts it\ncargo:acme    yes\nnpm:@acme/ui  yes\n"
    assert capsys.readouterr().out == f"{heading}\n{table}\n{end}2 packages\n"


@pytest.mark.usefixtures("logins")
def test_what_trusts_another_job_is_left_and_fails_the_check(
    root: Path, registries: Registries, capsys: pytest.CaptureFixture[str]
) -> None:
    registries.proved = True
    registries.projects.add("acme-core")
    registries.npm["@acme/ui"] = [of_npm("acme/kit", "ci.yml"), {"type": "gitlab", "claims": {}}]
    registries.crates["acme"] = [of_crates("acme/kit", "release.yml", "crates")]
    assert main(["trust", str(root)]) == 0
    told = [
        "cargo:acme      no: it trusts release.yml of acme/kit, environment crates",
        "npm:@acme/ui    no: it trusts ci.yml of acme/kit, a job of gitlab",
        "pypi:acme-core  not known",
    ]
    assert rows(capsys.readouterr().out) == told
    assert main(["trust", str(root), "--check"]) == 1
    # What a registry tells nobody cannot be checked.
    said = capsys.readouterr().out
    assert [row.split()[0] for row in rows(said)] == ["cargo:acme", "npm:@acme/ui"]
    unchecked = "not checked, since their registries tell no program: pypi:acme-core"
    assert said.splitlines()[-1] == unchecked


def test_where_a_person_has_to_act_the_page_and_the_values_are_named(
    root: Path, registries: Registries, capsys: pytest.CaptureFixture[str]
) -> None:
    registries.npm["@acme/ui"], registries.crates["acme"] = [], []
    registries.projects.add("acme-core")
    assert main(["trust", str(root)]) == 0
    npm = "npm trust github @acme/ui --file release.yml --repository acme/kit"
    assert capsys.readouterr().out.partition("cargo: ")[2] == (
        "crates.io tells owners only: set RELEASEKIT_CARGO_TOKEN to a token with the scope "
        "trusted-publishing; enter Publisher: GitHub; Repository owner: acme; Repository name: "
        "kit; Workflow filename: release.yml; Environment name: release, at\n"
        "  https://crates.io/crates/acme/settings/new-trusted-publisher\n\n"
        "npm: npm tells a person only, by a second factor; run, after `npm login`,\n"
        f"  {npm} --environment release --allow-publish --yes\n\n"
        "pypi: PyPI tells owners only; enter Owner: acme; Repository name: kit; Workflow name: "
        "release.yml; Environment name: release, at\n"
        "  https://pypi.org/manage/project/acme-core/settings/publishing/\n\n"
        "trusted by 0 of 3 packages\n"
    )
    assert "crates.io" not in {each.url.host for each in registries.asked}
    assert "/trust" not in "".join(each.url.path for each in registries.asked)
    # A token would tell it of crates.io.
    assert main(["trust", str(root), "--check"]) == 1
    assert rows(capsys.readouterr().out) == ["cargo:acme  not known"]


@pytest.mark.usefixtures("logins")
def test_what_is_new_takes_another_way(
    root: Path, registries: Registries, capsys: pytest.CaptureFixture[str]
) -> None:
    """PyPI shows nobody what is pending there, so a check must not wait for it."""
    assert main(["trust", str(root), "--check"]) == 1
    said = capsys.readouterr().out
    assert rows(said) == ["cargo:acme    no: it is new", "npm:@acme/ui  no: it is new"]
    assert "cargo: publish the first version with `cargo-token`, then enter Publisher" in said
    assert "npm: publish the first version with `npm-token`; then" in said
    assert main(["trust", str(root), "--ecosystem", "pypi"]) == 0
    said = capsys.readouterr().out
    assert rows(said) == ["pypi:acme-core  not known: it is new"]
    assert "only; at https://pypi.org/manage/account/publishing/, enter Owner: acme;" in said
    assert main(["trust", str(root), "--ecosystem", "pypi", "--check"]) == 0


def test_what_is_new_is_known_without_a_login(
    root: Path, registries: Registries, capsys: pytest.CaptureFixture[str]
) -> None:
    """The check of a pull request that adds a package has none."""
    assert main(["trust", str(root), "--ecosystem", "npm,cargo", "--check"]) == 1
    said = capsys.readouterr().out
    assert rows(said) == ["cargo:acme    no: it is new", "npm:@acme/ui  no: it is new"]
    assert "cargo: publish the first version with `cargo-token`, then enter Publisher" in said
    assert sorted(each.url.path for each in registries.asked) == ["/@acme/ui", "/ac/me/acme"]


@pytest.mark.usefixtures("logins")
def test_what_is_missing_is_added_where_the_registry_takes_it(
    root: Path, registries: Registries, capsys: pytest.CaptureFixture[str]
) -> None:
    registries.proved = True
    registries.npm["@acme/ui"] = []
    registries.crates["acme"] = [of_crates("acme/old", "ci.yml")]
    assert main(["trust", str(root), *WRITE, "--ecosystem", "npm,cargo"]) == 0
    assert rows(capsys.readouterr().out) == [
        "cargo:acme    yes",
        "npm:@acme/ui  yes",
    ]
    assert registries.npm["@acme/ui"] == [of_npm("acme/kit", "release.yml", "release")]
    assert registries.crates["acme"][1:] == [
        {"crate": "acme", **of_crates("acme/kit", "release.yml", "release")}
    ]
    registries.asked.clear()
    assert main(["trust", str(root), *WRITE, "--ecosystem", "npm,cargo"]) == 0
    assert {each.method for each in registries.asked} == {"GET"}


@pytest.mark.usefixtures("logins")
def test_nothing_is_added_without_being_asked_for(
    root: Path, registries: Registries, capsys: pytest.CaptureFixture[str]
) -> None:
    registries.proved = True
    registries.npm["@acme/ui"], registries.crates["acme"] = [], []
    assert main(["trust", str(root)]) == 0
    assert main(["trust", str(root), "--check"]) == 1
    assert {each.method for each in registries.asked} == {"GET"}
    capsys.readouterr()
    assert main(["trust", str(root), "--check", "--write"]) == 2
    assert "--check writes nothing" in capsys.readouterr().err


@pytest.mark.usefixtures("logins")
def test_npm_is_written_to_by_a_person_only(
    root: Path, registries: Registries, capsys: pytest.CaptureFixture[str]
) -> None:
    """What nobody has proved leads to the command that does."""
    for name in ("ui", "kit", "css"):
        write_json(root / name / "package.json", {"name": f"@acme/{name}", "version": "1.0.0"})
        registries.npm[f"@acme/{name}"] = []
    workspaces = {"private": True, "name": "w", "workspaces": ["ui", "kit", "css"]}
    write_json(root / "package.json", workspaces)
    assert main(["trust", str(root), *WRITE, "--ecosystem", "npm"]) == 0
    said = capsys.readouterr().out
    assert rows(said) == [f"npm:@acme/{name:<4} not known" for name in ("css", "kit", "ui")]
    assert said.count("  npm trust github @acme/") == 3
    paths = Counter(each.url.raw_path.decode().partition("@")[0] for each in registries.asked)
    assert paths == {"/": 3, "/-/package/": 3}


@pytest.mark.usefixtures("logins")
def test_a_second_factor_may_be_forgotten_before_npm_is_written_to(
    root: Path, registries: Registries, capsys: pytest.CaptureFixture[str]
) -> None:
    registries.npm["@acme/ui"] = []

    def answer(request: httpx.Request) -> httpx.Response:
        registries.proved = request.method == "GET"
        return registries(request)

    with answering(answer):
        assert main(["trust", str(root), *WRITE, "--ecosystem", "npm"]) == 0
    said = capsys.readouterr().out
    assert rows(said) == ["npm:@acme/ui  no"]
    assert "  npm trust github @acme/ui" in said


@pytest.mark.usefixtures("logins")
def test_a_token_that_proves_no_person_fails_no_check(
    root: Path, registries: Registries, capsys: pytest.CaptureFixture[str]
) -> None:
    """npm refuses tokens that bypass the second factor, as those of a job do."""
    registries.npm["@acme/ui"] = []

    def answer(request: httpx.Request) -> httpx.Response:
        is_asked = request.url.path.endswith("/trust")
        return httpx.Response(403, json={}) if is_asked else registries(request)

    with answering(answer):
        assert main(["trust", str(root), "--check", "--ecosystem", "npm"]) == 0
        assert main(["trust", str(root), "--ecosystem", "npm"]) == 0
    said = capsys.readouterr().out
    assert rows(said) == ["npm:@acme/ui  not known"]
    assert "npm: npm tells a person only, by a second factor; run, after `npm login`" in said


@pytest.mark.usefixtures("logins")
def test_a_refusal_is_told_and_fails_the_command(
    root: Path, registries: Registries, capsys: pytest.CaptureFixture[str]
) -> None:
    """npm keeps one trusted publisher for a package."""
    registries.proved = True
    registries.npm["@acme/ui"] = [of_npm("acme/kit", "ci.yml")]
    assert main(["trust", str(root), *WRITE, "--ecosystem", "npm"]) == 1
    (row,) = rows(capsys.readouterr().out)
    assert "trusted publisher config already exists for the package." in row
    registries.crates["acme"], registries.scopes = [], ()
    assert main(["trust", str(root), *WRITE, "--ecosystem", "cargo"]) == 0
    said = capsys.readouterr().out
    assert rows(said) == ["cargo:acme  not known"]
    assert "this token does not have the required permissions" in said
    assert "cio_of_me" not in said
    assert main(["trust", str(root), "--check", "--ecosystem", "cargo"]) == 1


@pytest.mark.usefixtures("logins")
def test_who_stages_trusts_the_workflow_to_stage(
    root: Path, registries: Registries, capsys: pytest.CaptureFixture[str]
) -> None:
    registries.proved = True
    registries.npm["@acme/ui"] = []
    asked = ["trust", str(root), "--ecosystem", "npm", "--stage", "always"]
    assert main(asked) == 0
    assert "--allow-stage-publish --yes" in capsys.readouterr().out
    assert main([*asked, *WRITE]) == 0
    assert registries.npm["@acme/ui"][0]["permissions"] == ["createStagedPackage"]


@pytest.mark.usefixtures("logins")
def test_who_may_publish_may_not_stage_by_that(
    root: Path, registries: Registries, capsys: pytest.CaptureFixture[str]
) -> None:
    registries.proved = True
    registries.npm["@acme/ui"] = [of_npm("acme/kit", "release.yml")]
    assert main(["trust", str(root), "--ecosystem", "npm", "--stage", "always", "--check"]) == 1
    told = "npm:@acme/ui  no: it trusts release.yml (not to stage) of acme/kit"
    assert rows(capsys.readouterr().out) == [told]


@pytest.mark.usefixtures("logins")
@pytest.mark.parametrize("nonsense", [[3], 3, {"claims": 3}, [{"publisher": 3}, None]])
def test_strange_answers_are_nobody_to_trust(
    root: Path, registries: Registries, capsys: pytest.CaptureFixture[str], nonsense: Any
) -> None:
    registries.proved = True
    registries.npm["@acme/ui"] = nonsense
    registries.crates["acme"] = nonsense
    assert main(["trust", str(root), "--check"]) == 1
    said = capsys.readouterr().out
    assert "trusted by 0 of 3 packages" in said
    is_list = isinstance(nonsense, list)
    assert [row.endswith("not known") for row in rows(said)] == [not is_list, not is_list]


@pytest.mark.usefixtures("logins")
def test_what_a_registry_or_a_workflow_says_moves_no_cursor(
    root: Path, registries: Registries, capsys: pytest.CaptureFixture[str]
) -> None:
    write_workflow(root, RUN.format('"b;c"', "releasekit publish"))
    registries.crates["acme"] = [of_crates("a\x1b[31m/b", "c.yml\n::error::x")]
    assert main(["trust", str(root), "--ecosystem", "cargo"]) == 0
    said = capsys.readouterr().out
    assert said.splitlines()[0].endswith("environment b;c")
    assert rows(said) == ["cargo:acme  no: it trusts c.yml ::error::x of a\\x1b[31m/b"]


def test_registries_without_trusted_publishing_are_said_once(
    root: Path, registries: Registries, capsys: pytest.CaptureFixture[str]
) -> None:
    registries.projects.add("acme-core")
    asked = ["trust", str(root), "--npm-registry", "https://npm.example/", "--packages", "*"]
    asked += [
        "--cargo-registry",
        f"dir:{root.parent}/crates",
        "--pypi-registry",
        "https://pypi.example/legacy/",
    ]
    assert main(asked) == 0
    assert capsys.readouterr().out == (
        "the workflow: release.yml of acme/kit, environment release\n\n"
        f"without trusted publishing: cargo: dir:{root.parent}/crates; npm: https://npm.example/; "
        "pypi: https://pypi.example/legacy/\n"
    )
    assert registries.asked == []


@pytest.mark.usefixtures("logins")
@pytest.mark.parametrize(
    ("example", "environment"),
    [
        ("by-hand.yml", "registry"),
        ("matrix.yml", "release"),
        ("publish.yml", "pypi"),
        ("release.yml", None),
        ("sharded.yml", "release"),
        ("staged.yml", "npm"),
    ],
)
def test_the_workflow_is_the_one_that_publishes(
    root: Path,
    registries: Registries,
    capsys: pytest.CaptureFixture[str],
    example: str,
    environment: str | None,
) -> None:
    registries.crates["acme"] = [of_crates("acme/kit", "release.yml", environment)]
    write_workflow(root, (EXAMPLES / example).read_text())
    write_workflow(root, (EXAMPLES / "pull-request.yml").read_text(), "pull-request.yml")
    write_workflow(root, "not: [YAML", "other.yml")
    assert main(["trust", str(root), "--check", "--ecosystem", "cargo"]) == 0
    told = f", environment {environment}" if environment else ""
    heading = f"the workflow: release.yml of acme/kit{told}"
    assert capsys.readouterr().out == f"{heading}\n\ntrusted by 1 of 1 package\n"


RUN = "jobs: {{ a: {{ environment: {}, steps: [{{ run: '{}' }}] }} }}"
DRY = (
    'jobs: { a: { steps: [{ run: "releasekit publish \\\\\\n --dry-run" }, '
    "{ uses: org/releasekit-action@v1, with: { mode: publish, dry-run: true } }] } }"
)
TWO = (
    "jobs: { a: { environment: one, steps: [{ run: releasekit publish }] }, "
    "b: { environment: { name: two }, steps: [{ run: releasekit publish }] } }"
)


@pytest.mark.parametrize(
    ("files", "flags", "says"),
    [
        ({}, [], "with ReleaseKit: write --workflow FILE, or let `releasekit init`"),
        ({"a.yml": RUN.format("x", "releasekit plan")}, [], "no workflow publishes"),
        ({"a.yml": RUN.format("x", "releasekit publish . --dry-run")}, [], "no workflow publishes"),
        ({"a.yml": DRY}, [], "no workflow publishes"),
        (
            {"a.yml": MATRIX, "b.yaml": RUN.format("x", "uvx releasekit-action publish")},
            [],
            "a.yml, b.yaml publish with ReleaseKit: write --workflow FILE",
        ),
        ({"a.yml": TWO}, [], "a.yml: the environment of its job is one, two: write --environment"),
        (
            {"a.yml": RUN.format('"${{ inputs.to }}"', "releasekit publish")},
            [],
            "the environment of its job is ${{ inputs.to }}: write --environment NAME",
        ),
        (
            {"a.yml": RUN.format('"a\\e[31mb"', "releasekit publish")},
            [],
            "the environment of its job is a\\x1b[31mb: write --environment NAME",
        ),
        (
            {"a.yml": RUN.format('"a\\u202eb"', "releasekit publish")},
            [],
            "the environment of its job is a\\u202eb: write --environment NAME",
        ),
        (
            {"a.yml": RUN.format('"a\\ud800b"', "releasekit publish")},
            [],
            "the environment of its job is a\\ud800b: write --environment NAME",
        ),
        (
            {"a.yml": RUN.format("3", "releasekit publish")},
            [],
            "the environment of its job is `3`: write --environment NAME",
        ),
        (
            {"a.yml": RUN.format("{ name: true }", "releasekit publish")},
            [],
            "the environment of its job is `True`: write --environment NAME",
        ),
        (
            {"a.yml": RUN.format("[b]", "releasekit publish")},
            [],
            "the environment of its job is `a list`: write --environment NAME",
        ),
        (
            {"a.yml": RUN.format("x" * 256, "releasekit publish")},
            [],
            "xxx…: write --environment NAME",
        ),
        ({"a\u202e.yml": MATRIX}, [], "no workflow publishes"),
        ({"a.yml": "releasekit: [publish"}, [], "a.yml is not valid YAML"),
        ({}, ["--workflow", "../a.yml"], 'workflow = "../a.yml" is not the file of a workflow'),
        ({}, ["--repository", "kit"], '--repository = "kit" is not the name of a repository'),
        (
            {},
            ["--repository", "https://gitlab.com/acme/kit"],
            "/docs/gitlab.md#id-tokens says what to enter",
        ),
        (
            {},
            ["--workflow", "ci/release.yml"],
            "trust knows only repositories of github.com",
        ),
    ],
)
def test_a_workflow_that_nothing_names_has_to_be_given(
    root: Path,
    capsys: pytest.CaptureFixture[str],
    files: Mapping[str, str],
    flags: list[str],
    says: str,
) -> None:
    """R40: exit 2, and what to write instead."""
    (root / ".github" / "workflows" / "release.yml").unlink()
    for name, text in files.items():
        write_workflow(root, text, name)
    assert main(["trust", str(root), *flags]) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(("step", "most"), [("run", 2_000), ("uses", 8_000)])
def test_a_long_text_that_many_steps_share_is_read_once(step: str, most: int) -> None:
    """R40: by aliases, a small file stands for gigabytes."""

    def look(size: int) -> None:
        shared = {step: "releasekit " * size}
        assert not list(_list_environments({"jobs": {"a": {"steps": [shared] * size}}}))

    assert_no_worse_than_linear(look, most)


def test_flags_name_another_job(
    root: Path, registries: Registries, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that calls this workflow, and its file may be in another repository."""
    registries.projects.add("acme-core")
    write_workflow(root, TWO, "second.yml")
    flags = ["--repository", "acme/other", "--workflow", ".github/workflows/second.yml"]
    asked = ["trust", str(root), "--ecosystem", "pypi", *flags, "--environment", "two"]
    assert main(asked) == 0
    said = capsys.readouterr().out
    assert said.startswith("the workflow: second.yml of acme/other, environment two\n")
    flags = ["--workflow", "away.yml"]
    assert main(["trust", str(root), "--ecosystem", "pypi", *flags]) == 0
    heading = "the workflow: away.yml of acme/kit; its file is not in this checkout\n"
    assert capsys.readouterr().out.startswith(heading)


class Person:
    """At a terminal, who answers that question."""

    def __init__(self, *, says: bool) -> None:
        self.says = says
        self.asked: list[str] = []

    async def confirm(self, question: str) -> bool:
        self.asked.append(question)
        return self.says


@pytest.fixture
def missing(registries: Registries) -> Registries:
    registries.proved = True
    registries.npm["@acme/ui"], registries.crates["acme"] = [], []
    return registries


def posted(registries: Registries) -> list[httpx.Request]:
    return [each for each in registries.asked if each.method == "POST"]


ALL = ("--ecosystem", "npm,cargo")


@pytest.mark.usefixtures("logins")
@pytest.mark.parametrize(
    ("flags", "lacks"),
    [
        ((), "--repository OWNER/NAME, --workflow FILE, --environment NAME"),
        (("--repository", "acme/kit"), "--workflow FILE, --environment NAME"),
        (("--repository", "acme/kit", "--workflow", "release.yml"), "--environment NAME"),
        (("--workflow", "release.yml", "--environment", "release"), "--repository OWNER/NAME"),
    ],
)
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("remote.origin.url", "https://github.com/stranger/kit"),
        ("url.https://github.com/stranger/.insteadOf", "git@github.com:acme/"),
        ("remote.origin.pushurl", "git@github.com:stranger/kit.git"),
    ],
)
def test_nobody_is_trusted_whom_only_files_of_the_checkout_name(
    root: Path,
    missing: Registries,
    capsys: pytest.CaptureFixture[str],
    flags: tuple[str, ...],
    lacks: str,
    key: str,
    value: str,
) -> None:
    """R69: the build of an earlier run may have written them."""
    git(root, "config", key, value)
    assert main(["trust", str(root), "--write", *ALL, *flags]) == 2
    said = capsys.readouterr().err
    owner = "acme" if "--repository" in flags else "stranger"
    assert f"name release.yml of {owner}/kit, environment release; no registry" in said
    assert f"Add {lacks} to --write" in said
    assert not posted(missing)


@pytest.mark.usefixtures("logins")
def test_no_workflow_that_a_build_wrote_says_that_there_is_no_environment(
    root: Path, missing: Registries, capsys: pytest.CaptureFixture[str]
) -> None:
    """R69: any job of the workflow would be trusted, on any branch."""
    write_workflow(root, "jobs: { a: { steps: [{ run: releasekit publish }] } }")
    asked = ["trust", str(root), "--write", *ALL, *WRITE[1:5]]
    assert main(asked) == 2
    assert "--environment - to --write" in capsys.readouterr().err
    assert not posted(missing)
    assert main([*asked, "--environment", "-"]) == 0
    assert missing.npm["@acme/ui"] == [of_npm("acme/kit", "release.yml")]


@pytest.mark.usefixtures("logins")
@pytest.mark.parametrize("says", [True, False])
def test_a_person_is_asked_once_for_all_packages(
    root: Path,
    missing: Registries,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *,
    says: bool,
) -> None:
    """R69: and sees their names before, which a build can add to."""
    person = Person(says=says)
    monkeypatch.setattr(Terminal, "at", lambda *_: person)
    assert main(["trust", str(root), "--write", *ALL]) == 0
    assert person.asked == ["Let 2 packages trust release.yml of acme/kit, environment release?"]
    assert "to be added: cargo:acme, npm:@acme/ui\n" in capsys.readouterr().out
    assert len(posted(missing)) == (2 if says else 0)
    person.asked.clear()
    assert main(["trust", str(root), "--write", *ALL]) == 0
    assert bool(person.asked) is not says  # nothing is left to ask for


@pytest.mark.usefixtures("logins")
def test_a_job_says_itself_which_repository_it_is_of(
    root: Path,
    missing: Registries,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """R69: its word counts, and another one of the git remote is an error."""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_REPOSITORY", "Acme/kit")
    asked = ["trust", str(root), "--write", *ALL, *WRITE[3:]]
    git(root, "remote", "set-url", "origin", "https://github.com/stranger/kit")
    assert main(asked) == 2
    said = capsys.readouterr().err
    assert "a job of https://github.com/Acme/kit, but the git remote origin leads to " in said
    assert "https://github.com/stranger/kit: add --repository OWNER/NAME" in said
    assert not posted(missing)
    git(root, "remote", "set-url", "origin", "https://github.com/acme/kit")
    assert main(asked) == 0
    assert missing.npm["@acme/ui"] == [of_npm("Acme/kit", "release.yml", "release")]


def test_a_repository_elsewhere_is_trusted_by_no_registry(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    git(root, "remote", "set-url", "origin", "https://me:hunter2@ghe.example/acme/kit.git")
    assert main(["trust", str(root)]) == 2
    said = capsys.readouterr().err
    assert "of github.com, and git remote origin is elsewhere: write --repository" in said
    git(root, "remote", "set-url", "origin", "git@gitlab.com:acme/tools/kit.git")
    assert main(["trust", str(root)]) == 2
    assert "trust knows only repositories of github.com" in capsys.readouterr().err
    assert "hunter2" not in said
    git(root, "remote", "remove", "origin")
    assert main(["trust", str(root)]) == 2
    assert "git shows no remote origin here: write --repository" in capsys.readouterr().err


def test_no_link_out_of_the_repository_is_followed(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = root / ".github" / "workflows" / "release.yml"
    (tmp_path / "away.yml").write_text(path.read_text())
    path.unlink()
    path.symlink_to(tmp_path / "away.yml")
    assert main(["trust", str(root)]) == 2
    assert "release.yml leads out of the workspace" in capsys.readouterr().err
