"""What other tools were told of versions, which ReleaseKit does not go by: each setting with the
line of releasekit.toml that says the same. One that is written there, or gone here, is settled.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from releasekit.config.package_filter import matches
from releasekit.ecosystems.shared.documents import table_in
from releasekit.errors import ConfigError, PlanError
from releasekit.host.files import is_file, read_parsed
from releasekit.model import MAX_MANIFEST_BYTES
from releasekit.plan.unlisted_packages import write_list
from releasekit.problems import Problem
from releasekit.text.bounds import parse_toml
from releasekit.text.escape import visible
from releasekit.text.json_text import parse_json
from releasekit.text.yaml_text import parse_yaml

if TYPE_CHECKING:
    from pathlib import Path

    from releasekit.model import Package

_LABEL: Final = re.compile(r"[a-z][a-z0-9-]{0,29}")
_TYPE: Final = re.compile(r"[a-z][a-z0-9_-]*")
# What of a glob reads the same here: the rest of micromatch is not read.
_PLAIN: Final = re.compile(r"!?@?[^!@()\[\]{}+|?\\]*")
# All that another one does not fit.
_OTHERS: Final = re.compile(r"!\((.+)\)")
_ALWAYS: Final = 'propagate = "always"'
_LITERAL: Final = 'zero = "literal"'
_BELOW: Final = "below [version] in releasekit.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """A `setting` of a `file` that says what `line` would say in releasekit.toml, or in its place
    some `advice`. Any of `keys` of `[version]` settles it. It is `refused` where versions would
    certainly be others.
    """

    setting: str
    keys: tuple[str, ...] = ()
    line: str = ""
    advice: str = ""
    refused: bool = False
    file: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deciding:
    """What versions are about to be decided for; `excluded` are the globs that leave others out."""

    packages: Sequence[Package]
    branch: str = ""
    excluded: Sequence[str] = ()

    @property
    def is_below_one(self) -> bool:
        return any(each.version.removeprefix("v").startswith("0.") for each in self.packages)

    def list_names(self, ecosystem: str) -> list[str]:
        return [each.id.name for each in self.packages if each.id.ecosystem == ecosystem]

    def select(self, globs: Sequence[str], names: Sequence[str]) -> list[str]:
        """Globs of ours that fit the packages that these globs of micromatch do: the same ones, or
        else names. Raises ValueError for one that is not read.
        """
        fitting: list[str] = []
        for glob in globs:
            others = _OTHERS.fullmatch(glob)
            meant = others[1] if others else glob.removeprefix("!")
            if not _PLAIN.fullmatch(meant):
                raise ValueError(f"{visible(glob)!r} is not a glob that ReleaseKit can read")
            parts = re.split(r"(\*+)", meant)
            found = [name for name in names if _fits(name, parts)]
            if others:
                # Without a slash in it, it fits no name that has one.
                apart = [name for name in names if "/" in meant or "/" not in name]
                found = [name for name in apart if name not in found]
            if glob.startswith("!") and not others:
                fitting = [name for name in fitting if name not in found]
            else:
                fitting += [name for name in found if name not in fitting]
        plain = [glob for glob in globs if any(matches(each.id, [glob]) for each in self.packages)]
        ours = {each.id.name for each in self.packages if matches(each.id, plain)}
        return plain if ours == set(fitting) else fitting

    def write_branch(self, label: str) -> str:
        """The line that makes its versions prereleases; empty where no label is like that."""
        if not _LABEL.fullmatch(label):
            return ""
        if self.branch:
            return f"branches = {{ {_quote(self.branch)} = {_quote(label)} }}"
        return f'prerelease = {{ "*" = {_quote(label)} }}'


def _fits(name: str, parts: Sequence[str]) -> bool:
    """By where each part can end: a regular expression would try every way to divide a name."""
    ends = {0}
    for part in parts:
        if not ends:
            return False
        if not part.startswith("*"):
            ends = {end + len(part) for end in ends if name.startswith(part, end)}
            continue
        reached = set()
        goes_on = False
        for at in range(len(name) + 1):
            goes_on |= at in ends
            if goes_on:
                reached.add(at)
            if name[at : at + 1] == "/" and part == "*":
                goes_on = False
        ends = reached
    return len(name) in ends


def _quote(text: str) -> str:
    return write_list([text])[1:-1]


def _write_groups(groups: Sequence[tuple[str, Sequence[str], str]]) -> str:
    """Of names, globs and kinds."""
    told = (
        f"{_quote(name)} = {{ packages = {write_list(globs)}, kind = {_quote(kind)} }}"
        for name, globs, kind in groups
    )
    return f"groups = {{ {', '.join(told)} }}"


def _write_types(types: Mapping[str, str]) -> str:
    told = (f"{_quote(name)} = {_quote(level)}" for name, level in types.items())
    return f"types = {{ {', '.join(told)} }}"


def _tables(value: object) -> list[dict[str, Any]]:
    """Those of a list, or of a table of tables."""
    if isinstance(value, dict):
        value = list(value.values())
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _strings(value: object) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _read_changesets(document: Mapping[str, Any], about: Deciding) -> Iterator[Unread]:
    """https://github.com/changesets/changesets/blob/main/docs/config-file-options.md"""
    names = about.list_names("npm")
    if not names:
        return
    groups: list[tuple[str, Sequence[str], str]] = []
    kinds = []
    for kind in ("fixed", "linked"):
        listed = document.get(kind)
        for number, globs in enumerate(listed if isinstance(listed, list) else (), 1):
            try:
                chosen = about.select(_strings(globs), names)
            except ValueError as error:
                advice = f"write its packages into [version.groups]: {error}"
                yield Unread(setting=kind, keys=("groups",), advice=advice, refused=True)
                continue
            if chosen and (len(chosen) > 1 or chosen[0] not in names):
                groups.append((f"{kind}-{number}", chosen, kind))
                kinds.append(kind)
    if groups:
        setting = " and ".join(dict.fromkeys(kinds))
        yield Unread(setting=setting, keys=("groups",), line=_write_groups(groups), refused=True)
    try:
        ignored = about.select(_strings(document.get("ignore")), names)
        listed = [*about.excluded, *ignored]
        line = f"exclude-packages = {write_list(listed)}" if ignored else ""
        advice = "write above the tables of releasekit.toml"
    except ValueError as error:
        line, advice = "", f"name its packages in `exclude-packages`: {error}"
        ignored = [] if about.excluded else ["*"]
    if ignored:
        yield Unread(setting="ignore", line=line, advice=advice, refused=True)
    unsafe = table_in(document, "___experimentalUnsafeOptions_WILL_CHANGE_IN_PATCH")
    if unsafe.get("updateInternalDependents") == "always":
        yield Unread(
            setting="updateInternalDependents", keys=("propagate",), line=_ALWAYS, refused=True
        )
    yield Unread(setting="change files alone", keys=("changes",), line='changes = "files"')
    if about.is_below_one:
        yield Unread(setting="versions below 1.0.0", keys=("zero",), line=_LITERAL)
    if document.get("updateInternalDependencies") == "minor":
        line = 'ranges = "keep"'
        yield Unread(setting="updateInternalDependencies", keys=("ranges",), line=line)
    if document.get("bumpVersionsWithWorkspaceProtocolOnly") is True:
        advice = "no option corresponds: every requirement on a sibling is updated"
        yield Unread(setting="bumpVersionsWithWorkspaceProtocolOnly", advice=advice)
    if table_in(document, "privatePackages").get("version") is True:
        advice = "no option corresponds: private packages get no version"
        yield Unread(setting="privatePackages", advice=advice)
    if document.get("snapshot"):
        advice = "no option corresponds: the input `snapshot` sets the form of a snapshot"
        yield Unread(setting="snapshot", advice=advice)


