from __future__ import annotations

import asyncio
import os
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from integration.tools import require_landlock
from releasekit.aio import Group
from releasekit.errors import CommandFailed, Denied, PackageError, Rejected, Transient
from releasekit.git.remote import Remote, RemoteTag, explain, strip_userinfo
from releasekit.git.settings import GitSettings
from releasekit.host.process import Completed, Printed, Processes
from releasekit.host.sandbox import UNCONFINED, Sandbox
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ZERO, ONE, NINE = (digit * 40 for digit in "019")
V0 = RemoteTag(ZERO, NINE)
V1 = RemoteTag(ONE, ONE)


@pytest.mark.parametrize(
    ("log", "kind", "ambiguous", "says"),
    [
        (
            "fatal: Authentication failed for 'https://me:secret@host/x'",
            Denied,
            False,
            "https://***@host/x",
        ),
        ("git@host: Permission denied (publickey).", Denied, False, "publickey"),
        ("remote: Permission to a/b.git denied to bot.", Denied, False, "denied to bot"),
        ("fatal: unable to access: The requested URL returned error: 403", Denied, False, "403"),
        ("fatal: unable to access: The requested URL returned error: 429", Transient, False, "429"),
        ("fatal: unable to access: The requested URL returned error: 503", Transient, True, "503"),
        ("fatal: the remote end hung up unexpectedly", Transient, True, "hung up"),
        (
            "fatal: the receiving end does not support push options\nfatal: hung up",
            Rejected,
            False,
            "push options",
        ),
        (
            "fatal: failed to sign the push certificate\nfatal: the remote end hung up",
            Rejected,
            False,
            "failed to sign",
        ),
        ("ssh: connect to host h port 22: Connection refused", Transient, False, "refused"),
        ("fatal: unable to access: Could not resolve host: h", Transient, False, "resolve"),
        ("! 1:refs/tags/v1 [rejected] (already exists)", Transient, True, "already exists"),
        ("fatal: 'origin' does not appear to be a git repository", Rejected, False, "appear"),
        (
            "remote: error: GH013: Repository rule violations found for refs/tags/v1.",
            Rejected,
            False,
            "a rule protects the tag: error: GH013",
        ),
        (
            "remote: \nremote: only robots\n! 1:refs/tags/v1 [remote rejected] (hook declined)",
            Rejected,
            False,
            "only robots; [remote rejected] (hook declined)",
        ),
        ("", Rejected, False, "`git push` failed with exit code 1"),
    ],
)
def test_what_git_says_is_told_apart(
    log: str, kind: type[PackageError], ambiguous: bool, says: str
) -> None:
    """R12, R34"""
    failed = CommandFailed("`git push` failed with exit code 1", log=tuple(log.splitlines()))
    error = explain(failed, "go:a.b/c v1.0.0", writing=True)
    assert type(error) is kind
    assert str(error).startswith("go:a.b/c v1.0.0: ")
    assert says in str(error)
    assert "secret" not in str(error)
    if isinstance(error, Transient):
        assert error.ambiguous is ambiguous
        reading = explain(failed, "x", writing=False)
        assert isinstance(reading, Transient)
        assert not reading.ambiguous


class Git:
    """Lists one tag more with each call; a `failure` instead of the first."""

    sandbox = UNCONFINED
    environment: Mapping[str, str] = {}
    settings = "command\0core.fsmonitor\nfalse\0"

    def __init__(self, group: Group, failure: str = "", listed: str = "") -> None:
        self.group = group
        self.calls = 0
        self.failure = failure
        self.listed = listed

    def outside(self, program: str) -> str:
        return f"/usr/bin/{program}"

    async def run(
        self, argv: list[str], *, cwd: Path, env: dict[str, str], **_: object
    ) -> Completed:
        lines = [f"origin\thttps://host/a.git ({each})\n" for each in ("fetch", "push")]
        told = {"remote": "".join(lines), "config": self.settings, "rev-parse": ".\nshallow\n"}
        told["--no-replace-objects"] = "1" * 40  # what is checked out
        if argv[1] in told:
            return Completed(
                stdout=Printed(told[argv[1]], argv, "/usr/bin/git"), tail=(), duration_s=0.0
            )
        assert argv == ["git", "ls-remote", "--tags", "origin"]
        assert env["GIT_TERMINAL_PROMPT"] == "0"
        assert env["SSH_AUTH_SOCK"] == "/agent"
        assert env["GIT_SSL_CAINFO"] == "/authorities.pem"
        assert env["GIT_DIR"] == str(cwd)
        self.calls += 1
        await asyncio.sleep(0)
        if self.failure and self.calls == 1:
            raise CommandFailed("`git ls-remote` failed with exit code 128", log=(self.failure,))
        lines = [f"{oid}\trefs/tags/v{number}" for number, oid in enumerate((ZERO, ONE))]
        listed = "\n".join([*lines[: self.calls], self.listed or f"{NINE}\trefs/tags/v0^{{}}"])
        return Completed(stdout=Printed(listed, argv, "/usr/bin/git"), tail=(), duration_s=0.0)


