from __future__ import annotations

import itertools
import json
from html.parser import HTMLParser

import pytest
from packaging.version import Version

import distributions
from releasekit.ecosystems.pypi.simple_index import (
    ListedFile,
    find_published,
    parse_filename,
    parse_page,
)
from releasekit.errors import Rejected
from releasekit.fields import replace

JSON = "application/vnd.pypi.simple.v1+json"
PACKAGE = distributions.package("acme-core", "1.0.0")
AB = "ab" * 32


def page(*files: object) -> bytes:
    return json.dumps({"meta": {"api-version": "1.1"}, "files": files}).encode()


def test_json_pages_are_read() -> None:
    body = page(
        {"filename": "a-1.tar.gz", "hashes": {"md5": "0f", "sha256": AB.upper()}, "yanked": "bad"},
        {"filename": "a-2.tar.gz", "hashes": {"sha512": "cd" * 64, "blake2b": "ef" * 64}},
        {"filename": "a-3.tar.gz", "hashes": {"sha256": None}},
        {"filename": "a-4.tar.gz", "hashes": []},
        {"filename": "a-5.tar.gz"},
        {"filename": "a-6.tar.gz", "hashes": {"sha256": AB * 9, "sha1": "xy" * 20, "crc": "ab"}},
    )
    assert tuple(parse_page(body, f"{JSON}; charset=utf-8")) == (
        ListedFile("a-1.tar.gz", f"sha256:{AB}", yanked="bad"),
        ListedFile("a-2.tar.gz", f"blake2b:{'ef' * 64}"),
        ListedFile("a-3.tar.gz", ""),
        ListedFile("a-4.tar.gz", ""),
        ListedFile("a-5.tar.gz", ""),
        ListedFile("a-6.tar.gz", ""),
    )


@pytest.mark.parametrize("kind", ["text/html", "application/vnd.pypi.simple.v1+html"])
def test_html_pages_are_read(kind: str) -> None:
    body = f"""<!DOCTYPE html><html><body><a name="top">no link</a><a href>none</a>
    <a href="../../packages/a-1%2B2.tar.gz#sha256={AB.upper()}">whatever it says</a>
    <A HREF="https://files.example/x/a-2.whl?sig=1#md5={AB[:32]}" data-yanked="">a</A>
    <a href="a-3.tar.gz">a</a><a href="a-4.tar.gz#egg">a</a><a href="/">up</a></body></html>"""
    assert tuple(replace(file, url="") for file in parse_page(body.encode(), kind)) == (
        ListedFile("a-1+2.tar.gz", f"sha256:{AB}"),
        ListedFile("a-2.whl", f"md5:{AB[:32]}", yanked=""),
        ListedFile("a-3.tar.gz", ""),
        ListedFile("a-4.tar.gz", ""),
        ListedFile("", ""),
    )


def test_what_is_no_tag_holds_no_links() -> None:
    body = b"""<!-- <a href="no-1.tar.gz"> --><!--><a href=a-1.tar.gz#sha256=ab data-x>1</a>
    <p title='<a href="no-2.tar.gz">'></p><abbr href="no-3.tar.gz"><a title=">" href='a-2.tar.gz'>
    <a href="a-3.tar.gz?x=1&amp;y=2"/>< a href="no-4.tar.gz"><a
    HREF = "a-4.tar.gz" href="no-7.tar.gz"><a href="no-5.tar.gz" data-x"""
    names = [file.filename for file in parse_page(body, "text/html")]
    assert names == ["a-1.tar.gz", "a-2.tar.gz", "a-3.tar.gz", "a-4.tar.gz"]


ENDLESS = (
    "<!--", "<!--a--", "<!", "<?", "</a ", "<", "<a ", "<a\n", "<a/", "<a href", '<a href="',
    "<a href='", "<a x='\"", "<a b=", "<a =", "<p <", "<![CDATA[", "<script>", "&",
)  # fmt: skip


