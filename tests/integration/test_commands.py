"""The commands in one process, over the embedded directory registry: what they say and leave."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING

import pytest

from releasekit.__main__ import main
from releasekit.errors import PathError
from releasekit.http.identity import NO_PERMISSION
from releasekit.problems import Problem
from releasekit.report.page import BEGINNING
from releasekit.report.view import READ_ITS_LOG
from workspaces import git, uv_workspace

if TYPE_CHECKING:
    from pathlib import Path

PACKAGES = {"demo-a": (), "demo-b": ("demo-a",), "demo-c": ()}


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in os.environ:
        if name.startswith(("RELEASEKIT_", "GITHUB_", "ACTIONS_", "RUNNER_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CI", "true")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return uv_workspace(tmp_path / "w", PACKAGES)


@pytest.fixture
def registry(tmp_path: Path) -> str:
    return f"--registry=dir:{tmp_path / 'r'}"


def test_a_plan_changes_nothing_in_whatever_format(
    workspace: Path, registry: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """As JSON it is nothing but that."""
    assert main(["plan", str(workspace), registry]) == 0
    assert "3 packages" in capsys.readouterr().out
    assert main(["plan", str(workspace), registry, "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in document["packages"]] == ["demo-a", "demo-b", "demo-c"]
    assert main(["plan", str(workspace), registry, "--format", "mermaid"]) == 0
    out = capsys.readouterr().out
    assert "flowchart" in out
    assert "demo-b" in out
    assert not (workspace / ".releasekit").exists()
    assert not (workspace.parent / "r").exists()


def test_on_a_runner_everything_is_told(
    workspace: Path,
    registry: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_OUTPUT", str(tmp_path / "output"))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary"))
    manifest = workspace / "packages" / "demo-a" / "pyproject.toml"
    manifest.write_text(manifest.read_text() + '[tool.hatch.build]\nhooks = "none"\n')
    git(workspace, "commit", "--quiet", "--all", "--message", "Break")

    assert main(["plan", str(workspace), registry]) == 0
    output = (tmp_path / "output").read_text()
    assert "has-work<<" in output
    assert "plan-file<<" in output
    assert (workspace / ".releasekit" / "plan.json").exists()

    capsys.readouterr()
    assert main(["publish", str(workspace), registry]) == 1
    output, summary = (tmp_path / "output").read_text(), (tmp_path / "summary").read_text()
    for name in ("result", "published", "failed-packages", "blocked-packages", "results-file"):
        assert f"{name}<<" in output
    assert "partial" in output
    assert "demo-a" in summary
    out = capsys.readouterr().out
    assert "::error title=pypi%3Ademo-a 1.0.0 failed [RK-101]::" in out
    assert git(workspace, "status", "--porcelain") == ""
    assert_whole_log(out)


def assert_whole_log(out: str) -> None:
    """What a person reads of it: durations, and the lines of the traceback, differ."""
    lines = [re.sub(r"[0-9.]+ s\b", "N s", line).strip() for line in out.splitlines()]
    cause = "TypeError: Field `tool.hatch.build.hooks` must be a table"
    failed = f"its sdist could not be built: its build failed with exit code 1: {cause}"
    told = [
        line
        for line in lines
        if line and not line.startswith(("builds: ", "warning: ", "::warning ", "| ", "spent: "))
        if not line.startswith("to: dir:")
    ]
    where = next(line for line in told if line.startswith(f"pypi:demo-a: {READ_ITS_LOG} "))
    first = told.index("::endgroup::") + 1
    told[first : first + 2] = sorted(told[first : first + 2], reverse=True)  # built side by side
    assert told == [
        "::group::Plan: 3 packages: 3 to build and publish",
        "package      version  action   why",
        "pypi:demo-a  1.0.0    publish  not on the registry",
        "pypi:demo-b  1.0.0    publish  not on the registry",
        "pypi:demo-c  1.0.0    publish  not on the registry",
        f"provenance: nothing is attested: {NO_PERMISSION}",
        (
            "pinned in what is built: demo-a==1.0.0 in demo-b; "
            "`pin: none` leaves requirements as written"
        ),
        "::endgroup::",
        f"N s  ✗ pypi:demo-a 1.0.0  build failed in N s: {failed}",
        "N s  ✓ pypi:demo-c 1.0.0  published in N s",
        (
            f"::error title=pypi%3Ademo-a 1.0.0 failed [RK-101]::{failed}%0A{READ_ITS_LOG}%0A"
            f"{Problem.BUILD_FAILED.url}"
        ),
        "Last lines of the log of pypi:demo-a",
        "package      version  outcome    why",
        "pypi:demo-c  1.0.0    published  uploaded, and the registry shows our bytes",
        "pypi:demo-b  1.0.0    blocked    needs pypi:demo-a, which failed",
        f"pypi:demo-a  1.0.0    failed     {failed}",
        where,
        "1 of 3 packages published, 1 failed, 1 blocked",
    ]
    assert sum(line.startswith("to: dir:") for line in lines) == 1
    # The cause stands right above the table, and nothing of it is folded away.
    assert f"| {cause}" in lines[lines.index("Last lines of the log of pypi:demo-a") :]
    assert lines.count("::endgroup::") == 1
    assert lines[-1] == told[-1]


def test_what_is_about_to_go_wrong_is_said_and_strict_refuses_it(
    workspace: Path,
    registry: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """R49: a kept package whose sources changed, and one that is pinned to an older sibling."""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    assert main(["publish", str(workspace), registry]) == 0
    assert "warning: missing-readme: pypi:demo-a, " in capsys.readouterr().out
    members = workspace / "packages"
    manifest = members / "demo-a" / "pyproject.toml"
    manifest.write_text(manifest.read_text().replace("1.0.0", "1.1.0"))
    module = members / "demo-c" / "src" / "demo_c" / "__init__.py"
    module.write_text("CHANGED = True\n")
    git(workspace, "commit", "--quiet", "--all", "--message", "Change")

    assert main(["plan", str(workspace), registry]) == 0
    out = capsys.readouterr().out
    assert "warning: changed-without-bump: pypi:demo-c: src/demo_c/__init__.py changed since" in out
    assert "warning: older-sibling: pypi:demo-b: the published version is pinned to an older" in out
    assert "::warning title=changed-without-bump%3A pypi%3Ademo-c [RK-501]::src/demo_c" in out

    assert main(["publish", str(workspace), registry, "--strict"]) == 3
    found = capsys.readouterr()
    assert "changed-without-bump: pypi:demo-c: " in found.out + found.err
    assert "older-sibling: pypi:demo-b: " in found.out + found.err
    (workspace / "releasekit.toml").write_text(
        '[warnings]\nchanged-without-bump = "ignore"\nolder-sibling = "warn"\n'
    )
    # Where a system has no sandbox, that would be an error too.
    assert main(["publish", str(workspace), registry, "--strict", "--build-sandbox=off"]) == 1
    out = capsys.readouterr().out
    assert "missing-readme: it has no description" in out
    assert not (workspace.parent / "r" / "pypi" / "demo-a" / "demo_a-1.1.0.tar.gz").exists()


def test_what_a_build_backend_tells_the_runner_during_a_plan_is_taken_out(
    workspace: Path,
    registry: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """R50: a plan runs them too, to learn versions."""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    told = tmp_path / "GITHUB_ENV"
    told.write_text("BEFORE=1\n")
    monkeypatch.setenv("GITHUB_ENV", str(told))
    member = workspace / "packages" / "demo-a"
    manifest = member / "pyproject.toml"
    text = manifest.read_text()
    static = next(line for line in text.splitlines() if line.startswith("version = "))
    dynamic = '\n[tool.hatch.version]\nsource = "code"\npath = "version.py"\n'
    manifest.write_text(text.replace(static, 'dynamic = ["version"]') + dynamic)
    forged = f"open({str(told)!r}, 'a').write('LD_PRELOAD=/evil.so')"
    (member / "version.py").write_text(f"{forged}\n__version__ = '1.0.0'\n")
    git(workspace, "add", "--all")
    git(workspace, "commit", "--quiet", "--message", "A version that is computed")

    assert main(["plan", str(workspace), registry, "--packages", "demo-a"]) == 1
    assert told.read_text() == "BEFORE=1\n"
    said = capsys.readouterr().err
    assert f"error: {told}: written during the release, not by ReleaseKit; put back" in said


def test_what_a_build_tells_the_runner_is_taken_out(
    workspace: Path,
    registry: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """R50: it is published by then, and the step fails."""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    files = {name: tmp_path / name for name in ("GITHUB_ENV", "GITHUB_OUTPUT")}
    for name, path in files.items():
        path.touch()
        monkeypatch.setenv(name, str(path))
    member = workspace / "packages" / "demo-a"
    with (member / "pyproject.toml").open("a") as manifest:
        manifest.write('\n[tool.hatch.build.targets.sdist.hooks.custom]\npath = "hook.py"\n')
    forged = [f"Path({str(path)!r}).write_text('result=forged')" for path in files.values()]
    (member / "hook.py").write_text(HOOK.format("; ".join(forged)))
    git(workspace, "add", "--all")
    git(workspace, "commit", "--quiet", "--message", "A build script")

    assert main(["publish", str(workspace), registry, "--packages", "demo-a"]) == 1
    found = capsys.readouterr()
    for path in files.values():
        told = f"{path}: written during the release, not by ReleaseKit; put back"
        assert f"error: {told} [RK-115]\n" in found.err
        assert f"::error title=ReleaseKit [RK-115]::{told}\n" in found.out
    assert files["GITHUB_ENV"].read_text() == ""
    outputs = files["GITHUB_OUTPUT"].read_text()
    assert "forged" not in outputs
    assert [block.splitlines()[1] for block in outputs.split("result<<")[1:]] == [
        "success",
        "failure",
    ]
    assert main(["publish", str(workspace), registry, "--packages", "demo-a"]) == 0


def test_a_run_that_ends_before_its_plan_says_so_in_the_summary(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R34, R35, R47: nobody finds an empty page, and nothing of a secret on it."""
    summary = tmp_path / "summary"
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_REPOSITORY", "acme/widgets")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    monkeypatch.setenv("RELEASEKIT_PYPI_TOKEN", "canary-3f9a")
    assert main(["publish", str(workspace), "--gate=<b>canary-3f9a"]) == 2
    text = summary.read_text()
    assert text.startswith("## ❌ acme/widgets: the run ended early\n\n> [!CAUTION]\n")
    assert "> **Nothing was published.**\n>\n> " in text
    assert "gate" in text
    assert "problems.md#rk-" in text
    assert "<b>" not in text
    assert "canary" not in text
    summary.unlink()
    assert main(["publish", str(workspace), "--gate=no", "--summary=false"]) == 2
    assert not summary.exists()
    assert main(["check", str(workspace), "--gate=no"]) == 2
    assert not summary.exists()


