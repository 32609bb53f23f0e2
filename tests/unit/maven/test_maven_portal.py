from __future__ import annotations

import asyncio
import contextlib
import json
import zipfile
from io import BytesIO
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from releasekit.ecosystems.maven import CENTRAL, MavenOptions, layout, portal
from releasekit.ecosystems.maven.portal import Portal
from releasekit.ecosystems.preflight import RightsFound
from releasekit.ecosystems.shared.artifacts import digested
from releasekit.errors import Denied, PackageError, PlanError, Rejected, Transient
from releasekit.fields import replace
from releasekit.model import Action, Artifact, Package, PackageId, PlannedPackage
from releasekit.problems import Problem
from unit.maven.poms import gav, needs, write
from unit.maven.releases import DESCRIBED, URL, Server, built, services, settings, using, workspace

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from releasekit.ecosystems.interface import Target

API = "/api/v1/publisher"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    workspace(tmp_path)
    return tmp_path


def status(*states: str, **more: object) -> list[httpx.Response | Exception]:
    return [httpx.Response(200, json={"deploymentState": state, **more}) for state in states]


def server(*states: str, **more: object) -> Server:
    made = Server()
    made.answer("POST", f"{API}/upload", httpx.Response(201, text="one\n"))
    made.answer("POST", f"{API}/status", *status(*states, **more))
    made.answer("POST", f"{API}/deployment/one", httpx.Response(204))
    made.answer("DELETE", f"{API}/deployment/one", httpx.Response(204))
    return made


def package_at(root: Path) -> Package:
    return Package(
        id=PackageId("maven", "g:a"), version="1.0", directory=root, manifest=root / "pom.xml"
    )


def deploy(there: Server, root: Path, artifacts: tuple[Artifact, ...], **table: object) -> None:
    config = settings(root, place=CENTRAL, max_retries=0)
    package = package_at(root)

    async def main() -> None:
        async with services(there, config) as given:
            registry = Portal(config, MavenOptions.from_table(table), given, first_pause_s=0.0)
            await registry.upload(package, artifacts)

    asyncio.run(main())


def paths(there: Server) -> list[str]:
    return [f"{request.method} {request.url.path.removeprefix(API)}" for request in there.requests]


def test_checked_and_then_published(root: Path) -> None:
    there = server("PENDING", "VALIDATING", "VALIDATED", "VALIDATED", "PUBLISHING")
    deploy(there, root, built(root))
    upload = there.requests[0]
    assert upload.url.params["publishingType"] == "USER_MANAGED"
    assert upload.headers["Authorization"].startswith("Bearer ")
    assert paths(there).count("POST /deployment/one") == 1
    body = upload.content
    data = body[body.index(b"PK\x03\x04") : body.rindex(b"\r\n--")]
    with zipfile.ZipFile(BytesIO(data)) as found:
        assert len(found.namelist()) == 2 * 3
        assert found.read("g/a/1.0/a-1.0.jar") == b"the bytes of a-1.0.jar"


def test_a_publication_that_is_refused_is_told(root: Path) -> None:
    """R15"""
    there = server("VALIDATED")
    there.answers["POST", f"{API}/deployment/one"] = [httpx.Response(403, text="not yours")]
    with pytest.raises(Denied, match="publishing deployment one: HTTP 403 not yours"):
        deploy(there, root, built(root))


NO_SNAPSHOTS = (
    "<repository><id>r</id><url>https://r.example</url>"
    "<snapshots><enabled>false</enabled></snapshots></repository>"
)