@pytest.mark.parametrize("text", ENDLESS)
def test_no_page_takes_long(text: str) -> None:
    """R51: each of these kept a reader that starts over busy for minutes."""
    body = (text * (256 * 1024 // len(text))).encode()
    assert {file.digest for file in parse_page(body, "text/html")} <= {""}


def test_pages_are_read_as_html_parser_reads_them() -> None:
    class Links(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            found.extend(value for name, value in attrs if (tag, name) == ("a", "href") and value)

    for spaces, quote, more in itertools.product(
        ("", " ", "\n\t"),
        ("", "'", '"'),
        ("", " data-yanked", " data-requires-python='>=3.8'", "/"),
    ):
        target = f"../a-1.tar.gz#sha256={AB}"
        attribute = f"href{spaces}={spaces}{quote}{target}{quote}"
        page = f"<html><!-- a > b --><a{spaces or ' '}{attribute}{more}{spaces}>a</a ><br/></html>"
        found: list[str] = []
        Links().feed(page)
        if quote or more != "/":
            assert found == [target]
            (file,) = parse_page(page.encode(), "text/html")
            assert replace(file, yanked=None, url="") == listed("a-1.tar.gz")[0]
            assert file.yanked == ("" if "yanked" in more else None)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"", JSON),
        (b"{}", JSON),
        (b"[]", JSON),
        (b'{"files": {}}', JSON),
        (b'{"files": ["a"]}', JSON),
        (b'{"files": [{"filename": 1}]}', JSON),
        (b"[" * 200_000, JSON),
        (b"\xff\xfe", JSON),
        (b'<a href="http://[::1">x</a>', "text/html"),
        (b"hello", "text/plain"),
        (b"hello", ""),
    ],
)
def test_anything_else_is_no_page(body: bytes, kind: str) -> None:
    """R40"""
    with pytest.raises(ValueError):  # noqa: PT011 (json raises its own)
        list(parse_page(body, kind))


@pytest.mark.parametrize(
    ("filename", "release"),
    [
        ("Acme.Core-1.0.tar.gz", ("acme-core", Version("1.0"), "sdist")),
        ("acme_core-1.0.zip", ("acme-core", Version("1.0"), "sdist")),
        ("acme_core-1.0-py3-none-any.whl", ("acme-core", Version("1.0"), "bdist_wheel")),
        (
            "acme_core-1!2.0rc1+local-1-cp312-abi3-manylinux_2_17_x86_64.whl",
            ("acme-core", Version("1!2.0rc1+local"), "bdist_wheel"),
        ),
        ("acme_core-1.0-py3.10.egg", None),
        ("acme_core-1.0.tar.gz.asc", None),
        ("acme_core-1.0-py3-none-any.whl.metadata", None),
        ("acme_core-latest.tar.gz", None),
        ("acme_core-latest-py3-none-any.whl", None),
        ("acme_core.whl", None),
        ("acme_core-1.0-1b-py2.py3-none-any.whl", ("acme-core", Version("1.0"), "bdist_wheel")),
        ("acme.core-1.0-py3-none-any.whl", ("acme-core", Version("1.0"), "bdist_wheel")),
        ("acme__core-1.0-py3-none-any.whl", None),
        ("acme#core-1.0-py3-none-any.whl", None),
        ("-1.0-py3-none-any.whl", None),
        ("acme_core-1.0-b1-py3-none-any.whl", None),
        ("acme_core-1.0-py3.-none-any.whl", None),
        ("acme_core-1.0--none-any.whl", None),
        ("acme_core-1.0-2.7.6-none-any.whl", None),
        ("", None),
        # R51: tags that stand for a billion others, and numbers that Python refuses to read.
        (
            f"acme-1.0-{'.'.join('a' * 999)}-{'.'.join('b' * 999)}-{'.'.join('c' * 999)}.whl",
            ("acme", Version("1.0"), "bdist_wheel"),
        ),
        (f"acme-{'9' * 5000}.tar.gz", None),
        (f"acme-{'9' * 5000}-py3-none-any.whl", None),
    ],
)
def test_names_tell_what_a_file_is(filename: str, release: object) -> None:
    assert parse_filename(filename) == release


def listed(*names: str) -> list[ListedFile]:
    return [ListedFile(name, f"sha256:{AB}") for name in names]


@pytest.mark.parametrize(
    ("names", "complete"),
    [
        (["acme_core-1.0.0.tar.gz", "acme_core-1.0.0-py3-none-any.whl"], True),
        (["acme_core-1.tar.gz", "Acme_Core-1.0-py2.py3-none-any.whl"], True),
        (["acme_core-1.0.0.tar.gz"], False),
        (["acme_core-1.0.0-cp312-none-any.whl", "acme_core-1.0.0-cp313-none-any.whl"], False),
    ],
)
def test_a_version_is_complete_with_a_source_and_a_wheel(names: list[str], complete: bool) -> None:
    """R21"""
    others = listed("acme_core-1.0.1.tar.gz", "acme_core_x-1.0.0.tar.gz", "index.html")
    found = find_published(
        [*listed(*names), *others], PACKAGE, url="https://index.example/acme-core/"
    )
    assert found is not None
    assert dict(found.files) == dict.fromkeys(names, f"sha256:{AB}")
    assert found.complete is complete
    assert found.url == "https://index.example/acme-core/"


