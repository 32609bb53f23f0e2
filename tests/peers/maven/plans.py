"""What is planned of a reactor, beside what Maven's own ProjectBuilder makes of it."""

from __future__ import annotations

import functools
import json
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from peers import ours
from peers.maven.fixtures import Reactor, find_reactors
from peers.scenarios import EQUAL, Case, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_PROGRAM: Final = Path(__file__).with_name("Reactors.java")
_UNRESOLVED: Final = re.compile(
    r"Non-resolvable (?:parent|import)|Unresolveable build extension|Could not find artifact"
)

# Such a scenario says nothing about what is published.
# Of the parser of older Mavens.
_BROKEN: Final = re.compile(r"Illegal character 0xd8|Expected root element .* found '\w+:project'")
# What takes Maven's whole model to tell.
_BY_BUILD: Final = (
    "maven.md: Errors that only the whole model shows, such as a dependency without a version or "
    "an unknown packaging, make the build of the reactor fail before any of it is uploaded."
)
_OF_BUILD: Final = re.compile(
    r"Unknown packaging|must be a valid version but is|\.version' for .* is missing"
    r"|must specify an absolute path|must be 'true' or 'false'|recursive expression cycle"
    r"|is required to activate the profile|Unrecognised tag|expected START_TAG or END_TAG"
    r"|esource\.directory' is missing|forms aggregation cycle|introduces to cycle"
    r"|java\.net\.URISyntaxException"  # an extension without coordinates
    r"|systemPath' for .* (?:is missing|must be omitted)"
)
# Of what Maven takes and ReleaseKit refuses, by the id and what the message says.
_REFUSED: Final = (
    ("RK-219", "", "maven.md: A repository in the configuration of maven-deploy-plugin"),
    ("RK-221", "${", "limits.md: Coordinates with a property that only a parent on a registry"),
    ("RK-221", "which is no version", "limits.md: Versions with other characters"),
    ("RK-221", " is '..'", "limits.md: Group ids, artifact ids and versions with `..`"),
    ("RK-222", "", "problems.md: **Two packages have one name.**"),
    ("RK-304", "", "problems.md: Its users could not install that dependency."),
    ("RK-327", "", "limits.md: Packages with a `system`-scoped dependency on a file"),
)
_NAMED: Final = re.compile(r"packages in no workspace here: ([^\"]*)")
_OF_PROFILES: Final = "limits.md: Modules that only a profile lists"


def read_plans(*sources: Path) -> Iterator[Case]:
    for reactor, answer in ask(*sources):
        yield Case(name=reactor.name, judge=functools.partial(_judge_plan, reactor, answer))


@functools.cache
def ask(*sources: Path) -> list[tuple[Reactor, Mapping[str, Any]]]:
    """Each reactor with what Maven makes of it."""
    reactors = [*find_reactors(*sources)]
    with tempfile.TemporaryDirectory(prefix="releasekit-peers-") as scratch:
        roots = [Path(scratch, str(at), "repository").resolve() for at in range(len(reactors))]
        for reactor, root in zip(reactors, roots, strict=True):
            reactor.lay(root)
        answers = ask_maven([*zip(reactors, roots, strict=True)], Path(scratch, "local"))
    return [*zip(reactors, answers, strict=True)]


def find_home() -> Path:
    """Of the mvn that builds."""
    done = subprocess.run(["mvn", "--version"], capture_output=True, text=True, check=True)
    return Path(re.sub(r"\x1b\[[\d;]*m", "", done.stdout).split("Maven home: ")[1].split("\n")[0])


