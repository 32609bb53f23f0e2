"""The task graph of a release: what has to be done for each package, and what waits for what."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from msgspec import Struct

from releasekit.graph import reachable
from releasekit.model import Action, DependencyKind, Node, PackageId, Phase
from releasekit.report.text import count_of, few
from releasekit.scheduler import Task

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from releasekit.config.config import PlanConfig
    from releasekit.config.values import StageMode
    from releasekit.ecosystems.interface import Target
    from releasekit.model import Package, Plan
    from releasekit.release.package_run import PackageRun
    from releasekit.release.sibling_jobs import ExternalPackages


PHASES: tuple[Phase, ...] = get_args(Phase)


class TaskGraph:
    """`runs` are in plan order, and `foreign` what other jobs publish. Of each package, `edges` has
    what goes out before it. `batches` are what is built together, by the task that builds it, and
    `uploads` the packages that go out in one upload, by its task.
    """

    def __init__(
        self,
        plan: Plan,
        targets: Mapping[str, Target],
        runs: Mapping[PackageId, PackageRun],
        *,
        config: PlanConfig,
        foreign: ExternalPackages,
    ) -> None:
        self._plan = plan
        self._targets = targets
        self._runs = runs
        self._config = config
        self._foreign = foreign
        self._kept = plan.kept()
        self.edges = {
            package: frozenset(on for on in needs if not self._together(package, on))
            for package, needs in plan.edges().items()
        }
        found = tuple(batches_of(plan, targets))
        self.batches = {Node("build", each.packages[0]): each for each in found}
        # A slot would only keep what is built from being taken.
        has_slots = not any(each.is_of_one_tool for each in found)
        self.build_slots = config.build_concurrency if has_slots else None
        self._built_by = {on: node for node, each in self.batches.items() for on in each.packages}
        self.uploads = self._uploads() if config.is_uploading else {}
        # Each is named by a package that waits for it.
        self._behind = {on for on in runs if on in targets[on.ecosystem].after_release}
        early = [node for node in self.uploads if node.package not in self._behind]
        late = [node for node in self.uploads if node.package in self._behind]
        is_held = bool(early) and config.start_uploads == "built"
        self._hold = Node("hold", early[0].package) if is_held else None
        self.release = Node("hold", late[0].package) if late else None

    def tasks(self) -> list[Task[Node]]:
        """Of each package its build, upload and confirmation, its attestation where it has one, and
        one for its follow-up; packages that are kept have none, and dry runs only build. They are
        in plan order, each package with all its phases.
        """
        tasks = self._builds()
        if self._config.is_uploading:
            tasks += self._attestations()
            tasks += self._holds()
            tasks += self._transfers()
            tasks += self._approvals()
            tasks += self._follow_ups()
            # What is always staged waits in no order, and so for no other job.
            if any(node.phase == "wait" for task in tasks for node in task.after):
                tasks += [Task(name=Node("wait", on), lane="wait") for on in self._foreign]
        places = {package: place for place, package in enumerate((*self._runs, *self._foreign))}
        # Where one thing is done at a time, a person is waited for when all else is done.
        return sorted(
            tasks,
            key=lambda t: (
                t.name.phase == "approval",
                places[t.name.package],
                PHASES.index(t.name.phase),
            ),
        )

    def shown(self, package: PackageId) -> Node:
        """The task after which the registry shows it, if it is ever going to in this run."""
        if package in self._foreign:
            return Node("wait", package)
        return Node("approval" if self.may_wait(package) else "confirm", package)

    def staging_mode(self, package: PackageId) -> StageMode:
        staging = self._targets[package.ecosystem].staging
        return "never" if staging is None else staging.mode

    def may_wait(self, package: PackageId) -> bool:
        """Whether this run waits for its approval, should it be staged."""
        action = self._runs[package].planned.action
        staged = action is Action.AWAIT or self.staging_mode(package) != "never"
        return staged and action is not Action.KEEP and self._config.wait_for_approval > 0

    def _attested(self, packages: Collection[PackageId]) -> set[Node]:
        """The tasks after which these have their attestations."""
        return {Node("attest", each) for each in packages if self._runs[each].planned.attest}

    def _attestations(self) -> list[Task[Node]]:
        """One node for each package that has any; it waits for its own build alone."""
        tasks = []
        for node in self._attested([each for group in self.uploads.values() for each in group]):
            built = self._built_by.get(node.package)
            after = frozenset({built} if built else ())
            tasks.append(Task(name=node, lane="attest", after=after))
        return tasks

    def _holds(self) -> list[Task[Node]]:
        """One task between everything that can be done before the first upload and every upload,
        and one between what is tagged and what comes after that.
        """
        tasks = []
        if self.release is not None:
            going = {each for group in self.uploads.values() for each in group} - self._behind
            tagged = (on for on in going if self._runs[on].planned.package.follows is None)
            before = frozenset(map(self.shown, tagged))
            tasks.append(Task(name=self.release, lane="hold", after=before, weight=0.0))
        if self._hold is None:
            return tasks
        late = find_late(self.batches.values())
        early = [node for node, batch in self.batches.items() if late.isdisjoint(batch.packages)]
        sent = {package for packages in self.uploads.values() for package in packages}
        after = frozenset(early) | self._attested(sent - late)
        return [*tasks, Task(name=self._hold, lane="hold", after=after, weight=0.0)]

    def _transfers(self) -> list[Task[Node]]:
        """Every upload, and a confirmation of each of its packages."""
        sent_by = {package: node for node, each in self.uploads.items() for package in each}
        tasks = []
        for upload, packages in self.uploads.items():
            needs = {on for package in packages for on in self.edges[package]}
            needs.update(*(self._foreign.needs[package] for package in packages))
            if self.staging_mode(upload.package) == "always":
                # None of it can be installed before it is approved: it waits in no order.
                needs = {on for on in needs if on.ecosystem != upload.package.ecosystem}
            waits = (
                {self._gate(on, upload.package, sent_by) for on in needs - self._kept}
                | {self._built_by[each] for each in packages if each in self._built_by}
                | self._attested(packages)
            )
            # What the plan refuses is sent by nobody.
            if self._hold and any(
                self._runs[each].planned.action is not Action.REFUSE for each in packages
            ):
                waits.add(self._hold)
            if self.release and upload.package in self._behind:
                waits.add(self.release)
            group = upload.package.ecosystem
            tasks.append(Task(name=upload, lane="upload", after=frozenset(waits), group=group))
            for package in packages:
                # What waits in another job has to be uploaded and confirmed there.
                weight = 1.0 + 2 * self._plan.behind.get(package, 0)
                confirm, after = Node("confirm", package), frozenset({upload})
                tasks.append(Task(name=confirm, lane="confirm", after=after, weight=weight))
        return tasks

    def _gate(self, on: PackageId, package: PackageId, sent_by: Mapping[PackageId, Node]) -> Node:
        """The task of `on` that has to be done before `package` may go out."""
        if on in self._foreign:
            return Node("wait", on)
        beside = on.ecosystem == package.ecosystem and self.staging_mode(package) != "never"
        if not beside and self.may_wait(on):
            return Node("approval", on)
        accepted = self._config.gate == "accepted" and on in sent_by
        # What is no registry accepts nothing, and only its check tells.
        accepted &= all(self._targets[it.ecosystem].is_repeatable for it in (on, package))
        return sent_by[on] if accepted else Node("confirm", on)

    def _approvals(self) -> list[Task[Node]]:
        """What earlier runs have staged, confirmed as if this one had, and a node for each package
        that may have to wait for a person.
        """
        tasks = []
        for package, run in self._runs.items():
            confirm, approval = Node("confirm", package), Node("approval", package)
            if run.planned.action is Action.AWAIT:
                tasks.append(Task(name=confirm, lane="confirm"))
            if self.may_wait(package):
                tasks.append(Task(name=approval, lane="approval", after=frozenset({confirm})))
        return tasks

    def _follow_ups(self) -> list[Task[Node]]:
        """One node for each package that has something to do once it is confirmed."""
        tasks = []
        for package in (package for packages in self.uploads.values() for package in packages):
            if self._targets[package.ecosystem].due(self._runs[package].planned.package):
                after = frozenset({self.shown(package)})
                task = Task(name=Node("follow-up", package), lane="follow-up", after=after)
                tasks.append(task)
        return tasks

    def _uploads(self) -> dict[Node, list[PackageId]]:
        """One node per package; a single one for packages that go out together."""
        nodes: dict[Node, list[PackageId]] = {}
        shared: dict[str, Node] = {}
        for package, run in self._runs.items():
            if run.planned.action in {Action.KEEP, Action.AWAIT}:
                continue
            node = Node("upload", package)
            if self._together(package, package):
                node = shared.setdefault(package.ecosystem, node)
            nodes.setdefault(node, []).append(package)
        return nodes

    def _together(self, one: PackageId, other: PackageId) -> bool:
        """Whether both go out in one upload, and neither waits for the other."""
        if Action.AWAIT in {self._runs[one].planned.action, self._runs[other].planned.action}:
            return False
        return one.ecosystem == other.ecosystem and self._targets[one.ecosystem].single_upload

    def _builds(self) -> list[Task[Node]]:
        """One node per batch, after those whose packages it needs to be built, and after what the
        registry has to show by then.
        """
        tasks = []
        for node, batch in self.batches.items():
            needs = {self._built_by[on] for on in batch.needs if on in self._built_by}
            if self._config.is_uploading:
                needs |= {self.shown(on) for on in batch.absent}
            elif batch.absent:
                # A dry run builds what it can; the registry's version may be good enough.
                names = few([on.name for on in sorted(batch.absent)])
                why = f"not built in a dry run, as it can be only once the registry has {names}"
                for package in batch.packages:
                    self._runs[package].postponed = why
            tasks.append(Task(name=node, lane="build", after=frozenset(needs - {node})))
        return tasks


class Batch(Struct, frozen=True, kw_only=True):
    """`needs` are packages whose builds come first; `absent` are those that the registry has to
    show first, from any job. `is_of_one_tool` where one process builds all of the run,
    and this one is taken out of that as soon as it is built.
    """

    packages: tuple[PackageId, ...]
    needs: frozenset[PackageId]
    absent: frozenset[PackageId]
    is_of_one_tool: bool = False


def batches_of(plan: Plan, targets: Mapping[str, Target]) -> Iterator[Batch]:
    """Of all that is built in a run of `plan`, and that no registry has."""
    coming = {planned.package.id for planned in plan.packages} - plan.kept()
    coming |= {package.id for package in plan.foreign}
    for name, target in targets.items():
        packages = [
            planned.package
            for planned in plan.packages
            if planned.action is Action.PUBLISH and planned.package.id.ecosystem == name
        ]
        foreign = _foreign(packages, plan, target)
        alone = len(packages) == sum(each.action is Action.PUBLISH for each in plan.packages)
        # What waits for other jobs keeps nothing back that does not.
        for awaited in dict.fromkeys(foreign.values()):
            group = [package for package in packages if foreign[package.id] == awaited]
            together = target.workspace.batches(group)
            split = target.split_singly(group) if alone else together
            is_of_one_tool = len(together) == 1 < len(split)
            for batch in split:
                needs, first = _find_needs(batch, target, coming)
                yield Batch(
                    packages=tuple(package.id for package in batch),
                    needs=needs,
                    absent=awaited | first,
                    is_of_one_tool=is_of_one_tool,
                )


def _find_needs(
    batch: Iterable[Package], target: Target, coming: Collection[PackageId]
) -> tuple[frozenset[PackageId], frozenset[PackageId]]:
    """What has to be built before it, and which of what is `coming` the registry has to show."""
    dependencies = [need for package in batch for need in package.dependencies]
    first = frozenset(need.on for need in dependencies if need.visible_first).intersection(coming)
    needs = frozenset(
        need.on
        for need in dependencies
        if need.kind is DependencyKind.BUILD
        or target.builds_on_published
        or (target.builds_in_turn and not first)
    )
    return needs, first


def find_late(batches: Iterable[Batch]) -> frozenset[PackageId]:
    """Packages that can be built only once the registry shows others of this release."""
    by_first = {batch.packages[0]: batch for batch in batches}
    needed_by: dict[PackageId, list[PackageId]] = {}
    for first, batch in by_first.items():
        for on in batch.needs:
            needed_by.setdefault(on, []).append(first)
    late = reachable(
        [first for first, batch in by_first.items() if batch.absent],
        lambda first: [each for on in by_first[first].packages for each in needed_by.get(on, ())],
    )
    return frozenset(on for first in late for on in by_first[first].packages)


def describe_late(plan: Plan, targets: Mapping[str, Target]) -> str:
    """A note about the packages for whose builds `start-uploads: built` cannot wait."""
    late = sorted(map(str, find_late(batches_of(plan, targets))))
    if not late:
        return ""
    count = count_of(len(late), "package", "packages")
    return (
        f"`start-uploads: built` does not wait for {count} that can be built only once the "
        f"registry shows others of this release: {few(late)}"
    )


def _foreign(
    packages: list[Package], plan: Plan, target: Target
) -> dict[PackageId, frozenset[PackageId]]:
    """What other jobs have to publish before each of `packages` can be built."""
    if not target.builds_on_published:
        return dict.fromkeys((package.id for package in packages), frozenset())
    others = {package.id for package in plan.foreign}
    found: dict[PackageId, frozenset[PackageId]] = {}
    for package in packages:
        needs = {need.on for need in package.dependencies}
        found[package.id] = frozenset(needs & others).union(
            *(found[on] for on in needs & found.keys())
        )
    return found
