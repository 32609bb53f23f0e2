"""Workflows of GitHub that publish packages, with ReleaseKit and with other tools. Beside ours, two
publishers race for each version: what one of them has uploaded, the other takes for a failure.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from releasekit.ecosystems.shared.documents import table_in, text_in
from releasekit.errors import ConfigError
from releasekit.host.files import inside, read_parsed
from releasekit.report.text import few
from releasekit.text.escape import clip, visible
from releasekit.text.yaml_text import MAX_YAML_BYTES, parse_yaml

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

WORKFLOWS: Final = ".github/workflows"
_MAX_WORKFLOWS: Final = 200
_MAX_SHOWN: Final = 60
# Actions that publish, each with the inputs that say so where it can do other things, and what one
# of these has to look like.
_ACTIONS: Final = {
    # https://docs.pypi.org/trusted-publishers/using-a-publisher/
    "pypa/gh-action-pypi-publish": ("", ""),
    # https://github.com/changesets/action#inputs, and from its version 2 on the other one
    "changesets/action": ("publish publish-script", r"\S"),
    # https://github.com/JS-DevTools/npm-publish
    "js-devtools/npm-publish": ("", ""),
    # https://release-plz.dev/docs/github/quickstart
    "release-plz/action": ("command", r"(?!release-pr)"),
    "marcoieni/release-plz-action": ("command", r"(?!release-pr)"),
    "katyo/publish-crates": ("", ""),
    # https://github.com/PyO3/maturin-action#inputs
    "pyo3/maturin-action": ("command", r"upload|publish"),
    # https://python-semantic-release.readthedocs.io/en/latest/configuration/automatic-releases/
    "python-semantic-release/publish-action": ("", ""),
    "cycjimmy/semantic-release-action": ("", ""),
    # The tag of a Go module publishes it. https://github.com/googleapis/release-please-action
    "googleapis/release-please-action": ("skip-github-release", r"(?!true)"),
    "google-github-actions/release-please-action": ("skip-github-release", r"(?!true)"),
}
# The gaps are bounded, so that a long line takes no long time. pkg-pr-new publishes to a place of
# its own: https://github.com/stackblitz-labs/pkg.pr.new
_COMMAND: Final = re.compile(
    r"""(?x) (?<![\w./-]) (?:
    (?:npm|pnpm|yarn|bun|lerna|nx|changeset|uv|poetry|hatch|flit|pdm|maturin)
        (?:\s+ (?!(?:exec|dlx|x|pkg-pr-new)\s) [^\s|;&]{1,100}){0,9}? \s+ publish (?![\w:./=-])
    | cargo (?:\s+ [+-]\S{1,50}){0,5} (?:\s+ (?:workspaces|ws))? \s+ publish (?![\w:./=-])
    | (?:twine|maturin) \s+ upload \b
    | (?:\./)? mvnw? (?:\s+ [^\s|;&]{1,100}){0,20}?
        \s+ (?:deploy|deploy:deploy|release:perform) (?![\w:./=-])
    | semantic-release (?![\w:./=-])
    | release-plz \s+ release (?![\w:./=-])
    | (?:npm \s+ run|pnpm(?: \s+ run)?|yarn(?: \s+ run)?|bun \s+ run|make|just) \s+
        release (?![\w:./=-])
    )"""
)
_OWN_ACTION: Final = re.compile(r"[^/@]{1,100}/releasekit-action@.+")
_OWN_COMMAND: Final = re.compile(r"\breleasekit(?:-action)? +publish\b")
_CALLED: Final = re.compile(r"[^./][^@]*/\.github/workflows/[^@]*(?:publish|release)[^@]*@.+")


class PublishingWorkflow(Struct, frozen=True):
    """A workflow, by the name of its file, and what starts it. `steps` say what publishes, with its
    job; or `unread` is why that is not known.
    """

    name: str
    events: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    unread: str = ""


def read_workflows(top: Path, word: str = "") -> Iterator[tuple[str, object]]:
    """Those of the repository at `top`, by the names of their files, or why one is not read; None
    for what does not have this `word`, since to parse a file takes long.
    """

    def parse(text: str) -> object:
        return parse_yaml(text) if word in text else None

    directory = top / WORKFLOWS
    for path in islice(sorted(directory.glob("*.y*ml")), _MAX_WORKFLOWS):
        name = f"{WORKFLOWS}/{visible(path.name)}"
        try:
            real = inside(top, path, where=name)
            wrong = "is not valid YAML"
            yield name, read_parsed(real, parse, complaint=wrong, max_bytes=MAX_YAML_BYTES)
        except ConfigError as error:
            yield name, error


def list_own_jobs(workflow: object) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The jobs that publish with ReleaseKit, by name: each has a list of steps."""
    for name, job in table_in(workflow, "jobs").items():
        steps = job.get("steps") if isinstance(job, dict) else None
        if isinstance(steps, list) and any(map(_is_own, steps)):
            yield name, job


