from __future__ import annotations

import asyncio
import base64
from typing import TYPE_CHECKING

import httpx
import pytest

from releasekit.ecosystems.maven import MavenOptions
from releasekit.errors import (
    ConfigError,
    Denied,
    MissingCredentials,
    PackageError,
    Rejected,
    Transient,
)
from releasekit.fields import replace
from unit.maven.releases import URL, Server, WebDav, built, using, workspace

if TYPE_CHECKING:
    from pathlib import Path

    from releasekit.ecosystems.interface import Target
    from releasekit.model import Artifact, Package, Published

HOME = "/releases/g/a"
POM = f"{HOME}/1.0/a-1.0.pom"
JAR = f"{HOME}/1.0/a-1.0.jar"
METADATA = f"{HOME}/maven-metadata.xml"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    workspace(tmp_path)
    return tmp_path


def upload(
    server: Server,
    root: Path,
    artifacts: tuple[Artifact, ...],
    place: str = URL,
    **options: object,
) -> None:
    async def use(target: Target, package: Package) -> None:
        await target.registry.upload(package, artifacts)

    using(server, root, use, place=place, max_retries=0, ecosystem_tables={"maven": options})


def lookup(server: Server, root: Path, place: str = URL) -> Published | None:
    async def use(target: Target, package: Package) -> Published | None:
        return await target.registry.lookup(package)

    return using(server, root, use, place=place, max_retries=0)


def test_a_version_is_listed_after_its_files_and_each_checksum_comes_after_its_file(
    root: Path,
) -> None:
    server = Server()
    upload(server, root, built(root))
    assert server.puts.index(JAR) < server.puts.index(POM) < server.puts.index(METADATA)
    assert server.puts.index(JAR) < server.puts.index(f"{JAR}.sha1") < server.puts.index(METADATA)
    assert server.puts.index(POM) < server.puts.index(f"{POM}.sha1")
    assert len(server.puts) == len(set(server.puts)) == 3 * 2
    sent = next(
        request
        for request in server.requests
        if request.url.path == JAR and request.method == "PUT"
    )
    pair = base64.b64encode(b"ci:hunter2-password").decode()
    assert sent.headers["Authorization"] == f"Basic {pair}"
    assert sent.headers["If-None-Match"] == "*"
    assert sent.headers["Content-Length"] == str(len(server.files[JAR]))


def test_a_repository_that_refuses_to_be_read_is_told_of_by_the_pom(root: Path) -> None:
    """Of a project that has no sources, no message should be about them."""

    class Private(Server):
        async def __call__(self, request: httpx.Request) -> httpx.Response:
            return httpx.Response(401)

    with pytest.raises(Denied, match=r"a-1\.0\.pom: HTTP 401"):
        lookup(Private(), root)


def test_a_look_that_fails_leaves_no_request_under_way(root: Path) -> None:
    under_way: set[str] = set()

    class Slow(Server):
        async def __call__(self, request: httpx.Request) -> httpx.Response:
            if request.url.path.endswith(".pom.sha1"):
                return httpx.Response(500)
            under_way.add(request.url.path)
            for _ in range(50):
                await asyncio.sleep(0)
            under_way.remove(request.url.path)
            return httpx.Response(404)

    async def use(target: Target, package: Package) -> None:
        with pytest.raises(Transient):
            await target.registry.lookup(package)
        assert not under_way

    built(root)
    using(Slow(), root, use, max_retries=0)


def asked(server: Server) -> list[str]:
    """Method and name of each request, in order."""
    return [f"{it.method} {it.url.path.rpartition('/')[2]}" for it in server.requests]


def test_one_request_tells_that_a_version_is_not_there(root: Path) -> None:
    server = Server()
    assert lookup(server, root) is None
    assert asked(server) == ["GET a-1.0.pom"]


