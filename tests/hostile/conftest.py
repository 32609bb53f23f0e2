"""The template process of a session, and the run and judgement of one case."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Protocol

import pytest

from hostile.judge import SLOW, complaints
from hostile.run import Template, carried_out
from integration.tools import (
    require_access_for_others,
    require_closed,
    require_landlock,
    require_tool,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hostile.case import Case
    from hostile.run import Ended

# What a run says that cannot even begin. No case is about that, unless the tool is here.
_MISSING = re.compile(r"\b(node|npm|cargo|go|mvn|java) is (?:not on PATH|[0-9.]+, too old)")

# A case may take too much time in some of them, as the caches of other processes cost some.
TRIES = 3


class Judge(Protocol):
    def __call__(self, case: Case) -> Ended: ...


@pytest.fixture(scope="session")
def template() -> Iterator[Template]:
    with Template() as template:
        yield template


@pytest.fixture
def judge(template: Template) -> Judge:
    """Run a case and fail with everything that is wrong; how it ended is for further looks."""

    def judged(case: Case, tries: int = TRIES) -> Ended:
        if case.uid not in {None, os.geteuid()}:
            require_access_for_others()
        if case.sandboxed:
            require_landlock()
            require_closed()
        with carried_out(case, template) as ended:
            found = complaints(case, ended)
        if not found:
            return ended
        if tries > 1 and all(each.startswith(SLOW) for each in found):
            return judged(case, tries - 1)
        if lacking := _MISSING.search(ended.out + ended.err):
            require_tool(lacking[1])
        pytest.fail("\n".join([*found, "--- out", ended.out[-2000:], "--- err", ended.err[-4000:]]))

    return judged
