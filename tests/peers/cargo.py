"""The projects that cargo's tests write, read out of their source: its own tests run them."""

from __future__ import annotations

import functools
import itertools
import re
import subprocess
from typing import TYPE_CHECKING, Final

from peers import ours
from peers.scenarios import EQUAL, Case, Files, Peer, Verdict
from peers.sources import Source
from world import cargo, facts
from world.test_world import differences

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_TEST: Final = re.compile(
    r"^#\[cargo_test[^\n]*\]\n(?:#\[[^\n]*\n)*(?:async )?fn (\w+)\(", re.MULTILINE
)
# A literal of Rust: https://doc.rust-lang.org/reference/tokens.html#string-literals
_RAW: Final = r'b?r(?P<{0}h>#*)"(?P<{0}r>.*?)"(?P={0}h)'
_PLAIN: Final = r'b?"(?P<{0}p>(?:[^"\\]|\\.)*)"'
_LITERAL: Final = "(?:" + _RAW + "|" + _PLAIN + ")"
_BASIC: Final = (
    r"&?(?P<basic>basic_manifest|basic_bin_manifest|basic_lib_manifest)"
    r'\((?P<args>[^)"]*"[^)]*)\)'
)
_STEP: Final = re.compile(
    r"\.(?P<call>file|symlink|symlink_dir|executable|change_file|add_file)\(\s*"
    + _LITERAL.format("n")
    + r"\s*,\s*&?(?:"
    + _LITERAL.format("t")
    + "|"
    + _BASIC
    + r")\s*,?\s*\)",
    re.DOTALL,
)
_CALL: Final = re.compile(r"\.(?:file|symlink|symlink_dir|executable|no_manifest)\(")
_START: Final = re.compile(
    r"\b(?:project\(\)|project_in\([^)]*\)|ProjectBuilder::new\(|git::(?:new|repo|new_repo)\()"
)
_REGISTRIES: Final = """\
[registries.alternative]
index = "sparse+http://127.0.0.1:9/index/"
[registries.other]
index = "sparse+http://127.0.0.1:9/other/"
"""
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\\": "\\", '"': '"', "'": "'"}


def read_plans(checkout: Path) -> Iterator[Case]:
    for path in sorted(checkout.glob("tests/testsuite/*.rs")):
        for name, files in _read_suite(path):
            yield Case(name=name, judge=functools.partial(_judge_plan, files))


def _judge_plan(files: Files | None, directory: Path) -> Verdict:
    """Versions, what is private, and edges, beside `cargo metadata`."""
    if files is None:
        return Verdict("unusable", "the test computes what it writes")
    root = directory / "repository"
    try:
        files.write(root)
    except ValueError as error:
        return Verdict("unusable", str(error))
    (directory / ".cargo").mkdir()
    (directory / ".cargo" / "config.toml").write_text(_REGISTRIES)
    ours.commit(root)
    planned = ours.plan(root)
    try:
        shape, expected = cargo.distilled(root, {})
    except subprocess.CalledProcessError:
        if planned.code:
            return EQUAL
        return Verdict("fault", f"cargo metadata refuses it\n{planned.out}{planned.error}")
    if planned.code:
        return Verdict("fault", planned.error)
    document = {"ecosystem": "cargo", "at": ".", "config": {}, "shape": shape}
    world = facts.read("cargo", {**document, "expected": expected.document()})
    wrong = differences(planned.packages, world)
    return Verdict("fault", f"{wrong}\n{planned.error}") if wrong else EQUAL


def _read_suite(path: Path) -> Iterator[tuple[str, Files | None]]:
    """Each project of each test; None for one that the test computes."""
    text = path.read_text()
    starts = [*_TEST.finditer(text)]
    for test, following in itertools.zip_longest(starts, starts[1:]):
        body = text[test.end() : following.start() if following else len(text)]
        places = [each.start() for each in _START.finditer(body)]
        for number, (start, end) in enumerate(itertools.pairwise([*places, len(body)])):
            chain = body[start:end].partition(".build()")[0]
            name = f"{path.stem}::{test[1]}#{number}"
            calls = [each for each in _CALL.finditer(chain) if "no_manifest" not in each[0]]
            if any(_STEP.match(chain, each.start()) is None for each in calls):
                yield name, None
            elif calls:
                yield name, _read_project(chain)


def _read_project(chain: str) -> Files:
    files, links = {}, {}
    for step in _STEP.finditer(chain):
        path = _value(step, "n")
        if step["call"].startswith("symlink"):
            links[_value(step, "t")] = path
        else:
            files[path] = _basic(step) if step["basic"] else _value(step, "t")
    if ".no_manifest()" not in chain and chain.startswith("project"):
        files.setdefault("Cargo.toml", _manifest("foo", "0.0.1"))
    return Files(files=files, links=links)


def _value(step: re.Match[str], group: str) -> str:
    raw = step[f"{group}r"]
    if raw is not None:
        return raw
    text = re.sub(r"\\\n\s*", "", step[f"{group}p"])
    text = re.sub(r"\\u\{([0-9a-fA-F]+)\}", lambda it: chr(int(it[1], 16)), text)
    return re.sub(r"\\(.)", lambda it: _ESCAPES.get(it[1], it[0]), text)


def _basic(step: re.Match[str]) -> str:
    given = re.findall(r'"([^"]*)"', step["args"])
    if step["basic"] == "basic_manifest":
        return _manifest(*given)
    kind = "bin" if "bin" in step["basic"] else "lib"
    target = "[[bin]]" if kind == "bin" else "[lib]"
    return f'{_manifest(given[0], "0.5.0")}{target}\nname = "{given[0]}"\n'


def _manifest(name: str, version: str) -> str:
    return f'[package]\nname = "{name}"\nversion = "{version}"\nauthors = []\nedition = "2015"\n'


SOURCES: Final = (
    Source(
        name="cargo",
        git="https://github.com/rust-lang/cargo",
        licence="MIT OR Apache-2.0",
        archive="crate:cargo",
    ),
)
PEERS: Final = (
    Peer(name="what is planned", ecosystem="cargo", sources=("cargo",), read=read_plans),
)
