"""The files of a commit, whatever attributes, settings and links have to say about them."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

import pytest

from releasekit.errors import CommandFailed
from releasekit.git.settings import GitSettings
from releasekit.host.process import Processes
from workspaces import git

if TYPE_CHECKING:
    from pathlib import Path


def export(top: Path, into: Path, commit: str = "") -> None:
    """`commit` or HEAD."""
    environment = {name: os.environ[name] for name in ("PATH", "HOME")}

    async def main() -> None:
        async with Processes(environment=environment) as processes:
            settings = GitSettings(top, processes, environment)
            await settings.write_files(commit or await settings.read_head(), into)

    asyncio.run(main())


@pytest.fixture
def top(tmp_path: Path) -> Path:
    directory = tmp_path / "checkout"
    (directory / "scripts").mkdir(parents=True)
    (directory / "scripts/run").write_bytes(b"#!/bin/sh\r\necho $Id$ $Format:%H$\n")
    (directory / "scripts/run").chmod(0o755)
    (directory / "left out").write_text("committed")
    (directory / ".gitattributes").write_text(
        "* text eol=crlf ident export-subst filter=evil\n'left out' export-ignore\n"
        '"left out" export-ignore\n'
    )
    git(directory, "init", "--quiet")
    git(directory, "add", "--all")
    git(directory, "commit", "--quiet", "--message", "Start")
    return directory


def test_the_bytes_are_those_of_the_commit(top: Path, tmp_path: Path) -> None:
    """R69: not those of the checkout, and no attribute or filter has a say."""
    committed = git(top, "show", "HEAD:scripts/run")
    git(top, "config", "filter.evil.smudge", "sed s/echo/evil/")
    (top / ".git/info/attributes").write_text("* export-ignore\n")
    (top / "scripts/run").write_text("evil")
    (top / "untracked").write_text("evil")
    into = tmp_path / "files"
    export(top, into)
    assert (into / "scripts/run").read_bytes().decode() == committed
    assert os.access(into / "scripts/run", os.X_OK)
    assert (into / "left out").read_text() == "committed"
    names = {path.relative_to(into).as_posix() for path in into.rglob("*") if path.is_file()}
    assert names == {".gitattributes", "left out", "scripts/run"}


def test_no_other_object_takes_the_place_of_one(top: Path, tmp_path: Path) -> None:
    head = git(top, "rev-parse", "HEAD").strip()
    (top / "scripts/run").write_text("evil")
    git(top, "commit", "--quiet", "--all", "--message", "Other")
    git(top, "replace", head, "HEAD")
    export(top, tmp_path / "files", head)
    assert "evil" not in (tmp_path / "files/scripts/run").read_text()


def test_no_link_leads_out(top: Path, tmp_path: Path) -> None:
    """One that leads through another one neither."""
    (top / "a/b").mkdir(parents=True)
    (top / "a/b/up").symlink_to("../..")
    (top / "out").symlink_to("a/b/up/../../evil")
    (top / "far").symlink_to("/tmp")
    (top / "round").symlink_to("round")
    (top / "in").symlink_to("scripts/run")
    git(top, "add", "--all")
    git(top, "commit", "--quiet", "--message", "Links")
    into = tmp_path / "files"
    export(top, into)
    assert (into / "in").read_bytes() == (into / "scripts/run").read_bytes()
    links = {path.name for path in into.rglob("*") if path.is_symlink()}
    assert links == {"in", "round", "up"}


def test_without_a_commit_there_is_nothing(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    with pytest.raises(CommandFailed):
        export(tmp_path, tmp_path / "files")
