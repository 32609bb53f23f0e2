"""The table `[version]`: what asks for a new version of a package, and for which one."""

import re
from collections.abc import Mapping
from typing import Annotated, ClassVar, Final, Literal, get_args

from msgspec import Struct, field

from releasekit.config import tables
from releasekit.config.tables import Option, OptionTable
from releasekit.decided import TITLE_FIELD, Level, Propagate, Zero
from releasekit.text.toml_value import show_toml

Kind = Literal["fixed", "linked"]
_LEVELS: Final[Mapping[str, Level]] = {str(level): level for level in Level}
# https://www.conventionalcommits.org/en/v1.0.0/
# In lower case, as those of commits are compared.
_TYPE: Final = re.compile(r"[a-z][a-z0-9_-]*(?:\([^()]+\))?")
# https://semver.org/#spec-item-9
_LABEL: Final = re.compile(r"(?:[a-z][a-z0-9-]{0,29})?")
TYPES: Final[Mapping[str, Level]] = {
    "feat": Level.MINOR,
    "fix": Level.PATCH,
    "perf": Level.PATCH,
    "revert": Level.PATCH,
}


class GroupOptions(Struct, frozen=True):
    """`packages` are globs of names, as `exclude-packages` has them."""

    packages: tuple[str, ...]
    kind: Kind


class FurtherFile(Struct, frozen=True):
    """A file that says the version of a package, relative to its directory: in the one group of
    `match`, or as it is where that is None.
    """

    path: str
    match: re.Pattern[str] | None


def _directory(key: str, value: object) -> str:
    name = tables.string(key, value)
    parts = name.split("/")
    if not name or "\\" in name or name.startswith("/") or not {"", ".", ".."}.isdisjoint(parts):
        raise ValueError('Write a path relative to the root, without "..": ".changeset".')
    return name


def _title(key: str, value: object) -> str:
    title = tables.string(key, value)
    if (
        not title.isprintable()
        or not title.strip()
        or set("{}") & set(title.replace(TITLE_FIELD, ""))
    ):
        raise ValueError(
            f'Write one line, with {TITLE_FIELD} for names: {key} = "Release {TITLE_FIELD}".'
        )
    return title


def _types(key: str, value: object) -> Mapping[str, Level]:
    given = tables.mapping(key, value)
    for name, level in given.items():
        if not _TYPE.fullmatch(name):
            raise ValueError(
                f'{name!r} is not a type of commit; write one like feat, or "build(deps)".'
            )
        if level not in _LEVELS:
            raise ValueError(
                f"{name} is {show_toml(level)}; write one of {', '.join(map(show_toml, _LEVELS))}."
            )
    return {**TYPES, **{name: _LEVELS[level] for name, level in given.items()}}


def _paths(key: str, value: object) -> Mapping[str, tuple[str, ...]]:
    if not isinstance(value, dict):
        raise ValueError(f'Write a table of lists: {key} = {{ "pypi:acme" = ["proto/**"] }}.')  # noqa: TRY004 (about the file)
    return {package: tables.strings(package, globs) for package, globs in value.items()}


def _files(key: str, value: object) -> Mapping[str, tuple[FurtherFile, ...]]:
    example = (
        f'{key} = {{ core = ["src/version.h", {{ path = "README.md", match = "core==(.+)" }}] }}'
    )
    if not isinstance(value, dict):
        raise ValueError(f"Write a table of lists: {example}.")  # noqa: TRY004
    found = {}
    for package, places in value.items():
        if not isinstance(places, list):
            raise ValueError(f"Write a list of files for {package!r}: {example}.")  # noqa: TRY004
        found[package] = tuple(read_file(place, example) for place in places)
    return found


def read_file(place: object, example: str) -> FurtherFile:
    if isinstance(place, str):
        place = {"path": place}
    if not isinstance(place, dict) or not {"path"} <= place.keys() <= {"path", "match"}:
        raise ValueError(f"Write a path, or path and match: {example}.")
    path, match = tables.string("path", place["path"]), place.get("match")
    if match is None:
        return FurtherFile(path, None)
    try:
        pattern = re.compile(tables.string("match", match), re.MULTILINE)
    except re.error as error:
        raise ValueError(
            f"match = {show_toml(match)} is not a regular expression: {error}."
        ) from error
    if pattern.groups != 1:
        raise ValueError(
            f"match = {show_toml(match)} needs one group, around the version: {example}."
        )
    return FurtherFile(path, pattern)


