"""What other tools were told of versions, which ReleaseKit does not go by: each setting with the
line of releasekit.toml that says the same. One that is written there, or gone here, is settled.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import Struct

from releasekit.config.package_filter import matches
from releasekit.ecosystems.shared.documents import table_in
from releasekit.errors import ConfigError, PlanError
from releasekit.fields import replace
from releasekit.host.files import is_file, read_parsed
from releasekit.model import MAX_MANIFEST_BYTES, DependencyKind
from releasekit.plan.unlisted_packages import write_list
from releasekit.problems import Problem
from releasekit.report.text import few
from releasekit.text.bounds import parse_toml
from releasekit.text.escape import clip, visible
from releasekit.text.globs import Glob
from releasekit.text.json_text import parse_json
from releasekit.text.numbering import numbering_of
from releasekit.text.yaml_text import parse_yaml

if TYPE_CHECKING:
    from pathlib import Path

    from releasekit.decided import Standing
    from releasekit.model import Package, PackageId

_LABEL: Final = re.compile(r"[a-z][a-z0-9-]{0,29}")
_TYPE: Final = re.compile(r"[a-z][a-z0-9_-]*")
# What of a glob reads the same here: the rest of micromatch is not read.
_PLAIN: Final = re.compile(r"!?@?[^!@()\[\]{}+|?\\]*")
# All that another one does not fit.
_OTHERS: Final = re.compile(r"!\((.+)\)")
# Two stars pass a slash where a part of a name begins with them.
_PASSING: Final = re.compile(r"(?<![^/])\*\*+(?=[^/])")
_MAX_SHOWN: Final = 200
# Globs of a file, times packages: a million of them takes three seconds.
_MAX_TRIED: Final = 500_000
# What is to be copied is whole up to here.
_MAX_LINE: Final = 4_000
_ALWAYS: Final = 'propagate = "always"'
_LITERAL: Final = 'zero = "literal"'
_MINOR: Final = 'zero = "minor"'
_MANIFEST: Final = ".release-please-manifest.json"
_UNTAGGED: Final = "tag the commits of these versions, or correct the file"
_BEHIND: Final = "write the last versions into it before release-please runs again"
# Of changesets.
PRE_MODE: Final = ".changeset/pre.json"
_BELOW: Final = "below [version] in releasekit.toml"
_INTO_FILES: Final = "write them into [version.files]"
_UNSAFE: Final = "___experimentalUnsafeOptions_WILL_CHANGE_IN_PATCH"
_INTO_TAG: Final = "write its form as [tag] name, with {version}"
_INTO_TYPES: Final = "write its types as `types`"
_NOTHING: Final = "no option corresponds: "
# In place of a key: every one of them settles it.
_ANY: Final = "any"
_STRATEGIES: Final[Mapping[str, Mapping[str, str]]] = {
    "default": {},
    "always-bump-patch": {"feat": "patch"},
    "always-bump-minor": {"fix": "minor", "perf": "minor"},
}
# Either settles both.
_PRERELEASES: Final = frozenset({"branches", "prerelease"})

Document = Mapping[str, Any]


class Unread(Struct, frozen=True):
    """A `setting` of a `file` that says what `line` would say below `[version]`, or in its place
    some `advice`, also on a line that stands elsewhere. It is `refused` where versions would
    certainly be others.
    """

    setting: str
    line: str = ""
    advice: str = ""
    key: str = ""
    refused: bool = False
    file: str = ""

    @property
    def settled_by(self) -> str:
        """The key of `[version]`, if one does."""
        return self.key or ("" if self.advice else self.line.partition(" = ")[0])


class Deciding(Struct, frozen=True, kw_only=True):
    """What versions are about to be decided for; `excluded` are the globs that leave others out,
    and `given` the inputs that are, by attribute.
    """

    packages: Sequence[Package]
    branch: str = ""
    excluded: Sequence[str] = ()
    given: Collection[str] = ()

    @property
    def is_below_one(self) -> bool:
        return any(each.version.removeprefix("v").startswith("0.") for each in self.packages)

    @property
    def has_peers(self) -> bool:
        return any(
            it.kind is DependencyKind.PEER for each in self.packages for it in each.dependencies
        )

    def list_names(self, ecosystem: str) -> list[str]:
        return [each.id.name for each in self.packages if each.id.ecosystem == ecosystem]

    def select(
        self, globs: Sequence[str], names: Mapping[str, None], *, are_many: bool = False
    ) -> list[str]:
        """Globs of ours that fit the packages that these globs of micromatch do: the same ones, or
        else names. Raises ValueError for one that is not read, and for patterns where there
        `are_many` in the file.
        """
        if are_many and _has_patterns(globs):
            count = len(self.packages)
            most = _MAX_TRIED // count
            raise ValueError(f"ReleaseKit tries at most {most} globs per file for {count} packages")
        fitting: dict[str, None] = {}
        for glob in globs:
            others = _OTHERS.fullmatch(glob)
            meant = others[1] if others else glob.removeprefix("!")
            if not _PLAIN.fullmatch(meant):
                raise ValueError(
                    f"{visible(clip(glob, _MAX_SHOWN))!r} is not a glob that ReleaseKit can read"
                )
            found = _find_fitting(meant, names)
            if others:
                # Without a slash in it, it fits no name that has one.
                apart = (name for name in names if "/" in meant or "/" not in name)
                fitting |= dict.fromkeys(name for name in apart if name not in found)
            elif glob.startswith("!"):
                for name in found:
                    fitting.pop(name, None)
            else:
                fitting |= found
        if not _has_patterns(globs):
            return list(fitting)
        plain = [glob for glob in globs if any(matches(each.id, [glob]) for each in self.packages)]
        ours = {each.id.name for each in self.packages if matches(each.id, plain)}
        return plain if ours == fitting.keys() else list(fitting)

    def write_branch(self, label: str) -> str:
        """The line that makes its versions prereleases; empty where no label is like that."""
        if not _LABEL.fullmatch(label):
            return ""
        if self.branch:
            return _write_texts("branches", {self.branch: label})
        return _write_texts("prerelease", {"*": label})


def _find_fitting(glob: str, names: Mapping[str, None]) -> dict[str, None]:
    try:
        parsed = Glob.parse(_PASSING.sub("**/*", glob), where="a glob")
    except ConfigError as error:
        raise ValueError(str(error)) from error
    if "*" not in glob:
        return {glob: None} if glob in names else {}
    return {name: None for name in names if parsed.matches(name.split("/"))}


def _has_patterns(globs: Iterable[str]) -> bool:
    """Whether any of them has to be tried with every name."""
    return any("*" in glob or _OTHERS.fullmatch(glob) for glob in globs)


_Reader = Callable[[Document, Deciding], Iterable[Unread]]


def _quote(text: str) -> str:
    return write_list([text])[1:-1]


def _write_table(key: str, entries: Iterable[tuple[str, str]]) -> str:
    told = (f"{_quote(name)} = {value}" for name, value in entries)
    return f"{key} = {{ {', '.join(told)} }}"


def _write_texts(key: str, texts: Mapping[str, str]) -> str:
    return _write_table(key, ((name, _quote(text)) for name, text in texts.items()))


def _write_groups(groups: Iterable[tuple[str, Sequence[str], str]]) -> str:
    """Of names, globs and kinds."""
    return _write_table(
        "groups",
        (
            (name, f"{{ packages = {write_list(globs)}, kind = {_quote(kind)} }}")
            for name, globs, kind in groups
        ),
    )


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _tables(value: object) -> list[dict[str, Any]]:
    """Those of a list, or of a table of tables."""
    values = list(value.values()) if isinstance(value, dict) else _list(value)
    return [each for each in values if isinstance(each, dict)]


def _strings(value: object) -> list[str]:
    return [each for each in _list(value) if isinstance(each, str)]


def _find(document: Document, key: str) -> Any:
    """What is set for all, or else for the first package with it."""
    named = (each for kind in ("packages", "package") for each in _tables(document.get(kind)))
    every = (document, table_in(document, "workspace"), *named)
    return next((it for each in every if (it := each.get(key))), None)


def _when(test: Callable[[Document, Deciding], object], setting: str, **fields: Any) -> _Reader:
    unread = Unread(setting, **fields)
    return lambda document, about: [unread] if test(document, about) else []


def _where(setting: str, test: Callable[[Any], object] = bool, **fields: Any) -> _Reader:
    return _when(lambda document, _: test(_find(document, setting)), setting, **fields)


def _where_below_one(line: str) -> _Reader:
    return _when(lambda _, about: about.is_below_one, "versions below 1.0.0", line=line)


_ALL_DEPENDENTS: Final = _when(lambda *_: True, "all dependents", line=_ALWAYS)


def _are_many(document: Document, about: Deciding) -> bool:
    """Whether to try all globs of the file with all names would take seconds."""
    every = [document.get("ignore"), *_list(document.get("fixed")), *_list(document.get("linked"))]
    globs = sum(len(each) for each in map(_strings, every) if _has_patterns(each))
    return globs * len(about.packages) > _MAX_TRIED


def _read_fixed_and_linked(document: Document, about: Deciding) -> Iterator[Unread]:
    names, are_many = dict.fromkeys(about.list_names("npm")), _are_many(document, about)
    groups: list[tuple[str, Sequence[str], str]] = []
    for kind in ("fixed", "linked"):
        for number, globs in enumerate(_list(document.get(kind)), 1):
            try:
                chosen = about.select(_strings(globs), names, are_many=are_many)
            except ValueError as error:
                advice = f"write its packages into [version.groups]: {error}"
                yield Unread(kind, key="groups", advice=advice, refused=True)
                continue
            if chosen and (len(chosen) > 1 or chosen[0] not in names):
                groups.append((f"{kind}-{number}", chosen, kind))
    if groups:
        setting = " and ".join(dict.fromkeys(kind for _, _, kind in groups))
        yield Unread(setting, _write_groups(groups), refused=True)


def _read_ignore(document: Document, about: Deciding) -> Iterator[Unread]:
    globs, names = _strings(document.get("ignore")), dict.fromkeys(about.list_names("npm"))
    try:
        ignored = about.select(globs, names, are_many=_are_many(document, about))
    except ValueError as error:
        if not about.excluded:
            advice = f"name its packages in `exclude-packages`: {error}"
            yield Unread("ignore", advice=advice, refused=True)
        return
    if ignored:
        yield replace(_write_excluded("ignore", ignored, about), refused=True)


def _write_excluded(setting: str, left_out: Sequence[str], about: Deciding) -> Unread:
    line = f"exclude-packages = {write_list([*about.excluded, *left_out])}"
    return Unread(setting, line, "write above the tables of releasekit.toml")


# https://github.com/changesets/changesets/blob/main/docs/config-file-options.md
_CHANGESETS: Final = (
    _read_fixed_and_linked,
    _read_ignore,
    _when(
        lambda document, _: table_in(document, _UNSAFE).get("updateInternalDependents") == "always",
        "updateInternalDependents",
        line=_ALWAYS,
        refused=True,
    ),
    # https://github.com/changesets/changesets/issues/524
    _when(
        lambda _, about: about.has_peers,
        "peer dependencies",
        advice=f"{_NOTHING}changesets 2 releases a major version of each package whose peer gets a "
        "minor or major version; write such a version into a change file",
    ),
    _when(lambda *_: True, "change files alone", line='changes = "files"'),
    _where_below_one(_LITERAL),
    _where("updateInternalDependencies", lambda it: it == "minor", line='ranges = "keep"'),
    _where(
        "bumpVersionsWithWorkspaceProtocolOnly",
        advice=f"{_NOTHING}every requirement on a sibling is updated",
    ),
    _where(
        "privatePackages",
        lambda it: isinstance(it, dict) and it.get("version"),
        advice=f"{_NOTHING}private packages get no version",
    ),
    _when(
        lambda document, about: (
            document.get("access") == "public"
            and "npm_access" not in about.given
            and any(name.startswith("@") for name in about.list_names("npm"))
        ),
        "access",
        line='npm-access = "public"',
        advice="write above the tables of releasekit.toml",
    ),
    _where("snapshot", advice=f"{_NOTHING}the input `snapshot` sets the form of a snapshot"),
)


def _read_prerelease(document: Document, about: Deciding) -> Iterator[Unread]:
    """https://github.com/changesets/changesets/blob/main/docs/prereleases.md"""
    mode, tag = document.get("mode"), document.get("tag")
    if mode == "exit":
        return  # what comes next is stable, here too
    line = about.write_branch(tag) if mode == "pre" and isinstance(tag, str) else ""
    advice = "" if line else "leave its prerelease mode with `changeset pre exit`"
    setting = f"mode {json.dumps(mode)}, tag {json.dumps(tag)}"
    yield Unread(setting, line, advice, key="branches", refused=True)


