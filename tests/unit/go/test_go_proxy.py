from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, cast

import httpx
import pytest

import fakes
from releasekit.ecosystems.go import OFFICIAL, module_zip, release
from releasekit.ecosystems.go.registry import ModuleProxy, ProxyDirectory
from releasekit.errors import ConfigError, Denied, PackageError, Rejected, Transient
from releasekit.http.client import http_client
from releasekit.http.credentials import Credentials, snapshot
from releasekit.model import Package, PackageId

if TYPE_CHECKING:
    from collections.abc import Mapping

    from releasekit.host.process import Processes

PACKAGE = Package(
    id=PackageId("go", "github.com/Acme/core"),
    version="v1.0.0",
    directory=Path("/w"),
    manifest=Path("/w/go.mod"),
)
BASE = "github.com/!acme/core/@v/v1.0.0"
INFO = b'{"Version":"v1.0.0","Time":"2026-01-02T03:04:05Z","Origin":{"VCS":"git"}}'
MOD = b"module github.com/Acme/core\n"
ZIP = module_zip.zip_bytes({"github.com/Acme/core@v1.0.0/go.mod": MOD}, time_s=0)


def read(
    answers: Mapping[str, bytes | int], url: str = "https://proxy.example/p"
) -> dict[str, str]:
    def answer(request: httpx.Request) -> httpx.Response:
        found = answers.get(str(request.url), 404)
        if isinstance(found, int):
            return httpx.Response(found, text="not here")
        return httpx.Response(200, content=found)

    async def main() -> dict[str, str]:
        taken = snapshot({})
        config = fakes.config(Path("/w"), max_retries=0)
        async with http_client(transport=httpx.MockTransport(answer)) as http:
            services = fakes.make_services(
                config, http, cast("Processes", None), Credentials(taken, mask=lambda _: None)
            )
            return await ModuleProxy(url, services).read_digests(PACKAGE)

    return asyncio.run(main())


def everything(url: str) -> dict[str, bytes | int]:
    return {f"{url}{BASE}.info": INFO, f"{url}{BASE}.mod": MOD, f"{url}{BASE}.zip": ZIP}


def test_a_proxy_shows_what_go_sum_will_say() -> None:
    found = read(everything("https://proxy.example/p/"))
    assert found["v1.0.0.mod"] == module_zip.hash_of_mod(MOD)
    assert found["v1.0.0.zip"] == module_zip.hash_of_zip(ZIP)
    assert found["v1.0.0.info"] == "version:v1.0.0"


OTHER_INFO = (
    pytest.param(b'{"Version":"v1.0.0","Time":"2020-01-01T00:00:00Z"}', id="other-time"),
    pytest.param(b'{"Version":"v1.0.0"}', id="no-time"),
    pytest.param(b'{"Version":"v1.0.0","Origin":{"URL":"x"}}', id="other-origin"),
)


def test_the_newest_go_mod_retracts_in_a_directory(tmp_path: Path) -> None:
    """R65: stable versions before prereleases, as `@latest` has them."""
    directory = tmp_path / "github.com/!acme/core/@v"
    directory.mkdir(parents=True)
    versions = ["v1.0.0", "v1.0.1", "v1.1.0-rc.1", "v2.0.0"]
    (directory / "list").write_text("\n".join(versions))
    for version, mod in (
        ("v1.0.0", MOD),
        ("v1.0.1", MOD + b"retract v1.0.0 // It loses data.\n"),
        ("v1.1.0-rc.1", MOD),
    ):
        for end in ("info", "mod", "zip", "git"):
            (directory / f"{version}.{end}").write_bytes(mod if end == "mod" else b"")
    (directory / "v1.0.0.zip").write_bytes(ZIP)
    found = ProxyDirectory().lookup(tmp_path, PACKAGE)
    assert found is not None
    assert str(found.withdrawal) == "retracted (It loses data.)"


@pytest.mark.parametrize("info", OTHER_INFO)
def test_a_module_is_its_version_go_mod_and_zip_on_a_proxy(info: bytes) -> None:
    """R16: some tell when they fetched it."""
    answers = {
        **everything("https://proxy.example/p/"),
        f"https://proxy.example/p/{BASE}.info": info,
    }
    assert read(answers) == read(everything("https://proxy.example/p/"))
    another = {
        **answers,
        f"https://proxy.example/p/{BASE}.info": info.replace(b"v1.0.0", b"v1.0.1"),
    }
    assert read(another)["v1.0.0.info"] == "version:v1.0.1"


@pytest.mark.parametrize("status", [404, 410])
def test_what_is_not_there_yet_is_no_error(status: int) -> None:
    answers = everything("https://proxy.example/p/")
    assert read({**answers, f"https://proxy.example/p/{BASE}.info": status}) == {}
    some = read(
        {
            **answers,
            f"https://proxy.example/p/{BASE}.mod": status,
            f"https://proxy.example/p/{BASE}.zip": status,
        }
    )
    assert some.keys() == {"v1.0.0.info"}