@pytest.mark.parametrize(("doubt", "there", "new"), [("it", 0, 1), ("it", 1, 0), ("", 0, 0)])
def test_the_name_of_what_is_hardly_meant_is_asked_for(
    root: Path, doubt: str, there: int, new: int
) -> None:
    server = Server()
    if there:
        server.files[METADATA] = b"<metadata/>"

    async def use(target: Target, package: Package) -> bool:
        assert target.preflight.is_new is not None
        for _ in range(2):
            assert await target.registry.lookup(replace(package, doubt=doubt)) is None
        return target.preflight.is_new(package.id)

    assert using(server, root, use, max_retries=0) is bool(new)
    asked = [request.url.path for request in server.requests]
    assert asked.count(METADATA) == bool(doubt)


def test_what_was_built_here_tells_which_files_there_are(root: Path) -> None:
    """Nobody else's sources are asked for; without a build, they are."""

    def names() -> set[str]:
        server = Server()
        server.files[POM] = b"a"
        assert lookup(server, root) is not None
        return {request.rpartition(" ")[2] for request in asked(server)}

    both = {"a-1.0-sources.jar.sha1", "a-1.0-javadoc.jar.sha1"}
    assert names() >= both
    built(root)
    assert not names() & both
    built(root, "a-1.0-sources.jar")
    assert names() & both == {"a-1.0-sources.jar.sha1"}


def test_a_release_takes_no_more_requests_than_it_has_to(root: Path) -> None:
    """Of each file: one that finds nothing, its own, its checksum's, and one that confirms it. A
    later run also looks at the metadata.
    """
    server, artifacts = Server(), built(root, "a-1.0.pom", "a-1.0.jar", "a-1.0.jar.asc")
    upload(server, root, artifacts)
    assert sorted(asked(server)) == sorted(
        [
            *("HEAD a-1.0.pom", "HEAD a-1.0.jar", "HEAD a-1.0.jar.asc"),
            *("PUT a-1.0.pom", "PUT a-1.0.jar", "PUT a-1.0.jar.asc"),
            *("PUT a-1.0.pom.sha1", "PUT a-1.0.jar.sha1"),
            *("GET maven-metadata.xml", "PUT maven-metadata.xml", "PUT maven-metadata.xml.sha1"),
        ]
    )
    server.requests.clear()
    published = lookup(server, root)
    assert published is not None
    assert published.files.keys() == {artifact.filename for artifact in artifacts}
    assert sorted(asked(server)) == [
        "GET a-1.0.jar.asc",
        "GET a-1.0.jar.sha1",
        "GET a-1.0.pom.sha1",
        "GET maven-metadata.xml",
        "GET maven-metadata.xml.sha1",
    ]


def test_a_repository_that_replaces_nothing_is_not_asked_before(root: Path) -> None:
    """R17, R21: what it refuses is compared."""

    class Immutable(Server):
        async def __call__(self, request: httpx.Request) -> httpx.Response:
            if request.headers.get("If-None-Match") == "*" and request.url.path in self.files:
                self.requests.append(request)
                return httpx.Response(412)
            return await super().__call__(request)

    server, artifacts = Immutable(), built(root)
    upload(server, root, artifacts, immutable=True)
    assert not [request for request in asked(server) if request.startswith("HEAD")]
    assert len(server.puts) == 3 * 2

    del server.files[f"{POM}.sha1"], server.files[f"{JAR}.sha1"]
    upload(server, root, artifacts, immutable=True)
    assert server.puts[-1] == f"{POM}.sha1"
    assert f"{JAR}.sha1" in server.files

    server = Immutable()
    server.files[JAR] = b"theirs"
    with pytest.raises(Rejected, match=r"holds a-1\.0\.jar with sha256:"):
        upload(server, root, artifacts, immutable=True)
    assert POM not in server.files


