"""What is in the repository: packages, tags, workflows, and what a releasekit.toml is to say."""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from releasekit.cli.init.trial import Proposal, Untold, join_settings, write_settings
from releasekit.cli.session import open_targets, open_workspace, say
from releasekit.config.locations import FILENAME
from releasekit.ecosystems.shared.documents import table_in
from releasekit.errors import CommandFailed, ConfigError, PackageError, ReleasekitError
from releasekit.fields import replace
from releasekit.git.commits import Commits
from releasekit.git.remote import Remote
from releasekit.git.versions import find_versions
from releasekit.graph import reachable
from releasekit.host.files import exists, find_top, read_text
from releasekit.host.forges import ForgePlace
from releasekit.model import WarningName
from releasekit.plan.foreign_manifests import suggest_directories
from releasekit.plan.make import collect_packages, with_doubt
from releasekit.plan.registries import ask_all
from releasekit.plan.unlisted_packages import find_unlisted, mark_unread
from releasekit.problems import Problem
from releasekit.report.text import describe_private, few
from releasekit.versions.released import UNSAID, name_unsaid
from releasekit.versions.scope import find_branch
from releasekit.versions.tags import list_own_tags

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from releasekit.aio import Group
    from releasekit.cli.session import Session
    from releasekit.config.config import Config, PlanConfig
    from releasekit.ecosystems.interface import Services, Target
    from releasekit.model import Package, PackageId
    from releasekit.plan.make import Survey
    from releasekit.plan.unlisted_packages import NestedPackages

_MAX_BYTES: Final = 1024 * 1024
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
# What such a tool makes of a commit between two tags.
_BETWEEN_TAGS: Final = re.compile(r"[-.+]dev|\+|dirty|snapshot", re.IGNORECASE)


class Ground(Struct, frozen=True):
    """What `init` looks at, whatever its draft says. `given` is the configuration before discovery,
    `config` the one after that, and `tags` are all of the repository.
    """

    group: Group
    given: Config
    session: Session
    config: Config
    survey: Survey
    services: Services
    top: Path
    tags: Mapping[str, str]
    is_new: bool

    async def take_in(self, draft: Proposal) -> Mapping[str, Target]:
        """What discovery finds with this draft."""
        text = write_settings(draft, self.session, ())
        joined = join_settings(self.given, text, self.session)
        return await open_targets(self.group, joined, self.session, self.services, self.survey.tree)

    def find_tags(self, targets: Mapping[str, Target]) -> Mapping[PackageId, Mapping[str, str]]:
        return list_own_tags(list_all(targets), self.config.root, self.top, self.tags)


class Inventory(Struct, frozen=True, kw_only=True):
    """What `init` goes by. Packages are `chosen` to be published; others are `waiting` for a
    version, where none is chosen, or have a place in a `later` release. Versions of some come
    `from_tags`; `native` ones have wheels that PyPI refuses where one job builds them.
    """

    ground: Ground
    targets: Mapping[str, Target]
    place: ForgePlace | None
    own_tags: Mapping[PackageId, Mapping[str, str]]
    branch: str
    draft: Proposal
    chosen: Sequence[Package]
    waiting: Sequence[Package]
    later: Sequence[Package]
    from_tags: Sequence[Package]
    native: Sequence[Package]
    ecosystems: Collection[str]
    notes: Sequence[str]

    @property
    def is_on_github(self) -> bool:
        """Or perhaps; another forge takes no workflow."""
        return self.place is None or self.place.kind == "github"

    def leave_out(self, packages: Sequence[Package]) -> Inventory:
        out = {each.id for each in packages}
        chosen, from_tags, native = (
            [each for each in known if each.id not in out]
            for known in (self.chosen, self.from_tags, self.native)
        )
        return replace(self, chosen=chosen, from_tags=from_tags, native=native)


class _Choice(Struct, frozen=True):
    """What to publish of all that is found, what is hardly meant, and what is unknown of that."""

    targets: Mapping[str, Target]
    chosen: Sequence[Package]
    doubted: Sequence[Package] = ()
    notes: Sequence[str] = ()


