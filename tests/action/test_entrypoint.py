"""entrypoint.sh as a user or a runner starts it, up to the first line of Python."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from action.runner import NETWORK, PROJECT, UV, copy_action, real_program, uv_cache

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Tells how it was started, in place of the program.
PROBE = """
import json, os, sys
import httpx, yaml
import releasekit

def start():
    print(json.dumps({
        "pid": os.getpid(), "argv": sys.argv[1:], "prefix": sys.prefix,
        "version": sys.version_info[:2], "isolated": sys.flags.isolated,
        "utf8": sys.flags.utf8_mode, "yaml": yaml.__file__, "releasekit": releasekit.__file__,
        "environment": dict(os.environ),
    }))
"""
TOOLS = ("bash", "sha256sum", "mkdir", "mktemp", "find", "mv", "rm", "readlink", "env")


@dataclass(frozen=True)
class Start:
    """A machine with this action on it: its programs, its cache, its directory for the user."""

    action: Path
    programs: Path
    cache: Path
    cwd: Path
    variables: Mapping[str, str] = field(default_factory=dict)

    def popen(self, *arguments: str, argv: Sequence[str] = ()) -> subprocess.Popen[str]:
        network = {name: value for name, value in os.environ.items() if NETWORK.fullmatch(name)}
        return subprocess.Popen(
            argv or [str(self.action / "entrypoint.sh"), *arguments],
            cwd=self.cwd,
            env={
                "PATH": str(self.programs),
                "XDG_CACHE_HOME": str(self.cache),
                "UV_CACHE_DIR": uv_cache(),
                **network,
                **self.variables,
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        process = self.popen(*arguments)
        out, err = process.communicate(timeout=120)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def probe(self, *arguments: str) -> dict[str, Any]:
        done = self.run(*arguments)
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def refusal(self, *arguments: str) -> str:
        done = self.run(*arguments)
        assert done.returncode == 2, done.stdout + done.stderr
        return done.stderr

    def program(self, name: str, script: str) -> Path:
        path = self.programs / name
        path.unlink(missing_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path

    def having(self, **variables: str) -> Start:
        return replace(self, variables={**self.variables, **variables})

    @property
    def environments(self) -> list[str]:
        place = self.cache / "releasekit"
        return sorted(path.name for path in place.iterdir()) if place.exists() else []


def step(start: Start, directory: Path) -> list[str]:
    """The command a runner makes of action.yml's `run` with `shell: bash`."""
    (directory / "step.sh").write_text('exec "$GITHUB_ACTION_PATH/entrypoint.sh"\n')
    bash = str(start.programs / "bash")
    return [bash, "--noprofile", "--norc", "-eo", "pipefail", str(directory / "step.sh")]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """With uv, Python and the probe; nothing made yet, and spaces in every path."""
    made = Start(
        action=tmp_path / "the action",
        programs=tmp_path / "some programs",
        cache=tmp_path / "a cache",
        cwd=tmp_path / "user repo",
    )
    made.action.mkdir()
    made.programs.mkdir()
    made.cwd.mkdir()
    copy_action(made.action)
    (made.action / "src/releasekit/__main__.py").write_text(PROBE)
    for name in TOOLS:
        (made.programs / name).symlink_to(real_program(name))
    (made.programs / "python3").symlink_to(real_program("python3"))
    (made.programs / "uv").symlink_to(UV)
    return made


def without_uv(start: Start) -> Start:
    (start.programs / "uv").unlink()
    return start


def test_it_starts_isolated_in_an_environment_of_its_own(start: Start) -> None:
    found = start.probe("plan", "a b", "c\nd", "")
    assert found["argv"] == ["plan", "a b", "c\nd", ""]
    assert (found["isolated"], found["utf8"]) == (1, 1)
    assert Path(found["prefix"]).parent == start.cache / "releasekit"
    assert Path(found["releasekit"]).is_relative_to(start.action)
    version = "{}.{}.{}".format(*sys.version_info[:3])
    (name,) = start.environments
    assert re.fullmatch(rf"[0-9a-f]{{16}}-{version}", name)


def test_the_step_s_first_process_becomes_python(start: Start) -> None:
    """R28: the runner signals only the process it started, which is a shell."""
    process = start.having(GITHUB_ACTION_PATH=str(start.action)).popen(
        argv=step(start, start.cwd.parent)
    )
    out, err = process.communicate(timeout=60)
    assert json.loads(out)["pid"] == process.pid, err