def test_the_last_three_requests_are_under_way_together(root: Path) -> None:
    """A release waits three times for a repository: for files, for the POM, and for these."""

    class Slow(Server):
        def __init__(self) -> None:
            super().__init__()
            self.under_way: list[str] = []
            self.beside: dict[str, set[str]] = {}

        async def __call__(self, request: httpx.Request) -> httpx.Response:
            self.under_way.append(request.url.path)
            for _ in range(50):
                await asyncio.sleep(0)
            self.beside[request.url.path] = {*self.under_way}
            self.under_way.remove(request.url.path)
            return await super().__call__(request)

    server = Slow()
    upload(server, root, built(root))
    assert server.beside[METADATA] == {METADATA, f"{METADATA}.sha1", f"{POM}.sha1"}


@pytest.mark.parametrize(("slots", "most"), [(1, 1), (2, 10)])
def test_files_go_out_side_by_side_unless_one_request_at_a_time_is_asked_for(
    root: Path, slots: int, most: int
) -> None:
    names = ["a-1.0.pom", "a-1.0.jar", *(f"a-1.0-{number}.jar" for number in range(12))]
    artifacts, under_way = built(root, *names), list[int]([0])

    class Slow(Server):
        async def __call__(self, request: httpx.Request) -> httpx.Response:
            if request.method == "PUT":
                under_way.append(under_way[-1] + 1)
                for _ in range(50):
                    await asyncio.sleep(0)
                under_way.append(under_way[-1] - 1)
            return await super().__call__(request)

    async def use(target: Target, package: Package) -> None:
        await target.registry.upload(package, artifacts)

    using(Slow(), root, use, concurrency=slots)
    assert max(under_way) == most


def test_further_checksums_are_sent_on_request(root: Path) -> None:
    """Those that Gradle sends, with sha1 as the last of each file."""
    server, artifacts = Server(), built(root)
    upload(server, root, artifacts, checksums=["sha1", "md5", "sha256", "sha512"])
    assert len(server.puts) == len(set(server.puts)) == 3 * 5
    assert server.puts[-1] == f"{POM}.sha1"
    for artifact in artifacts:
        for algorithm, digest in artifact.digests.items():
            path = f"{HOME}/1.0/{artifact.filename}.{algorithm}"
            assert server.files[path] == digest.encode()


@pytest.mark.parametrize("value", ["sha1", ["md5"], ["sha1", "crc32"], [1]])
def test_checksums_that_cannot_be_used_are_named(value: object) -> None:
    with pytest.raises(ConfigError, match=r"\[maven\] checksums is"):
        MavenOptions.from_table({"checksums": value})


def test_a_file_beside_a_whole_release_is_added(root: Path) -> None:
    """R21: the version is listed already, and nothing of it is sent again."""
    server, artifacts = Server(), built(root, "a-1.0.pom", "a-1.0.jar", "a-1.0-linux.jar")
    upload(server, root, artifacts[:2])
    server.requests.clear()
    upload(server, root, artifacts[2:])
    linux = f"{HOME}/1.0/a-1.0-linux.jar"
    assert server.puts == [linux, f"{linux}.sha1"]


def test_a_jar_without_its_checksum_gets_it(root: Path) -> None:
    """R21: the upload that brought it ended between the two."""
    server, artifacts = Server(), built(root)
    server.answer("PUT", f"{JAR}.sha1", httpx.ReadError("reset"))
    with pytest.raises(Transient):
        upload(server, root, artifacts)
    published = lookup(server, root)
    assert published is None or "a-1.0.jar" not in published.files
    upload(server, root, artifacts)
    assert server.files[f"{JAR}.sha1"].decode() == artifacts[1].digests["sha1"]
    assert server.puts.count(JAR) == 1


@pytest.mark.parametrize("earlier", [{}, {f"{METADATA}.sha1": b"0" * 40}])
@pytest.mark.parametrize("cut_off", [POM, METADATA, f"{METADATA}.sha1", f"{POM}.sha1"])
def test_an_upload_that_was_cut_off_is_completed(
    root: Path, cut_off: str, earlier: dict[str, bytes]
) -> None:
    """R21: whichever request it was, the next look finds that something is missing. `earlier` is
    what an earlier release has left.
    """
    server, artifacts = Server(), built(root)
    server.files = {**earlier}
    server.answer("PUT", cut_off, httpx.ReadError("reset"))
    with pytest.raises(Transient) as caught:
        upload(server, root, artifacts)
    assert caught.value.ambiguous
    published = lookup(server, root)
    assert published is not None
    assert published.lacks or not published.complete
    missing = artifacts if published.lacks else artifacts[:1]
    server.requests.clear()
    upload(server, root, missing)
    assert cut_off in server.puts
    assert JAR not in server.puts
    published = lookup(server, root)
    assert published is not None
    assert published.complete
    assert not published.lacks