@pytest.mark.parametrize(
    ("place", "repositories", "is_refused"),
    [
        (CENTRAL, "", True),
        (CENTRAL, "<repository><id>r</id><url>https://r.example</url></repository>", False),
        (
            CENTRAL,
            NO_SNAPSHOTS,
            True,
        ),
        (URL, "", False),
    ],
)
def test_maven_central_takes_no_package_that_needs_a_snapshot(
    root: Path, place: str, repositories: str, is_refused: bool
) -> None:
    """R63: mvn of a user fails, but for one that asks a repository that the POM names."""
    body = f"{DESCRIBED}<repositories>{repositories}</repositories>{needs('x', '2-SNAPSHOT')}"
    write(root / "pom.xml", gav("a") + body)

    async def use(target: Target, package: Package) -> str:
        return target.plan_notes(
            [PlannedPackage(package=package, action=Action.PUBLISH, reason="")]
        )

    tables = {"maven": {"api": "portal"}}
    if is_refused:
        with pytest.raises(PlanError, match=r"pom\.xml needs g:x 2-SNAPSHOT, and Maven Central"):
            using(server(), root, use, place=place, ecosystem_tables=tables)
    else:
        found = using(server(), root, use, place=place, ecosystem_tables=tables)
        assert "pom.xml needs g:x 2-SNAPSHOT, which users get" in found


def test_a_plan_names_a_pom_that_only_maven_can_read(root: Path) -> None:
    """R66"""
    page = (write(root / "pom.xml", gav("a") + "<name>J?rg</name>")).read_bytes()
    (root / "pom.xml").write_bytes(page.replace(b"?", b"\xfc"))

    async def use(target: Target, package: Package) -> str:
        return target.plan_notes(
            [PlannedPackage(package=package, action=Action.PUBLISH, reason="")]
        )

    found = using(server(), root, use, place=URL)
    assert found.startswith("pom.xml (line 3) has a byte that is invalid in its encoding: Maven")


def test_a_bundle_holds_what_the_portal_asks_for_and_nothing_else(root: Path) -> None:
    """Each file counts: https://central.sonatype.org/publish/reducing-publishing-usage/"""
    names = ["a-1.0.pom", "a-1.0.jar", "a-1.0-sources.jar", "a-1.0-javadoc.jar"]
    artifacts = built(root, *names, *(f"{name}.asc" for name in names))
    with BytesIO() as file:
        portal.write_bundle(file, {package_at(root): artifacts})
        with zipfile.ZipFile(file) as bundle:
            entries = [name.rpartition("/")[2] for name in bundle.namelist()]
    assert sorted(entries) == sorted(
        f"{name}{suffix}" for name in names for suffix in ("", ".asc", ".md5", ".sha1")
    )


@pytest.mark.parametrize(
    ("place", "packaging", "said"),
    [
        (CENTRAL, "jar", "one release, with 48 or more files. How much is"),
        (CENTRAL, "pom", "one release, with 12 or more files. How much is"),
        (URL, "jar", ""),
    ],
)
def test_a_plan_tells_how_many_of_the_files_of_a_month_a_release_takes(
    root: Path, place: str, packaging: str, said: str
) -> None:
    """R49"""
    package = replace(package_at(root), packaging=packaging)
    steps = [PlannedPackage(package=package, action=Action.PUBLISH, reason="")] * 3
    kept = [replace(step, action=Action.KEEP) for step in steps]

    async def use(target: Target, _: Package) -> str:
        assert target.plan_notes(kept) == ""
        return target.plan_notes([*steps, *kept])

    tables = {"maven": {"api": "portal"}}
    found = using(server(), root, use, place=place, ecosystem_tables=tables)
    assert said in found
    assert bool(found) is bool(said)


ALL, LISTS = DESCRIBED[: DESCRIBED.index("<lic")], DESCRIBED[DESCRIBED.index("<lic") :]
OUTSIDE = "<parent><groupId>o</groupId><artifactId>p</artifactId><version>1</version></parent>"


MANAGED = (
    "<dependencyManagement><dependencies><dependency><groupId>g</groupId><artifactId>m</artifactId>"
    "{}</dependency></dependencies></dependencyManagement>"
)


