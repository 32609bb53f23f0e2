"""R40, R51: manifests and paths that mean harm. Each is one line that names the file, with an exit
code of its own, and none is a traceback, whatever the manifest says.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from releasekit.__main__ import MAX_CHARS, main

if TYPE_CHECKING:
    from pathlib import Path

BUILD = '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'


def _project(more: str = "", version: str = '"1.0.0"', name: str = "acme") -> str:
    return f'[project]\nname = "{name}"\nversion = {version}\n{more}\n{BUILD}'


def _npm(spec: str) -> dict[str, str]:
    return {
        "package.json": '{"workspaces": ["a", "b"]}',
        "a/package.json": f'{{"name": "a", "version": "1.0.0", "dependencies": {{"b": "{spec}"}}}}',
        "b/package.json": '{"name": "b", "version": "1.0.0"}',
    }


PYPROJECTS = {
    "a version of hexadecimal digits": _project(version=f"0x{'f' * 9000}"),
    "a version of many digits": _project(version=f'"{"1" * 5000}"'),
    "a version as long as a file": _project(version=f'"1+{"a" * 500_000}!"'),
    "a name as long as a file": _project(name="a" * 500_000),
    "a marker of parentheses": _project(f'dependencies = ["a; {"(" * 2000}"]'),
    "a requirement of commas": _project(f'dependencies = ["a{">=1," * 100_000}"]'),
    "a key of many parts": _project() + f"[x]\n{'.'.join('a' * 100_000)} = 1\n",
    "arrays in arrays": _project() + f"[x]\nx = {'[' * 100_000}\n",
    "a glob as long as a file": f'[tool.uv.workspace]\nexclude = ["{"*a" * 100_000}"]\n',
    "a NUL in a path": '[tool.uv.workspace]\nmembers = ["a\\u0000b"]\n',
}
FILES = {
    **{what: {"pyproject.toml": text} for what, text in PYPROJECTS.items()},
    "a path of NUL": _npm("file:\\u0000"),
    "a path that is too long": _npm(f"file:{'a' * 3000}"),
    "a path out of everywhere": _npm(f"file:{'../' * 100_000}"),
    "a range of many ranges": _npm(" || ".join([">=1"] * 50_000)),
    "a number no message can hold": {
        "package.json": "{}",
        "pnpm-workspace.yaml": f"catalog: {{a: 0x{'f' * 5000}}}",
    },
    "an unknown key as long as a file": {
        "pyproject.toml": _project(),
        "releasekit.toml": f"{'a' * 900_000} = 1",
    },
    "a state directory nobody can have": {
        "pyproject.toml": _project(),
        "releasekit.toml": f'state-directory = "{"a" * 5000}"',
    },
    "files in a directory nobody can have": {
        "pyproject.toml": _project(),
        "releasekit.toml": f'[dist]\npypi = "{"a" * 5000}"',
    },
    "a NUL in the configuration": {
        "pyproject.toml": _project(),
        "releasekit.toml": '[pypi]\nworkspaces = ["a\\u0000b"]',
    },
}


@pytest.mark.parametrize("what", FILES)
def test_a_hostile_manifest_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    """R40, R51, R33"""
    for name, text in FILES[what].items():
        path = tmp_path / "w" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert main(["plan", str(tmp_path / "w"), f"--registry=dir:{tmp_path / 'r'}"]) == (
        3 if what == "a path that is too long" else 2  # as for any path where nothing is
    )
    said = [line for line in capsys.readouterr().err.splitlines() if "error: " in line]
    assert len(said) == 1
    assert len(said[0]) < MAX_CHARS + 100


@pytest.mark.parametrize("command", ["init", "notes a 1.0.0", "status", "plan"])
def test_each_command_names_a_path_that_no_file_can_have(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    """R40"""
    text = _project(f'[tool.uv.workspace]\nmembers = ["{"a" * 300}"]\n')
    (tmp_path / "pyproject.toml").write_text(text)
    assert main([*command.split(), "--working-directory", str(tmp_path)]) == 2
    assert "File name too long; correct what names it" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["pyproject.toml", "package.json", "go.mod", "pom.xml"])
@pytest.mark.parametrize("kind", ["sparse", "directory"])
def test_what_is_no_manifest_is_not_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, kind: str
) -> None:
    """R40: ten gigabytes of nothing, or no file at all."""
    (tmp_path / "w").mkdir()
    path = tmp_path / "w" / name
    if kind == "directory":
        path.mkdir()
    else:
        path.touch()
        os.truncate(path, 10 * 1024**3)
    assert main(["plan", str(tmp_path / "w"), f"--registry=dir:{tmp_path / 'r'}"]) == 2
    assert capsys.readouterr().err.count("error: ") == 1


@pytest.mark.parametrize(
    "closed", [("stdout",), ("stderr",), ("stdin", "stdout", "stderr")], ids="-".join
)
def test_closed_streams_and_a_bare_environment_are_no_bug(
    tmp_path: Path, closed: tuple[str, ...]
) -> None:
    """R33: no HOME, no place for temporary files, nobody to talk to."""
    (tmp_path / "pyproject.toml").write_text(_project())
    numbers = {"stdin": 0, "stdout": 1, "stderr": 2}
    script = "".join(f"exec {numbers[name]}>&-; " for name in closed)
    done = subprocess.run(
        ["sh", "-c", f'{script} exec "$@"', "sh", sys.executable, "-m", "releasekit", "plan", "."],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "TMPDIR": str(tmp_path / "gone")},
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert b"Traceback" not in done.stderr + done.stdout
    assert done.returncode in {0, 1, 2}