def test_a_summary_that_cannot_be_written_hides_no_error(
    workspace: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path))
    assert main(["publish", str(workspace), "--gate=no"]) == 2
    printed = capsys.readouterr()
    assert "gate" in printed.err
    assert "the job summary is not written" in printed.out


def test_a_summary_does_not_say_that_nothing_was_published_where_that_is_not_known(
    workspace: Path, registry: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R47"""
    summary = tmp_path / "summary"
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))

    def full(_path: Path, _text: str) -> None:
        raise PathError("results.json: cannot be written: No space left on device")

    monkeypatch.setattr("releasekit.cli.result_files.write", full)
    assert main(["publish", str(workspace), registry, "--packages", "demo-c"]) == 2
    assert "demo_c" in str([*(tmp_path / "r").rglob("*.whl")])
    assert "> **The run ended with an error.**" in summary.read_text()


def test_summary_and_annotations_can_be_turned_off(
    workspace: Path,
    registry: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary"))
    (workspace / "packages" / "demo-a" / "src" / "demo_a" / "__init__.py").unlink()
    flags = ["--packages=demo-a", "--summary=false", "--annotations=false"]
    assert main(["publish", str(workspace), registry, *flags]) == 1
    assert not (tmp_path / "summary").exists()
    assert "::error" not in capsys.readouterr().out


def test_the_parts_of_a_release_are_joined(
    workspace: Path, registry: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R4: also what no job has reported is accounted for."""
    plan_file = f"--plan-file={tmp_path / 'plan.json'}"
    assert main(["plan", str(workspace), registry, plan_file]) == 0
    part = ["publish", str(workspace), registry, plan_file]
    for name in ("demo-a", "demo-c"):
        where = f"--state-directory={tmp_path / 'parts' / name}"
        assert main([*part, "--packages", name, where]) == 0
    joined = ["report", str(workspace), f"--state-directory={tmp_path / 'parts'}"]
    results = tmp_path / "joined.json"
    assert main([*joined, plan_file, f"--results-file={results}"]) == 1
    rows = json.loads(results.read_text())["packages"]
    assert {row["name"]: row["outcome"] for row in rows} == {
        "demo-a": "published",
        "demo-b": "unknown",
        "demo-c": "published",
    }
    assert "demo-b" in capsys.readouterr().out


def test_results_are_where_they_are_asked_for_too_and_the_report_page_beside_them(
    workspace: Path, registry: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And a page of an earlier run, or of somebody else, is never taken for this run's."""
    page = workspace / ".releasekit" / "report.html"
    publish = ["publish", str(workspace), registry, "--packages=demo-a"]
    assert main(publish) == 0
    assert "The package is published" in page.read_text()
    assert main(publish) == 0
    assert "already published, nothing to do" in page.read_text()
    wanted = tmp_path / "some where" / "results.json"
    assert main([*publish, f"--results-file={wanted}"]) == 0
    assert json.loads(wanted.read_text()) == json.loads(page.with_name("results.json").read_text())
    joined = tmp_path / "joined" / "results.json"
    assert main(["report", str(workspace), f"--results-file={joined}"]) == 0
    assert "already published, nothing to do" in joined.with_name("report.html").read_text()
    joined.with_name("report.html").write_text("mine")
    capsys.readouterr()
    assert main(["report", str(workspace), f"--results-file={joined}"]) == 0
    assert "report.html is there, and is no report page; this run has" in capsys.readouterr().out
    assert joined.with_name("report.html").read_text() == "mine"


def test_results_that_cannot_be_written_are_a_clear_error(
    workspace: Path, registry: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    wanted = tmp_path / "file" / "results.json"
    assert main(["publish", str(workspace), registry, f"--results-file={wanted}"]) == 2
    assert "cannot be written" in capsys.readouterr().err


def test_a_run_without_results_leaves_none_of_an_earlier_one(
    workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R4: a job that joins results must not take a success of yesterday for this run's."""
    (tmp_path / "r" / "pypi" / "simple" / "demo-a" / "index.html").mkdir(parents=True)
    state = tmp_path / "state"
    kept, wanted = state / "results.json", tmp_path / "wanted.json"
    page = tmp_path / "report.html"
    state.mkdir()
    for path in (kept, wanted):
        path.write_text('{"schema": 1}')
    page.write_text(BEGINNING)
    argv = ["publish", str(workspace), f"--registry=dir:{tmp_path / 'r'}"]
    assert main([*argv, f"--state-directory={state}", f"--results-file={wanted}"]) == 1
    assert "cannot be read" in capsys.readouterr().err
    assert not kept.exists()
    assert not wanted.exists()
    assert not page.exists()


def test_results_that_cannot_be_removed_are_a_clear_error(
    workspace: Path, registry: str, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = workspace / ".releasekit" / "results.json"
    kept.mkdir(parents=True)
    assert main(["publish", str(workspace), registry]) == 2
    assert f"{kept}: cannot be removed: " in capsys.readouterr().err


def test_a_run_names_a_dead_holder_before_it_takes_the_lock(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R43: also when it then ends at once, for there is nothing here to publish."""
    lock = tmp_path / ".releasekit" / "lock.pypi"
    lock.parent.mkdir()
    lock.write_text('{"pid": 1, "host": "elsewhere", "started": "2026"}')
    assert main(["publish", str(tmp_path)]) == 2
    assert capsys.readouterr().out.startswith(
        "the last run (process 1 on elsewhere, started 2026) did not end in order; "
        "this one goes on from what the registries have\n"
    )


def test_check_finds_and_fixes_what_earlier_runs_left(
    workspace: Path, registry: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """R30: nothing after a good run, and where one was cut off; each finding with its cure."""
    assert main(["publish", str(workspace), registry]) == 0
    capsys.readouterr()
    assert main(["check", str(workspace), registry]) == 0
    *_, found, verdict = capsys.readouterr().out.splitlines()
    assert found.endswith("nothing was left behind")
    assert verdict == "nothing missing"
    journal = workspace / ".releasekit" / "journal.jsonl"
    journal.write_bytes(journal.read_bytes() + b'{"torn')
    assert main(["check", str(workspace), registry]) == 1
    assert capsys.readouterr().out.splitlines()[-3:] == [
        "to do  torn-journal: journal.jsonl: ends in 6 bytes that are not a record",
        "       The next run drops them: nothing was ever promised about them.",
        "1 thing to do",
    ]
    assert main(["check", str(workspace), registry, "--fix"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("fixed: journal.jsonl: ends in 6 bytes that are not a record\nok ")
    assert "\nnothing missing\n" in said
    lines = journal.read_bytes().splitlines(keepends=True)
    confirmed = next(i for i, line in enumerate(lines) if b'ended","node":"confirm' in line)
    journal.write_bytes(b"".join(lines[: confirmed + 1]))
    assert main(["check", str(workspace), registry]) == 1
    assert re.search(
        r"(?m)^to do  interrupted-run: .*, was cut off\n"
        r"       Publish again: it goes on from what the registries have\.$",
        capsys.readouterr().out,
    )


HOOK = """
from pathlib import Path
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

class CustomBuildHook(BuildHookInterface):
    def initialize(self, version, build_data):
        {}
"""


def test_what_a_build_writes_beside_its_manifest_is_its_own(
    workspace: Path, registry: str, tmp_path: Path
) -> None:
    """R45: a tracked file, and a new one; the tree is dirty from the start."""
    member = workspace / "packages" / "demo-a"
    files = [member / "src" / "demo_a" / "__init__.py", member / "left-behind.txt"]
    with (member / "pyproject.toml").open("a") as manifest:
        manifest.write('\n[tool.hatch.build.targets.sdist.hooks.custom]\npath = "hook.py"\n')
    script = "; ".join(f"Path({str(file)!r}).write_text('# written')" for file in files)
    (member / "hook.py").write_text(HOOK.format(script))
    git(workspace, "add", "--all")
    git(workspace, "commit", "--quiet", "--message", "A build script")
    (member / "README.md").write_text("not committed\n")
    assert main(["publish", str(workspace), registry, "--packages=demo-a"]) == 0
    assert [file.read_text() for file in files] == ["# written"] * 2
    assert (tmp_path / "r" / "pypi" / "files" / "demo-a").exists()


def test_a_commit_between_build_and_upload_is_a_change(
    workspace: Path, registry: str, tmp_path: Path
) -> None:
    """R45: before and after are named; nothing of it is sent, and its dependents are blocked."""
    member = workspace / "packages" / "demo-a"
    with (member / "pyproject.toml").open("a") as manifest:
        manifest.write('\n[tool.hatch.build.targets.sdist.hooks.custom]\npath = "hook.py"\n')
    commit = (
        "import subprocess; subprocess.run(['git', '-c', 'user.name=x', '-c', 'user.email=x', "
        f"'commit', '-q', '--allow-empty', '-m', 'x'], cwd={str(workspace)!r}, check=True)"
    )
    (member / "hook.py").write_text(HOOK.format(commit))
    git(workspace, "add", "--all")
    git(workspace, "commit", "--quiet", "--message", "A build script")
    before = git(workspace, "rev-parse", "HEAD").strip()
    assert main(["publish", str(workspace), registry, "--packages=demo-a,demo-b"]) == 1
    after = git(workspace, "rev-parse", "HEAD").strip()
    results = json.loads((workspace / ".releasekit" / "results.json").read_text())
    ended = {each["name"]: each for each in results["packages"]}
    assert ended["demo-a"]["reason"].startswith(f"the sources are at {after}, planned {before}")
    assert ended["demo-b"]["outcome"] == "blocked"
    assert not (tmp_path / "r" / "pypi" / "files").exists()