def _read_pre_major(document: Document, about: Deciding) -> Iterator[Unread]:
    if not about.is_below_one:
        return
    if not _find(document, "bump-minor-pre-major"):
        yield Unread("no bump-minor-pre-major", _LITERAL)
    elif not _find(document, "bump-patch-for-minor-pre-major"):
        yield Unread("bump-minor-pre-major", _MINOR)


def _read_sections(document: Document, _about: Deciding) -> Iterator[Unread]:
    types = {"deps": "patch"}
    if sections := _tables(_find(document, "changelog-sections")):
        shown = _strings([each.get("type") for each in sections if not each.get("hidden")])
        usual = {"feat", "fix", "perf", "revert"}
        types = {it: "patch" for it in shown if _TYPE.fullmatch(it) and it not in usual}
    types |= _STRATEGIES.get(str(_find(document, "versioning")), {})
    if types:
        yield Unread("changelog-sections", _write_texts("types", types))


def _read_strategy(document: Document, about: Deciding) -> Iterator[Unread]:
    strategy = _find(document, "versioning")
    label = _find(document, "prerelease-type")
    if strategy == "prerelease" or label:
        word = _LABEL.match(label) if isinstance(label, str) else None
        line = about.write_branch(word[0] if word else "rc")
        yield Unread("versioning and prerelease-type", line)
    elif strategy and str(strategy) not in _STRATEGIES:
        advice = "write change files with the version"
        yield Unread(f"versioning {json.dumps(strategy)}", advice=advice)


