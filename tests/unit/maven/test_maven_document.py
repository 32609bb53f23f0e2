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


NAMED = '<?xml version="1.0" encoding="{}"?>\n<a>\n é <b> 1.0 </b></a>'


@pytest.mark.parametrize(
    ("name", "codec"),
    [
        *((each, each) for each in ("UTF-8", "ISO-8859-1", "windows-1252", "IBM850", "UTF-16")),
        ("UTF8", "utf-8"),
        ("Cp1252", "cp1252"),
        ("ISO-8859-1", "utf-8-sig"),  # a byte order mark says more
    ],
)
def test_encodings_are_read_and_kept(name: str, codec: str) -> None:
    """R66: those that mvn reads, with the offsets of their bytes."""
    data = NAMED.format(name).encode(codec)
    root = document.parse_document(data)
    assert root.text.strip() == "é"
    held = root.children[0]
    assert data[held.start : held.end] == document.encode(" 1.0 ", data)
    assert document.encode(root.text, data) in data


def test_without_a_declaration_the_first_bytes_tell() -> None:
    """R66"""
    data = "<a>é</a>".encode("utf-16")
    assert document.parse_document(data).text == "é"
    assert document.encode("é", data) == b"\xe9\0"


@pytest.mark.parametrize(
    ("name", "byte"),
    [
        ("", b"\xfc"),
        ("UTF-8", b"\xfc"),
        ("UTF-8", b"\xc3"),
        ("UTF-8", b"\xed\xa0\x80"),
        ("UTF-8", b"\xc0\xbc"),
        ("US-ASCII", b"\xfc"),
        ("windows-1252", b"\x81"),
    ],
)
def test_what_is_not_of_its_encoding_is_read_as_maven_reads_it(name: str, byte: bytes) -> None:
    """R66: each offset stays as it is. All of these are what mvn 3.8.7 takes."""
    head = f'<?xml version="1.0" encoding="{name}"?>\n'.encode() if name else b"\n"
    data = head + b"<a><!-- %s -->\n<b>J%srg</b><c> 1.0 </c></a>" % (byte, byte)
    root = document.parse_document(data)
    lost, held = root.children
    assert lost.text == "J" + "\ufffd" * len(byte) + "rg"
    assert data[held.start : held.end] == b" 1.0 "
    assert root.stray == 2
    with pytest.raises(ValueError, match="not well-formed"):
        document.parse_document(data.replace(b"</a>", b"<%s/></a>" % byte))


def test_what_is_ascii_is_so_in_encodings_of_several_bytes() -> None:
    """R66"""
    data = b'<?xml version="1.0" encoding="GBK"?><a>1.0</a>'
    assert document.parse_document(data).text == "1.0"


def test_what_an_encoding_lacks_becomes_a_reference() -> None:
    data = b'<?xml version="1.0" encoding="US-ASCII"?><a/>'
    assert document.encode("1é", data) == b"1&#233;"


@pytest.mark.parametrize(
    "kind",
    [
        "<!DOCTYPE a>",
        '<!DOCTYPE a SYSTEM "http://127.0.0.1:9/a.dtd">',
        '<!DOCTYPE a [<!ENTITY b "c"><!ENTITY d SYSTEM "/etc/passwd">]>',
        '<!DOCTYPE a [<!ENTITY % p SYSTEM "/etc/passwd"> %p;]>',
    ],
)
def test_a_document_type_changes_nothing(kind: str) -> None:
    """R66: as mvn has it."""
    root = document.parse_document(f"{kind}<a>Jos&eacute; &lt;&#48;</a>".encode())
    assert root.text == "José <0"


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ('<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "neither ReleaseKit nor Maven resolves &b;"),
        (
            '<!DOCTYPE a [<!ENTITY b "<c/>">]><a>&b;</a>',
            "neither ReleaseKit nor Maven resolves &b;",
        ),
        (
            '<!DOCTYPE a [<!ENTITY b SYSTEM "/x">]><a>&b;</a>',
            "neither ReleaseKit nor Maven resolves &b;",
        ),
        ("<a>&b;</a>", "neither ReleaseKit nor Maven resolves &b;"),
        ('<!DOCTYPE a [<!ENTITY b "c"><!ENTITY d "&b;&b;">]><a/>', "may expand too far"),
        (
            f'<!DOCTYPE a [<!ENTITY b "{"c" * LONG}">]><a d="{"&b;" * 20}"/>',
            "may expand too far",
        ),
        ('<!DOCTYPE a [<!ATTLIST b c CDATA "d">]><a/>', "declares attributes"),
    ],
)
def test_what_mvn_takes_for_no_text_is_refused(page: str, words: str) -> None:
    """R51, R66: nothing is fetched, and nothing grows."""
    with pytest.raises(ValueError, match=words):
        document.parse_document(page.encode())


def test_no_number_of_entities_takes_long() -> None:
    """R51: each is weighed without another look at the whole."""
    entities = "".join(f"<!ENTITY e{number} ''>" for number in range(200_000))
    assert document.parse_document(f"<!DOCTYPE a [{entities}]><a>b</a>".encode()).text == "b"


@pytest.mark.parametrize("encoding", ["", ' encoding="ISO-8859-15"'])
def test_only_xml_1_0_is_read(encoding: str) -> None:
    """R66: mvn refuses any other, whatever it holds."""
    with pytest.raises(ValueError, match=r"Maven reads only XML 1\.0"):
        document.parse_document(f'<?xml version="1.1"{encoding}?><a/>'.encode())
