"""Which registry a package is meant for, by the settings of the tools that would publish it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import httpx

from releasekit.ecosystems.pypi.manifest import read_uv_settings
from releasekit.ecosystems.shared.destinations import NamedRegistry
from releasekit.ecosystems.shared.documents import table_in, text_in
from releasekit.host.files import inside, is_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_PYPI: Final = frozenset({"pypi.org", "upload.pypi.org"})
# Named beside the registry that releases go to. https://packaging.python.org/en/latest/guides/using-testpypi/
_TRIALS: Final = "test.pypi.org"
# https://python-poetry.org/docs/repositories/#publishable-repositories,
# https://pdm-project.org/latest/reference/configuration/
_FILES: Final = {"poetry.toml": "repositories", "pdm.toml": "repository"}


class UvSettings(NamedTuple):
    """What uv goes by: a uv.toml, or the `tool.uv` of a pyproject.toml, which is `where` then."""

    table: Mapping[str, object]
    path: Path
    where: str


def find_named_registry(
    document: Mapping[str, object], path: Path, uv: UvSettings, home: Path, root: Path
) -> NamedRegistry | None:
    """Another one than PyPI that its files name; None where these name PyPI, or nothing. `document`
    is its pyproject.toml at `path`, and `home` the root of its workspace, at or below `root`.

    `uv publish` goes by `publish-url`, and by an index only with `--index`; poetry and pdm by a
    repository only with its name. Which of them releases go to, no file says.
    https://docs.astral.sh/uv/reference/settings/#publish-url,
    https://docs.astral.sh/uv/guides/package/#publishing-your-package
    """
    own = UvSettings(table_in(table_in(document, "tool"), "uv"), path, "tool.uv.")
    for settings in (uv, own):
        if url := text_in(settings.table, "publish-url"):
            named = NamedRegistry(str(settings.path), f"{settings.where}publish-url", url)
            return None if _get_host(url) in _PYPI else named
    candidates = [*_list_indexes(uv), *_list_indexes(own)]
    candidates += _list_repositories(root, path.parent, home)
    hosts = {_get_host(each.url): each for each in candidates}
    if not hosts.keys().isdisjoint(_PYPI):
        return None
    return next((each for host, each in hosts.items() if host != _TRIALS), None)


def _list_indexes(uv: UvSettings) -> Iterator[NamedRegistry]:
    listed = uv.table.get("index")
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, dict) and (url := text_in(each, "publish-url")):
            key = f"{uv.where}index.{text_in(each, 'name')}.publish-url"
            yield NamedRegistry(str(uv.path), key, url)


def _list_repositories(root: Path, *directories: Path) -> Iterator[NamedRegistry]:
    for directory in dict.fromkeys(directories):
        for name, key in _FILES.items():
            path = directory / name
            if not is_file(path):
                continue
            document = read_uv_settings(inside(root, path, where=str(path)))
            for called, each in table_in(document, key).items():
                if url := text_in(each, "url"):
                    yield NamedRegistry(str(path), f"{key}.{called}.url", url)


def _get_host(url: str) -> str:
    try:
        return httpx.URL(url).host
    except (httpx.InvalidURL, UnicodeError):
        return url
