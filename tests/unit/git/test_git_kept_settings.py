from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import pytest

from harness.gitlab import TOKEN as GITLAB_TOKEN
from harness.gitlab import serving_gitlab
from integration.tools import require_landlock
from releasekit.errors import PackageError, PathError
from releasekit.git.remote import Remote
from releasekit.git.settings import GitSettings
from releasekit.host import durable
from releasekit.host.process import Processes
from releasekit.host.sandbox import Sandbox
from releasekit.http.credentials import Secret

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

TOKEN = "ghs_of_the_job"


def git(*arguments: str, cwd: Path) -> str:
    """Of nobody's settings but its own."""
    who = ("-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main")
    files = ("-c", "protocol.file.allow=always")
    environment = {"PATH": os.environ["PATH"], "HOME": str(cwd), "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(
        ["git", *who, *files, *arguments],
        cwd=cwd,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


@pytest.fixture
def place() -> Iterator[Path]:
    """With a remote and a clone of it, where no build can write but in the clone."""
    with tempfile.TemporaryDirectory(prefix="releasekit-kept-", dir="/var/tmp") as name:
        here = Path(name).resolve()
        git("init", "--quiet", "--bare", "bare.git", cwd=here)
        git("clone", "--quiet", "bare.git", "clone", cwd=here)
        for number in range(3):
            (here / "clone/file").write_text(str(number))
            git("add", "file", cwd=here / "clone")
            git("commit", "--quiet", f"--message={number}", cwd=here / "clone")
        git("push", "--quiet", "origin", "HEAD:main", cwd=here / "clone")
        yield here


def push(
    top: Path,
    meanwhile: Callable[[], object] = lambda: None,
    *,
    home: Path | None = None,
    given: Mapping[str, str] | None = None,
) -> frozenset[str]:
    """The tags that the remote shows after a tag was pushed in the sandbox of the builds."""
    home = home or top.parent
    environment = {"PATH": os.environ["PATH"], "HOME": str(home)}
    environment |= {"SSH_AUTH_SOCK": "/agent", **(given or {})}
    writable = ("/dev/null", str(home / "bare.git"), str(home / "clone"), str(home / "tree"))
    abi = require_landlock()
    commit = git("rev-parse", "HEAD", cwd=top)

    async def main() -> frozenset[str]:
        within = Sandbox(words="", abi=abi, places=writable)
        async with Processes(environment=environment, sandbox=within) as processes:
            settings = GitSettings(top, processes, environment)
            await settings.remember()
            meanwhile()
            remote = Remote("origin", settings, Secret(TOKEN))
            await remote.try_push("v1")
            await remote.push({"v1": commit}, objects=home, what="fake:a")
            return frozenset(await remote.list_tags())

    return asyncio.run(main())


def test_a_clone_by_its_relative_path_is_pushed_to(place: Path) -> None:
    git("remote", "set-url", "origin", "../bare.git", cwd=place / "clone")
    assert push(place / "clone") == {"v1"}


def test_a_shallow_clone_is_pushed_from(place: Path) -> None:
    git("clone", "--quiet", "--depth=1", f"file://{place}/bare.git", "tree", cwd=place)
    git("commit", "--quiet", "--allow-empty", "--message=4", cwd=place / "tree")
    assert push(place / "tree") == {"v1"}


def test_a_clone_without_blobs_is_pushed_from(place: Path) -> None:
    """As `filter` of actions/checkout makes it."""
    git("config", "uploadpack.allowFilter", "true", cwd=place / "bare.git")
    clone = ("clone", "--quiet", "--no-checkout", "--filter=blob:none")
    git(*clone, f"file://{place}/bare.git", "tree", cwd=place)
    assert push(place / "tree") == {"v1"}


def test_a_repository_of_longer_names_is_pushed_from(place: Path) -> None:
    """https://git-scm.com/docs/hash-function-transition"""
    git("init", "--quiet", "--bare", "--object-format=sha256", "long.git", cwd=place)
    (place / "bare.git").rename(place / "short.git")
    (place / "long.git").rename(place / "bare.git")
    git("init", "--quiet", "--object-format=sha256", "tree", cwd=place)
    git("remote", "add", "origin", f"{place}/bare.git", cwd=place / "tree")
    git("commit", "--quiet", "--allow-empty", "--message=1", cwd=place / "tree")
    assert push(place / "tree") == {"v1"}


def test_a_work_tree_is_pushed_from(place: Path) -> None:
    git("worktree", "add", "--quiet", "--detach", "../tree", cwd=place / "clone")
    git("config", "extensions.worktreeConfig", "true", cwd=place / "clone")
    git("config", "--worktree", "core.sshCommand", "/bin/true", cwd=place / "tree")
    assert push(place / "tree") == {"v1"}


def test_a_submodule_is_pushed_from(place: Path) -> None:
    """Its `.git` is a file that names the directory."""
    git("init", "--quiet", "tree", cwd=place)
    git("submodule", "--quiet", "add", f"{place}/bare.git", "inner", cwd=place / "tree")
    assert push(place / "tree/inner", home=place) == {"v1"}


class Recording(BaseHTTPRequestHandler):
    seen: ClassVar[list[str]]

    def do_GET(self) -> None:
        self.seen.extend(self.headers.get_all("Authorization", ["none"]))
        self.send_error(401)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[tuple[str, list[str]]]:
    """An address, and who logged in there."""
    seen: list[str] = []
    handler = type("Handler", (Recording,), {"seen": seen})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as listening:
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{listening.server_port}", seen
        listening.shutdown()
        thread.join()


@pytest.mark.parametrize("kept", ["in the settings", "in a file that they include"])
def test_the_token_that_actions_checkout_keeps_is_sent_once(
    place: Path, server: tuple[str, list[str]], kept: str
) -> None:
    """R69: `persist-credentials` of v4, and of v6, whose file lies in RUNNER_TEMP.

    https://github.com/actions/checkout/blob/main/src/git-auth-helper.ts
    """
    url, seen = server
    top = place / "clone"
    git("remote", "set-url", "origin", f"{url}/acme/kit", cwd=top)
    name, header = f"http.{url}/.extraheader", "AUTHORIZATION: basic eDpnaHM="
    if kept == "in the settings":
        git("config", name, header, cwd=top)
    else:
        credentials = place / "git-credentials.config"
        git("config", "--file", str(credentials), name, header, cwd=top)
        git("config", f"includeIf.gitdir:{top}/.git.path", str(credentials), cwd=top)

    def meanwhile() -> None:
        git("config", "--add", name, "AUTHORIZATION: basic c3B5", cwd=top)
        git("config", "credential.helper", f"{top}/spy", cwd=top)

    refuse(top, meanwhile)
    assert set(seen) == {"basic eDpnaHM="}


def test_programs_get_no_setting_of_another_transport_and_remote(place: Path) -> None:
    """R69: hooks of a remote on this machine, which builds may write, see what git was given."""
    top, hook = place / "clone", place / "bare.git/hooks/pre-receive"
    git("config", "http.https://github.com/.extraheader", f"AUTHORIZATION: {TOKEN}", cwd=top)
    git("config", "http.proxy", f"http://me:{TOKEN}@proxy.example", cwd=top)
    git("config", "remote.other.url", f"https://me:{TOKEN}@git.example/x", cwd=top)
    git("config", f"url.https://me:{TOKEN}@git.example/.insteadOf", "kit:", cwd=top)
    git("config", f"url.{place}/.pushInsteadOf", "of-the-push:", cwd=top)
    git("config", "url.../.insteadOf", "of-the-push:", cwd=top)
    git("config", "remote.origin.url", "of-the-push:bare.git", cwd=top)
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\nenv > '{top}/seen'\n")
    hook.chmod(0o755)
    assert push(top) == {"v1"}
    assert TOKEN not in (top / "seen").read_text()


def test_no_argument_has_the_password_of_an_address(place: Path, tmp_path: Path) -> None:
    """R34: git passes the address to its helper, and every process may read arguments."""
    top, seen = place / "clone", place / "clone" / "seen"
    exec_path = subprocess.run(["git", "--exec-path"], check=True, capture_output=True, text=True)
    real = Path(exec_path.stdout.strip()) / "git-remote-http"
    program = place / "bin" / "git-remote-kept"
    program.parent.mkdir()
    program.write_text(
        f"#!/bin/sh\ntr '\\0' ' ' < /proc/$$/cmdline >> '{seen}'\nexec '{real}' \"$@\"\n"
    )
    program.chmod(0o755)
    with serving_gitlab(tmp_path) as world:
        git("push", "--quiet", str(world.bare), "HEAD:main", cwd=top)
        git("config", "remote.origin.vcs", "kept", cwd=top)
        git("config", "remote.origin.url", world.url, cwd=top)
        given = {"PATH": f"{program.parent}:{os.environ['PATH']}"}
        assert push(top, given=given) == {"v1"}
    assert world.page in seen.read_text()
    assert GITLAB_TOKEN not in seen.read_text()


@pytest.fixture
def ssh(place: Path) -> Path:
    """It tells what it was started with, and lies where no build writes."""
    program = place / "bin" / "ssh"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{{ env; echo \"$@\"; }} > '{place}/clone/seen'\nexit 1\n")
    program.chmod(0o755)
    return program


def test_the_key_that_actions_checkout_keeps_is_used(place: Path, ssh: Path) -> None:
    """R69: with `ssh-key`; and what is reached so needs no token.

    https://github.com/actions/checkout/blob/main/src/git-auth-helper.ts (configureToken)
    """
    top = place / "clone"
    command = f'"{ssh}" -i "{place}/key" -o StrictHostKeyChecking=yes'
    git("config", "core.sshCommand", command, cwd=top)
    git("remote", "set-url", "origin", "git@github.com:acme/kit.git", cwd=top)
    refuse(top, lambda: git("config", "core.sshCommand", f"{top}/spy", cwd=top))
    seen = (top / "seen").read_text()
    assert f"-i {place}/key -o StrictHostKeyChecking=yes" in seen
    assert "git@github.com" in seen
    assert TOKEN not in seen
    assert "\nSSH_AUTH_SOCK=/agent\n" in seen


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("core.sshCommand", "{top}/spy -v"),
        ("core.sshCommand", "./spy"),
        ("core.sshCommand", "ssh -i keys/id"),
        ("credential.helper", "{top}/spy"),
        ("credential.https://github.com.helper", "!{top}/spy"),
        ("credential.helper", "!/bin/sh {top}/spy"),
        ("core.askPass", "{top}/spy"),
        ("core.sshCommand", "ssh -F {top}/file"),
        ("credential.helper", "!/usr/bin/env python3 {top}/file"),
        ("credential.helper", "!sh -c '{top}/file --get'"),
        ("gpg.ssh.defaultKeyCommand", "{top}/spy"),
        ("remote.origin.uploadpack", "{top}/spy"),
        ("remote.origin.receivepack", "{top}/spy"),
    ],
)
def test_a_program_that_builds_can_write_gets_no_login(place: Path, key: str, value: str) -> None:
    """R69: also where it was named before the run."""
    top = place / "clone"
    (top / "keys").mkdir()
    for name in ("spy", "keys/id"):
        (top / name).write_text("#!/bin/sh\ntouch ran\n")
        (top / name).chmod(0o755)
    git("config", key, value.format(top=top), cwd=top)
    said = refuse(top)
    assert said.startswith("git would log in with ")
    assert f"which {key if '://' in key else key.lower()} names, but builds can write to it" in said
    assert not (top / "ran").exists()


