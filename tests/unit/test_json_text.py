from __future__ import annotations

import json

import pytest

from releasekit.text.json_text import parse_json

DIGITS = "9" * 5_000


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "NaN",
        '{"a": Infinity}',
        f'{{"schema": {DIGITS}}}',
        f"-{DIGITS}",
        "[" * 100_000,
        b"\xff",
        # Half of a pair, encoded as no encoder may: https://www.rfc-editor.org/rfc/rfc3629#section-3
        b'"\xed\xa0\x80"',
    ],
)
def test_what_cannot_be_used_is_one_kind_of_error(text: str | bytes) -> None:
    """R40"""
    with pytest.raises(ValueError, match=r"^(?!.*set_int_max_str_digits)"):
        parse_json(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r'"\ud800"', "\ufffd"),
        (r'"a\uDBFFb"', "a\ufffdb"),
        (r'"\udc00\ud800"', "\ufffd\ufffd"),
        (r'"\ud83d\ude80"', "\N{ROCKET}"),
        (r'"\\ud800"', r"\ud800"),
        (r'{"\ud800": [1, {"a": "\udfff"}, null]}', {"\ufffd": [1, {"a": "\ufffd"}, None]}),
        ('"é"', "é"),
        (b'"\xc3\xa9"', "é"),
        ("12", 12),
    ],
)
def test_text_can_be_written_again(text: str | bytes, value: object) -> None:
    """R40: it gets into reports, after an upload too."""
    assert parse_json(text) == value
    json.dumps(parse_json(text), ensure_ascii=False).encode()