def _labels(key: str, value: object) -> Mapping[str, str]:
    given = tables.mapping(key, value)
    for glob, label in given.items():
        if not _LABEL.fullmatch(label):
            raise ValueError(
                f'{glob} is {show_toml(label)}; write a word such as rc, or "" for none.'
            )
    return given


def _groups(key: str, value: object) -> Mapping[str, GroupOptions]:
    example = f'{key} = {{ ui = {{ packages = ["@acme/ui*"], kind = "fixed" }} }}'
    if not isinstance(value, dict):
        raise ValueError(f"Write a table of groups: {example}.")  # noqa: TRY004
    found = {}
    for name, group in value.items():
        if not isinstance(group, dict) or not group.keys() <= {"packages", "kind"}:
            raise ValueError(f"Write packages and kind for {name!r}: {example}.")
        kind = group.get("kind", "fixed")
        if kind not in get_args(Kind):
            raise ValueError(
                f'The kind of {name!r} is {show_toml(kind)}; write "fixed" or "linked".'
            )
        globs = tables.strings("packages", group.get("packages"))
        found[name] = GroupOptions(globs, kind)
    return found


class VersionOptions(OptionTable, frozen=True, kw_only=True):
    TABLE: ClassVar[str] = "version"

    changes: Annotated[
        Literal["both", "commits", "files"],
        Option("What states a change: the messages of commits, change files, or `both`."),
    ] = "both"
    directory: Annotated[str, Option("Where change files are.", _directory)] = ".changeset"
    types: Annotated[
        Mapping[str, Level],
        Option(
            "What a commit of a type asks for: `major`, `minor`, `patch` or `none`. A key may have "
            "a scope, as `build(deps)`, and the default is added to. `docs`, `chore` and the like "
            "ask for nothing; nor do other types, with a warning.",
            _types,
        ),
    ] = field(default_factory=lambda: TYPES)
    ignore: Annotated[
        tuple[str, ...],
        Option(
            "Globs of files that no package is released for, besides those that users do not get "
            "(tests, documentation, changelogs); `!GLOB` puts some back."
        ),
    ] = ()
    paths: Annotated[
        Mapping[str, tuple[str, ...]],
        Option("Globs of further files that a package owns, by its name.", _paths),
    ] = field(default_factory=dict)
    zero: Annotated[
        Zero,
        Option(
            "Below 1.0.0, `shift` makes a breaking change a minor version and a feature a patch, "
            "`minor` a feature a minor version too, and `literal` a breaking change 1.0.0."
        ),
    ] = "shift"
    propagate: Annotated[
        Propagate,
        Option(
            "Which dependents are released with a package: those whose published requirement "
            "excludes the new version (`needed`), all (`always`), or none (`never`)."
        ),
    ] = "needed"
    ranges: Annotated[
        Literal["raise", "keep"],
        Option(
            "Requirements on a package that gets a new version, in packages that get one too: "
            "`raise` makes them begin at it, `keep` changes them only where they exclude it."
        ),
    ] = "raise"
    files: Annotated[
        Mapping[str, tuple[FurtherFile, ...]],
        Option(
            "Further files that say the version of a package, relative to its directory: where it "
            "stands there once, or in the group of `match`. "
            '`core = ["src/version.h", { path = "README.md", match = "core==([0-9.]+)" }]`.',
            _files,
        ),
    ] = field(default_factory=dict)
    changelog: Annotated[
        Literal["package", "root", "none"],
        Option(
            "Where the changes of a version are listed: in the `CHANGELOG.md` of its package, in "
            "one at the root, or nowhere."
        ),
    ] = "package"
    branches: Annotated[
        Mapping[str, str],
        Option(
            "Branches whose versions are prereleases, by their names or globs of them, each with "
            'its label: `{ next = "rc", "beta/*" = "beta" }`. All others are stable.',
            _labels,
        ),
    ] = field(default_factory=dict)
    prerelease: Annotated[
        Mapping[str, str],
        Option(
            "Packages whose versions are prereleases on every branch, by globs of their names: "
            '`{ "@acme/lab*" = "alpha" }`.',
            _labels,
        ),
    ] = field(default_factory=dict)
    title: Annotated[
        str,
        Option(
            "The title of the release pull request, and the subject of its commit. `{packages}` is "
            "the first of them, and how many more there are.",
            _title,
        ),
    ] = "chore: release {packages}"
    groups: Annotated[
        Mapping[str, GroupOptions],
        Option(
            "Packages that share a version, by globs of their names: all of them (`fixed`), or "
            'those that are released (`linked`). `ui = { packages = ["@acme/ui*"], kind = '
            '"fixed" }`.',
            _groups,
        ),
    ] = field(default_factory=dict)