def test_the_second_start_starts_nothing_but_the_program(start: Start) -> None:
    """No search for a Python, no uv, no pip: what is left takes a tenth of a second."""
    shutil.copy2(PROJECT / "src/releasekit/__main__.py", start.action / "src/releasekit")
    first = start.run("--version")
    few = start.cwd.parent / "few programs"
    few.mkdir()
    for name in ("bash", "env", "sha256sum"):
        (few / name).symlink_to(real_program(name))
    second = start.having(PATH=str(few)).run("--version")
    assert second.stdout.startswith("releasekit "), second.stderr
    assert (second.stdout, second.stderr) == (first.stdout, "")


@pytest.mark.parametrize("with_uv", [True, False])
def test_nothing_in_the_user_s_repository_or_environment_is_heeded(
    start: Start, *, with_uv: bool
) -> None:
    if not with_uv:
        start = without_uv(start)
    evil = "raise SystemExit('the wrong module')\n"
    for place in ("yaml/__init__.py", "httpx.py", "releasekit.py", "json.py", "sitecustomize.py"):
        path = start.cwd / place
        path.parent.mkdir(exist_ok=True)
        path.write_text(evil)
    (start.cwd / "pyproject.toml").write_text('[tool.uv]\nrequired-version = "==0.0.1"\n')
    (start.cwd / "uv.toml").write_text('index-url = "http://127.0.0.1:1/simple"\n')
    (start.cwd / "pip.conf").write_text("[global]\nindex-url = http://127.0.0.1:1/simple\n")
    (start.cwd / ".python-version").write_text("2.7\n")
    hostile = start.having(
        PYTHONPATH=str(start.cwd),
        PYTHONHOME="/nowhere",
        PYTHONSTARTUP="/nowhere",
        VIRTUAL_ENV=str(start.cwd),
        PIP_TARGET=str(start.cwd / "target"),
        PIP_USER="1",
        PIP_REQUIRE_VIRTUALENV="1",
        UV_CONSTRAINT="/nowhere",
        UV_PYTHON="2.7",
        UV_PROJECT=str(start.cwd),
    )
    before = sorted(start.cwd.rglob("*"))
    found = hostile.probe()
    assert str(start.cwd) not in found["yaml"]
    assert Path(found["prefix"]).parent == start.cache / "releasekit"
    assert sorted(start.cwd.rglob("*")) == before
    # What the program's children may need is still there.
    assert found["environment"]["PYTHONPATH"] == str(start.cwd)


def test_two_at_once_both_work(start: Start) -> None:
    processes = [start.popen("plan") for _ in range(3)]
    for process in processes:
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        assert json.loads(out)["argv"] == ["plan"]
    assert len(start.environments) == 1


def test_a_killed_start_leaves_nothing_half_made(start: Start) -> None:
    ready = start.cwd / "ready"
    os.mkfifo(ready)
    start.program("uv", f'echo started >"{ready}"; exec sleep 600')
    (start.programs / "sleep").symlink_to(real_program("sleep"))
    process = start.popen()
    assert ready.read_text() == "started\n"
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    (left,) = start.environments
    assert left.startswith("building.")
    # The next start works, and sweeps up once nobody can still be at it.
    os.utime(start.cache / "releasekit" / left, (0, 0))
    start.program("uv", f'exec "{UV}" "$@"')
    assert start.probe()["isolated"] == 1
    assert [name for name in start.environments if name.startswith("building.")] == []


def test_a_terminated_start_cleans_up(start: Start) -> None:
    ready = start.cwd / "ready"
    os.mkfifo(ready)
    start.program("uv", f'echo started >"{ready}"; exec sleep 600')
    (start.programs / "sleep").symlink_to(real_program("sleep"))
    process = start.popen()
    assert ready.read_text() == "started\n"
    os.killpg(process.pid, signal.SIGTERM)
    process.communicate()
    assert process.returncode == 143
    assert start.environments == []


def test_an_environment_whose_python_is_gone_is_made_again(start: Start) -> None:
    python = Path(start.probe()["prefix"]) / "bin/python"
    python.unlink()
    python.symlink_to("/nowhere")
    assert start.probe()["isolated"] == 1
    assert len(start.environments) == 1


def test_another_lock_file_is_another_environment(start: Start) -> None:
    start.probe()
    with (start.action / "requirements.lock").open("a") as lock:
        lock.write("# changed\n")
    start.probe()
    assert len(start.environments) == 2