def test_an_address_that_is_a_command_is_not_obeyed(place: Path) -> None:
    """R69: https://git-scm.com/docs/git-remote-ext"""
    top = place / "clone"
    git("config", "protocol.ext.allow", "always", cwd=top)
    git("config", "remote.origin.url", f"ext::/usr/bin/touch {top}/ran", cwd=top)
    assert "transport 'ext' not allowed" in refuse(top)
    assert not (top / "ran").exists()


@pytest.mark.parametrize("name", ["GIT_ASKPASS", "SSH_ASKPASS", "GIT_SSH", "GIT_SSH_COMMAND"])
def test_a_program_of_a_variable_may_lie_where_no_build_writes(
    place: Path, ssh: Path, name: str
) -> None:
    """R69"""
    assert push(place / "clone", given={name: str(ssh)}) == {"v1"}
    spy = place / "clone" / "spy"
    spy.write_text("#!/bin/sh\n")
    assert f"which {name} names" in refuse(place / "clone", given={name: str(spy)})


def refuse(
    top: Path,
    meanwhile: Callable[[], object] = lambda: None,
    given: Mapping[str, str] | None = None,
) -> str:
    with pytest.raises(PackageError) as caught:
        push(top, meanwhile, given=given)
    return str(caught.value)


def test_a_git_that_takes_no_settings_from_variables_is_told(place: Path) -> None:
    """Before 2.31: https://github.com/git/git/blob/master/Documentation/RelNotes/2.31.0.txt"""
    program = place / "bin" / "git"
    program.parent.mkdir()
    real = shutil.which("git")
    program.write_text(f"#!/bin/sh\nunset GIT_CONFIG_COUNT\nexec '{real}' \"$@\"\n")
    program.chmod(0o755)
    said = refuse(place / "clone", given={"PATH": f"{program.parent}:{os.environ['PATH']}"})
    assert said == "this git cannot read settings from variables"


