"""What `init` says of the repository, and what a person does next."""

from __future__ import annotations

import json
import shlex
from contextlib import suppress
from itertools import groupby
from typing import TYPE_CHECKING, Final

from releasekit.cli.init.trial import HOLDS, key_of, list_commented
from releasekit.cli.init.workflow import PREBUILT, WORKFLOW, Start
from releasekit.config.locations import FILENAME
from releasekit.decided import Level
from releasekit.errors import told_of
from releasekit.fields import replace
from releasekit.model import UNKNOWN
from releasekit.plan.other_tools import PRE_MODE, Deciding, describe_unread, find_unread
from releasekit.plan.publishers import describe_publishers
from releasekit.problems import DOCS, mark
from releasekit.report.plans import plan_headline
from releasekit.report.text import few
from releasekit.text.numbering import numbering_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from releasekit.cli.init.survey import Inventory
    from releasekit.cli.init.trial import Proposal, Tried
    from releasekit.cli.init.workflow import ReleaseJob
    from releasekit.config.declaration import EcosystemDeclaration, Setup
    from releasekit.model import Package, PackageId
    from releasekit.plan.other_tools import Unread
    from releasekit.plan.publishers import PublishingWorkflow

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


def describe(
    found: Inventory,
    tried: Tried,
    job: ReleaseJob,
    publishers: Sequence[PublishingWorkflow],
    *,
    in_the_way: bool,
) -> Iterator[str]:
    """All that is said below the files: what is left out, what is doubtful, and what comes next."""
    config, draft = found.ground.config, tried.draft
    if found.ground.is_new:
        yield from _describe_excluded(draft.excluded)
    else:
        yield from _describe_untold(draft)
    yield from _describe_unbuilt(job.unbuilt)
    for each in found.later:
        yield f"{each.id} is not published as it is: {each.unpublishable}"
    for name in found.targets.keys() - found.ecosystems:
        for package in found.targets[name].workspace.packages[:1]:
            if package.unpublishable:
                why = f"{package.id}: {package.unpublishable}"
                yield f"{name}: nothing to publish, and so nothing written for it: {why}"
    yield from found.notes
    if found.ground.is_new:
        yield from _describe_commented(draft, found.ground.survey.ecosystems)
    else:
        yield from found.ground.survey.describe_unlisted(config, found.targets)
    deciding = Deciding(
        packages=found.chosen,
        branch=found.branch,
        excluded=[*config.exclude_packages, *(str(each.id) for each in draft.excluded)],
        given=config.given.keys(),
    )
    unread = list(find_unread((found.ground.top, config.root), deciding, config.written))
    yield from describe_unread([replace(each, refused=False) for each in unread])
    yield from describe_publishers(publishers)
    yield from _describe_plan(tried)
    packages = [*found.chosen, *found.waiting, *found.later]
    yield from (
        (_FIRST if found.is_on_github else _FIRST_ELSEWHERE)
        .format(
            begin=_MOVE if in_the_way else _READ,
            first="\n".join(_describe_first(*each, packages) for each in job.setups.items()),
            remote=config.tagging.remote,
            place=found.place,
            docs=DOCS,
        )
        .splitlines()
    )
    steps = _describe_steps(found, tried, job, unread, publishers, in_the_way=in_the_way)
    yield from (f"{number}. {step}" for number, step in enumerate(steps, 3))


def _describe_steps(
    found: Inventory,
    tried: Tried,
    job: ReleaseJob,
    unread: Iterable[Unread],
    publishers: Iterable[PublishingWorkflow],
    *,
    in_the_way: bool,
) -> Iterator[str]:
    for each in unread:
        if each.file == PRE_MODE:
            yield f"Settle the prerelease mode of {PRE_MODE}, as said above"
    # That of a commit between two tags goes away with the next one.
    if tried.refused and not job.between:
        yield "Correct what `releasekit plan` refuses, as said above"
    yield from _describe_native(found.native)
    yield from _describe_between(job.between, found)
    yield from _describe_versions(found, job)
    for workflow in publishers:
        if workflow.steps and not (in_the_way and workflow.name == WORKFLOW):
            yield f"Remove what publishes with another tool from {workflow.name}, as said above"
    if in_the_way:
        yield f"Push no tag before that, which may start {WORKFLOW} as it is"
    else:
        yield _describe_start(job.start, found.ground.config.tagging.remote)


def _describe_plan(tried: Tried) -> Iterator[str]:
    if tried.plan is not None:
        yield f"`releasekit plan` with that: {plan_headline(tried.plan)}"
        unknown = {e.package.id.ecosystem for e in tried.plan.packages if e.reason == UNKNOWN}
        if unknown:
            yield f"it is unknown what is published of {few(sorted(unknown))}: `plan` says why"
    for error in told_of(tried.refused) if tried.refused else ():
        yield f"`releasekit plan` refuses it: {error}{mark(error.problem)} {error.hint}".rstrip()


