"""Requirements on versions: what cargo takes one for, and those that path dependencies need.

`cargo package` strips every `path`, and refuses a dependency that then has no version.
https://doc.rust-lang.org/cargo/reference/specifying-dependencies.html
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self

from releasekit.ecosystems.shared.documents import table_in
from releasekit.ecosystems.shared.packages import conflict
from releasekit.ecosystems.shared.semver import PARTIAL, Comparator, Version, satisfied
from releasekit.errors import PlanError
from releasekit.problems import Problem
from releasekit.text.toml_text import Edit, Span, Where, edit_strings, find_value, parse_toml

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from releasekit.config.values import PinMode

_COMPARATOR: Final = re.compile(rf"(?P<operator>=|>=|<=|>|<|~|\^)?\s*{PARTIAL}")
_WILDCARD: Final = re.compile(r"[*xX]")
# The key `path`, on its line or in its inline table; `before` is the start of a dotted key.
_PATH: Final = re.compile(
    r"""[ \t]*(?P<before>(?:.*\.)?[ \t]*)(?P<quote>["']?)path(?P=quote)[ \t]*=[ \t]*"""
)
_NORMAL: Final = ("dependencies", "build-dependencies", "build_dependencies")
_DEV: Final = ("dev-dependencies", "dev_dependencies")


@dataclass(frozen=True, slots=True)
class Requirement:
    """The value of `version = "…"`."""

    comparators: tuple[Comparator, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises ValueError."""
        comparators = []
        for part in text.split(","):
            found = _COMPARATOR.fullmatch(part.strip())
            if found is None:
                raise ValueError(f"{text!r} is not a version requirement")
            operator = found["operator"] or _default_operator(part)
            comparators.append(Comparator.from_match(operator, found))
        return cls(tuple(comparators))

    def matches(self, version: Version) -> bool:
        return satisfied(self.comparators, version, skips=_skips)


def _skips(comparator: Comparator, prerelease: Version) -> bool:
    """`1.2` excludes prereleases of 1.2; `^1.2` does not.

    https://github.com/dtolnay/semver/blob/master/src/eval.rs
    """
    numbers = comparator.numbers
    begins_so = prerelease.release[: len(numbers)] == numbers
    return comparator.is_shortened and comparator.operator != "^" and begins_so


def normalise_requirement(requirement: str) -> str:
    """As cargo writes a requirement into the index: `1.2+next` becomes `^1.2`."""
    parts = []
    for part in requirement.split(","):
        text = part.partition("+")[0].strip()
        bare = text.lstrip("=<>~^")
        operator = text[: len(text) - len(bare)] or _default_operator(bare)
        parts.append(f"{operator}{bare.strip()}")
    return ", ".join(parts)


def _default_operator(text: str) -> str:
    """`1.2` means `^1.2`; `1.*` has no operator."""
    numbers = re.split(r"[-+]", text, maxsplit=1)[0]
    return "" if _WILDCARD.search(numbers) else "^"


@dataclass(frozen=True, slots=True)
class PathDependency:
    """A dependency with a path. `where` are the keys that lead to it."""

    where: tuple[str, ...]
    package: str
    requirement: str | None
    dev: bool


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
    exact: exactly the planned one. A development dependency without a version stays as it is,
    because cargo strips it. Published crates inherit those of `[workspace.dependencies]` that
    `shared` names. `binds` says, of the package of the manifest and one of its dependencies,
    whether a requirement that excludes the planned version is an error; other requirements stay.
    """
    document = parse_toml(manifest)
    owner = str(table_in(document, "package").get("name", ""))
    what = f"cargo:{owner}" if owner else "cargo: [workspace.dependencies]"
    edits: dict[Where, Edit] = {}
    for entry in list(_find_path_dependencies(document, shared)):
        version = versions.get(entry.package)
        if version is None or entry.package == owner:
            continue
        if entry.requirement is not None and binds(owner, entry):
            try:
                fits = Requirement.parse(entry.requirement).matches(Version.parse(version))
            except ValueError as error:
                raise PlanError(
                    f"{what}: its dependency on {entry.package}: {error}",
                    problem=Problem.CANNOT_PIN,
                ) from error
            if not fits:
                shown = f'{entry.package} "{entry.requirement}"'
                raise conflict(what, shown, entry.package, version)
        wanted = version if mode == "auto" else f"={version}"
        if mode == "none" or (entry.dev and entry.requirement is None):
            continue
        if entry.requirement is None or (mode == "exact" and entry.requirement != wanted):
            find_value(document, entry.where)["version"] = wanted
            # A version is put in front of the path.
            key = "path" if entry.requirement is None else "version"
            edits[(*entry.where, key)] = partial(_edit, entry, wanted)
    return edit_strings(manifest, edits, wanted=document, of=what) if edits else manifest


def _find_path_dependencies(
    document: Mapping[str, Any], shared: Collection[str]
) -> Iterator[PathDependency]:
    places: list[tuple[object, tuple[str, ...]]] = [(document, ())]
    places += [(each, ("target", name)) for name, each in table_in(document, "target").items()]
    for tables, where in places:
        for name in (*_NORMAL, *_DEV):
            yield from _read_table(tables, where, name)
    for entry in _read_table(document.get("workspace", {}), ("workspace",), "dependencies"):
        if entry.requirement is not None or entry.package in shared:
            yield entry


def _read_table(tables: object, where: tuple[str, ...], name: str) -> Iterator[PathDependency]:
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
    """Replaces the version, or puts one in front of the path."""
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
