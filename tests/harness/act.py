"""A repository of a user, and a runner without GitHub: nektos/act, on this machine, no Docker."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from outside import make_outside
from releasekit.problems import OWN_REPOSITORY
from workspaces import STATE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

PROJECT: Final = Path(__file__).parents[2]
ACT: Final = Path(sys.executable).with_name("act")
UV: Final = Path(sys.executable).with_name("uv")
OWN_NAME: Final = f"{OWN_REPOSITORY}@v1"
# How a machine reaches its package indexes; a runner's steps see nothing else of this environment.
NETWORK: Final = re.compile(r"(PIP|UV|SSL)_\w+|\w+_PROXY|\w+_proxy|REQUESTS_CA_BUNDLE")

# Of a machine that is no new one for each job; the first job finds nothing there.
PREPARE: Final = (
    f'(umask 077; mkdir -p "$RUNNER_TEMP" "{STATE}/releasekit");'
    f' ln -sfn "{STATE}/releasekit" "$RUNNER_TEMP/releasekit"'
)

# act reads what a step says in a thread, and does not wait for that when the step fails.
# https://github.com/nektos/act/blob/v0.2.87/pkg/container/host_environment.go#L337
PATIENT_BASH: Final = """\
#!{bash}
{prepare}
"{bash}" "$@" && exit
status=$?
echo "the end of what $$ said"
for _ in {{1..1000}}; do
    grep -qF "the end of what $$ said" "{log}" && break
    sleep 0.02
done
exit $status
"""


@dataclass(frozen=True)
class Run:
    """What a workflow did, from act's events."""

    status: int
    events: tuple[Mapping[str, Any], ...]

    def job(self, job: str) -> str:
        """ "success", "failure", or nothing when it did not run."""
        results = [e["jobResult"] for e in self.events if e["jobID"] == job and "jobResult" in e]
        return results[-1] if results else ""

    def outputs(self, job: str, step: str) -> dict[str, str]:
        """What later steps and jobs see of a step: empty outputs left out."""
        return {
            event["name"]: event["arg"]
            for event in self._of(job, step)
            if event.get("command") == "set-output" and event["arg"]
        }

    def summary(self, job: str, step: str) -> str:
        found = [e["content"] for e in self._of(job, step) if e.get("command") == "summary"]
        return found[-1] if found else ""

    def log(self, job: str, step: str = "") -> str:
        return "".join(
            event["msg"]
            for event in self.events
            if event["jobID"] == job
            and event.get("raw_output")
            and (not step or event["stepID"][0] == step)
        )

    @property
    def everything(self) -> str:
        return json.dumps(self.events)

    @property
    def shown(self) -> str:
        """All that people get to see: everything but what says what to mask."""
        return json.dumps([e for e in self.events if e.get("command") != "add-mask"])

    def _of(self, job: str, step: str) -> Iterable[Mapping[str, Any]]:
        return (e for e in self.events if e["jobID"] == job and e.get("stepID") == [step])


@dataclass(frozen=True)
class Repository:
    """A git repository, and a directory beside it for what the runner needs.

    `with_uv` decides whether a uv is on the steps' PATH, `is_new` whether the action has to make
    its environment in each job.
    """

    root: Path
    beside: Path
    with_uv: bool = True
    is_new: bool = False

    def run(
        self, *arguments: str, commit: bool = True, environment: Mapping[str, str] | None = None
    ) -> Run:
        """`act ARGUMENTS`, with stubs for everything remote; all steps have `environment`."""
        if commit:
            git(self.root, "add", "--all")
            git(self.root, "commit", "--quiet", "--allow-empty", "--message", "Work")
        argv = [str(ACT), *arguments, "-P", "ubuntu-latest=-self-hosted", "--no-cache-server"]
        argv += ["--json", "--local-repository", f"{OWN_NAME}={own_action(self.beside)}"]
        for name, stub in stubs(self.beside).items():
            argv += ["--local-repository", f"{name}={stub}"]
        passed = {name: value for name, value in os.environ.items() if NETWORK.fullmatch(name)}
        passed.setdefault("UV_CACHE_DIR", uv_cache())
        if not self.is_new:
            passed["XDG_STATE_HOME"] = str(STATE)
        for name, value in {**passed, **(environment or {})}.items():
            argv += ["--env", f"{name}={value}"]
        home = self.beside / "home"
        home.mkdir(exist_ok=True)
        with self._log.open("w") as log:
            done = subprocess.run(
                argv,
                cwd=self.root,
                env={"HOME": str(home), "PATH": f"{self.programs}:/usr/bin:/bin"},
                stdout=log,
                stderr=subprocess.PIPE,
                text=True,
                timeout=300,
                check=False,
            )
        said = self._log.read_text(encoding="utf-8")
        lines = (line for line in said.splitlines() if line.startswith("{"))
        events = tuple(event for event in map(json.loads, lines) if "jobID" in event)
        assert events, said + done.stderr
        return Run(done.returncode, events)

    def workflow(self, text: str) -> None:
        path = self.root / ".github/workflows/test.yml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def add_programs(self, **programs: Path) -> None:
        """Put these on the steps' PATH, under their names."""
        for name, program in programs.items():
            (self.programs / name).symlink_to(program)

    @cached_property
    def programs(self) -> Path:
        """Only this machine's own, none of a virtual environment, and uv if asked for.

        Not beside, which is in /tmp: entrypoint.sh takes no Python and no uv from there.
        """
        programs = make_outside("programs")
        for name in ("git", "python3"):
            (programs / name).symlink_to(real_program(name))
        bash = programs / "bash"
        prepare = "" if self.is_new else PREPARE
        text = PATIENT_BASH.format(bash=real_program("bash"), log=self._log, prepare=prepare)
        bash.write_text(text)
        bash.chmod(0o755)
        if self.with_uv:
            (programs / "uv").symlink_to(UV)
        return programs

    @property
    def _log(self) -> Path:
        return self.beside / "act.log"


