"""`releasekit change`: one change file, made of flags or of answers at a terminal."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Final

from releasekit.cli.commands.change import ChangeInputs
from releasekit.cli.scope import open_scope
from releasekit.cli.session import list_packages, open_command, say
from releasekit.cli.terminal import Terminal
from releasekit.config.package_filter import find_package
from releasekit.errors import ConfigError, PathError, describe_os_error, did_you_mean
from releasekit.host import durable
from releasekit.problems import Problem
from releasekit.text.escape import visible
from releasekit.versions.addition import find_addition, find_silent
from releasekit.versions.change_files import (
    LEVELS,
    LEVELS_IN_WORDS,
    choose_name,
    format_change_file,
    make_entry,
)
from releasekit.versions.decision import decide_versions

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from releasekit.cli.session import Session
    from releasekit.config.config import Config, PlanConfig
    from releasekit.model import Package
    from releasekit.versions.change_files import ChangeEntry

_USAGE: Final = 'Write releasekit change --package NAME=LEVEL --text "what changed".'


async def run(config: Config, session: Session) -> int:
    """Ask for what no flag says, write the file, and print its path; with `check`, say for which
    packages one is missing.
    """
    inputs = config.own(ChangeInputs)
    if inputs.check:
        return await _check(config, session)
    async with open_command(config, session, "cancelled; nothing was written") as group:
        packages, aside, _ = await list_packages(group, config, session)
        asked = _read_flags(inputs.package, packages, aside)
        text = inputs.text
        if terminal := Terminal.at(session.out, session.credentials.environment):
            names = [*asked] or await _ask_packages(terminal, config, packages, aside)
            asked = {name: asked.get(name) or await _ask_level(terminal, name) for name in names}
            text = text or await _ask(terminal, "What changed, for its users: ")
    if missing := _name_missing(asked, text):
        raise ConfigError(missing, hint=_USAGE, problem=Problem.COMMAND_LINE)
    entries = [entry for name, level in asked.items() if (entry := make_entry(name, level))]
    path = await asyncio.to_thread(_write, config.root / config.versioning.directory, entries, text)
    say(str(path), session)
    return 0


async def _check(config: Config, session: Session) -> int:
    async with open_command(config, session) as group:
        scope = await open_scope(group, config, session)
        request = session.ci.read_pull_request()
        since = config.own(ChangeInputs).since
        addition = await find_addition(scope.commits, since, request)
        decided = await decide_versions(scope, title=addition.title, only_asked=True)
    silent = find_silent(decided, addition)
    for each in silent:
        say(f"nothing speaks for {each}", session)
    return 1 if silent else 0


def _read_flags(words: Iterable[str], packages: Sequence[Package], aside: str) -> dict[str, str]:
    """The names of packages, as the file will have them, with their levels or versions; those are
    empty where they are not given.
    """
    asked: dict[str, str] = {}
    for word in words:
        wanted, _, level = word.partition("=")
        name = _find_name(wanted, packages, aside)
        if name in asked:
            raise ConfigError(f"--package names {visible(name)} twice; write it once")
        if level and make_entry(name, level) is None:
            raise ConfigError(f"--package {visible(word)}: {_describe_no_level(level)}")
        asked[name] = level
    return asked


def _find_name(wanted: str, packages: Sequence[Package], aside: str) -> str:
    """What the file calls the package: its name, as other tools write it, unless several have it.
    Raises ConfigError.
    """
    package = find_package(wanted, packages, aside)
    if package.unpublishable:
        raise ConfigError(
            f"{package.id} is never published, so it has no versions: {package.unpublishable}",
            hint="Name the packages that hold it.",
        )
    count = Counter(each.id.name for each in packages)
    return package.id.name if count[package.id.name] == 1 else str(package.id)


def _describe_no_level(word: str) -> str:
    meant = did_you_mean(word, LEVELS) or f"; write {LEVELS_IN_WORDS}"
    return f"{visible(word)!r} is no level{meant}"


def _name_missing(asked: Mapping[str, str], text: str) -> str:
    """What nobody was there to be asked for; empty where nothing is missing."""
    if not asked:
        return "no package is named, and no terminal is there to ask for one"
    for name, level in asked.items():
        if not level:
            return f"{visible(name)} has no level, and no terminal is there to ask for it"
    return "" if text else "the text is missing, and no terminal is there to ask for it"


async def _ask_packages(
    terminal: Terminal, config: PlanConfig, packages: Sequence[Package], aside: str
) -> list[str]:
    about = config.package_filter
    offered = [each for each in packages if not each.unpublishable and about.has_package(each.id)]
    if not offered:
        raise ConfigError(
            f"{config.root}: there is no package here that is published",
            hint="Start in the root of the workspace.",
            problem=Problem.NO_PACKAGES,
        )
    numbered = {}
    for number, package in enumerate(sorted(offered, key=lambda each: each.id), 1):
        terminal.say(f"{number}  {package}")
        numbered[str(number)] = str(package.id)
    while True:
        answer = await _ask(terminal, "Packages, by number or name: ")
        words = answer.replace(",", " ").split()
        try:
            if names := [_find_name(numbered.get(word, word), packages, aside) for word in words]:
                return list(dict.fromkeys(names))
        except ConfigError as error:
            terminal.say(str(error))
            terminal.say(error.hint)


async def _ask_level(terminal: Terminal, name: str) -> str:
    while True:
        level = await _ask(terminal, f"Level of {name} ({', '.join(LEVELS)}, or a version): ")
        if make_entry(name, level):
            return level
        terminal.say(_describe_no_level(level))


async def _ask(terminal: Terminal, question: str) -> str:
    """Raises ConfigError for an empty answer, and where there is none."""
    while answer := await terminal.ask(visible(question)):
        if answer.isprintable():
            return answer
        terminal.say("The answer holds a control character; write it again.")
    raise ConfigError(
        "nothing was written, because an answer is missing", problem=Problem.COMMAND_LINE
    )


def _write(directory: Path, entries: Sequence[ChangeEntry], text: str) -> Path:
    try:
        path = directory / choose_name(text, durable.names(directory))
        durable.make_directory(directory)
        durable.replace(path, format_change_file(entries, text).encode())
    except OSError as error:
        raise PathError(
            f"{describe_os_error(error)}; correct what is in the way of {directory}"
        ) from error
    return path
