"""What provenance/ reads values with: members of documents."""

from __future__ import annotations

import json

import pytest

from releasekit.provenance import verify_files
from releasekit.provenance.document import Document
from releasekit.provenance.verify_files import parse_bundles
from releasekit.text.json_text import count_values
from unit.provenance import bundles


@pytest.mark.parametrize(
    ("value", "number"), [(7, 7), ("7", 7), (0, 0), (str(2**63 - 1), 2**63 - 1)]
)
def test_numbers_are_read_in_both_forms(value: object, number: int) -> None:
    assert Document({"n": value}, "d")["n"].number() == number


@pytest.mark.parametrize(
    "value", [-1, "-1", True, 1.5, "", None, 2**63, str(2**63), "9" * 20, "¹", [1]]
)
def test_what_is_no_number_is_named(value: object) -> None:
    with pytest.raises(ValueError, match=r"^d\.n is .*; it has to be a number from 0 on$"):
        Document({"n": value}, "d")["n"].number()


def test_of_a_list_with_one_item_there_is_one() -> None:
    assert Document(["x"], "d").only() == Document("x", "d[0]")
    with pytest.raises(ValueError, match=r"^d is \[1, 2\]; it has to be a list of one$"):
        Document([1, 2], "d").only()
    with pytest.raises(ValueError, match=r"^d\.a is not there; it has to be a list$"):
        list(Document({}, "d")["a"].items())


def test_attestations_are_not_read_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="has more than"):
        parse_bundles(b" " * (verify_files.MAX_BYTES + 1))


def test_the_values_and_lines_of_attestations_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """R40"""
    bundle = json.dumps(bundles.document()).encode()
    assert len(parse_bundles(bundle + b"\n\r\n" + bundle)) == 2
    monkeypatch.setattr(verify_files, "_MAX_LINES", 1)
    with pytest.raises(ValueError, match="and has more than 1 lines"):
        parse_bundles(bundle + b"\n\n" + bundle)
    both = b'{"attestations": [%s, %s]}' % (bundle, bundle)
    monkeypatch.setattr(verify_files, "MAX_VALUES", count_values(both))
    with pytest.raises(ValueError, match="values in its attestations"):
        parse_bundles(both)
