"""Whether a plan, results, a report page or outputs may be written to a path: only if it is free,
or an earlier run has written such a file there.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import Final, Literal

from releasekit.errors import PathError
from releasekit.host.files import read_head

# What every plan and all results begin with. A file that mktemp(1) has made is empty.
_OURS: Final = re.compile(rb'\{\s{0,9}"schema": ?[0-9]|\Z')
# What every report page begins with.
_PAGES: Final = re.compile(rb'<!doctype html>\n<html lang="en" data-releasekit-report="|\Z')
Written = Literal["record", "page", "outputs"]
_KINDS: Final[dict[Written, tuple[re.Pattern[bytes], str]]] = {
    "record": (_OURS, "neither a plan nor results"),
    "page": (_PAGES, "no report page"),
    "outputs": (re.compile(rb"RK_[A-Z]|\Z"), "no file of outputs"),
}
_HEAD_BYTES: Final = 64


def describe_obstacle(path: Path, kind: Written = "record") -> str:
    """Why a plan or results, a report page, or outputs must not replace what is at `path`: words
    that follow the path in a sentence, or nothing. The directories of `path` are not looked at.

    Raises OSError if `path` cannot be read.
    """
    try:
        status = path.lstat()
    except FileNotFoundError:
        return ""
    if stat.S_ISLNK(status.st_mode):
        return "is a symbolic link"
    if stat.S_ISDIR(status.st_mode):
        return "is a directory"
    if not stat.S_ISREG(status.st_mode):
        return "is not a regular file"
    begins, words = _KINDS[kind]
    if not begins.match(read_head(path, _HEAD_BYTES)):
        return f"is there, and is {words}"
    return ""


def find_link(path: Path, root: Path) -> Path | None:
    """The first symbolic link on the way from `root` to the directory of `path`, where it leads
    through `root`; links above are those of the machine.
    """
    lexical = Path(os.path.normpath(path))
    inner = [each for each in lexical.parents if os.path.realpath(each) == str(root)]
    if not inner:
        return None
    steps = reversed([each for each in lexical.parents if each.is_relative_to(inner[-1])])
    return next((each for each in steps if each != inner[-1] and each.is_symlink()), None)


def require_free(path: Path, label: str, kind: Written = "record") -> None:
    """Raises ConfigError naming the input, the path, what is there and what to write instead."""
    try:
        trouble = describe_obstacle(path, kind)
    except OSError as error:
        raise PathError(f"{label}: {path} cannot be written: {error.strerror}") from error
    if trouble:
        raise PathError(
            f"{label}: {path} {trouble}; write the path of a new file, or of one that an earlier "
            "run has written"
        )
