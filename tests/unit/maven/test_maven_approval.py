"""What waits at the Central Portal, let out or taken back."""

from __future__ import annotations

import asyncio
import hashlib
import io
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import httpx
import pytest

from releasekit.ecosystems import ECOSYSTEMS
from releasekit.ecosystems.approval import Waiting
from releasekit.ecosystems.folders import approval
from releasekit.ecosystems.maven import CENTRAL
from releasekit.errors import (
    CodeWanted,
    Denied,
    DigestMismatch,
    MissingCredentials,
    Rejected,
    Transient,
    UnderReview,
)
from releasekit.model import Artifact, Outcome, Package, PackageId, Result, Staged
from unit.maven.releases import LOGIN, Server, services, settings
from unit.maven.test_maven_portal import API, paths, status

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from releasekit.ecosystems.approval import Approval

T = TypeVar("T")
PURL = "pkg:maven/g/a@1.0?type=jar"
IN_DEPLOYMENT = f"{API}/deployment/one/download/g/a/1.0/"
PUBLIC = "/maven2/g/a/1.0/"


def jar(*names: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in names:
            archive.writestr(name, name)
    return file.getvalue()


FILES = {
    "a-1.0.pom": b"<project/>",
    "a-1.0.pom.asc": b"signed",
    "a-1.0.jar": jar("acme/A.class", "acme/B.class"),
    "a-1.0-sources.jar": jar("acme/A.java"),
}
WAITS = Waiting(id="one", name="g:a", version="1.0")


def recorded(
    name: str = "g:a", version: str = "1.0", identifier: str | None = "one", **files: bytes
) -> Result:
    return Result(
        package=Package(
            id=PackageId("maven", name), version=version, directory=Path(), manifest=Path()
        ),
        outcome=Outcome.STAGED,
        reason="",
        artifacts=tuple(
            Artifact(
                path=Path(filename),
                size=len(data),
                digests={"sha256": hashlib.sha256(data).hexdigest()},
            )
            for filename, data in (files or FILES).items()
        ),
        staged=None if identifier is None else Staged(id=identifier),
    )


def server(*states: str, below: str = IN_DEPLOYMENT, **more: object) -> Server:
    made = Server()
    made.answer("POST", f"{API}/status", *status(*states, **{"purls": [PURL], **more}))
    made.answer("POST", f"{API}/deployment/one", httpx.Response(204))
    made.answer("DELETE", f"{API}/deployment/one", httpx.Response(204))
    made.files = {f"{below}{name}": data for name, data in FILES.items()}
    return made


def using(
    there: Server,
    root: Path,
    use: Callable[[Approval], Awaitable[T]],
    environ: Mapping[str, str] = LOGIN,
    **changes: Any,
) -> T:
    config = settings(root, place=CENTRAL, max_retries=0, **changes)

    async def main() -> T:
        async with services(there, config, environ) as given:
            return await use(approval(ECOSYSTEMS["maven"], config, given))

    return asyncio.run(main())


def approve(there: Server, root: Path, *results: Result) -> None:
    """Bring the files of all of them, and approve."""

    async def use(portal: Approval) -> None:
        waiting = None
        for result in results:
            waiting = await portal.waiting(result)
            assert waiting is not None
            await portal.files(result, waiting, root)
        assert waiting is not None
        await portal.approve(waiting, "")

    using(there, root, use)


def published(there: Server) -> int:
    return paths(there).count("POST /deployment/one")


def test_it_waits_under_the_recorded_id(tmp_path: Path) -> None:
    there = server("VALIDATED")
    assert using(there, tmp_path, lambda portal: portal.waiting(recorded())) == WAITS
    assert there.requests[0].url.params["id"] == "one"
    assert there.requests[0].headers["Authorization"].startswith("Bearer ")


@pytest.mark.parametrize("answer", [httpx.Response(404), httpx.Response(200, json={})])
def test_what_was_dropped_waits_no_longer(tmp_path: Path, answer: httpx.Response) -> None:
    there = Server()
    there.answer("POST", f"{API}/status", answer)
    assert using(there, tmp_path, lambda portal: portal.waiting(recorded())) is None


@pytest.mark.parametrize("state", ["PUBLISHING", "PUBLISHED"])
def test_what_is_being_published_waits_for_nobody(tmp_path: Path, state: str) -> None:
    """Its files may not be there any more; whether it is visible says the repository."""
    there = server(state)
    assert using(there, tmp_path, lambda portal: portal.waiting(recorded())) is None


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (recorded(identifier=None), "'' is not the id"),
        (recorded(identifier="../upload"), "not the id"),
        (recorded("../..:x"), "not a group:artifact"),
        (recorded(version="1.0/../2.0"), "not a group:artifact"),
        (recorded("g:b"), "holds g:a 1.0 instead"),
        (recorded(version="1.1"), "holds g:a 1.0 instead"),
    ],
)
def test_what_is_not_the_recorded_one_is_refused(
    tmp_path: Path, result: Result, words: str
) -> None:
    there = server("VALIDATED")
    with pytest.raises(Rejected, match=words):
        using(there, tmp_path, lambda portal: portal.waiting(result))


