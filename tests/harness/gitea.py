"""A real Gitea on loopback and its real runner, whose jobs run on this machine: no Docker. Both are
built from what the Go proxy has of them, once per machine, by `make gitea`.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import tempfile
import urllib.parse
import urllib.request
from dataclasses import dataclass, field
from http.cookiejar import CookieJar
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from harness.act import PREPARE, copy_action, real_program
from integration.servers import PASSWORD, free_port, running
from integration.tools import require_tool
from outside import make_outside
from processes import PATIENCE_S, wait_until
from workspaces import git

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

VERSION: Final = "1.26.0"
RUNNER_VERSION: Final = "1.0.8"
# Neither optimized nor to be debugged: 3 minutes of a CPU instead of 5.
_FLAGS: Final = (
    "-tags=sqlite,sqlite_unlock_notify",
    "-gcflags=all=-N -l -dwarf=false",
    "-ldflags=-s -w",
)
_SPARING: Final = {"CGO_CFLAGS": "-O0", "GOGC": "400", "GOFLAGS": "-modcacherw"}
# What Gitea reads of its sources when it runs.
_READ: Final = ("options", "public", "templates")

OWNER: Final = "acme-bot"
LABEL: Final = "ubuntu-latest"
# "org" is a name that Gitea keeps for itself.
ACTION: Final = "tools/releasekit-action"
_CONFIG: Final = """\
WORK_PATH = {directory}
I_AM_BEING_UNSAFE_RUNNING_AS_ROOT = true
[server]
HTTP_ADDR = 127.0.0.1
HTTP_PORT = {port}
ROOT_URL = {origin}/
STATIC_ROOT_PATH = {programs}
DISABLE_SSH = true
OFFLINE_MODE = true
[database]
DB_TYPE = sqlite3
[security]
INSTALL_LOCK = true
SECRET_KEY = of-tests
PASSWORD_HASH_ALGO = pbkdf2_v1
[service]
DISABLE_REGISTRATION = true
[indexer]
ISSUE_INDEXER_TYPE = db
[actions]
DEFAULT_ACTIONS_URL = self
[repository]
DEFAULT_BRANCH = main
ENABLE_PUSH_CREATE_USER = true
ENABLE_PUSH_CREATE_ORG = true
[log]
LEVEL = Warn
[queue]
TYPE = channel
[cron]
ENABLED = false
"""
# What makes the environment of the action once for all jobs, which else each of them makes.
_BASH: Final = """\
#!{bash}
if [[ "${{RUNNER_TEMP:-}}" ]]; then
{prepare}
fi
exec "{bash}" "$@"
"""
# A job is asked for, and what it says is reported, as soon as can be.
_RUNNER: Final = """\
runner:
  fetch_interval: 50ms
  fetch_interval_max: 50ms
  log_report_interval: 200ms
  log_report_max_latency: 100ms
  state_report_interval: 200ms
cache: {{ enabled: false }}
host: {{ workdir_parent: "{directory}/work" }}
"""
# What a workflow needs of actions/checkout, which is not on this server, and where that keeps the
# credentials.
# https://github.com/actions/checkout/blob/v7/src/git-auth-helper.ts
_CHECKOUT: Final = """\
name: Checkout
description: Of the repository and the commit of the job, with its history and tags
inputs:
  fetch-depth: { description: Not looked at, default: "1" }
  token: { description: What to log in with, default: "${{ github.token }}" }
runs:
  using: composite
  steps:
    - shell: bash
      env: { TOKEN: "${{ inputs.token }}" }
      run: |
        git init --quiet
        git remote add origin "$GITHUB_SERVER_URL/$GITHUB_REPOSITORY"
        login=$(printf 'x-access-token:%s' "$TOKEN" | base64 --wrap=0)
        git config "http.$GITHUB_SERVER_URL/.extraheader" "AUTHORIZATION: basic $login"
        branches='+refs/heads/*:refs/remotes/origin/*'
        git fetch --quiet --tags origin "+$GITHUB_SHA:refs/heads/job" "$branches"
        git checkout --quiet --detach "$GITHUB_SHA"
