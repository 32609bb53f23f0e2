"""R66: values in messages as their author would write them."""

from __future__ import annotations

import pytest

from releasekit.text.bounds import parse_toml
from releasekit.text.toml_value import show_toml


@pytest.mark.parametrize(
    "written",
    [
        "true",
        "-3",
        "1.5",
        '"a \\"b\\" é"',
        '["a", [1, false]]',
        "{}",
        '{ feat = "huge", "a b" = { c = [] } }',
        "1979-05-27",
        "07:32:00",
        "1979-05-27T07:32:00+00:00",
    ],
)
def test_a_value_is_shown_as_it_may_be_written(written: str) -> None:
    shown = show_toml(parse_toml(f"key = {written}")["key"])
    assert shown == written
    assert parse_toml(f"key = {shown}") == parse_toml(f"key = {written}")


def test_it_stays_on_one_short_line() -> None:
    shown = show_toml({"a": "x\n\u202e\x1b" + "y" * 10_000})
    assert shown.isprintable()
    assert len(shown) < 150
