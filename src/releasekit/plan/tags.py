"""Which tag each version gets, checked before anything is published, and how far each of them is;
nothing is pushed here.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from releasekit.announced import Status, Tag
from releasekit.causes.failures import ForeignTag, NotTagged
from releasekit.causes.refusals import SameTag, TagName
from releasekit.errors import ConfigError
from releasekit.git.commits import Commits
from releasekit.git.remote import GITHUB, Remote, repository_at
from releasekit.git.versions import first_commits
from releasekit.host.files import repository_of
from releasekit.http.client import retry
from releasekit.model import Action
from releasekit.notes.names import is_shared, tag_name, trouble_with_name
from releasekit.plan.decision import is_clean

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from releasekit.config.config import Config
    from releasekit.ecosystems.interface import Services, Target
    from releasekit.errors import ReleasekitError
    from releasekit.git.remote import RemoteTag
    from releasekit.http.client import RetryPolicy
    from releasekit.model import Package, PackageId, Plan, PlannedPackage

_APART: Final = "{ecosystem}/{name}-v{version}"
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


async def with_tags(  # noqa: PLR0913 - what it is found out with
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
    named = _named(plan, config, targets)
    refuse_names(named, config.tagging.name)
    there = await retry(tagging.remote.tags, policy)
    _refuse_nested(named, there)
    tags = await _standing(plan, named, there, targets, tagging)
    packages = tuple(replace(each, tag=tags.get(each.package.id)) for each in plan.packages)
    return replace(plan, packages=packages, announcing=_words(tags.values())), tagging


def _named(
    plan: Plan, config: Config, targets: Mapping[str, Target]
) -> dict[PackageId, tuple[Package, str, bool]]:
    """Of each package that is published, its tag, and whether its registry pushes it."""
    found = {}
    for planned in plan.packages:
        package = planned.package
        own = targets[package.id.ecosystem].own_tag
        name = own(package) if own else tag_name(config.tagging.name, package, config.root)
        if name:
            found[package.id] = (package, name, own is not None)
    return found


def refuse_names(named: Mapping[PackageId, tuple[Package, str, bool]], template: str) -> None:
    """Raises TagName and SameTag: no remote has to be asked for that."""
    holders: dict[str, Package] = {}
    for package, name, own in named.values():
        if trouble := trouble_with_name(name):
            raise TagName(
                f"{package}: its tag would be {name!r}, which {trouble}",
                hint=f'Write another `[tag] name` in releasekit.toml; it is "{template}".',
            )
        holder = holders.setdefault(name, package)
        if holder is not package and (own or named[holder.id][2] or not is_shared(template)):
            raise SameTag(
                f"{holder.id} and {package.id} would both have the tag {name!r}",
                hint=f'Tell them apart: [tag] name = "{_APART}" in releasekit.toml.',
            )


def _refuse_nested(
    named: Mapping[PackageId, tuple[Package, str, bool]], there: Collection[str]
) -> None:
    """Git keeps refs as files and directories: none is both.

    https://git-scm.com/docs/git-check-ref-format
    """
    ours = {name for _, name, _ in named.values()}
    everything = ours.union(there)
    above = {str(each): name for name in everything for each in PurePosixPath(name).parents}
    for package, name, _ in named.values():
        if name in above and above[name] != name:
            raise SameTag(
                f"{package}: git can keep no tag {name!r} beside the tag {above[name]!r}",
                hint="Write another `[tag] name` in releasekit.toml.",
            )
        for each in PurePosixPath(name).parents:
            if str(each) in everything:
                raise SameTag(
                    f"{package}: git can keep no tag {name!r} beside the tag {str(each)!r}",
                    hint="Write another `[tag] name` in releasekit.toml.",
                )


async def _standing(
    plan: Plan,
    named: Mapping[PackageId, tuple[Package, str, bool]],
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
        name, own = named[package.id][1:]
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
    found |= await _from_history(unknown, found, targets, tagging)
    return {
        each: replace(tag, url=_page(tagging.repository, tag.name)) for each, tag in found.items()
    }


def _page(repository: str, tag: str) -> str:
    """Where the forge shows it."""
    return f"{repository}/releases/tag/{quote(tag, safe='@/')}" if repository else ""


def commit_of_version(planned: PlannedPackage, head: str) -> str:
    """What its files were built from, or will be, with `+dirty…` where that is no commit; empty
    where nothing here tells.
    """
    return head if planned.action is Action.PUBLISH else planned.built_from


def held_by(held: RemoteTag, tag: Tag, *, own: bool = False) -> Tag:
    """`tag`, whose name the remote has: the same, or another one, which stays where it is. Where
    nobody knows the commit, whoever has tagged the version knew it.
    """
    if own or not tag.commit or tag.commit == held.commit:
        return replace(tag, status=Status.THERE, commit=held.commit, object=held.object)
    error = ForeignTag(
        f"the remote has the tag {tag.name} on {held.commit}, and this version is built from "
        f"{tag.commit}: nothing was moved"
    )
    return _with(replace(tag, status=Status.FOREIGN, object=held.object), error)


def owed(tag: Tag, error: ReleasekitError) -> Tag:
    return _with(replace(tag, status=Status.OWED), error)


def _with(tag: Tag, error: ReleasekitError) -> Tag:
    return replace(tag, note=str(error), hint=error.hint, problem=error.problem)


def _not_asked_for(tag: Tag) -> NotTagged:
    return NotTagged(
        f"the remote has no tag {tag.name}, and `tag` is not true",
        hint="Set `tag: true`, or push the tag.",
    )


def _dirty(planned: PlannedPackage) -> NotTagged:
    return NotTagged(
        f"{planned.package} is built from sources that no commit has",
        hint="Commit them, and publish from there; a version that is published already is tagged "
        "by hand: `git tag`.",
    )


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
        error = NotTagged(
            f"which commit {package} was built from is not known here: neither the state of an "
            "earlier run nor the history of the manifests tells",
            hint=_DEEPER,
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
