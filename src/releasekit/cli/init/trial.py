"""What a releasekit.toml would say, and what the next `plan` makes of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from releasekit.cli.commands import COMMANDS
from releasekit.cli.prepare import prepare
from releasekit.config.file import take_apart
from releasekit.config.inputs import Declared
from releasekit.config.locations import FILENAME
from releasekit.errors import ReleasekitError
from releasekit.fields import replace
from releasekit.model import WarningName
from releasekit.plan.unlisted_packages import list_options, read_list, write_list
from releasekit.plan.warnings import refuse_errors
from releasekit.problems import OWN_REPOSITORY
from releasekit.state.history import History
from releasekit.text.bounds import parse_toml

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path

    from releasekit.aio import Group
    from releasekit.cli.session import Session
    from releasekit.config.config import Config, PlanConfig
    from releasekit.config.declaration import Manifests
    from releasekit.model import Package, Plan
    from releasekit.plan.unlisted_packages import NestedPackages

_CONFIG: Final = """\
#:schema https://raw.githubusercontent.com/{action}/v1/docs/releasekit.schema.json
# What the manifests do not say. All keys: https://github.com/{action}/blob/v1/docs/inputs.md
{lines}
"""
# Of a package that is left out for what `plan` says of it.
HOLDS: Final = "is new, and holds the others"


class Untold(Struct, frozen=True):
    """A package without a version, the one to tell of it, and the tag that has it, if one does."""

    package: Package
    version: str
    tag: str


class Proposal(Struct, frozen=True, kw_only=True):
    """What a releasekit.toml has to say beside the `config` of this run. Of the `unlisted` packages
    some are `meant` to be published: all, where the root has none.
    """

    config: PlanConfig
    unlisted: Sequence[NestedPackages]
    meant: Sequence[NestedPackages]
    untold: Sequence[Untold]
    excluded: Sequence[Package] = ()


class Tried(Struct, frozen=True, kw_only=True):
    """What the next `plan` makes of a draft: the plan, or why there is none."""

    draft: Proposal
    text: str
    plan: Plan | None = None
    refused: ReleasekitError | None = None


async def try_out(
    group: Group, given: Config, session: Session, draft: Proposal, names: Collection[str] | None
) -> Tried:
    """What the next `plan` makes of the draft, written for ecosystems of these `names`; None where
    nothing is written. Leaves out what that would refuse as a new name that is hardly meant, and
    nothing needs.
    """

    def write(it: Proposal) -> str:
        return "" if names is None else write_settings(it, session, names)

    while True:
        text = write(draft)
        config = join_settings(given, text, session) if text else given
        config = replace(config, command=COMMANDS["plan"])
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
            return Tried(draft=draft, text=text, refused=error)
        return Tried(draft=draft, text=text, plan=plan)


def join_settings(config: Config, text: str, session: Session) -> Config:
    """`config` with what a releasekit.toml of this text says."""
    declared = Declared.of(COMMANDS, session.ecosystems)
    file = take_apart(parse_toml(text), FILENAME, declared)
    excluded = file.texts.get("exclude-packages", "").splitlines()
    return replace(config, ecosystem_tables=file.tables, exclude_packages=tuple(excluded))


def write_settings(draft: Proposal, session: Session, names: Collection[str]) -> str:
    """The text of releasekit.toml, with the options of the ecosystems of these `names`; empty where
    it has nothing to say.
    """
    lines = "\n".join(_list_settings(draft, session, names))
    return _CONFIG.format(action=OWN_REPOSITORY, lines=lines) if lines else ""


def _list_settings(draft: Proposal, session: Session, names: Collection[str]) -> Iterator[str]:
    """What lies in no workspace is named in comments, because finding a package does not publish
    it, unless it is meant. So is what no tag names a version of.
    """
    if draft.excluded:
        yield "exclude-packages = ["
        for package in draft.excluded:
            yield f"    {write_list([str(package.id)])[1:-1]},  # {package.doubt or HOLDS}"
        yield "]"
    for name, ecosystem in session.ecosystems.items():
        if ecosystem.manifests is None:
            continue
        lines = [*_list_places(draft, name, ecosystem.manifests)]
        if ecosystem.setup and name in names and name not in draft.config.registries:
            lines += ecosystem.setup.options.splitlines()
        if lines:
            yield from (f"[{name}]", *lines)
        yield from _list_versions(draft, name, is_chosen=name in names)


def _list_places(draft: Proposal, name: str, manifests: Manifests) -> Iterator[str]:
    # Without releasekit.toml, the table holds what a root without a manifest takes in.
    taken_in = read_list(draft.config.ecosystem_tables, name, manifests.workspaces)
    written = {manifests.workspaces: taken_in} if taken_in else {}
    own = [it for it in draft.meant if it.ecosystem == name]
    written |= _list_beside(draft.config, manifests, own)
    yield from (f"{key} = {write_list(values)}" for key, values in written.items())
    for key, line in list_commented(draft, name, manifests).items():
        where = " in place of that line" if key in written else ""
        yield from (f"# in no workspace, and not published without this{where}:", f"# {line}")


def _list_versions(draft: Proposal, name: str, *, is_chosen: bool) -> Iterator[str]:
    untold = [each for each in draft.untold if each.package.id.ecosystem == name]
    if untold and (is_chosen or any(each.tag for each in untold)):
        yield f"[{name}.versions]"
        for each in untold:
            line = f"{key_of(each, draft.config.root)} = {json.dumps(each.version)}"
            why = "has no tag, and is not published without this"
            yield line if each.tag else f"# {line}  # {each.package.id.name} {why}"


def _list_beside(
    config: PlanConfig, manifests: Manifests, packages: Sequence[NestedPackages]
) -> dict[str, list[str]]:
    """The options that take in what lies in no workspace."""
    if not packages:
        return {}
    options = list_options(packages, manifests, config.root, config.ecosystem_tables)
    return {key: [*there, *more] for key, (there, more) in options.items()}


def list_commented(draft: Proposal, name: str, manifests: Manifests) -> dict[str, str]:
    """By their keys, the lines that publish what is not meant, too."""
    own = [each for each in draft.unlisted if each.ecosystem == name]
    meant = _list_beside(draft.config, manifests, [each for each in own if each in draft.meant])
    return {
        key: f"{key} = {write_list(values)}"
        for key, values in _list_beside(draft.config, manifests, own).items()
        if set(values) != set(meant.get(key, ()))
    }


def key_of(untold: Untold, root: Path) -> str:
    return write_list([untold.package.directory.relative_to(root).as_posix()])[1:-1]
