"""A step of a runner, with secrets, whose builds look for them wherever a process can look."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final

from integration import reactor
from processes import PATIENCE_S
from workspaces import ENTRYPOINT, Program

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

NOBODY: Final = 65534
COMMANDS: Final = {
    "GITHUB_ENV": "set_env",
    "GITHUB_PATH": "add_path",
    "GITHUB_STATE": "save_state",
    "GITHUB_OUTPUT": "set_output",
    "GITHUB_STEP_SUMMARY": "step_summary",
}
# What it finds goes into a file; who calls it says its name.
_SPY: Final = """\
import json, os, stat, sys
from pathlib import Path

TEMP, FOUND = Path({temp!r}), Path({found!r})


def tried(read):
    try:
        return read()
    except OSError as error:
        return error.strerror


def memory(pid):
    with open(f"/proc/{{pid}}/mem", "rb"):
        return "open"


def descriptor(path):
    status = path.stat()
    held = path.read_bytes()[:1 << 20] if stat.S_ISREG(status.st_mode) else b""
    return os.readlink(path) + held.decode(errors="replace")


def descriptors(pid):
    return [tried(lambda: descriptor(path)) for path in Path(f"/proc/{{pid}}/fd").iterdir()]


ancestors = []
pid = os.getppid()
while pid:
    ancestors.append(pid)
    pid = int(Path(f"/proc/{{pid}}/stat").read_text().rpartition(")")[2].split()[1])
pids = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
report = {{
    "own": dict(os.environ),
    "ancestors": ancestors,
    "environments": {{
        pid: tried(Path(f"/proc/{{pid}}/environ").read_bytes) for pid in pids
    }},
    "arguments": {{
        pid: tried(Path(f"/proc/{{pid}}/cmdline").read_bytes) for pid in ancestors
    }},
    "memory": {{pid: tried(lambda: memory(pid)) for pid in ancestors}},
    "descriptors": descriptors("self"),
    "of ancestors": {{pid: tried(lambda: descriptors(pid)) for pid in ancestors}},
}}
# By its well-known place, and by what the build was told.
for place in (TEMP, Path(os.environ.get("RUNNER_TEMP", TEMP))):
    directory = place / "_runner_file_commands"
    for path in directory.iterdir() if directory.is_dir() else ():
        with path.open("a") as file:
            file.write("\\nLD_PRELOAD=/evil.so\\nresult=forged\\n")
