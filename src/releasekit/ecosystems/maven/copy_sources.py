"""A program of its own, which copies the sources of a reactor, within the rights of a build.

    python -I -S copy_sources.py TOP COPY STATE_DIRECTORY NAME...

The state directory, what has one of the NAMEs, and what an earlier build has made beside a POM stay
behind. A link is copied as a link.
"""

from __future__ import annotations

import os
import shutil
import sys


def copy_sources(top: str, copy: str, state_directory: str, *names: str) -> None:
    """Raises OSError, and shutil.Error with a row for each file that was not copied."""

    def left_out(directory: str, found: list[str]) -> set[str]:
        built = {"target"} if "pom.xml" in found else set()
        state = {os.path.basename(state_directory)}  # noqa: PTH119 (pathlib takes 20 ms to import)
        return {*names, *built, *(state if directory == os.path.dirname(state_directory) else ())}  # noqa: PTH120

    shutil.copytree(top, copy, symlinks=True, ignore=left_out)


def main() -> None:
    try:
        copy_sources(*sys.argv[1:])
    except shutil.Error as error:
        sys.exit("\n".join(f"{source}: {why}" for source, _, why in error.args[0][:20]))
    except OSError as error:
        sys.exit(f"{error.filename}: {error.strerror}")


if __name__ == "__main__":
    main()
