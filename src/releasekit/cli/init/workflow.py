"""The workflow that publishes: its steps, its permissions, and the tags that start it."""

from __future__ import annotations

import json
import os
import re
import shlex
from bisect import bisect_left
from itertools import count, takewhile
from operator import methodcaller
from textwrap import indent
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from releasekit.cli.init.survey import is_between_tags, read_document
from releasekit.ecosystems.shared.documents import table_in, text_in
from releasekit.errors import PathError
from releasekit.fields import replace
from releasekit.git.tag_forms import SHARED_TAGS
from releasekit.host.files import is_file
from releasekit.plan.foreign_manifests import list_publishing
from releasekit.plan.publishers import list_own_jobs, read_workflows
from releasekit.problems import DOCS, OWN_REPOSITORY
from releasekit.text.escape import visible

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from releasekit.cli.init.survey import Ground, Inventory
    from releasekit.cli.init.trial import Tried
    from releasekit.cli.session import Session
    from releasekit.config.declaration import Setup
    from releasekit.model import Package, PackageId

WORKFLOW: Final = ".github/workflows/release.yml"
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
      # v1 moves with each release; a commit in its place, as above, stays what you have read.
      - uses: {action}@v1
        with:
          mode: publish  # without it, it only plans and changes nothing
{inputs}
"""
_PLAIN: Final = re.compile(r"[\w.@+/-]+")
PREBUILT: Final = f"{DOCS}/prebuilt.md#python-cibuildwheel"
_DIST: Final = f"""\
# dist: ${{{{ runner.temp }}}}/dist  # with the wheels of jobs before this one: {PREBUILT}
"""


class Start(Struct, frozen=True):
    """The tags that start a release, what the workflow says of them, and one to push first; empty
    where nothing tells the next one.
    """

    glob: str = "v*"
    comment: str = "`git tag v1.2.3 && git push origin v1.2.3` starts a release"
    tag: str = ""
    prefix: str = "v"
    is_version: bool = True


class ReleaseJob(Struct, frozen=True, kw_only=True):
    """What the workflow is made of: what each ecosystem asks for, and which packages git does not
    have whole, with one of the files. Of today's versions, some are `taken` by tags, and some are
    those of a commit `between` two tags.
    """

    setups: Mapping[str, Setup]
    unbuilt: Mapping[PackageId, str]
    start: Start
    taken: Sequence[str]
    between: Sequence[Package]

    @property
    def pushed(self) -> set[str]:
        return {name for name, setup in self.setups.items() if setup.pushes}


def make_job(found: Inventory, tried: Tried, session: Session) -> ReleaseJob:
    """By the order of the plan, where there is one."""
    packages = tried.plan.packages if tried.plan else ()
    order = {each.package.id: n for n, each in enumerate(packages)}
    built = [*sorted(found.chosen, key=lambda it: order.get(it.id, 0)), *found.waiting]
    wanted = {
        name: it.setup
        for name, it in session.ecosystems.items()
        if name in found.ecosystems and it.setup is not None
    }
    installing = {name for name, setup in wanted.items() if setup.installs}
    unbuilt = _find_unbuilt([it for it in found.chosen if it.id.ecosystem in installing], found)
    native = {each.id.ecosystem for each in found.native}
    setups = {
        name: replace(
            _add_install(setup, name, built, found.ground.top, unbuilt),
            inputs=setup.inputs + (_DIST if name in native else ""),
        )
        for name, setup in wanted.items()
    }
    for name in setups.keys() & {each.id.ecosystem for each in found.chosen if each.prebuilt}:
        steps = setups[name].steps + "".join(_list_fills(found.ground))
        setups[name] = replace(setups[name], steps=steps)
    taken = _find_taken(found.chosen, found.ground.tags, found.own_tags)
    between = [each for each in found.from_tags if is_between_tags(each)]
    is_apart = any(setup.pushes for setup in setups.values())
    start = _find_start(found.chosen, [*taken, *between], found.ground.tags, is_apart=is_apart)
    return ReleaseJob(setups=setups, unbuilt=unbuilt, start=start, taken=taken, between=between)


def _find_start(
    chosen: Sequence[Package],
    undecided: Collection[object],
    tags: Collection[str],
    *,
    is_apart: bool,
) -> Start:
    """The version of all packages, as a tag of the form that these have, unless something of it is
    `undecided`; where they have several, or their registries tags of their own, a number, which is
    no version of any.
    """
    versions = {each.version for each in chosen}
    if is_apart or len(versions) > 1:
        tag = next(each for n in count(1) if (each := f"release-{n}") not in tags)
        how = f"`git tag {tag} && git push origin {tag}` starts a release"
        return Start(
            "release-*", f"{how}; packages have versions of their own", tag, is_version=False
        )
    version = "" if undecided or not versions else versions.pop()
    is_bare = not any(re.match(r"v\d", it) for it in tags)
    if is_bare and any(re.match(r"\d+\.\d", it) for it in tags):
        how = "`git tag 1.2.3 && git push origin 1.2.3` starts a release"
        return Start("[0-9]*", how, version, prefix="")
    return Start(tag=version and f"v{version}")


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


def _find_unbuilt(packages: Sequence[Package], found: Inventory) -> dict[PackageId, str]:
    """The packages that a script builds, and that lead to a file that git does not have, which is
    named, nor would have, once what is there is committed.
    """
    tree, root = found.ground.survey.tree, found.ground.config.root
    if tree.untracked is None:
        return {}
    tracked = sorted([*tree.files, *tree.untracked])
    unbuilt = {}
    for each in packages:
        place = each.directory.relative_to(root).as_posix()
        below = "" if place == "." else f"{place}/"
        above = (it for it in each.directory.parents if it.is_relative_to(root))
        if any(_has_build(it / each.manifest.name) for it in (each.directory, *above)):
            within = tracked[bisect_left(tracked, below) :]
            own = takewhile(methodcaller("startswith", below), within)
            names = {it.removeprefix(below) for it in own}
            composition = found.targets[each.id.ecosystem].composition
            if missing := composition.find_unbuilt(each, names):
                unbuilt[each.id] = missing
    return unbuilt


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


def _list_fills(ground: Ground) -> Iterator[str]:
    """The steps without which nothing is there that other tools have built."""
    place = ground.config.root.relative_to(ground.top)
    runs = [f"- run: {each}" for each in list_publishing(ground.config.root)]
    for each in runs or ["# - run: ..."]:
        yield f"{each}  # publishes into maven.directories\n"
        yield f"  working-directory: {_quote(place)}\n" if runs and place.parts else ""


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
            yield f"  working-directory: {_quote(each.directory.relative_to(top))}"


def _has_build(manifest: Path) -> bool:
    return bool(text_in(table_in(read_document(manifest), "scripts"), "build"))


def _enter(where: Path, top: Path) -> str:
    return f"cd {shlex.quote(where.relative_to(top).as_posix())} && " if where != top else ""


def _quote(place: Path) -> str:
    """For YAML. Raises PathError, as GitHub looks for expressions in any text.

    https://docs.github.com/en/actions/reference/workflows-and-actions/expressions
    """
    name = place.as_posix()
    if "${{" in name:
        raise PathError(
            f"{visible(name)}: a workflow cannot name a directory with `${{{{` in its name",
            hint="Rename the directory, or run in the root of the repository.",
        )
    return json.dumps(name, ensure_ascii=False)


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
    place = f"working-directory: {_quote(below)}\n" if below.parts else ""
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


def is_anothers(top: Path) -> bool:
    """Whether a workflow is in the place of ours, and none here publishes with ReleaseKit."""
    own = (
        name
        for _, workflow in read_workflows(top, "releasekit")
        for name, _ in list_own_jobs(workflow)
    )
    return os.path.lexists(top / WORKFLOW) and next(own, None) is None
