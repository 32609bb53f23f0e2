from __future__ import annotations

import asyncio
import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest

from javascript import package, tarball
from releasekit.ecosystems.directory import DirectoryRegistry
from releasekit.ecosystems.npm.directory_layout import PackumentDirectory
from releasekit.errors import Rejected

if TYPE_CHECKING:
    from pathlib import Path


URL = "https://x/npm/"


def upload(
    root: Path, version: str, *, tag: str = "", text: str = "", url: str = URL, **manifest: object
) -> None:
    target = package(version=version)
    files = {"README.md": text, "index.js": text}
    artifact = tarball(root / "built" / version / (text or "-"), target, files, **manifest)
    registry = DirectoryRegistry(root / "www", PackumentDirectory(tag=tag, url=url))
    asyncio.run(registry.upload(target, [artifact]))


def packument(root: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((root / "www" / "@acme" / "core").read_text())
    return found


def test_a_packument_grows_and_its_tags_go_forward(tmp_path: Path) -> None:
    for version in ("1.4.0", "2.0.0-beta.1", "2.0.0", "1.4.1", "1.10.0"):
        upload(tmp_path, version, text=version)
    page = packument(tmp_path)
    assert list(page["versions"]) == ["1.4.0", "1.4.1", "1.10.0", "2.0.0-beta.1", "2.0.0"]
    assert page["dist-tags"] == {"latest": "2.0.0", "beta": "2.0.0-beta.1", "release-1.x": "1.10.0"}
    entry = page["versions"]["1.4.1"]
    assert entry["dist"]["tarball"] == "https://x/npm/-/@acme/core/acme-core-1.4.1.tgz"
    assert (tmp_path / "www" / "-/@acme/core/acme-core-1.4.1.tgz").is_file()
    assert "readme" not in entry


def test_an_address_that_changes_counts_for_earlier_versions_too(tmp_path: Path) -> None:
    upload(tmp_path, "1.0.0")
    upload(tmp_path, "1.1.0", url="https://y/any/prefix")
    assert {each["dist"]["tarball"] for each in packument(tmp_path)["versions"].values()} == {
        f"https://y/any/prefix/-/@acme/core/acme-core-{version}.tgz"
        for version in ("1.0.0", "1.1.0")
    }


def test_the_first_version_is_latest_whatever_it_is(tmp_path: Path) -> None:
    upload(tmp_path, "1.0.0-rc.1")
    assert packument(tmp_path)["dist-tags"] == {"rc": "1.0.0-rc.1", "latest": "1.0.0-rc.1"}
    upload(tmp_path, "1.0.0")
    assert packument(tmp_path)["dist-tags"]["latest"] == "1.0.0"


def test_a_tag_that_is_given_is_taken(tmp_path: Path) -> None:
    upload(tmp_path, "1.0.0")
    upload(tmp_path, "1.1.0", tag="canary")
    upload(tmp_path, "1.2.0", publishConfig={"tag": "own"})
    assert packument(tmp_path)["dist-tags"] == {
        "latest": "1.0.0", "canary": "1.1.0", "own": "1.2.0",
    }  # fmt: skip


def test_the_tag_of_the_settings_is_weaker_than_that_of_the_package(tmp_path: Path) -> None:
    """R66: as of npm's own `tag`."""
    for version, config in (("1.0.0", {}), ("1.1.0", {"tag": "own"})):
        target = package(version=version)
        artifact = tarball(tmp_path / version, target, publishConfig=config)
        layout = PackumentDirectory(tag="", url=URL)
        layout.usual = {target.id.name: {"tag": "next"}}
        asyncio.run(DirectoryRegistry(tmp_path / "www", layout).upload(target, [artifact]))
    assert packument(tmp_path)["dist-tags"] == {
        "next": "1.0.0", "latest": "1.0.0", "own": "1.1.0",
    }  # fmt: skip


def test_an_upload_again_moves_no_tag(tmp_path: Path) -> None:
    upload(tmp_path, "1.0.0")
    upload(tmp_path, "2.0.0")
    before = packument(tmp_path)
    upload(tmp_path, "1.0.0", text="other bytes")
    assert packument(tmp_path) == before


def test_what_was_uploaded_is_found(tmp_path: Path) -> None:
    upload(tmp_path, "1.0.0")
    layout = PackumentDirectory(tag="", url="https://x/")
    found = layout.lookup(tmp_path / "www", package())
    assert found is not None
    (artifact,) = (tmp_path / "www" / "-" / "@acme" / "core").iterdir()
    digest = hashlib.sha512(artifact.read_bytes()).hexdigest()
    assert found.files == {"acme-core-1.0.0.tgz": f"sha512:{digest}"}
    assert found.url.startswith("file://")


@pytest.mark.parametrize(
    ("said", "expected"),
    [("", None), (False, None), ("use\x1b x", r"deprecated (use\x1b x)"), (True, "deprecated")],
)
def test_a_deprecated_version_is_there(tmp_path: Path, said: object, expected: str | None) -> None:
    """R65: an empty text takes a deprecation back."""
    upload(tmp_path, "1.0.0")
    page = packument(tmp_path)
    page["versions"]["1.0.0"]["deprecated"] = said
    (tmp_path / "www" / "@acme" / "core").write_text(json.dumps(page))
    found = PackumentDirectory(tag="", url=URL).lookup(tmp_path / "www", package(version="1.0.0"))
    assert found is not None
    assert (found.withdrawal and str(found.withdrawal)) == expected
    upload(tmp_path, "1.0.1")
    assert packument(tmp_path)["versions"]["1.0.0"]["deprecated"] == said


def test_a_damaged_packument_is_no_absence(tmp_path: Path) -> None:
    layout = PackumentDirectory(tag="", url="https://x/")
    registry = DirectoryRegistry(tmp_path / "www", layout)
    assert asyncio.run(registry.lookup(package())) is None
    page = tmp_path / "www" / "@acme" / "core"
    page.parent.mkdir(parents=True)
    for text in ("{", "[]"):
        page.write_text(text)
        with pytest.raises(Rejected, match="cannot be read"):
            asyncio.run(registry.lookup(package()))
    page.write_text('{"versions": []}')
    assert asyncio.run(registry.lookup(package())) is None


@pytest.mark.parametrize(
    ("name", "file"), [("@acme/core", "acme-core-1.0.1.tgz"), ("-", "--1.0.0.tgz")]
)
def test_only_its_own_tarball_has_a_place(name: str, file: str) -> None:
    layout = PackumentDirectory(tag="", url="https://x/")
    assert layout.path_for(package(name), file) is None