def test_the_next_attempt_sends_what_the_last_one_could_not(root: Path) -> None:
    """R21: also where a server with no checksum of the list would pass for whole."""
    server, artifacts = Server(), built(root)
    server.answer("PUT", f"{METADATA}.sha1", httpx.Response(503))

    async def use(target: Target, package: Package) -> None:
        with pytest.raises(Transient):
            await target.registry.upload(package, artifacts)
        published = await target.registry.lookup(package)
        assert published is not None
        assert published.lacks
        await target.registry.upload(package, artifacts)
        published = await target.registry.lookup(package)
        assert published is not None
        assert not published.lacks

    using(server, root, use, max_retries=0)
    assert f"{METADATA}.sha1" in server.files


def test_a_server_may_make_the_metadata_itself_and_no_checksum_of_it(root: Path) -> None:
    """Else each later run would send them again."""
    server = Server()
    upload(server, root, built(root))
    server.files[METADATA] = server.files[METADATA].replace(b"  <", b"<")
    del server.files[f"{METADATA}.sha1"]
    published = lookup(server, root)
    assert published is not None
    assert not published.lacks


def test_another_checksum_of_the_metadata_is_told_of_without_built_files_too(root: Path) -> None:
    server, artifacts = Server(), built(root)
    upload(server, root, artifacts)
    server.files[f"{METADATA}.sha1"] = b"0" * 40
    for artifact in artifacts:
        artifact.path.unlink()
    published = lookup(server, root)
    assert published is not None
    assert published.lacks == "maven-metadata.xml has another checksum"


def test_a_version_that_the_metadata_does_not_list_is_not_whole(root: Path) -> None:
    """R21: where the server makes checksums itself, that of the POM proves nothing."""
    server, artifacts = Server(), built(root)
    server.answer("PUT", METADATA, httpx.Response(403))
    with pytest.raises(Denied):
        upload(server, root, artifacts)
    server.files[f"{POM}.sha1"] = artifacts[0].digests["sha1"].encode()
    published = lookup(server, root)
    assert published is not None
    assert published.complete
    assert published.lacks == "maven-metadata.xml does not list it"
    server.requests.clear()
    upload(server, root, artifacts)
    assert {POM, JAR}.isdisjoint(server.puts)
    published = lookup(server, root)
    assert published is not None
    assert not published.lacks


def test_somebody_elses_release_needs_no_checksums(root: Path) -> None:
    server = Server()
    server.files = {POM: b"a", JAR: b"b"}
    published = lookup(server, root)
    assert published is not None
    assert published.complete
    assert all(digest.startswith("sha256:") for digest in published.files.values())
    assert published.url == f"{URL}/g/a/1.0/"
    with pytest.raises(Rejected, match=r"holds a-1\.0\.pom with sha256:"):
        upload(server, root, built(root))
    assert not server.puts


def test_what_else_was_built_here_is_looked_for(root: Path) -> None:
    server = Server()
    artifacts = built(root, "a-1.0.pom", "a-1.0.jar", "a-1.0-linux.jar", "a-1.0-sources.jar")
    upload(server, root, artifacts)
    published = lookup(server, root)
    assert published is not None
    assert published.files.keys() == {artifact.filename for artifact in artifacts}