text = json.dumps(report, default=lambda value: value.decode(errors="replace"))
(FOUND / f"{{sys.argv[1]}}-{{os.getpid()}}.json").write_text(text)
"""


@dataclass(frozen=True)
class Step:
    """A runner's step, whose temporary directory has the files of two steps, this one and the one
    around it; `uid` is whom it runs as. `secret` is in all of its secrets and in those of no other
    step: a build of root's sees every process, those of the tests beside it included.
    """

    place: Path
    uid: int
    secret: str

    @property
    def workspace(self) -> Path:
        return self.place / "workspace"

    @property
    def spy(self) -> Path:
        return self.place / "spy.py"

    @property
    def registry(self) -> Path:
        return self.place / "registry"

    @property
    def temp(self) -> Path:
        return self.place / "_temp"

    @property
    def commands(self) -> Path:
        return self.temp / "_runner_file_commands"

    def command_file(self, variable: str) -> Path:
        return self.commands / f"{COMMANDS[variable]}_inner"

    def found(self) -> dict[str, dict[str, Any]]:
        """What each build has found, by what it is called."""
        return {
            path.stem.rpartition("-")[0]: json.loads(path.read_text())
            for path in (self.place / "found").iterdir()
        }

    def run(self, ecosystems: str, *more: str) -> tuple[int, subprocess.CompletedProcess[str]]:
        """As a runner does it, by a bash that the action's script is written for; with its pid."""
        script = self.place / "step.sh"
        argv = ["publish", str(self.workspace), "--ecosystem", ecosystems, *more]
        argv += ["--registry", f"dir:{self.registry}", "--retry-base-delay", "0.05s"]
        script.write_text(f"exec {shlex.join([*self._program(), *argv])}\n")
        self._give_away()
        with subprocess.Popen(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", str(script)],
            cwd=self.workspace,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            **self._user(),
        ) as process:
            out, err = process.communicate(timeout=PATIENCE_S)
        done = subprocess.CompletedProcess(process.args, process.returncode, out, err)
        return process.pid, done

    @property
    def _is_ours(self) -> bool:
        return self.uid == os.geteuid()

    def _program(self) -> list[str]:
        if self._is_ours:
            return [str(ENTRYPOINT)]
        return [*_python_of_all(), str(ENTRYPOINT.with_name("src") / "__main__.py")]

    def _environment(self) -> dict[str, str]:
        home = self.place / "home"
        given = Program(home, reactor.environment()).full_environment
        if not self._is_ours:
            given["XDG_CACHE_HOME"] = str(home / "cache")
            given["XDG_STATE_HOME"] = str(home / "state")
            given["PATH"] = os.defpath
            given["PYTHONPATH"] = str(Path(sys.prefix, "lib", _version(), "site-packages"))
            given["PYTHONDONTWRITEBYTECODE"] = "1"
        return {
            **given,
            "GITHUB_ACTIONS": "true",
            "RUNNER_TEMP": str(self.temp),
            **{variable: str(self.command_file(variable)) for variable in COMMANDS},
            **self._secrets(),
            # At that address nobody says who this job is.
            "RELEASEKIT_ATTESTATIONS": "off",
        }

    def _secrets(self) -> dict[str, str]:
        secret = self.secret
        return {
            "RELEASEKIT_PYPI_TOKEN": f"pypi-{secret}",
            "RELEASEKIT_NPM_TOKEN": f"npm_{secret}",
            "RELEASEKIT_CARGO_TOKEN": f"cio{secret}",
            "RELEASEKIT_MAVEN_PASSWORD": secret,
            "ACTIONS_ID_TOKEN_REQUEST_TOKEN": secret,
            "ACTIONS_ID_TOKEN_REQUEST_URL": f"https://example.org/?{secret}",
            "AWS_SECRET_ACCESS_KEY": secret,
            "GITHUB_TOKEN": f"ghs_{secret}",
            "DEPLOY_TO": f"https://user:{secret}@example.org",
            "OF_A_WORKFLOW": secret,
        }

    def _user(self) -> dict[str, Any]:
        return {} if self._is_ours else {"user": self.uid, "group": self.uid, "extra_groups": []}

    def _give_away(self) -> None:
        if not self._is_ours:
            for path in (self.place, *self.place.rglob("*")):
                os.chown(path, self.uid, self.uid, follow_symlinks=False)


@contextmanager
def step(uid: int) -> Iterator[Step]:
    """In a directory that its user can reach, as those of pytest are not."""
    with tempfile.TemporaryDirectory(prefix="releasekit-step-") as name:
        made = Step(Path(name), uid, f"5ecret-{token_hex(8)}")
        for path in (made.commands, made.place / "found", made.place / "home"):
            path.mkdir(parents=True)
        for prefix in COMMANDS.values():
            (made.commands / f"{prefix}_inner").write_text("")
            (made.commands / f"{prefix}_outer").write_text("")
        made.command_file("GITHUB_ENV").write_text("BEFORE=1\n")
        found = str(made.place / "found")
        made.spy.write_text(_SPY.format(temp=str(made.temp), found=found))
        yield made


def _version() -> str:
    return f"python{sys.version_info.major}.{sys.version_info.minor}"


def _python_of_all() -> list[str]:
    """An interpreter of our version that any user may start; ours may be in somebody's home."""
    ours = Path(sys.executable).resolve()
    for path in (ours, *map(Path, filter(None, [shutil.which(_version(), path=os.defpath)]))):
        if all(each.stat().st_mode & stat.S_IXOTH for each in (path, *path.parents)):
            return [str(path), "-u", "-X", "utf8"]
    raise AssertionError(f"no {_version()} that another user may start; Debian has one")


def users() -> Mapping[str, int]:
    """Root, where the tests are run by it, and somebody who is not."""
    ours = os.geteuid()
    return {"root": 0, "not root": NOBODY} if ours == 0 else {"not root": ours}
