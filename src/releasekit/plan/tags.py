"""Which tag each version gets, checked before anything is published, and how far each of them is;
nothing is pushed here.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from releasekit.announced import Status, Tag
from releasekit.errors import ConfigError, PackageError, Rejected
from releasekit.git.commits import Commits
from releasekit.git.remote import GITHUB, Remote, repository_at
from releasekit.git.versions import first_commits, versions_at
from releasekit.host.files import repository_of
from releasekit.http.client import retry
from releasekit.model import Action
from releasekit.plan.changes import tag_of
from releasekit.plan.decision import compare, is_clean
from releasekit.plan.tag_names import named_tags, refuse_names, refuse_nested
from releasekit.problems import Problem
from releasekit.report.text import few

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from releasekit.config.config import Config
    from releasekit.ecosystems.interface import Services, Target
    from releasekit.errors import ReleasekitError
    from releasekit.git.remote import RemoteTag
    from releasekit.http.client import RetryPolicy
    from releasekit.model import PackageId, Plan, PlannedPackage
    from releasekit.plan.tag_names import Named

_DEEPER: Final = (
    "`fetch-depth: 0` at actions/checkout brings the history; or run again where the state of the "
    "run is that published it, or tag it by hand."
)


@dataclass(frozen=True, slots=True)
class Tagging:
    """What tags are looked up and pushed with. `repository` is the page of the sources, empty where
    nobody knows it.
    """

    remote: Remote
    commits: Commits
    config: Config
    repository: str


async def with_tags(
    plan: Plan,
    config: Config,
    targets: Mapping[str, Target],
    services: Services,
    policy: RetryPolicy,
    *,
    repository: str,
) -> tuple[Plan, Tagging]:
    """`plan` with the tag of each package, and what makes those that are missing. `repository` is
    the page of the sources; where it is empty, that of the remote, if that is on GitHub.

    Raises PlanError for names that cannot be, ConfigError where there is no repository to tag, and
    PackageError where the remote does not answer.
    """
    top = repository_of(config.root)
    if top is None:
        asked = "tag" if config.tag else "announce"
        raise ConfigError(
            f"`{asked}` is true, and {config.root} is in no git repository",
            hint="Tags are made in a git repository, and pushed to a remote of it: run `git init` "
            f"there, or leave `{asked}` out.",
        )
    remote = Remote(config.tagging.remote, top, services.processes, services.environment)
    if not repository:
        server = services.environment.get("GITHUB_SERVER_URL", GITHUB).rstrip("/")
        found = repository_at(await remote.url(), server)
        repository = f"{server}/{found}" if found else ""
    tagging = Tagging(remote, Commits(top, services.processes), config, repository)
    named = named_tags(plan, config, targets)
    refuse_names(named, config.tagging.name)
    there = await retry(tagging.remote.tags, policy)
    refuse_nested(named, there)
    tags = await _standing(plan, named, there, targets, tagging)
    packages = tuple(replace(each, tag=tags.get(each.package.id)) for each in plan.packages)
    notes = (*plan.notes, *_named_otherwise(packages, config.root, there))
    words = _words(tags.values())
    return replace(plan, packages=packages, announcing=words, notes=notes), tagging


def _named_otherwise(
    packages: Iterable[PlannedPackage], root: Path, there: Collection[str]
) -> list[str]:
    """Whoever comes from another tool would get a second tag for each version."""
    found = {
        each.package: other.shown.removeprefix("tag ")
        for each in packages
        if each.tag is not None and each.tag.status is Status.WANTED
        if (other := tag_of(each.package, root, there)) is not None
    }
    if not found:
        return []
    package, tag = next(iter(found.items()))
    name = tag.replace(package.version.removeprefix("v"), "{version}")
    name = name.replace(package.id.name, "{name}")
    others = few([*found.values()], 3)
    note = (
        f"the remote has tags of these versions by other names ({others}): to go on with those, "
        f'write [tag] name = "{name}" in releasekit.toml'
    )
    return [note]


async def _standing(
    plan: Plan,
    named: Mapping[PackageId, Named],
    there: Mapping[str, RemoteTag],
    targets: Mapping[str, Target],
    tagging: Tagging,
) -> dict[PackageId, Tag]:
    """The tag of each package that is to be published, or is."""
    found: dict[PackageId, Tag] = {}
    unknown: list[PlannedPackage] = []
    for planned in plan.packages:
        package = planned.package
        if planned.action is Action.REFUSE or package.id not in named:
            continue
        name, own = named[package.id].tag, named[package.id].own
        commit = commit_of_version(planned, plan.commit)
        # What a registry tags by itself may be a commit of its own.
        known = commit if is_clean(commit) and not own else ""
        tag = Tag(name=name, status=Status.WANTED, commit=known)
        if (held := there.get(name)) is not None:
            found[package.id] = held_by(held, tag, own=own)
        elif own:
            found[package.id] = tag
        elif not tagging.config.tag:
            found[package.id] = owed(tag, _not_asked_for(tag))
        elif tag.commit:
            found[package.id] = tag
        elif commit:
            found[package.id] = owed(tag, _dirty(planned))
        else:
            found[package.id] = tag
            unknown.append(planned)
    found |= await _of_another_version(plan, found, targets, tagging)
    found |= await _from_history(unknown, found, targets, tagging)
    return {
        each: replace(tag, url=_page(tagging.repository, tag.name)) for each, tag in found.items()
    }


def _page(repository: str, tag: str) -> str:
    """Where the forge shows it."""
    return f"{repository}/releases/tag/{quote(tag, safe='@/')}" if repository else ""


def commit_of_version(planned: PlannedPackage, head: str) -> str:
    """What its files were built from, or will be, with `+dirty…` where that is no commit; empty
    where nothing here tells: what an earlier run has built may not be what is published.
    """
    if planned.action is Action.PUBLISH:
        return head
    ours = compare(planned.artifacts, planned.published)
    if planned.action is Action.KEEP and (not planned.artifacts or ours.missing or ours.differing):
        return ""
    return planned.built_from


def held_by(held: RemoteTag, tag: Tag, *, own: bool = False) -> Tag:
    """`tag`, whose name the remote has: the same, or another one, which stays where it is. Where
    nobody knows the commit, whoever has tagged the version knew it.
    """
    if own or not tag.commit or tag.commit == held.commit:
        return replace(tag, status=Status.THERE, commit=held.commit, object=held.object)
    error = Rejected(
        f"the remote has the tag {tag.name} on {held.commit}, and this version is built from "
        f"{tag.commit}: nothing was moved",
        problem=Problem.TAG_FOREIGN,
    )
    return _with(replace(tag, status=Status.FOREIGN, object=held.object), error)


def owed(tag: Tag, error: ReleasekitError) -> Tag:
    return _with(replace(tag, status=Status.OWED), error)


def _with(tag: Tag, error: ReleasekitError) -> Tag:
    return replace(tag, note=str(error), hint=error.hint, problem=error.problem)


def _not_asked_for(tag: Tag) -> PackageError:
    return PackageError(
        f"the remote has no tag {tag.name}, and `tag` is not true",
        hint="Set `tag: true`, or push the tag.",
        problem=Problem.TAG_OWED,
    )


def _dirty(planned: PlannedPackage) -> PackageError:
    return PackageError(
        f"{planned.package} is built from sources that no commit has",
        hint="Commit them, and publish from there; a version that is published already is tagged "
        "by hand: `git tag`.",
        problem=Problem.TAG_OWED,
    )


async def _of_another_version(
    plan: Plan,
    tags: Mapping[PackageId, Tag],
    targets: Mapping[str, Target],
    tagging: Tagging,
) -> dict[PackageId, Tag]:
    """Tags that are there on a commit of another version, where no journal knows a better one."""
    asked = {}
    for planned in plan.packages:
        package, target = planned.package, targets[planned.package.id.ecosystem]
        tag = tags.get(package.id)
        if tag is None or tag.status is not Status.THERE or target.version_at is None:
            continue
        if not is_clean(commit_of_version(planned, plan.commit)):
            asked[package] = (target.version_at, tag.commit)
    here = await tagging.commits.existing(commit for _, commit in asked.values())
    asked = {package: each for package, each in asked.items() if each[1] in here}
    versions = await versions_at(asked, tagging.commits) if asked else {}
    found = {}
    for package, (_, commit) in asked.items():
        version, tag = versions[package.id], tags[package.id]
        if version and version != package.version:
            error = Rejected(
                f"the remote has the tag {tag.name} ({tag.object}) on {commit}, where the version "
                f"is {version}: nothing was moved",
                problem=Problem.TAG_FOREIGN,
            )
            found[package.id] = _with(replace(tag, status=Status.FOREIGN), error)
    return found


async def _from_history(
    unknown: Sequence[PlannedPackage],
    tags: Mapping[PackageId, Tag],
    targets: Mapping[str, Target],
    tagging: Tagging,
) -> dict[PackageId, Tag]:
    """Those of versions that are published, and of whose build nothing is known here."""
    asked = {
        planned.package: version_at
        for planned in unknown
        if (version_at := targets[planned.package.id.ecosystem].version_at) is not None
    }
    commits = await first_commits(asked, tagging.commits) if asked else {}
    found = {}
    for planned in unknown:
        package = planned.package
        if commit := commits.get(package.id, ""):
            found[package.id] = replace(tags[package.id], commit=commit)
            continue
        error = PackageError(
            f"which commit {package} was built from is not known here: neither the state of an "
            "earlier run nor the history of the manifests tells",
            hint=_DEEPER,
            problem=Problem.TAG_OWED,
        )
        found[package.id] = owed(tags[package.id], error)
    return found


def _words(tags: Iterable[Tag]) -> str:
    counts = Counter(tag.status for tag in tags)
    said = {
        Status.WANTED: "to tag",
        Status.THERE: "tagged already",
        Status.FOREIGN: "with another tag of that name",
        Status.OWED: "that cannot be tagged",
    }
    return ", ".join(f"{counts[each]} {words}" for each, words in said.items() if counts[each])