@pytest.mark.parametrize(
    ("body", "place", "missing"),
    [
        (
            "",
            CENTRAL,
            "inherits <name>, <description>, <url>, <licenses>, <developers>, <scm> with a <url>",
        ),
        ("", URL, ""),
        (ALL + LISTS, CENTRAL, ""),
        (ALL + "<licenses/><developers><!-- --></developers>", CENTRAL, "<licenses>, <developers>"),
        (ALL.replace("<url>u", "<url> ") + LISTS, CENTRAL, "inherits <url>"),
        (
            ALL.replace("<url>s</url>", "<tag>t</tag>") + LISTS,
            CENTRAL,
            "inherits <scm> with a <url>",
        ),
        (ALL + LISTS + MANAGED.format(""), CENTRAL, "has no <version> of g:m"),
        (ALL + LISTS + MANAGED.format("<version>1</version>"), CENTRAL, ""),
        (OUTSIDE, CENTRAL, "inherits <name>"),
        (OUTSIDE + "<name>n</name>", CENTRAL, ""),
    ],
)
def test_a_pom_that_central_refuses_is_refused_by_the_plan(
    root: Path, body: str, place: str, missing: str
) -> None:
    """R63: before the upload, which is refused as a whole; unless `dist` has another POM."""
    write(root / "pom.xml", gav("a") + body)

    async def use(target: Target, package: Package) -> str:
        given = replace(package, prebuilt=built(root, "a-1.0.pom"))
        step = PlannedPackage(package=given, action=Action.PUBLISH, reason="")
        target.plan_notes([step])
        assert await target.find_warnings(given, given.prebuilt) == []
        refused = pytest.raises(PlanError) if missing else contextlib.nullcontext()
        with refused as caught:
            target.plan_notes([replace(step, package=package)])
        assert caught is None or caught.value.problem is Problem.REFUSED_BY_CENTRAL
        return str(caught.value) if caught else ""

    tables = {"maven": {"api": "portal"}}
    said = using(server(), root, use, place=place, ecosystem_tables=tables)
    assert missing in said
    assert bool(said) is bool(missing)


COMPLETE = ("a-1.0.pom", "a-1.0.jar", "a-1.0-sources.jar", "a-1.0-javadoc.jar")


@pytest.mark.parametrize(
    ("names", "body", "wrong"),
    [
        (COMPLETE, ALL + LISTS, ""),
        (COMPLETE[:3], ALL + LISTS, "it has no a-1.0-javadoc.jar: set"),
        (COMPLETE[:2], ALL + LISTS, "no a-1.0-sources.jar and no a-1.0-javadoc.jar: set"),
        (COMPLETE[:1], ALL + LISTS, ""),
        ((*COMPLETE, "a-1.0-x.zip"), ALL + LISTS, ""),
        (COMPLETE, ALL, "it neither declares nor inherits <licenses>, <developers>"),
        (COMPLETE, "<a/><b>", "ReleaseKit cannot read its POM"),
        (COMPLETE, "<parent><groupId>g</groupId><artifactId>p</artifactId></parent>", "<parent>"),
        (COMPLETE, "<name>n</name>" + OUTSIDE, ""),
    ],
)
@pytest.mark.parametrize("unsigned", ["", "a-1.0.pom"])
def test_files_that_central_refuses_are_not_sent(
    root: Path, names: Sequence[str], body: str, wrong: str, unsigned: str
) -> None:
    """R63: sources, documentation and signatures, and what the POM says that was built."""
    write(root / "pom.xml", gav("a") + ALL + LISTS)
    signatures = (f"{name}.asc" for name in names if name != unsigned)
    files = [*built(root, *names, *signatures)]
    write(files[0].path, gav("a") + body)
    files[0] = digested(files[0].path, *layout.ALGORITHMS)

    async def use(target: Target, package: Package) -> str:
        refused = wrong or unsigned
        with pytest.raises(PackageError) if refused else contextlib.nullcontext() as caught:
            assert await target.find_warnings(package, files) == []
        assert caught is None or caught.value.problem is Problem.REFUSED
        return str(caught.value) if caught else ""

    tables = {"maven": {"api": "portal"}}
    said = using(server(), root, use, place=CENTRAL, ecosystem_tables=tables)
    assert wrong in said
    assert ("no signature of a-1.0.pom: set" in said) is bool(unsigned)
    assert bool(said) is bool(wrong or unsigned)


