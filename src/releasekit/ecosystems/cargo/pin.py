"""Versions for in-repo path dependencies of a Cargo.toml, text to text.

`cargo package` strips every `path`, and refuses a dependency that has no version then.
https://doc.rust-lang.org/cargo/reference/specifying-dependencies.html#multiple-locations
"""

from __future__ import annotations

import copy
import re
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from releasekit.ecosystems.cargo.versions import Requirement, Version
from releasekit.errors import PlanError
from releasekit.text.toml_text import TOKEN

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

Mode = Literal["auto", "exact", "none"]

# The key that a string belongs to, right before it.
_KEY: Final = re.compile(r"(?P<key>[^\s={,]+(?:[ \t]*\.[ \t]*[^\s={,]+)*)[ \t]*=[ \t]*\Z")
_NORMAL: Final = ("dependencies", "build-dependencies", "build_dependencies")
_DEV: Final = ("dev-dependencies", "dev_dependencies")

Where = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """A dependency that names a path. `where` are the keys that lead to it."""

    where: Where
    package: str
    requirement: str | None
    dev: bool

    def at(self, key: str) -> Where:
        return (*self.where, key)


@dataclass(frozen=True, slots=True)
class Edit:
    """`text` in the place of what stands from `start` to `end`."""

    entry: Entry
    version: str
    start: int
    end: int
    text: str


def pin(
    manifest: str,
    versions: Mapping[str, str],
    mode: Mode = "auto",
    *,
    shared: Collection[str] = (),
) -> str:
    """`manifest` with what its path dependencies on the packages in `versions` need.

    auto: a version where there is none, as `cargo add` writes it (compatible versions fit too);
    exact: exactly the planned one. A development dependency without a version stays so: cargo
    strips it. Of `[workspace.dependencies]`, those in `shared` are needed by what is published.
    """
    document = parsed(manifest)
    owner = _owner(document)
    edits: list[Edit] = []
    for entry in _entries(document, shared):
        version = versions.get(entry.package)
        if version is None or entry.package == owner:
            continue
        if entry.requirement is not None:
            refuse_conflict(owner, entry.package, entry.requirement, version)
        wanted = version if mode == "auto" else f"={version}"
        if mode == "none" or (entry.dev and entry.requirement is None):
            continue
        if entry.requirement is None:
            edits.append(_inserted(manifest, document, entry, wanted))
        elif mode == "exact" and entry.requirement != wanted:
            edits.append(_replaced(manifest, document, entry, wanted))
    return _applied(manifest, document, edits)


def parsed(manifest: str) -> dict[str, Any]:
    return tomllib.loads(manifest.removeprefix("\ufeff").replace("\r\n", "\n"))


def refuse_conflict(owner: str, name: str, requirement: str, version: str) -> None:
    """Raises PlanError where `requirement` leaves `version` out."""
    what = f"cargo:{owner}" if owner else "cargo: [workspace.dependencies]"
    try:
        fits = Requirement.parse(requirement).matches(Version.parse(version))
    except ValueError as error:
        raise PlanError(f"{what}: its dependency on {name}: {error}") from error
    if not fits:
        raise PlanError(
            f'{what} requires {name} "{requirement}", but the workspace has {name} {version}',
            hint="Widen the requirement, or release the version it asks for first.",
        )


def _owner(document: Mapping[str, Any]) -> str:
    package = document.get("package", {})
    return str(package.get("name", "")) if isinstance(package, dict) else ""


def _entries(document: Mapping[str, Any], shared: Collection[str]) -> Iterator[Entry]:
    yield from _of_tables(document, ())
    targets = document.get("target", {})
    for condition, tables in targets.items() if isinstance(targets, dict) else ():
        yield from _of_tables(tables, ("target", condition))
    workspace = document.get("workspace", {})
    if isinstance(workspace, dict):
        for entry in _of_table(workspace, ("workspace",), "dependencies"):
            if entry.requirement is not None or entry.package in shared:
                yield entry


def _of_tables(tables: Mapping[str, Any], where: Where) -> Iterator[Entry]:
    for name in (*_NORMAL, *_DEV):
        yield from _of_table(tables, where, name)