def test_it_may_be_started_through_symlinks(start: Start, tmp_path: Path) -> None:
    (tmp_path / "relative").symlink_to("the action/entrypoint.sh")
    (tmp_path / "absolute").symlink_to(tmp_path / "relative")
    linked = tmp_path / "linked"
    linked.mkdir()
    (linked / "entrypoint.sh").symlink_to("../absolute")
    assert replace(start, action=linked).probe("x")["argv"] == ["x"]


def test_on_a_runner_the_environment_lasts_as_long_as_the_job(start: Start, tmp_path: Path) -> None:
    temp = tmp_path / "_temp"
    temp.mkdir()
    found = start.having(GITHUB_ACTIONS="true", RUNNER_TEMP=str(temp)).probe()
    assert Path(found["prefix"]).is_relative_to(temp)
    assert start.environments == []


def test_a_relative_cache_directory_is_ignored(start: Start, tmp_path: Path) -> None:
    found = start.having(XDG_CACHE_HOME="cache", HOME=str(tmp_path / "home")).probe()
    assert Path(found["prefix"]).is_relative_to(tmp_path / "home/.cache/releasekit")


def test_an_old_or_broken_python_is_passed_over(start: Start) -> None:
    (start.programs / "python3").rename(start.programs / "python3.12")
    start.program("python3", "echo 'pyenv: python3: command not found' >&2; exit 127")
    start.program("python3.14", "exit 0")
    assert start.probe()["isolated"] == 1


def test_a_chosen_python_is_used(start: Start, tmp_path: Path) -> None:
    chosen = tmp_path / "my python"
    (start.programs / "python3").rename(chosen)
    assert start.having(RELEASEKIT_PYTHON_PATH=str(chosen)).probe()["version"] == [
        *sys.version_info[:2]
    ]


def test_uv_fetches_a_python_where_there_is_none(start: Start, tmp_path: Path) -> None:
    """It goes into our own cache: the user's list of Pythons stays as it is."""
    (start.programs / "python3").unlink()
    start.program(
        "uv",
        f'echo "$UV_PYTHON_INSTALL_DIR|$*" >>"{tmp_path}/calls"\n'
        f'case "$1 $2" in "python install") ;; '
        f'"python find") echo "{real_program("python3")}" ;; *) exec "{UV}" "$@" ;; esac',
    )
    assert start.probe()["isolated"] == 1
    calls = (tmp_path / "calls").read_text()
    assert f"{start.cache}/releasekit/python|python install" in calls
    assert "UV_PYTHON_INSTALL_DIR" not in start.probe()["environment"]


@pytest.mark.parametrize("has_pip", [True, False])
def test_the_pip_that_is_there_serves(start: Start, tmp_path: Path, *, has_pip: bool) -> None:
    """Where there is none, the environment gets one: that takes three seconds more."""
    machine = tmp_path / "a machine's python"
    options = [] if has_pip else ["--without-pip"]
    subprocess.run([real_program("python3"), "-m", "venv", *options, str(machine)], check=True)
    (start.programs / "python3").unlink()
    start = without_uv(start).having(RELEASEKIT_PYTHON_PATH=str(machine / "bin/python"))
    done = start.run()
    found = json.loads(done.stdout)
    assert "arning" not in done.stderr
    assert Path(found["yaml"]).is_relative_to(found["prefix"])
    own = [*Path(found["prefix"]).glob("lib/python*/site-packages/pip")]
    assert bool(own) is not has_pip


def test_index_and_wheels_are_passed_on(start: Start, tmp_path: Path) -> None:
    start.program(
        "uv",
        f'echo "$UV_DEFAULT_INDEX|$UV_INDEX|$*" >>"{tmp_path}/calls"\n'
        f'unset UV_DEFAULT_INDEX\nexec "{UV}" "$@"',
    )
    (tmp_path / "some wheels").mkdir()
    (tmp_path / "more").mkdir()
    start.having(
        RELEASEKIT_INDEX_URL="https://mirror.example/simple/",
        RELEASEKIT_FIND_LINKS=f"{tmp_path}/some wheels\n\n{tmp_path}/more\n",
        UV_INDEX="https://other.example/simple/",
    ).probe()
    sync = (tmp_path / "calls").read_text().splitlines()[-1]
    assert sync.startswith("https://mirror.example/simple/||pip sync")
    assert f"--find-links {tmp_path}/some wheels --find-links {tmp_path}/more" in sync


def test_no_file_of_the_environment_is_in_a_cache_too(start: Start) -> None:
    """R50: builds may write to uv's cache, and a hard link would be one file with two names."""
    start.probe()
    files = [path for path in start.cache.rglob("site-packages/httpx/*.py") if path.is_file()]
    assert files
    assert {path.stat().st_nlink for path in files} == {1}


