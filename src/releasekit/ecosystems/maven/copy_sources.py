"""A program that copies the sources of a reactor with the rights of a build.

    python -I -S copy_sources.py TOP COPY BASE STATE_DIRECTORY NAME...

It leaves out the state directory, everything with one of the NAMEs, and the `target` beside a POM.
It copies a link as a link. What lies around TOP in BASE is linked to around COPY: sources and
resources may come from there.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import sys


def copy_sources(top: str, copy: str, base: str, state_directory: str, *names: str) -> None:
    """Raises OSError.

    It sets modes by descriptor and no times: by name it could change those of a file outside, to
    which a link of another build leads. The sandbox does not prevent that.
    """

    def is_wanted(directory: str, name: str, *left_out: str) -> bool:
        return name not in {*names, *left_out} and f"{directory}/{name}" != state_directory

    for directory, inner, files in os.walk(top, onerror=_refuse):
        target = copy + directory[len(top) :]
        os.mkdir(target)  # noqa: PTH102 (pathlib takes 20 ms to import)
        output = ["target"] if "pom.xml" in files else []
        inner[:] = [name for name in inner if is_wanted(directory, name, *output)]
        for name in (*inner, *(name for name in files if is_wanted(directory, name, *output))):
            source, place = f"{directory}/{name}", f"{target}/{name}"
            if os.path.islink(source):  # noqa: PTH114
                os.symlink(os.readlink(source), place)  # noqa: PTH115, PTH211
            elif name not in inner:
                _copy_file(source, place)
    while top != base:
        above, beside = os.path.dirname(top), os.path.dirname(copy)  # noqa: PTH120
        for name in os.listdir(above):  # noqa: PTH208
            path = f"{above}/{name}"
            # What Maven itself would look for above a reactor is not part of it here.
            if path != top and is_wanted(above, name, "pom.xml", ".mvn"):
                os.symlink(path, f"{beside}/{name}")  # noqa: PTH211
        top, copy = above, beside


def _copy_file(source: str, target: str) -> None:
    # A pipe would block until another process writes to it.
    descriptor = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "is not a regular file", source)

    def made(path: str, flags: int) -> int:
        return os.open(path, flags, stat.S_IMODE(mode))

    with open(descriptor, "rb") as old, open(target, "xb", opener=made) as new:  # noqa: PTH123
        shutil.copyfileobj(old, new)


def _refuse(error: OSError) -> None:
    raise error


def main() -> None:
    try:
        copy_sources(*sys.argv[1:])
    except OSError as error:
        sys.exit(f"{error.filename}: {error.strerror}")


if __name__ == "__main__":
    main()
