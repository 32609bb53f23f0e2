from __future__ import annotations

import pytest

from releasekit.ecosystems.maven import document

LONG = 1024 * 1024


def test_text_is_put_together_and_found_where_it_lies() -> None:
    data = b"<a>\n one &lt;<!-- or --> two<b/>&gt;\n</a>"
    root = document.parse_document(data)
    assert root.text == "\n one < two>\n"
    assert data[root.start : root.end] == data[3:-4]
    assert root.children[0].start == root.children[0].end


def test_names_are_without_their_namespace() -> None:
    root = document.parse_document(b'<m:a xmlns:m="urn:m"><b xmlns="urn:n"/><m:c/></m:a>')
    assert (root.tag, [child.tag for child in root.children]) == ("a", ["b", "c"])


@pytest.mark.parametrize("text", ["\n", "&lt;", "<![CDATA[a]]>", "a<!---->", "<?a?>"])
def test_no_text_takes_long(text: str) -> None:
    """R51: expat hands it over in as many pieces."""
    assert document.parse_document(f"<a>{text * (LONG // len(text) // 8)}</a>".encode()).tag == "a"


def test_no_namespace_takes_long() -> None:
    """R51: nobody needs a megabyte of URL before each of thousands of tags."""
    elements = "<b/>" * 10_000
    root = document.parse_document(f'<a xmlns="{"u" * LONG}">{elements}</a>'.encode())
    assert {child.tag for child in root.children} == {"b"}


def test_no_tag_takes_long() -> None:
    """R51: 700,000 attributes kept expat, and with it the interpreter, busy for 1.6 s."""
    attributes = "".join(f"a{number}='>' " for number in range(20_001))
    with pytest.raises(ValueError, match="more than 20000 attributes"):
        document.parse_document(f"<a>x<b {attributes}/></a>".encode())
    text = "a=b;" * 5_000 + "c" * 70_000
    assert document.parse_document(f"<a>{text}</a>".encode()).text == text


def test_a_file_has_only_so_many_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document, "MAX_BYTES", 3)
    with pytest.raises(ValueError, match="more than 3 bytes"):
        document.parse_document(b"<a/>")