def _read_prerelease(document: Mapping[str, Any], about: Deciding) -> Iterator[Unread]:
    """https://github.com/changesets/changesets/blob/main/docs/prereleases.md"""
    mode, tag = document.get("mode"), document.get("tag")
    if mode == "exit" or not about.list_names("npm"):
        return  # what comes next is stable, here too
    line = about.write_branch(tag) if mode == "pre" and isinstance(tag, str) else ""
    advice = "" if line else "leave its prerelease mode with `changeset pre exit`"
    yield Unread(
        setting=f"mode {json.dumps(mode)}, tag {json.dumps(tag)}",
        keys=("branches", "prerelease"),
        line=line,
        advice=advice,
        refused=True,
    )


def _read_release_please(document: Mapping[str, Any], about: Deciding) -> Iterator[Unread]:
    """https://github.com/googleapis/release-please/blob/main/docs/manifest-releaser.md"""
    every = [dict(document), *_tables(document.get("packages"))]

    def find(key: str) -> Any:
        return next((each[key] for each in every if each.get(key)), None)

    if about.is_below_one and not find("bump-minor-pre-major"):
        yield Unread(setting="no bump-minor-pre-major", keys=("zero",), line=_LITERAL)
    elif about.is_below_one and not find("bump-patch-for-minor-pre-major"):
        yield Unread(setting="bump-minor-pre-major", keys=("zero",), line='zero = "minor"')
    types = {"deps": "patch"}
    if sections := _tables(find("changelog-sections")):
        shown = [each.get("type") for each in sections if not each.get("hidden")]
        usual = {"feat", "fix", "perf", "revert"}
        named = (it for it in shown if isinstance(it, str) and _TYPE.fullmatch(it))
        types = dict.fromkeys((it for it in named if it not in usual), "patch")
    strategy = find("versioning")
    if strategy == "always-bump-patch":
        types |= {"feat": "patch"}
    if strategy == "always-bump-minor":
        types |= {"fix": "minor", "perf": "minor"}
    if types:
        yield Unread(setting="changelog-sections", keys=("types",), line=_write_types(types))
    label = find("prerelease-type")
    if strategy == "prerelease" or label:
        word = _LABEL.match(label) if isinstance(label, str) else None
        line = about.write_branch(word[0] if word else "rc")
        keys = ("branches", "prerelease")
        yield Unread(setting="versioning and prerelease-type", keys=keys, line=line)
    elif strategy and strategy not in ("default", "always-bump-patch", "always-bump-minor"):
        advice = "write change files with the version"
        yield Unread(setting=f"versioning {json.dumps(strategy)}", advice=advice)
    plugins = document.get("plugins")
    plugins = plugins if isinstance(plugins, list) else []
    kinds = [each.get("type") if isinstance(each, dict) else each for each in plugins]
    if any(isinstance(kind, str) and kind.endswith("-workspace") for kind in kinds):
        yield Unread(setting="its workspace plugins", keys=("propagate",), line=_ALWAYS)
    linked = [
        (str(each.get("groupName") or "linked"), _strings(each.get("components")), "fixed")
        for each in _tables(plugins)
        if each.get("type") == "linked-versions"
    ]
    if linked:
        line = _write_groups(linked)
        yield Unread(setting="linked-versions, by component", keys=("groups",), line=line)
    if find("exclude-paths"):
        advice = "write its paths as `ignore`, which takes globs"
        yield Unread(setting="exclude-paths", keys=("ignore",), advice=advice)
    if find("extra-files"):
        advice = "write them into [version.files]"
        yield Unread(setting="extra-files", keys=("files",), advice=advice)
    if find("release-as"):
        yield Unread(setting="release-as", advice="write a change file with that version")


