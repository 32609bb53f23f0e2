"""The judges of Go: the go command, and golang.org/x/mod behind a program of ours."""

from __future__ import annotations

import atexit
import functools
import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_HERE: Final = Path(__file__).parent
# No network, no other toolchain, and none of the user's settings.
ENVIRONMENT: Final[Mapping[str, str]] = {
    "GOENV": "off",
    "GOFLAGS": "-mod=readonly",
    "GOPROXY": "off",
    "GOSUMDB": "off",
    "GOTOOLCHAIN": "local",
    "GO111MODULE": "on",
}
# What go could read in another toolchain, or with a network, which it does not get here.
ELSEWHERE: Final = re.compile(
    r"requires go >= |disabled by GOPROXY=off|updates to go.mod needed|missing go.sum entry"
)


@functools.cache
def build(checkout: Path) -> Path:
    """The program, compiled once as if it lay in the checkout of x/mod."""
    directory = Path(tempfile.mkdtemp(prefix="releasekit-judge-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    overlay, program = directory / "overlay.json", directory / "judge"
    at = checkout.resolve() / "releasekit" / "main.go"
    overlay.write_text(json.dumps({"Replace": {str(at): str(_HERE / "judge.go")}}))
    environment = {**os.environ, **ENVIRONMENT, "GOFLAGS": "", "GOWORK": "off"}
    argv = ["go", "build", "-overlay", str(overlay), "-o", str(program), "./releasekit"]
    subprocess.run(argv, cwd=checkout, env=environment, check=True)
    return program


def ask(program: Path, *arguments: str | Path, questions: Sequence[object] = ()) -> Any:
    argv = [str(program), *map(str, arguments)]
    asked = json.dumps(questions)
    done = subprocess.run(argv, input=asked, stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(done.stdout)


def run_go(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["go", *arguments],
        cwd=root,
        env={**os.environ, **ENVIRONMENT},
        capture_output=True,
        text=True,
        check=False,
    )
