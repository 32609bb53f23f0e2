"""The command init: the files that a first release takes, written for what the repository holds.

What it writes is planned before it is written, as the next `plan` will: what that would refuse is
mended, or said.
"""

from __future__ import annotations

import asyncio
import json
import os
import posixpath
import re
import shlex
from bisect import bisect_left
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import unified_diff
from fnmatch import fnmatchcase
from itertools import count, groupby, takewhile
from operator import methodcaller
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Final

from releasekit.cli.prepare import prepare
from releasekit.cli.session import open_command, open_targets, open_workspace, say
from releasekit.config.file import take_apart
from releasekit.config.inputs import Declared
from releasekit.config.locations import FILENAME
from releasekit.decided import Level
from releasekit.ecosystems.shared.documents import table_in, text_in
from releasekit.errors import (
    CommandFailed,
    ConfigError,
    PackageError,
    PathError,
    ReleasekitError,
    describe_os_error,
    told_of,
)
from releasekit.git.commits import Commits
from releasekit.git.remote import Remote
from releasekit.git.versions import find_versions
from releasekit.graph import reachable
from releasekit.host import durable
from releasekit.host.files import exists, is_file, read_text, repository_of
from releasekit.host.forges import ForgePlace
from releasekit.model import UNKNOWN, WarningName
from releasekit.plan.make import collect_packages, with_doubt
from releasekit.plan.other_tools import PRE_MODE, Deciding, describe_unread, find_unread
from releasekit.plan.publishers import (
    describe_publishers,
    find_publishers,
    list_own_jobs,
    read_workflows,
)
from releasekit.plan.registries import ask_all
from releasekit.plan.unlisted_packages import (
    find_unlisted,
    list_options,
    mark_unread,
    read_list,
    write_list,
)
from releasekit.plan.warnings import refuse_errors
from releasekit.problems import DOCS, OWN_REPOSITORY, Problem, mark
from releasekit.report.plans import plan_headline
from releasekit.report.text import describe_private, few
from releasekit.state.history import History
from releasekit.text.bounds import parse_toml
from releasekit.text.escape import log_line
from releasekit.versioning.numbering import numbering_of
from releasekit.versioning.released import UNSAID, list_own_tags, name_unsaid
from releasekit.versioning.tag_forms import SHARED_TAGS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from releasekit.aio import Group
    from releasekit.cli.session import Session
    from releasekit.config.config import Config
    from releasekit.config.declaration import Manifests, Setup
    from releasekit.ecosystems.interface import Services, Target
    from releasekit.model import Package, PackageId, Plan
    from releasekit.plan.holdings import Tree
    from releasekit.plan.unlisted_packages import NestedPackages

WORKFLOW: Final = ".github/workflows/release.yml"
_MAX_BYTES: Final = 1024 * 1024
# Its actions are those of docs/examples, where one release after another keeps them current.
_WORKFLOW: Final = """\
# Publishes every package that its registry does not have yet, dependencies first, when a tag is
# pushed. Run it again after a failure: it does what is still missing.
name: Release
on:
  push:
    tags: ["{start.glob}"]  # {start.comment}
permissions: {{}}  # the job names those it needs
concurrency:  # one release at a time, and never cut one off
  group: release
  cancel-in-progress: false
jobs:
  publish:
    runs-on: ubuntu-latest
    permissions:
{permissions}
    steps:
      - uses: actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1
        with:
          fetch-depth: 0  # with the tags, by which the plan sees what changed without a new version
{submodules}
          persist-credentials: {persist}
{steps}
      - uses: {action}@v1
        with:
          mode: publish  # without it, it only plans and changes nothing
{inputs}
"""
_CONFIG: Final = """\
#:schema https://raw.githubusercontent.com/{action}/v1/docs/releasekit.schema.json
# What the manifests do not say. All keys: https://github.com/{action}/blob/v1/docs/inputs.md
{lines}
"""
_FIRST: Final = """\

next:
1. {begin}
2. Once, for each registry:
{first}
   `releasekit trust` says of each package what is left.
"""
_READ: Final = (
    "Read what is written there, and commit it. `releasekit check` says what this machine lacks."
)
_MOVE: Final = (
    f"{WORKFLOW} stays as it is, and publishes nothing with ReleaseKit. Move or remove it, and run "
    "`releasekit init` again for one that does."
)
_FIRST_ELSEWHERE: Final = """\
no workflow is written: the git remote {remote} is at {place.host}

next:
1. Copy the CI file from
   {docs}/{place.kind}.md
   and commit it. `releasekit check` says what this machine lacks.
2. Once, for each registry: do what that page says of tokens.
"""