async def survey_repository(group: Group, given: Config, session: Session) -> Inventory:
    """Say what cannot be read. Raises ConfigError where there is nothing to publish."""
    config, survey, services = await open_workspace(group, given, session)
    targets = await open_targets(group, config, session, services, survey.tree)
    top = find_top(config.root)
    url = await Remote(config.tagging.remote, services.git).find_url()
    tags: Mapping[str, str] = {}
    commits = Commits(top, services.processes)
    with suppress(CommandFailed):  # what is no repository has none
        tags = await commits.list_tags()
    for line in survey.describe_unread(config.package_filter):
        say(mark_unread(line), session)
    say(survey.describe_foreign(config, targets), session)
    is_new = not config.config_file and not exists(config.root / FILENAME)
    ground = Ground(group, given, session, config, survey, services, top, tags, is_new)
    own_tags = ground.find_tags(targets)
    draft = _make_draft(config, targets, find_unlisted(survey.nested, targets), own_tags)
    notes: list[str] = []
    if is_new:
        draft, notes = await _take_in_known(draft, ground)
        if draft.meant or any(each.tag for each in draft.untold):
            targets = await ground.take_in(draft)
            own_tags = ground.find_tags(targets)
    choice = await _choose(config, targets, own_tags)
    if choice.doubted and not choice.chosen:
        choice = await _choose_among_doubted(choice, draft, own_tags, ground)
    targets, chosen = choice.targets, choice.chosen
    draft = replace(draft, excluded=choice.doubted)
    waiting, later = _list_waiting(targets, draft), []
    if chosen:
        waiting, later = [], _list_later(waiting, draft)
    elif not waiting:
        raise ConfigError(
            f"{config.root}: there is no package to publish here: "
            + "; ".join(describe_private(list_all(targets))),
            hint=suggest_directories(config.root, targets),
            problem=Problem.NO_PACKAGES,
        )
    branch = config.branch
    if not branch:
        branch, _ = await find_branch(commits, services.ci, config.versioning, None)
    return Inventory(
        ground=ground,
        targets=targets,
        place=ForgePlace.of_remote(url),
        own_tags=own_tags,
        branch=branch,
        draft=draft,
        chosen=chosen,
        waiting=waiting,
        later=later,
        from_tags=await _find_tagged_only(chosen, targets, top, services),
        native=[] if config.dist else await _find_native(chosen, targets),
        ecosystems={each.id.ecosystem for each in (*chosen, *waiting, *later)},
        notes=[*notes, *choice.notes],
    )


async def _take_in_known(draft: Proposal, ground: Ground) -> tuple[Proposal, list[str]]:
    """The draft with the packages that tags or another tool know, and a note if none can tell."""
    listed = _list_places((ground.top, ground.config.root))
    if draft.meant or not draft.unlisted or not (ground.tags or listed):
        return draft, []
    try:
        known = await ground.take_in(replace(draft, meant=draft.unlisted))
    except ReleasekitError as error:
        where = few([each.where for each in draft.unlisted], 3)
        return draft, [f"it is unknown whether packages in {where} have tags: {error}"]
    meant = _list_meant(draft.unlisted, known, ground.find_tags(known), listed)
    return replace(draft, meant=meant), []


async def _choose_among_doubted(
    choice: _Choice, draft: Proposal, tags: Mapping[PackageId, Mapping[str, str]], ground: Ground
) -> _Choice:
    """Without the doubted ones, versions between two tags may be those of the next release. If
    there are none, the doubted ones are all there is, and are meant.
    """
    without = replace(draft, excluded=choice.doubted)
    known = await ground.take_in(without) if ground.is_new else choice.targets
    others = (await _choose(ground.config, known, tags)).chosen
    if others or (ground.is_new and any(it.unpublishable for it in _list_waiting(known, draft))):
        return replace(choice, targets=known, chosen=others)
    return _Choice(choice.targets, choice.doubted)


def _list_later(waiting: Sequence[Package], draft: Proposal) -> list[Package]:
    """One between two releases, as a -SNAPSHOT is, has a place in the next one."""
    taken_in = {directory for each in draft.meant for directory in each.packages}
    return [each for each in waiting if each.unpublishable and each.directory in taken_in]