def ask_maven(laid: Sequence[tuple[Reactor, Path]], local: Path) -> list[Mapping[str, Any]]:
    home = find_home()
    lines = [
        "\t".join([str(root / reactor.top / "pom.xml"), str(root), *reactor.arguments])
        for reactor, root in laid
    ]
    argv = ["java", "-cp", f"{home}/lib/*:{home}/boot/*", str(_PROGRAM), str(local)]
    done = subprocess.run(argv, input="\n".join(lines), capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    for (_, root), answer in zip(laid, answers, strict=True):
        for each in answer.get("projects", ()):
            each["file"] = Path(each["file"]).relative_to(root).as_posix()
    return answers


def _judge_plan(reactor: Reactor, answer: Mapping[str, Any], directory: Path) -> Verdict:
    root = directory / "repository"
    # A wrapper is asked for no version, which would start a JVM for each.
    lay(reactor, root, "./mvnw")
    planned = ours.plan(root, "--ecosystem", "maven")
    if answer["errors"]:
        if planned.code:
            return EQUAL
        errors = "\n".join(answer["errors"])
        if _UNRESOLVED.search(errors) or _BROKEN.search(errors):
            return Verdict("unusable", errors)
        if not planned.packages:
            return EQUAL
        if all(_OF_BUILD.search(each) for each in answer["errors"]):
            return Verdict("explained", _BY_BUILD)
        return Verdict("fault", f"Maven refuses it\n{errors}\n{planned.out}{planned.error}")
    if planned.code:
        for problem, words, why in _REFUSED:
            if planned.refuses(problem) and words in planned.error:
                return Verdict("explained", why)
        return Verdict("fault", f"{planned.error}\n{answer}")
    projects = answer["projects"]
    wrong = _compare(planned.packages, projects)
    if wrong and (named := _NAMED.search(planned.out)):
        inside = [each for each in projects if not _is_named(each, reactor.top, named[1])]
        if not _compare(planned.packages, inside):
            return Verdict("explained", _OF_PROFILES)
    return Verdict("fault", f"{wrong}\n{planned.error}{planned.out}") if wrong else EQUAL


def lay(reactor: Reactor, root: Path, command: str) -> None:
    """With a releasekit.toml that names it."""
    reactor.lay(root)
    shutil.rmtree(root / ".mvn" / "wrapper", ignore_errors=True)
    arguments, top = json.dumps(reactor.arguments), json.dumps(reactor.top)
    (root / "releasekit.toml").write_text(
        f'[maven]\ncommand = "{command}"\nreactors = [{top}]\nargs = {arguments}\n'
    )


def _is_named(project: Mapping[str, Any], top: str, named: str) -> bool:
    where = Path(project["file"]).parent
    if top != ".":
        where = where.relative_to(top)
    return bool(re.search(rf"\b{re.escape(where.as_posix())}\b", named))


def _compare(
    packages: Sequence[Mapping[str, Any]], projects: Sequence[Mapping[str, Any]]
) -> list[object]:
    public = {
        each["name"]: each["version"]
        for each in projects
        if not each["skipped"] and not each["version"].endswith("SNAPSHOT")
    }
    ours = {each["name"]: each["version"] for each in packages}
    wrong: list[object] = [*sorted(public.items() ^ ours.items())]
    edges = {
        each["name"]: {need["on"].partition(":")[2] for need in each["dependencies"]}
        for each in packages
    }
    upstream = {each["name"]: {*each["upstream"]} for each in projects}
    # Of these, Maven takes no account when it orders a reactor.
    managed = {each["name"]: {*each["managed"]} for each in projects}
    for name, wanted in upstream.items():
        if name in edges:
            missed = {on for on in wanted & edges.keys() if on not in _reach(name, edges)}
            wrong += [f"{name} needs {on}" for on in sorted(missed)]
            made_up = {
                on
                for on in edges[name] - _reach(name, upstream)
                if on.partition(":")[2] not in managed[name]
            }
            wrong += [f"{name} does not need {on}" for on in sorted(made_up)]
    return wrong


def _reach(name: str, edges: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    pending = [*edges.get(name, ())]
    while pending:
        each = pending.pop()
        if each not in found:
            found.add(each)
            pending += edges.get(each, ())
    return found
