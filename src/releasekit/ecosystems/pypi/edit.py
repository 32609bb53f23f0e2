"""The next versions of Python packages, written into manifests, version files and uv.lock."""

from __future__ import annotations

import json
import re
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from releasekit.ecosystems.pypi.history import find_version_places
from releasekit.ecosystems.pypi.manifest import HEAD, MANIFEST, is_requirement
from releasekit.ecosystems.shared.documents import table_in
from releasekit.errors import PlanError, map_all
from releasekit.host.files import exists
from releasekit.problems import Problem
from releasekit.text.splice import splice
from releasekit.text.toml_text import edit_strings, find_value, parse_toml

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from releasekit.ecosystems.pypi.manifest import PyProject
    from releasekit.text.toml_text import Edit, Span, Where
    from releasekit.versioning.edits import Edits

# What takes the version from a tag, by what a build requires.
_BY_TAG: Final = re.compile(
    r"(?:hatch-vcs|setuptools[-_.]scm|setuptools-git-versioning|versioningit|versioneer|dunamai"
    r"|(?:poetry|uv|hatch|pdm)-dynamic-versioning|flit[-_.]scm|vcs-versioning)\b",
    re.IGNORECASE,
)
_CLAUSE: Final = re.compile(r"(===|~=|==|!=|<=|>=|<|>)(\s*)([^\s,;()]+)")
# https://docs.astral.sh/uv/concepts/projects/layout/#the-lockfile; the order is uv's own.
_LOCKED: Final = re.compile(
    r'\[\[package\]\]\r?\nname = "(?P<name>[^"\n]+)"\r?\n(?:version = "(?P<version>[^"\n]+)"\r?\n)?'
    r'source = \{ (?:editable|virtual|directory) = "(?P<path>[^"\n]*)" \}'
)
_LOCKS: Final = {"poetry.lock": "poetry lock", "pdm.lock": "pdm lock"}


def edit_versions(
    projects: Mapping[str, PyProject],
    versions: Mapping[str, str],
    edits: Edits,
    *,
    raise_ranges: bool,
) -> set[str]:
    """As `interface.Target.edit_versions`."""
    by_tag: set[str] = set()

    def edit_version(name: str) -> None:
        if not _edit_version(projects[name], versions[name], edits):
            by_tag.add(name)

    map_all(edit_version, versions)
    own = {project.manifest: name for name, project in projects.items()}
    tops = [project.home / MANIFEST for project in projects.values() if project.home]
    manifests = dict.fromkeys([*own, *filter(exists, tops)])
    changing = {name: (projects[name].version, version) for name, version in versions.items()}
    map_all(
        lambda path: _edit_requirements(
            path, changing, edits, raises=raise_ranges and own.get(path) in versions
        ),
        manifests,
    )
    stand = {project.manifest.parent: name for name, project in projects.items()}
    known = {name: versions.get(name, project.version) for name, project in projects.items()}
    map_all(
        lambda directory: _edit_lock(directory / "uv.lock", stand, known, edits),
        dict.fromkeys(path.parent for path in manifests),
    )
    return by_tag


def _edit_version(project: PyProject, version: str, edits: Edits) -> bool:
    """False where its tag says it."""
    path = project.manifest
    text = edits.read(path) or ""
    document = parse_toml(text)
    for keys in (("project", "version"), ("tool", "poetry", "version")):
        said = find_value(document, keys)
        if isinstance(said, str):
            if said != version and Version(said) != Version(version):
                find_value(document, keys[:-1])[keys[-1]] = version
                edits.write(path, _edit(text, {keys: partial(_put, version)}, document, project))
            return True
    paths, written = find_version_places(document, path.parent)
    for place in paths:
        text = edits.read(place) or ""
        if found := written.search(text):
            edits.write(place, splice(text, [(found.span(1), version)]))
            return True
    tool = table_in(document, "tool")
    sources = (table_in(table_in(tool, each), "version").get("source") for each in ("hatch", "pdm"))
    needs = project.build_system.requires
    if any(map(_BY_TAG.match, needs)) or {"vcs", "scm"}.intersection(map(str, sources)):
        return False
    raise _refuse(
        path,
        edits.root,
        f"its version is computed by {project.build_system.backend}, and no file says it",
        f'Write version = "{version}" below [project], and take it out of `dynamic`.',
    )


def _edit_requirements(
    path: Path,
    changing: Mapping[str, tuple[str, str]],
    edits: Edits,
    *,
    raises: bool,
) -> None:
    text = edits.read(path) or ""
    document = parse_toml(text)
    changes: dict[Where, Edit] = {}

    def edit_requirement(where: Where, requirement: str) -> None:
        old, new = changing[str(canonicalize_name(Requirement(requirement).name))]
        try:
            edited = _with_specifier(requirement, old, new, raises=raises)
        except ValueError as error:
            what = f"{'.'.join(map(str, where[:-1]))}: {requirement!r} {error}"
            raise _refuse(path, edits.root, what, "Write the requirement by hand.") from error
        if edited != requirement:
            parent: Any = document
            for key in where[:-1]:
                parent = parent[key]
            parent[where[-1]] = edited
            changes[where] = partial(_put, edited)

    found = [
        (where, text)
        for where, text in _list_requirements(document)
        if (name := HEAD.match(text)) and canonicalize_name(name[1]) in changing
        if is_requirement(text) and Requirement(text).url is None
    ]
    map_all(lambda each: edit_requirement(*each), found)
    if not changes:
        return
    for lock, command in _LOCKS.items():
        if exists(path.parent / lock):
            raise _refuse(
                path.parent / lock,
                edits.root,
                "follows the requirements beside it, and is not edited",
                f"Write these by hand, and run `{command}`.",
            )
    edits.write(path, _edit(text, changes, document, None))