async def _find_native(packages: Sequence[Package], targets: Mapping[str, Target]) -> list[Package]:
    """Those whose wheels, built in one job, PyPI would refuse."""
    return [
        each
        for each in packages
        for it in await targets[each.id.ecosystem].find_warnings(each, each.prebuilt)
        if it.name is WarningName.PLATFORM_TAG
    ]


def list_all(targets: Mapping[str, Target]) -> list[Package]:
    return [package for target in targets.values() for package in target.workspace.packages]


def _make_draft(
    config: PlanConfig,
    targets: Mapping[str, Target],
    unlisted: Sequence[NestedPackages],
    tags: Mapping[PackageId, Mapping[str, str]],
) -> Proposal:
    untold = []
    for package in list_all(targets):
        own = tags.get(package.id, {})
        if version := targets[package.id.ecosystem].versioning.suggest_version(package, own):
            untold.append(Untold(package, version, own.get(version, "")))
    has_own = untold or any(each.gets_version for each in list_all(targets))
    return Proposal(
        config=config, unlisted=unlisted, meant=() if has_own else unlisted, untold=untold
    )


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
        if each.gets_version and (tags.get(each.id) or each.directory in listed)
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
        for name in table_in(read_document(root / file), "packages")
        if isinstance(name, str)
    }


def _list_waiting(targets: Mapping[str, Target], draft: Proposal) -> list[Package]:
    """Those that are published once they have another version, or any."""
    takes = [each for each in list_all(targets) if each.gets_version]
    return [*takes, *(each.package for each in draft.untold)]


async def _choose(
    config: PlanConfig,
    targets: Mapping[str, Target],
    tags: Mapping[PackageId, Mapping[str, str]],
) -> _Choice:
    """Doubted are those that hardly anybody means to publish, unless the others need them. One that
    has tags, or is on its registry, is meant. Raises ConfigError where there is nothing at all.
    """
    found = [
        with_doubt(package, config.root)
        for package in collect_packages(targets, config.root, config.package_filter)
        if not package.unpublishable
    ]
    doubted = [each for each in found if each.doubt and not tags.get(each.id)]
    answers = await ask_all(doubted, targets)
    silent: dict[str, PackageError] = {}
    unsure = set(answers)
    for package, answer in answers.items():
        is_new = targets[package.ecosystem].preflight.is_new
        if isinstance(answer, PackageError):
            silent.setdefault(package.ecosystem, answer)
        elif answer is not None or (is_new is not None and not is_new(package)):
            unsure.discard(package)
    needs = {each.id: [need.on for need in each.dependencies] for each in found}
    kept = reachable(needs.keys() - unsure, lambda each: needs.get(each, ()))
    left_out = [each for each in found if each.id not in kept]
    notes = [
        f"{name}: it is unknown whether its registry has packages that are left out: {error}"
        for name, error in silent.items()
        if left_out
    ]
    return _Choice(targets, [each for each in found if each.id in kept], left_out, notes)


async def _find_tagged_only(
    packages: Sequence[Package], targets: Mapping[str, Target], top: Path, services: Services
) -> list[Package]:
    """Those whose versions tags say: their manifests do not, and name a tool that asks git, or the
    version is that of a commit between two tags.
    """
    commits = Commits(top, services.processes)
    asked = [
        (each, name_unsaid(targets[each.id.ecosystem].versioning.read_version), commits.head)
        for each in packages
    ]
    try:
        said = await find_versions(asked, commits)
    except CommandFailed:
        return []  # nothing is committed
    unsaid = [each for each in packages if said.get((each.id, commits.head)) == UNSAID]
    return [each for each in unsaid if is_between_tags(each) or _asks_git(each.manifest)]


def is_between_tags(package: Package) -> bool:
    return _BETWEEN_TAGS.search(package.version) is not None


def _asks_git(manifest: Path) -> bool:
    try:
        return _FROM_TAGS.search(read_text(manifest, max_bytes=_MAX_BYTES)) is not None
    except ConfigError:
        return False


def read_document(path: Path) -> dict[str, object]:
    with suppress(ConfigError, ValueError, RecursionError):
        document = json.loads(read_text(path, max_bytes=_MAX_BYTES))
        return document if isinstance(document, dict) else {}
    return {}