def test_a_git_that_builds_can_write_gets_no_login(place: Path) -> None:
    """R69"""
    program = place / "clone" / "git"
    program.symlink_to(str(shutil.which("git")))
    with pytest.raises(PathError, match=r"git is .*/clone/git, where builds can write"):
        push(place / "clone", given={"PATH": f"{program.parent}:{os.environ['PATH']}"})


@pytest.mark.parametrize("closed", [True, False])
def test_a_login_needs_a_directory_that_is_closed_to_builds(
    place: Path, monkeypatch: pytest.MonkeyPatch, *, closed: bool
) -> None:
    """R69: it is the runner's, that of all users, or one of this user's; the rest is refused."""
    made = durable.make_scratch
    tried: list[Path] = []

    def make(parent: Path, prefix: str) -> Path:
        tried.append(parent)
        if parent == Path("/var/tmp"):
            raise PermissionError(13, "Permission denied")
        return made(parent, prefix)

    monkeypatch.setattr(durable, "make_scratch", make)
    if closed:
        given = {"RUNNER_TEMP": str(place / "clone"), "XDG_RUNTIME_DIR": "", "HOME": str(place)}
        assert push(place / "clone", given=given) == {"v1"}
        assert tried == [Path("/var/tmp"), place]
        return
    with pytest.raises(PathError, match="none of RUNNER_TEMP, XDG_RUNTIME_DIR, XDG_STATE_HOME"):
        push(place / "clone", given={"HOME": str(place / "clone")})