def _read_plugins(document: Document, _about: Deciding) -> Iterator[Unread]:
    plugins = _list(document.get("plugins"))
    kinds = _strings([each.get("type") if isinstance(each, dict) else each for each in plugins])
    if any(kind.endswith("-workspace") for kind in kinds):
        yield Unread("its workspace plugins", _ALWAYS)
    linked = [
        (str(each.get("groupName") or "linked"), _strings(each.get("components")), "fixed")
        for each in _tables(plugins)
        if each.get("type") == "linked-versions"
    ]
    if linked:
        yield Unread("linked-versions, by component", _write_groups(linked))


# https://github.com/googleapis/release-please/blob/main/docs/manifest-releaser.md
_RELEASE_PLEASE: Final = (
    _read_pre_major,
    _read_sections,
    _read_strategy,
    _read_plugins,
    _where("exclude-paths", key="ignore", advice="write its paths as `ignore`, which takes globs"),
    _where("extra-files", key="files", advice=_INTO_FILES),
    _where("release-as", advice="write a change file with that version"),
)


def _read_ignored_changes(document: Document, _about: Deciding) -> Iterator[Unread]:
    commands = table_in(document, "command")
    every = (document, table_in(commands, "version"), table_in(commands, "publish"))
    if ignored := next((it for each in every if (it := _strings(each.get("ignoreChanges")))), []):
        yield Unread("ignoreChanges", f"ignore = {write_list(ignored)}")


