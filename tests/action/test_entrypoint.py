"""entrypoint.sh as a user or a runner starts it, up to the first line of Python."""

from __future__ import annotations

import json
import marshal
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field, replace
from importlib.util import cache_from_source
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness.act import NETWORK, PROJECT, UV, copy_action, real_program
from integration.tools import require_closed
from processes import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

# Tells how it was started, in place of the program.
PROBE = """
import json, os, sys
import idna
import releasekit

def start():
    print(json.dumps({
        "pid": os.getpid(), "argv": sys.argv[1:], "prefix": sys.prefix,
        "version": sys.version_info[:2], "isolated": sys.flags.isolated,
        "utf8": sys.flags.utf8_mode, "idna": idna.__file__, "releasekit": releasekit.__file__,
        "environment": dict(os.environ),
    }))
"""
TOOLS = ("bash", "env", "rm")


@dataclass(frozen=True)
class Start:
    """A machine with this action on it: its programs, its state, its directory for the user."""

    action: Path
    programs: Path
    state: Path
    cwd: Path
    variables: Mapping[str, str] = field(default_factory=dict)

    def popen(self, *arguments: str, argv: Sequence[str] = ()) -> subprocess.Popen[str]:
        network = {name: value for name, value in os.environ.items() if NETWORK.fullmatch(name)}
        return subprocess.Popen(
            argv or [str(self.action / "entrypoint.sh"), *arguments],
            cwd=self.cwd,
            env={
                "PATH": str(self.programs),
                "XDG_STATE_HOME": str(self.state),
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
        return sorted(path.name for path in self.state.glob("releasekit/[!m]*"))


def mark(start: Start) -> Path:
    """What a poison leaves."""
    return start.cwd.parent / "the poison ran"


def poison(start: Start) -> str:
    return f"import os; open({str(mark(start))!r}, 'a').close()\n"


def add_module(environment: Path, code: str) -> None:
    _site(environment).joinpath("sitecustomize.py").write_text(code)


def add_pth(environment: Path, code: str) -> None:
    _site(environment).joinpath("a.pth").write_text(code)


def change_module(environment: Path, code: str) -> None:
    module = _site(environment) / "idna/__init__.py"
    module.write_text(code.ljust(module.stat().st_size))
    Path(cache_from_source(str(module))).write_bytes(b"")


def change_bytecode(environment: Path, code: str) -> None:
    module = _site(environment) / "idna/__init__.py"
    bytecode = Path(cache_from_source(str(module)))
    bytecode.write_bytes(
        bytecode.read_bytes()[:16] + marshal.dumps(compile(code, str(module), "exec"))
    )


def replace_interpreter(environment: Path, code: str) -> None:
    python = environment / "bin/python"
    real = python.resolve()
    python.unlink()
    python.write_text(f'#!/bin/sh\n"{real}" -c "{code}"\nexec "{real}" "$@"\n')
    python.chmod(0o755)


def replace_by_link(environment: Path, code: str) -> None:
    move_to_link(environment, code)
    add_module(environment, code)


def replace_by_copy(environment: Path, code: str) -> None:
    copy = environment.with_name("copy")
    shutil.copytree(environment, copy, symlinks=True)
    add_module(copy, code)
    shutil.rmtree(environment)
    copy.rename(environment)


def move_to_link(environment: Path, _code: str) -> None:
    """Nothing is changed yet."""
    elsewhere = environment.rename(Path(tempfile.mkdtemp(dir=environment.parents[2])) / "moved")
    environment.symlink_to(elsewhere)


def _site(environment: Path) -> Path:
    (found,) = environment.glob("lib/python*/site-packages")
    return found


HARMS: Mapping[str, Callable[[Path, str], None]] = {
    "a module is added": add_module,
    "a .pth is added": add_pth,
    "a module is changed": change_module,
    "bytecode is changed": change_bytecode,
    "the interpreter is replaced": replace_interpreter,
    "it is replaced by a link": replace_by_link,
    "it is replaced by a copy": replace_by_copy,
    "a link leads to it": move_to_link,
}


def step(start: Start, directory: Path) -> list[str]:
    """The command a runner makes of action.yml's `run` with `shell: bash`."""
    (directory / "step.sh").write_text('exec "$GITHUB_ACTION_PATH/entrypoint.sh"\n')
    bash = str(start.programs / "bash")
    return [bash, "--noprofile", "--norc", "-eo", "pipefail", str(directory / "step.sh")]


@pytest.fixture
def closed() -> Iterator[Path]:
    """A directory that no build could write; pytest's lie in /tmp."""
    with tempfile.TemporaryDirectory(prefix="releasekit-closed-", dir="/var/tmp") as name:
        yield Path(name)


@pytest.fixture
def start(tmp_path: Path, closed: Path) -> Start:
    """With uv, Python and the probe; nothing made yet, and spaces in every path. Of the packages
    there is one, which takes a tenth of the time.
    """
    made = Start(
        action=tmp_path / "the action",
        programs=closed / "some programs",
        state=closed / "a state",
        cwd=tmp_path / "user repo",
    )
    made.action.mkdir()
    made.programs.mkdir()
    made.cwd.mkdir()
    copy_action(made.action)
    (made.action / "src/releasekit/__main__.py").write_text(PROBE)
    lock = made.action / "requirements.lock"
    packages = re.split(r"\n(?=\S)", lock.read_text())
    (only,) = (each for each in packages if each.startswith("idna=="))
    lock.write_text(only + "\n")
    for name in TOOLS:
        (made.programs / name).symlink_to(real_program(name))
    (made.programs / "python3").symlink_to(real_program("python3"))
    (made.programs / "uv").symlink_to(UV)
    return made


def test_verifying_has_packages_of_its_own(start: Start) -> None:
    """R35: a release gets none of them."""
    lock = (start.action / "requirements.lock").read_text()
    (start.action / "requirements-verify.lock").write_text(f"# to verify\n{lock}")
    places = {
        start.probe("verify", "dist")["prefix"],
        start.having(RELEASEKIT_MODE="verify").probe()["prefix"],
        start.having(RELEASEKIT_MODE="verify").probe("plan")["prefix"],
        start.probe()["prefix"],
    }
    assert len(places) == len(start.environments) == 2


def without_uv(start: Start) -> Start:
    (start.programs / "uv").unlink()
    return start


def test_it_starts_isolated_in_an_environment_of_its_own(start: Start) -> None:
    found = start.probe("plan", "a b", "c\nd", "")
    assert found["argv"] == ["plan", "a b", "c\nd", ""]
    assert (found["isolated"], found["utf8"]) == (1, 1)
    assert Path(found["prefix"]).parent == start.state / "releasekit"
    assert Path(found["releasekit"]).is_relative_to(start.action)
    version = "{}.{}.{}".format(*sys.version_info[:3])
    (name,) = start.environments
    assert re.fullmatch(rf"[0-9a-f]{{16}}-{version}", name)


def test_the_step_s_first_process_becomes_python(start: Start) -> None:
    """R28: the runner signals only the process it started, which is a shell."""
    process = start.having(GITHUB_ACTION_PATH=str(start.action)).popen(
        argv=step(start, start.cwd.parent)
    )
    out, err = process.communicate(timeout=PATIENCE_S)
    assert json.loads(out)["pid"] == process.pid, err


def test_the_second_start_starts_nothing_but_the_program(start: Start) -> None:
    """No search for a Python, no uv, no pip: what is left takes an eighth of a second."""
    shutil.copy2(PROJECT / "src/releasekit/__main__.py", start.action / "src/releasekit")
    first = start.run("--version")
    few = start.cwd.parent / "few programs"
    few.mkdir()
    for name in ("bash", "env"):
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
    for place in ("idna/__init__.py", "releasekit.py", "json.py", "sitecustomize.py"):
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
    assert str(start.cwd) not in found["idna"]
    assert Path(found["prefix"]).parent == start.state / "releasekit"
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
    os.utime(start.state / "releasekit" / left, (0, 0))
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


def test_a_relative_state_directory_is_ignored(start: Start, tmp_path: Path) -> None:
    found = start.having(XDG_STATE_HOME="state", HOME=str(tmp_path / "home")).probe()
    assert Path(found["prefix"]).is_relative_to(tmp_path / "home/.local/state/releasekit")


@pytest.mark.parametrize("place", ["TMPDIR", "a cache", "the current directory", "a link"])
def test_a_state_that_builds_can_write_is_refused(start: Start, closed: Path, place: str) -> None:
    """One of them could make an environment there, and the record of it."""
    start = replace(start, cwd=closed / "user repo")
    start.cwd.mkdir()
    start = start.having(TMPDIR=str(closed / "t"), HOME=str(closed / "home"))
    state = {
        "TMPDIR": closed / "t/state",
        "a cache": closed / "home/.npm/state",
        "the current directory": start.cwd / "state",
        "a link": closed / "link",
    }[place]
    (closed / "t").mkdir()
    (closed / "home/.npm").mkdir(parents=True)
    (closed / "link").symlink_to(closed / "t/elsewhere")
    text = start.having(XDG_STATE_HOME=str(state)).refusal()
    assert f"error: XDG_STATE_HOME leads to where builds may write: {state}." in text
    assert not state.exists()
    assert start.having(XDG_STATE_HOME=str(closed / "home/.local/state")).probe()["isolated"] == 1


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
    """It goes into our own directory: the user's list of Pythons stays as it is."""
    (start.programs / "python3").unlink()
    start.program(
        "uv",
        f'echo "$UV_PYTHON_INSTALL_DIR|$*" >>"{tmp_path}/calls"\n'
        f'case "$1 $2" in "python install") ;; '
        f'"python find") echo "{real_program("python3")}" ;; *) exec "{UV}" "$@" ;; esac',
    )
    assert start.probe()["isolated"] == 1
    calls = (tmp_path / "calls").read_text()
    assert f"{start.state}/releasekit/python|python install" in calls
    assert "UV_PYTHON_INSTALL_DIR" not in start.probe()["environment"]


@pytest.mark.parametrize("has_pip", [True, False])
def test_the_pip_that_is_there_serves(start: Start, tmp_path: Path, *, has_pip: bool) -> None:
    """Where there is none, the environment gets one: that takes three seconds more."""
    machine = tmp_path / "a machine's python"
    make: list[Path | str] = [UV, "venv", "--quiet", "--no-project", machine]
    subprocess.run(
        [*make, "--python", real_program("python3"), *(["--seed"] if has_pip else [])], check=True
    )
    (start.programs / "python3").unlink()
    start = without_uv(start).having(RELEASEKIT_PYTHON_PATH=str(machine / "bin/python"))
    done = start.run()
    found = json.loads(done.stdout)
    assert "arning" not in done.stderr
    assert Path(found["idna"]).is_relative_to(found["prefix"])
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
    files = [path for path in start.state.rglob("site-packages/idna/*.py") if path.is_file()]
    assert files
    assert {path.stat().st_nlink for path in files} == {1}


def test_a_package_that_a_build_rewrote_in_uv_s_cache_is_not_installed(start: Start) -> None:
    """uv compares what it has unpacked there with no digest again."""
    home = start.state.parent / "home"
    cache, other, lock = home / ".cache/uv", home / "other", start.action / "requirements.lock"
    with_cache = {**os.environ, "UV_CACHE_DIR": str(cache)}
    make: list[Path | str] = [UV, "venv", "--quiet", "--no-project", other]
    install: list[Path | str] = [UV, "pip", "sync", "--quiet", "--python", other, lock]
    for command in (make, install):
        subprocess.run(command, env=with_cache, check=True)
    (unpacked,) = cache.rglob("idna/__init__.py")
    unpacked.unlink()
    unpacked.write_text(poison(start))
    for variables in ({"HOME": str(home)}, {"UV_CACHE_DIR": str(cache)}):
        started = start.having(XDG_STATE_HOME=str(home / next(iter(variables))), **variables)
        assert Path(started.probe()["idna"]).is_relative_to(home)
    assert not mark(start).exists()


def test_an_environment_that_was_changed_is_made_again(start: Start) -> None:
    """R50: also where a build sets all times as they were, or those of the record into the future,
    which no sandbox forbids.
    """
    environment = Path(start.probe()["prefix"])
    for name, harm in HARMS.items():
        before = {path: path.lstat() for path in environment.rglob("*")}
        harm(environment, poison(start))
        for path, status in before.items():
            if path.exists():
                os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        for record in start.state.glob("releasekit/made.*"):
            os.utime(record, (2**32, 2**32))
        second = start.run()
        assert not mark(start).exists(), name
        assert json.loads(second.stdout)["prefix"] == str(environment), name
        (line,) = second.stderr.splitlines()
        assert line.endswith(f"not as it was made; making it again, {environment}"), name
        third = start.run()
        assert (third.returncode, third.stderr) == (0, ""), name
        assert start.environments == [environment.name], name


@pytest.mark.parametrize("place", ["under a file", "a link", "unset"])
def test_an_environment_without_a_record_is_not_used_again(start: Start, place: str) -> None:
    """A build could have made it, or the record where the link leads."""
    runner = start.having(GITHUB_ACTIONS="true", RUNNER_TEMP=str(start.cwd.parent / "_temp"))
    if place == "under a file":
        start.state.write_text("")
    elif place == "unset":
        runner = runner.having(XDG_STATE_HOME="")
    runner.run()
    if place == "a link":
        (start.state / "releasekit").rename(start.state / "kept")
        (start.state / "releasekit").symlink_to("kept")
    done = runner.run()
    assert json.loads(done.stdout)["isolated"] == 1
    again, record = done.stderr.splitlines()
    assert "not as it was made; making it again" in again
    assert record.startswith("ReleaseKit: no record of it can be kept in ")
    assert record.endswith("; the next start makes it again")


@pytest.mark.parametrize("with_uv", [True, False])
def test_what_is_made_has_its_bytecode_and_lies_in_no_place_of_builds_meanwhile(
    start: Start, *, with_uv: bool
) -> None:
    """Neither packages, nor where they are unpacked to; and no start writes into it later."""
    beside = start.cwd.parent
    given = {name: str(beside / name) for name in ("TMPDIR", "UV_CACHE_DIR", "PIP_CACHE_DIR")}
    for path in given.values():
        Path(path).mkdir()
    if with_uv:
        log = beside / "seen"
        start.program("uv", f'echo "$TMPDIR" >>"{log}"; exec "{UV}" "$@"')
    else:
        log = beside / "pip.log"
        start = without_uv(start)
    found = start.having(PIP_LOG=str(log), **given).probe()
    seen = [line.rpartition("directory: ")[2] for line in log.read_text().splitlines()]
    places = [line for line in seen if line.startswith("/")]
    assert places
    assert all(line.startswith(f"{start.state}/releasekit/building.") for line in places)
    assert [path for each in given.values() for path in Path(each).iterdir()] == []
    assert found["environment"] == found["environment"] | given
    modules = [*_site(Path(found["prefix"])).rglob("*.py")]
    assert modules
    assert [it for it in modules if not Path(cache_from_source(str(it))).exists()] == []


def test_the_system_s_programs_come_before_those_of_path(start: Start) -> None:
    """A build may write to a directory of it."""
    require_closed()  # no uv is taken from elsewhere
    for name in ("find", "sort", "sha256sum", "mkdir", "mktemp", "rm", "mv"):
        start.program(name, f'echo {name} >>"{mark(start)}"; exec /usr/bin/{name} "$@"')
    environment = Path(start.probe()["prefix"])
    mark(start).unlink(missing_ok=True)  # uv's and Python's children have PATH as it is
    assert start.probe()["environment"]["PATH"] == str(start.programs)
    (environment / "lib/added").touch()
    start.run()
    assert not mark(start).exists()


@pytest.mark.parametrize("system", ["msys", "cygwin"])
def test_windows_is_told_that_it_is_not_supported(start: Start, system: str) -> None:
    done = start.having(OSTYPE=system).run()
    assert done.returncode == 2
    assert "error: ReleaseKit runs on Linux and macOS, not on Windows. [RK-227]" in done.stderr
    assert not start.state.exists()


def fake(start: Start, directory: Path, name: str = "python3") -> None:
    """A program that leaves a mark and otherwise is the real one."""
    directory.mkdir(parents=True, exist_ok=True)
    real = {"python3": real_program("python3"), "uv": UV}[name]
    program = directory / name
    program.write_text(f'#!/bin/sh\necho "$0" >>"{mark(start)}"\nexec "{real}" "$@"\n')
    program.chmod(0o755)


# Directories that builds may write, below that of a start, and what says of them that they are.
OPEN: Mapping[str, str] = {
    "user repo/.venv/bin": "",
    "user repo": "",
    "w/bin": "GITHUB_WORKSPACE={}/w",
    "project/bin": "CI_PROJECT_DIR={}/project",
    "directory/bin": "RELEASEKIT_WORKING_DIRECTORY=../directory",
    "t1/bin": "TMPDIR={}/t1",
    "t2/bin": "TEMP={}/t2/",
    "t3/bin": "TMP={}/t3",
    "home/.cache/uv/archive-v0/x/bin": "HOME={}/home",
    "home/.npm/_npx/x/node_modules/.bin": "HOME={}/home",
    "moved cache/bin": "XDG_CACHE_HOME={}/moved cache",
    "moved cache of uv/bin": "UV_CACHE_DIR={}/moved cache of uv",
    "s/work/bin": "RELEASEKIT_STATE_DIRECTORY={}/s",
    "home/p/bin": "RELEASEKIT_BUILD_SANDBOX_PATHS=/no\n~/p",
    "argument/bin": "",
    "option/bin": "",
}


def test_no_python_and_uv_of_an_open_place_is_started(start: Start, closed: Path) -> None:
    """Outside of the sandbox they could read the secrets of the shell that started them. A build
    can change a time of the environment's files, so that another one is made.
    """
    start = replace(start, cwd=closed / "user repo")
    start.cwd.mkdir()
    said = dict(each.format(closed).split("=") for each in OPEN.values() if each)
    path = ":".join(str(closed / place) for place in OPEN)
    start = start.having(**said, PATH=f"{path}:{start.programs}", RELEASEKIT_PYPI_TOKEN="5ecret")
    for place in OPEN:
        for program in ("python3", "uv"):
            fake(start, closed / place, program)
    arguments = (f"{closed}/argument", f"--working-directory={closed}/option")
    environment = Path(start.probe("publish", *arguments)["prefix"])
    os.utime(_site(environment) / "idna/__init__.py", (1, 1))
    again = start.run("publish", *arguments)
    assert "making it again" in again.stderr, again.stderr
    assert json.loads(again.stdout)["environment"]["PATH"].startswith(path)
    assert not mark(start).exists(), mark(start).read_text()


@pytest.mark.parametrize("git", ["beside", "further up", "taken away"])
def test_a_start_in_a_subdirectory_takes_no_python_of_the_workspace(
    start: Start, closed: Path, git: str
) -> None:
    """A build can take away a `.git`, but not the user's home."""
    fake(start, closed / "home/w/.venv/bin")
    below = closed / "home/w/packages/a"
    below.mkdir(parents=True)
    variables = {"PATH": f"{closed / 'home/w/.venv/bin'}:{start.programs}"}
    if git == "taken away":
        variables["HOME"] = str(closed / "home")
    else:
        (closed / ("home/.git" if git == "further up" else "home/w/.git")).mkdir()
        (below / ".git").write_text("gitdir: ../../.git/modules/a\n")
    replace(start, cwd=below).having(**variables).probe()
    assert not mark(start).exists()


def test_a_python_beside_the_workspace_is_taken(start: Start, closed: Path) -> None:
    """Also of the home that both lie in."""
    start = replace(start, cwd=closed / "home/w")
    fake(start, closed / "home/bin")
    (start.cwd / ".git").mkdir(parents=True)
    start.having(PATH=f"{closed}/home/bin:{start.programs}", HOME=str(closed / "home")).probe()
    assert mark(start).exists()


@pytest.mark.skipif(sys.platform != "linux", reason="there is no /dev/shm")
def test_no_python_in_shared_memory_is_started(start: Start) -> None:
    with tempfile.TemporaryDirectory(prefix="releasekit-", dir="/dev/shm") as shared:
        fake(start, Path(shared))
        start.having(PATH=f"{shared}:{start.programs}").probe()
    assert not mark(start).exists()


def test_no_spelling_of_path_leads_to_an_open_place(start: Start) -> None:
    fake(start, start.cwd)
    fake(start, start.cwd / "bin")
    path = f":.:bin:{start.cwd}/../user repo/bin:/tmp/../{start.cwd}/bin:{start.programs}"
    start.having(PATH=path).probe()
    assert not mark(start).exists()


def test_no_link_leads_to_an_open_place(start: Start, closed: Path) -> None:
    """Neither by its end nor through one, which a build could replace."""
    fake(start, start.cwd / "bin")
    (closed / "directory").symlink_to(start.cwd / "bin")
    fake(start, closed / "elsewhere")
    (start.cwd / "current").symlink_to(closed / "elsewhere")
    ahead = [closed / each for each in ("program", "on the way", "relative", "to itself")]
    for each in ahead:
        each.mkdir()
    program, on_the_way, relative, to_itself = (each / "python3" for each in ahead)
    program.with_name("another").symlink_to(start.cwd / "bin/python3")
    program.symlink_to("another")
    on_the_way.symlink_to(start.cwd / "current/python3")
    relative.symlink_to(os.path.relpath(start.cwd / "bin/python3", relative.parent.resolve()))
    to_itself.symlink_to("python3")
    path = ":".join(map(str, (closed / "directory", *ahead, start.programs)))
    start.having(PATH=path).probe()
    assert not mark(start).exists()


def test_the_root_as_the_current_directory_leaves_pythons(start: Start) -> None:
    assert replace(start, cwd=Path("/")).probe()["isolated"] == 1


def test_no_python_but_one_in_an_open_place(start: Start) -> None:
    fake(start, start.cwd)
    (start.programs / "python3").unlink()
    text = without_uv(start).having(PATH=f"{start.cwd}:{start.programs}").refusal()
    assert "in the workspace, in /tmp or in a cache is not taken" in text
    assert "python-path" in text
    assert not mark(start).exists()


@pytest.mark.parametrize("python", ["there", "fetched"])
def test_uv_and_what_may_be_a_python_see_no_secret_of_the_release(
    start: Start, tmp_path: Path, python: str
) -> None:
    """R50: but what an index may ask for; and the program sees all."""
    if python == "fetched":
        (start.programs / "python3").unlink()
    else:
        start.program(
            "python3",
            f'env >>"{tmp_path}/seen"\n'
            f'case "$*" in *version_info*) echo "3.11.0 $0" ;; '
            f'*) exec "{real_program("python3")}" "$@" ;; esac',
        )
    start.program("python3.11", f'env >>"{tmp_path}/seen"; exit 1')
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
        ({"XDG_STATE_HOME": ""}, "HOME is not set"),
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
        RUNNER_TEMP=str(start.state),
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
        RUNNER_TEMP=str(start.state),
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
