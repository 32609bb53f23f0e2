"""Trusted publishing over real sockets: one server plays GitHub's token service and the index."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

import distributions
import registries
from harness.npm.documents import pack
from harness.npm.npmjs import Npmjs
from harness.npm.registry import serving
from integration.tools import require_tool
from releasekit.errors import Denied
from trusted_index import RUNNER_TOKEN, TrustedIndex, make_token, served
from workspaces import TWELVE, Program, npm_workspace, uv_workspace

if TYPE_CHECKING:
    from pathlib import Path

    from trusted_index import Answer


@dataclass
class Storing(TrustedIndex):
    """It shows what it has: the digest of each file by its name."""

    stored: dict[str, str] = field(default_factory=dict)

    def answer(self, method: str, target: str, authorization: str, body: bytes) -> Answer:
        if method == "GET" and (found := re.fullmatch("/simple/([a-z-]+)/", target)):
            own = f"{found[1].replace('-', '_')}-"
            files = [
                {"filename": name, "hashes": {"sha256": digest}}
                for name, digest in self.stored.items()
                if name.startswith(own)
            ]
            page = json.dumps({"files": files}).encode()
            return 200 if files else 404, page, "application/vnd.pypi.simple.v1+json"
        return super().answer(method, target, authorization, body)

    def _upload(self, authorization: str, body: bytes) -> Answer:
        answer = super()._upload(authorization, body)
        if digest := re.search(rb'name="sha256_digest"\r\n\r\n([0-9a-f]+)', body):
            self.stored[self.files[-1]] = digest[1].decode()
        return answer


def publish(origin: str, index: TrustedIndex, dist: Path, masked: list[str]) -> None:
    packages = [distributions.package(f"acme-{number}") for number in range(4)]

    async def main() -> None:
        async with registries.opened(
            f"{origin}/legacy/",
            index.environment(origin),
            {"trusted_publishing": "always"},
            masked=masked,
        ) as registry:
            registry.check_credentials()
            async with asyncio.TaskGroup() as group:
                for package in packages:
                    built = distributions.both(dist / package.id.name, package)
                    group.create_task(registry.upload(package, built))

    asyncio.run(main())


def test_a_workflow_publishes_as_itself(tmp_path: Path) -> None:
    """R38: one identity, one token, masked before anything else could print them."""
    index = TrustedIndex()
    masked: list[str] = []
    with served(index) as origin:
        publish(origin, index, tmp_path, masked)
    assert len(index.files) == len(set(index.files)) == 8
    assert (len(index.id_tokens), len(index.minted)) == (1, 1)
    assert masked[-2:] == [*index.id_tokens, *index.minted]
    assert RUNNER_TOKEN in masked


def test_an_index_that_does_not_know_the_workflow_says_what_to_register(tmp_path: Path) -> None:
    index = TrustedIndex(refusal=("invalid-publisher", "no corresponding publisher"))
    with served(index) as origin, pytest.raises(ExceptionGroup) as caught:
        publish(origin, index, tmp_path, [])
    assert index.files == []
    for error in caught.value.exceptions:
        assert isinstance(error, Denied)
        assert "Workflow name: release.yml" in error.hint


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def test_one_project_without_trust_keeps_all_back(tmp_path: Path, home: Path) -> None:
    """R38: with the right given, the same command publishes."""
    workspace = uv_workspace(tmp_path / "workspace")
    first, *others = TWELVE
    index = Storing(projects=others)
    with served(index) as origin:
        program = Program(home, index.environment(origin))
        arguments = (
            *("publish", workspace, "--pypi-registry", f"{origin}/legacy/"),
            *("--trusted-publishing", "always", "--attestations", "off"),
        )
        run = program.run(*arguments)
        assert run.code == 3
        assert "127.0.0.1 lets this job publish 11 of 12 projects; demo-base, " in run.err
        assert "nothing was sent [RK-324]" in run.err
        assert "Register this workflow as a trusted publisher of each" in run.err
        assert (index.files, len(index.minted)) == ([], 2)
        assert index.projects is not None
        index.projects.append(first)
        run = program.run(*arguments)
        assert run.code == 0, run.out + run.err
        assert set(run.outcomes.values()) == {"published"}
    assert len(index.files) == len(index.stored) == 24


def test_one_npm_package_without_trust_keeps_all_back(tmp_path: Path, home: Path) -> None:
    """R38: npm makes a token for each package, and the look before the first upload costs none
    besides: the upload takes the same.
    """
    require_tool("npm")
    workspace = npm_workspace(tmp_path / "workspace", version="1.1.0")
    first, *others = TWELVE

    def begin(name: str) -> None:
        npm.publish(pack({"name": f"@acme/{name}", "version": "1.0.0"}))

    npm = Npmjs()
    npm.accounts.allowed = frozenset({"publish"})
    # Its tokens last for an hour.
    npm.accounts.ends = lambda: datetime.now(UTC) + timedelta(hours=1)
    with serving(npm) as registry:
        for name in others:
            begin(name)
        program = Program(home, registry.runner)
        arguments = (
            *("publish", workspace, "--npm-registry", registry.url),
            *("--trusted-publishing", "always", "--attestations", "off"),
        )
        run = program.run(*arguments)
        assert run.code == 3, run.out + run.err
        assert f"error: npm:@acme/{first}: trusted publishing at 127.0.0.1: " in run.err
        assert "package not found; nothing was sent [RK-324]" in run.err
        assert npm.publishings == []
        begin(first)
        registry.exchanges.clear()
        run = program.run(*arguments)
        assert run.code == 0, run.out + run.err
        assert set(run.outcomes.values()) == {"published"}
        assert len(registry.seen("POST", ".*/exchange/package/.*")) == 12
    assert sorted(npm.publishings) == sorted(f"@acme/{name}@1.1.0" for name in TWELVE)


def test_a_token_for_eleven_projects_keeps_twelve_back(tmp_path: Path, home: Path) -> None:
    """The plan says so already, and no table of it ends the job with success."""
    workspace = uv_workspace(tmp_path / "workspace")
    _, *others = TWELVE
    index = Storing(valid={make_token([1, [*others]])})
    (token,) = index.valid
    with served(index) as origin:
        program = Program(home, {"RELEASEKIT_PYPI_TOKEN": token})
        for command in ("plan", "publish"):
            run = program.run(command, workspace, "--pypi-registry", f"{origin}/legacy/")
            assert run.code == 3
            assert "error: pypi:demo-base: the token is for demo-api, demo-auth" in run.err
            assert token not in run.out + run.err
    assert index.files == []
