"""The directories that tests of npm and pnpm write, read out of their JavaScript."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from peers.scenarios import Files

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

_PROGRAM: Final = Path(__file__).with_name("literals.cjs")
MANIFEST: Final = "package.json"


class Unreadable(ValueError):
    """What a test computes, or is no directory."""


@dataclass(frozen=True, kw_only=True)
class Event:
    """A call in a test, or a key of a literal. `tail` is what follows a call."""

    file: Path
    test: str
    line: int
    call: str
    args: Sequence[Any]
    tail: str


def read_events(
    files: Iterable[Path], *, calls: Iterable[str] = (), keys: Iterable[str] = ()
) -> list[Event]:
    paths = sorted(files)
    if not paths:
        return []
    asked = {"files": [*map(str, paths)], "calls": [*calls], "keys": [*keys]}
    done = subprocess.run(
        ["node", str(_PROGRAM)], input=json.dumps(asked), capture_output=True, text=True, check=True
    )
    return [
        Event(file=path, **event)
        for path, events in zip(paths, json.loads(done.stdout), strict=True)
        for event in events
    ]


def name_each(events: Iterable[Event]) -> Iterator[tuple[str, Event]]:
    """By file and test, each name once."""
    seen: Counter[str] = Counter()
    for event in events:
        name = f"{event.file.name}::{event.test[:80]}"
        seen[name] += 1
        yield f"{name}#{seen[name]}", event


def is_unknown(value: object) -> bool:
    if isinstance(value, dict):
        return value.get("$") == "unknown" or any(map(is_unknown, value.values()))
    return isinstance(value, list) and any(map(is_unknown, value))


def without_undefined(value: Any) -> Any:
    """As JSON.stringify leaves it out."""
    if isinstance(value, dict):
        found = {key: each for key, each in value.items() if each != {"$": "undefined"}}
        return {key: without_undefined(each) for key, each in found.items()}
    return [*map(without_undefined, value)] if isinstance(value, list) else value


def as_files(tree: object) -> Files:
    """Of what `t.testdir` takes: https://node-tap.org/plugins/fixture/"""
    if is_unknown(tree) or not isinstance(tree, dict):
        raise Unreadable("the test computes what it writes")
    files: dict[str, str | bytes] = {}
    links: dict[str, str] = {}
    _flatten(without_undefined(tree), "", files, links)
    return Files(files=files, links=links)


def _flatten(
    tree: Mapping[str, Any], above: str, files: dict[str, str | bytes], links: dict[str, str]
) -> None:
    for name, value in tree.items():
        path = f"{above}{name}"
        kind = value.get("$") if isinstance(value, dict) else None
        content = value["content"] if kind else value
        if name.startswith(".git/") or name == ".git":
            continue  # there is a repository of our own
        if kind in {"symlink", "link"}:
            links[path] = content
        elif isinstance(content, dict):
            _flatten(content, f"{path}/", files, links)
        else:
            files[path] = content if isinstance(content, str) else json.dumps(content)


def is_own(path: str) -> bool:
    """Whether it is a manifest of the repository, and of nothing that is installed."""
    parts = path.split("/")
    return parts[-1] == MANIFEST and "node_modules" not in parts


def fill_in(files: Files) -> Files:
    """With names and versions, which tests of file lists leave out."""
    filled = dict(files.files)
    for number, path in enumerate(sorted(filter(is_own, filled))):
        try:
            document = json.loads(filled[path])
        except ValueError:
            continue
        if isinstance(document, dict):
            given = {"name": f"peer-{number}", "version": "1.0.0"}
            filled[path] = json.dumps({**given, **document})
    return Files(files=filled, links=files.links)
