"""Does the judge see what it is there to see?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hostile.case import SECRETS, Case
from hostile.judge import complaints
from hostile.run import Template, carried_out
from processes import PATIENCE_S

if TYPE_CHECKING:
    from hostile.conftest import Judge

_GOOD = '[project]\nname = "acme"\nversion = "1.0"\n'


def test_nothing_is_wrong_with_a_good_run(judge: Judge) -> None:
    """R40, R50, R51, R52"""
    ended = judge(Case(name="good", files={"w/pyproject.toml": _GOOD}, codes=frozenset({0})))
    assert ended.peak_mb > 20


def test_a_refusal_is_one_sentence(judge: Judge) -> None:
    """R40"""
    judge(Case(name="bad", files={"w/pyproject.toml": "x = = 1"}, says=(r"pyproject\.toml",)))


# Where the run is broken by what it calls first, and what the judge says of it.
_BREAKS = {
    "raise RuntimeError": "Traceback",
    "open('../canary/precious', 'w')": "'canary/precious' changed",
    "open('litter', 'w')": "'w/litter' appeared",
    "os.remove('pyproject.toml')": "'w/pyproject.toml' is gone",
    f"print({SECRETS['GITHUB_TOKEN']!r})": "GITHUB_TOKEN is in streams/out",
    "open('../tmp/x', 'w').write(base64.b64encode(b'__token__:'"
    " + os.environ['RELEASEKIT_PYPI_TOKEN'].encode()).decode())": "_PYPI_TOKEN is in tmp/x",
    "print('::error::INJECTED')": "a workflow command",
    "print('x\\r::stop-commands::y')": "a workflow command",
    r"print('\x1b[2J')": r"prints '\x1b'",
    "bytearray(400_000_000)": "MB",
    # Seconds each: the limit grows with how slow the machine is.
    "sum(range(100_000_000))": "deaf for",
    "threading.Thread(target=lambda: 10 ** 5_000_000).start()": "deaf for",
    "subprocess.Popen(['sleep', '600'])": "left running: sleep",
    "sys.exit(7)": "exit code 7",
    "time.sleep(600)": "not over after",
}


@pytest.mark.parametrize("breaks", _BREAKS)
def test_what_is_wrong_is_found(breaks: str, template: Template) -> None:
    """R40, R50, R51, R52"""
    case = Case(
        name=breaks,
        files={"w/pyproject.toml": _GOOD},
        codes=frozenset({0}),
        breaks=breaks,
        wall_s=2.0 if "sleep(" in breaks else PATIENCE_S,
        left_s=2.0,
    )
    with carried_out(case, template) as ended:
        found = complaints(case, ended)
    assert any(_BREAKS[breaks] in each for each in found), (found, ended.err)
