"""Refuses a run that was started in a member of a workspace: it would see one package, but neither
the packages that it needs nor their versions. One whose root cannot be read is refused too.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from releasekit.config.file import MAX_BYTES
from releasekit.config.locations import FILENAME
from releasekit.ecosystems import folders
from releasekit.errors import ConfigError
from releasekit.host.files import is_file, read_parsed, repository_of
from releasekit.problems import Problem
from releasekit.text.bounds import parse_toml
from releasekit.text.globs import Glob

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from releasekit.config.declaration import EcosystemDeclaration


def refuse_member(
    directory: Path, ecosystems: Mapping[str, EcosystemDeclaration], *, home: str = ""
) -> None:
    """Raises ConfigError that names the root of the workspace. Reads the manifests of directories
    above, up to the root of the repository; outside of a repository, up to `home` if given.
    """
    levels = list(directory.parents)  # nearest first
    if (top := repository_of(directory)) is not None:
        levels = [level for level in levels if level.is_relative_to(top)]
    elif home and (end := Path(home).resolve()) in levels:
        levels = levels[: levels.index(end)]
    for name, ecosystem in ecosystems.items():
        if root := _find_root(directory, levels, ecosystem):
            found = f"{directory} is a member of the {name} workspace {root}"
        elif root := _find_naming(directory, levels, ecosystem):
            found = f"[{name}] in {root / FILENAME} names {directory}"
        else:
            continue
        raise ConfigError(
            found,
            hint=f"Run in {root} (`working-directory`), and choose packages with `packages` "
            "if not all of them are meant.",
            problem=Problem.INSIDE_WORKSPACE,
        )


def _find_naming(
    directory: Path, levels: Sequence[Path], ecosystem: EcosystemDeclaration
) -> Path | None:
    """Where a releasekit.toml takes in `directory`, as a package that is in no workspace, or as a
    workspace that has no such file of its own.
    """
    manifests = ecosystem.manifests
    if manifests is None or not any((directory / name).is_file() for name in manifests.names):
        return None
    keys = {manifests.packages} - {"", manifests.workspaces}
    if not is_file(directory / FILENAME):
        keys |= {manifests.workspaces} - {""}
    for level in levels:
        path = level / FILENAME
        if not is_file(path):
            continue
        with _refusing_unread(directory, level, ecosystem):
            tables = read_parsed(path, parse_toml, complaint="", max_bytes=MAX_BYTES)
            table = tables.get(ecosystem.name)
            lists = [table.get(key) for key in keys] if isinstance(table, dict) else []
            globs = [
                Glob.parse(str(each), where=FILENAME)
                for values in lists
                for each in (values if isinstance(values, list) else ())
            ]
            if any(glob.matches(directory.relative_to(level).parts) for glob in globs):
                return level
    return None


@contextmanager
def _refusing_unread(
    directory: Path, level: Path, ecosystem: EcosystemDeclaration
) -> Iterator[None]:
    try:
        yield
    except ConfigError as error:
        raise ConfigError(
            f"{directory} may be a member of the {ecosystem.name} workspace {level}: {error}",
            hint=f"{error.hint or 'Correct that file.'} Or leave {ecosystem.name} out with "
            "`ecosystem`.",
            problem=Problem.INSIDE_WORKSPACE,
        ) from error


def _find_root(
    directory: Path, levels: Sequence[Path], ecosystem: EcosystemDeclaration
) -> Path | None:
    """The root of the outermost workspace that has `directory` for a member."""
    manifests = ecosystem.manifests
    if manifests is None or not any((directory / name).is_file() for name in manifests.names):
        return None
    roots = folders.roots(ecosystem)
    # Discovery reports manifests here that cannot be read.
    with suppress(ConfigError):
        is_root = roots.workspace_at(directory) is not None
        if is_root and not manifests.nested:
            return None
        if not is_root and not roots.publishable_at(directory):
            return None
    found = None
    for level in levels:
        with _refusing_unread(directory, level, ecosystem):
            membership = roots.workspace_at(level)
            if membership is not None and membership(found or directory) == "member":
                found = level
                if not manifests.nested:
                    break
    return found