def _read_lerna(document: Mapping[str, Any], about: Deciding) -> Iterator[Unread]:
    """https://lerna.js.org/docs/api-reference/configuration"""
    if not about.list_names("npm"):
        return
    if document.get("version") not in (None, "independent"):
        line = _write_groups([("all", ["*"], "linked")])
        yield Unread(setting="version", keys=("groups",), line=line)
    yield Unread(setting="all dependents", keys=("propagate",), line=_ALWAYS)
    if about.is_below_one:
        yield Unread(setting="versions below 1.0.0", keys=("zero",), line='zero = "minor"')
    commands = table_in(document, "command")
    of_command = (table_in(commands, each) for each in ("version", "publish"))
    for each in (document, *of_command):
        if ignored := _strings(each.get("ignoreChanges")):
            line = f"ignore = {write_list(ignored)}"
            yield Unread(setting="ignoreChanges", keys=("ignore",), line=line)
            break


def _read_nx(document: Mapping[str, Any], about: Deciding) -> Iterator[Unread]:
    """https://nx.dev/reference/nx-json#release"""
    release = document.get("release")
    if not isinstance(release, dict):
        return
    groups = table_in(release, "groups")
    relation = release.get("projectsRelationship", "fixed")
    every = {name: table_in(groups, name) for name in groups}
    fixed = [
        name for name, it in every.items() if it.get("projectsRelationship", relation) == "fixed"
    ]
    if fixed:
        told = ", ".join(visible(each) for each in fixed)
        advice = f"write the packages of {told} into [version.groups]"
        yield Unread(setting="groups", keys=("groups",), advice=advice)
    elif not groups and relation == "fixed":
        line = _write_groups([("all", ["*"], "fixed")])
        yield Unread(setting="projectsRelationship", keys=("groups",), line=line)
    if any(each.get("versionPlans") for each in (release, *every.values())):
        line = 'directory = ".nx/version-plans"'
        yield Unread(setting="versionPlans", keys=("directory",), line=line)
    yield Unread(setting="all dependents", keys=("propagate",), line=_ALWAYS)
    if about.is_below_one:
        yield Unread(setting="versions below 1.0.0", keys=("zero",), line=_LITERAL)