@pytest.mark.parametrize(
    ("packaging", "names", "complete"),
    [
        ("pom", ["a-1.0.pom"], True),
        ("jar", ["a-1.0.pom"], False),
        ("war", ["a-1.0.pom", "a-1.0.war"], True),
        ("maven-plugin", ["a-1.0.pom", "a-1.0.jar"], True),
        ("unheard-of", ["a-1.0.pom", "a-1.0.jar"], True),
    ],
)
def test_complete_is_the_pom_with_its_main_artifact(
    tmp_path: Path, packaging: str, names: list[str], complete: bool
) -> None:
    workspace(tmp_path, packaging)
    server = Server()
    for name in names:
        server.files[f"{HOME}/1.0/{name}"] = b"x"
    published = lookup(server, tmp_path)
    assert published is not None
    assert published.complete is complete


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(409, text="already exists"),
        httpx.Response(412),
        httpx.Response(400, text="Repository does not allow updating assets: releases"),
        httpx.Response(403, text="Not enough permissions to overwrite artifact"),
    ],
)
def test_a_file_that_came_meanwhile_is_compared(root: Path, answer: httpx.Response) -> None:
    """R17"""

    class Beside(Server):
        """Somebody else is a little faster."""

        theirs = b"theirs"

        async def __call__(self, request: httpx.Request) -> httpx.Response:
            if request.method == "PUT" and request.url.path == JAR:
                self.files[JAR] = self.theirs
            return await super().__call__(request)

    artifacts = built(root)
    server = Beside()
    server.answer("PUT", JAR, answer)
    with pytest.raises(Rejected, match=r"holds a-1\.0\.jar with sha256:"):
        upload(server, root, artifacts)
    assert server.files == {JAR: b"theirs"}

    server = Beside()
    server.theirs = artifacts[1].path.read_bytes()
    server.answer("PUT", JAR, answer)
    upload(server, root, artifacts)
    assert server.puts[-1] == f"{POM}.sha1"
    assert f"{JAR}.sha1" in server.files


def test_a_file_that_is_said_to_be_there_and_not_shown_is_a_doubt(root: Path) -> None:
    """R16"""
    server = Server()
    server.answer("PUT", JAR, httpx.Response(412))
    with pytest.raises(Transient, match="does not show it") as caught:
        upload(server, root, built(root))
    assert caught.value.ambiguous
    assert POM not in server.puts


def test_a_webdav_server_gets_the_directories_it_lacks(root: Path) -> None:
    """Its 409 says that they are missing, not that the file is there."""
    server = WebDav()
    artifacts = built(root)
    upload(server, root, artifacts)
    assert server.collections == {
        "/releases/", "/releases/g/", "/releases/g/a/", "/releases/g/a/1.0/",
    }  # fmt: skip
    assert server.files[JAR] == artifacts[1].path.read_bytes()
    assert server.files[f"{POM}.sha1"]
    published = lookup(server, root)
    assert published is not None
    assert published.complete
    authorized = {
        r.headers.get("Authorization", "") for r in server.requests if r.method == "MKCOL"
    }
    assert all(each.startswith("Basic ") for each in authorized)


def test_only_missing_directories_are_asked_for(root: Path) -> None:
    server = WebDav()
    server.collections |= {"/releases/g/", "/releases/g/a/"}
    upload(server, root, built(root))
    assert server.made == ["/releases/g/a/1.0/"]


def test_nothing_is_made_above_the_repository(root: Path) -> None:
    server = WebDav("/elsewhere/")
    with pytest.raises(Rejected, match=r"MKCOL .*: HTTP 409") as caught:
        upload(server, root, built(root))
    assert "has to be a directory of the WebDAV server" in caught.value.hint
    assert server.collections == {"/elsewhere/"}
    assert all(path.startswith("/releases/g/") for path in server.made)


@pytest.mark.parametrize(
    ("answer", "error"),
    [(httpx.Response(403), Denied), (httpx.Response(507), Transient)],
)
def test_a_directory_that_is_refused_is_said_so(
    root: Path, answer: httpx.Response, error: type[PackageError]
) -> None:
    server = WebDav()
    server.answer("MKCOL", "/releases/g/", answer)
    with pytest.raises(error, match=r"MKCOL https://repo\.example/releases/g/: HTTP"):
        upload(server, root, built(root))
    assert not server.files


