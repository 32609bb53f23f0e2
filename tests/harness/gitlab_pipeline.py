"""A project at GitLab that includes our components, and what runs its pipelines on this machine:
gitlab-ci-local, which has GitLab's official schema.

https://github.com/firecow/gitlab-ci-local
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import yaml

from harness.act import NETWORK, PROJECT, copy_action, git, uv_cache
from integration.tools import require_tool
from integration.verdaccio import NODE, installed, tools
from workspaces import STATE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

SERVER: Final = "https://gitlab.example.com"
COMPONENTS: Final = "org/releasekit-action"
_FETCHED: Final = f".gitlab-ci-local/includes/gitlab.example.com/{COMPONENTS}/v1/templates"
_INSTALLED: Final = {"private": True, "dependencies": {"gitlab-ci-local": "4.75.1"}}
# Of these variables it makes up what no machine has, or says that it is not GitLab.
_OWN: Final = ("GITLAB_CI", "CI_BUILDS_DIR", "CI_PROJECT_DIR")


@dataclass(frozen=True)
class Pipeline:
    status: int
    out: str
    err: str

    @property
    def log(self) -> str:
        return self.out + self.err


@dataclass(frozen=True)
class Project:
    """`root` is a git repository, and `beside` a directory for all that it must not see."""

    root: Path
    beside: Path

    def run(self, *arguments: str, variables: Mapping[str, str]) -> Pipeline:
        """Its pipeline, whose jobs work in `root`; `variables` are those of the project."""
        require_tool("rsync")
        # It keeps its own files, and what its jobs print, in the checkout, which GitLab does not,
        # and reads variables there.
        (self.root / ".git/info/exclude").write_text(".gitlab-ci-local*\n")
        # It would fetch all components at once, and `cp` fails where another makes a file first.
        shutil.copytree(PROJECT / "templates", self.root / _FETCHED, dirs_exist_ok=True)
        given = {"GITLAB_CI": "true", "CI_PROJECT_DIR": str(self.root), **variables}
        given |= {"CI_BUILDS_DIR": str(self.beside / "builds")}
        node = tools() / NODE / "bin/node"
        argv = [str(node), str(self._program), "--no-color", "--force-shell-executor"]
        argv += [f"--ignore-predefined-vars={','.join([*_OWN, *variables])}", *arguments]
        for name, value in given.items():
            argv += ["--variable", f"{name}={value}"]
        done = subprocess.run(
            argv,
            cwd=self.root,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        return Pipeline(done.returncode, done.stdout, done.stderr)

    def job(self, name: str, variables: Mapping[str, str]) -> dict[str, Any]:
        """What GitLab gives a runner: the job as its component and this project define it."""
        shown = self.run("--preview", variables=variables)
        assert shown.status == 0, shown.log
        return dict(yaml.safe_load(shown.out)[name])

    def configure(self, text: str) -> None:
        (self.root / ".gitlab-ci.yml").write_text(text, encoding="utf-8")
        git(self.root, "add", "--all")
        git(self.root, "commit", "--quiet", "--allow-empty", "--message", "Configure")

    @property
    def _program(self) -> Path:
        return installed("gitlab-ci-local", _INSTALLED) / "gitlab-ci-local/dist/index.js"

    @cached_property
    def environment(self) -> dict[str, str]:
        """Git finds the server's repositories on this disk."""
        settings = self.beside / "gitconfig"
        components = components_repository(self.beside / "the components")
        git(self.root, "remote", "add", "origin", f"{SERVER}/acme/mono.git")
        places = "".join(
            f"  insteadOf = {server}/{COMPONENTS}.git\n" for server in (SERVER, f"{SERVER}:443")
        )
        settings.write_text(
            f'[url "{components.as_uri()}"]\n{places}[user]\n  name = A\n  email = a@example.org\n'
        )
        home = self.beside / "home"
        home.mkdir()
        passed = {name: value for name, value in os.environ.items() if NETWORK.fullmatch(name)}
        return {
            "PATH": f"{require_tool('uv').parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(home),
            "XDG_STATE_HOME": str(STATE),
            "UV_CACHE_DIR": uv_cache(),
            "GIT_CONFIG_GLOBAL": str(settings),
            **passed,
        }


def components_repository(place: Path) -> Path:
    """This repository as a release has it, with the tag that users write."""
    place.mkdir()
    copy_action(place)
    shutil.copytree(PROJECT / "templates", place / "templates")
    git(place, "init", "--quiet")
    git(place, "add", "--all")
    git(place, "commit", "--quiet", "--message", "Release")
    git(place, "tag", "v1")
    # As GitLab's servers do.
    git(place, "config", "uploadpack.allowFilter", "true")
    git(place, "config", "uploadpack.allowAnySHA1InWant", "true")
    return place
