"""What a user can get wrong: one clear message each, the right exit code, nothing done."""

from __future__ import annotations

import json
import os
import re
from contextvars import Context
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from releasekit.__main__ import main
from releasekit.state import locks
from workspaces import uv_workspace, write_member

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

MEMBER = "packages/demo-a/pyproject.toml"
BACKEND = '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'


@dataclass(frozen=True)
class Case:
    """`files` are written over a good workspace of demo-a and demo-b (which needs demo-a); `None`
    deletes. `says` are regular expressions, all found in the message.
    """

    name: str
    code: int
    says: tuple[str, ...]
    files: Mapping[str, str | None] = field(default_factory=dict)
    argv: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    command: str = "plan"


def project(text: str) -> str:
    return f"[project]\n{text}\n{BACKEND}"


CASES = [
    Case(
        "no workspace",
        2,
        ("there is no package to publish here", "pypi packages in no workspace"),
        {"pyproject.toml": None},
    ),
    Case(
        "no directory", 2, ("nowhere", "does not exist|not a directory|no such"), argv=("nowhere",)
    ),
    Case(
        "unreadable TOML",
        2,
        (r"demo-a.pyproject\.toml", "line 2"),
        {MEMBER: "[project]\nname = \n"},
    ),
    Case(
        "unreadable configuration",
        2,
        (r"releasekit\.toml", "line 1"),
        {"releasekit.toml": "concurrency = = 3\n"},
    ),
    Case(
        "unknown key",
        2,
        (r"releasekit\.toml", "concurency", "concurrency"),
        {"releasekit.toml": "concurency = 3\n"},
    ),
    Case(
        "unknown key of an ecosystem",
        2,
        (r"releasekit\.toml", "pakages", "packages"),
        {"releasekit.toml": '[pypi]\npakages = ["x"]\n'},
    ),
    Case("unknown value", 2, ("gate", "visibel", "visible"), argv=("--gate", "visibel")),
    Case("no number", 2, ("concurrency", "many"), argv=("--concurrency", "many")),
    Case("out of bounds", 2, ("concurrency", "0", "1"), argv=("--concurrency", "0")),
    Case("no duration", 2, ("task-timeout", "soon"), argv=("--task-timeout", "soon")),
    Case(
        "no boolean",
        2,
        ("summary|SUMMARY", "yes", "true"),
        environment={"RELEASEKIT_SUMMARY": "yes"},
    ),
    Case(
        "misspelt variable",
        2,
        ("RELEASEKIT_CONCURENCY", "RELEASEKIT_CONCURRENCY"),
        environment={"RELEASEKIT_CONCURENCY": "3"},
    ),
    Case(
        "misspelt secret",
        2,
        ("RELEASEKIT_PIPY_TOKEN", "RELEASEKIT_PYPI_TOKEN"),
        environment={"RELEASEKIT_PIPY_TOKEN": "hunter2"},
    ),
    Case("unknown ecosystem", 2, ("ecosystem", "conda", "pypi"), argv=("--ecosystem", "conda")),
    Case("unknown flag", 2, ("--concurency", "--concurrency"), argv=("--concurency", "3")),
    Case(
        "a pattern that matches nothing",
        2,
        ("packages", "demo-x"),
        argv=("--packages", "demo-x"),
    ),
    Case(
        "duplicate names",
        2,
        ("demo-c.pyproject", "demo-a.pyproject|demo_A", "demo-a|Demo_A"),
        {"packages/demo-c/pyproject.toml": project('name = "Demo_A"\nversion = "1.0"')},
    ),
    Case(
        "missing version",
        2,
        (r"demo-a.pyproject\.toml", "version"),
        {MEMBER: project('name = "demo-a"')},
    ),
    Case(
        "no version of PEP 440",
        2,
        (r"demo-a.pyproject\.toml", "version", "one point oh"),
        {MEMBER: project('name = "demo-a"\nversion = "one point oh"')},
    ),
    Case(
        "no requirement of PEP 508",
        2,
        (r"demo-a.pyproject\.toml", "dependencies", "demo b"),
        {MEMBER: project('name = "demo-a"\nversion = "1"\ndependencies = ["demo b"]')},
    ),
    Case(
        "a member without a manifest",
        2,
        ("packages.empty|empty",),
        {"pyproject.toml": '[tool.uv.workspace]\nmembers = ["packages/*", "empty"]\n'},
    ),
    Case(
        "members outside",
        2,
        (r"pyproject\.toml", r"\.\./"),
        {"pyproject.toml": '[tool.uv.workspace]\nmembers = ["../*"]\n'},
    ),
    Case(
        "cycle",
        3,
        ("pypi:demo-a", "pypi:demo-b"),
        {MEMBER: project('name = "demo-a"\nversion = "1"\ndependencies = ["demo-b"]')},
    ),
    Case(
        "needs what is never published",
        3,
        ("demo-b", "demo-a", "never published"),
        {
            MEMBER: project(
                'name = "demo-a"\nversion = "1"\nclassifiers = ["Private :: Do Not Upload"]'
            )
        },
    ),
    Case(
        "an extra edge to nowhere",
        3,
        (r"releasekit\.toml", "pypi:demo-x"),
        {"releasekit.toml": '[dependencies]\n"pypi:demo-a" = ["pypi:demo-x"]\n'},
    ),
    Case(
        "a registry without TLS",
        2,
        ("pypi-registry", "https"),
        argv=("--pypi-registry", "http://registry.example/"),
    ),
    Case(
        "credentials in a URL",
        2,
        ("pypi-registry",),
        argv=("--pypi-registry", "https://me:hunter2@registry.example/"),
    ),
    Case(
        "no plan file",
        2,
        ("gone.json",),
        argv=("--plan-file", "gone.json"),
        command="publish",
    ),
    Case(
        "another file instead of a plan",
        2,
        (r"pyproject\.toml", "not a plan file"),
        argv=("--plan-file", "pyproject.toml"),
        command="publish",
    ),
    Case("nothing to report", 2, (r"results\.json",), command="report"),
]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return uv_workspace(tmp_path / "w", {"demo-a": (), "demo-b": ("demo-a",)})


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in os.environ:
        if name.startswith(("RELEASEKIT_", "GITHUB_", "ACTIONS_", "RUNNER_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_bad_input(
    case: Case,
    workspace: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """R7"""
    (workspace / "empty").mkdir()
    for name, text in case.files.items():
        path = workspace / name
        if text is None:
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    for name, value in case.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(workspace)
    before = sorted(path for path in workspace.rglob("*") if ".releasekit" not in path.parts)
    registry = () if "--pypi-registry" in case.argv else (f"--registry=dir:{workspace / 'r'}",)
    if case.command == "report":
        registry = ()
    code = main([case.command, *case.argv, *registry])
    said = capsys.readouterr().err
    assert code == case.code, said
    for pattern in case.says:
        assert re.search(pattern, said), (pattern, said)
    lines = [line for line in said.splitlines() if not line.startswith("ReleaseKit ")]
    assert lines[0].startswith("error: ")
    assert len(lines) <= 3, said
    assert "Traceback" not in said
    assert "hunter2" not in said
    after = sorted(path for path in workspace.rglob("*") if ".releasekit" not in path.parts)
    assert after == before


def test_a_second_run_is_told_who_holds_the_lock(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R26"""
    other = Context().run(locks.acquire, workspace / ".releasekit", ["pypi"])
    with other:
        code = main(["publish", str(workspace), "--registry", f"dir:{workspace / 'r'}"])
    assert code == 4
    assert str(os.getpid()) in capsys.readouterr().err


def test_a_plan_file_that_keeps_everything_publishes_nothing(
    workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R20"""
    path = tmp_path / "plan.json"
    where = ["--registry", f"dir:{tmp_path / 'r'}", "--plan-file", str(path)]
    assert main(["plan", str(workspace), *where]) == 0
    made = path.read_text()
    assert '"action": "publish"' in made
    path.write_text(made.replace('"action": "publish"', '"action": "keep"'))
    capsys.readouterr()
    assert main(["publish", str(workspace), *where]) == 0
    assert "not published, as the plan file says: pypi:" in capsys.readouterr().out
    assert not list((tmp_path / "r").rglob("*.whl"))


def test_a_plan_file_binds_the_run(
    workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R20"""
    where = ["--registry", f"dir:{tmp_path / 'r'}", "--plan-file", str(tmp_path / "plan.json")]
    assert main(["plan", str(workspace), *where]) == 0
    write_member(workspace / "packages" / "demo-c", "demo-c")
    manifest = workspace / MEMBER
    manifest.write_text(manifest.read_text().replace("1.0.0", "1.0.1"))
    assert main(["publish", str(workspace), *where]) == 3
    assert "was planned at" in capsys.readouterr().err
    assert not (tmp_path / "r").exists()


def test_a_directory_that_is_gone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """R40"""
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert main(["plan"]) == 2
    assert "the current directory: No such file or directory; start in" in capsys.readouterr().err


PUBLIC = 'version = "1.0.0"\ndependencies = ["demo-c"]'
GO = "module example.org/{}\n\ngo 1.22\n"


@pytest.mark.parametrize(
    ("files", "code", "said"),
    [
        (
            {f"packages/{name}/pyproject.toml": project(f'name = "{name}"') for name in "xyz"},
            2,
            ("x/pyproject.toml: project.version is", "y/pyproject.toml: ", "z/pyproject.toml: "),
        ),
        (
            {
                f"packages/{name}/package.json": f'{{"name": "{name}", "version": "1"}}'
                for name in "xy"
            }
            | {"package.json": '{"private": true, "workspaces": ["packages/*"]}'},
            2,
            ("x/package.json: version is '1'", "y/package.json: version is '1'"),
        ),
        (
            {
                **{
                    f"packages/{n}/pyproject.toml": project(f'name = "{n}"\n{PUBLIC}') for n in "xy"
                },
                "packages/c/pyproject.toml": '[project]\nname = "demo-c"\nversion = "1"\n',
            },
            3,
            ("x/pyproject.toml: x needs demo-c (runtime)", "y/pyproject.toml: y needs demo-c"),
        ),
        (
            {
                **{
                    f"packages/{name}/package.json": json.dumps(
                        {"name": name, "version": "2.0.0", "dependencies": {"z": "workspace:^1"}}
                    )
                    for name in "xy"
                },
                "packages/z/package.json": '{"name": "z", "version": "2.0.0"}',
                "pnpm-workspace.yaml": "packages: ['packages/*']\n",
            },
            3,
            ("npm:x requires z 'workspace:^1'", "npm:y requires z 'workspace:^1'"),
        ),
        (
            {f"{name}/go.mod": GO.format(name) for name in ("a", "b")}
            | {"releasekit.toml": '[go]\nversion = "2.0.0"\n'},
            2,
            ("a/go.mod: ", "b/go.mod: ", "[go] private = ['a']", "[go] private = ['b']"),
        ),
    ],
    ids=["versions", "versions of npm", "private ones", "excluded versions", "modules"],
)
def test_all_refusals_of_a_kind_are_told_at_once(
    workspace: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    files: Mapping[str, str],
    code: int,
    said: tuple[str, ...],
) -> None:
    """R40: one at a time takes a run for each, 21 in a repository of 40 packages."""
    summary = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    for name, text in files.items():
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text(text)
    assert main(["plan", str(workspace), "--registry", f"dir:{workspace / 'r'}"]) == code
    err = capsys.readouterr().err
    assert [words for words in said if words not in err] == []
    assert len({line for line in err.splitlines() if line.startswith("error: ")}) == len(
        [words for words in said if "private =" not in words]
    )
    assert summary.read_text().count("needs demo-c") == err.count("needs demo-c")