@pytest.mark.parametrize("answer", [404, 405, 501])
def test_a_conflict_about_nothing_is_a_doubt(root: Path, answer: int) -> None:
    """R12: the server has no WebDAV, and shows no such file."""
    server = Server()
    server.answer("PUT", JAR, httpx.Response(409, text="busy"), httpx.Response(409, text="busy"))
    for path in ("g", "g/a", "g/a/1.0"):
        server.answer("MKCOL", f"/releases/{path}/", httpx.Response(answer))
    with pytest.raises(Transient, match=r"a-1\.0\.jar: HTTP 409 busy") as caught:
        upload(server, root, built(root))
    assert caught.value.ambiguous


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        (httpx.Response(401), Denied, "maven-password"),
        (httpx.Response(403, text="no"), Denied, "maven-password"),
        (httpx.Response(404), Rejected, "distributionManagement"),
        (httpx.Response(422, text="bad"), Rejected, "bad"),
        (httpx.Response(503, headers={"Retry-After": "3"}), Transient, "503"),
        (httpx.Response(500), Transient, "create_full_put_path"),
        (httpx.Response(307, headers={"Location": "https://else.example/"}), Rejected, "else"),
    ],
)
def test_what_a_refusal_means(
    root: Path, answer: httpx.Response, error: type[PackageError], words: str
) -> None:
    server = Server()
    server.answer("PUT", JAR, answer)
    with pytest.raises(error) as caught:
        upload(server, root, built(root))
    assert words in str(caught.value) + caught.value.hint
    assert POM not in server.files


def test_a_repository_that_takes_no_upload_is_not_asked_either(root: Path) -> None:
    names = ["a-1.0.pom", "a-1.0.jar", *(f"a-1.0-{number}.jar" for number in range(4))]
    server, artifacts = Server(), built(root, *names)
    for name in names:
        server.answer("PUT", f"{HOME}/1.0/{name}", httpx.Response(503))

    async def use(target: Target, package: Package) -> None:
        with pytest.raises(Transient, match="503"):
            await target.registry.upload(package, artifacts)
        asked = len(server.requests)
        look = asyncio.ensure_future(target.registry.lookup(package))
        for _ in range(50):
            await asyncio.sleep(0)
        assert not look.done()
        assert len(server.requests) == asked
        look.cancel()

    using(server, root, use, max_retries=0)


def test_a_final_error_tells_more_than_a_passing_one(root: Path) -> None:
    server = Server()
    server.answer("PUT", JAR, httpx.Response(503))
    server.answer("PUT", f"{HOME}/1.0/a-1.0-sources.jar", httpx.Response(401))
    with pytest.raises(Denied):
        upload(server, root, built(root, "a-1.0.pom", "a-1.0.jar", "a-1.0-sources.jar"))


def test_passing_errors_of_several_files_are_joined(root: Path) -> None:
    """R12, R15: the longest pause, and ambiguous if any of them is."""
    server = Server()
    server.answer("PUT", JAR, httpx.Response(429, headers={"Retry-After": "3"}))
    server.answer("PUT", f"{HOME}/1.0/a-1.0-sources.jar", httpx.Response(502))
    with pytest.raises(Transient) as caught:
        upload(server, root, built(root, "a-1.0.pom", "a-1.0.jar", "a-1.0-sources.jar"))
    assert (caught.value.retry_after, caught.value.ambiguous) == (3.0, True)


def test_other_versions_stay_in_the_metadata(root: Path) -> None:
    server = Server()
    server.files[METADATA] = (
        b"<metadata><versioning><versions><version>0.9</version><version>2.0</version>"
        b"</versions></versioning></metadata>"
    )
    upload(server, root, built(root))
    page = server.files[METADATA].decode()
    assert page.index("0.9") < page.index("<version>1.0<") < page.index("<version>2.0<")
    assert "<release>2.0</release>" in page


