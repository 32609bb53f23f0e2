"""The scripts of docs/other-ci.md as they stand there, with what each CI sets."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from documents import ROOT, blocks
from workspaces import Program, git, uv_workspace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PACKAGES: Mapping[str, tuple[str, ...]] = {"acme-core": ()}
RUN = "https://ci.example.com/acme/mono/builds/17"
# How each of them calls the page of the run; Azure puts it together.
SET = {
    "BUILD_URL": RUN,
    "CIRCLE_BUILD_URL": RUN,
    "BUILDKITE_BUILD_URL": RUN,
    "SYSTEM_COLLECTIONURI": "https://ci.example.com/acme/",
    "SYSTEM_TEAMPROJECT": "mono",
    "BUILD_BUILDID": "17",
}
AUDIENCE = "npm:registry.npmjs.org"
AZURE = "https://ci.example.com/acme/mono/_build/results?buildId=17"


def scripts() -> Iterator[tuple[str, str]]:
    """Where it stands, and what it is; Buildkite unfolds `$$`."""
    for block in blocks(ROOT / "docs/other-ci.md"):
        texts = [block.text]
        if block.language == "yaml":
            texts = [text.replace("$$", "$") for text in texts_in(yaml.safe_load(block.text))]
        for text in texts:
            if "releasekit publish" in text:
                yield block.file or str(block), text


def texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from texts_in(each)


SCRIPTS = dict(scripts())


def test_all_of_them_are_found() -> None:
    files = {name for name in SCRIPTS if ":" not in name}
    assert files == {".circleci/config.yml", ".buildkite/pipeline.yml", "azure-pipelines.yml"}
    assert len(SCRIPTS) == 6


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
def test_a_script_publishes_and_says_so(tmp_path: Path, script: str) -> None:
    root = uv_workspace(tmp_path / "a workspace", PACKAGES)
    home = tmp_path / "home"
    home.mkdir()
    registry = {"RELEASEKIT_PYPI_REGISTRY": f"dir:{tmp_path / 'registry'}"}
    environment = Program(home, {**SET, **registry}).full_environment
    places = [str(circleci(home)), str(Path(sys.executable).parent), environment["PATH"]]
    environment["PATH"] = os.pathsep.join(places)
    done = subprocess.run(
        ["bash", "-e", "-c", script], cwd=root, env=environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(list((tmp_path / "registry").rglob("*.whl"))) == 1
    results = json.loads((root / ".releasekit/results.json").read_text())
    named = "RELEASEKIT_RUN_URL" in script
    assert results.get("run_url", "") in ({RUN, AZURE} if named else {""})
    assert "<testcase " in (root / ".releasekit/junit.xml").read_text()
    if "RELEASEKIT_OUTPUTS_FILE" in script:
        assert "RK_RESULT=success\n" in (root / "release.env").read_text()
    if "RK_RESULT" in script:
        assert "success: 1 published, 0 failed" in done.stdout


def circleci(home: Path) -> Path:
    """Where a stand-in for CircleCI's client is, which gets an ID token."""
    program = home / "programs/circleci"
    program.parent.mkdir()
    parts = ({"alg": "RS256"}, {"iss": "https://oidc.circleci.com/org/1", "aud": AUDIENCE})
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode() for part in parts]
    asked = f'run oidc get --claims {{"aud": "{AUDIENCE}"}}'
    program.write_text(
        f"#!/bin/sh\ntest \"$*\" = '{asked}' && echo {'.'.join(encoded)}.c2lnbmF0dXJl\n"
    )
    program.chmod(0o755)
    return program.parent


def publish(root: Path, tmp_path: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    program = Program(home, variables)
    where = f"--pypi-registry=dir:{tmp_path / 'registry'}"
    return subprocess.run(
        program.argv("publish", root, where), env=program.full_environment, capture_output=True,
        text=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("toml", "code"),
    [("concurrency = 'many'\n", 2), ("[dependencies]\n'pypi:acme-core' = ['pypi:none']\n", 3)],
)
def test_a_run_that_ends_early_leaves_no_outputs_of_an_earlier_one(
    tmp_path: Path, toml: str, code: int
) -> None:
    """R4: before or after its configuration is known."""
    root = uv_workspace(tmp_path / "a workspace", PACKAGES)
    file = root / "release.env"
    file.write_text("RK_RESULT=success\nRK_PUBLISHED_PACKAGES=7\n")
    (root / "releasekit.toml").write_text(toml)
    done = publish(root, tmp_path, RELEASEKIT_OUTPUTS_FILE=str(file))
    assert done.returncode == code, done.stderr
    assert file.read_text() == "RK_RESULT=failure\n"


@pytest.mark.parametrize(
    ("place", "says"),
    [
        ("packages/acme-core/pyproject.toml", "is there, and is no file of outputs"),
        ("link.env", "is a symbolic link"),
        (".releasekit/journal.jsonl", "is among the files of the state directory"),
        (".git/release.env", "write another name, like outputs.env"),
    ],
)
def test_outputs_replace_nothing_else(tmp_path: Path, place: str, says: str) -> None:
    """R52"""
    root = uv_workspace(tmp_path / "a workspace", PACKAGES)
    (root / "link.env").symlink_to(root / "packages/acme-core/pyproject.toml")
    done = publish(root, tmp_path, RELEASEKIT_OUTPUTS_FILE=str(root / place))
    assert done.returncode == 2
    assert says in done.stderr
    assert git(root, "status", "--porcelain", "--untracked-files=no") == ""


def test_steps_that_have_outputs_of_their_own_take_no_file(tmp_path: Path) -> None:
    root = uv_workspace(tmp_path / "a workspace", PACKAGES)
    done = publish(root, tmp_path, GITHUB_ACTIONS="true", RELEASEKIT_OUTPUTS_FILE="x.env")
    assert done.returncode == 2
    assert "outputs-file is for other CIs" in done.stderr
