"""What a release holds, and how its files are called."""

from __future__ import annotations

import asyncio
import hashlib
from typing import TYPE_CHECKING, cast

import pytest

import fakes
from releasekit.announce.releases import Assets, TaggedRelease, build_drafts
from releasekit.announce.tags import Tagging
from releasekit.announced import Status, Tag
from releasekit.attested import Attestation, ReleaseStatement
from releasekit.config.tag_options import TagOptions
from releasekit.fields import replace
from releasekit.git.commits import Commits
from releasekit.host.forges import Pages
from releasekit.host.process import Processes
from releasekit.model import Artifact, Outcome, PackageId, Published, Result
from workspaces import git

if TYPE_CHECKING:
    from pathlib import Path

    from releasekit.announce.forge import Draft
    from releasekit.git.remote import Remote

BUNDLE = b'{"a": "bundle"}'


def signed(place: Path) -> ReleaseStatement:
    path = place / "provenance.jsonl"
    path.write_bytes(BUNDLE + b"\n")
    sha256 = hashlib.sha256(BUNDLE).hexdigest()
    entry = Attestation(sha256=sha256, log_index=1, log_url="", path=path)
    return ReleaseStatement(path=path, subjects=1, attestations=(entry,))


def made_of(root: Path, name: str, template: str, *extra: Artifact, is_built: bool = True) -> Draft:
    """The draft of one package, on a real repository."""
    package = fakes.package(name, version="1.4.0", root=root)
    git(root, "init", "--quiet")
    git(root, "commit", "--quiet", "--allow-empty", "--message", "Start")
    commit = git(root, "rev-parse", "HEAD").strip()
    config = fakes.config(root, tagging=TagOptions(name=template))
    tag = Tag(name="the-tag", commit=commit, status=Status.CREATED)
    wheel = Artifact(path=root / "a.tgz", size=1, digests={"sha256": "0" * 64})
    artifacts = (wheel,) if is_built else ()
    result = Result(package=package, outcome=Outcome.PUBLISHED, reason="", artifacts=artifacts)
    shown = Published(files={"a.tgz": f"sha256:{'0' * 64}"})

    async def main() -> Draft:
        async with Processes(environment={}) as processes:
            tagging = Tagging(
                cast("Remote", None), Commits(root, processes), config, Pages("github", "")
            )
            (draft,), silent = await build_drafts(
                replace(fakes.plan(package), commit=commit),
                [TaggedRelease(tag, [result])],
                tagging,
                Assets(
                    {package.id: shown}, signed(root), lambda: b"", {"the-tag": extra}, "widgets"
                ),
                {},
            )
            assert silent == {}
            return draft

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("name", "template", "called"),
    [
        ("core", "{name}-v{version}", "core-1.4.0.intoto.jsonl"),
        ("@acme/core", "{name}-v{version}", "core-1.4.0.intoto.jsonl"),
        ("org.acme:core", "{name}-v{version}", "core-1.4.0.intoto.jsonl"),
        ("core", "v{version}", "widgets-1.4.0.intoto.jsonl"),
    ],
)
def test_the_statement_has_a_name_that_scanners_look_for(
    tmp_path: Path, name: str, template: str, called: str
) -> None:
    """R52, R72: and a draft that has it under its old name is whole."""
    draft = made_of(tmp_path, name, template)
    sums, statement = draft.assets
    assert (sums.name, statement.name) == ("checksums.txt", called)
    assert (statement.content, statement.formerly) == (BUNDLE + b"\n", "provenance.jsonl")
    assert draft.packages == {PackageId("fake", name)}


def test_a_statement_that_tells_nothing_of_a_release_is_not_attached(tmp_path: Path) -> None:
    """R52: of a version that an earlier run has built."""
    draft = made_of(tmp_path, "core", "{name}-v{version}", is_built=False)
    assert [each.name for each in draft.assets] == ["checksums.txt"]


def test_extra_files_have_names_that_forges_keep_and_their_checksums(tmp_path: Path) -> None:
    """R72."""
    path = tmp_path / "an app.tar.gz"
    path.write_bytes(b"app")
    digest = hashlib.sha256(b"app").hexdigest()
    extra = Artifact(path=path, size=3, digests={"sha256": digest})
    draft = made_of(tmp_path, "core", "{name}-v{version}", extra)
    assert [each.name for each in draft.assets] == [
        "checksums.txt",
        "an.app.tar.gz",
        "core-1.4.0.intoto.jsonl",
    ]
    assert draft.assets[0].content == (
        f"SHA256 (a.tgz) = {'0' * 64}\nSHA256 (an.app.tar.gz) = {digest}\n".encode()
    )