# https://lerna.js.org/docs/api-reference/configuration
_LERNA: Final = (
    _where(
        "version",
        lambda it: it not in (None, "independent"),
        line=_write_groups([("all", ["*"], "linked")]),
    ),
    _ALL_DEPENDENTS,
    _where_below_one(_MINOR),
    _read_ignored_changes,
)


def _read_release_groups(document: Document, _about: Deciding) -> Iterator[Unread]:
    groups = table_in(document, "groups")
    relation = document.get("projectsRelationship", "fixed")
    fixed = [
        visible(name)
        for name in groups
        if table_in(groups, name).get("projectsRelationship", relation) == "fixed"
    ]
    if fixed:
        advice = f"write the packages of {', '.join(fixed)} into [version.groups]"
        yield Unread("groups", key="groups", advice=advice)
    elif not groups and relation == "fixed":
        yield Unread("projectsRelationship", _write_groups([("all", ["*"], "fixed")]))
    if any(each.get("versionPlans") for each in (document, *_tables(groups))):
        yield Unread("versionPlans", 'directory = ".nx/version-plans"')


# https://nx.dev/reference/nx-json#release
_NX: Final = (_read_release_groups, _ALL_DEPENDENTS, _where_below_one(_LITERAL))


def _read_version_groups(document: Document, _about: Deciding) -> Iterator[Unread]:
    groups: dict[str, list[str]] = {}
    for each in _tables(document.get("package")):
        if isinstance(group := each.get("version_group"), str):
            groups.setdefault(group, []).append(str(each.get("name")))
    if groups:
        line = _write_groups((name, crates, "fixed") for name, crates in groups.items())
        yield Unread("version_group", line)


