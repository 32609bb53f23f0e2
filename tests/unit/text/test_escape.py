from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from releasekit.text.escape import (
    clip,
    code,
    fence,
    link,
    log_line,
    markdown,
    mermaid,
    notify_nobody,
    plain,
    subject,
    visible,
)
from sample_runs import hostile_text

MARKDOWN = MarkdownIt("commonmark").enable("table").enable("strikethrough")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text", "plain text"),
        ("Grüße, 世界", "Grüße, 世界"),
        ("two\nlines\tand a tab", "two lines and a tab"),
        ("\x1b[2J", "\\x1b[2J"),
        ("a\u202eb\u2066c", "a\\u202eb\\u2066c"),
        ("\u200b", "\\u200b"),
        ("\ud800", "\\ud800"),
        ("no\u00a0break", "no break"),
    ],
)
def test_invisible_characters_are_spelled_out(text: str, shown: str) -> None:
    """R35"""
    assert visible(text) == shown


def test_clip_says_that_it_cut() -> None:
    assert clip("12345", 5) == "12345"
    assert clip("123456", 5) == "1234…"


@given(hostile_text)
def test_markdown_shows_the_text_and_nothing_else(text: str) -> None:
    """R35: whatever the text, one row stays one row of two cells without any markup."""
    tokens = MARKDOWN.parse(f"| a | b |\n| - | - |\n| x{markdown(text)}x | y |\n")
    inline = [token for token in tokens if token.type == "inline"]
    assert [token.content for token in inline[:2]] == ["a", "b"]
    assert len(inline) == 4
    assert {child.type for child in inline[2].children or []} == {"text"}
    shown = "".join(child.content for child in inline[2].children or [])
    assert shown.replace("\u200b", "") == f"x{visible(text)}x"


@given(hostile_text)
def test_markdown_mentions_nobody_and_links_nothing(text: str) -> None:
    """R35"""
    escaped = markdown(text)
    assert "@" not in escaped
    assert "://" not in escaped
    assert "www." not in escaped.lower()


@given(hostile_text)
def test_a_subject_is_text_without_links_and_mentions(text: str) -> None:
    """R35"""
    (_, inline, *_) = MARKDOWN.parse(f"x {subject(text)}")
    assert {each.type for each in inline.children or ()} <= {"text", "text_special"}
    shown = "".join(each.content for each in inline.children or ())
    assert shown.replace("\u200b", "") == f"x {visible(text)}".rstrip(" ")
    assert not re.search(r"@[A-Za-z0-9]|://|www\.", inline.content)


@pytest.mark.parametrize(
    "text",
    [
        "fixes #1",
        "it Closed: #12",
        "resolve acme/mono#3",
        "fix https://github.com/acme/mono/issues/4",
        "fixed [#5]",
        "close GH-6",
    ],
)
def test_a_subject_closes_no_issue(text: str) -> None:
    """Words that GitHub looks for stand right before the number, with nothing between."""
    closing = r"(?i)\b(clos(e[sd]?)|fix(e[sd])?|resolve[sd]?):?\s"
    assert re.search(closing, text)
    assert not re.search(closing, subject(text))


@pytest.mark.parametrize("text", ["fix the #1 cause of pain", "Merge it (#12)", "prefixes #1"])
def test_a_number_in_a_subject_still_links(text: str) -> None:
    assert subject(text) == text


