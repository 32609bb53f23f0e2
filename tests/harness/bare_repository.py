"""The bare repository behind a double, and what a forge does in it by itself."""

from __future__ import annotations

import os
import subprocess
import tempfile
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from pathlib import Path

NO_COMMIT = "0" * 40
_WHO = ("AUTHOR", "COMMITTER")
_WHAT = ("NAME", "EMAIL")


class BareRepository:
    """`committer` makes the commits of the forge, and `owner` those of its buttons."""

    bare: Path
    committer: ClassVar[str]
    owner: ClassVar[str]

    def git(self, *arguments: str, stdin: bytes = b"", index: str = "", **more: str) -> str:
        """`more` are variables of its environment."""
        names = {f"GIT_{who}_{what}": self.committer for who in _WHO for what in _WHAT}
        done = subprocess.run(
            ["git", "-C", self.bare, *arguments],
            capture_output=True,
            check=True,
            input=stdin,
            env={**os.environ, **names, **({"GIT_INDEX_FILE": index} if index else {}), **more},
        )
        return done.stdout.decode(errors="replace")

    @property
    def tags(self) -> dict[str, str]:
        """The object of each."""
        return self._list_refs("tags")

    @property
    def branches(self) -> dict[str, str]:
        return self._list_refs("heads")

    def _list_refs(self, kind: str) -> dict[str, str]:
        said = self.git("for-each-ref", "--format=%(refname:strip=2) %(objectname)", f"refs/{kind}")
        return dict(line.split(" ") for line in said.split("\n") if line)

    def list_commits(self, *which: str) -> list[str]:
        """The oldest first."""
        return self.git("rev-list", "--reverse", "--topo-order", *which).split()

    def set_ref(self, ref: str, oid: str) -> None:
        """It goes where `oid` is empty."""
        self.git("update-ref", *([ref, oid] if oid else ["-d", ref]))

    def find_type(self, oid: str) -> str:
        """Of an object; `missing` where there is none."""
        said = self.git("cat-file", "--batch-check=%(objecttype)", stdin=f"{oid}\n".encode())
        return said.split()[-1]

    def write_commit(self, message: str, tree: str, *parents: str, **names: str) -> str:
        flags = [each for parent in parents for each in ("-p", parent)]
        return self.git("commit-tree", tree, *flags, stdin=message.encode(), **names).strip()

    def merge_trees(self, ours: str, theirs: str) -> str | None:
        """The tree; None where they conflict. https://git-scm.com/docs/git-merge-tree#_exit_status"""
        try:
            return self.git("merge-tree", "--write-tree", ours, theirs).strip()
        except subprocess.CalledProcessError as error:
            if error.returncode == 1:
                return None
            raise

    def rebase(self, branch: str, onto: str) -> str:
        """The last of its commits, each made anew by the author that it had; merges go."""
        with tempfile.TemporaryDirectory() as directory:
            tree = f"{directory}/tree"
            self.git("worktree", "add", "--quiet", "--detach", tree, branch)
            try:
                flags = ["--quiet", "--force-rebase"]
                self.git("-C", tree, "rebase", *flags, onto, GIT_COMMITTER_NAME=self.owner)
                return self.git("-C", tree, "rev-parse", "HEAD").strip()
            finally:
                self.git("worktree", "remove", "--force", tree)
