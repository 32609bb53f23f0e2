"""R50, R53, R54, R55, R69: what a hostile build leaves is not believed by a run that has secrets,
neither by the next one nor by its own.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest

from harness.gitlab import TOKEN, serving_gitlab
from hostile.case import SECRETS
from hostile.judge import forms
from hostile.poisoned import POISONS, UNWRITTEN, VICTIMS, same_run, second_run
from hostile.registries import Npm, PyPI
from hostile.wire import Reply, Wire
from integration.tools import require_landlock, require_tool

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hostile.conftest import Judge
    from hostile.run import Ended

TAGS = {"core-v1.0.0", "@acme/a-v1.0.0", "acme-v1.0.0"}


@contextlib.contextmanager
def _serving() -> Iterator[tuple[Wire, Wire, Wire]]:
    """PyPI, npm, and somebody else."""
    require_landlock()
    for tool in ("git", "npm", "uv"):
        require_tool(tool)
    python, javascript = PyPI(), Npm()
    with (
        Wire(lambda asked: [python.answer(asked, "").wire()]) as pypi,
        Wire(lambda asked: [javascript.answer(asked, "").wire()]) as npm,
        Wire(lambda _: [Reply(200, b"{}").wire()]) as elsewhere,
    ):
        yield pypi, npm, elsewhere


@pytest.mark.parametrize("what", POISONS)
def test_a_second_run_loses_no_token(what: str, judge: Judge) -> None:
    """R50, R53, R54, R55: not to a server that the first run named, not into a file, and not to a
    program that it left, by arguments, environment or memory.
    """
    if POISONS[what].sign:
        require_tool("gpg")
    with _serving() as wires:
        ended = judge(second_run(what, [each.url for each in wires]))
    _check_secrets(ended, *wires)
    uploads = _list_uploads(*wires)
    end = POISONS[what]
    if end.late and ended.code:
        assert f"[{end.late}]" in ended.err
        assert uploads == []
    elif end.problem:
        assert uploads == []
    else:
        assert uploads == ["POST", "POST", "PUT"]
        assert _has_run_spies(ended)
        assert {f"remote.git/refs/tags/{each}" for each in TAGS} <= ended.after.keys()


def test_the_same_run_loses_no_token(judge: Judge, tmp_path: Path) -> None:
    """R50, R53, R69: from settings of git, npm, cargo and Maven, and from programs on PATH, that
    one of its own builds has written, nor a login of git.
    """
    with _serving() as wires, serving_gitlab(tmp_path) as world:
        ended = judge(same_run(world.page, [each.url for each in wires]))
        assert world.tags.keys() == TAGS
    assert _has_run_spies(ended)
    _check_secrets(ended, *wires)
    assert _list_uploads(*wires) == ["POST", "POST", "PUT"]


def _check_secrets(ended: Ended, pypi: Wire, npm: Wire, elsewhere: Wire) -> None:
    secrets = {**SECRETS, "CI_JOB_TOKEN": TOKEN}
    everything = b"".join(
        repr((each.target, each.headers)).encode() + each.body for each in elsewhere.seen
    )
    lost = [name for name, secret in secrets.items() if _is_in(everything, secret)]
    assert not lost, [(each.target, each.headers) for each in elsewhere.seen]
    assert not [each.target for each in elsewhere.seen if each.credentials]
    assert not [name for name, content in ended.written.items() if _is_in(content, TOKEN)]
    # Each token goes to its own registry alone.
    for wire, own in ((pypi, "RELEASEKIT_PYPI_TOKEN"), (npm, "RELEASEKIT_NPM_TOKEN")):
        said = b"".join(repr(each.headers).encode() + each.body for each in wire.seen)
        assert not [name for name in {*secrets} - {own} if _is_in(said, secrets[name])]
    for name in VICTIMS:
        there = ended.after.get(name)
        assert there == ended.before[name], name
        assert there.inode == ended.before[name].inode, name
    assert not ended.after.keys() & {*UNWRITTEN}
    new = {name for name in ended.after if name.startswith("home/") and name not in ended.before}
    # A go on PATH, of whoever it is, has the cache of modules made that the other tools have.
    assert {n for n in new if n.count("/") == 1 and n[5] != "."} <= {"home/go"}, "from a program"


def _has_run_spies(ended: Ended) -> bool:
    return any(name.startswith("w/loot/") for name in ended.written)


def _list_uploads(pypi: Wire, npm: Wire, _: Wire) -> list[str]:
    """Those with the token of their own registry."""
    return [
        each.method
        for wire, own in ((pypi, "RELEASEKIT_PYPI_TOKEN"), (npm, "RELEASEKIT_NPM_TOKEN"))
        for each in wire.seen
        if each.method in {"POST", "PUT"} and _is_in(each.credentials.encode(), SECRETS[own])
    ]


def _is_in(text: bytes, secret: str) -> bool:
    return any(form in text for form in forms(secret))