def _describe_untold(draft: Proposal) -> Iterator[str]:
    """What a releasekit.toml that is there does not say."""
    tagged = [each for each in draft.untold if each.tag]
    for name, own in groupby(tagged, key=lambda each: each.package.id.ecosystem):
        lines = [
            f"`{key_of(each, draft.config.root)} = {json.dumps(each.version)}`" for each in own
        ]
        yield (
            f"{FILENAME} is there already, and stays as it is. Write below [{name}.versions] "
            f"{few(lines, 20)}: these are the last versions that have tags"
        )


def _describe_start(start: Start, remote: str) -> str:
    tag = shlex.quote(start.tag or f"{start.prefix}VERSION")
    words = f"git tag {tag} && git push {remote} {tag}"
    if not start.tag:
        return f"Push a tag of that version: {words}"
    if start.is_version:
        return f"Push a tag: {words}"
    return f"Push a tag: {words}. It only starts the release: packages have versions of their own"


def _describe_versions(found: Inventory, job: ReleaseJob) -> Iterator[str]:
    """What has to be done about versions before a release is started."""
    if found.waiting:
        yield (
            "Give a version to each package that is to be published. None has one now: "
            f"{found.waiting[0].id}: {found.waiting[0].unpublishable}"
        )
    steps, taken = [], few(job.taken, 3)
    for package in found.chosen:
        last = package.version.removeprefix("v")
        if package.id.ecosystem in job.pushed and (
            tag := found.own_tags.get(package.id, {}).get(last)
        ):
            following = numbering_of(package.id.ecosystem).bump(last, Level.PATCH, "literal")
            steps.append(f"{tag.removesuffix(last)}{following} after {tag}")
    if steps:
        yield (
            f"Replace the last version of each module in {FILENAME} with the next one "
            f"(`releasekit version` does that, as the commits ask for), and commit it. If "
            f"these are patches, the job pushes {few(steps)}"
        )
    elif job.taken and found.from_tags:
        yield (
            f"Decide on the next version. Tagged already: {taken}. No manifest has the version of "
            f"{few([str(each.id) for each in found.from_tags])}: it comes from the tag, so `plan` "
            "may refuse each commit without one"
        )
    elif job.taken:
        yield f"Give packages their next versions, and commit them. Tagged already: {taken}"


def _describe_native(packages: Sequence[Package]) -> Iterator[str]:
    """What has to be done about wheels that the job cannot build."""
    if packages:
        yield (
            f"Build the wheels of {few([str(each.id) for each in packages], 3)} in jobs before "
            f"`publish`, for each platform, and name their directory in `dist`, as {PREBUILT} "
            "shows: the job would build linux_x86_64 alone, which PyPI refuses"
        )


def _describe_between(packages: Sequence[Package], found: Inventory) -> Iterator[str]:
    """What has to be done about versions of commits between two tags."""
    if packages:
        tags = found.ground.tags
        last = [_find_last_tag(it, tags, found.own_tags.get(it.id, {})) for it in packages]
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
        by_doubt.setdefault(each.doubt or HOLDS, []).append(str(each.id))
    for doubt, names in by_doubt.items():
        what = "which" if len(names) == 1 else "each of which"
        yield f"`exclude-packages` in {FILENAME} leaves out {few(names)}, {what} {doubt}"


def _describe_unbuilt(unbuilt: Mapping[PackageId, str]) -> Iterator[str]:
    if unbuilt:
        told = [f"{missing} of {package}" for package, missing in unbuilt.items()]
        yield (
            f"git does not have {few(told, 3)}, which package.json names: a step of the job has to "
            "build first, because the action packs what is there"
        )


def _describe_commented(
    draft: Proposal, ecosystems: Mapping[str, EcosystemDeclaration]
) -> Iterator[str]:
    """What is not published, and the line that does."""
    for name, ecosystem in ecosystems.items():
        left = [it for it in draft.unlisted if it.ecosystem == name and it not in draft.meant]
        if left and ecosystem.manifests is not None:
            lines = list_commented(draft, name, ecosystem.manifests)
            yield (
                f"{name} packages in no workspace here are not published: "
                f"{few([each.where for each in left], 3)}; to publish them too, uncomment "
                f"{' and '.join(f'`{line}`' for line in lines.values())} in {FILENAME}"
            )


def _describe_first(ecosystem: str, setup: Setup, chosen: Sequence[Package]) -> str:
    """What is done once, with the address of one package; the others are named."""
    names = [each.id.name for each in chosen if each.id.ecosystem == ecosystem] or ["NAME"]
    several = len(names) > 1 and "{name}" in setup.first
    each = f" (for each of {few(names)})" if several else ""
    return f"   {ecosystem}{each}: {setup.first.format(name=names[0])}"
