"""Remotes and histories that stand in the way of tags and releases, or pretend to."""

from __future__ import annotations

import os
import subprocess
from hashlib import sha256
from typing import TYPE_CHECKING

import pytest

from effort import SEARCHING
from forge.forges import GITHUB, GITLAB
from forge.test_whole_runs import PACKAGES, TAGS, Place, case, place, statuses
from releasekit.announce.forge import Upload
from releasekit.announce.releases import with_unique_names
from workspaces import git

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from forge.forges import ForgeCase

__all__ = ["case", "place"]


def test_a_tag_with_a_line_separator_in_its_name_is_no_other_tag(place: Place) -> None:
    for end in ("\u2028x", "\x85x"):
        git(place.root, "tag", f"acme-core-v1.0.0{end}")
        git(place.root, "push", "--quiet", "origin", f"acme-core-v1.0.0{end}")
    ended = place.run()
    assert ended.code == 0, ended.err
    assert ended.row("acme-core")["tag"]["status"] == "made"
    assert set(place.world.tags) > TAGS
    said = place.program.run("notes", "acme-core", "1.0.0", f"--working-directory={place.root}")
    assert said.code == 0, said.err


def test_a_shared_tag_on_another_commit_is_foreign_to_who_was_not_built_there(place: Place) -> None:
    place.toml('[tag]\nname = "v{version}"\n')
    assert place.run("--packages=acme-core").code == 0
    git(place.root, "tag", "v1.0.0")
    git(place.root, "push", "--quiet", "origin", "v1.0.0")
    place.commit("Go on")
    for expected in ("made", "there"):
        ended = place.run()
        assert statuses(ended, "tag") == {"acme-core": "there", "acme-cli": "foreign"}
        assert statuses(ended, "announcement") == {"acme-core": expected, "acme-cli": "owed"}
        assert (ended.code, ended.results["result"]) == (1, "partial")


@pytest.mark.parametrize(
    ("case", "another"),
    [(GITHUB, "remote"), (GITHUB, "URL for pushes"), (GITLAB, "remote")],
    ids=str,
)
def test_no_forge_is_made_to_make_a_tag(
    place: Place, tmp_path: Path, case: ForgeCase, another: str
) -> None:
    """Where tags are pushed elsewhere, it would make them, of the tip of its default branch."""
    git(tmp_path, "init", "--bare", "--quiet", "mirror.git")
    if another == "remote":
        git(place.root, "remote", "add", "mirror", str(tmp_path / "mirror.git"))
        place.toml('[tag]\nremote = "mirror"\n')
    else:
        git(place.root, "remote", "set-url", "--push", "origin", str(tmp_path / "mirror.git"))
    ended = place.run()
    assert statuses(ended, "tag") == dict.fromkeys(PACKAGES, "made")
    assert statuses(ended, "announcement") == dict.fromkeys(PACKAGES, "owed")
    assert f"{case.name} has no tag" in ended.row("acme-cli")["announcement"]["note"]
    assert (ended.code, place.world.tags, place.world.releases) == (1, {}, [])


@pytest.mark.parametrize(
    "who", ["a\x01b <e@example.com> 1700000000 +0000", " <> -5 +0000"], ids=["control", "date"]
)
def test_whoever_has_committed_there_are_tags(place: Place, who: str) -> None:
    raw = git(place.root, "cat-file", "commit", "HEAD")
    lines = [f"committer {who}" if each[:10] == "committer " else each for each in raw.split("\n")]
    oid = subprocess.run(
        ["git", "hash-object", "-t", "commit", "-w", "--stdin", "--literally"],
        cwd=place.root,
        input="\n".join(lines).encode(),
        capture_output=True,
        check=True,
    ).stdout
    git(place.root, "reset", "--quiet", "--hard", oid.decode().strip())
    git(place.root, "push", "--quiet", "--force", "origin", "HEAD:main")
    ended = place.run()
    assert (ended.code, set(place.world.tags)) == (0, TAGS), ended.out