@pytest.mark.parametrize(
    ("html", "yanked"),
    [
        ("", None),
        ("data-yanked", ""),
        ('data-yanked=""', ""),
        ("DATA-YANKED='a &lt; b'", "a < b"),
        ('x-data-yanked=""', None),
    ],
)
def test_both_forms_of_a_page_say_what_is_yanked(html: str, yanked: str | None) -> None:
    """R65: https://peps.python.org/pep-0592/"""
    body = f'<a {html} href="a-1.tar.gz#sha256={AB}">a</a>'
    assert [file.yanked for file in parse_page(body.encode(), "text/html")] == [yanked]


@pytest.mark.parametrize(
    ("value", "yanked"), [(True, ""), (False, None), ("", None), (None, None), ("bad", "bad")]
)
def test_a_value_that_is_true_yanks_in_json(value: object, yanked: str | None) -> None:
    """R65: https://peps.python.org/pep-0691/#project-detail"""
    body = page({"filename": "a-1.tar.gz", "hashes": {"sha256": AB}, "yanked": value})
    assert [file.yanked for file in parse_page(body, JSON)] == [yanked]


@pytest.mark.parametrize(
    ("yanked", "expected"),
    [
        ([None, None], None),
        (["", "because\nof x"], "yanked (because of x)"),
        (["", None], "yanked in part"),
    ],
)
def test_a_version_is_yanked_by_its_files(yanked: list[str | None], expected: str | None) -> None:
    """R65"""
    names = ["acme_core-1.0.0.tar.gz", "acme_core-1.0.0-py3-none-any.whl"]
    files = [
        ListedFile(name, f"sha256:{AB}", yanked=why)
        for name, why in zip(names, yanked, strict=True)
    ]
    files += [*listed("acme_core-1.1.tar.gz"), ListedFile("acme_core-1.2.tar.gz", "", yanked="")]
    found = find_published(files, PACKAGE, url="https://pypi.org/project/acme-core/1.0.0/")
    assert found is not None
    if expected is None:
        assert found.withdrawal is None
        return
    assert found.withdrawal is not None
    assert str(found.withdrawal) == expected
    assert found.withdrawal.others == ("1.1",)
    assert "https://pypi.org/manage/project/acme-core/releases/" in found.withdrawal.cure


def test_a_version_without_files_is_absent() -> None:
    assert find_published(listed("acme_core-1.0.0.post1.tar.gz"), PACKAGE, url="") is None
    assert find_published([], PACKAGE, url="") is None


def test_a_file_without_a_digest_is_no_verdict() -> None:
    """R16"""
    with pytest.raises(Rejected, match=r"pypi:acme-core 1.0.0: .*acme_core-1.0.0.tar.gz without"):
        find_published(
            [ListedFile("acme_core-1.0.0.tar.gz", "")], PACKAGE, url="https://index.example/"
        )


@pytest.mark.parametrize(
    ("body", "is_index"),
    [
        ("<html><title>Sign in</title><a href='/password'>Forgot it? Links for you</a>", False),
        ("<!DOCTYPE html><html><head></head><body>Welcome</body></html>", False),
        ("<!DOCTYPE html><title>Links for acme-core</title>", True),
        ("<html><head><title>root/dev: links for acme-core</title></head></html>", True),
        ('<html><meta name="pypi:repository-version" content="1.0"></html>', True),
        ("<html><title>Index of /simple/acme-core</title><a href='../'>up</a></html>", True),
        ("<html><body><a href='acme_core-1.0.0.tar.gz'>it</a></body></html>", True),
        ("", True),
    ],
)
def test_a_web_page_is_no_index_without_files(body: str, is_index: bool) -> None:
    """R68: a page of a login is not the index of a project that has no files."""
    if is_index:
        assert all(not it.digest for it in parse_page(body.encode(), "text/html"))
    else:
        with pytest.raises(ValueError, match="a web page without a link to a file"):
            list(parse_page(body.encode(), "text/html"))
