"""Which files of the user's own a release gets, and what is said of patterns that fit none."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest

import fakes
from releasekit.announce.extra_files import find_extra_files
from releasekit.announced import Status, Tag
from releasekit.config.tag_options import AnnounceOptions
from releasekit.errors import ConfigError, PathError
from releasekit.model import Action, PackageId, PlannedPackage

if TYPE_CHECKING:
    from pathlib import Path


def planned(*names: str, tag: str = "") -> list[PlannedPackage]:
    return [
        PlannedPackage(
            package=fakes.package(name),
            action=Action.PUBLISH,
            reason="",
            tag=Tag(name=tag or f"{name}-v1", status=Status.WANTED),
        )
        for name in names
    ]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("build/a.gz", "build/b.gz", "build/deep/c.gz", "build/.hidden.gz", "sbom.json"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path


def test_each_release_has_those_of_its_packages_once(root: Path) -> None:
    """R72."""
    patterns = {"fake:core": ("build/*.gz", "build/a.gz"), "fake:cli": ("**/c.gz",)}
    found = find_extra_files(
        root, patterns, planned("core", "cli"), {"core-v1", "cli-v1"}, is_part=False
    )
    names = {tag: [each.filename for each in files] for tag, files in found.items()}
    assert names == {"core-v1": ["a.gz", "b.gz"], "cli-v1": ["c.gz"]}
    assert found["core-v1"][0].sha256 == hashlib.sha256(b"build/a.gz").hexdigest()


def test_directories_are_not_followed_in_circles_and_hidden_files_are_named(root: Path) -> None:
    for name in ("one", "two"):
        (root / "build" / name).symlink_to(root / "build", target_is_directory=True)
    for pattern, more in (("./**/*.gz", set()), ("build/**", set()), ("build/.*", {".hidden.gz"})):
        wanted = ("**/*.gz", pattern)
        found = find_extra_files(root, wanted, planned("core"), {"core-v1"}, is_part=False)
        names = {each.filename for each in found["core-v1"]}
        assert names == {"a.gz", "b.gz", "c.gz"} | more, pattern


def test_a_list_is_refused_where_not_all_releases_are_seen(root: Path) -> None:
    with pytest.raises(ConfigError, match=r"there may be several releases$") as refused:
        find_extra_files(root, ("sbom.json",), planned("core"), {"core-v1"}, is_part=True)
    assert '{ "fake:core" = ["sbom.json"] }' in refused.value.hint


def test_the_only_release_takes_a_list(root: Path) -> None:
    packages = planned("core", "cli", tag="v1")
    found = find_extra_files(root, ("sbom.json",), packages, {"v1"}, is_part=False)
    assert [each.filename for each in found["v1"]] == ["sbom.json"]
    assert find_extra_files(root, (), planned("core", "cli"), {"core-v1"}, is_part=False) == {}


def test_of_a_release_that_is_there_nothing_is_looked_for(root: Path) -> None:
    assert find_extra_files(root, ("gone",), planned("core"), set(), is_part=False) == {}


@pytest.mark.parametrize(
    ("pattern", "kind", "said"),
    [
        (
            "*.zip",
            ConfigError,
            r'^releasekit.toml: \[announce\] extra-files: "\*.zip" fits no file$',
        ),
        ("build", ConfigError, '"build" fits no file'),
        ("out", PathError, "leads out of the workspace"),
        ("many/*", ConfigError, "more than 990 files for core-v1; a release takes no more"),
        ("link.json", ConfigError, r'"link.json": .*link.json: .*link'),
        ("**.gz", ConfigError, "is no pattern"),
        ("empty", ConfigError, "empty is empty, or has 2 GiB"),
        ("twice/**/a.gz", ConfigError, r"two files of one name, or one without: a\.gz$"),
        ("checksums.txt", ConfigError, "two files of one name, or one without: checksums.txt"),
        ("\u65e5\u672c", ConfigError, "cannot have two files of one name, or one without: $"),
    ],
)
def test_what_cannot_be_attached_is_named(
    root: Path, pattern: str, kind: type[Exception], said: str
) -> None:
    (root / "out").symlink_to("/etc/passwd")
    (root / "link.json").symlink_to(root / "sbom.json")
    for name in ("twice/a.gz", "twice/more/a.gz", "checksums.txt", "\u65e5\u672c"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    (root / "empty").touch()
    if pattern == "many/*":
        (root / "many").mkdir()
        for number in range(1_001):
            (root / "many" / str(number)).write_text("x")
    with pytest.raises(kind, match=said):
        find_extra_files(root, (pattern,), planned("core"), {"core-v1"}, is_part=False)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("extra-files", "a", "Write a list of strings"),
        ("extra-files", ["../a"], "relative to the root"),
        ("extra-files", ["/a"], "relative to the root"),
        ("extra-files", {"npm:a": ["a\\b"]}, "relative to the root"),
        ("extra-files", {"npm": ["a"]}, "'npm' is no package"),
        ("latest", "core", 'Write "highest", "none" or a package'),
        ("latest", 7, "Write a string"),
        ("draft", "yes", "Write draft = true, or false."),
    ],
)
def test_options_that_mean_nothing_say_what_to_write(key: str, value: object, said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        AnnounceOptions.from_table({key: value})
    assert said in raised.value.hint


def test_the_latest_may_be_a_package() -> None:
    made = AnnounceOptions.from_table({"latest": "maven:org.acme:core"})
    assert made.latest == PackageId("maven", "org.acme:core")
