from __future__ import annotations

import asyncio
import json
import os
from typing import TYPE_CHECKING, TypeVar

import pytest

import distributions
from releasekit.ecosystems import directory
from releasekit.ecosystems.directory import DirectoryRegistry
from releasekit.ecosystems.pypi.directory_layout import SimpleDirectory
from releasekit.errors import MissingCredentials, PackageError, Rejected, Transient
from releasekit.host import durable
from releasekit.host.flock import try_lock
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from pathlib import Path

    from releasekit.model import Artifact, Published

T = TypeVar("T")
PACKAGE = distributions.package()


def run(main: Coroutine[object, object, T]) -> T:
    return asyncio.run(main)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "registry" / "pypi"


@pytest.fixture
def registry(root: Path) -> DirectoryRegistry:
    return DirectoryRegistry(root, SimpleDirectory())


def shown(registry: DirectoryRegistry) -> dict[str, str]:
    published: Published | None = run(registry.lookup(PACKAGE))
    return {} if published is None else dict(published.files)


def expected(*artifacts: Artifact) -> dict[str, str]:
    return {artifact.filename: f"sha256:{artifact.sha256}" for artifact in artifacts}


def test_a_lookup_touches_nothing(registry: DirectoryRegistry, root: Path) -> None:
    registry.check_credentials()
    assert registry.url == f"dir:{root}"
    assert run(registry.lookup(PACKAGE)) is None
    assert not root.exists()