def _is_own(step: object) -> bool:
    """A dry run, which checks pull requests, does not publish."""
    if _OWN_ACTION.fullmatch(text_in(step, "uses")):
        given = table_in(step, "with")
        return text_in(given, "mode") == "publish" and given.get("dry-run") not in (True, "true")
    return _runs_own_command(text_in(step, "run"))


# An alias lets thousands of steps have one long script.
@cache
def _runs_own_command(script: str) -> bool:
    lines = script.replace("\\\n", " ").splitlines()
    return any(_OWN_COMMAND.search(line) and "--dry-run" not in line for line in lines)


def find_publishers(top: Path) -> Iterator[PublishingWorkflow]:
    """Those of the repository at `top`."""
    for name, read in read_workflows(top):
        if isinstance(read, ConfigError):
            yield PublishingWorkflow(name, unread=str(read))
        elif steps := tuple(dict.fromkeys(_list_steps(read))):
            yield PublishingWorkflow(name, tuple(_list_events(read)), steps)


def describe_publishers(found: Iterable[PublishingWorkflow]) -> Iterator[str]:
    """A sentence for each: what is to be removed from it."""
    for each in found:
        if each.unread:
            yield f"ReleaseKit cannot tell whether {each.name} publishes too: {each.unread}"
        else:
            on = f" on {few(list(each.events))}" if each.events else ""
            yield (
                f"{each.name} publishes too{on}: {few(list(each.steps))}. Two publishers race for "
                "each version: before the first release from here, remove that from the file, or "
                "delete the file"
            )


def _list_steps(workflow: object) -> Iterator[str]:
    for name, job in table_in(workflow, "jobs").items():
        if not isinstance(job, dict):
            continue
        where = f"job {_shorten(str(name))}"
        if _CALLED.fullmatch(called := text_in(job, "uses")):
            yield f"{_shorten(called.partition('@')[0])} ({where})"
        steps = job.get("steps")
        for step in steps if isinstance(steps, list) else ():
            if said := _find_publishing(step):
                yield f"{said} ({where})"


def _find_publishing(step: object) -> str:
    """What of a step publishes; empty where nothing does."""
    action = text_in(step, "uses").partition("@")[0].casefold()
    if action in _ACTIONS:
        keys, wanted = _ACTIONS[action]
        given = [str(table_in(step, "with").get(key, "")) for key in keys.split() or [""]]
        publishes = any(re.match(wanted, each.casefold()) for each in given)
        return _shorten(text_in(step, "uses").partition("@")[0]) if publishes else ""
    return _find_command(text_in(step, "run"))


@cache  # as above
def _find_command(script: str) -> str:
    for line in script.replace("\\\n", " ").splitlines():
        said = line.strip()
        if not said.startswith("#") and "--dry-run" not in said and (it := _COMMAND.search(said)):
            return f"`{_shorten(it[0])}`"
    return ""


def _list_events(workflow: object) -> Iterator[str]:
    # To YAML 1.1, `on` is true.
    found = workflow.get("on", workflow.get(True)) if isinstance(workflow, dict) else None
    events = found if isinstance(found, dict) else dict.fromkeys(_names(found))
    for name, filters in islice(events.items(), 20):
        of = [key for key in ("tags", "branches") if isinstance(filters, dict) and key in filters]
        yield _shorten(str(name)) + (f" of {' and '.join(of)}" if name == "push" and of else "")


def _names(value: object) -> list[str]:
    return [str(each) for each in (value if isinstance(value, list) else [value]) if each]


def _shorten(text: str) -> str:
    return clip(visible(text), _MAX_SHOWN)