def _read_release(document: Document, about: Deciding) -> Iterator[Unread]:
    own = {
        name: each["release"]
        for each in _tables(document.get("package"))
        if isinstance(name := each.get("name"), str) and "release" in each
    }
    usual = table_in(document, "workspace").get("release")
    left_out = [name for name in about.list_names("cargo") if own.get(name, usual) is False]
    if left_out:
        yield _write_excluded("release", left_out, about)


# https://release-plz.dev/docs/config
_RELEASE_PLZ: Final = (
    _read_version_groups,
    _read_release,
    _where("features_always_increment_minor", line=_MINOR),
    _where("release_commits", key="types", advice=_INTO_TYPES),
    _where("custom_minor_increment_regex", key="types", advice=_INTO_TYPES),
    _where("custom_major_increment_regex", key="types", advice=_INTO_TYPES),
)
# https://github.com/crate-ci/cargo-release/blob/master/docs/reference.md
_CARGO_RELEASE: Final = (
    _where("shared-version", line=_write_groups([("shared", ["cargo:*"], "fixed")])),
    _where("pre-release-replacements", key="files", advice=_INTO_FILES),
)


def _read_branches(document: Document, _about: Deciding) -> Iterator[Unread]:
    branches = document.get("branches")
    labels: dict[str, str] = {}
    for each in _tables([branches] if isinstance(branches, dict) else branches):
        name, label = each.get("name"), each.get("prerelease")
        label = name if label is True else label
        if isinstance(name, str) and isinstance(label, str) and _LABEL.fullmatch(label):
            labels[name] = label
    if labels:
        yield Unread("branches", _write_texts("branches", labels))


def _read_rules(document: Document, _about: Deciding) -> Iterator[Unread]:
    plugins = _list(document.get("plugins"))
    every = [document, *(table for each in plugins for table in _tables(_list(each)[1:2]))]
    rules = [rule for each in every for rule in _tables(each.get("releaseRules"))]
    types = {
        f"{rule['type']}({rule['scope']})" if "scope" in rule else rule["type"]: level
        for rule in rules
        if isinstance(rule.get("type"), str)
        and _TYPE.fullmatch(rule["type"])
        and (level := rule.get("release") or "none") in ("major", "minor", "patch", "none")
    }
    if types:
        yield Unread("releaseRules", _write_texts("types", types))
    elif rules:
        yield Unread("releaseRules", key="types", advice=_INTO_TYPES)


# https://semantic-release.gitbook.io/semantic-release/usage/configuration
_SEMANTIC_RELEASE: Final = (
    _read_branches,
    _read_rules,
    _where("tagFormat", lambda it: it not in (None, "v${version}"), key="tag", advice=_INTO_TAG),
)


