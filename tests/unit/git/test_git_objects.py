from __future__ import annotations

import hashlib
import zlib
from typing import TYPE_CHECKING

import pytest

from releasekit.git import objects
from releasekit.git.objects import Object, Signature, TagBundle, TreeEntry
from workspaces import git

if TYPE_CHECKING:
    from pathlib import Path

BY = Signature("Änne", "a@example.invalid", 1_700_000_000)


def release(parent: str = "1" * 40) -> TagBundle:
    blob = Object("blob", b"module a.b/c\n" * 100)
    root = objects.make_tree({"go.mod": TreeEntry(objects.FILE_MODE, blob.id)})
    commit = objects.make_commit(root.id, parent, BY, "Release")
    return TagBundle(
        "v1.0.0", parent, (blob, root, commit, objects.make_tag("v1.0.0", commit.id, BY, "m"))
    )


def test_git_takes_what_is_made(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    (tmp_path / "a").mkdir()
    for name in ("a/x", "a.b", "a-b"):
        (tmp_path / name).write_text(name)
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "--quiet", "--message", "Start")
    listing = git(tmp_path, "ls-tree", "-z", "HEAD")
    entries = {}
    for line in filter(None, listing.split("\0")):
        facts, name = line.split("\t")
        mode, _, oid = facts.split(" ")
        entries[name] = TreeEntry(mode.lstrip("0"), oid)
    assert objects.make_tree(entries).id == git(tmp_path, "rev-parse", "HEAD^{tree}").strip()

    bundle = release(git(tmp_path, "rev-parse", "HEAD").strip())
    path = tmp_path / ".git" / "v1.bundle"
    path.write_bytes(bundle.to_bytes())
    git(tmp_path, "fetch", "--quiet", str(path), "refs/tags/v1.0.0:refs/tags/v1.0.0")
    assert git(tmp_path, "rev-parse", "v1.0.0").strip() == bundle.tag
    git(tmp_path, "fsck", "--strict")
    shown = git(tmp_path, "log", "-1", "--format=%an %ct %s", "v1.0.0")
    assert shown == "Änne 1700000000 Release\n"


def test_a_bundle_is_read_back() -> None:
    bundle = release()
    assert TagBundle.from_bytes(bundle.to_bytes()) == bundle
    assert bundle.to_bytes() == release().to_bytes()


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data.replace(b"# v2", b"# v3"),
        lambda data: data[:-1],
        lambda data: data.replace(release().tag.encode(), b"2" * 40),
    ],
)
def test_a_damaged_bundle_is_a_value_error(damage: object) -> None:
    assert callable(damage)
    with pytest.raises(ValueError, match=r"bundle|pack|tag"):
        TagBundle.from_bytes(damage(release().to_bytes()))


def packed(count: int, *objects: bytes) -> bytes:
    """A bundle whose pack says that it holds so many, and holds these."""
    body = b"PACK\0\0\0\2" + count.to_bytes(4, "big") + b"".join(objects)
    head = f"# v2 git bundle\n-{'1' * 40} \n{'2' * 40} refs/tags/v1\n\n"
    return head.encode() + body + hashlib.sha1(body, usedforsecurity=False).digest()


def packed_object(size: int) -> bytes:
    return b"\x30" + zlib.compress(bytes(size))


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (packed(1, packed_object(1001)), "more than 1000 bytes"),
        (packed(3, packed_object(400), packed_object(400), packed_object(400)), "more than 1000"),
        (packed(11, *[packed_object(0)] * 11), "more than 10 objects"),
        (packed(0), "no tag"),
        (packed(1), "damaged"),
        (packed(1, b"\x00" + zlib.compress(b"")), "damaged"),
        (packed(1, b"\x30" + b"no zlib"), "damaged"),
        (packed(1, packed_object(900)[:-6]), "damaged"),
        (packed(2, packed_object(500), packed_object(500)), "its tag is"),
    ],
)
def test_a_bundle_that_stands_for_much_is_refused(
    data: bytes, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R53: a build may leave one where an earlier run has built."""
    monkeypatch.setattr(objects, "MAX_BUNDLE_BYTES", 1000)
    monkeypatch.setattr(objects, "_MAX_OBJECTS", 10)
    with pytest.raises(ValueError, match=says):
        TagBundle.from_bytes(data)


def test_an_object_may_be_longer_than_a_piece() -> None:
    blob = Object("blob", hashlib.shake_128(b"x").digest(200_000))
    bundle = TagBundle("v1", "1" * 40, (blob, *release().objects))
    assert TagBundle.from_bytes(bundle.to_bytes()) == bundle


def test_git_finds_the_objects_of_a_pack(tmp_path: Path) -> None:
    """Also one that is there twice, and as many as two files hold in any order of their names."""
    blobs = [Object("blob", f"{number}\n".encode() * number) for number in range(300)]
    git(tmp_path, "init", "--quiet", "--bare")
    objects.write_pack([*blobs, blobs[7]], tmp_path / "objects")
    git(tmp_path, "fsck", "--strict")
    assert git(tmp_path, "cat-file", "blob", blobs[211].id) == "211\n" * 211
    listed = git(tmp_path, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)")
    assert listed.split() == sorted(blob.id for blob in blobs)
    assert len(list((tmp_path / "objects" / "pack").iterdir())) == 2