def _read_release_plz(document: Mapping[str, Any], about: Deciding) -> Iterator[Unread]:
    """https://release-plz.dev/docs/config"""
    named = _tables(document.get("package"))
    groups: dict[str, list[str]] = {}
    for each in named:
        if isinstance(group := each.get("version_group"), str):
            groups.setdefault(group, []).append(str(each.get("name")))
    if groups:
        line = _write_groups([(name, crates, "fixed") for name, crates in groups.items()])
        yield Unread(setting="version_group", keys=("groups",), line=line)
    workspace = table_in(document, "workspace")
    crates = about.list_names("cargo")
    by_name = {name: each for each in named if isinstance(name := each.get("name"), str)}
    left = [
        crate
        for crate in crates
        if by_name.get(crate, workspace).get("release", workspace.get("release")) is False
    ]
    if left:
        line = f"exclude-packages = {write_list([*about.excluded, *left])}"
        yield Unread(setting="release", line=line, advice="write above the tables")
    if any(each.get("features_always_increment_minor") for each in (workspace, *named)):
        line = 'zero = "minor"'
        yield Unread(setting="features_always_increment_minor", keys=("zero",), line=line)
    for key in ("release_commits", "custom_minor_increment_regex", "custom_major_increment_regex"):
        if any(each.get(key) for each in (workspace, *named)):
            yield Unread(setting=key, keys=("types",), advice="write its types as `types`")


def _read_cargo_release(document: Mapping[str, Any], _about: Deciding) -> Iterator[Unread]:
    """https://github.com/crate-ci/cargo-release/blob/master/docs/reference.md"""
    workspace = table_in(document, "workspace")
    own = table_in(table_in(workspace, "metadata"), "release")
    for each in (own, document):
        if each.get("shared-version"):
            line = _write_groups([("shared", ["cargo:*"], "fixed")])
            yield Unread(setting="shared-version", keys=("groups",), line=line)
        if each.get("pre-release-replacements"):
            advice = "write its files into [version.files]"
            yield Unread(setting="pre-release-replacements", keys=("files",), advice=advice)


