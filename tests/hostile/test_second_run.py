"""R50, R53, R54, R55: what a hostile first run leaves is not believed by the second, which has
secrets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hostile.case import SECRETS
from hostile.judge import forms
from hostile.poisoned import POISONS, VICTIMS, second_run
from hostile.registries import Npm, PyPI
from hostile.wire import Reply, Wire
from integration.tools import require_landlock, require_tool

if TYPE_CHECKING:
    from hostile.conftest import Judge


@pytest.mark.parametrize("what", POISONS)
def test_a_second_run_loses_no_token(what: str, judge: Judge) -> None:
    """R50, R53, R54, R55: not to a server that the first run named, not into a file, and not to a
    program that it left, by arguments, environment or memory.
    """
    require_landlock()
    for tool in ("git", "npm", "uv"):
        require_tool(tool)
    python, javascript = PyPI(), Npm()
    with (
        Wire(lambda asked: [python.answer(asked, "").wire()]) as pypi,
        Wire(lambda asked: [javascript.answer(asked, "").wire()]) as npm,
        Wire(lambda _: [Reply(200, b"{}").wire()]) as elsewhere,
    ):
        ended = judge(second_run(what, pypi.url, npm.url, elsewhere.url))
    everything = b"".join(
        repr((each.target, each.headers)).encode() + each.body for each in elsewhere.seen
    )
    lost = [name for name, secret in SECRETS.items() if _is_in(everything, secret)]
    assert not lost, [(each.target, each.headers) for each in elsewhere.seen]
    assert not [each.target for each in elsewhere.seen if each.credentials]
    # Each token goes to its own registry alone.
    for wire, own in ((pypi, "RELEASEKIT_PYPI_TOKEN"), (npm, "RELEASEKIT_NPM_TOKEN")):
        said = b"".join(repr(each.headers).encode() + each.body for each in wire.seen)
        assert not [name for name in {*SECRETS} - {own} if _is_in(said, SECRETS[name])]
    for name in VICTIMS:
        there = ended.after.get(name)
        assert there == ended.before[name], name
        assert there.inode == ended.before[name].inode, name
    new = {name for name in ended.after if name.startswith("home/") and name not in ended.before}
    # A go on PATH, of whoever it is, has the cache of modules made that the other tools have.
    assert {n for n in new if n.count("/") == 1 and n[5] != "."} <= {"home/go"}, "from a program"


def _is_in(text: bytes, secret: str) -> bool:
    return any(form in text for form in forms(secret))