def test_what_has_failed_is_told_in_the_words_of_the_portal(tmp_path: Path) -> None:
    there = server("FAILED", errors={PURL: ["Component exists"]})
    with pytest.raises(Rejected, match="Component exists") as caught:
        using(there, tmp_path, lambda portal: portal.waiting(recorded()))
    assert "https://central.sonatype.com/publishing/deployments" in caught.value.hint


def test_its_files_are_brought_and_hashed(tmp_path: Path) -> None:
    result = recorded()
    found = using(server(), tmp_path, lambda portal: portal.files(result, WAITS, tmp_path))
    assert [each.sha256 for each in found] == [each.sha256 for each in result.artifacts]
    assert all((tmp_path / name).read_bytes() == data for name, data in FILES.items())
    # And once more, over those.
    using(server(), tmp_path, lambda portal: portal.files(result, WAITS, tmp_path))


def test_a_file_that_is_missing_is_not_brought(tmp_path: Path) -> None:
    there = server()
    del there.files[f"{IN_DEPLOYMENT}a-1.0.jar"]
    found = using(there, tmp_path, lambda portal: portal.files(recorded(), WAITS, tmp_path))
    assert {each.filename for each in found} == FILES.keys() - {"a-1.0.jar"}


def test_a_file_far_larger_than_recorded_is_not_taken(tmp_path: Path) -> None:
    """R40"""
    there = server()
    there.files[f"{IN_DEPLOYMENT}a-1.0.pom"] = bytes(1_000_000)
    with pytest.raises(Rejected, match="over"):
        using(there, tmp_path, lambda portal: portal.files(recorded(), WAITS, tmp_path))


def test_who_may_not_read_it_is_told_so(tmp_path: Path) -> None:
    there = server()
    there.answer("GET", f"{IN_DEPLOYMENT}a-1.0.pom", httpx.Response(403))
    with pytest.raises(Denied, match=r"a-1.0.pom in deployment one"):
        using(there, tmp_path, lambda portal: portal.files(recorded(), WAITS, tmp_path))


def test_a_whole_deployment_is_approved_once(tmp_path: Path) -> None:
    there = server("VALIDATED", "VALIDATED")
    approve(there, tmp_path, recorded())
    assert published(there) == 1


def test_what_is_being_published_is_not_approved_again(tmp_path: Path) -> None:
    """R15: also where it was approved by hand meanwhile, or an answer was lost."""
    there = server("VALIDATED", "PUBLISHING")
    approve(there, tmp_path, recorded())
    assert published(there) == 0


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param({"a-1.0.jar": b"forged"}, id="forged"),
        pytest.param({"a-1.0.jar": None}, id="missing"),
    ],
)
def test_nothing_of_a_deployment_goes_out_where_one_file_differs(
    tmp_path: Path, spoil: dict[str, bytes | None]
) -> None:
    there = server("VALIDATED", "VALIDATED")
    for name, data in spoil.items():
        del there.files[f"{IN_DEPLOYMENT}{name}"]
        if data is not None:
            there.files[f"{IN_DEPLOYMENT}{name}"] = data
    with pytest.raises(Rejected, match=r"g:a 1\.0, which is not what was staged"):
        approve(there, tmp_path, recorded())
    assert published(there) == 0


def test_a_package_that_was_slipped_in_keeps_all_of_it_back(tmp_path: Path) -> None:
    more = [PURL, "pkg:maven/org.evil/x%2By@2.0"]
    there = server("VALIDATED", "VALIDATED", purls=more)
    with pytest.raises(Rejected, match=r"also holds org.evil:x\+y 2.0"):
        approve(there, tmp_path, recorded())
    assert published(there) == 0


@pytest.mark.parametrize(
    ("answers", "error"),
    [
        (status("VALIDATING"), UnderReview),
        (status("PENDING"), UnderReview),
        (status("FAILED"), Rejected),
        ([httpx.Response(404)], Rejected),
        ([httpx.Response(503)], Transient),
    ],
)
@pytest.mark.parametrize("what", ["approve", "reject"])
def test_what_cannot_be_approved_or_taken_back_yet(
    tmp_path: Path, answers: list[httpx.Response], error: type[Exception], what: str
) -> None:
    there = server()
    there.answer("POST", f"{API}/status", *answers)

    async def use(portal: Approval) -> None:
        await (portal.approve if what == "approve" else portal.reject)(WAITS, "")

    if what == "reject" and error is Rejected:
        using(there, tmp_path, use)
    else:
        with pytest.raises(error):
            using(there, tmp_path, use)
    assert published(there) == 0


def test_a_refused_approval_is_told(tmp_path: Path) -> None:
    there = server("VALIDATED", "VALIDATED")
    there.answers["POST", f"{API}/deployment/one"] = [httpx.Response(403, text="not yours")]
    with pytest.raises(Denied, match="publishing deployment one: HTTP 403 not yours"):
        approve(there, tmp_path, recorded())


