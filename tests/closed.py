"""Runs a command in the checkout or, where builds may write there, in a copy of it in /var/tmp.

    python tests/closed.py COMMAND...

ReleaseKit refuses `build-sandbox: required` where a build could change ReleaseKit itself, and most
people try things below /tmp, where every build may write.
"""

# ruff: noqa: T201 (a script)

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from integration.tools import find_open  # noqa: E402


def copy_checkout(copy: Path) -> None:
    """What git has and what it does not ignore, and an environment made anew: the scripts of one
    name its place.
    """
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(listing, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    subprocess.run(["git", "clone", "--quiet", ROOT, copy], check=True)
    for name in filter(None, listed.stdout.split("\0")):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).exists():
            shutil.copy2(ROOT / name, copy / name)
        else:
            (copy / name).unlink(missing_ok=True)
    subprocess.run(["make", "--no-print-directory", ".venv"], cwd=copy, check=True)


def main(argv: list[str]) -> int:
    found = find_open()
    if not found:
        os.execvp(argv[0], argv)
    with tempfile.TemporaryDirectory(prefix="releasekit-test-", dir="/var/tmp") as place:
        copy = Path(place) / ROOT.name
        print(f"{found}, and builds may write there: the tests run in {copy}", flush=True)
        copy_checkout(copy)
        return subprocess.run(argv, cwd=copy, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
