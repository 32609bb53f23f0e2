"""GitLab's runner, as far as a job that is cancelled meets it, and what GitLab reads of a job.

A login shell takes the script from its standard input, in a process group of its own. A cancelled
job gets SIGTERM, and SIGKILL where it does not end; after it, artifacts and cache are kept.
https://gitlab.com/gitlab-org/gitlab-runner/-/blob/v18.6.0/shells/bash.go (Finish)
https://gitlab.com/gitlab-org/gitlab-runner/-/blob/v18.6.0/helpers/process/killer_unix.go
https://gitlab.com/gitlab-org/gitlab-runner/-/blob/v18.6.0/executors/docker/docker.go
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import signal
import string
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from processes import PATIENCE_S, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Executor = Literal["shell", "docker"]
# Of every GitLab: https://docs.gitlab.com/administration/instance_limits/
_MAX_DOTENV_BYTES = 5 * 1024
_MAX_DOTENV = 20


@dataclass
class RunnerJob:
    """One attempt at `definition`, which is a job of a merged .gitlab-ci.yml, in `checkout`. Caches
    and artifacts are kept `beside`.
    """

    definition: Mapping[str, Any]
    variables: Mapping[str, str]
    checkout: Path
    beside: Path
    process: subprocess.Popen[bytes] = field(init=False)

    def __post_init__(self) -> None:
        environment = {**self.definition["variables"], **self.variables}
        self.variables = {name: str(value) for name, value in environment.items()}
        self.beside.mkdir(exist_ok=True)
        subprocess.run(["git", "clean", "-ffdxq"], cwd=self.checkout, check=True)
        for cached, place in self._cached():
            if cached.exists():
                shutil.copytree(cached, place, dirs_exist_ok=True)
        script = "\n".join(self.definition["script"])
        text = (
            "#!/usr/bin/env bash\n\ntrap exit 1 TERM\n\nset -o pipefail; set -o errexit\n"
            f"set +o noclobber\n: | eval {shlex.quote(script)}\nexit 0\n"
        )
        with self.log.open("ab") as log, (self.beside / "script").open("w+") as given:
            given.write(text)
            given.seek(0)
            self.process = subprocess.Popen(
                ["bash", "--login"],
                cwd=self.checkout,
                env=self.variables,
                stdin=given,
                stdout=log,
                stderr=log,
                process_group=0,
            )

    @property
    def log(self) -> Path:
        return self.beside / "log"

    def until(self, happened: Callable[[], bool]) -> None:
        wait_until(happened, self.process, lambda: self.log.read_text(errors="replace"))

    def cancel(self, executor: Executor) -> None:
        if executor == "shell":
            os.killpg(self.process.pid, signal.SIGTERM)
            return
        for pid in sorted(_descendants(self.process.pid), reverse=True):  # the youngest first
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)

    def end(self) -> int:
        """The exit status, once artifacts and cache are kept."""
        status = self.process.wait(PATIENCE_S)
        for cached, place in self._cached():
            shutil.rmtree(cached, ignore_errors=True)
            if place.exists():
                shutil.copytree(place, cached, symlinks=True)
        return status

    def dotenv(self) -> dict[str, str]:
        """The variables of the jobs that follow. An AssertionError is a job that GitLab fails.

        https://gitlab.com/gitlab-org/gitlab/-/blob/v18.6.0-ee/app/services/ci/parse_dotenv_artifact_service.rb
        """
        data = (self.checkout / self.definition["artifacts"]["reports"]["dotenv"]).read_bytes()
        assert len(data) < _MAX_DOTENV_BYTES
        found = {}
        for line in data.decode().splitlines():
            parts = re.match(r"(.*?)=(.*)", line)
            assert parts, line
            name, value = parts[1].strip(), parts[2].strip()
            assert re.fullmatch(r"[a-zA-Z0-9_]{1,255}", name), line
            found[name] = string.Template(value).substitute(self.variables)
        assert len(found) <= _MAX_DOTENV
        return found

    def _cached(self) -> list[tuple[Path, Path]]:
        """Where each path of each cache is kept, and where it is in the checkout."""
        caches = self.definition["cache"]
        return [
            (self.beside / string.Template(cache["key"]).substitute(self.variables) / path,
             self.checkout / path)
            for cache in caches
            for path in cache["paths"]
        ]  # fmt: skip


def _descendants(pid: int) -> set[int]:
    """The process and all that came of it, whatever its group."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                status = (entry / "stat").read_text().rpartition(")")[2].split()
                parents[int(entry.name)] = int(status[1])
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found