def test_what_is_rejected_is_dropped(tmp_path: Path) -> None:
    there = server("VALIDATED")
    using(there, tmp_path, lambda portal: portal.reject(WAITS, ""))
    assert paths(there)[-1] == "DELETE /deployment/one"


def test_what_somebody_dropped_meanwhile_is_rejected(tmp_path: Path) -> None:
    there = server("VALIDATED")
    there.answers["DELETE", f"{API}/deployment/one"] = [httpx.Response(404)]
    using(there, tmp_path, lambda portal: portal.reject(WAITS, ""))


def test_what_is_published_cannot_be_taken_back(tmp_path: Path) -> None:
    there = server("PUBLISHED")
    with pytest.raises(Rejected, match="cannot be taken back"):
        using(there, tmp_path, lambda portal: portal.reject(WAITS, ""))
    assert len(there.requests) == 1


def visible(there: Server, root: Path) -> bool:
    return using(there, root, lambda portal: portal.is_visible(recorded(), root))


def test_it_is_visible_once_all_of_it_is(tmp_path: Path) -> None:
    """By the checksums beside the files, or by their bytes; without the credentials."""
    there = server(below=PUBLIC)
    page = hashlib.sha256(FILES["a-1.0.jar"]).hexdigest().encode()
    there.files[f"{PUBLIC}a-1.0.jar.sha256"] = page + b"  a-1.0.jar\n"
    there.files[f"{PUBLIC}a-1.0.pom.sha256"] = b"nonsense"
    assert visible(there, tmp_path)
    assert not any("Authorization" in request.headers for request in there.requests)
    del there.files[f"{PUBLIC}a-1.0-sources.jar"]
    assert not visible(there, tmp_path)


def test_other_bytes_in_the_repository_are_no_approval(tmp_path: Path) -> None:
    """R17"""
    there = server(below=PUBLIC)
    there.files[f"{PUBLIC}a-1.0.jar"] = b"somebody else's"
    with pytest.raises(DigestMismatch, match=r"a-1.0.jar with sha256 \w{64}"):
        visible(there, tmp_path)


def listing(*versions: str) -> bytes:
    named = "".join(f"<version>{version}</version>" for version in versions)
    return f"<metadata><versioning><versions>{named}</versions></versioning></metadata>".encode()


@pytest.mark.parametrize(
    ("page", "before"),
    [
        (listing("0.9", "0.10", "0.11-SNAPSHOT", "1.0", "1.1", "../0.99"), "0.10"),
        (listing("1.0", "1.1"), None),
        (b"maintenance", None),
        (None, None),
    ],
)
def test_what_it_is_compared_with(tmp_path: Path, page: bytes | None, before: str | None) -> None:
    there = Server()
    if page is not None:
        there.files["/maven2/g/a/maven-metadata.xml"] = page
    there.files["/maven2/g/a/0.10/a-0.10.pom"] = b"<project></project>"
    there.files["/maven2/g/a/0.10/a-0.10.jar"] = jar("acme/A.class")
    found = using(there, tmp_path, lambda portal: portal.last_published(recorded(), tmp_path))
    if before is None:
        assert found is None
    else:
        assert found is not None
        assert found.version == before
        assert found.names == {"a.pom", "a.jar", "acme/A.class"}
        assert found.size == len(b"<project></project>") + len(jar("acme/A.class"))


def test_a_file_that_the_version_before_lacks_is_left_out(tmp_path: Path) -> None:
    there = Server()
    there.files["/maven2/g/a/maven-metadata.xml"] = listing("0.9")
    there.files["/maven2/g/a/0.9/a-0.9.pom"] = b"<project/>"
    found = using(there, tmp_path, lambda portal: portal.last_published(recorded(), tmp_path))
    assert found is not None
    assert found.names == {"a.pom"}


def test_what_it_holds_is_named_without_its_version(tmp_path: Path) -> None:
    async def use(portal: Approval) -> None:
        result = recorded()
        found = portal.contents(result, await portal.files(result, WAITS, tmp_path))
        assert found.names == {"a.pom", "a.jar", "acme/A.class", "acme/B.class"}
        assert found.size == len(FILES["a-1.0.pom"]) + len(FILES["a-1.0.jar"])
        assert not found.scripts

    using(server(), tmp_path, use)


def test_without_credentials_nothing_is_asked(tmp_path: Path) -> None:
    async def use(portal: Approval) -> None:
        portal.check_credentials()

    with pytest.raises(MissingCredentials, match="RELEASEKIT_MAVEN_PASSWORD"):
        using(Server(), tmp_path, use, environ={})


def test_nobody_is_sent_to_a_page_for_a_code(tmp_path: Path) -> None:
    wanted = CodeWanted("a code")
    with pytest.raises(CodeWanted):
        using(Server(), tmp_path, lambda portal: portal.confirmed(wanted))
