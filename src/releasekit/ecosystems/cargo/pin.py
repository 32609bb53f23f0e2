"""Versions for in-repo path dependencies of a Cargo.toml, text to text.

`cargo package` strips every `path`, and refuses a dependency that has no version then.
https://doc.rust-lang.org/cargo/reference/specifying-dependencies.html#multiple-locations
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from releasekit.ecosystems.cargo.requirement import Requirement
from releasekit.ecosystems.shared.documents import table_in
from releasekit.ecosystems.shared.packages import conflict
from releasekit.ecosystems.shared.semver import Version
from releasekit.errors import PlanError
from releasekit.problems import Problem
from releasekit.text.toml_text import Edit, Span, Where, changed, parse_toml, value_at

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from releasekit.config.values import PinMode


# The key of a path, on its line or in its inline table; of a dotted one, what comes before.
_PATH: Final = re.compile(
    r"""[ \t]*(?P<before>(?:.*\.)?[ \t]*)(?P<quote>["']?)path(?P=quote)[ \t]*=[ \t]*"""
)
_NORMAL: Final = ("dependencies", "build-dependencies", "build_dependencies")
_DEV: Final = ("dev-dependencies", "dev_dependencies")


@dataclass(frozen=True, slots=True)
class PathDependency:
    """A dependency that names a path. `where` are the keys that lead to it."""

    where: tuple[str, ...]
    package: str
    requirement: str | None
    dev: bool

    @property
    def anchor(self) -> Where:
        """The version, or the path that one is put in front of."""
        return (*self.where, "path" if self.requirement is None else "version")


def pin(
    manifest: str,
    versions: Mapping[str, str],
    mode: PinMode = "auto",
    *,
    shared: Collection[str] = (),
    binds: Callable[[str, PathDependency], bool] = lambda _owner, _entry: True,
) -> str:
    """`manifest` with what its path dependencies on the packages in `versions` need.

    auto: a version where there is none, as `cargo add` writes it (compatible versions fit too);
    exact: exactly the planned one. A development dependency without a version stays so: cargo
    strips it. Of `[workspace.dependencies]`, those in `shared` are needed by what is published. A
    requirement that excludes the planned version is refused where it `binds` what is published,
    given who owns the manifest, and else left alone.
    """
    document = parse_toml(manifest)
    owner = _owner(document)
    edits: dict[Where, Edit] = {}
    for entry in list(_path_dependencies(document, shared)):
        version = versions.get(entry.package)
        if version is None or entry.package == owner:
            continue
        if entry.requirement is not None and binds(owner, entry):
            refuse_conflict(owner, entry.package, entry.requirement, version)
        wanted = version if mode == "auto" else f"={version}"
        if mode == "none" or (entry.dev and entry.requirement is None):
            continue
        if entry.requirement is None or (mode == "exact" and entry.requirement != wanted):
            value_at(document, entry.where)["version"] = wanted
            edits[entry.anchor] = partial(_edit, entry, wanted)
    return changed(manifest, edits, wanted=document, of=_named(owner)) if edits else manifest


def refuse_conflict(owner: str, name: str, requirement: str, version: str) -> None:
    """Raises PlanError where `requirement` leaves `version` out."""
    what = _named(owner)
    try:
        fits = Requirement.parse(requirement).matches(Version.parse(version))
    except ValueError as error:
        raise PlanError(
            f"{what}: its dependency on {name}: {error}", problem=Problem.CANNOT_PIN
        ) from error
    if not fits:
        raise conflict(what, f'{name} "{requirement}"', name, version)


def _named(owner: str) -> str:
    return f"cargo:{owner}" if owner else "cargo: [workspace.dependencies]"


def _owner(document: Mapping[str, Any]) -> str:
    return str(table_in(document, "package").get("name", ""))


def _path_dependencies(
    document: Mapping[str, Any], shared: Collection[str]
) -> Iterator[PathDependency]:
    yield from _in_tables(document, ())
    for condition, tables in table_in(document, "target").items():
        yield from _in_tables(tables, ("target", condition))
    for entry in _in_table(document.get("workspace", {}), ("workspace",), "dependencies"):
        if entry.requirement is not None or entry.package in shared:
            yield entry


def _in_tables(tables: object, where: tuple[str, ...]) -> Iterator[PathDependency]:
    for name in (*_NORMAL, *_DEV):
        yield from _in_table(tables, where, name)


def _in_table(tables: object, where: tuple[str, ...], name: str) -> Iterator[PathDependency]:
    for key, value in table_in(tables, name).items():
        if isinstance(value, dict) and isinstance(value.get("path"), str):
            requirement = value.get("version")
            yield PathDependency(
                (*where, name, key),
                str(value.get("package", key)),
                requirement if isinstance(requirement, str) else None,
                dev=name in _DEV,
            )


def _edit(entry: PathDependency, version: str, manifest: str, span: Span) -> tuple[Span, str]:
    """The version in the place of the one that is there, or in front of the path."""
    start, _ = span
    if entry.requirement is not None:
        return span, f"{manifest[start]}{version}{manifest[start]}"
    line = manifest.rfind("\n", 0, start) + 1
    first = max(line, 1 + max(manifest.rfind(mark, line, start) for mark in "{,"))
    match = _PATH.fullmatch(manifest, first, start)
    if match is None:
        raise PlanError(
            f"cargo: the dependency {'.'.join(entry.where)} has no version, and none can be "
            "written there",
            hint='Write it by hand: NAME = { path = "…", version = "…" }.',
            problem=Problem.CANNOT_PIN,
        )
    begin = match.start("before")
    newline = "\r\n" if "\r\n" in manifest else "\n"
    # An inline table is all on one line. https://toml.io/en/v1.0.0#inline-table
    end = f"{newline}{manifest[line:begin]}" if first == line else ", "
    return (begin, begin), f'{match["before"]}version = "{version}"{end}'
