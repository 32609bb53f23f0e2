"""Why mvn has not built a package, in one line of all that it says."""

from __future__ import annotations

import re
import sys
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from releasekit.ecosystems.maven import layout
from releasekit.errors import BuildFailed, CommandFailed
from releasekit.host.streams import last_lines
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from releasekit.model import Package
    from releasekit.state.run_logs import Log

_ERROR: Final = re.compile(r"\[ERROR\].* on project (?P<artifact>[\w.+-]+): ?(?P<why>.*)")
_MARK: Final = "[ERROR] "
_HELP: Final = re.compile(r"\s*-> \[Help \d+\]$")
# Where a build finds its sources, which nobody else does.
_COPY: Final = re.compile(r"^/.*/work/maven/at[^/]*/sources/")
_GOAL: Final = re.compile(r"\[INFO\] --- \S+ \([^()]*\) @ (?P<artifact>[\w.+-]+) ---")
# Surefire 2 and 3: https://maven.apache.org/surefire/maven-surefire-plugin/
_TESTS: Final = re.compile(r"(?:Failed tests|Tests in error|Failures|Errors): *(?P<first>.*)")
# https://maven.apache.org/plugins/maven-deploy-plugin/deploy-mojo.html#deployAtEnd
_DEFERRED: Final = "[INFO] Deferring deploy for "
_MAX_REASON: Final = 300
_MAX_LINE: Final = 2_000
# A module that fails late may have tested many that did not.
_SEARCHED: Final = 20_000
_MAX_LOG_BYTES: Final = 16 * 1024 * 1024


def not_built(package: Package, failure: CommandFailed | None, log: Log) -> BuildFailed:
    """Why a package was not deployed, from the last lines of mvn; blocks."""
    if failure is None:
        return BuildFailed(
            f"{package.id}: the build deployed no {layout.pom_name(package)}",
            hint=f"A profile or a plugin may skip its deployment. {log.hint}",
            problem=Problem.BUILT_OTHERWISE,
        )
    reasons = _reasons([line[:_MAX_LINE] for line in failure.log])
    artifact = layout.group_and_artifact(package)[1]
    why = reasons.get(artifact)
    if why is not None and "test failures" in why:
        found = _first_failed_test(artifact, last_lines(log.path, most=_SEARCHED))
        why = f"{why.rstrip('.')}: {found}" if found else why
    hint = log.hint
    if why is not None:
        text = f"could not be built: {why[:_MAX_REASON]}"
    elif f"{package.id.name}:{package.version}" in _held_back(log.path):
        failed = f"{', '.join(sorted(reasons))} failed" if reasons else str(failure)
        text = f"was built, but `deployAtEnd` in the POM held it back: {failed}"
        hint = f"Take `deployAtEnd` out of the POM, so that it goes out once it is built. {hint}"
    elif reasons:
        text = f"was not built: {', '.join(sorted(reasons))} failed before it"
    else:
        text = f"could not be built: {failure}"
    message = f"{package.id}: {text}"
    return BuildFailed(message, log=failure.log, hint=hint, problem=failure.problem)


@lru_cache(maxsize=1)
def _held_back(log: Path) -> frozenset[str]:
    """The modules, as `group:artifact:version`, that waited for the last one; of a mvn that has
    ended, and for all of its packages.
    """
    lines = last_lines(log, most=sys.maxsize, max_bytes=_MAX_LOG_BYTES)
    return frozenset(
        line.removeprefix(_DEFERRED).removesuffix(" at end")
        for line in lines
        if line.startswith(_DEFERRED)
    )


def _reasons(lines: Sequence[str]) -> dict[str, str]:
    """By project. A compiler's errors are in the lines that follow; the first of them tells most.

    https://maven.apache.org/plugins/maven-compiler-plugin (CompilationFailureException)
    """
    reasons = {}
    for number, line in enumerate(lines, 1):
        match = _ERROR.search(line)
        if match is None:
            continue
        why = _HELP.sub("", match["why"].strip())
        if not why or why.endswith((":", "failure")):
            said = dict.fromkeys(filter(None, why.rstrip(":").split(": ")))
            why = ": ".join([*said, *_details(lines[number:])])
        reasons[match["artifact"]] = why
    return reasons


def _details(following: Sequence[str]) -> Iterator[str]:
    """The first line that mvn adds, and those before it that only announce it."""
    for line in following:
        detail = line.removeprefix(_MARK).strip()
        if detail == line or detail[:2] == "->" or _ERROR.search(line):
            return
        yield _COPY.sub("", detail.removesuffix(":"))
        if not detail.endswith(":"):
            return


def _first_failed_test(artifact: str, lines: Sequence[str]) -> str:
    """In the summary that the tests of this project end with."""
    at_work, announced = "", False
    for line in lines:
        if goal := _GOAL.match(line):
            at_work = goal["artifact"]
        said = line.removeprefix(_MARK).strip()
        if announced and at_work == artifact and said:
            return said
        announced = False
        if found := _TESTS.fullmatch(said):
            if at_work == artifact and found["first"]:
                return found["first"]
            announced = not found["first"]
    return ""