def find_excess(root: Path, *steps: PlannedPackage, place: str) -> set[str]:
    """The warnings about these."""

    async def use(target: Target, _: Package) -> set[str]:
        warnings = target.preflight.find_excess(steps)
        assert warnings.keys() in (set(), {each.package.id for each in steps})
        return {each.message for each in warnings.values()}

    tables = {"maven": {"api": "portal"}}
    return using(server(), root, use, place=place, ecosystem_tables=tables)


@pytest.mark.parametrize(
    ("poms", "place", "named"),
    [(750, CENTRAL, False), (751, CENTRAL, True), (751, URL, False)],
)
def test_a_release_is_named_that_central_takes_in_no_three_months(
    root: Path, poms: int, place: str, named: bool
) -> None:
    """R49: 3,000 files, four of a POM."""
    package = replace(package_at(root), packaging="pom")
    step = PlannedPackage(package=package, action=Action.PUBLISH, reason="")
    said = find_excess(root, *[step] * poms, place=place)
    assert bool(said) is named
    assert all("has 3,004 files, and Maven Central takes 3,000 of" in each for each in said)


@pytest.mark.parametrize(
    ("table", "action", "unset"),
    [
        ({}, Action.PUBLISH, "`sources`, `javadoc`, `sign`"),
        ({"sources": True, "javadoc": True}, Action.PUBLISH, "`sign`"),
        ({"sources": True, "javadoc": True, "sign": True}, Action.PUBLISH, ""),
        ({}, Action.UPLOAD, ""),
    ],
)
def test_a_plan_names_what_central_refuses_to_go_without(
    root: Path, table: dict[str, object], action: Action, unset: str
) -> None:
    """R49: plugins may make it, so it is no error."""
    step = PlannedPackage(package=package_at(root), action=action, reason="")

    async def use(target: Target, _: Package) -> str:
        return target.plan_notes([step])

    tables = {"maven": table}
    found = using(server(), root, use, place=CENTRAL, ecosystem_tables=tables)
    assert ("It refuses packages" in found) is bool(unset)
    assert f"does not set {unset}: plugins" in found or not unset


def test_a_user_token_that_the_portal_does_not_know_is_told_before_anything_is_sent(
    root: Path,
) -> None:
    """R38: https://central.sonatype.org/publish/publish-portal-api/"""
    package = package_at(root)

    def ask(status: int) -> tuple[RightsFound, list[httpx.Request]]:
        there = Server()
        there.answer("GET", f"{API}/published", httpx.Response(status, json={"published": False}))
        config = settings(root, place=CENTRAL, max_retries=0)

        async def main() -> RightsFound:
            async with services(there, config) as given:
                registry = Portal(config, MavenOptions.from_table({}), given)
                return await registry.find_rights([package], proving=False)

        return asyncio.run(main()), there.requests

    found, requests = ask(401)
    assert "does not know the user token" in str(found.denied[package.id])
    assert "https://central.sonatype.com/account" in found.denied[package.id].hint
    (request,) = requests
    assert dict(request.url.params) == {"namespace": "g", "name": "a", "version": "1.0"}
    assert request.headers["Authorization"].startswith("Bearer ")
    assert ask(200)[0] == ask(404)[0] == RightsFound()


