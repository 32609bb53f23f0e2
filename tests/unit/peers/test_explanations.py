"""What judges give as a reason for a difference is what a page says."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

import pytest

from documents import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

CITED = re.compile(r"(\S+\.md\S*): (.+)", re.DOTALL)


def cited() -> Iterator[tuple[str, str]]:
    """Each page, and what is said to stand there."""
    for path in sorted((ROOT / "tests" / "peers").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            text = node.value if isinstance(node, ast.Constant) else None
            if isinstance(text, str) and (found := CITED.fullmatch(text)):
                yield found[1], found[2]


@pytest.mark.parametrize(("page", "sentence"), sorted({*cited()}))
def test_explanations_of_judges_stand_on_their_page(page: str, sentence: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert sentence in " ".join(text.split())
