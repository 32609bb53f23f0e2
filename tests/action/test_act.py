"""The real action in real workflows."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import shutil
from pathlib import Path

from harness.act import OWN_NAME, PROJECT, Repository, copy_action, git
from integration.servers import pypiserver

ORDER = ["acme-core", "acme-measure", "acme-stamp", "acme-text", "acme-web", "acme-cli"]


def names(outputs: dict[str, str], outcome: str) -> list[str]:
    key = "packages-there" if outcome == "there" else f"{outcome}-packages"
    return [package["name"] for package in json.loads(outputs[key])]


def example(name: str, repository: Repository) -> None:
    text = (PROJECT / "docs/examples" / name).read_text(encoding="utf-8")
    repository.workflow(text)


def test_the_checked_out_action_publishes_and_says_so(repository: Repository) -> None:
    """`uses: ./`, the way this repository's own workflows run it, and on a new machine."""
    repository = dataclasses.replace(repository, is_new=True)
    copy_action(repository.root)
    registry = repository.beside / "registry"
    repository.workflow(
        f"""
on: push
jobs:
  publish:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v7
      - id: first
        uses: ./
        with:
          mode: publish
          registry: dir:{registry}
      - id: second
        uses: ./
        with:
          mode: publish
          registry: dir:{registry}
"""
    )
    run = repository.run("push")
    assert run.job("publish") == "success", run.log("publish")
    first = run.outputs("publish", "first")
    assert first["result"] == "success"
    assert first["published"] == "true"
    assert sorted(names(first, "published")) == sorted(ORDER)
    assert first["failed-packages"] == first["blocked-packages"] == "[]"
    assert len(first["checksums"].splitlines()) == 2 * len(ORDER)
    summary = run.summary("publish", "first")
    assert all(name in summary for name in ORDER)
    assert "```mermaid" in summary
    print(json.dumps(first, indent=1), summary, sep="\n\n")  # noqa: T201 - shown by `make act`
    second = run.outputs("publish", "second")
    assert (second["result"], second["published"]) == ("noop", "false")
    assert names(second, "already-published") == names(first, "published")
    assert {path.name for path in (registry / "pypi/simple").iterdir()} >= set(ORDER)


def test_started_by_hand_against_a_real_server(repository: Repository, tmp_path: Path) -> None:
    """workflow_dispatch inputs, variables and a secret; R34: nobody gets to see the secret."""
    example("by-hand.yml", repository)
    with pypiserver(tmp_path / "server") as server:
        arguments = ["workflow_dispatch", "-s", f"REGISTRY_TOKEN={server.password}"]
        arguments += ["--var", f"REGISTRY_URL={server.upload_url}"]
        arguments += ["--var", f"REGISTRY_USERNAME={server.username}"]
        arguments += ["--input", "packages=acme-core,acme-stamp"]
        dry = repository.run(*arguments, "--input", "dry-run=true")
        assert dry.job("publish") == "success", dry.log("publish")
        assert list((tmp_path / "server/packages").iterdir()) == []
        real = repository.run(*arguments, "--input", "dry-run=false")
    assert real.job("publish") == "success", real.log("publish")
    assert sorted(names(real.outputs("publish", "release"), "published")) == [
        "acme-core",
        "acme-stamp",
    ]
    assert "The release ended as success and published [{" in real.log("publish")
    uploaded = {path.name for path in (tmp_path / "server/packages").iterdir()}
    assert {"acme_core-1.2.0.tar.gz", "acme_core-1.2.0-py3-none-any.whl"} <= uploaded
    assert len(uploaded) == 4
    assert server.password not in dry.shown
    assert server.password not in real.shown


def test_published_on_a_tag(repository: Repository) -> None:
    """The example as it stands, with the registry in releasekit.toml."""
    registry = repository.beside / "registry"
    (repository.root / "releasekit.toml").write_text(f"registry = 'dir:{registry}'\n")
    example("publish.yml", repository)
    run = repository.run("push")
    assert run.job("publish") == "success", run.log("publish")
    assert sorted(names(run.outputs("publish", "1"), "published")) == sorted(ORDER)


def test_a_plan_becomes_a_matrix_and_one_report(repository: Repository) -> None:
    """The example as it stands, with the registry in releasekit.toml."""
    registry = repository.beside / "registry"
    (repository.root / "releasekit.toml").write_text(f"registry = 'dir:{registry}'\n")
    example("matrix.yml", repository)
    run = repository.run("push")
    assert run.job("plan") == "success", run.log("plan")
    planned = run.outputs("plan", "plan")
    assert planned["has-work"] == "true"
    rows = json.loads(planned["matrix"])["include"]
    assert rows == [{"ecosystem": "pypi", "packages": "\n".join(ORDER)}]
    assert run.job("publish") == "success", run.log("publish")
    assert run.job("report") == "success", run.log("report")
    assert "acme-cli" in run.summary("report", "2")
    assert sorted(names(run.outputs("report", "2"), "published")) == sorted(ORDER)
    # Nothing left to do: the matrix would be empty, and its job does not run.
    shutil.rmtree(repository.beside / "artifacts")
    again = repository.run("push")
    assert again.outputs("plan", "plan")["has-work"] == "false"
    assert again.job("publish") == again.job("report") == ""


