"""Requirements on versions: what cargo takes one for, and those that path dependencies need.

`cargo package` strips every `path`, and refuses a dependency that then has no version.
https://doc.rust-lang.org/cargo/reference/specifying-dependencies.html
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self

from msgspec import Struct

from releasekit.ecosystems.shared.crates import DEV, list_dependencies
from releasekit.ecosystems.shared.documents import table_in
from releasekit.ecosystems.shared.packages import conflict
from releasekit.ecosystems.shared.semver import PARTIAL, Comparator, Version, satisfied
from releasekit.errors import PlanError
from releasekit.problems import Problem
from releasekit.text.toml_text import (
    Edit,
    Span,
    Where,
    edit_strings,
    find_value,
    parse_toml,
    put_string,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from releasekit.config.values import PinMode

_COMPARATOR: Final = re.compile(rf"(?P<operator>=|>=|<=|>|<|~|\^)?\s*{PARTIAL}")
_MAX_COMPARATORS: Final = 32
_WILDCARD: Final = re.compile(r"[*xX]")
# The key `path`, on its line or in its inline table; `before` is the start of a dotted key.
_PATH: Final = re.compile(
    r"""[ \t]*(?P<before>(?:.*\.)?[ \t]*)(?P<quote>["']?)path(?P=quote)[ \t]*=[ \t]*"""
)


class Requirement(Struct, frozen=True):
    """The value of `version = "…"`."""

    comparators: tuple[Comparator, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises ValueError."""
        parts = text.split(",")
        comparators = tuple(_parse_part(part)[0] for part in parts)
        # https://github.com/dtolnay/semver/blob/master/src/parse.rs
        if len(parts) > _MAX_COMPARATORS or (
            len(parts) > 1 and not all(it.numbers for it in comparators)
        ):
            raise ValueError(f"{text!r} is not a version requirement")
        return cls(comparators)

    def matches(self, version: str) -> bool:
        return satisfied(self.comparators, Version.parse(version), skips=_skips)


def _parse_part(part: str) -> tuple[Comparator, str]:
    """A comparator, and the version in it as it is written; raises ValueError."""
    found = _COMPARATOR.fullmatch(part.strip())
    if found is None:
        raise ValueError(f"{part!r} is not a version requirement")
    operator = found["operator"] or _default_operator(part)
    return Comparator.from_match(operator, found), found.group()[found.start("major") :]


def _skips(comparator: Comparator, prerelease: Version) -> bool:
    """`1.2` excludes prereleases of 1.2; `^1.2` does not.

    https://github.com/dtolnay/semver/blob/master/src/eval.rs
    """
    numbers = comparator.numbers
    begins_so = prerelease.release[: len(numbers)] == numbers
    return comparator.is_shortened and comparator.operator != "^" and begins_so


def edit_requirement(text: str, old: str, new: str, *, raises: bool, exact: bool = False) -> str:
    """`text` in the same shape so that it admits `new`, and with `raises` begins there; if it is to
    be `exact`, that version alone. What excludes `old` means another version, and stays. Raises
    ValueError where the shape admits none.
    """
    asked = Requirement.parse(text)
    if not asked.matches(old) or (asked.matches(new) and not (raises or exact)):
        return text
    if exact:
        return f"={new}"
    # A prerelease fits only where it is named, so a bound that holds it may have to move as well.
    for every in (raises, True):
        edited = ",".join(_edit_part(part, new, every=every) for part in text.split(","))
        if Requirement.parse(edited).matches(new):
            return edited
    raise ValueError(f"{text!r} cannot admit {new} in this form")


def _edit_part(part: str, new: str, *, every: bool) -> str:
    """`new` in the place of a bound that excludes it; or of `every` lower bound."""
    comparator, written = _parse_part(part)
    version, operator = Version.parse(new), comparator.operator
    stays = operator in {"<", "<="} or not every
    if operator == ">" or (stays and comparator.holds(version)):
        return part
    release = [*version.release]
    if operator == "<":
        # The last number that is not zero says how far it reached: `<2.0` becomes `<3.0`.
        at = max((at for at, number in enumerate(comparator.numbers) if number), default=0)
        release = [*release[:at], release[at] + 1, 0, 0]
    parts = re.split(r"[-+]", written, maxsplit=1)[0].split(".")
    edited = ".".join(
        part if _WILDCARD.fullmatch(part) else str(number)
        for part, number in zip(parts, release, strict=False)
    )
    if version.pre and operator != "<" and not _WILDCARD.search(edited):
        edited = new.partition("+")[0]
    return part.replace(written, edited, 1)


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


class PathDependency(Struct, frozen=True):
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
                fits = Requirement.parse(entry.requirement).matches(version)
            except ValueError as error:
                raise PlanError(
                    f"{what}: its dependency on {entry.package}: {error}",
                    problem=Problem.CANNOT_PIN,
                ) from error
            if not fits:
                shown = f'{entry.package} "{entry.requirement}"'
                raise conflict(what, shown, entry.package, version)
        wanted = version if mode == "auto" else f"={version}"
        if entry.requirement is None:  # a version is put in front of the path
            key, stays = "path", entry.dev or mode == "none"
        else:
            key, stays = "version", entry.requirement == wanted or mode != "exact"
        if not stays:
            find_value(document, entry.where)["version"] = wanted
            edits[(*entry.where, key)] = partial(_edit, entry, wanted)
    return edit_strings(manifest, edits, wanted=document, of=what) if edits else manifest


def _find_path_dependencies(
    document: Mapping[str, Any], shared: Collection[str]
) -> Iterator[PathDependency]:
    for where, value in list_dependencies(document):
        has_path = isinstance(value, dict) and isinstance(value.get("path"), str)
        if not has_path or where[0] == "patch":
            continue
        package, requirement = str(value.get("package", where[-1])), value.get("version")
        if not isinstance(requirement, str):
            requirement = None
        if where[0] != "workspace" or requirement is not None or package in shared:
            yield PathDependency(where, package, requirement, dev=where[-2] in DEV)


def _edit(entry: PathDependency, version: str, manifest: str, span: Span) -> tuple[Span, str]:
    """Replaces the version, or puts one in front of the path."""
    start, _ = span
    if entry.requirement is not None:
        return put_string(version, manifest, span)
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
    end = ", "
    if first == line and not _is_open(manifest[:begin]):
        newline = "\r\n" if "\r\n" in manifest else "\n"
        end = f"{newline}{manifest[line:begin]}"
    return (begin, begin), f'{match["before"]}version = "{version}"{end}'


def _is_open(text: str) -> bool:
    """Whether an inline table has begun and not ended yet: it may take several lines.
    https://toml.io/en/v1.1.0#inline-table
    """
    try:
        parse_toml(text)
    except ValueError:
        return True
    return False
