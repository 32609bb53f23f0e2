"""What versions are decided for: the packages of a workspace, the history at hand, its branch."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from releasekit.aio import gather_all
from releasekit.config.package_filter import with_extra
from releasekit.errors import CommandFailed, Denied, PlanError, Rejected, Transient
from releasekit.fields import replace
from releasekit.git.commits import Commits, parse_ref_name
from releasekit.git.versions import find_versions
from releasekit.host.ci import MERGE_QUEUE
from releasekit.plan.holdings import Holdings
from releasekit.plan.make import collect_packages
from releasekit.problems import Problem
from releasekit.text.escape import visible
from releasekit.versions.released import UNSAID, name_unsaid
from releasekit.versions.rules import find_label

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from releasekit.config.config import Config
    from releasekit.config.version_options import VersionOptions
    from releasekit.ecosystems.interface import Services, Target
    from releasekit.host.ci import CI
    from releasekit.model import Package, PackageId
    from releasekit.plan.holdings import Tree

_BRANCH: Final = re.compile(r"refs/(?:heads|remotes/[^/]+)/(.+)")


class Scope(Struct, frozen=True):
    """`public` packages get versions, in this run those that are `versioned`; `published` is what
    registries have said so far. `notes` are told beside what is decided. Where it `is_part` of what
    the repository had, change files may name others. `branch` is the one that is released from,
    empty where it is `unknown`, which says why.
    """

    config: Config
    targets: Mapping[str, Target]
    packages: Mapping[PackageId, Package]
    commits: Commits
    services: Services
    public: Sequence[Package]
    versioned: Sequence[Package]
    holdings: Holdings
    branch: str
    unknown: str
    is_part: bool
    published: dict[tuple[PackageId, str], bool | None] = field(default_factory=dict)
    notes: Sequence[str] = ()

    def require_branch(self) -> None:
        """Raises PlanError where it is unknown, and says whether versions are prereleases."""
        options = self.config.versioning
        if self.unknown and options.branches:
            raise PlanError(
                f"{options.where()} has `branches`, but the current branch is unknown: "
                f"{self.unknown}",
                hint="Name it, for example with `--branch main`.",
                problem=Problem.UNKNOWN_BRANCH,
            )

    async def find_published(self, packages: Iterable[Package]) -> Mapping[PackageId, bool | None]:
        """Whether its registry has the version of each; None where that does not answer, or is not
        the one that it goes to. It is asked once.
        """

        async def is_there(package: Package) -> bool | None:
            target = self.targets[package.id.ecosystem]
            if package.id in target.elsewhere:
                return None
            try:
                return await target.registry.lookup(package) is not None
            except (Transient, Denied, Rejected):
                return None

        asked = list(packages)
        unasked = [each for each in asked if (each.id, each.version) not in self.published]
        there = await gather_all(map(is_there, unasked))
        self.published.update(
            zip(((each.id, each.version) for each in unasked), there, strict=True)
        )
        return {each.id: self.published[each.id, each.version] for each in asked}


async def make_scope(
    config: Config,
    targets: Mapping[str, Target],
    services: Services,
    commits: Commits,
    tree: Tree,
    *,
    since: str | None = None,
    unlisted: Sequence[str] = (),
) -> Scope:
    """Of what was discovered; `unlisted` are sentences about what is in no workspace. `since` is
    what a preview is compared with, None for another command.
    """
    packages = collect_packages(targets, config.root, config.package_filter, unlisted)
    # Refuses names that no package has.
    with_extra(packages, config.extra_edges, {*targets, *config.absent})
    public = [each for each in packages if each.gets_version]
    versioned = [each for each in public if config.package_filter.has_package(each.id)]
    branch, unknown = config.branch, ""
    if not branch:
        branch, unknown = await find_branch(commits, services.ci, config.versioning, since)
    return Scope(
        config,
        targets,
        {each.id: each for each in packages},
        commits,
        services,
        public,
        versioned,
        Holdings(targets, config.root, tree, versioned),
        branch,
        unknown,
        is_part=bool(config.ecosystem),
    )


async def look_back(scope: Scope, commit: str) -> Scope:
    """As of an earlier commit: its history, its versions, its change files. What its packages
    required of each other is taken from today. Raises CommandFailed.
    """
    commits = Commits(scope.commits.top, scope.services.processes, head=commit)
    reading = {
        each: name_unsaid(scope.targets[each.id.ecosystem].versioning.read_version)
        for each in scope.public
    }
    asked = [(each, at, it) for each, at in reading.items() for it in (commit, "HEAD")]
    said = await find_versions(asked, commits)

    def go_back(packages: Sequence[Package]) -> Sequence[Package]:
        had = ((each, said[each.id, commit], said[each.id, "HEAD"]) for each in packages)
        # Of one that no manifest says, tags say it.
        return [
            each if UNSAID in {then, now} else replace(each, version=then)
            for each, then, now in had
            if then
        ]

    public = go_back(scope.public)
    return replace(
        scope,
        packages=dict(scope.packages) | {each.id: each for each in public},
        commits=commits,
        public=public,
        versioned=go_back(scope.versioned),
        is_part=True,
    )


async def find_branch(
    commits: Commits, ci: CI, options: VersionOptions, since: str | None
) -> tuple[str, str]:
    """The branch that is released from, or why it is unknown: the one that changes are going to be
    merged into, or else that of the job or checked out.
    """
    if (request := ci.read_pull_request()) and request.target:
        return request.target, ""
    if since is not None and (base := await _find_base(commits, since)):
        return base, ""
    ref, here = ci.ref, ""
    if options.branches or not ref:
        with suppress(CommandFailed):  # a detached HEAD
            told = await commits.run_git("symbolic-ref", "--quiet", "HEAD")
            here = told.parse(parse_ref_name)
    branch, other = ((ref or here).removeprefix("refs/heads/"), here.removeprefix("refs/heads/"))
    if ref and (not ref.startswith("refs/heads/") or ref.startswith(MERGE_QUEUE)):
        return "", f"this is a job of {visible(ref)}"
    if not branch:
        return "", "a detached commit is checked out"
    if other and find_label(options, branch) != find_label(options, other):
        return "", f"this is a job of {visible(branch)}, but {visible(other)} is checked out"
    return branch, ""


async def _find_base(commits: Commits, since: str) -> str:
    """The branch that a preview is compared with; empty where `since` names none."""
    name = since or "origin/HEAD"
    full = ""
    with suppress(CommandFailed):  # the preview says so
        full = await commits.run_git(
            "rev-parse", "--symbolic-full-name", "--verify", "--end-of-options", name
        )
    found = _BRANCH.fullmatch(full.strip())
    return found[1] if found else ""
