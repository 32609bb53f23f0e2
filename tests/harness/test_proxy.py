"""What the proxy before a real server carries, and where it cuts off."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from harness.git_server import git_server
from harness.http_server import HangUp
from harness.proxy import serving_proxy
from integration.servers import PASSWORD, USERNAME
from workspaces import git

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from harness.proxy import Proxy

PUSH = "POST /mono.git/git-receive-pack"


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[Proxy]:
    """Before git's own server, with an empty repository."""
    bare = tmp_path / "served/mono.git"
    subprocess.run(["git", "init", "--quiet", "--bare", bare], check=True)
    with git_server(bare.parent) as origin, serving_proxy(origin) as proxy:
        yield proxy


@pytest.fixture
def root(tmp_path: Path, proxy: Proxy) -> Path:
    root = tmp_path / "a clone"
    root.mkdir()
    git(root, "init", "--quiet", "--initial-branch=main")
    git(root, "commit", "--quiet", "--allow-empty", "--message", "chore: start")
    login = proxy.origin.replace("://", f"://{USERNAME}:{PASSWORD}@")
    git(root, "remote", "add", "origin", f"{login}/mono.git")
    return root


def list_branches(tmp_path: Path) -> str:
    return git(tmp_path / "served/mono.git", "for-each-ref", "--format=%(refname)").strip()


def test_long_pushes_and_many_wishes_are_carried(proxy: Proxy, root: Path, tmp_path: Path) -> None:
    """The first comes in chunks, the others compressed.

    https://git-scm.com/docs/git-config#Documentation/git-config.txt-httppostBuffer
    """
    (root / "long").write_bytes(os.urandom(3 << 20))
    git(root, "add", "--all")
    seen: list[tuple[str, int, int]] = []
    proxy.carried = lambda path, body, status: seen.append((path, len(body), status))
    for number in range(60):
        git(root, "commit", "--quiet", "--allow-empty", "--message", f"chore: {number}")
        git(root, "tag", f"v{number}")
    git(root, "push", "--quiet", "--tags", "origin", "main")
    url = git(root, "remote", "get-url", "origin").strip()
    git(tmp_path, "clone", "--quiet", "--branch", "main", url, "another")
    assert (tmp_path / "another/long").read_bytes() == (root / "long").read_bytes()
    assert [status for path, size, status in seen if size > 3 << 20] == [200]
    assert {status for path, _, status in seen if path == "/mono.git/git-upload-pack"} == {200}


@pytest.mark.parametrize("moment", ["before", "after"])
def test_it_hangs_up_before_anything_happens_or_once_it_has(
    proxy: Proxy, root: Path, tmp_path: Path, moment: str
) -> None:
    def cut(when: str, what: str) -> None:
        if (when, what) == (moment, PUSH):
            raise HangUp

    proxy.around = cut
    with pytest.raises(subprocess.CalledProcessError):
        git(root, "push", "--quiet", "origin", "main")
    assert list_branches(tmp_path) == ("refs/heads/main" if moment == "after" else "")
    proxy.around = lambda when, what: None
    git(root, "push", "--quiet", "origin", "main")


def test_answers_of_the_api_are_made_up(proxy: Proxy, root: Path) -> None:
    proxy.failing.append((503, {"message": "later"}, {}))
    git(root, "push", "--quiet", "origin", "main")
    assert len(proxy.failing) == 1
