from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from releasekit.text import json_text
from releasekit.text.json_text import format_json, parse_json, read_entries

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(VALUES, st.booleans())
def test_documents_are_read_as_they_are(value: Any, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    assert parse_json(f"\ufeff {text}\n".encode()) == value


@given(VALUES | st.floats() | st.sampled_from(["\ud800", {"a": "\udfff\udc80"}]))
def test_json_is_written_as_by_the_slower_writer(value: Any) -> None:
    assert format_json(value) == json.dumps(value, indent=1)
    assert format_json([{1}], sorted) == "[\n [\n  1\n ]\n]"


@given(
    st.dictionaries(st.sampled_from("abc"), VALUES),
    st.integers(1, 40),
    st.sampled_from([None, 0, 2]),
    st.booleans(),
)
def test_entries_are_those_of_the_whole_document(
    document: dict[str, Any], first: int, indent: int | None, ascii_only: bool
) -> None:
    """However much of it is looked at at once."""
    text = json.dumps(document, indent=indent, ensure_ascii=ascii_only)
    found: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_text, "_FIRST_BYTES", first)
        for key, name, value in read_entries(text.encode(), {"a", "b"}):
            if name is None:
                found[key] = value
            elif isinstance(found[key], list):
                found[key].append(value)
            else:
                found[key][name] = value
    assert found == {key: value for key, value in document.items() if key in {"a", "b"}}


HOSTILE = [
    b"",
    b"nul",
    b"\xff\xfe{}",
    b'{"a": NaN}',
    b'{"a": -Infinity}',
    b'{"a": ' + b"9" * 5000 + b"}",
    b'{"a": ' + b"[" * 100_000,
    b'{"a": ' + b'{"a":' * 100_000,
    b'{"a": ' + b"[" * 103 + b"]" * 103 + b"}",
    b'{"a": [1, 2] 3}',
    b'{"a": [1,]}',
    b'{"a": {"b" 1}}',
    b'{"a": {1: 1}}',
    b'{"a": 1} {',
    b'{"a": "\xed\xa0\x80"}',
    b'{"a": "cut',
]


@pytest.mark.parametrize("data", HOSTILE, ids=range(len(HOSTILE)))
def test_what_is_no_json_is_a_value_error_in_a_sentence(data: bytes) -> None:
    """R40, R51"""
    for read in (parse_json, lambda each: list(read_entries(each, {"a"}))):
        with pytest.raises(ValueError) as caught:  # noqa: PT011 (one of several)
            read(data)
        assert len(str(caught.value)) < 200
        assert "set_int_max_str_digits" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (rb'"\ud800"', "\ufffd"),
        (rb'{"\udc00a": ["\uD83D\uDE00", "\ud83d"]}', {"\ufffda": ["😀", "\ufffd"]}),
        (rb'"\\ud800"', "\\ud800"),
    ],
)
def test_half_a_pair_of_surrogates_is_replaced(text: bytes, value: object) -> None:
    """R35: such text cannot be written, which came out after an upload."""
    found = parse_json(text)
    assert found == value
    json.dumps(found, ensure_ascii=False).encode()
    assert [each for *_, each in read_entries(b'{"a": [%s]}' % text, {"a"})][1] == value


def test_sizes_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """R40"""
    with pytest.raises(ValueError, match="more than 10 bytes"):
        parse_json(b'"123456789"', max_bytes=10)
    monkeypatch.setattr(json_text, "MAX_ENTRIES", 5)
    with pytest.raises(ValueError, match="more than 5 entries"):
        list(read_entries(b'{"a": [1, 2, 3, 4, 5]}', {"a"}))
    monkeypatch.setattr(json_text, "MAX_ENTRIES", 10_000)
    monkeypatch.setattr(json_text, "MAX_ENTRY_BYTES", 10_000)
    for data in (b'{"b": "%s"}', b'{"a": ["%s"]}', b'{"%s": 1}'):
        with pytest.raises(ValueError, match="an entry of more than 10000 bytes"):
            list(read_entries(data % (b"x" * 20_000), {"a"}))


def test_values_are_counted_before_any_is_made() -> None:
    """R40: of three bytes, the parser makes sixty."""
    many = "[" + "[]," * 9 + "{}]"
    for data in (many, many.encode()):
        assert parse_json(data, max_values=20) == [[]] * 9 + [{}]
        with pytest.raises(ValueError, match="it holds more than 19 values"):
            parse_json(data, max_values=19)


@given(VALUES)
def test_no_value_is_left_out_of_the_count(value: Any) -> None:
    def count(each: Any) -> int:
        inner = each if isinstance(each, list) else list((each or {}).values())
        return len(inner) + sum(count(one) for one in inner if isinstance(one, list | dict))

    values = count(value) if isinstance(value, list | dict) else 0
    assert json_text.count_values(json.dumps(value)) >= values
    assert json_text.count_values(json.dumps(value).encode()) >= values


def test_an_escape_makes_wide_what_it_is_in_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """R40: results of 10,000 packages, of which one says an emoji, are not four times as large."""
    wide = json.dumps('\U0001f680\\"')
    data = f'{{"a\\\\": ["{"x" * 1_000}", {wide}, "x"]}}'.encode()
    monkeypatch.setattr(json_text, "MAX_TEXT_BYTES", len(data) + 3 * len(wide))
    assert parse_json(data)["a\\"][1:] == ['\U0001f680\\"', "x"]
    monkeypatch.setattr(json_text, "MAX_TEXT_BYTES", len(data) + 3 * len(wide) - 1)
    with pytest.raises(ValueError, match="as a text it takes more than"):
        parse_json(data)


@pytest.mark.parametrize(
    ("mark", "escaped", "width"),
    [
        ("x", False, 1),
        ("\u00e9", False, 1),
        ("\u0101", False, 2),
        ("\U0001f680", False, 4),
        ("\u0101", True, 1),
        ("\U0001f680", True, 4),
    ],
)
def test_a_text_is_as_large_as_its_widest_character_makes_it(
    mark: str, escaped: bool, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = json.dumps(mark + "x" * 1_000, ensure_ascii=escaped).encode()
    monkeypatch.setattr(json_text, "MAX_TEXT_BYTES", width * len(data))
    assert len(parse_json(data)) == 1_001
    monkeypatch.setattr(json_text, "MAX_TEXT_BYTES", width * len(data) - 1)
    with pytest.raises(ValueError, match="as a text it takes more than"):
        parse_json(data)


def test_only_an_object_has_entries() -> None:
    with pytest.raises(ValueError, match="not a JSON object"):
        list(read_entries(b"[]", {"a"}))
    assert list(read_entries(b'{"a": 7}', {"a"})) == [("a", None, 7)]


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