def test_the_checksum_database_spares_the_download() -> None:
    address = "https://sum.golang.org/lookup/github.com/!acme/core@v1.0.0"
    zipped, mod = f"h1:{'z' * 43}=", f"h1:{'m' * 43}="
    text = (
        f"123\ngithub.com/Acme/core v1.0.0 {zipped}\n"
        f"github.com/Acme/core v1.0.0/go.mod {mod}\n\ngo.sum database tree\n1\nx\n"
    )
    found = read({f"{OFFICIAL}{BASE}.info": INFO, address: text.encode()}, OFFICIAL)
    assert (found["v1.0.0.zip"], found["v1.0.0.mod"]) == (zipped, mod)
    assert read({f"{OFFICIAL}{BASE}.info": INFO}, OFFICIAL).keys() == {"v1.0.0.info"}


@pytest.mark.parametrize(
    ("file", "answer", "error"),
    [
        (".info", 403, Denied),
        (".info", 500, Transient),
        (".info", b"<html>", Transient),
        (".info", b"[]", Transient),
        (".info", b"{}", Transient),
        (".info", b"\xff", Transient),
        (".zip", b"not a zip", Rejected),
        (".mod", 400, Rejected),
    ],
)
def test_doubt_is_never_absence(file: str, answer: bytes | int, error: type[PackageError]) -> None:
    """R16"""
    answers = {
        **everything("https://proxy.example/p/"),
        f"https://proxy.example/p/{BASE}{file}": answer,
    }
    with pytest.raises(error) as caught:
        read(answers)
    assert ("this is a web page" in str(caught.value)) is (answer == b"<html>")


def test_a_proxy_is_asked_safely_only() -> None:
    """R37"""
    with pytest.raises(ConfigError, match="go-proxy"):
        read({}, "http://proxy.example/")


def files() -> dict[str, bytes]:
    names = release.filenames("v1.0.0")
    return dict(zip(names, (b"bundle", INFO, MOD, ZIP), strict=True))


def test_a_directory_shows_a_version_once_it_is_listed(tmp_path: Path) -> None:
    layout = ProxyDirectory()
    assert layout.lookup(tmp_path, PACKAGE) is None
    for name, data in files().items():
        relative = layout.path_for(PACKAGE, name)
        assert relative is not None
        path = tmp_path / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    before = layout.lookup(tmp_path, PACKAGE)
    assert before is not None
    assert not before.complete
    assert "v1.0.0.zip" not in before.files
    for place, page in layout.pages(tmp_path, PACKAGE):
        (tmp_path / place).write_bytes(page)
    after = layout.lookup(tmp_path, PACKAGE)
    assert after is not None
    assert after.complete
    assert after.files["v1.0.0.zip"] == module_zip.hash_of_zip(ZIP)
    assert (tmp_path / "github.com/!acme/core/@v/list").read_text() == "v1.0.0\n"


@pytest.mark.parametrize("info", OTHER_INFO)
def test_a_module_is_its_version_go_mod_and_zip_in_a_directory(tmp_path: Path, info: bytes) -> None:
    """R16: files of the go command's module cache may lie there."""
    layout = ProxyDirectory()
    directory = tmp_path / "github.com/!acme/core/@v"
    directory.mkdir(parents=True)
    path = directory / "v1.0.0.info"
    digests = []
    for data in (INFO, info, info.replace(b"v1.0.0", b"v1.0.1"), b"<html>"):
        path.write_bytes(data)
        published = layout.lookup(tmp_path, PACKAGE)
        assert published is not None
        digests.append(published.files["v1.0.0.info"])
    assert digests == [
        "version:v1.0.0",
        "version:v1.0.0",
        "version:v1.0.1",
        f"sha256:{hashlib.sha256(b'<html>').hexdigest()}",
    ]


def test_the_list_holds_versions_that_are_whole_in_order(tmp_path: Path) -> None:
    layout = ProxyDirectory()
    directory = tmp_path / "github.com/!acme/core/@v"
    directory.mkdir(parents=True)
    for version in ("v1.10.0", "v1.9.0", "v1.0.0-!r!c1"):
        for end in (".info", ".mod", ".zip"):
            (directory / f"{version}{end}").touch()
    (directory / "v2.0.0.zip").touch()
    ((_, page),) = layout.pages(tmp_path, PACKAGE)
    assert page.split() == [b"v1.0.0-RC1", b"v1.9.0", b"v1.10.0"]


def test_only_files_of_a_version_have_a_place() -> None:
    assert ProxyDirectory().path_for(PACKAGE, "v1.0.1.zip") is None