def test_a_build_that_still_runs_changes_nothing_of_a_bundle(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R18, R50: it lies in the state directory, which builds may write to."""
    write = portal.write_bundle

    def spoiled(*arguments: Any) -> None:
        write(*arguments)
        for path in root.rglob("*.zip"):
            path.write_bytes(b"evil")

    monkeypatch.setattr(portal, "write_bundle", spoiled)
    there = server("VALIDATED", "PUBLISHED")
    deploy(there, root, built(root))
    assert b"the bytes of a-1.0.jar" in there.requests[0].content


def test_automatic_publishing_is_the_portals(root: Path) -> None:
    there = server("VALIDATED", "PUBLISHED")
    deploy(there, root, built(root), publishing="automatic")
    assert there.requests[0].url.params["publishingType"] == "AUTOMATIC"
    assert "POST /deployment/one" not in paths(there)


def test_a_deployment_is_found_again(root: Path) -> None:
    artifacts = built(root)
    there = server("VALIDATING")
    there.answer("POST", f"{API}/status", httpx.Response(503))
    with pytest.raises(Transient):
        deploy(there, root, artifacts)
    again = server("VALIDATED", "VALIDATED", "PUBLISHED")
    deploy(again, root, artifacts)
    assert "POST /upload" not in paths(again)
    assert "POST /deployment/one" in paths(again)


@pytest.mark.parametrize(
    "record", [b"nonsense", b"[]", b"{}", b'{"deployment": "two"}', b"[" * 60_000]
)
def test_any_other_record_is_no_deployment_of_ours(root: Path, record: bytes) -> None:
    artifacts = built(root)
    (root / ".releasekit" / portal.RECORD_NAME).write_bytes(record)
    there = server("PUBLISHED")
    deploy(there, root, artifacts)
    assert "POST /upload" in paths(there)


@pytest.mark.parametrize("answer", [httpx.Response(404), *status("FAILED")])
def test_one_that_is_gone_or_failed_is_made_again(root: Path, answer: httpx.Response) -> None:
    artifacts = built(root)
    deploy(server("PUBLISHED"), root, artifacts)
    there = Server()
    there.answer("POST", f"{API}/status", answer)
    there.answer("POST", f"{API}/upload", httpx.Response(201, text="two"))
    there.answer("POST", f"{API}/status", *status("PUBLISHED"))
    deploy(there, root, artifacts)
    record = json.loads((root / ".releasekit" / portal.RECORD_NAME).read_bytes())
    assert [each["deployment"] for each in record["deployments"]] == ["one", "two"]


@pytest.mark.parametrize(
    ("errors", "words"),
    [
        ({"pkg:maven/g/a@1.0": ["Missing signature", "No sources"]}, "Missing signature, No"),
        ({"common": "Invalid namespace"}, "Invalid namespace"),
        (None, "no reason"),
    ],
)
def test_a_refusal_is_told_and_cleared_away(root: Path, errors: object, words: str) -> None:
    there = server("VALIDATING", "FAILED", "FAILED", errors=errors)
    with pytest.raises(Rejected, match=words) as caught:
        deploy(there, root, built(root))
    assert "sign" in caught.value.hint
    assert paths(there)[-1] == "DELETE /deployment/one"


def elsewhere(*identifiers: str) -> list[httpx.Response | Exception]:
    said = [
        f"Component with coordinate 'g:{each}:1.0' is currently being published in another "
        f"deployment ({each})"
        for each in identifiers
    ]
    return status("FAILED", errors={"common": said})


def name_of(there: Server) -> str:
    return there.requests[0].url.params["name"]


def test_a_bundle_that_is_there_already_is_the_one_that_goes_out(root: Path) -> None:
    """R15, R19: the answer to its upload was lost, or the state directory."""
    artifacts = built(root)
    lost = server("PUBLISHED")
    deploy(lost, root, artifacts)
    (root / ".releasekit" / portal.RECORD_NAME).unlink()
    again = server()
    again.answer("POST", f"{API}/status", *elsewhere("zero"))
    again.answer("POST", f"{API}/deployment/zero", httpx.Response(204))
    named = status("VALIDATED", "VALIDATED", deploymentName=name_of(lost))
    again.answer("POST", f"{API}/status", *named, *status("PUBLISHING"))
    deploy(again, root, artifacts)
    assert "DELETE /deployment/one" in paths(again)
    assert "POST /deployment/zero" in paths(again)
    assert "POST /deployment/one" not in paths(again)
    # And it is known from now on.
    later = server("PUBLISHED", "PUBLISHED")
    deploy(later, root, artifacts)
    assert {request.url.params["id"] for request in later.requests} == {"zero"}


@pytest.mark.parametrize(("state", "uploads"), [("PUBLISHING", 0), ("VALIDATED", 1)])
def test_what_is_being_published_with_more_is_not_sent_again(
    root: Path, state: str, uploads: int
) -> None:
    """R15, R19: its files appear one after the other. One that waits for a person would publish
    more than this run may.
    """
    artifacts = built(root)
    alone = Package(
        id=PackageId("maven", "g:a"), version="1.0", directory=root, manifest=root / "pom.xml"
    )
    around = portal.RecordedDeployment(
        id="around",
        release="0" * 64,
        packages={"maven:g:a": portal.digest_release({alone: artifacts}), "maven:g:b": "1" * 64},
    )
    (root / ".releasekit").mkdir(exist_ok=True)
    portal.DeploymentRecord(root / ".releasekit", CENTRAL).add(around)
    there = server(state, "PUBLISHED")
    deploy(there, root, artifacts)
    assert paths(there).count("POST /upload") == uploads
    assert there.requests[0].url.params["id"] == "around"


@pytest.mark.parametrize(
    ("identifiers", "there"),
    [
        pytest.param(["zero"], status("VALIDATED", deploymentName="releasekit-0"), id="others"),
        pytest.param(["zero"], status("FAILED", deploymentName="SAME"), id="failed"),
        pytest.param(["zero"], [httpx.Response(404)], id="gone"),
        pytest.param(["zero", "two"], status("VALIDATED", deploymentName="SAME"), id="two"),
    ],
)
def test_what_is_not_the_same_bundle_is_in_the_way(
    root: Path, identifiers: list[str], there: list[httpx.Response]
) -> None:
    """R17"""
    artifacts = built(root)
    first = server("PUBLISHED")
    deploy(first, root, artifacts)
    (root / ".releasekit" / portal.RECORD_NAME).unlink()
    answers = [
        httpx.Response(answer.status_code, text=answer.text.replace("SAME", name_of(first)))
        for answer in there
    ]
    again = server()
    again.answer("POST", f"{API}/status", *elsewhere(*identifiers), *answers)
    with pytest.raises(Rejected, match="in another deployment") as caught:
        deploy(again, root, artifacts)
    assert "publish it, or drop it" in caught.value.hint
    assert paths(again)[-1] == "DELETE /deployment/one"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (httpx.Response(200, text="<html>"), "not JSON"),
        (httpx.Response(200, text="[]"), "not a JSON object"),
        (httpx.Response(200, json={"deploymentState": "SLEEPING"}), "SLEEPING"),
    ],
)
def test_an_answer_nobody_understands_is_a_doubt(
    root: Path, answer: httpx.Response, words: str
) -> None:
    there = server()
    there.answer("POST", f"{API}/status", answer)
    with pytest.raises(Transient, match=words):
        deploy(there, root, built(root))


def test_an_upload_without_an_id_is_a_doubt(root: Path) -> None:
    there = Server()
    there.answer("POST", f"{API}/upload", httpx.Response(201, text=" "))
    with pytest.raises(Transient) as caught:
        deploy(there, root, built(root))
    assert caught.value.ambiguous


def test_a_conflict_is_a_refusal(root: Path) -> None:
    there = Server()
    there.answer("POST", f"{API}/upload", httpx.Response(409))
    with pytest.raises(Rejected, match="409"):
        deploy(there, root, built(root))


def test_a_bundle_that_is_too_large_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portal, "MAX_BYTES", 10)
    with pytest.raises(PackageError, match="bundle takes 10"):
        deploy(server(), root, built(root))


def test_what_is_published_is_looked_for_in_the_repository(root: Path) -> None:
    there = Server()
    there.files = {"/maven2/g/a/1.0/a-1.0.pom": b"x", "/maven2/g/a/1.0/a-1.0.jar": b"y"}

    async def use(target: Target, package: Package) -> None:
        assert isinstance(target.deployment, Portal)
        target.registry.check_credentials()
        published = await target.registry.lookup(package)
        assert published is not None
        assert published.complete
        assert target.registry.url == "https://central.sonatype.com"

    using(there, root, use, place=CENTRAL)
    assert {request.url.host for request in there.requests} == {"repo1.maven.org"}
    assert all("Authorization" not in request.headers for request in there.requests)
