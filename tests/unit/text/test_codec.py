from __future__ import annotations

import json
from collections.abc import Mapping  # noqa: TC003 (annotations are read)
from enum import StrEnum
from typing import Annotated, Literal

import pytest
from msgspec import Struct

from releasekit.fields import Mark
from releasekit.text.codec import Record, row_of


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Wheel(Struct, frozen=True, kw_only=True):
    size: int
    spokes: tuple[str, ...] = ()


class Cart(Struct, frozen=True, kw_only=True):
    name: str
    took_s: float = 0.0
    is_new: bool = False
    colour: Colour = Colour.RED
    mood: Literal["glad"] | Literal["sad", "tired"] = "glad"  # noqa: PYI030 (as `Work | Wait`)
    paint: Colour | None = None
    spare: Wheel | None = None
    wheels: tuple[Wheel, ...] = ()
    labels: Mapping[str, str]
    owner: Annotated[str, Mark.SINCE] = "nobody"


CART = Cart(
    name="a",
    took_s=1.5,
    is_new=True,
    colour=Colour.BLUE,
    mood="tired",
    paint=Colour.RED,
    spare=Wheel(size=1),
    wheels=(Wheel(size=2, spokes=("x", "y")), Wheel(size=3)),
    labels={"k": "v"},
)


def read(**changes: object) -> Cart:
    document = json.loads(json.dumps(row_of(CART), default=row_of)) | changes
    kept = {key: value for key, value in document.items() if value is not ...}
    return Record.parse(json.dumps(kept), "a.json").read(Cart)


def test_what_is_written_is_read_again() -> None:
    assert read() == CART


def test_seconds_are_written_in_milliseconds_and_keys_may_differ() -> None:
    row = row_of(Cart(name="a", took_s=1.23456, labels={}), name={"x": 1, "y": 2}, wheels={})
    assert list(row)[:3] == ["x", "y", "took_s"]
    assert row["took_s"] == 1.235
    assert "wheels" not in row
    assert (row["paint"], row["spare"]) == ("", None)


def test_earlier_versions_lack_what_came_since_and_what_may_be_missing() -> None:
    cart = read(owner=..., paint=..., spare=...)
    assert (cart.owner, cart.paint, cart.spare) == ("nobody", None, None)
    assert read(paint="green").paint is None  # of a later version


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": ...}, "a.json: 'name' is missing"),
        ({"name": 1}, "a.json: 'name' must be text, not 1"),
        ({"took_s": True}, "a.json: 'took_s' must be a number of seconds, not True"),
        ({"took_s": 1e300}, "a.json: 'took_s' must be a number of seconds, not 1e+300"),
        ({"is_new": 0}, "a.json: 'is_new' must be true or false, not 0"),
        ({"colour": "x"}, "a.json: 'colour' must be one of red, blue, not 'x'"),
        ({"mood": "x"}, "a.json: 'mood' must be one of glad, sad, tired"),
        ({"spare": []}, "a.json: spare: must be an object, not []"),
        ({"spare": {"size": 2**63}}, "a.json: spare: 'size' must be a whole number, not 92"),
        ({"wheels": {}}, "a.json: 'wheels' must be a list, not {}"),
        ({"wheels": [{"size": 1, "spokes": [1]}]}, "wheels[0]: 'spokes' must be a list of texts"),
        ({"labels": {"k": 1}}, "a.json: labels: 'k' must be text, not 1"),
    ],
)
def test_an_error_names_the_place(changes: dict[str, object], message: str) -> None:
    """R40"""
    with pytest.raises(ValueError, match=r"a\.json") as caught:
        read(**changes)
    assert message in str(caught.value)


def test_rows_are_dropped_once_they_are_read() -> None:
    """R40: memory holds one form of all."""
    record = Record.parse('{"rows": [{}, {}]}', "a.json")
    for number, _ in enumerate(record.records("rows")):
        assert record.values["rows"][number] is None
