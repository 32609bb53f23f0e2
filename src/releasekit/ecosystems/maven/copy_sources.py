"""A program of its own, which copies the sources of a reactor, within the rights of a build.

    python -I -S copy_sources.py TOP COPY STATE_DIRECTORY NAME...

The state directory, what has one of the NAMEs, and what an earlier build has made beside a POM stay
behind. A link is copied as a link.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import sys


def copy_sources(top: str, copy: str, state_directory: str, *names: str) -> None:
    """Raises OSError.

    No mode and no time is set by name: the sandbox keeps nobody from those of a file outside, to
    which another build's link may lead by then.
    """
    for directory, inner, files in os.walk(top, onerror=_refuse):
        target = copy + directory[len(top) :]
        os.mkdir(target)  # noqa: PTH102 (pathlib takes 20 ms to import)
        left_out = {*names, *({"target"} if "pom.xml" in files else ())}
        inner[:] = [
            name
            for name in inner
            if name not in left_out and _join(directory, name) != state_directory
        ]
        for name in (*inner, *(name for name in files if name not in left_out)):
            source = _join(directory, name)
            if os.path.islink(source):  # noqa: PTH114
                os.symlink(os.readlink(source), _join(target, name))  # noqa: PTH115, PTH211
            elif name not in inner:
                _copy_file(source, _join(target, name))


def _copy_file(source: str, target: str) -> None:
    # A pipe would wait for somebody; Windows has neither.
    without = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    descriptor = os.open(source, os.O_RDONLY | without)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "is no regular file", source)

    def made(path: str, flags: int) -> int:
        return os.open(path, flags, stat.S_IMODE(mode))

    with open(descriptor, "rb") as old, open(target, "xb", opener=made) as new:  # noqa: PTH123
        shutil.copyfileobj(old, new)


def _join(directory: str, name: str) -> str:
    return f"{directory}{os.sep}{name}"


def _refuse(error: OSError) -> None:
    raise error


def main() -> None:
    try:
        copy_sources(*sys.argv[1:])
    except OSError as error:
        sys.exit(f"{error.filename}: {error.strerror}")


if __name__ == "__main__":
    main()