def _read_prerelease_branches(document: Document, _about: Deciding) -> Iterator[Unread]:
    labels = []
    for each in _tables(document.get("branches")):
        match, label = each.get("match"), each.get("prerelease_token", "rc")
        if each.get("prerelease") and isinstance(match, str) and isinstance(label, str):
            labels.append(f"{visible(match)} = {visible(label)}")
    if labels:
        advice = f"write its prereleases as `branches`: {', '.join(labels)}"
        yield Unread("branches", key="branches", advice=advice)


def _read_parser_options(document: Document, _about: Deciding) -> Iterator[Unread]:
    options = table_in(document, "commit_parser_options")
    types = {
        each: level
        for level in ("minor", "patch")
        for each in _strings(options.get(f"{level}_tags"))
        if _TYPE.fullmatch(each)
    }
    if types:
        yield Unread("commit_parser_options", _write_texts("types", types))


# https://python-semantic-release.readthedocs.io/en/latest/configuration/configuration.html
_PYTHON_SEMANTIC_RELEASE: Final = (
    _when(
        lambda document, about: about.is_below_one and document.get("major_on_zero", True),
        "major_on_zero",
        line=_LITERAL,
    ),
    _read_prerelease_branches,
    _read_parser_options,
    _where("version_variables", key="files", advice=_INTO_FILES),
    _where("tag_format", lambda it: it not in (None, "v{version}"), key="tag", advice=_INTO_TAG),
)
# https://knope.tech/reference/config-file/packages/
_KNOPE: Final = (
    _when(
        lambda document, _: not document.keys().isdisjoint(("package", "packages")),
        "dependents stay",
        line='propagate = "never"',
    ),
)


def _read_pnpm(document: Document, _about: Deciding) -> Iterator[Unread]:
    """https://pnpm.io/settings#versioning"""
    every = enumerate(_list(document.get("fixed")), 1)
    groups = [(f"fixed-{at}", globs, "fixed") for at, each in every if (globs := _strings(each))]
    if groups:
        yield Unread("fixed", _write_groups(groups), refused=True)


# Of as many bytes as `_load` reads.
_parse_file: Final = partial(parse_json, max_bytes=None)


class _Tool(NamedTuple):
    """Its `readers` get the table at `path`. One of an `ecosystem` says nothing without packages
    of it.
    """

    parse: Callable[[str], object]
    readers: Sequence[_Reader]
    path: Sequence[str] = ()
    ecosystem: str = ""


# Tools that decide versions by files that are not read here: programs show what they say only where
# they run. goreleaser and JReleaser are not among them: they take the version of a tag or manifest.
_OTHER_FILES: Final = (
    *(f"{stem}.{end}" for stem in ("release.config", ".releaserc", "beachball.config",
        ".release-it") for end in ("js", "cjs", "mjs", "ts")),
    # https://github.com/release-it/release-it/blob/main/docs/configuration.md
    *(f".release-it.{end}" for end in ("json", "yaml", "yml", "toml")),
    "common/config/rush/version-policies.json",  # https://rushjs.io/pages/maintainer/publishing/
    ".autorc", ".autorc.json",  # https://intuit.github.io/auto/docs/configuration/autorc
    "cog.toml",  # https://docs.cocogitto.io/reference/config.html
    # https://callowayproject.github.io/bump-my-version/reference/configuration/
    ".bumpversion.cfg", ".bumpversion.toml",
    # https://commitizen-tools.github.io/commitizen/config/configuration_file/
    *(f"{stem}.{end}" for stem in (".cz", "cz") for end in ("toml", "json", "yaml")),
)  # fmt: skip
# What the files of changesets decide before all else, as a key below [version].
_DECIDING: Final = {"pre.json": "branches", "config.json": "groups"}
_INTO_VERSION: Final = "write its version settings below [version] in releasekit.toml"


def _where_there(table: str) -> _Reader:
    return _when(lambda *_: True, f"[{table}]", key=_ANY, advice=_INTO_VERSION)