def test_files_of_one_name_in_one_release_are_all_there() -> None:
    one, two, three = (
        Upload(name=name, content=content, sha256=sha256(content).hexdigest(), size=1)
        for name, content in (("core.jar", b"1"), ("core.jar", b"2"), ("other.jar", b"3"))
    )
    names = [each.name for each in with_unique_names([one, two, three, three])]
    assert names == [f"{one.sha256[:8]}-core.jar", f"{two.sha256[:8]}-core.jar", "other.jar"]


def test_a_job_for_a_part_does_not_release_what_others_share(place: Place) -> None:
    """As jobs of a matrix do, each with packages of its own."""
    place.toml('[tag]\nname = "v{version}"\n')
    for part in ("--packages=acme-core", "--ecosystem=pypi"):
        ended = place.run("--tag", "--announce", part)
        assert ended.code == 2
        assert "one job that sees the whole workspace" in ended.err
    assert (place.world.tags, place.world.releases) == ({}, [])
    place.toml('ecosystem = ["pypi"]\n[tag]\nname = "v{version}"\n')
    assert place.run("--tag", "--announce").code == 0
    assert set(place.world.tags) == {"v1.0.0"}


def another(path: Path) -> None:
    """As long as before, so that only its bytes tell."""
    path.write_bytes(bytes(path.stat().st_size))


def a_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def a_link(path: Path) -> None:
    """To a file of the same length, which nobody else may read."""
    secret = path.parents[6] / f"secret of {path.name}"
    secret.write_bytes(b"s" * path.stat().st_size)
    path.unlink()
    path.symlink_to(secret)


def a_link_on_the_way(path: Path) -> None:
    """The whole directory has another file of that name."""
    aside = path.parent.with_name("aside")
    if not aside.exists():
        path.parent.rename(aside)
        path.parent.symlink_to(aside)
    (aside / path.name).write_bytes(bytes((aside / path.name).stat().st_size))


def a_link_without_end(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def a_sparse_file(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(50 * 1024**3)


# One for each package: what is wrong with one keeps back no other.
@pytest.mark.parametrize(
    "changes",
    [(another, a_fifo), (a_link, a_link_on_the_way), (a_link_without_end, a_sparse_file)],
    ids=lambda each: " and ".join(change.__name__ for change in each),
)
@pytest.mark.parametrize(
    ("case", "digests"),
    [(GITHUB, False), *([(GITHUB, True), (GITLAB, True)] if SEARCHING else [])],
    ids=str,
)
def test_only_the_bytes_that_were_built_are_attached(
    place: Place, changes: tuple[Callable[[Path], None], ...], digests: bool
) -> None:
    """R53: whatever a process that a build has left behind does between the upload of a package and
    its release; in a search, whether or not the forge says what it has got.
    """
    place.world.digests = digests
    place.toml('[announce]\nassets = ["checksums", "files"]\n')
    built: dict[str, bytes] = {}

    def swap(moment: str, what: str) -> None:
        """Once, when the first release is made."""
        if built or moment != "before" or what.startswith("GET ") or " /api/" not in what:
            return
        for path in sorted((place.root / ".releasekit" / "dist").rglob("*-1.0.0*")):
            if path.suffix in {".whl", ".gz"} and path.is_file():
                built[path.name] = path.read_bytes()
                changes[path.name.startswith("acme_core")](path)

    place.world.around = swap
    ended = place.program.run(
        "publish",
        place.root,
        f"--pypi-registry=dir:{place.root.parent / 'registry'}",
        *("--max-retries=0", "--tag", "--announce"),
        timeout_s=120,
    )
    assert len(built) == 4
    assert set(ended.outcomes.values()) == {"published"}, ended.err
    assert "Traceback" not in ended.err
    for attached in place.world.contents.values():
        assert attached in built.values() or attached.startswith(b"SHA256 (")
    assert ended.code == 1
    assert set(statuses(ended, "announcement").values()) == {"owed"}
