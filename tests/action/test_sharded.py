"""The example with several jobs for each ecosystem, through a runner."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import threading
from typing import TYPE_CHECKING, Final

import pytest

from action.test_act import ORDER, names
from harness.act import PROJECT
from integration.tools import require_tool
from integration.verdaccio import NODE, tools

if TYPE_CHECKING:
    from harness.act import Repository, Run

NPM: Final = {
    "@acme/core": (),
    "@acme/text": ("@acme/core",),
    "@acme/lone": (),
    "@acme/cli": ("@acme/text", "@acme/lone"),
}
EXAMPLE: Final = (PROJECT / "docs/examples/sharded.yml").read_text(encoding="utf-8")


@pytest.fixture(name="polyglot")
def _polyglot(repository: Repository) -> Repository:
    """Python packages, and npm packages of which one follows them."""
    for name, needs in NPM.items():
        directory = repository.root / "packages" / name.partition("/")[2]
        directory.mkdir(parents=True)
        manifest = {"name": name, "version": "1.0.0", "dependencies": dict.fromkeys(needs, "1.0.0")}
        (directory / "package.json").write_text(json.dumps(manifest))
        (directory / "index.js").write_text(f"// {name}\n")
    top = {"private": True, "workspaces": ["packages/*"]}
    (repository.root / "package.json").write_text(json.dumps(top))
    (repository.root / "releasekit.toml").write_text(
        f"registry = 'dir:{repository.beside}/registry'\n"
        '[dependencies]\n"npm:@acme/text" = ["pypi:acme-core"]\n'
    )
    npm = require_tool("npm")
    repository.add_programs(node=tools() / NODE / "bin" / "node", npm=npm)
    return repository


def rows(run: Run) -> list[dict[str, str]]:
    found: list[dict[str, str]] = json.loads(run.outputs("plan", "plan")["matrix"])["include"]
    return found


def ended(run: Run) -> dict[str, str]:
    """How each row of the matrix has ended, by its name."""
    return {
        event["matrix"]["row"]: event["jobResult"]
        for event in run.events
        if event["jobID"] == "publish" and "jobResult" in event
    }


def everything() -> list[str]:
    return sorted([*ORDER, *NPM])


def test_four_rows_of_two_ecosystems_and_one_report(polyglot: Repository) -> None:
    """The example as it stands, with the registry in releasekit.toml."""
    polyglot.workflow(EXAMPLE)
    run = polyglot.run("push")
    assert run.job("plan") == "success", run.log("plan")
    planned = rows(run)
    assert [(row["row"], row["shard"]) for row in planned] == [
        ("npm-1", "1/2"),
        ("npm-2", "2/2"),
        ("pypi-1", "1/2"),
        ("pypi-2", "2/2"),
    ]
    packages = [name for row in planned for name in row["packages"].splitlines()]
    assert sorted(packages) == everything()
    assert ended(run) == {row["row"]: "success" for row in planned}, run.log("publish")
    assert run.job("report") == "success", run.log("report")
    assert sorted(names(run.outputs("report", "3"), "published")) == everything()


def again(failed: list[dict[str, str]]) -> str:
    """The example as "Re-run failed jobs" runs it: with the plan of the first attempt."""
    text = re.sub(r"  plan:\n    name: Plan\n.*?(?=  publish:\n)", "", EXAMPLE, flags=re.DOTALL)
    for old, new in (
        ("    needs: plan\n", ""),
        ("    if: needs.plan.outputs.has-work == 'true'\n", ""),
        ("${{ fromJSON(needs.plan.outputs.matrix) }}", json.dumps({"include": failed})),
        ("github.run_attempt > 1", "true"),
        ("needs: [plan, publish]", "needs: [publish]"),
        ("always() && needs.plan.outputs.has-work == 'true'", "always()"),
    ):
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def test_a_row_that_was_killed_is_run_again(polyglot: Repository) -> None:
    """R18, R19: it blocks what needs it, and the failed rows alone finish the release."""
    assert EXAMPLE.count("wait: 30m # for") == 1
    # Another workflow is no other source.
    (polyglot.root / ".git/info/exclude").write_text("/.github/\n")
    polyglot.workflow(EXAMPLE.replace("wait: 30m # for", "wait: 3s # for"))
    over, killed = threading.Event(), list[int]()
    killer = threading.Thread(target=kill_one, args=(polyglot, over, killed))
    killer.start()
    try:
        first = polyglot.run("push")
    finally:
        over.set()
        killer.join()
    assert killed
    results = ended(first)
    assert "failure" in results.values(), first.log("publish")
    assert first.job("report") == "failure"
    missing = [row for row in rows(first) if results[row["row"]] == "failure"]
    published = names(first.outputs("report", "3"), "published")
    assert len(published) < len(everything())

    polyglot.workflow(again(missing))
    second = polyglot.run("push", commit=False)
    assert ended(second) == {row["row"]: "success" for row in missing}, second.log("publish")
    assert second.job("report") == "success", second.log("report")
    told = second.outputs("report", "3")
    done = names(told, "published") + names(told, "already-published")
    assert sorted(done) == everything()
    uploads = [name for row in missing for name in row["packages"].splitlines()]
    assert set(names(told, "published")) <= {*uploads, *published}


def kill_one(polyglot: Repository, over: threading.Event, killed: list[int]) -> None:
    """The first Python row that holds its lock, whose file names the process."""
    checkouts = polyglot.beside / "home/.cache/act"
    while not over.wait(0.02):
        for lock in checkouts.glob("*/hostexecutor/.releasekit/lock.pypi"):
            with contextlib.suppress(OSError):
                found = re.search(r'"?pid"?\D+(\d+)', lock.read_text())
                if found:
                    os.kill(int(found[1]), signal.SIGKILL)
                    killed.append(int(found[1]))
                    return
