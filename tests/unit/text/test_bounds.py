"""R40, R51: text that was written to be expensive costs what other text of its length does."""

from __future__ import annotations

from datetime import time

import pytest

from releasekit.text import bounds
from releasekit.text.bounds import MAX_DEPTH, MAX_KEY_PARTS, check_bounds, parse_toml

MANY = 200_000


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"{'.'.join('a' * MANY)} = 1", "a key has more than 50 parts"),
        (f"[{'.'.join('a' * MANY)}]", "a key has more than 50 parts"),
        (f"x = {{ {' . '.join(['a'] * MANY)} = 1 }}", "a key has more than 50 parts"),
        (".".join(['"a.b"', "'c'"] * MANY) + " = 1", "a key has more than 50 parts"),
        (f"x = {'[' * 100_000}", "it is nested too deeply"),
        (f"x = {'{a = ' * 50_000}", "it is nested too deeply"),
        (f"x = {'[' * 150}{']' * 150}", f"it is nested more than {MAX_DEPTH} levels deep"),
        ("[a.b.c]\n" * 60_000, "it holds more than 150000 tables, keys and values"),
        (f"x = {'9' * 5000}", "Exceeds the limit"),
        (f"x = 0x{'f' * 5000}", "it holds a number of more than 4096 bits"),
        ('x = "\\u0000"', "it holds a NUL character"),
    ],
)
def test_what_would_hang_or_break_is_refused(text: str, words: str) -> None:
    """R40, R51"""
    with pytest.raises(ValueError, match=words):
        parse_toml(text)


@pytest.mark.parametrize(
    "text",
    [
        "a" * 1_000_000,
        "a " * 500_000,
        f"{'.'.join('a' * (MAX_KEY_PARTS - 1))} " * 10_000,
        '"' * 1_000_000,
        "\"'" * 500_000,
        f'{"a" * 1000}"' * 1_000,
        f"a{' ' * 1000}\n" * 1_000,
    ],
)
def test_the_search_for_long_keys_ends(text: str) -> None:
    """R51: with another expression each of these took minutes."""
    assert bounds._LONG_KEY.search(text) is None


def test_what_people_write_is_read() -> None:
    key = ".".join(["part"] * MAX_KEY_PARTS)
    assert parse_toml(f'{key} = "1.2.3.4"')["part"]
    assert parse_toml("x = 1.5", parse_float=str) == {"x": "1.5"}


def test_toml_1_1_is_read() -> None:
    """R66"""
    text = 'a = {\n  b = "\\e\\x41", # why\n  t = 10:30,\n}\n'
    assert parse_toml(text) == {"a": {"b": "\x1bA", "t": time(10, 30)}}


def test_aliases_are_counted_as_what_they_stand_for() -> None:
    """R40"""
    value: list[object] = [1] * 10
    for _ in range(8):
        value = [value] * 10
    with pytest.raises(ValueError, match="it stands for more than 1000000 values"):
        check_bounds(value)
    value.append(value)
    with pytest.raises(ValueError, match="more than"):
        check_bounds(value)
    circle: list[object] = []
    circle.append(circle)
    with pytest.raises(ValueError, match="nested more than 100 levels deep"):
        check_bounds(circle)


@pytest.mark.parametrize("value", [{"a": [1, (2,), {3}]}, [], 7, "text", None, object])
def test_anything_else_is_itself(value: object) -> None:
    assert check_bounds(value) is value