def real_program(name: str) -> str:
    if name == "python3":
        return str(Path(sys.base_prefix, "bin", "python3"))
    found = shutil.which(name)
    assert found, f"{name} is not on PATH"
    return found


@cache
def uv_cache() -> str:
    """The cache of whoever runs the tests: no download for each of them."""
    done = subprocess.run([UV, "cache", "dir"], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def git(root: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=Test", "-c", "user.email=test@example.org"]
    subprocess.run(["git", *identity, *arguments], cwd=root, check=True, capture_output=True)


def own_action(beside: Path) -> Path:
    """This action as a release has it, somewhere with a space in its path."""
    place = beside / "the action"
    if not place.exists():
        place.mkdir()
        copy_action(place)
    return place


def copy_action(place: Path) -> None:
    for name in ("action.yml", "entrypoint.sh", "requirements.lock", "requirements-verify.lock"):
        shutil.copy2(PROJECT / name, place)
    shutil.copytree(
        PROJECT / "src", place / "src", ignore=shutil.ignore_patterns("__pycache__", "tests")
    )


def stubs(beside: Path) -> dict[str, Path]:
    """Stands for the actions that examples use: the artifacts are directories here."""
    store = beside / "artifacts"
    upload = f"""\
        [ -z "$NAME" ] || rm -rf "{store}/$NAME"  # as `overwrite: true` has it
        mkdir -p "{store}/$NAME"
        # Of a directory, its content is uploaded.
        if [ -d "$FROM" ]; then cp -R "$FROM/." "{store}/$NAME/"
        else while read -r file; do cp "$file" "{store}/$NAME/"; done <<< "${{FROM%$'\n'}}"
        fi
        """
    download = f"""\
        mkdir -p "$TO"
        if [ "$NAME" ]; then cp -R "{store}/$NAME/." "$TO/"
        else cp -R "{store}"/$PATTERN "$TO/"
        fi
        """
    scripts = {
        "actions/upload-artifact": upload,
        "actions/download-artifact": download,
    }
    found = {}
    for name, script in scripts.items():
        place = beside / "stubs" / name.replace("/", "-")
        place.mkdir(parents=True, exist_ok=True)
        inputs = {"NAME": "name", "FROM": "path", "TO": "path", "PATTERN": "pattern"}
        step = {
            "shell": "bash",
            "run": script,
            "env": {variable: f"${{{{ inputs.{name} }}}}" for variable, name in inputs.items()},
        }
        document = {
            "name": name,
            "description": "A stub",
            "inputs": {name: {"description": name, "default": ""} for name in inputs.values()},
            "runs": {"using": "composite", "steps": [step]},
        }
        (place / "action.yml").write_text(yaml.safe_dump(document), encoding="utf-8")
        found[_pinned(name)] = place
    return found


def _pinned(name: str) -> str:
    """`name@commit` as action.yml or an example has it."""
    for path in (PROJECT / "action.yml", *(PROJECT / "docs/examples").glob("*.yml")):
        match = re.search(rf"{name}@\w+", path.read_text(encoding="utf-8"))
        if match:
            return match[0]
    raise AssertionError(f"{name} is used nowhere")