_PREBUILT: Final = f"{DOCS}/prebuilt.md#python-cibuildwheel"
_DIST: Final = f"""\
# dist: ${{{{ runner.temp }}}}/dist  # with the wheels of jobs before this one: {_PREBUILT}
"""
# Of a package that is left out for what `plan` says of it.
_HOLDS: Final = "is new, and holds the others"
# What computes a version from tags, as manifests name it: backends, their plugins, a source.
# https://setuptools-scm.readthedocs.io, https://github.com/ofek/hatch-vcs
# https://github.com/python-versioneer/python-versioneer, https://versioningit.readthedocs.io
# https://github.com/mtkennerly/poetry-dynamic-versioning, https://gitlab.com/WillDaSilva/flit_scm
# https://setuptools-git-versioning.readthedocs.io, https://backend.pdm-project.org/metadata/
_FROM_TAGS: Final = re.compile(
    r"""(?mix) ^[^#\n]* (?: (?:setuptools|flit)[-_]scm | hatch-vcs | vcs-versioning | versioneer
    | versioningit | dynamic-versioning | setuptools-git-versioning
    | \bsource\s*=\s*["'](?:scm|vcs)["'] )"""
)
_PLAIN: Final = re.compile(r"[\w.@+/-]+")
# https://docs.npmjs.com/cli/configuring-npm/package-json#main
_ENTRY_POINTS: Final = ("main", "module", "types", "typings", "bin", "exports", "directory")
# What such a tool makes of a commit between two tags.
_BETWEEN_TAGS: Final = re.compile(r"[-.+]dev|\+|dirty|snapshot", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Start:
    """The tags that start a release, what the workflow says of them, and one to push first; empty
    where nothing tells the next one.
    """

    glob: str = "v*"
    comment: str = "`git tag v1.2.3 && git push origin v1.2.3` starts a release"
    tag: str = ""


@dataclass(frozen=True, slots=True)
class _Untold:
    """A package without a version, the one to tell of it, and the tag that has it, if one does."""

    package: Package
    version: str
    tag: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draft:
    """What a releasekit.toml has to say. Of the `unlisted` packages some are `meant` to be
    published: all, where the root has none.
    """

    unlisted: Sequence[NestedPackages]
    meant: Sequence[NestedPackages]
    untold: Sequence[_Untold]
    excluded: Sequence[Package] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tried:
    """What the next `plan` makes of a draft: the plan, or why there is none."""

    draft: _Draft
    text: str
    plan: Plan | None = None
    refused: ReleasekitError | None = None


async def run(config: Config, session: Session) -> int:
    """Write what is not there yet, and say what a person does next."""
    given = config
    async with open_command(config, session) as group:
        config, survey, services = await open_workspace(group, config, session)
        targets = await open_targets(group, config, session, services, survey.tree)
        top, remote = repository_of(config.root) or config.root, config.tagging.remote
        url = await Remote(remote, services.git).find_url()
        place = ForgePlace.of_remote(url)
        tags: Mapping[str, str] = {}
        with suppress(CommandFailed):  # what is no repository has none
            tags = await Commits(top, services.processes).list_tags()
        for line in survey.describe_unread(config.package_filter):
            say(mark_unread(line), session)
        say(survey.describe_foreign(config.root, config.package_filter), session)
        own_tags = list_own_tags(_list_all(targets), config.root, top, tags)
        draft = _make_draft(targets, find_unlisted(survey.nested, targets), own_tags)
        is_new = not config.config_file and not exists(config.root / FILENAME)
        notes = []
        listed = _list_places((top, config.root))
        if is_new and draft.unlisted and not draft.meant and (tags or listed):
            others = replace(draft, meant=draft.unlisted)
            with_others = _join(given, _write_settings(config, session, others, ()), session)
            try:
                known = await open_targets(group, with_others, session, services, survey.tree)
            except ReleasekitError as error:
                where = few([each.where for each in draft.unlisted], 3)
                notes.append(f"it is unknown whether packages in {where} have tags: {error}")
            else:
                tagged = list_own_tags(_list_all(known), config.root, top, tags)
                meant = _list_meant(draft.unlisted, known, tagged, listed)
                draft = replace(draft, meant=meant)
        if is_new and (draft.meant or any(each.tag for each in draft.untold)):
            joined = _join(given, _write_settings(config, session, draft, ()), session)
            targets = await open_targets(group, joined, session, services, survey.tree)
            own_tags = list_own_tags(_list_all(targets), config.root, top, tags)
        chosen, doubted, silent = await _choose(config, targets, own_tags)
        waiting = [] if chosen else _list_waiting(targets, draft)
        if not chosen and not waiting:
            raise ConfigError(
                f"{config.root}: there is no package to publish here: "
                + "; ".join(describe_private(_list_all(targets))),
                problem=Problem.NO_PACKAGES,
            )
        taken_in = {directory for each in draft.meant for directory in each.packages}
        # One between two releases, as a -SNAPSHOT is, has a place in the next one.
        later = [
            each
            for each in _list_waiting(targets, draft)
            if chosen and each.unpublishable and each.directory in taken_in
        ]
        names = {package.id.ecosystem for package in (*chosen, *waiting, *later)}
        draft = replace(draft, excluded=doubted)
        from_tags = await _find_tagged_only(chosen, targets, top, services)
        native = await _find_native(chosen, targets)
        tried = await _try_out(
            group,
            given,
            session,
            draft,
            lambda it: _write_settings(config, session, it, names) if is_new else "",
        )
    left_out = {each.id for each in tried.draft.excluded}
    chosen = [each for each in chosen if each.id not in left_out]
    order = {each.package.id: n for n, each in enumerate(tried.plan.packages if tried.plan else ())}
    built = [*sorted(chosen, key=lambda each: order.get(each.id, 0)), *waiting]
    with_setup = [
        each
        for each in chosen
        if (it := session.ecosystems[each.id.ecosystem].setup) and it.installs
    ]
    unbuilt = _find_unbuilt(with_setup, config.root, survey.tree)
    setups = {
        name: _add_install(ecosystem.setup, name, built, top, unbuilt)
        for name, ecosystem in session.ecosystems.items()
        if name in names and ecosystem.setup is not None
    }
    native = [each for each in native if each in chosen]
    for name in {each.id.ecosystem for each in native}:
        setups[name] = replace(setups[name], inputs=setups[name].inputs + _DIST)
    pushed = {name for name, setup in setups.items() if setup.pushes}
    taken = _find_taken(chosen, tags, own_tags)
    between = [each for each in from_tags if each in chosen and _is_between_tags(each)]
    start = _find_start(chosen, [*taken, *between], tags, is_apart=bool(pushed))
    is_for_github = place is None or place.kind == "github"
    files = {}
    if is_for_github:
        files[top / WORKFLOW] = write_workflow(
            setups.values(),
            config.root.relative_to(top),
            start=start,
            has_submodules=is_file(top / ".gitmodules"),
        )
    if tried.text:
        files[config.root / FILENAME] = tried.text
    is_in_the_way = is_for_github and _is_anothers(top)
    publishers = list(find_publishers(top)) if is_for_github else []
    said: list[str] = []
    for path, content in files.items():
        said += await asyncio.to_thread(_place, path, content, dry_run=config.dry_run)
    if not is_new:
        said += _describe_untold(draft.untold, config.root)
    if is_new:
        said += _describe_excluded(tried.draft.excluded)
    said += _describe_unbuilt(unbuilt)
    said += [f"{each.id} is not published as it is: {each.unpublishable}" for each in later]
    for name in targets.keys() - names:
        for package in targets[name].workspace.packages[:1]:
            if package.unpublishable:
                why = f"{package.id}: {package.unpublishable}"
                said.append(f"{name}: nothing to publish, and so nothing written for it: {why}")
    said += [*notes, *silent]
    if is_new:
        said += _describe_commented(config, session, draft)
    else:
        said += survey.describe_unlisted(
            config.root, config.ecosystem_tables, config.package_filter, targets
        )
    deciding = Deciding(
        packages=chosen,
        branch=config.branch,
        excluded=[*config.exclude_packages, *(str(each) for each in left_out)],
        given=config.given.keys(),
    )
    unread = list(find_unread((top, config.root), deciding, config.written))
    said += describe_unread([replace(each, refused=False) for each in unread])
    said += describe_publishers(publishers)
    said += _describe_plan(tried)
    first = "\n".join(
        _describe_first(name, setup, [*chosen, *waiting, *later]) for name, setup in setups.items()
    )
    template = _FIRST if is_for_github else _FIRST_ELSEWHERE
    begin = _MOVE if is_in_the_way else _READ
    told = template.format(begin=begin, first=first, remote=remote, place=place, docs=DOCS)
    said += told.splitlines()
    steps = [
        *(
            f"Settle the prerelease mode of {PRE_MODE}, as said above"
            for each in unread
            if each.file == PRE_MODE
        ),
        *_describe_native(native),
        *_describe_between(between, tags, own_tags),
        *_describe_versions(chosen, waiting, taken, own_tags, pushed, from_tags),
        *(
            f"Remove what publishes with another tool from {each.name}, as said above"
            for each in publishers
            if each.steps and not (is_in_the_way and each.name == WORKFLOW)
        ),
        f"Push no tag before that, which may start {WORKFLOW} as it is"
        if is_in_the_way
        else _describe_start(start, remote),
    ]
    said += [f"{number}. {step}" for number, step in enumerate(steps, 3)]
    print("\n".join(map(log_line, said)), file=session.out)
    return 0


async def _find_native(packages: Sequence[Package], targets: Mapping[str, Target]) -> list[Package]:
    """Those whose wheels, built in one job, PyPI would refuse."""
    return [
        each
        for each in packages
        for it in await targets[each.id.ecosystem].find_warnings(each, each.prebuilt)
        if it.name is WarningName.PLATFORM_TAG
    ]


def _list_all(targets: Mapping[str, Target]) -> list[Package]:
    return [package for target in targets.values() for package in target.workspace.packages]


def _make_draft(
    targets: Mapping[str, Target],
    unlisted: Sequence[NestedPackages],
    tags: Mapping[PackageId, Mapping[str, str]],
) -> _Draft:
    untold = []
    for package in _list_all(targets):
        own = tags.get(package.id, {})
        if version := targets[package.id.ecosystem].find_untold(package, own):
            untold.append(_Untold(package, version, own.get(version, "")))
    has_own = untold or any(
        targets[each.id.ecosystem].takes_version(each) for each in _list_all(targets)
    )
    return _Draft(unlisted=unlisted, meant=() if has_own else unlisted, untold=untold)


def _list_meant(
    unlisted: Sequence[NestedPackages],
    targets: Mapping[str, Target],
    tags: Mapping[PackageId, Mapping[str, str]],
    listed: Collection[Path],
) -> list[NestedPackages]:
    """Those with a package that has tags of its own, or is `listed` for another tool."""
    meant = {
        (name, each.directory)
        for name, target in targets.items()
        for each in target.workspace.packages
        if target.takes_version(each) and (tags.get(each.id) or each.directory in listed)
    }
    return [each for each in unlisted if any((each.ecosystem, it) in meant for it in each.packages)]


def _list_places(roots: Collection[Path]) -> set[Path]:
    """The directories of what release-please releases, by the same reading as `find_unread`.
    https://github.com/googleapis/release-please/blob/main/docs/manifest-releaser.md
    """
    return {
        Path(os.path.normpath(root / name))
        for root in roots
        for file in ("release-please-config.json", ".github/release-please-config.json")
        for name in table_in(_read_document(root / file), "packages")
        if isinstance(name, str)
    }


def _list_waiting(targets: Mapping[str, Target], draft: _Draft) -> list[Package]:
    """Those that are published once they have another version, or any."""
    untold = [each.package for each in draft.untold]
    takes = [each for each in _list_all(targets) if targets[each.id.ecosystem].takes_version(each)]
    return [*takes, *untold]


async def _choose(
    config: Config,
    targets: Mapping[str, Target],
    tags: Mapping[PackageId, Mapping[str, str]],
) -> tuple[list[Package], list[Package], list[str]]:
    """The packages to publish, and those that hardly anybody means to, unless the others need them,
    or there are no others; and what is not known of these. One that has tags, or is on its
    registry, is meant. Raises ConfigError where there is nothing at all.
    """
    found = [
        with_doubt(package, config.root)
        for package in collect_packages(targets, config.root, config.package_filter)
        if not package.unpublishable
    ]
    doubted = [each for each in found if each.doubt and not tags.get(each.id)]
    answers = await ask_all(doubted, targets)
    unsure = {each.id for each in doubted}
    silent: dict[str, PackageError] = {}
    for package in doubted:
        answer, is_new = answers[package.id], targets[package.id.ecosystem].is_new
        if isinstance(answer, PackageError):
            silent.setdefault(package.id.ecosystem, answer)
        elif answer is not None or (is_new is not None and not is_new(package.id)):
            unsure.discard(package.id)
    needs = {each.id: {need.on for need in each.dependencies} for each in found}
    meant = [each.id for each in found if each.id not in unsure] or [*needs]
    kept = reachable(meant, lambda each: needs.get(each, ()))
    notes = [
        f"{name}: it is unknown whether its registry has packages that are left out: {error}"
        for name, error in silent.items()
    ]
    left_out = [each for each in found if each.id not in kept]
    return [each for each in found if each.id in kept], left_out, notes if left_out else []


async def _find_tagged_only(
    packages: Sequence[Package], targets: Mapping[str, Target], top: Path, services: Services
) -> list[Package]:
    """Those whose versions tags say: their manifests do not, and name a tool that asks git, or the
    version is that of a commit between two tags.
    """
    commits = Commits(top, services.processes)
    asked = [
        (each, name_unsaid(targets[each.id.ecosystem].version_at), commits.head)
        for each in packages
    ]
    try:
        said = await find_versions(asked, commits)
    except CommandFailed:
        return []  # nothing is committed
    unsaid = [each for each in packages if said.get((each.id, commits.head)) == UNSAID]
    return [each for each in unsaid if _is_between_tags(each) or _asks_git(each.manifest)]


def _is_between_tags(package: Package) -> bool:
    return _BETWEEN_TAGS.search(package.version) is not None


def _asks_git(manifest: Path) -> bool:
    try:
        return _FROM_TAGS.search(read_text(manifest, max_bytes=_MAX_BYTES)) is not None
    except ConfigError:
        return False


async def _try_out(
    group: Group,
    given: Config,
    session: Session,
    draft: _Draft,
    write: Callable[[_Draft], str],
) -> _Tried:
    """What the next `plan` makes of the draft, as it is to be written. Leaves out what that would
    refuse as a new name that is hardly meant, and nothing needs.
    """
    while True:
        text = write(draft)
        config = replace(_join(given, text, session) if text else given, mode="plan")
        try:
            plan = (await prepare(group, config, session, History(), run_id="init")).plan
            strange = [
                each.package
                for each in plan.packages
                if any(it.error and it.name is WarningName.NEW_NAME for it in each.warnings)
            ]
            left = [each.package for each in plan.packages if each.package not in strange]
            needed = {need.on for each in left for need in each.asked_for}
            excluded = [each for each in strange if each.id not in needed]
            further = replace(draft, excluded=[*draft.excluded, *excluded])
            if excluded and left and write(further) != text:
                draft = further
                continue
            refuse_errors(plan, config.levels)
        except ReleasekitError as error:
            return _Tried(draft=draft, text=text, refused=error)
        return _Tried(draft=draft, text=text, plan=plan)


def _join(config: Config, text: str, session: Session) -> Config:
    """`config` with what a releasekit.toml of this text says."""
    declared = Declared.for_ecosystems(session.ecosystems)
    file = take_apart(parse_toml(text), FILENAME, declared)
    excluded = file.texts.get("exclude-packages", "").splitlines()
    return replace(config, ecosystem_tables=file.tables, exclude_packages=tuple(excluded))


def _describe_plan(tried: _Tried) -> Iterator[str]:
    if tried.plan is not None:
        yield f"`releasekit plan` with that: {plan_headline(tried.plan)}"
        unknown = {e.package.id.ecosystem for e in tried.plan.packages if e.reason == UNKNOWN}
        if unknown:
            yield f"it is unknown what is published of {few(sorted(unknown))}: `plan` says why"
    for error in told_of(tried.refused) if tried.refused else ():
        yield f"`releasekit plan` refuses it: {error}{mark(error.problem)} {error.hint}".rstrip()


def _is_anothers(top: Path) -> bool:
    """Whether a workflow is in the place of ours, and none here publishes with ReleaseKit."""
    own = (
        name
        for _, workflow in read_workflows(top, "releasekit")
        for name, _ in list_own_jobs(workflow)
    )
    return os.path.lexists(top / WORKFLOW) and next(own, None) is None


def _describe_untold(untold: Sequence[_Untold], root: Path) -> Iterator[str]:
    """What a releasekit.toml that is there does not say."""
    tagged = [each for each in untold if each.tag]
    for name, own in groupby(tagged, key=lambda each: each.package.id.ecosystem):
        lines = [f"`{_key(each, root)} = {json.dumps(each.version)}`" for each in own]
        yield (
            f"{FILENAME} is there already, and stays as it is. Write below [{name}.versions] "
            f"{few(lines, 20)}: these are the last versions that have tags"
        )


def _find_start(
    chosen: Sequence[Package],
    undecided: Collection[object],
    tags: Collection[str],
    *,
    is_apart: bool,
) -> Start:
    """The version of all packages, as a tag, unless something of it is `undecided`; where they have
    several, or their registries tags of their own, a number, which is no version of any.
    """
    versions = {each.version for each in chosen}
    if is_apart or len(versions) > 1:
        tag = next(each for n in count(1) if (each := f"release-{n}") not in tags)
        how = f"`git tag {tag} && git push origin {tag}` starts a release"
        return Start("release-*", f"{how}; packages have versions of their own", tag)
    return Start(tag="" if undecided or not versions else f"v{versions.pop()}")


def _find_taken(
    chosen: Sequence[Package],
    tags: Collection[str],
    own_tags: Mapping[PackageId, Mapping[str, str]],
) -> list[str]:
    """The tags that versions of today have, so that these are released."""
    versions = dict.fromkeys(each.version for each in chosen)
    shared = [f"{v}{each}" for each in versions for v in SHARED_TAGS] if len(versions) == 1 else []
    own = [own_tags.get(each.id, {}).get(each.version.removeprefix("v"), "") for each in chosen]
    return [each for each in dict.fromkeys([*own, *shared]) if each in tags]


def _describe_start(start: Start, remote: str) -> str:
    tag = shlex.quote(start.tag) if start.tag else "vVERSION"
    words = f"git tag {tag} && git push {remote} {tag}"
    if not start.tag:
        return f"Push a tag of that version: {words}"
    if start.glob == Start().glob:
        return f"Push a tag: {words}"
    return f"Push a tag: {words}. It only starts the release: packages have versions of their own"


def _describe_versions(
    chosen: Sequence[Package],
    waiting: Sequence[Package],
    taken: Sequence[str],
    own_tags: Mapping[PackageId, Mapping[str, str]],
    pushed: Collection[str],
    from_tags: Sequence[Package],
) -> Iterator[str]:
    """What has to be done about versions before a release is started."""
    if waiting:
        yield (
            "Give a version to each package that is to be published. None has one now: "
            f"{waiting[0].id}: {waiting[0].unpublishable}"
        )
    steps = []
    for package in chosen:
        last = package.version.removeprefix("v")
        if package.id.ecosystem in pushed and (tag := own_tags.get(package.id, {}).get(last)):
            following = numbering_of(package.id.ecosystem).bump(last, Level.PATCH, "literal")
            steps.append(f"{tag.removesuffix(last)}{following} after {tag}")
    if steps:
        yield (
            f"Replace the last version of each module in {FILENAME} with the next one "
            f"(`releasekit version` does that, as the commits ask for), and commit it. If "
            f"these are patches, the job pushes {few(steps)}"
        )
    elif taken and from_tags:
        yield (
            f"Decide on the next version. Tagged already: {few(taken, 3)}. No manifest has the "
            f"version of {few([str(each.id) for each in from_tags])}: it comes from the tag, so "
            "`plan` may refuse each commit without one"
        )
    elif taken:
        yield f"Give packages their next versions, and commit them. Tagged already: {few(taken, 3)}"


def _describe_native(packages: Sequence[Package]) -> Iterator[str]:
    """What has to be done about wheels that the job cannot build."""
    if packages:
        yield (
            f"Build the wheels of {few([str(each.id) for each in packages], 3)} in jobs before "
            f"`publish`, for each platform, and name their directory in `dist`, as {_PREBUILT} "
            "shows: the job would build linux_x86_64 alone, which PyPI refuses"
        )


def _describe_between(
    packages: Sequence[Package],
    tags: Collection[str],
    own_tags: Mapping[PackageId, Mapping[str, str]],
) -> Iterator[str]:
    """What has to be done about versions of commits between two tags."""
    if packages:
        last = [_find_last_tag(each, tags, own_tags.get(each.id, {})) for each in packages]
        known = list(dict.fromkeys(filter(None, last)))
        count = "tag is" if len(known) == 1 else "tags are"
        told = f"The last {count} {few(known, 3)}" if known else "No tag has a version"
        yield (
            f"Decide on the next version. {told}, and {few([*map(str, packages)], 3)} is what a "
            "build computes for a commit between tags: `plan` may refuse each commit without one"
        )


def _find_last_tag(package: Package, tags: Collection[str], own: Mapping[str, str]) -> str:
    """By the version in it; empty where none has one."""
    if own:
        return next(iter(own.values()))
    numbering, found = numbering_of(package.id.ecosystem), []
    for tag in tags:
        with suppress(ValueError):  # most tags are something else
            found.append((numbering.order(numbering.check(tag.removeprefix("v"))), tag))
    return max(found, default=(None, ""))[1]


def _describe_excluded(packages: Sequence[Package]) -> Iterator[str]:
    """What is written to be left out, and why."""
    by_doubt: dict[str, list[str]] = {}
    for each in packages:
        by_doubt.setdefault(each.doubt or _HOLDS, []).append(str(each.id))
    for doubt, names in by_doubt.items():
        what = "which" if len(names) == 1 else "each of which"
        yield f"`exclude-packages` in {FILENAME} leaves out {few(names)}, {what} {doubt}"


def _find_unbuilt(packages: Sequence[Package], root: Path, tree: Tree) -> dict[PackageId, str]:
    """The packages that a script builds, and that lead to a file that git does not have, which is
    named, nor would have, once what is there is committed.
    """
    if tree.untracked is None:
        return {}
    tracked = sorted([*tree.files, *tree.untracked])
    found = {}
    for each in packages:
        place = each.directory.relative_to(root).as_posix()
        below = "" if place == "." else f"{place}/"
        above = (it for it in each.directory.parents if it.is_relative_to(root))
        if any(_has_build(it / each.manifest.name) for it in (each.directory, *above)):
            within = tracked[bisect_left(tracked, below) :]
            own = takewhile(methodcaller("startswith", below), within)
            names = [it.removeprefix(below) for it in own]
            if missing := next(_list_missing(_read_document(each.manifest), names), ""):
                found[each.id] = missing
    return found


def _describe_unbuilt(unbuilt: Mapping[PackageId, str]) -> Iterator[str]:
    if unbuilt:
        told = [f"{missing} of {package}" for package, missing in unbuilt.items()]
        yield (
            f"git does not have {few(told, 3)}, which package.json names: a step of the job has to "
            "build first, because the action packs what is there"
        )


def _read_document(path: Path) -> dict[str, object]:
    with suppress(ConfigError, ValueError, RecursionError):
        document = json.loads(read_text(path, max_bytes=_MAX_BYTES))
        return document if isinstance(document, dict) else {}
    return {}


def _list_missing(document: Mapping[str, object], names: Sequence[str]) -> Iterator[str]:
    """The paths by which a package is found, and `files` where none of them is there.
    https://nodejs.org/api/packages.html#package-entry-points
    https://pnpm.io/package_json#publishconfig
    """
    for table in (document, table_in(document, "publishConfig")):
        for path in _list_paths([table.get(key) for key in _ENTRY_POINTS]):
            if not _leads_somewhere(path, names):
                yield path
    listed = document.get("files")
    files = [path for path in _list_paths(listed) if not path.startswith("!")]
    if files and not any(_leads_somewhere(path, names) for path in files):
        yield files[0]


def _list_paths(value: object) -> Iterator[str]:
    """Without what leads to other packages, or to everything."""
    pending = [value]
    while pending:
        each = pending.pop(0)
        if isinstance(each, dict):
            pending += each.values()
        elif isinstance(each, list):
            pending += each
        elif isinstance(each, str) and (path := posixpath.normpath(each).lstrip("/")) != ".":
            yield path


def _leads_somewhere(path: str, names: Sequence[str]) -> bool:
    """Also without its suffix, as Node.js and TypeScript look for it."""
    if "*" in path:
        return any(fnmatchcase(name, path) or fnmatchcase(name, f"{path}/*") for name in names)
    return any(name == path or name.startswith((f"{path}.", f"{path}/")) for name in names)


def _add_install(
    setup: Setup,
    ecosystem: str,
    packages: Sequence[Package],
    top: Path,
    unbuilt: Collection[PackageId],
) -> Setup:
    """With the commands that build what is `unbuilt`, in the order of `packages`; in a comment
    where nothing is.
    """
    if not setup.installs:
        return setup
    own = [each for each in packages if each.id.ecosystem == ecosystem]
    homes: dict[tuple[Path, str], list[Package]] = {}
    for each in own:
        # What is no comment runs, and any other name may be an expression, or end the line.
        if each.id in unbuilt and _PLAIN.fullmatch(each.directory.relative_to(top).as_posix()):
            homes.setdefault(_find_install(setup, [each], top), []).append(each)
    lines = [
        line
        for home, built in homes.items()
        for line in _list_builds(setup, *home, top, built, own[0].manifest.name)
    ]
    if not lines:
        where, name = _find_install(setup, own, top)
        command = f"{_enter(where, top)}{setup.installs[name]}"
        lines = [f"# - run: {command}  # if packages have to be built first"]
    return replace(setup, steps=setup.steps + "".join(f"{line}\n" for line in lines))


def _find_install(setup: Setup, packages: Sequence[Package], top: Path) -> tuple[Path, str]:
    """The lock file that is nearest to `top`, by its directory and its name, or else the manifest
    that is, without a name.
    """
    places = {
        place
        for each in packages
        for place in (each.directory, *each.directory.parents)
        if place.is_relative_to(top)
    }
    # What follows a line break in a name would be no comment.
    shown = [place for place in places if str(place.relative_to(top)).isprintable()]
    near_first = sorted(shown, key=lambda place: (len(place.parts), place))
    locks = [(place, name) for place in near_first for name in setup.installs if name]
    others = [(place, each.manifest.name) for place in near_first for each in packages[:1]]
    where, name = next((it for it in (*locks, *others) if is_file(it[0] / it[1])), (top, ""))
    return where, name if name in setup.installs else ""


def _list_builds(
    setup: Setup, where: Path, lock: str, top: Path, packages: Sequence[Package], manifest: str
) -> Iterator[str]:
    """By the script of the workspace, or else of each package of it."""
    command = setup.installs[lock]
    if _has_build(where / manifest):
        yield f"- run: {_enter(where, top)}{command}  # git does not have what packages lead to"
        return
    scripted = [each for each in packages if _has_build(each.manifest)]
    if scripted:
        install, _, build = command.partition(" && ")
        yield f"- run: {_enter(where, top)}{install}  # git does not have what packages lead to"
        for each in scripted:
            yield f"- run: {build}"
            yield f"  working-directory: {json.dumps(each.directory.relative_to(top).as_posix())}"


def _has_build(manifest: Path) -> bool:
    return bool(text_in(table_in(_read_document(manifest), "scripts"), "build"))


def _enter(where: Path, top: Path) -> str:
    return f"cd {shlex.quote(where.relative_to(top).as_posix())} && " if where != top else ""


def write_workflow(
    setups: Collection[Setup],
    below: Path,
    *,
    start: Start | None = None,
    has_submodules: bool = False,
) -> str:
    """For a workspace that lies `below` the root of the repository."""
    pushes = any(setup.pushes for setup in setups)
    permissions = [
        "contents: write  # to push tags" if pushes else "contents: read  # to check out"
    ]
    if any(setup.trusts for setup in setups):
        permissions += [
            "id-token: write  # trusted publishing: no token to store",
            "attestations: write  # GitHub shows what was signed",
        ]
    place = f"working-directory: {json.dumps(str(below))}\n" if below.parts else ""
    submodules = "submodules: recursive  # packages may hold their files" if has_submodules else ""
    text = _WORKFLOW.format(
        start=start or Start(),
        permissions=indent("\n".join(permissions), " " * 6),
        submodules=indent(submodules, " " * 10),
        persist="true  # for the push of tags" if pushes else "false",
        steps=indent("".join(setup.steps for setup in setups), " " * 6),
        action=OWN_REPOSITORY,
        inputs=indent(place + "".join(setup.inputs for setup in setups), " " * 10),
    )
    return "".join(line for line in text.splitlines(keepends=True) if line.strip())


def _write_settings(config: Config, session: Session, draft: _Draft, names: Collection[str]) -> str:
    """The text of releasekit.toml, with the options of the ecosystems of these `names`; empty where
    it has nothing to say.
    """
    lines = "\n".join(_list_settings(config, session, draft, names))
    return _CONFIG.format(action=OWN_REPOSITORY, lines=lines) if lines else ""


def _list_settings(
    config: Config, session: Session, draft: _Draft, names: Collection[str]
) -> Iterator[str]:
    """What lies in no workspace is named in comments, because finding a package does not publish
    it, unless it is meant. So is what no tag names a version of.
    """
    if draft.excluded:
        yield "exclude-packages = ["
        for package in draft.excluded:
            yield f"    {write_list([str(package.id)])[1:-1]},  # {package.doubt or _HOLDS}"
        yield "]"
    for name, ecosystem in session.ecosystems.items():
        manifests, setup = ecosystem.manifests, ecosystem.setup
        if manifests is None:
            continue
        # Without releasekit.toml, the table holds what a root without a manifest takes in.
        tables = config.ecosystem_tables
        taken_in = read_list(tables, name, manifests.workspaces)
        written = {manifests.workspaces: taken_in} if taken_in else {}
        written |= _list_beside(
            config, manifests, [it for it in draft.meant if it.ecosystem == name]
        )
        lines = [f"{key} = {write_list(values)}" for key, values in written.items()]
        for key, line in _list_commented(config, name, manifests, draft).items():
            where = " in place of that line" if key in written else ""
            lines += [f"# in no workspace, and not published without this{where}:", f"# {line}"]
        if name in names and setup is not None and name not in config.registries:
            lines += setup.options.splitlines()
        if lines:
            yield f"[{name}]"
            yield from lines
        untold = [each for each in draft.untold if each.package.id.ecosystem == name]
        if untold and (name in names or any(each.tag for each in untold)):
            yield f"[{name}.versions]"
            for each in untold:
                line = f"{_key(each, config.root)} = {json.dumps(each.version)}"
                why = "has no tag, and is not published without this"
                yield line if each.tag else f"# {line}  # {each.package.id.name} {why}"


def _list_beside(
    config: Config, manifests: Manifests, packages: Sequence[NestedPackages]
) -> dict[str, list[str]]:
    """The options that take in what lies in no workspace."""
    if not packages:
        return {}
    options = list_options(packages, manifests, config.root, config.ecosystem_tables)
    return {key: [*there, *more] for key, (there, more) in options.items()}


def _list_commented(
    config: Config, name: str, manifests: Manifests, draft: _Draft
) -> dict[str, str]:
    """By their keys, the lines that publish what is not meant, too."""
    own = [each for each in draft.unlisted if each.ecosystem == name]
    meant = _list_beside(config, manifests, [each for each in own if each in draft.meant])
    return {
        key: f"{key} = {write_list(values)}"
        for key, values in _list_beside(config, manifests, own).items()
        if set(values) != set(meant.get(key, ()))
    }


def _describe_commented(config: Config, session: Session, draft: _Draft) -> Iterator[str]:
    """What is not published, and the line that does."""
    for name, ecosystem in session.ecosystems.items():
        left = [it for it in draft.unlisted if it.ecosystem == name and it not in draft.meant]
        if left and ecosystem.manifests is not None:
            lines = _list_commented(config, name, ecosystem.manifests, draft)
            yield (
                f"{name} packages in no workspace here are not published: "
                f"{few([each.where for each in left], 3)}; to publish them too, uncomment "
                f"{' and '.join(f'`{line}`' for line in lines.values())} in {FILENAME}"
            )


def _key(untold: _Untold, root: Path) -> str:
    return write_list([untold.package.directory.relative_to(root).as_posix()])[1:-1]


def _describe_first(ecosystem: str, setup: Setup, chosen: Sequence[Package]) -> str:
    """What is done once, with the address of one package; the others are named."""
    names = [each.id.name for each in chosen if each.id.ecosystem == ecosystem] or ["NAME"]
    several = len(names) > 1 and "{name}" in setup.first
    each = f" (for each of {few(names)})" if several else ""
    return f"   {ecosystem}{each}: {setup.first.format(name=names[0])}"


def _place(path: Path, text: str, *, dry_run: bool) -> list[str]:
    """What happened to the file. What is there stays, be it a link that leads nowhere."""
    if os.path.lexists(path):
        try:
            there = read_text(path, max_bytes=_MAX_BYTES)
        except ConfigError as error:
            return [f"{path} is there already, and stays as it is: {error}"]
        if there == text:
            return [f"{path} is there already"]
        pair = (there.splitlines(), text.splitlines())
        told = unified_diff(*pair, "as it is", "as it would be written", lineterm="")
        return [f"{path} is there already, and stays as it is:", *told]
    if dry_run:
        return [f"{path} would be written:", *indent(text, "    ").splitlines()]
    try:
        durable.make_directory(path.parent)
        durable.replace(path, text.encode())
    except OSError as error:
        raise PathError(
            f"{describe_os_error(error)}; correct what is in the way of {path}"
        ) from error
    return [f"{path} is written"]