@pytest.mark.parametrize(
    "piece",
    [
        *("`", "[", "<", "|", "\0", " ", "::", "##[", "www.", "://", "@", "fix ", "fix #"),
        *("&", "&#0", "&amp;", "<!--", "<a", "](", "\\", "**fix "),
        *("<a x='", '<a x="', "<a x=' y=\"", '<a x="" ', "<a x=\"<a y='", "<a ", "a=''"),
    ],
)
def test_long_text_is_gone_over_once(piece: str) -> None:
    """R51: what went over it again for every piece would not come to an end within this test."""
    text = piece * (2**17 // len(piece))
    for shown in (
        markdown(text),
        subject(text),
        notify_nobody(text),
        log_line(text),
        mermaid(text),
        link(text, text),
        fence([text]),
    ):
        assert len(shown) <= 30 * len(text)


def test_code_is_monospaced_text() -> None:
    assert code("a|b") == "<code>a&#124;b</code>"


@pytest.mark.parametrize(
    ("url", "linked"),
    [
        ("https://pypi.org/project/core/1.0.0/", True),
        ("http://127.0.0.1:8080/simple/core/", True),
        ("javascript:alert(1)", False),
        ('https://x/"onclick="y', False),
        ("https://x/ y", False),
        ("https://x/\u202e", False),
        ("/simple/core", False),
        ("", False),
    ],
)
def test_only_plain_web_addresses_become_links(url: str, linked: bool) -> None:
    """R35"""
    assert ("<a href=" in link("core", url)) is linked
    assert "core" in link("core", url)


@given(st.lists(hostile_text, max_size=5))
def test_nothing_breaks_out_of_a_fence(lines: list[str]) -> None:
    """R35"""
    tokens = MARKDOWN.parse(f"before\n\n{fence(lines, 'text')}\n\nafter\n")
    assert [token.type for token in tokens if token.nesting == 0] == ["inline", "fence", "inline"]
    block = next(token for token in tokens if token.type == "fence")
    assert block.info == "text"
    assert block.content.splitlines() == [visible(line) for line in lines]


@given(hostile_text)
def test_mermaid_labels_are_one_quoted_harmless_string(text: str) -> None:
    """R35"""
    assert re.fullmatch(r'"[A-Za-z0-9 ._+/@:-]{1,80}"', mermaid(text))


@given(hostile_text)
def test_log_lines_hold_no_command(text: str) -> None:
    """R35"""
    line = log_line(text)
    assert not line.lstrip().startswith("::")
    assert "##[" not in line
    assert line.isprintable()


def test_log_lines_keep_ordinary_text() -> None:
    assert log_line("Uploading core::1.0.0 [42%]") == "Uploading core::1.0.0 [42%]"


SPELLED = [
    *("@user", "&commat;user", "&#64;user", "&#x40;user", "&#X40;user", "&#0000064;user"),
    *("@&#117;ser", "&amp;commat;user", "&amp;#64;user", "&amp;amp;#x40;user", "\\@user"),
    *("<p>&#64user</p>", "<p>&#00000000064;user</p>", "<div>\n&#x40user\n</div>", "<x @user >"),
    *("closes #1", "closes &num;1", "closes &#35;1", "closes &#x23;1", "clos&#101;s #1"),
    *("closes&#32;#1", "closes&nbsp;#1", "<p>closes&nbsp#1</p>", "closes&NewLine;#1"),
    *("closes&colon; #1", "closes\\: #1", "closes \\#1", "closes\n#1", "closes GH&#45;1"),
    *("closes a/b&num;1", "closes https&colon;//github.com/a/b/issues/1", "<x closes #1 >"),
    *("**closes** #1", "_closes_ **#1**", "closes <b>#1</b>", "clo<!-- -->ses #1"),
    *("[closes](x) #1", "resolves &#x23;&#49;"),
    *("a @<!-- > -->user", "clo<!-- > -->ses #1", "clo<!-- < -- - -->ses #1", "a @_user", "@.user"),
    *("Closing #1", "fixing: #1", "implements a/b#1", "Resolving issue #1", "closes issues #1"),
    *('a @<a title=">">user</a>', "a @<a title='>'>user</a>", 'clo<b title=">">ses #1</b>'),
    *("fix<i x=\"'>\" y='\">'>es #1</i>", 'closes <a href="x>y" b>#1</a>', "closes<br>#1"),
    *(
        "closes<br />#1",
        'closes<br title=">">#1',
        "closes<p>#1</p>",
        "closes\\\n#1",
        "closes  \n#1",
    ),
    *('<p>closes</p><p title=">">#1</p>', "<td>closes:<td>#1", "closes<!-- > --><br>#1"),
]


class Texts(HTMLParser):
    """Those between tags, as a browser reads them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.feed(html)
        self.close()

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.mark.parametrize("text", SPELLED)
def test_nobody_is_mentioned_however_it_is_spelled(text: str) -> None:
    """R35: a renderer says what a forge gets to see, and what it shows stays as it is."""
    reads = re.compile(
        r"(?i)@[a-z0-9_.]|\b(?:clos(?:e[sd]?|ing)|fix(?:e[sd]|ing)?|resolv(?:e[sd]?|ing)"
        r"|implement(?:s|ed|ing)?):?\s+(?:issues?\s+)?\S*(?:#|/|gh-)[0-9]"
    )
    for write in (notify_nobody, subject):
        written = write(text)
        rendered = MARKDOWN.render(written)
        without_tags = re.sub(r"<!--.*?-->|<[^<>]*>", "", rendered, flags=re.DOTALL)
        for seen in (
            written,
            unescape(rendered),
            unescape(without_tags),
            unescape(unescape(rendered)),
            "".join(Texts(rendered).texts),
            " ".join(Texts(rendered).texts),
        ):
            assert not reads.search(seen)
    assert MARKDOWN.render(notify_nobody(text)).replace("\u200b", "") == MARKDOWN.render(text)


@pytest.mark.parametrize(
    "text",
    ["me@", "R&D &amp; more", "&num;1 is fixed", "a &lt;b&gt; `c` [d](e)", "prefixes #1", ""],
)
def test_what_notifies_nobody_stays_as_it_is(text: str) -> None:
    assert notify_nobody(text) == text


def test_markdown_reads_plainly_at_a_terminal() -> None:
    """R35: a spelled-out escape moves no cursor."""
    assert plain(markdown("a_b @me `x` <y>")) == "a_b @me `x` <y>"
    assert plain("&#27;[2J") == "[2J"
