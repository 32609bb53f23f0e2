"""mvn: whether it can run here, the properties that its arguments set, and why it failed."""

from __future__ import annotations

import asyncio
import re
import shlex
import sys
import zipfile
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from releasekit.ecosystems.maven import TOOL, layout
from releasekit.ecosystems.maven.signing import NO_GPG, check_gpg
from releasekit.ecosystems.shared.tools import find_tool
from releasekit.errors import BuildFailed, CommandFailed, ConfigError, PathError
from releasekit.host.files import read_parsed
from releasekit.host.streams import last_lines
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from releasekit.ecosystems.maven import MavenOptions
    from releasekit.host.process import Processes
    from releasekit.model import Package
    from releasekit.state.run_logs import Log


_JDK: Final = "Install a JDK (actions/setup-java does), and put it on PATH or into JAVA_HOME."
_CORE: Final = re.compile(r"maven-core-(\d+\.\d+\.\d+).*\.jar")
_PROPERTIES: Final = "META-INF/maven/org.apache.maven/maven-core/pom.properties"
MAX_CONFIG_BYTES: Final = 64 * 1024
_ERROR: Final = re.compile(r"\[ERROR\].* on project (?P<artifact>[\w.+-]+): ?(?P<why>.*)")
_MARK: Final = "[ERROR] "
_HELP: Final = re.compile(r"\s*-> \[Help \d+\]$")
# The copy of the sources that a build works on.
_COPY: Final = re.compile(r"^/.*/work/maven/at[^/]*/sources/")
_GOAL: Final = re.compile(r"\[INFO\] --- \S+ \([^()]*\) @ (?P<artifact>[\w.+-]+) ---")
# Surefire 2 and 3: https://maven.apache.org/surefire/maven-surefire-plugin/
_TESTS: Final = re.compile(r"(?:Failed tests|Tests in error|Failures|Errors): *(?P<first>.*)")
# https://maven.apache.org/plugins/maven-deploy-plugin/deploy-mojo.html#deployAtEnd
_DEFERRED: Final = "[INFO] Deferring deploy for "
_MAX_REASON: Final = 300
_MAX_LINE: Final = 2_000
# Many tests may pass before one of the module fails.
_SEARCHED: Final = 20_000
_MAX_LOG_BYTES: Final = 16 * 1024 * 1024


async def find_mvn(
    packages: Sequence[Package],
    options: MavenOptions,
    processes: Processes,
    environment: Mapping[str, str],
    root: Path,
) -> str:
    """As `Target.find_tool`. A wrapper in the workspace may fetch a Maven first: it is asked
    nothing.
    """
    try:
        lacks_gpg = bool(options.sign) and not check_gpg(processes)
    except PathError as error:
        raise PathError(f"maven: {error}", hint=error.hint) from error
    if all(package.prebuilt for package in packages):
        return ""
    command = options.command
    found = None if "/" in command else processes.which(command)
    is_there = found is not None or "/" in command
    # Without a JDK, mvn says no version.
    if is_there and processes.which("java") is None and not _has_java_home(environment):
        raise _missing("java is not on PATH, and JAVA_HOME is not set", _JDK)
    if is_there and lacks_gpg:
        raise _missing("[maven] sign is set, and gpg is not on PATH", NO_GPG)
    if "/" in command:
        return command
    known = await asyncio.to_thread(_read_version, Path(found)) if found else ""
    return await find_tool(
        TOOL, processes, ecosystem="maven", cwd=root, program=command, known=known
    )


def _has_java_home(environment: Mapping[str, str]) -> bool:
    """Files that mvn reads first may set it, too. https://maven.apache.org/configure.html"""
    files = (Path("/etc/mavenrc"), Path(environment.get("HOME", "/"), ".mavenrc"))
    return bool(environment.get("JAVA_HOME")) or any(path.exists() for path in files)


def _missing(message: str, hint: str) -> ConfigError:
    return ConfigError(f"maven: {message}", hint=hint, problem=Problem.TOOL_MISSING)


def _read_version(command: Path) -> str:
    """The version of the installation of a program, which starts slowly; empty for others, such as
    shims.
    """
    library = command.resolve().parent.parent / "lib"
    for path in library.glob("maven-core-*.jar"):
        if match := _CORE.fullmatch(path.name):
            return match[1]
        # Debian's name of it says only `3.x`.
        with suppress(OSError, KeyError, zipfile.BadZipFile), zipfile.ZipFile(path) as jar:
            lines = jar.read(_PROPERTIES).decode().splitlines()
            return next((it[8:] for it in lines if it.startswith("version=")), "")
    return ""


