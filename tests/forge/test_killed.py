"""A release of three ecosystems, killed at all that it asks of the forge, and finished."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from effort import SEARCHING
from forge.forges import FORGES
from forge.monorepo import GO, NODE, NOTES, PACKAGES, PYTHON, TAGS, monorepo
from harness.github import serving_github
from harness.killing import Killing
from integration.tools import require_tool
from workspaces import Program, git, uv_workspace

if TYPE_CHECKING:
    from pathlib import Path

    from forge.forges import ForgeCase, World


def program_at(tmp_path: Path, world: World) -> Program:
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    path = f"{require_tool('uv').parent}{os.pathsep}{os.environ['PATH']}"
    return Program(home, {**world.environment, "PATH": path})


def arguments(tmp_path: Path, root: Path) -> list[str | Path]:
    places = [f"--{name}-registry=dir:{tmp_path / name}" for name in ("pypi", "npm")]
    return ["publish", root, *places, "--tag", "--announce", "--retry-base-delay", "0s"]


def kind(what: str) -> str:
    """A request without what differs from one to the next."""
    path = what.partition("?")[0]
    return "".join("#" if letter.isdigit() else letter for letter in path)


@pytest.mark.parametrize("case", FORGES, ids=str)
def test_killed_at_every_request_it_is_finished_with_one_tag_and_one_release_each(
    tmp_path: Path, case: ForgeCase
) -> None:
    """R14, R15: before each kind of request, and after each that changes something; in a test run,
    after each kind of those.
    """
    require_tool("npm")
    # Go modules have no checksums; and there is one push of tags at least.
    writes = case.writes * PACKAGES - len(GO) + 1
    with case.serving(tmp_path) as world:
        root = monorepo(tmp_path / "a workspace", world.url)
        commit = git(root, "rev-parse", "HEAD").strip()
        program = program_at(tmp_path, world)
        run = arguments(tmp_path, root)
        killing = Killing(lambda: program.start(*run), root, program.log.read_text)

        def may_die(moment: str, what: str) -> None:
            if moment == "before":
                killing.die_once(moment, kind(what))
            elif not what.startswith("GET ") and "upload-pack" not in what:
                if SEARCHING:
                    killing.die(moment, what)
                killing.die_once(moment, kind(what))

        world.around = may_die
        killing.finish(most=2 * writes)
        before = {what for moment, what in killing.killed if moment == "before"}
        after = [what for moment, what in killing.killed if moment == "after"]
        assert len(after) >= (writes if SEARCHING else case.writes + 1), after
        assert len(before) >= 7, before
        assert world.defects == []
        objects = world.tags
        assert set(objects) == TAGS
        own = [*(f"{name}-v1.0.0" for name in PYTHON), *(f"@acme/{name}-v1.0.0" for name in NODE)]
        assert {world.git("rev-parse", f"{tag}^{{commit}}").strip() for tag in own} == {commit}
        shown = case.shown(world)
        assert Counter(each.tag for each in shown) == Counter(TAGS)
        assert len(shown) == len(world.releases)
        files = 0
        for release in shown:
            checked = not release.tag.startswith("go/")
            assert list(release.files) == (["checksums.txt"] if checked else [])
            files += len(release.files)
        assert case.count_files(world) == files
        told = next(each for each in shown if each.tag == "acme-p1-v1.0.0")
        assert NOTES.strip() in told.body
        assert "Later" not in told.body

        world.around = lambda moment, what: None
        world.asked.clear()
        ended = program.run(*run)
        assert (ended.code, set(ended.outcomes.values())) == (0, {"already-published"})
        assert len(ended.outcomes) == PACKAGES
        assert world.writes == []
        assert world.tags == objects


def test_drafts_with_files_of_the_users_own_are_finished_and_left_to_others(tmp_path: Path) -> None:
    """R14, R72: killed as above; and where releases are immutable, nothing comes afterwards."""
    with serving_github(tmp_path) as world:
        world.immutable = True
        root = uv_workspace(tmp_path / "a workspace", {"acme-core": (), "acme-cli": ()})
        (root / "build").mkdir()
        (root / "build/cli-linux.tar.gz").write_bytes(b"a program")
        (root / "releasekit.toml").write_text(
            '[announce]\ndraft = true\nextra-files = { "pypi:acme-cli" = ["build/cli-*.tar.gz"] }\n'
        )
        git(root, "add", "--all")
        git(root, "commit", "--quiet", "--message", "Configure")
        git(root, "remote", "add", "origin", world.url)
        git(root, "push", "--quiet", "origin", "HEAD:main")
        program = program_at(tmp_path, world)
        run = arguments(tmp_path, root)
        killing = Killing(lambda: program.start(*run), root, program.log.read_text)

        def may_die(moment: str, what: str) -> None:
            is_write = not what.startswith("GET ") and "upload-pack" not in what
            if moment == "before" or is_write:
                killing.die_once(moment, kind(what) if moment == "before" else what)

        world.around = may_die
        killing.finish(most=40)
        assert len(killing.killed) >= 12, killing.killed
        assert not world.defects
        assert sorted(each["tag_name"] for each in world.releases) == [
            "acme-cli-v1.0.0",
            "acme-core-v1.0.0",
        ]
        world.around = lambda moment, what: None
        for release in world.releases:
            assert release["draft"]
            own = ["cli-linux.tar.gz"] if "cli" in release["tag_name"] else []
            assert [each["name"] for each in release["assets"]] == ["checksums.txt", *own]
            sums = world.contents[release["assets"][0]["id"]].decode()
            digest = hashlib.sha256(b"a program").hexdigest()
            assert (f"SHA256 (cli-linux.tar.gz) = {digest}\n" in sums) == bool(own)
        world.asked.clear()
        ended = program.run(*run)
        assert (ended.code, world.writes) == (0, [])
        assert "2 releases are left as drafts: " in ended.out
        assert "gh release edit TAG --draft=false" in ended.out

        for release in world.releases:
            release |= {"draft": False, "immutable": True}
        (root / "build/cli-linux.tar.gz").unlink()  # is not missed where the release is there
        ended = program.run(*run)
        assert (ended.code, world.writes) == (0, [])
        assert "left as drafts" not in ended.out


def test_a_fresh_machine_finishes_what_another_one_left_untagged(tmp_path: Path) -> None:
    """R15: from the registries, the remote and the forge alone."""
    require_tool("npm")
    with serving_github(tmp_path) as world:
        root = monorepo(tmp_path / "a workspace", world.url)
        commit = git(root, "rev-parse", "HEAD").strip()
        program = program_at(tmp_path, world)
        published = program.run(
            *(each for each in arguments(tmp_path, root) if each not in {"--tag", "--announce"})
        )
        assert published.code == 0, published.err
        assert set(world.tags) == {tag for tag in TAGS if tag.startswith("go/")}
        git(root, "commit", "--quiet", "--allow-empty", "--message", "Go on")
        git(root, "push", "--quiet", "origin", "main")
        fresh = tmp_path / "another machine"
        git(tmp_path, "clone", "--quiet", world.url, str(fresh))
        ended = program.run(*arguments(tmp_path, fresh))
        assert ended.code == 0, ended.err
        assert set(world.tags) == TAGS
        python = [f"{name}-v1.0.0" for name in PYTHON]
        assert {world.git("rev-parse", f"{tag}^{{commit}}").strip() for tag in python} == {commit}
        assert {each["tag_name"] for each in world.releases} == TAGS
        assert world.defects == []
