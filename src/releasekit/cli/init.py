"""The command init: the files that a first release takes, written for what the repository holds."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
from dataclasses import replace
from difflib import unified_diff
from itertools import groupby
from textwrap import indent
from typing import TYPE_CHECKING, Final

from releasekit.cli.session import open_command, open_targets, open_workspace, say
from releasekit.config.locations import FILENAME
from releasekit.errors import ConfigError, PathError, describe_os_error
from releasekit.git.remote import Remote
from releasekit.graph import reachable
from releasekit.host import durable
from releasekit.host.files import read_text, repository_of
from releasekit.host.forges import ForgePlace
from releasekit.plan.make import collect_packages, with_doubt
from releasekit.plan.other_tools import Deciding, describe_unread, find_unread
from releasekit.plan.unlisted_packages import (
    find_unlisted,
    list_options,
    mark_unread,
    read_list,
    write_list,
)
from releasekit.problems import DOCS, OWN_REPOSITORY
from releasekit.report.text import few
from releasekit.text.escape import log_line

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from releasekit.cli.session import Session
    from releasekit.config.config import Config
    from releasekit.config.declaration import Setup
    from releasekit.ecosystems.interface import Target
    from releasekit.model import Package
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
    tags: ["v*"]  # `git tag v1.2.3 && git push origin v1.2.3` starts a release
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
_NEXT: Final = """\

next:
1. Read what is written there, and commit it. `releasekit check` says what this machine lacks.
2. Once, for each registry:
{first}
   `releasekit trust` says of each package what is left.
3. Push a tag: git tag {tag} && git push origin {tag}
"""
_NEXT_ELSEWHERE: Final = """\
no workflow is written: the git remote {remote} is at {place.host}

next:
1. Copy the CI file from
   {docs}/{place.kind}.md
   and commit it. `releasekit check` says what this machine lacks.
2. Once, for each registry: do what that page says of tokens.
3. Push a tag: git tag {tag} && git push origin {tag}
"""


async def run(config: Config, session: Session) -> int:
    """Write what is not there yet, and say what a person does next."""
    async with open_command(config, session) as group:
        config, survey, services = await open_workspace(group, config, session)
        targets = await open_targets(group, config, session, services)
        top, remote = repository_of(config.root) or config.root, config.tagging.remote
        url = await Remote(remote, services.git).find_url()
        place = ForgePlace.of_remote(url)
    for line in survey.describe_unread(config.package_filter):
        say(mark_unread(line), session)
    say(survey.describe_foreign(config.root, config.package_filter), session)
    unlisted = find_unlisted(survey.nested, targets)
    chosen, doubted = _choose(config, targets, unlisted)
    names = {package.id.ecosystem for package in chosen} or {each.ecosystem for each in unlisted}
    setups = {
        name: ecosystem.setup
        for name, ecosystem in session.ecosystems.items()
        if name in names and ecosystem.setup is not None
    }
    is_for_github = place is None or place.kind == "github"
    files = {}
    if is_for_github:
        below = config.root.relative_to(top)
        files[top / WORKFLOW] = write_workflow(setups.values(), below)
    lines = _list_settings(config, session, unlisted, setups, doubted, alone=not chosen)
    if settings := "\n".join(lines):
        files[config.root / FILENAME] = _CONFIG.format(action=OWN_REPOSITORY, lines=settings)
    said: list[str] = []
    for path, text in files.items():
        said += await asyncio.to_thread(_place, path, text, dry_run=config.dry_run)
    for name in targets.keys() - names:
        for package in targets[name].workspace.packages[:1]:
            why = f"{package.id}: {package.unpublishable}"
            said.append(f"{name}: nothing to publish, and so nothing written for it: {why}")
    deciding = Deciding(packages=chosen, branch=config.branch, excluded=config.exclude_packages)
    unread = find_unread((top, config.root), deciding, config.written)
    said += describe_unread([replace(each, refused=False) for each in unread])
    first = "\n".join(_describe_first(name, setup, chosen) for name, setup in setups.items())
    tag = shlex.quote(f"v{chosen[0].version.removeprefix('v') if chosen else '1.0.0'}")
    following = (_NEXT if is_for_github else _NEXT_ELSEWHERE).format(
        first=first, tag=tag, remote=remote, place=place, docs=DOCS
    )
    said += following.splitlines()
    print("\n".join(map(log_line, said)), file=session.out)
    return 0


def _choose(
    config: Config, targets: Mapping[str, Target], unlisted: Sequence[NestedPackages]
) -> tuple[list[Package], list[Package]]:
    """The packages to publish, and those that hardly anybody means to, unless the others need them
    or there are no others. Raises ConfigError where there is nothing at all to publish.
    """
    if unlisted and not any(
        not package.unpublishable for one in targets.values() for package in one.workspace.packages
    ):
        return [], []
    found = [
        with_doubt(package, config.root)
        for package in collect_packages(targets, config.root, config.package_filter)
        if not package.unpublishable
    ]
    needs = {each.id: {need.on for need in each.dependencies} for each in found}
    meant = [each.id for each in found if not each.doubt] or [*needs]
    kept = reachable(meant, lambda each: needs.get(each, ()))
    return [p for p in found if p.id in kept], [p for p in found if p.id not in kept]


def write_workflow(setups: Collection[Setup], below: Path) -> str:
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
    text = _WORKFLOW.format(
        permissions=indent("\n".join(permissions), " " * 6),
        persist="true  # for the push of tags" if pushes else "false",
        steps=indent("".join(setup.steps for setup in setups), " " * 6),
        action=OWN_REPOSITORY,
        inputs=indent(place + "".join(setup.inputs for setup in setups), " " * 10),
    )
    return "".join(line for line in text.splitlines(keepends=True) if line.strip())


def _list_settings(
    config: Config,
    session: Session,
    unlisted: Sequence[NestedPackages],
    setups: Mapping[str, Setup],
    doubted: Sequence[Package],
    *,
    alone: bool,
) -> Iterator[str]:
    """Lines of releasekit.toml. What lies in no workspace is named in comments, because finding a
    package does not publish it, unless it is `alone` here.
    """
    if (config.root / FILENAME).exists():
        return
    if doubted:
        yield "exclude-packages = ["
        for package in doubted:
            yield f"    {write_list([str(package.id)])[1:-1]},  # {package.doubt}"
        yield "]"
    beside = {name: list(own) for name, own in groupby(unlisted, key=lambda one: one.ecosystem)}
    for name, ecosystem in session.ecosystems.items():
        manifests = ecosystem.manifests
        if manifests is None:
            continue
        # Without releasekit.toml, the table holds what a root without a manifest takes in.
        tables = config.ecosystem_tables
        taken_in = read_list(tables, name, manifests.workspaces)
        lines = [f"{manifests.workspaces} = {write_list(taken_in)}"] if taken_in else []
        if name in beside:
            options = list_options(beside[name], manifests, config.root, tables)
            for key, (there, more) in options.items():
                line = f"{key} = {write_list([*there, *more])}"
                if alone:
                    lines.append(line)
                else:
                    lines += ["# in no workspace, and not published without this:", f"# {line}"]
        if name in setups and name not in config.registries:
            lines += setups[name].options.splitlines()
        if lines:
            yield f"[{name}]"
            yield from lines


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