def remote(git: Git) -> Remote:
    given = {
        "SSH_AUTH_SOCK": "/agent",
        "GIT_SSL_CAINFO": "/authorities.pem",
        "HOME": "/home",
    }
    top = Path(__file__).parent  # where the directory of objects would be
    return Remote("origin", GitSettings(top, cast("Processes", git), given))


def test_one_look_answers_everybody_who_had_asked_before() -> None:
    async def main() -> None:
        async with Group() as group:
            there = remote(Git(group))
            assert await asyncio.gather(*(there.list_tags() for _ in range(5))) == [{"v0": V0}] * 5
            assert await there.list_tags() == {"v0": V0, "v1": V1}

    asyncio.run(main())


@pytest.mark.parametrize("listed", ["From origin", "v1", f"{ONE} refs/tags/v1", "1\trefs/tags/v1"])
def test_what_git_does_not_list_so_is_refused_with_its_line(listed: str) -> None:
    """R68: as what a wrapper says before it starts git."""

    async def main() -> None:
        async with Group() as group:
            with pytest.raises(Rejected) as caught:
                await remote(Git(group, listed=listed)).list_tags()
        line = listed.replace("\t", " ")
        assert str(caught.value).startswith(f"`git ls-remote --tags origin` prints {line!r}")
        assert caught.value.problem is Problem.STRANGE_OUTPUT

    asyncio.run(main())


def test_an_error_is_shared_too_and_not_kept() -> None:
    async def main() -> None:
        async with Group() as group:
            there = remote(Git(group, "ssh: Connection refused"))
            answers = await asyncio.gather(
                *(there.list_tags() for _ in range(3)), return_exceptions=True
            )
            assert [type(answer) for answer in answers] == [Transient] * 3
            assert await there.list_tags() == {"v0": V0, "v1": V1}

    asyncio.run(main())


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://me:secret@host/a/b.git", "https://host/a/b.git"),
        ("https://host/a@b", "https://host/a@b"),
        ("git@github.com:acme/mono.git", "github.com:acme/mono.git"),
        ("ssh://git@host:22/x", "ssh://host:22/x"),
        ("/srv/a@b/x.git", "/srv/a@b/x.git"),
    ],
)
def test_an_address_is_shown_without_who_pushes(url: str, shown: str) -> None:
    assert strip_userinfo(url) == shown


def git(*arguments: str, cwd: Path) -> None:
    """Of nobody's settings but its own."""
    who = ("-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main")
    environment = {"PATH": os.environ["PATH"], "HOME": str(cwd), "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", *who, *arguments], cwd=cwd, env=environment, check=True)


@pytest.fixture
def top() -> Iterator[Path]:
    """A repository with a commit, and a bare one beside it: neither in /tmp, which is open."""
    with tempfile.TemporaryDirectory(prefix="releasekit-remote-", dir="/var/tmp") as name:
        there = Path(name, "repository")
        there.mkdir()
        git("init", "--quiet", "--bare", "bare.git", cwd=there.parent)
        git("init", "--quiet", cwd=there)
        git("commit", "--quiet", "--allow-empty", "--message=Start", cwd=there)
        yield there


def head(top: Path) -> str:
    told = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=top, capture_output=True, text=True, check=True
    )
    return told.stdout.strip()