def _of_table(tables: Mapping[str, Any], where: Where, name: str) -> Iterator[Entry]:
    found = tables.get(name, {}) if isinstance(tables, dict) else {}
    for key, value in found.items() if isinstance(found, dict) else ():
        if isinstance(value, dict) and isinstance(value.get("path"), str):
            requirement = value.get("version")
            yield Entry(
                (*where, name, key),
                str(value.get("package", key)),
                requirement if isinstance(requirement, str) else None,
                dev=name in _DEV,
            )


def _inserted(manifest: str, document: Mapping[str, Any], entry: Entry, version: str) -> Edit:
    """A version in front of the path, spelled as the path is."""
    start, _ = _span(manifest, document, entry.at("path"))
    match = _KEY.search(manifest, manifest.rfind("\n", 0, start) + 1, start)
    if match is None:
        raise _unpinnable(entry)
    key, begin = match["key"], match.start("key")
    prefix = key[: -len("path")] if key.endswith("path") else ""
    indent = manifest[manifest.rfind("\n", 0, begin) + 1 : begin]
    newline = "\r\n" if "\r\n" in manifest else "\n"
    # An inline table is all on one line. https://toml.io/en/v1.0.0#inline-table
    end = ", " if indent.strip() else f"{newline}{indent}"
    return Edit(entry, version, begin, begin, f'{prefix}version = "{version}"{end}')


def _replaced(manifest: str, document: Mapping[str, Any], entry: Entry, version: str) -> Edit:
    start, end = _span(manifest, document, entry.at("version"))
    quote = manifest[start]
    return Edit(entry, version, start, end, f"{quote}{version}{quote}")


def _applied(manifest: str, document: Mapping[str, Any], edits: Collection[Edit]) -> str:
    """`manifest` with these edits, if it says what it said before, and those versions besides."""
    if not edits:
        return manifest
    wanted = copy.deepcopy(dict(document))
    text = manifest
    for edit in sorted(edits, key=lambda edit: edit.start, reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
        table = _get(wanted, edit.entry.where)
        assert isinstance(table, dict)  # noqa: S101 (the entry was found there)
        table["version"] = edit.version
    try:
        found = parsed(text)
    except tomllib.TOMLDecodeError:
        found = {}
    if found != wanted:
        wrong = (it for it in edits if _get(found, it.entry.at("version")) != it.version)
        raise _unpinnable(next(wrong, next(iter(edits))).entry)
    return text


def _span(manifest: str, document: Mapping[str, Any], where: Where) -> tuple[int, int]:
    """Where the string at `where` stands: one of those that say the same, right behind its key.

    Where that leaves several, another one is put in the place of each, and looked for.
    """
    value = _get(document, where)
    found = [
        token.span()
        for token in TOKEN.finditer(manifest)
        if token["string"] is not None
        and _value(token["string"]) == value
        and _KEY.search(manifest, manifest.rfind("\n", 0, token.start()) + 1, token.start())
    ]
    mark = "mark"
    while mark in manifest:
        mark += "-"
    for start, end in found:
        if len(found) == 1 or _marked(f'{manifest[:start]}"{mark}"{manifest[end:]}', where, mark):
            return start, end
    raise PlanError(f"{'.'.join(where)} is not where it can be pinned")  # pragma: no cover


def _marked(text: str, where: Where, mark: str) -> bool:
    return _get(parsed(text), where) == mark


def _value(literal: str) -> str:
    if "\\" not in literal and literal[:3] not in {'"""', "'''"}:
        return literal[1:-1]
    return str(tomllib.loads(f"value = {literal}")["value"])


def _get(document: object, where: Where) -> object:
    for key in where:
        document = document.get(key) if isinstance(document, dict) else None
    return document


def _unpinnable(entry: Entry) -> PlanError:
    return PlanError(
        f"cargo: the dependency {'.'.join(entry.where)} has no version, and none can be written "
        "there",
        hint='Write it by hand: NAME = { path = "…", version = "…" }.',
    )