def test_the_files_that_were_tested_are_published_and_then_an_image(
    repository: Repository,
) -> None:
    """R18, R72: the example as it stands; in a rerun, which finds all published, the image too."""
    registry, seen = repository.beside / "registry", repository.beside / "seen"
    (repository.root / "releasekit.toml").write_text(f"registry = 'dir:{registry}'\n")
    scripts = repository.root / "scripts"
    scripts.mkdir()
    for name, script in {
        "test-files": f'cd "$1" && find . -type f -exec sha256sum {{}} + >"{seen}.sums"',
        "publish-image": f'test -e "{seen}.image" || exit 1; echo "$1" >>"{seen}.image"',
    }.items():
        (scripts / name).write_text(f"#!/bin/sh\nset -eu\n{script}\n")
        (scripts / name).chmod(0o755)
    example("tested.yml", repository)
    arguments = ["push", "-s", f"RELEASE_STATE_KEY={'k' * 32}"]
    first = repository.run(*arguments)
    jobs = {name: first.job(name) for name in ("build", "test", "publish", "image")}
    assert jobs == {**dict.fromkeys(("build", "test", "publish"), "success"), "image": "failure"}
    built = ["builds: " in first.log(job) for job in ("build", "publish")]
    assert built == [True, False]
    tested = {line.split()[0] for line in Path(f"{seen}.sums").read_text().splitlines()}
    files = [*registry.rglob("*.whl"), *registry.rglob("*.tar.gz")]
    assert len(files) == 2 * len(ORDER)
    assert {hashlib.sha256(path.read_bytes()).hexdigest() for path in files} <= tested

    Path(f"{seen}.image").touch()
    again = repository.run(*arguments)
    told = again.outputs("publish", "release")
    assert (told["result"], again.job("image")) == ("noop", "success")
    assert sorted(names(told, "there")) == sorted(ORDER)
    assert Path(f"{seen}.image").read_text() == "1.0.0\n"


WRONG = {
    "mode: publsh": 'input mode (RELEASEKIT_MODE) = "publsh" is not known; write plan, p',
    "dry-run: yes please": "input dry-run (RELEASEKIT_DRY_RUN)",
    "working-directory: nowhere": "nowhere does not exist",
}


def test_a_wrong_input_fails_with_one_annotation(repository: Repository) -> None:
    steps = "".join(
        f"""
      - id: step-{number}
        if: always()
        uses: org/releasekit-action@v1
        with:
          {given}"""
        for number, given in enumerate(WRONG)
    )
    repository.workflow(
        f"""
on: push
jobs:
  publish:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v7{steps}
"""
    )
    run = repository.run("push")
    assert run.job("publish") == "failure"
    errors = [e for e in run.events if e.get("command") == "error"]
    assert len(errors) == len(WRONG)
    for number, (error, says) in enumerate(zip(errors, WRONG.values(), strict=True)):
        assert run.outputs("publish", f"step-{number}") == {"result": "failure"}
        assert error["stepID"][0] == f"step-{number}"
        assert says in error["raw"], error
    assert "Traceback" not in run.log("publish")


def test_without_uv_the_action_does_without(repository: Repository) -> None:
    bare = dataclasses.replace(repository, with_uv=False, is_new=True)
    bare.workflow(
        f"""
on: push
jobs:
  plan:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v7
      - id: plan
        uses: org/releasekit-action@v1
        with:
          registry: dir:{repository.beside}/registry
"""
    )
    run = bare.run("push")
    assert run.job("plan") == "success", run.log("plan")
    assert run.outputs("plan", "plan")["has-work"] == "true"


def test_versions_are_written_into_the_checkout(repository: Repository) -> None:
    repository.workflow(
        f"""
on: push
jobs:
  version:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v7
        with:
          fetch-depth: 0
      - id: version
        uses: {OWN_NAME}
        with:
          mode: version
          registry: dir:{repository.beside}/registry
      - run: git status --porcelain | grep -v '^??'
"""
    )
    git(repository.root, "add", "--all")
    git(repository.root, "commit", "--quiet", "--message", "chore: start")
    git(repository.root, "tag", "acme-text-v0.4.1")
    (repository.root / "python/acme-text/acme_text/more.py").write_text("more = 1\n")
    git(repository.root, "add", "--all")
    git(repository.root, "commit", "--quiet", "--message", "feat: more texts")
    run = repository.run("push", commit=False)
    assert run.job("version") == "success", run.log("version")
    outputs = run.outputs("version", "version")
    assert outputs["bumped"] == "true"
    rows = {row["package"]: row["to"] for row in json.loads(outputs["versions"])}
    assert rows["acme-text"] == "0.4.2"
    changed = json.loads(outputs["changed-files"])
    assert {"python/acme-text/CHANGELOG.md", "python/acme-text/pyproject.toml"} <= {*changed}
    assert " M python/acme-text/pyproject.toml" in run.log("version")
