"""R15, R16, R34, R35, R40, R50, R51: whatever a registry answers, a run ends in bounded time and
memory, in the right outcome, and shows no secret.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hostile import http_rows, page_rows, repository_rows
from hostile.answers import Served, cases_of
from hostile.case import sampled
from hostile.http_tricks import SIGNATURE

if TYPE_CHECKING:
    from hostile.case import Case
    from hostile.conftest import Judge


def _named(case: Case) -> str:
    return case.name


@pytest.mark.parametrize("case", sampled(cases_of(http_rows.ROWS)), ids=_named)
def test_what_any_server_can_do(case: Case, judge: Judge) -> None:
    """R15, R37, R40, R50, R51"""
    ended = judge(case)
    assert isinstance(case.server, Served)
    assert not case.server.leaked
    assert not [name for name, data in ended.written.items() if SIGNATURE.encode() in data]


@pytest.mark.parametrize(
    "case", sampled(cases_of((*page_rows.ROWS, *repository_rows.ROWS))), ids=_named
)
def test_what_a_registry_says_of_a_package(case: Case, judge: Judge) -> None:
    """R15, R17, R35, R40, R51"""
    judge(case)
