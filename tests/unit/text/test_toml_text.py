"""R24: what is changed in a TOML document is what was meant, and nothing else."""

from __future__ import annotations

import pytest
import tomlkit

from releasekit.errors import PlanError
from releasekit.text.toml_text import (
    Edit,
    Span,
    Where,
    edit_strings,
    find_value,
    parse_toml,
    put_string,
)

OLD, NEW = "old", "new"
DOCUMENTS = {
    "plain": '[a]\nb = "old"\n',
    "no line end, spaces": "  [ a ]  # [a]\n\t b\t=  'old'\t# 'old'",
    "inline": 'a = { x = "old", b = "old" }',
    "dotted": 'a.x = "old"\na . "b" = "old"\n',
    "quoted": "['a']\n\"b\" = 'old'\nc = '''\nb = 'old'\n'''\n",
    "multi-line": 'z = """\n[a]\nb = "old"\n"""\n\n[a]\nb = """\\\n  old"""\n',
    "literal": "[a]\nc = '\\'\nb = '''\nold'''\n",
    "escaped": '[a]\nc = "\\""\nb = "\\u006fld"',
    "like the mark": "[a]\nc = 'mark'\nb = 'old'\nd = 'mark-0'",
    "out of order": '[a.x]\ny = "old"\n[c]\n[a]\nb = "old"\n[d]\n[a.z]\n',
    "arrays of tables": '[[x]]\nb = "old"\n[[x]]\n[x.a]\nb = "old"\n[a]\nb = "old"\n',
    "split arrays of tables": (
        '[[x]]\nb = "old"\n[a]\n\nb = "old" # here\n[[x]]\n# x\nb = "old"\n'
        '[c]\nb = "old"\n[[x]]\nb = "old"'
    ),
    "only a comment looks like it": '# don\'t: "old"\n[a]\nb = "\\u006fld"\n',
    "only another text holds it": '[c]\nd = """\n"old"\n"""\n[a]\nb = "ol\\u0064"\n',
    "not a number": "[a]\nb = 'old'\nc = [nan, -inf, 1e3, 1.0]\n",
    "inline, of several lines": 'a = {\n  # b = "old"\n  x = "old",\n  b = "old",  # here\n}\n',
    "TOML 1.1": '[a]\nc = "\\e[0m\\x41"\nd = 10:30\ne = { b = "old", }\nb = "\\x6fld"\n',
    "an array": 'c = [ # old\n  [ "old", ], { b = "old" }\n  ,\n]\n[a]\nb = "old"\n',
}


def written(literal: str) -> Edit:
    def edit(text: str, span: Span) -> tuple[Span, str]:
        assert parse_toml(f"old = {text[slice(*span)]}") == {"old": OLD}
        return span, literal

    return edit


def put_first(text: str, span: Span) -> tuple[Span, str]:
    return put_string(f"1 {text[span[0] + 1 : span[1] - 1]}", text, span)


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("first", ["", "\ufeff"])
@pytest.mark.parametrize("document", DOCUMENTS.values(), ids=DOCUMENTS)
def test_a_string_is_changed_where_it_stands(document: str, first: str, line_end: str) -> None:
    text = first + document.replace("\n", line_end)
    wanted = parse_toml(text)
    wanted["a"]["b"] = NEW
    after = edit_strings(text, {("a", "b"): written("'new'")}, wanted=wanted, of="pypi:a")
    assert parse_toml(after) == wanted
    before, _, behind = after.partition("'new'")
    assert text.startswith(before)
    assert text.endswith(behind)


def test_what_stands_there_once_needs_no_second_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tomlkit, "parse", pytest.fail)
    text = "# It's \"new\"\n[a]\nb = 'old' # isn't it?\nc = ['other', 'another']\n"
    edits: dict[Where, Edit] = {("a", "b"): put_first, ("a", "c", 1): put_first}
    wanted = {"a": {"b": "1 old", "c": ["other", "1 another"]}}
    after = edit_strings(text, edits, wanted=wanted, of="pypi:a")
    assert after == text.replace("'old'", "'1 old'").replace("'another'", "'1 another'")


@pytest.mark.parametrize("tables", ["", "\n[[x]]\n[y]\n[[x]]\n"])
def test_several_are_changed_at_once(tables: str) -> None:
    text = "c = [\n'old',\n'old',\n\"old\", # 'old'\n'''old''']\na.b = 'old'" + tables
    edits: dict[Where, Edit] = {
        ("a", "b"): written("'4'"),
        ("c", 3): written("'3'"),
        ("c", 1): written("'1'"),
    }
    wanted = {**parse_toml(text), "a": {"b": "4"}, "c": ["old", "1", "old", "3"]}
    after = edit_strings(text, edits, wanted=wanted, of="pypi:a")
    assert after == "c = [\n'old',\n'1',\n\"old\", # 'old'\n'3']\na.b = '4'" + tables


@pytest.mark.parametrize("edit", ["'other'", "'"])
def test_what_would_say_something_else_is_refused(edit: str) -> None:
    text = "[a]\nb = 'old'\n"
    with pytest.raises(PlanError, match=r"pypi:acme: .* cannot be pinned the way") as caught:
        edit_strings(text, {("a", "b"): written(edit)}, wanted={"a": {"b": NEW}}, of="pypi:acme")
    assert "by hand" in caught.value.hint


@pytest.mark.parametrize("last", ["", "z = 1\n"])
def test_what_cannot_be_told_from_another_place_is_refused(last: str) -> None:
    """tomlkit moves the table, and what it then stands behind was never before it."""
    text = f'[[x]]\n[a]\nb = \'old\'\n[[x]]\ny = """\n[a]\nb = \'old\'\n"""\n{last}'
    wanted = parse_toml(text)
    wanted["a"]["b"] = NEW
    with pytest.raises(PlanError, match="cannot be pinned"):
        edit_strings(text, {("a", "b"): written("'new'")}, wanted=wanted, of="pypi:acme")


def test_what_is_not_there_is_none() -> None:
    document = {"a": {"b": "c"}}
    assert find_value(document, ("a", "b")) == "c"
    assert find_value(document, ("a", "x", "y")) is None
    assert find_value(document, ("a", "b", "c")) is None