"""


def build() -> Path:
    """The directory of both programs, and of what Gitea reads."""
    programs = _place()
    programs.parent.mkdir(parents=True, exist_ok=True)
    with programs.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several workers may want it at once
        if not programs.exists():
            with tempfile.TemporaryDirectory(dir=programs.parent) as scratch:
                built = Path(scratch, "built")
                sources = _build("code.gitea.io/gitea", VERSION, built / "gitea")
                _build("gitea.com/gitea/runner", RUNNER_VERSION, built / "runner")
                for name in _READ:
                    shutil.copytree(sources / name, built / name)
                built.rename(programs)
    return programs


def _build(module: str, version: str, program: Path) -> Path:
    """Where it lies: only there it is the main module, whose `replace` counts."""
    go = require_tool("go")
    asked = [str(go), "mod", "download", "-json", f"{module}@v{version}"]
    environment = {**os.environ, **_SPARING}
    told = subprocess.run(asked, env=environment, capture_output=True, check=True, text=True)
    sources = Path(json.loads(told.stdout)["Dir"])
    subprocess.run(
        [str(go), "build", *_FLAGS, "-o", str(program), "."],
        cwd=sources,
        env=environment,
        check=True,
        timeout=PATIENCE_S * 3,
    )
    return sources


def _place() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "releasekit-tests" / f"gitea-{VERSION}-{RUNNER_VERSION}"


def _require_programs() -> Path:
    if not _place().exists() and os.environ.get("CI") != "true":
        pytest.skip("gitea is not built; `make gitea` does that")
    return build()


@dataclass(frozen=True, kw_only=True)
class Job:
    """How a job ended: "success", "failure" or "cancelled"."""

    conclusion: str
    log: str


@dataclass(frozen=True, kw_only=True)
class Gitea:
    """`token` may do everything, for OWNER, who is an administrator."""

    origin: str
    directory: Path
    programs: Path
    token: str

    def ask(self, method: str, path: str, document: object = None) -> Any:
        """What its API answers: a document, or the text of a log. Raises HTTPError."""
        request = urllib.request.Request(
            f"{self.origin}/api/v1{path}",
            None if document is None else json.dumps(document).encode(),
            {"Content-Type": "application/json", "Authorization": f"token {self.token}"},
            method=method,
        )
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as response:
            content = response.read().decode()
            is_json = response.headers.get_content_type() == "application/json"
        return json.loads(content) if is_json else content

    def add_organization(self, name: str) -> None:
        self.ask("POST", "/orgs", {"username": name})

    def packages_of(self, owner: str) -> list[str]:
        """All versions, as KIND:NAME@VERSION."""
        found = self.ask("GET", f"/packages/{owner}?limit=50")
        return sorted(f"{each['type']}:{each['name']}@{each['version']}" for each in found)

    def releases_of(self, repository: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.ask("GET", f"/repos/{repository}/releases?limit=50")
        return found

    def tags_of(self, repository: str) -> list[str]:
        return [each["name"] for each in self.ask("GET", f"/repos/{repository}/tags?limit=50")]

    def url(self, repository: str) -> str:
        """What OWNER pushes to; a repository that is not there is made by that."""
        return f"{self.origin.replace('://', f'://{OWNER}:{self.token}@')}/{repository}.git"

    def push(self, root: Path, repository: str, *refs: str) -> None:
        """Gitea looks at it later; at first, a repository is empty for it."""
        git(root, "push", "--quiet", self.url(repository), *refs)
        wait_until(lambda: not self.ask("GET", f"/repos/{repository}")["empty"])

    def install(self, repository: str, source: Path, tag: str) -> None:
        """Publish what is in a directory, as actions are: in a repository, under a tag."""
        git(source, "init", "--quiet", "--initial-branch", "main")
        git(source, "add", "--all", "--force")
        git(source, "commit", "--quiet", "--message", "Release")
        git(source, "tag", tag)
        self.push(source, repository, "main", tag)
        self.ask("PATCH", f"/repos/{repository}", {"private": False})

    def cancel(self, repository: str, run: int) -> None:
        """As a person does it: the API has no such request."""
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
        for path, form in (
            ("/user/login", {"user_name": OWNER, "password": PASSWORD}),
            (f"/{repository}/actions/runs/{run}/cancel", {}),
        ):
            content = urllib.parse.urlencode(form).encode()
            browser.open(f"{self.origin}{path}", content, PATIENCE_S).close()

    @contextlib.contextmanager
    def runner(self, environment: Mapping[str, str]) -> Iterator[Runner]:
        """One that nothing else of this server has. It takes no path with a space, and the action
        takes no program from /tmp.
        """
        place = make_outside("runner")
        (place / "config.yml").write_text(_RUNNER.format(directory=place))
        bash = place / "programs" / "bash"
        bash.parent.mkdir()
        bash.write_text(_BASH.format(bash=real_program("bash"), prepare=PREPARE))
        bash.chmod(0o755)
        environment = {**environment, "PATH": f"{bash.parent}:{environment['PATH']}"}
        token = self.ask("POST", "/admin/actions/runners/registration-token")["token"]
        runner = Runner(gitea=self, place=place, environment=environment)
        flags = ("--no-interactive", "--instance", self.origin, "--token", token)
        named = ("--name", place.name, "--labels", f"{LABEL}:host")
        assert runner.start("register", *flags, *named).wait(PATIENCE_S) == 0, runner.said
        try:
            yield runner
        finally:
            for process in runner.started:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
            shutil.rmtree(place)


@dataclass(frozen=True, kw_only=True)
class Runner:
    """`environment` is what the machine of the jobs has."""

    gitea: Gitea
    place: Path
    environment: Mapping[str, str]
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def said(self) -> str:
        return (self.place / "log").read_text(errors="replace")

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """In a session of its own."""
        argv = [str(self.gitea.programs / "runner"), "--config", "config.yml", *arguments]
        with (self.place / "log").open("ab") as log:
            process = subprocess.Popen(
                argv,
                cwd=self.place,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.started.append(process)
        return process

    def start_job(self) -> subprocess.Popen[bytes]:
        """The next one that waits, or is going to: what it returns ends with it."""
        return self.start("daemon", "--once")

    def run_job(self, repository: str) -> Job:
        """The next one, which is of that repository."""
        self.start_job().wait(PATIENCE_S)
        return self.find_job(repository)

    def find_job(self, repository: str) -> Job:
        """The one that it did last."""
        place = f"/repos/{repository}/actions/jobs"
        jobs = self.gitea.ask("GET", place)["jobs"]
        job = max(
            (each for each in jobs if each.get("runner_name") == self.place.name),
            key=lambda each: each["id"],
        )
        log = self.gitea.ask("GET", f"{place}/{job['id']}/logs")
        # Each line begins with its time.
        lines = [line.partition(" ")[2] for line in log.splitlines()]
        return Job(conclusion=job["conclusion"], log="\n".join(lines))


@contextlib.contextmanager
def serving_gitea(directory: Path) -> Iterator[Gitea]:
    """An empty one, with this action, and a checkout of its own."""
    programs = _require_programs()
    port = free_port()
    origin = f"http://127.0.0.1:{port}"
    directory.mkdir(parents=True, exist_ok=True)
    config = directory / "app.ini"
    config.write_text(
        _CONFIG.format(directory=directory, port=port, origin=origin, programs=programs)
    )
    argv = [str(programs / "gitea"), "--config", str(config)]
    with running([*argv, "web"], log=directory / "log", ready=f"{origin}/api/healthz"):
        account = ["--username", OWNER, "--password", PASSWORD, "--email", f"{OWNER}@example.org"]
        flags = ["--admin", "--must-change-password=false"]
        flags += ["--access-token", "--access-token-scopes", "all"]
        made = subprocess.run(
            [*argv, "admin", "user", "create", *account, *flags],
            env={"HOME": str(directory), "PATH": os.environ["PATH"]},
            capture_output=True,
            check=True,
            text=True,
        )
        token = made.stdout.split()[-1]
        gitea = Gitea(origin=origin, directory=directory, programs=programs, token=token)
        for repository, name in (("actions/checkout", "v7"), (ACTION, "v1")):
            gitea.add_organization(repository.partition("/")[0])
            source = directory / repository
            source.mkdir(parents=True)
            if name == "v1":
                copy_action(source)
            else:
                (source / "action.yml").write_text(_CHECKOUT)
            gitea.install(repository, source, name)
        yield gitea


if __name__ == "__main__":
    build()
