"""In-repo requirements of a pyproject.toml, pinned to the planned versions, text to text."""

from __future__ import annotations

import json
import re
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from releasekit.text.toml_text import Edit, Span, Where, changed, parse_toml, value_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from releasekit.config.values import PinMode


# What stands before the specifier.
# https://packaging.python.org/en/latest/specifications/dependency-specifiers/
_HEAD: Final = re.compile(r"\s*[A-Za-z0-9._-]+(?:\s*\[[^\]]*\])?")


def pin(manifest: str, versions: Mapping[str, str], mode: PinMode = "auto") -> str:
    """`manifest` with its requirements on the packages in `versions` pinned as `mode` says.

    Nothing outside the requirement strings changes, and nothing in one that excludes the planned
    version.
    """
    if mode == "none":
        return manifest
    document = parse_toml(manifest)
    own = canonicalize_name(document["project"]["name"])
    edits: dict[Where, Edit] = {}
    for where, requirements in _lists(document):
        for index, text in enumerate(requirements):
            wanted = Requirement(text)
            name = canonicalize_name(wanted.name)
            if name == own or name not in versions or wanted.url is not None:
                continue
            if not wanted.specifier.contains(versions[name], prereleases=True):
                continue
            if _needs_pin(wanted, versions[name], mode):
                requirements[index] = _with_version(text, versions[name])
                edits[*where, index] = partial(_edit, versions[name])
    return changed(manifest, edits, wanted=document, of=f"pypi:{own}") if edits else manifest


def _lists(document: Mapping[str, Any]) -> Iterator[tuple[Where, list[str]]]:
    """The requirements that end up in what is built, and where they stand."""
    extras = value_at(document, ("project", "optional-dependencies")) or {}
    for where in (
        ("project", "dependencies"),
        *(("project", "optional-dependencies", extra) for extra in extras),
        ("build-system", "requires"),
    ):
        yield where, value_at(document, where) or []


def _needs_pin(wanted: Requirement, version: str, mode: PinMode) -> bool:
    if not wanted.specifier:
        return True
    return mode == "exact" and str(wanted.specifier) != f"=={version}"


def is_exact(wanted: Requirement) -> bool:
    """Whether it asks for one version only, as it is spelled."""
    return any(
        each.operator in {"==", "==="} and not each.version.endswith(".*")
        for each in wanted.specifier
    )


def _edit(version: str, manifest: str, span: Span) -> tuple[Span, str]:
    """The string literal with its specifier replaced, quotes and all else as they are."""
    literal = manifest[slice(*span)]
    quote = literal[:3] if literal[:3] in {'"""', "'''"} else literal[0]
    inner = literal[len(quote) : -len(quote)]
    if quote[0] == '"' and "\\" in inner.partition(";")[0]:
        # Escapes before the marker: rare enough to be spelled anew, as JSON, which is TOML too.
        text = _with_version(parse_toml(f"text = {literal}")["text"], version)
        return span, json.dumps(text, ensure_ascii=False)
    return span, f"{quote}{_with_version(inner, version)}{quote}"


def _with_version(requirement: str, version: str) -> str:
    head = _HEAD.match(requirement)
    if head is None:  # pragma: no cover - Requirement() accepted it
        raise ValueError(requirement)
    specifier, semicolon, marker = requirement[head.end() :].partition(";")
    space = specifier[len(specifier.rstrip()) :]
    return f"{head[0]}=={version}{space}{semicolon}{marker}"