def _read_semantic_release(document: Mapping[str, Any], _about: Deciding) -> Iterator[Unread]:
    """https://semantic-release.gitbook.io/semantic-release/usage/configuration"""
    branches = document.get("branches")
    labels: dict[str, str] = {}
    for each in _tables([branches] if isinstance(branches, dict) else branches):
        name, label = each.get("name"), each.get("prerelease")
        label = name if label is True else label
        if isinstance(name, str) and isinstance(label, str) and _LABEL.fullmatch(label):
            labels[name] = label
    if labels:
        told = (f"{_quote(name)} = {_quote(label)}" for name, label in labels.items())
        line = f"branches = {{ {', '.join(told)} }}"
        yield Unread(setting="branches", keys=("branches", "prerelease"), line=line)
    plugins = document.get("plugins")
    of_plugins = [
        each[1]
        for each in (plugins if isinstance(plugins, list) else ())
        if isinstance(each, list) and len(each) > 1 and isinstance(each[1], dict)
    ]
    rules = [rule for each in (document, *of_plugins) for rule in _tables(each.get("releaseRules"))]
    if rules:
        types = {
            f"{rule['type']}({rule['scope']})" if "scope" in rule else rule["type"]: level
            for rule in rules
            if isinstance(rule.get("type"), str)
            and _TYPE.fullmatch(rule["type"])
            and (level := rule.get("release") or "none") in ("major", "minor", "patch", "none")
        }
        line = _write_types(types) if types else ""
        advice = "" if types else "write its types as `types`"
        yield Unread(setting="releaseRules", keys=("types",), line=line, advice=advice)
    if document.get("tagFormat", "v${version}") != "v${version}":
        advice = "write its form as [tag] name, with {version}"
        yield Unread(setting="tagFormat", keys=("tag",), advice=advice)


def _read_python_semantic_release(document: Mapping[str, Any], about: Deciding) -> Iterator[Unread]:
    """https://python-semantic-release.readthedocs.io/en/latest/configuration/configuration.html"""
    own = table_in(document, "tool").get("semantic_release")
    if not isinstance(own, dict):
        return
    if about.is_below_one and own.get("major_on_zero", True):
        yield Unread(setting="major_on_zero", keys=("zero",), line=_LITERAL)
    labels = {}
    for each in _tables(own.get("branches")):
        match, label = each.get("match"), each.get("prerelease_token", "rc")
        if each.get("prerelease") and isinstance(match, str) and isinstance(label, str):
            labels[match] = label
    if labels:
        told = ", ".join(f"{visible(each)} = {visible(to)}" for each, to in labels.items())
        advice = f"write its prereleases as `branches`: {told}"
        yield Unread(setting="branches", keys=("branches", "prerelease"), advice=advice)
    options = table_in(own, "commit_parser_options")
    types = {
        each: level
        for level in ("minor", "patch")
        for each in _strings(options.get(f"{level}_tags"))
        if _TYPE.fullmatch(each)
    }
    if types:
        yield Unread(setting="commit_parser_options", keys=("types",), line=_write_types(types))
    if own.get("version_variables"):
        advice = "write them into [version.files]"
        yield Unread(setting="version_variables", keys=("files",), advice=advice)
    if own.get("tag_format", "v{version}") != "v{version}":
        advice = "write its form as [tag] name"
        yield Unread(setting="tag_format", keys=("tag",), advice=advice)


def _read_knope(document: Mapping[str, Any], _about: Deciding) -> Iterator[Unread]:
    """https://knope.tech/reference/config-file/packages/"""
    if "package" in document or "packages" in document:
        line = 'propagate = "never"'
        yield Unread(setting="dependents stay", keys=("propagate",), line=line)


def _read_pnpm(document: Mapping[str, Any], about: Deciding) -> Iterator[Unread]:
    """https://pnpm.io/settings#versioning"""
    groups = []
    listed = table_in(document, "versioning").get("fixed")
    for number, globs in enumerate(listed if isinstance(listed, list) else (), 1):
        if chosen := _strings(globs):
            groups.append((f"fixed-{number}", chosen, "fixed"))
    if groups and about.list_names("npm"):
        line = _write_groups(groups)
        yield Unread(setting="versioning.fixed", keys=("groups",), line=line, refused=True)


_Reader = Callable[[Mapping[str, Any], Deciding], Iterator[Unread]]
_Parser = Callable[[str], object]


def _read_member(key: str, read: _Reader) -> _Reader:
    """The table `key` of a file that is for more than this."""

    def read_own(document: Mapping[str, Any], about: Deciding) -> Iterator[Unread]:
        if isinstance(own := document.get(key), dict):
            for each in read(own, about):
                yield replace(each, setting=f"{key}.{each.setting}")

    return read_own