def test_one_that_cannot_be_written_is_told_before_anything_is_built(
    registry: DirectoryRegistry, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor one that cannot be made; root may write everywhere but to a read-only disk."""
    closed = {tmp_path}
    monkeypatch.setattr(os, "access", lambda path, _mode: path not in closed)
    with pytest.raises(MissingCredentials, match=f"may not write to {tmp_path}$") as caught:
        registry.check_credentials()
    assert str(caught.value).startswith(f"dir:{root} cannot be written")
    assert caught.value.problem is Problem.DIRECTORY_CLOSED
    root.mkdir(parents=True)
    registry.check_credentials()


def test_files_and_pages_are_where_a_web_server_expects_them(
    registry: DirectoryRegistry, root: Path, tmp_path: Path
) -> None:
    artifacts = distributions.both(tmp_path / "dist", PACKAGE)
    run(registry.upload(PACKAGE, artifacts))
    found = sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())
    assert found == [
        ".lock",
        "files/acme-core/acme_core-1.0.0-py3-none-any.whl",
        "files/acme-core/acme_core-1.0.0-py3-none-any.whl.metadata",
        "files/acme-core/acme_core-1.0.0.tar.gz",
        "simple/acme-core/index.html",
        "simple/acme-core/index.json",
        "simple/index.html",
        "simple/index.json",
    ]
    assert shown(registry) == expected(*artifacts)
    for artifact in artifacts:
        copy = root / "files" / "acme-core" / artifact.filename
        assert copy.read_bytes() == artifact.path.read_bytes()


def test_pages_say_what_installers_ask_for(
    registry: DirectoryRegistry, root: Path, tmp_path: Path
) -> None:
    """PEP 503, 658 and 691."""
    run(registry.upload(PACKAGE, distributions.both(tmp_path / "dist", PACKAGE)))
    page = json.loads((root / "simple/acme-core/index.json").read_bytes())
    assert (page["meta"], page["name"], page["versions"]) == (
        {"api-version": "1.3"},
        "acme-core",
        ["1.0.0"],
    )
    wheel, source = page["files"]
    assert wheel["url"] == "../../files/acme-core/acme_core-1.0.0-py3-none-any.whl"
    assert wheel["requires-python"] == source["requires-python"] == ">=3.9"
    assert set(wheel) - set(source) == {"core-metadata"}
    text = (root / "simple/acme-core/index.html").read_text()
    assert f'href="{wheel["url"]}#sha256={wheel["hashes"]["sha256"]}"' in text
    assert 'data-requires-python="&gt;=3.9"' in text
    assert f'data-core-metadata="sha256={wheel["core-metadata"]["sha256"]}"' in text
    assert json.loads((root / "simple/index.json").read_bytes())["projects"] == [
        {"name": "acme-core"}
    ]
    assert '<a href="acme-core/">acme-core</a>' in (root / "simple/index.html").read_text()


def test_same_bytes_again_write_nothing(
    registry: DirectoryRegistry, root: Path, tmp_path: Path
) -> None:
    artifacts = distributions.both(tmp_path / "dist", PACKAGE)
    run(registry.upload(PACKAGE, artifacts))
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*") if path.is_file()}
    run(registry.upload(PACKAGE, artifacts))
    assert before == {path: path.stat().st_mtime_ns for path in root.rglob("*") if path.is_file()}


def test_other_bytes_are_not_stored(registry: DirectoryRegistry, tmp_path: Path) -> None:
    """R17"""
    first = distributions.both(tmp_path / "first", PACKAGE)
    second = distributions.both(tmp_path / "second", PACKAGE, text="A = 2\n")
    run(registry.upload(PACKAGE, first))
    run(registry.upload(PACKAGE, second))
    assert shown(registry) == expected(*first)


def test_versions_gather_on_one_page(registry: DirectoryRegistry, tmp_path: Path) -> None:
    newer = distributions.package(version="1.1.0")
    run(registry.upload(PACKAGE, distributions.both(tmp_path / "1", PACKAGE)))
    run(registry.upload(newer, distributions.both(tmp_path / "2", newer)))
    assert len(shown(registry)) == 2
    published = run(registry.lookup(newer))
    assert published is not None
    assert set(published.files) == {"acme_core-1.1.0.tar.gz", "acme_core-1.1.0-py3-none-any.whl"}
    assert published.url.endswith("/simple/acme-core/")


def test_what_changed_since_the_build_is_not_stored(
    registry: DirectoryRegistry, root: Path, tmp_path: Path
) -> None:
    """R18"""
    source, wheel = distributions.both(tmp_path / "dist", PACKAGE)
    wheel.path.write_bytes(wheel.path.read_bytes()[:-1])
    with pytest.raises(PackageError, match="is not what was built"):
        run(registry.upload(PACKAGE, [source, wheel]))
    assert shown(registry) == {}
    assert not [path for path in root.rglob("*.whl*") if path.is_file()]


@pytest.mark.parametrize("filename", ["other-1.0.0.tar.gz", "acme_core-2.0.tar.gz", "notes.txt"])
def test_a_file_of_something_else_is_refused(
    registry: DirectoryRegistry, tmp_path: Path, filename: str
) -> None:
    path = tmp_path / filename
    path.write_bytes(b"x")
    with pytest.raises(PackageError, match=f"{filename} is not the name of one of its files"):
        run(registry.upload(PACKAGE, [distributions.artifact(path)]))


class Killed(BaseException):
    pass


@pytest.mark.parametrize("step", range(9))
def test_a_kill_at_any_write_is_completed_by_the_next_upload(
    registry: DirectoryRegistry,
    root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    step: int,
) -> None:
    """R21: nothing shows before it is whole, the pages come from the files, and nothing else is
    left.
    """
    artifacts = distributions.both(tmp_path / "dist", PACKAGE)
    calls = 0
    replace = durable.replace

    def replace_or_die(path: Path, data: bytes, *, temporary: Path) -> None:
        nonlocal calls
        if calls == step:
            temporary.write_bytes(data[:10])
            raise Killed
        calls += 1
        replace(path, data, temporary=temporary)

    with monkeypatch.context() as patch:
        patch.setattr(durable, "replace", replace_or_die)
        try:
            run(registry.upload(PACKAGE, artifacts))
        except Killed:
            assert shown(registry) in ({}, expected(*artifacts))
    if shown(registry) != expected(*artifacts):
        run(registry.upload(PACKAGE, artifacts))
    assert shown(registry) == expected(*artifacts)
    assert list(root.rglob("*.tmp")) == []
    projects = json.loads((root / "simple/index.json").read_bytes())["projects"]
    assert projects == [{"name": PACKAGE.id.name}]


def test_a_damaged_page_is_written_anew(
    registry: DirectoryRegistry, root: Path, tmp_path: Path
) -> None:
    artifacts = distributions.both(tmp_path / "dist", PACKAGE)
    run(registry.upload(PACKAGE, artifacts))
    for damage in ("", "[]", '{"files": [{}]}', '{"files": [{"hashes": {"sha256": 1}}]}'):
        (root / "simple/acme-core/index.json").write_text(damage)
        (root / "simple/acme-core/index.html").write_text("<a href='broken")
        run(registry.upload(PACKAGE, artifacts))
        assert shown(registry) == expected(*artifacts)


def test_a_page_without_digests_is_no_verdict(
    registry: DirectoryRegistry, root: Path, tmp_path: Path
) -> None:
    """R16"""
    run(registry.upload(PACKAGE, distributions.both(tmp_path / "dist", PACKAGE)))
    page = root / "simple/acme-core/index.html"
    page.write_text('<a href="acme_core-1.0.0.tar.gz">acme_core-1.0.0.tar.gz</a>')
    with pytest.raises(Rejected, match="without a digest"):
        run(registry.lookup(PACKAGE))


def test_files_that_somebody_else_put_there_are_listed_as_they_are(
    registry: DirectoryRegistry, root: Path, tmp_path: Path
) -> None:
    files = root / "files" / "acme-core"
    files.mkdir(parents=True)
    (files / "acme_core-0.9.tar.gz").write_bytes(b"no archive")
    (files / "README").write_bytes(b"hello")
    bare = distributions.package(version="0.8")
    distributions.sdist(files, bare, info=b"Metadata-Version: 2.1")
    run(registry.upload(PACKAGE, distributions.both(tmp_path / "dist", PACKAGE)))
    page = json.loads((root / "simple/acme-core/index.json").read_bytes())
    assert page["versions"] == ["0.8", "0.9", "1.0.0"]
    assert len(page["files"]) == 4


def test_no_page_is_compared_through_a_link(
    registry: DirectoryRegistry, root: Path, tmp_path: Path
) -> None:
    """R37: the same bytes at the end of a link are not the page."""
    artifacts = distributions.both(tmp_path / "dist", PACKAGE)
    run(registry.upload(PACKAGE, artifacts))
    page = root / "simple" / "index.html"
    page.rename(tmp_path / "elsewhere")
    page.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Rejected, match="cannot be written"):
        run(registry.upload(PACKAGE, artifacts))


LINKS = (
    "files",
    "files/acme-core",
    "files/acme-core/acme_core-1.0.0.tar.gz",
    "simple",
    "simple/acme-core",
    "simple/acme-core/index.html",
    "simple/acme-core/index.json",
    "simple/index.json",
    ".lock",
)


@pytest.mark.parametrize("name", LINKS)
@pytest.mark.parametrize("loose", [False, True])
def test_no_link_in_it_is_followed(
    registry: DirectoryRegistry, root: Path, tmp_path: Path, name: str, loose: bool
) -> None:
    """R52"""
    artifacts = distributions.both(tmp_path / "dist", PACKAGE)
    run(registry.upload(PACKAGE, artifacts))
    link, elsewhere = root / name, tmp_path / "elsewhere"
    link.rename(elsewhere)
    link.symlink_to(tmp_path / "missing" if loose else elsewhere)
    before = tree(elsewhere)
    with pytest.raises(Rejected, match="is a symbolic link"):
        run(registry.upload(PACKAGE, artifacts))
    if name in {"simple", "simple/acme-core", "simple/acme-core/index.html"}:
        with pytest.raises(Rejected, match="is a symbolic link"):
            run(registry.lookup(PACKAGE))
    assert tree(elsewhere) == before
    assert not (tmp_path / "missing").exists()


def tree(root: Path) -> dict[str, bytes]:
    paths = sorted([root, *root.rglob("*")])
    return {str(path): path.read_bytes() for path in paths if path.is_file()}


def test_a_link_beside_the_projects_is_no_project(
    registry: DirectoryRegistry, root: Path, tmp_path: Path
) -> None:
    """R52"""
    (root / "simple").mkdir(parents=True)
    (root / "simple" / "planted").symlink_to(tmp_path)
    run(registry.upload(PACKAGE, distributions.both(tmp_path / "dist", PACKAGE)))
    assert "planted" not in (root / "simple" / "index.html").read_text()


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "registry").write_text("not a directory")
    registry = DirectoryRegistry(tmp_path / "registry", SimpleDirectory())
    with pytest.raises(Rejected, match=r"dir:.*registry cannot be written \(.*registry.*: "):
        run(registry.upload(PACKAGE, []))
    with pytest.raises(Rejected, match=r"cannot be read \([^\[]*: Not a directory\)"):
        run(registry.lookup(PACKAGE))


def test_a_lock_that_is_never_given_back_is_not_waited_for_for_ever(
    registry: DirectoryRegistry, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root.mkdir(parents=True)
    monkeypatch.setattr(directory, "PATIENCE_S", 0.02)
    with durable.opened(root / ".lock", os.O_RDWR | os.O_CREAT) as descriptor:
        assert try_lock(descriptor)
        with pytest.raises(Transient, match="another process has it locked"):
            run(registry.upload(PACKAGE, []))


@pytest.mark.parametrize("form", ["index.json", "index.html"])
def test_what_is_yanked_in_either_form_stays_so(
    registry: DirectoryRegistry, root: Path, tmp_path: Path, form: str
) -> None:
    """R65: also once another version is published there."""
    run(registry.upload(PACKAGE, [distributions.sdist(tmp_path, PACKAGE)]))
    page = root / "simple" / PACKAGE.id.name / form
    text = page.read_text()
    marked = text.replace('"hashes"', '"yanked": "bad",\n"hashes"')
    if form == "index.html":
        marked = text.replace("<a ", '<a data-yanked="bad" ')
    assert marked != text
    page.write_text(marked)
    for name in ("index.json", "index.html"):
        run(registry.upload(PACKAGE, []))
        assert "bad" in page.with_name(name).read_text()
    found = run(registry.lookup(PACKAGE))
    assert found is not None
    assert str(found.withdrawal) == "yanked (bad)"