@pytest.mark.parametrize("python", ["there", "fetched"])
def test_uv_sees_no_secret_of_the_release(start: Start, tmp_path: Path, python: str) -> None:
    """R50: but what an index may ask for; and the program sees all."""
    if python == "fetched":
        (start.programs / "python3").unlink()
    start.program(
        "uv",
        f'env >>"{tmp_path}/seen"\n'
        f'case "$1 $2" in "python install") ;; '
        f'"python find") echo "{real_program("python3")}" ;; *) exec "{UV}" "$@" ;; esac',
    )
    secrets = {
        "RELEASEKIT_PYPI_TOKEN": "5ecret",
        "RELEASEKIT_MAVEN_PASSWORD": "5ecret",
        "RELEASEKIT_FUTURE": "5ecret",
        "ACTIONS_ID_TOKEN_REQUEST_URL": "https://5ecret.example",
        "NODE_AUTH_TOKEN": "5ecret\nANOTHER=5ecret",
        "MAVEN_GPG_PASSPHRASE": "5ecret",
        "GH_TOKEN": "5ecret",
    }
    kept = {"UV_INDEX_OURS_PASSWORD": "for the index", "AWS_SECRET_ACCESS_KEY": "for a keyring"}
    found = start.having(**secrets, **kept).probe()
    seen = (tmp_path / "seen").read_text()
    assert "5ecret" not in seen
    assert all(f"{name}={value}\n" in seen for name, value in kept.items())
    assert found["environment"] == found["environment"] | secrets | kept


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({"RELEASEKIT_PYTHON_PATH": "/nowhere"}, "input python-path: /nowhere is no Python 3.11"),
        ({"RELEASEKIT_UV_PATH": "/nowhere"}, "input uv-path: /nowhere cannot be run"),
        ({"XDG_CACHE_HOME": ""}, "HOME is not set"),
    ],
)
def test_a_mistake_is_named(start: Start, variables: dict[str, str], says: str) -> None:
    text = start.having(**variables).refusal()
    assert says in text
    assert len(text.strip().splitlines()) == 3
    assert text.strip().endswith("#rk-227")


@pytest.mark.parametrize("variable", ["RELEASEKIT_PYTHON_PATH", "RELEASEKIT_UV_PATH"])
def test_a_path_is_no_command(start: Start, variable: str, tmp_path: Path) -> None:
    """R35: to the runner or the terminal, however it is written."""
    hostile = (
        "/no\n::add-path::/evil\r::set-env::x%0A::stop-commands::y ##[add-path]/z \x1b[2J\u202ei"
    )
    text = start.having(
        GITHUB_ACTIONS="true",
        GITHUB_OUTPUT=str(tmp_path / "output"),
        RUNNER_TEMP=str(start.cache),
        **{variable: hostile},
    ).refusal()
    *_, error, advice, page, command = text.splitlines()
    assert error.startswith("error: input ")
    assert advice.startswith("  ")
    assert page.startswith("  https://")
    assert command.startswith("::error title=ReleaseKit [RK-227]::input ")
    assert "%250A::stop-commands" in command
    assert not any(line.startswith("::add") or "##[" in line for line in text.splitlines())
    assert all(32 <= ord(character) < 127 for line in text.splitlines() for character in line)


def test_no_python_and_no_uv(start: Start) -> None:
    (start.programs / "python3").unlink()
    text = without_uv(start).refusal()
    assert text.startswith("error: there is no Python 3.11 or later on PATH, and no uv to fetch")


def test_an_index_out_of_reach(start: Start, tmp_path: Path) -> None:
    output = tmp_path / "output"
    start.program("uv", "echo 'no route to host' >&2; exit 1")
    text = start.having(
        GITHUB_ACTIONS="true",
        GITHUB_OUTPUT=str(output),
        RUNNER_TEMP=str(start.cache),
        PIP_FIND_LINKS=str(tmp_path),
        PIP_NO_INDEX="1",
    ).refusal()
    assert "no route to host" in text
    assert "::error title=ReleaseKit [RK-227]::the environment for ReleaseKit could not" in text
    assert output.read_text() == "result=failure\n"
    assert start.environments == []


def test_a_checkout_without_its_lock_file(start: Start) -> None:
    (start.action / "requirements.lock").unlink()
    assert "requirements.lock cannot be read" in start.refusal()
    assert start.environments == []
