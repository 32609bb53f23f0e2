"""Releases that wait at the Central Portal for a person."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from releasekit.ecosystems.maven import CENTRAL, portal
from releasekit.errors import ConfigError, Denied, Rejected, Transient
from releasekit.model import Staged
from unit.maven.releases import Server, built, using, workspace
from unit.maven.test_maven_portal import API, paths, server, status

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from releasekit.ecosystems.interface import Staging, Target
    from releasekit.model import Artifact, Package, PackageId

HASTE: dict[str, Any] = {"max_retries": 0}
WAITS = Staged(id="one", url="https://central.sonatype.com/publishing/deployments")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    workspace(tmp_path)
    return tmp_path


def table(**options: str) -> dict[str, Any]:
    return {"ecosystem_tables": {"maven": options}}


def stage(
    there: Server, root: Path, artifacts: tuple[Artifact, ...], **options: str
) -> Mapping[PackageId, Staged]:
    async def use(target: Target, package: Package) -> Mapping[PackageId, Staged]:
        return await staging_of(target).stage({package: artifacts})

    return using(there, root, use, place=CENTRAL, **table(**options), **HASTE)


def staged(there: Server, root: Path, artifacts: tuple[Artifact, ...]) -> Staged | None:
    async def use(target: Target, package: Package) -> Staged | None:
        return await staging_of(target).staged(package, artifacts)

    return using(there, root, use, place=CENTRAL, **HASTE)


def staging_of(target: Target) -> Staging:
    assert target.staging is not None
    return target.staging


def published(there: Server) -> bool:
    return "POST /deployment/one" in paths(there)


def test_what_is_staged_is_checked_and_never_published(root: Path) -> None:
    there = server("VALIDATED")
    (waits,) = stage(there, root, built(root)).values()
    assert waits == WAITS
    assert there.requests[0].url.params["publishingType"] == "USER_MANAGED"
    assert not published(there)


def test_the_portal_waits_for_a_person_whatever_publishing_says(root: Path) -> None:
    there = server("VALIDATED")
    stage(there, root, built(root), publishing="automatic")
    assert there.requests[0].url.params["publishingType"] == "USER_MANAGED"


def test_a_second_run_finds_what_waits_and_uploads_nothing(root: Path) -> None:
    """R14, R19: also one that was killed before the portal had checked it."""
    artifacts = built(root)
    killed = server()
    killed.answer("POST", f"{API}/status", httpx.Response(503))
    with pytest.raises(Transient):
        stage(killed, root, artifacts)
    again = server("VALIDATED", "VALIDATED")
    assert set(stage(again, root, artifacts).values()) == {WAITS}
    assert "POST /upload" not in paths(again)


def test_what_the_portal_refuses_to_hold_is_told(root: Path) -> None:
    there = server("FAILED", errors={"pkg:maven/g/a@1.0": ["Missing signature"]})
    with pytest.raises(Rejected, match="Missing signature"):
        stage(there, root, built(root))
    assert paths(there)[-1] == "DELETE /deployment/one"


def test_a_refusal_is_told_also_where_the_portal_does_not_clear_it_away(root: Path) -> None:
    there = server()
    there.answers.pop(("DELETE", f"{API}/deployment/one"))
    there.answer("POST", f"{API}/status", *status("FAILED", errors={"common": ["No POM"]}))
    there.answer("DELETE", f"{API}/deployment/one", httpx.Response(503))
    with pytest.raises(Rejected, match="No POM"):
        stage(there, root, built(root))


@pytest.mark.parametrize(
    ("state", "waits"),
    [
        ("VALIDATED", WAITS),
        ("VALIDATING", WAITS),
        ("PUBLISHING", WAITS),
        ("PUBLISHED", WAITS),
        ("FAILED", None),
    ],
)
def test_what_became_of_it(root: Path, state: str, waits: Staged | None) -> None:
    """What is being published is not visible yet, and nobody has rejected it."""
    artifacts = built(root)
    stage(server("VALIDATED"), root, artifacts)
    assert staged(server(state), root, artifacts) == waits


@pytest.mark.parametrize("answer", [httpx.Response(404), httpx.Response(200, json={})])
def test_what_was_dropped_waits_no_longer(root: Path, answer: httpx.Response) -> None:
    artifacts = built(root)
    stage(server("VALIDATED"), root, artifacts)
    there = Server()
    there.answer("POST", f"{API}/status", answer)
    assert staged(there, root, artifacts) is None


def test_without_a_record_nobody_can_tell(root: Path) -> None:
    """A portal is asked by id, and these files, or other ones of this version, have none here."""
    artifacts = built(root)
    with pytest.raises(Denied, match="on record"):
        staged(server(), root, artifacts)
    stage(server("VALIDATED"), root, artifacts)
    with pytest.raises(Denied, match="on record"):
        staged(server(), root, artifacts[:1])


def test_the_record_holds_what_waits_beside_what_came_later(root: Path) -> None:
    artifacts = built(root)
    stage(server("VALIDATED"), root, artifacts)
    later = Server()
    later.answer("POST", f"{API}/upload", httpx.Response(201, text="two"))
    later.answer("POST", f"{API}/status", *status("VALIDATED"))
    stage(later, root, artifacts[:1])
    there = server("VALIDATED")
    assert staged(there, root, artifacts) == WAITS
    assert there.requests[0].url.params["id"] == "one"


def test_the_record_of_an_earlier_version_is_read(root: Path) -> None:
    artifacts = built(root)
    stage(server("VALIDATED"), root, artifacts)
    path = root / ".releasekit" / portal.RECORD_NAME
    record = json.loads(path.read_bytes())
    row = record["deployments"][0]
    old = {"portal": CENTRAL, "release": row["release"], "deployment": row["deployment"]}
    path.write_text(json.dumps(old))
    again = server("VALIDATED", "VALIDATED")
    stage(again, root, artifacts)
    assert "POST /upload" not in paths(again)


@pytest.mark.parametrize("identifier", ["../../other", "", "a b", None])
def test_an_id_that_leads_elsewhere_is_none(root: Path, identifier: str | None) -> None:
    artifacts = built(root)
    stage(server("VALIDATED"), root, artifacts)
    path = root / ".releasekit" / portal.RECORD_NAME
    record = json.loads(path.read_bytes())
    record["deployments"][0]["deployment"] = identifier
    path.write_text(json.dumps(record))
    with pytest.raises(Denied, match="on record"):
        staged(server(), root, artifacts)


def test_a_deployment_that_the_portal_publishes_itself_is_not_asked_to(root: Path) -> None:
    """Made by a run with `publishing = "automatic"`, and continued by one without."""
    artifacts = built(root)

    async def deploy(target: Target, package: Package) -> None:
        assert target.deployment is not None
        await target.deployment.deploy({package: artifacts})

    def run(there: Server, **options: str) -> None:
        using(there, root, deploy, place=CENTRAL, **table(**options), **HASTE)

    killed = server()
    killed.answer("POST", f"{API}/status", httpx.Response(503))
    with pytest.raises(Transient):
        run(killed, publishing="automatic")
    there = server("VALIDATED", "VALIDATED", "PUBLISHED")
    run(there)
    assert not published(there)
    assert "POST /upload" not in paths(there)


@pytest.mark.parametrize(
    ("general", "own", "mode"),
    [("auto", "", "auto"), ("always", "", "always"), ("always", "never", "never")],
)
def test_the_key_of_the_file_goes_before_the_input(
    root: Path, general: str, own: str, mode: str
) -> None:
    async def use(target: Target, _package: Package) -> str:
        return staging_of(target).mode

    found = using(Server(), root, use, place=CENTRAL, stage=general, **table(stage=own))
    assert found == mode


def test_a_repository_stages_nothing(root: Path) -> None:
    """The input is for all ecosystems; the key asks for what is not to be had."""

    async def use(target: Target, _package: Package) -> bool:
        return target.staging is None

    assert using(Server(), root, use, stage="always")
    assert using(Server(), root, use, **table(stage="never"))
    with pytest.raises(ConfigError, match=r'\[maven\] stage = "always": https://repo.example/'):
        using(Server(), root, use, **table(stage="always"))