_TOOLS: Final[Sequence[tuple[str, _Tool]]] = (
    (PRE_MODE, _Tool(_parse_file, (_read_prerelease,), ecosystem="npm")),
    (".changeset/config.json", _Tool(_parse_file, _CHANGESETS, ecosystem="npm")),
    ("pnpm-workspace.yaml", _Tool(parse_yaml, (_read_pnpm,), ("versioning",), "npm")),
    ("release-please-config.json", _Tool(_parse_file, _RELEASE_PLEASE)),
    (".github/release-please-config.json", _Tool(_parse_file, _RELEASE_PLEASE)),
    ("lerna.json", _Tool(_parse_file, _LERNA, ecosystem="npm")),
    ("nx.json", _Tool(_parse_file, _NX, ("release",))),
    ("release-plz.toml", _Tool(parse_toml, _RELEASE_PLZ)),
    (".release-plz.toml", _Tool(parse_toml, _RELEASE_PLZ)),
    ("release.toml", _Tool(parse_toml, _CARGO_RELEASE)),
    ("Cargo.toml", _Tool(parse_toml, _CARGO_RELEASE, ("workspace", "metadata", "release"))),
    (".releaserc", _Tool(parse_yaml, _SEMANTIC_RELEASE)),
    (".releaserc.json", _Tool(_parse_file, _SEMANTIC_RELEASE)),
    (".releaserc.yaml", _Tool(parse_yaml, _SEMANTIC_RELEASE)),
    (".releaserc.yml", _Tool(parse_yaml, _SEMANTIC_RELEASE)),
    ("package.json", _Tool(_parse_file, _SEMANTIC_RELEASE, ("release",))),
    ("pyproject.toml", _Tool(parse_toml, _PYTHON_SEMANTIC_RELEASE, ("tool", "semantic_release"))),
    (
        "pyproject.toml",
        _Tool(parse_toml, (_where_there("tool.commitizen"),), ("tool", "commitizen")),
    ),
    (
        "pyproject.toml",
        _Tool(parse_toml, (_where_there("tool.bumpversion"),), ("tool", "bumpversion")),
    ),
    ("knope.toml", _Tool(parse_toml, _KNOPE)),
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
    settled = {_ANY, *written} if written else set()
    if written & _PRERELEASES:
        settled |= _PRERELEASES
    for place in dict.fromkeys(places):
        for name, tool in _TOOLS:
            if is_file(place / name):
                for each in _read(place / name, tool, about):
                    if each.settled_by not in settled:
                        yield replace(each, file=name)
        for name in _OTHER_FILES:
            if _ANY not in settled and is_file(place / name):
                yield Unread("all of it", advice=_INTO_VERSION, file=name)


def compare_manifest(
    places: Sequence[Path], packages: Mapping[PackageId, Package], standings: Iterable[Standing]
) -> Iterator[Unread]:
    """Where release-please counts from other versions than the last ones here. One that is higher
    than all that is known of here is refused: the next version would be below it.

    https://github.com/googleapis/release-please/blob/main/docs/manifest-releaser.md
    """
    by_place = [(packages[each.package].directory, each) for each in standings]
    for place in dict.fromkeys(places):
        path = place / _MANIFEST
        if not is_file(path):
            continue
        try:
            told = _load(path, _parse_file)
        except ConfigError as error:
            yield Unread("its content", file=_MANIFEST, advice=f"correct it: {error}")
            continue
        found: dict[tuple[bool, str], list[str]] = {}
        for directory, each in by_place:
            inside = directory.is_relative_to(place)
            said = told.get(directory.relative_to(place).as_posix()) if inside else None
            if isinstance(said, str) and _compare(said, each.last, each) != 0:
                here = f"{each.last} here" if each.last else "not released here"
                named = f"{each.package} at {clip(visible(said), 100)} ({here})"
                found.setdefault(_judge_version(said, each), []).append(named)
        for (is_above, advice), names in found.items():
            yield Unread(few(names), file=_MANIFEST, advice=advice, refused=is_above)


def _judge_version(said: str, standing: Standing) -> tuple[bool, str]:
    """Whether it is higher than all that is known here, and what to do about it."""
    known = [it for it in (standing.last, standing.written) if it]
    is_above = bool(known) and all(_compare(said, it, standing) == 1 for it in known)
    # Nothing here writes the file, so each release leaves it behind.
    is_behind = bool(standing.last) and _compare(said, standing.last, standing) == -1
    return is_above, _BEHIND if is_behind else _UNTAGGED


def _compare(version: str, other: str, standing: Standing) -> int | None:
    """1 where it is higher, -1 where it is lower; None where one of them is none."""
    numbering = numbering_of(standing.package.ecosystem)
    try:
        one, two = (
            numbering.order(numbering.check(each.removeprefix("v"))) for each in (version, other)
        )
    except ValueError:
        return None
    return (one > two) - (one < two)


def _load(path: Path, parse: Callable[[str], object]) -> Document:
    found = read_parsed(path, parse, complaint="cannot be read", max_bytes=MAX_MANIFEST_BYTES)
    if not isinstance(found, dict):
        raise ConfigError(f"{path} is not a table of settings")
    return found


def _read(path: Path, tool: _Tool, about: Deciding) -> Iterator[Unread]:
    try:
        found: Any = _load(path, tool.parse)
    except ConfigError as error:
        if path.name not in _OF_EVERYBODY:
            # What stands in those of changesets would mostly be refused.
            key = _DECIDING.get(path.name, "") if path.parent.name == ".changeset" else ""
            if not (key and about.list_names(tool.ecosystem)):
                yield Unread("its content", key=_ANY, advice=f"correct it: {error}")
                return
            advice = f"correct it, or write its `{key}` {_BELOW}: {error}"
            yield Unread("its content", key=key, advice=advice, refused=True)
        return
    for key in tool.path:
        found = found.get(key) if isinstance(found, dict) else None
    if not isinstance(found, dict) or (tool.ecosystem and not about.list_names(tool.ecosystem)):
        return
    for read in tool.readers:
        for each in read(found, about):
            # "all dependents" is no key, and stays as it is.
            place = tool.path if each.setting in found else ()
            yield replace(each, setting=".".join((*place, each.setting)))


def refuse_unread(unread: Sequence[Unread]) -> list[PlanError]:
    """One for each that decides which versions come out."""
    return [
        PlanError(
            f"{each.file}: ReleaseKit does not read {each.setting}, which decides versions",
            hint=f"{_describe(each)}. Or {_delete(each.file, [each.setting])}, if no other tool "
            "decides versions.",
            problem=Problem.OTHER_TOOL,
        )
        for each in map(_clip, unread)
        if each.refused
    ]


def _clip(unread: Unread) -> Unread:
    """As a message has it: a list of all packages of a repository may be as long as it likes."""
    line, advice = clip(unread.line, _MAX_LINE), clip(unread.advice, _MAX_LINE)
    return replace(unread, line=line, advice=advice)


def _describe(unread: Unread) -> str:
    if unread.advice:
        told = f"{unread.advice}: {unread.line}" if unread.line else unread.advice
        return told[:1].upper() + told[1:]
    return f"Write {_BELOW}: {unread.line}"


def describe_unread(unread: Sequence[Unread]) -> list[str]:
    """A sentence for each file with others, where a run goes on without them."""
    by_file: dict[str, list[Unread]] = {}
    for each in unread:
        if not each.refused:
            by_file.setdefault(each.file, []).append(_clip(each))
    sentences = []
    for file, found in by_file.items():
        lines = [f"`{each.line}` for {each.setting}" for each in found if not each.advice]
        told = [f"{_BELOW} write {', '.join(lines)}"] if lines else []
        told += [
            f"for {each.setting} {each.advice}{f' `{each.line}`' if each.line else ''}"
            for each in found
            if each.advice
        ]
        told.append(
            f"or {_delete(file, [each.setting for each in found])}, if no other tool decides "
            "versions"
        )
        rest = "".join(f". {each[:1].upper()}{each[1:]}" for each in told[1:])
        sentences.append(f"ReleaseKit decides versions without {file}: {told[0]}{rest}")
    return sentences


def _delete(file: str, settings: Sequence[str]) -> str:
    """Of a file that is for more than versions, the tables that settings name, or the first."""
    tables = [".".join(tool.path) for name, tool in _TOOLS if name == file and tool.path]
    named = [table for table in tables if any(table in each for each in settings)] or tables[:1]
    return f"delete {' and '.join(f'`{each}`' for each in named)}" if named else "delete the file"