@pytest.mark.parametrize("page", [b"not found", b"<metadata>"])
def test_a_page_that_is_no_metadata_is_never_replaced(root: Path, page: bytes) -> None:
    server = Server()
    server.files[METADATA] = page
    with pytest.raises(Rejected, match="not Maven metadata"):
        upload(server, root, built(root))
    assert server.files[METADATA] == page


def test_a_checksum_that_is_none_is_a_doubt(root: Path) -> None:
    server = Server()
    built(root)
    server.files[f"{POM}.sha1"] = b"maintenance"
    with pytest.raises(Transient, match="not a checksum"):
        lookup(server, root)


@pytest.mark.parametrize("path", [POM, f"{POM}.sha1", METADATA])
def test_a_web_page_is_no_file_of_a_repository(root: Path, path: str) -> None:
    """R68"""
    server = Server()
    if path != POM:  # which is read where nothing was built here
        upload(server, root, built(root))
    server.files[path] = b"<!DOCTYPE html><title>Sign in</title>"
    with pytest.raises(Transient, match="this is a web page, not a file") as caught:
        lookup(server, root)
    assert "correct the address" in caught.value.hint


def test_credentials_are_checked_before_anything_is_sent(root: Path) -> None:
    async def use(target: Target, _: Package) -> None:
        target.registry.check_credentials()

    using(Server(), root, use)
    with pytest.raises(MissingCredentials, match="RELEASEKIT_MAVEN_PASSWORD is not set"):
        using(Server(), root, use, environ={})


def test_reading_needs_no_credentials(root: Path) -> None:
    server = Server()

    async def use(target: Target, package: Package) -> None:
        assert await target.registry.lookup(package) is None

    using(server, root, use, environ={})
    assert server.requests
    assert all("Authorization" not in request.headers for request in server.requests)


def test_a_file_of_another_name_is_no_part_of_the_release(root: Path) -> None:
    with pytest.raises(PackageError, match="not the name"):
        upload(Server(), root, built(root, "b-1.0.jar"))


@pytest.mark.parametrize("place", ["http://repo.example/", "https://me:pw@repo.example/"])
def test_an_unsafe_address_is_refused(root: Path, place: str) -> None:
    """R37"""
    with pytest.raises(ConfigError, match="maven-registry"):
        lookup(Server(), root, place=place)


def test_a_directory_heals_metadata_that_is_none(root: Path) -> None:
    place = f"dir:{root / 'served'}"
    artifacts = built(root)
    assert lookup(Server(), root, place=place) is None
    upload(Server(), root, artifacts, place=place)
    page = root / "served" / "g" / "a" / "maven-metadata.xml"
    before = page.read_bytes()
    page.write_text("<html/>")
    upload(Server(), root, artifacts, place=place)
    assert b"<version>1.0</version>" in page.read_bytes()
    assert page.read_bytes()[:100] == before[:100]
    whole = page.read_bytes()
    upload(Server(), root, artifacts, place=place)
    assert page.read_bytes() == whole
    published = lookup(Server(), root, place=place)
    assert published is not None
    assert published.complete
    assert published.files.keys() == {"a-1.0.pom", "a-1.0.jar"}


def test_a_file_without_a_checksum_is_not_shown_by_a_directory(root: Path) -> None:
    place = f"dir:{root / 'served'}"
    upload(Server(), root, built(root)[1:], place=place)
    directory = root / "served" / "g" / "a" / "1.0"
    published = lookup(Server(), root, place=place)
    assert published is not None
    assert not published.complete
    (directory / "a-1.0.jar.sha1").unlink()
    assert lookup(Server(), root, place=place) is None


def test_a_directory_shows_what_has_a_checksum(root: Path) -> None:
    """R21: an upload that was cut off before its pages has not begun for a client."""
    place = f"dir:{root / 'served'}"
    upload(Server(), root, built(root), place=place)
    for checksum in (root / "served" / "g" / "a" / "1.0").glob("*.sha1"):
        checksum.unlink()
    assert lookup(Server(), root, place=place) is None