def read_overrides(root: Path, top: Path, options: MavenOptions) -> dict[str, str]:
    """Of `.mvn/maven.config`, `[maven] args` and `[maven] properties`: the last one wins."""
    path, words = find_maven_config(root, top), list[str]()
    if path is not None:
        words = read_parsed(
            path, _split_words, complaint="is not a list of arguments", max_bytes=MAX_CONFIG_BYTES
        )
    configured = dict(_parse_properties(words))
    return {**configured, **dict(_parse_properties(options.args)), **options.properties}


def find_maven_config(root: Path, top: Path) -> Path | None:
    """The arguments in the nearest `.mvn` at or above the reactor.

    https://maven.apache.org/configure.html#mvn-maven-config-file
    """
    levels = [each for each in (top, *top.parents) if each.is_relative_to(root)]
    settings = next((level / ".mvn" for level in levels if (level / ".mvn").is_dir()), None)
    path = settings and settings / "maven.config"
    return path if path and path.is_file() else None


def _split_words(text: str) -> list[str]:
    # Lines that begin with # are comments from Maven 3.9 on, and never were arguments before.
    return [word for line in text.splitlines() if line[:1] != "#" for word in shlex.split(line)]


def _parse_properties(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Those that `-D` sets."""
    following = iter(arguments)
    for argument in following:
        text = ""
        if argument in {"-D", "--define"}:
            text = next(following, "")
        elif argument.startswith(("-D", "--define=")):
            text = argument.removeprefix("--define=").removeprefix("-D")
        name, equals, value = text.partition("=")
        if name:
            yield name, value if equals else "true"


def find_arguments(text: bytes) -> dict[str, tuple[int, int]]:
    """Where a maven.config has the values of properties; where quotes stand within, not all."""
    lines = re.sub(rb"(?m)^#.*", lambda comment: b" " * len(comment[0]), text)
    given = re.finditer(rb"""(?<![^\s"'])(?:-D|--define=)([^\s"'=]+)=["']?([^\s"']*)""", lines)
    return {match[1].decode("utf-8", "replace"): match.span(2) for match in given}


def explain_unbuilt(package: Package, failure: CommandFailed | None, log: Log) -> BuildFailed:
    """Why mvn did not deploy a package, in one line, from the last lines of its log; blocks."""
    if failure is None:
        return BuildFailed(
            f"{package.id}: the build deployed no {layout.pom_name(package)}",
            hint=f"A profile or a plugin may skip its deployment. {log.hint}",
            problem=Problem.BUILT_OTHERWISE,
        )
    reasons = _parse_reasons([line[:_MAX_LINE] for line in failure.log])
    artifact = layout.group_and_artifact(package)[1]
    why = reasons.get(artifact)
    if why is not None and "test failures" in why:
        found = _find_failed_test(artifact, last_lines(log.path, most=_SEARCHED))
        why = f"{why.rstrip('.')}: {found}" if found else why
    hint, premature = log.hint, False
    if why is not None:
        text = f"could not be built: {why[:_MAX_REASON]}"
    elif f"{package.id.name}:{package.version}" in _find_deferred(log.path):
        failed = f"{', '.join(sorted(reasons))} failed" if reasons else str(failure)
        text = f"was built, but `deployAtEnd` in the POM held it back: {failed}"
        hint = f"Take `deployAtEnd` out of the POM, so that it goes out once it is built. {hint}"
    elif reasons:
        text, premature = f"was not built: {', '.join(sorted(reasons))} failed before it", True
    else:
        text = f"could not be built: {failure}"
    message = f"{package.id}: {text}"
    return BuildFailed(
        message, log=failure.log, hint=hint, problem=failure.problem, premature=premature
    )


@lru_cache(maxsize=1)
def _find_deferred(log: Path) -> frozenset[str]:
    """The modules, as `group:artifact:version`, that waited for the last one of a mvn that ended;
    cached, since each of its packages asks.
    """
    lines = last_lines(log, most=sys.maxsize, max_bytes=_MAX_LOG_BYTES)
    return frozenset(
        line.removeprefix(_DEFERRED).removesuffix(" at end")
        for line in lines
        if line.startswith(_DEFERRED)
    )


def _parse_reasons(lines: Sequence[str]) -> dict[str, str]:
    """By project. The errors of a compiler follow, of which the first tells most.

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
            why = ": ".join([*said, *_find_details(lines[number:])])
        reasons[match["artifact"]] = why
    return reasons


def _find_details(following: Sequence[str]) -> Iterator[str]:
    """The first line that mvn adds, after those that announce it."""
    for line in following:
        detail = line.removeprefix(_MARK).strip()
        if detail == line or detail[:2] == "->" or _ERROR.search(line):
            return
        yield _COPY.sub("", detail.removesuffix(":"))
        if not detail.endswith(":"):
            return


def _find_failed_test(artifact: str, lines: Sequence[str]) -> str:
    """The first in the summary of the tests of this project; empty without one."""
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