def pushed(top: Path, *places: Path) -> PackageError | None:
    """What comes of a first tag, after a look at those there are."""
    within = Sandbox(
        words="", abi=require_landlock(), places=("/dev/null", str(top), *map(str, places))
    )

    async def main() -> None:
        environment = {"PATH": os.environ["PATH"], "HOME": str(top.parent)}
        async with Processes(environment=environment, sandbox=within) as processes:
            there = Remote("origin", GitSettings(top, processes, environment))
            with suppress(PackageError):
                await there.list_tags()
            await there.push({"v1": head(top)}, objects=top, what="fake:a")

    try:
        asyncio.run(main())
    except PackageError as error:
        return error
    return None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("url.{top}/evil.git.insteadOf", "{top}/bare.git"),
        ("url.{top}/evil.git.pushInsteadOf", "{top}/bare.git"),
        ("remote.origin.url", "{top}/evil.git"),
        ("remote.origin.pushurl", "{top}/evil.git"),
        ("remote.origin.receivepack", "{top}/spy"),
        ("remote.origin.uploadpack", "{top}/spy"),
        ("include.path", "{top}/more"),
        ("includeIf.gitdir:**.path", "{top}/more"),
    ],
)
def test_a_remote_leads_where_it_led_before_the_first_build(
    top: Path, name: str, value: str
) -> None:
    """R50, R69: its settings lie where builds write. What they say meanwhile counts for nothing."""
    for bare in ("bare.git", "evil.git"):
        git("init", "--quiet", "--bare", str(top / bare), cwd=top)
    (top / "spy").write_text(f"#!/bin/sh\ntouch '{top}/ran'\n")
    (top / "spy").chmod(0o755)
    (top / "more").write_text(f'[remote "origin"]\nreceivepack = {top}/spy\n')
    git("remote", "add", "origin", str(top / "bare.git"), cwd=top)
    environment = {"PATH": os.environ["PATH"], "HOME": str(top.parent)}

    async def main() -> None:
        async with Processes(environment=environment) as processes:
            settings = GitSettings(top, processes, environment)
            await settings.remember()
            git("config", name.format(top=top), value.format(top=top), cwd=top)
            there = Remote("origin", settings)
            assert await there.list_tags() == {}
            await there.try_push("v1")
            await there.push({"v1": head(top)}, objects=top, what="fake:a")
            assert set(await there.list_tags()) == {"v1"}

    asyncio.run(main())
    assert (top / "bare.git/refs/tags/v1").exists()
    assert not list((top / "evil.git/refs/tags").iterdir())
    assert not (top / "ran").exists()


def test_a_push_is_tried_with_the_commit_whatever_else_is_called_head(top: Path) -> None:
    git("remote", "add", "origin", str(top.parent / "bare.git"), cwd=top)
    git("update-ref", "refs/heads/HEAD", "HEAD", cwd=top)
    git("tag", "HEAD", cwd=top)
    environment = {"PATH": os.environ["PATH"], "HOME": str(top.parent)}

    async def main() -> None:
        async with Processes(environment=environment) as processes:
            await Remote("origin", GitSettings(top, processes, environment)).try_push("v1")

    asyncio.run(main())
    assert not list((top.parent / "bare.git" / "refs/tags").iterdir())


@pytest.mark.parametrize("form", ["{}", "file://{}", "../bare.git"])
def test_a_directory_of_this_machine_has_to_be_named(top: Path, form: str) -> None:
    """R50: settings that a build has left name one; the user opens it, or nobody."""
    bare = top.parent / "bare.git"
    git("remote", "add", "origin", form.format(bare), cwd=top)
    error = pushed(top)
    assert isinstance(error, Rejected)
    words = f"fake:a: git remote origin is {bare}, where the sandbox does not let git write"
    assert str(error) == words
    assert "`build-sandbox-paths`" in error.hint
    assert not list((bare / "refs" / "tags").iterdir())
    assert pushed(top, bare) is None
    assert (bare / "refs" / "tags" / "v1").exists()


def test_settings_that_a_build_left_open_no_directory(top: Path) -> None:
    """R50: neither to git nor to the program that they name in the place of its own."""
    home = top.parent
    git("remote", "add", "origin", str(home / "bare.git"), cwd=top)
    git("remote", "set-url", "--push", "origin", str(home), cwd=top)
    script = home / "receive-pack"
    script.write_text(f"#!/bin/sh\ntouch '{top}/ran'\ntouch '{home}/taken'\n")
    script.chmod(0o755)
    git("config", "remote.origin.receivepack", str(script), cwd=top)
    assert isinstance(pushed(top), Rejected)
    assert (top / "ran").exists()
    assert not (home / "taken").exists()


def test_the_directory_of_a_remote_is_told_on_one_short_line(top: Path) -> None:
    hostile = top.parent / ("x" * 200) / "\x1b[2J\u202e"
    git("remote", "add", "origin", str(hostile), cwd=top)
    hostile.mkdir(parents=True)
    git("init", "--quiet", "--bare", ".", cwd=hostile)
    error = pushed(top)
    assert isinstance(error, Rejected)
    assert f"{error}{error.hint}".isprintable()
    assert len(str(error)) < 300
