"""Tables of other projects' tests, read out of their source: nothing of it is run."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def read_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows of each `pytest.mark.parametrize` by the names of its arguments, and the test that
    it is of; a value that the test computes is left out of its row.
    """
    found = ast.walk(ast.parse(path.read_text()))
    for test in (each for each in found if isinstance(each, ast.FunctionDef)):
        for mark in test.decorator_list:
            if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.parametrize":
                names, rows = mark.args[0], mark.args[1]
                if not isinstance(rows, (ast.List, ast.Tuple)):
                    continue
                keys = _evaluate(names)
                if isinstance(keys, str):
                    keys = [each.strip() for each in keys.split(",")]
                for row in rows.elts:
                    cells = row.elts if isinstance(row, (ast.Tuple, ast.List)) else [row]
                    if len(keys) == 1:
                        cells = [row]
                    values = zip(keys, map(_evaluate, cells), strict=False)
                    yield test.name, {key: each for key, each in values if each is not ...}


def read_texts(path: Path) -> Iterator[str]:
    """All string literals of a module that are no sentences of its own."""
    seen = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if node.value not in seen:
                yield node.value
            seen.add(node.value)


def _evaluate(node: ast.expr) -> Any:
    """The value of a literal; an ellipsis for anything else."""
    try:
        return ast.literal_eval(node)
    except ValueError:
        return ...
