"""The template process of a session, and the run and judgement of one case."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pytest

from hostile.judge import complaints
from hostile.run import Template, carried_out

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hostile.case import Case
    from hostile.run import Ended


class Judge(Protocol):
    def __call__(self, case: Case) -> Ended: ...


@pytest.fixture(scope="session")
def template() -> Iterator[Template]:
    with Template() as template:
        yield template


@pytest.fixture
def judge(template: Template) -> Judge:
    """Run a case and fail with everything that is wrong; how it ended is for further looks."""

    def judged(case: Case) -> Ended:
        with carried_out(case, template) as ended:
            found = complaints(case, ended)
            assert not found, "\n".join(
                [*found, "--- out", ended.out[-2000:], "--- err", ended.err[-4000:]]
            )
            return ended

    return judged
