"""Strings of a JSON text, changed in place: everything else is kept to the byte."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# https://www.rfc-editor.org/rfc/rfc8259
_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+', re.DOTALL)

Path = tuple[str, ...]


def replaced(text: str, change: Callable[[Path, str], str]) -> str:
    """`text`, which is valid JSON, with every string value as `change` (path, value) has it."""
    pieces, end = [], 0
    for path, (start, stop) in _values(text):
        value = json.loads(text[start:stop])
        new = change(path, value)
        if new != value:
            pieces += [text[end:start], json.dumps(new, ensure_ascii=False)]
            end = stop
    return "".join([*pieces, text[end:]])


def _values(text: str) -> Iterator[tuple[Path, tuple[int, int]]]:
    """Path and place of each string that is a member of an object, not a key or a list's item."""
    path: list[str | None] = []  # None for a list
    key = ""
    expects_key = False
    for token in _TOKEN.finditer(text):
        match token[0]:
            case "{" | "[" as opening:
                path.append(key if opening == "{" else None)
                expects_key = opening == "{"
            case "}" | "]":
                path.pop()
                expects_key = False
            case ",":
                expects_key = bool(path) and path[-1] is not None
            case ":":
                expects_key = False
            case word if word[0] == '"':
                if expects_key:
                    key = json.loads(word)
                elif path and None not in path:
                    # The outermost object has no name.
                    yield (*map(str, path[1:]), key), token.span()