_TOOLS: Final[Mapping[str, tuple[_Parser, _Reader]]] = {
    ".changeset/pre.json": (parse_json, _read_prerelease),
    ".changeset/config.json": (parse_json, _read_changesets),
    "pnpm-workspace.yaml": (parse_yaml, _read_pnpm),
    "release-please-config.json": (parse_json, _read_release_please),
    ".github/release-please-config.json": (parse_json, _read_release_please),
    "lerna.json": (parse_json, _read_lerna),
    "nx.json": (parse_json, _read_nx),
    "release-plz.toml": (parse_toml, _read_release_plz),
    ".release-plz.toml": (parse_toml, _read_release_plz),
    "release.toml": (parse_toml, _read_cargo_release),
    "Cargo.toml": (parse_toml, _read_cargo_release),
    ".releaserc": (parse_yaml, _read_semantic_release),
    ".releaserc.json": (parse_json, _read_semantic_release),
    ".releaserc.yaml": (parse_yaml, _read_semantic_release),
    ".releaserc.yml": (parse_yaml, _read_semantic_release),
    "package.json": (parse_json, _read_member("release", _read_semantic_release)),
    "pyproject.toml": (parse_toml, _read_python_semantic_release),
    "knope.toml": (parse_toml, _read_knope),
}
# Programs: what they say shows only where they run.
_PROGRAMS: Final = tuple(
    f"{stem}.{end}"
    for stem in ("release.config", ".releaserc")
    for end in ("js", "cjs", "mjs", "ts")
)
# Those of everybody are read by their ecosystems, which say what is wrong with them.
_OF_EVERYBODY: Final = frozenset(
    {"Cargo.toml", "package.json", "pyproject.toml", "pnpm-workspace.yaml", "release.toml"}
)


def find_unread(
    places: Sequence[Path], about: Deciding, written: frozenset[str]
) -> Iterator[Unread]:
    """In these directories, without what `written` keys of `[version]` settle, and "tag" where
    `[tag]` names tags.
    """
    for place in dict.fromkeys(places):
        for name, (parse, read) in _TOOLS.items():
            path = place / name
            if not is_file(path):
                continue
            try:
                document = _load(path, parse)
            except ConfigError as error:
                if name not in _OF_EVERYBODY and not written:
                    yield Unread(file=name, setting="all of it", advice=f"correct it: {error}")
                continue
            for each in read(document, about):
                if written.isdisjoint(each.keys):
                    yield replace(each, file=name)
        for name in _PROGRAMS:
            if not written and is_file(place / name):
                advice = "write its version settings below [version] in releasekit.toml"
                yield Unread(file=name, setting="a program", advice=advice)


def _load(path: Path, parse: _Parser) -> Mapping[str, Any]:
    document = read_parsed(path, parse, complaint="cannot be read", max_bytes=MAX_MANIFEST_BYTES)
    if not isinstance(document, dict):
        raise ConfigError(f"{path} is not a table of settings")
    return document


def refuse_unread(unread: Sequence[Unread]) -> list[PlanError]:
    """One for each that decides which versions come out."""
    return [
        PlanError(
            f"{each.file}: ReleaseKit does not read {each.setting}, which decides versions",
            hint=f"{_describe(each)}. Or delete the file, if no other tool decides versions.",
            problem=Problem.OTHER_TOOL,
        )
        for each in unread
        if each.refused
    ]


def describe_unread(unread: Sequence[Unread]) -> list[str]:
    """A sentence for each file with others, where a run goes on without them."""
    by_file: dict[str, list[Unread]] = {}
    for each in unread:
        if not each.refused:
            by_file.setdefault(each.file, []).append(each)
    sentences = []
    for file, found in by_file.items():
        lines = [f"`{each.line}` for {each.setting}" for each in found if each.line and each.keys]
        told = [f"{_BELOW} write {', '.join(lines)}"] if lines else []
        told += [
            f"for {each.setting} {each.advice}{f' `{each.line}`' if each.line else ''}"
            for each in found
            if not (each.line and each.keys)
        ]
        sentences.append(
            f"ReleaseKit decides versions without {file}: {'; '.join(told)}; or delete the file, "
            "if no other tool decides versions"
        )
    return sentences


def _describe(unread: Unread) -> str:
    if unread.line and unread.keys:
        return f"Write {_BELOW}: {unread.line}"
    told = f"{unread.advice}: {unread.line}" if unread.line else unread.advice
    return told[:1].upper() + told[1:]