def _list_requirements(document: Mapping[str, Any]) -> Iterator[tuple[Where, str]]:
    places: list[Where] = [("project", "dependencies"), ("build-system", "requires")]
    for keys in (("project", "optional-dependencies"), ("dependency-groups",)):
        places += [(*keys, key) for key in find_value(document, keys) or {}]
    places.append(("tool", "uv", "dev-dependencies"))
    for where in places:
        for index, text in enumerate(find_value(document, where) or []):
            if isinstance(text, str):
                yield (*where, index), text


def edit_specifier(specifier: str, old: str, new: str, *, raises: bool) -> str:
    """The same clauses so that they admit `new`, and with `raises` begin there. What excludes `old`
    means another version, and stays. Raises ValueError where they cannot admit it.
    """
    if not specifier or not SpecifierSet(specifier).contains(old, prereleases=True):
        return specifier
    if not raises and SpecifierSet(specifier).contains(new, prereleases=True):
        return specifier
    edited = _CLAUSE.sub(lambda clause: _edit_clause(clause, new, raises=raises), specifier)
    if not SpecifierSet(edited).contains(new, prereleases=True):
        raise ValueError(f"cannot admit {new} in this form")
    return edited


def _edit_clause(clause: re.Match[str], new: str, *, raises: bool) -> str:
    operator, blanks, bound = clause.groups()
    admits = SpecifierSet(operator + bound).contains(new, prereleases=True)
    if admits and not (raises and operator in {"~=", "==", "===", ">="}):
        return clause[0]
    if operator in {"!=", ">", "==="}:
        return clause[0] if operator != "===" else f"==={blanks}{new}"
    version, wildcard = Version(new), ".*" if bound.endswith(".*") else ""
    count = len(Version(bound.removesuffix(".*")).release)
    release = [*version.release, 0, 0, 0][: max(count, len(version.release))]
    if operator == "<":
        # The last number that is not zero says how far it reached: `<2.0` becomes `<3.0`.
        numbers = Version(bound).release
        last = max((at for at, number in enumerate(numbers) if number), default=0)
        kept = [*release[:last], release[last] + 1, *[0] * count][:count]
    elif operator in {"==", "<="} and not wildcard and any(release[count:]):
        return f"{operator}{blanks}{new}"
    else:
        kept = release[:count]
    is_whole = operator in {">=", "==", "<="} and not wildcard and version.is_prerelease
    shown = new if is_whole else ".".join(map(str, kept))
    epoch = f"{version.epoch}!" if version.epoch and not is_whole else ""
    return f"{operator}{blanks}{epoch}{shown}{wildcard}"


def _with_specifier(requirement: str, old: str, new: str, *, raises: bool) -> str:
    """Only the clauses change; a marker may hold versions, too."""
    head = HEAD.match(requirement)
    at = head.end() if head else 0
    specifier, semicolon, marker = requirement[at:].partition(";")
    edited = edit_specifier(specifier.strip(" ()"), old, new, raises=raises)
    return requirement[:at] + specifier.replace(specifier.strip(" ()"), edited) + semicolon + marker


def _edit(
    text: str, changes: Mapping[Where, Edit], document: dict[str, Any], project: PyProject | None
) -> str:
    of = f"pypi:{project.name}" if project else "pyproject.toml"
    return edit_strings(text, changes, wanted=document, of=of)


def _put(value: str, text: str, span: Span) -> tuple[Span, str]:
    """In the quotes that are there, unless it needs others."""
    literal = text[slice(*span)]
    quote = literal[:3] if literal[:3] in {'"""', "'''"} else literal[0]
    plain = value.isprintable() and quote not in value and "\\" not in value
    return span, f"{quote}{value}{quote}" if plain else json.dumps(value, ensure_ascii=False)


def _edit_lock(
    path: Path, stand: Mapping[Path, str], versions: Mapping[str, str], edits: Edits
) -> None:
    """The versions of those that lie here; what is locked of others does not change.

    Requirements on them have no version in there, as they name a directory.
    """
    text = edits.read(path)
    if text is None:
        return
    if not re.match(r"version = 1\r?\n", text):
        raise _refuse(path, edits.root, "has an unknown format", "Run `uv lock`, and commit it.")
    changes: list[tuple[Span, str]] = []
    seen: set[Path] = set()
    for found in _LOCKED.finditer(text):
        place = (path.parent / found["path"]).resolve()
        seen.add(place)
        name = stand.get(place)
        if found["version"] and name and Version(found["version"]) != Version(versions[name]):
            changes.append((found.span("version"), str(Version(versions[name]))))
    if path.parent in stand and path.parent not in seen:
        lacks = stand[path.parent]
        raise _refuse(path, edits.root, f"lacks {lacks}", "Run `uv lock`, and commit it.")
    edits.write(path, splice(text, changes))


def _refuse(path: Path, root: Path, what: str, hint: str) -> PlanError:
    place = path.relative_to(root).as_posix()
    return PlanError(f"{place}: {what}", hint=hint, problem=Problem.CANNOT_WRITE)
