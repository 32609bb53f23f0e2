"""In-repo requirements of a pyproject.toml, pinned to the planned versions, text to text."""

from __future__ import annotations

import json
import re
import tomllib
from typing import TYPE_CHECKING, Any, Final, Literal

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from releasekit.errors import PlanError
from releasekit.text.toml_text import TOKEN

if TYPE_CHECKING:
    from collections.abc import Mapping

Mode = Literal["auto", "exact", "none"]

# What stands before the specifier.
# https://packaging.python.org/en/latest/specifications/dependency-specifiers/
_HEAD: Final = re.compile(r"\s*[A-Za-z0-9._-]+(?:\s*\[[^\]]*\])?")


def pin(manifest: str, versions: Mapping[str, str], mode: Mode = "auto") -> str:
    """`manifest` with its requirements on the packages in `versions` pinned as `mode` says.

    Nothing outside the requirement strings changes. Raises PlanError for a requirement that
    excludes the planned version.
    """
    if mode == "none":
        return manifest
    own = canonicalize_name(_parsed(manifest)["project"]["name"])
    pieces, end = [], 0
    for token in TOKEN.finditer(manifest):
        wanted = _requirement(token["string"])
        if wanted is None or wanted.url is not None:
            continue
        name = canonicalize_name(wanted.name)
        if name == own or name not in versions or not _declares(manifest, token.span()):
            continue
        _refuse_conflict(own, wanted, versions[name])
        if _needs_pin(wanted, versions[name], mode):
            pieces += [manifest[end : token.start()], _pinned(token["string"], versions[name])]
            end = token.end()
    return "".join([*pieces, manifest[end:]])


def _parsed(manifest: str) -> dict[str, Any]:
    return tomllib.loads(manifest.removeprefix("\ufeff").replace("\r\n", "\n"))


def _value(literal: str) -> str:
    return str(tomllib.loads(f"value = {literal}")["value"])


def _requirement(literal: str | None) -> Requirement | None:
    """What the string says, if it is a requirement: most strings of a manifest are not."""
    if literal is None:
        return None
    try:
        return Requirement(_value(literal))
    except InvalidRequirement:
        return None


def _declares(manifest: str, span: tuple[int, int]) -> bool:
    """Whether the string at `span` is one of the requirements that end up in what is built.

    Another string is put in its place, and looked for where those requirements are.
    """
    mark = "mark"
    while mark in manifest:
        mark += "-"
    document = _parsed(f'{manifest[: span[0]]}"{mark}"{manifest[span[1] :]}')
    project = document.get("project", {})
    lists = [
        project.get("dependencies", []),
        *project.get("optional-dependencies", {}).values(),
        document.get("build-system", {}).get("requires", []),
    ]
    return any(mark in requirements for requirements in lists)


def _refuse_conflict(own: str, wanted: Requirement, version: str) -> None:
    if not wanted.specifier.contains(version, prereleases=True):
        raise PlanError(
            f"pypi:{own} requires {str(wanted)!r}, but the workspace has {wanted.name} {version}",
            hint="Widen the requirement, or release the version it asks for first.",
        )


def _needs_pin(wanted: Requirement, version: str, mode: Mode) -> bool:
    if not wanted.specifier:
        return True
    return mode == "exact" and str(wanted.specifier) != f"=={version}"


def _pinned(literal: str, version: str) -> str:
    """The string literal with its specifier replaced, quotes and all else as they are."""
    quote = literal[:3] if literal[:3] in {'"""', "'''"} else literal[0]
    inner = literal[len(quote) : -len(quote)]
    if quote[0] == '"' and "\\" in inner.partition(";")[0]:
        # Escapes before the marker: rare enough to be spelled anew, as JSON, which is TOML too.
        return json.dumps(_with_version(_value(literal), version), ensure_ascii=False)
    return f"{quote}{_with_version(inner, version)}{quote}"


def _with_version(requirement: str, version: str) -> str:
    head = _HEAD.match(requirement)
    if head is None:  # pragma: no cover - Requirement() accepted it
        raise ValueError(requirement)
    specifier, semicolon, marker = requirement[head.end() :].partition(";")
    space = specifier[len(specifier.rstrip()) :]
    return f"{head[0]}=={version}{space}{semicolon}{marker}"
