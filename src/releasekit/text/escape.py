"""Text from a repository or a registry, made harmless for the place where it is shown.

A package name, a build log or a registry's answer may hold anything. What leaves this module can
neither break the structure around it (a table, a tag, a code fence, a graph) nor reach the
terminal or the runner as a command.
"""

from __future__ import annotations

import re
from functools import lru_cache
from html import escape, unescape
from typing import TYPE_CHECKING

from releasekit.text.splice import splice

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# A character reference never counts as Markdown structure, and reads the same inside HTML:
# https://spec.commonmark.org/0.31.2/#entity-and-numeric-character-references
# GitHub turns "@name" into a mention after rendering, so the zero-width space has to stay in.
_MARKDOWN = {ord(char): f"&#{ord(char)};" for char in "\\`*_{}[]()<>&|~!#$\"'"} | {
    ord("@"): "&#64;&#8203;",
}
_AUTOLINK = re.compile(r":(?=//)|(?<=www)\.", re.IGNORECASE)
# An underscore between letters is one.
# https://github.github.com/gfm/#emphasis-and-strong-emphasis
_MARKUP = re.compile(r"\A[#+=-]|[\\`*<>\[\]~|]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_NUMBER = re.compile(r"\A([0-9]{1,9})(?=[.)])")
# https://docs.gitlab.com/user/profile/#change-your-username; a tag or a comment may come before it
_MENTION = re.compile(r"@(?=[A-Za-z0-9_.<])")
# A character in another spelling: a reference, which within HTML needs no semicolon if it is a
# number, or a backslash before punctuation.
# https://spec.commonmark.org/0.31.2/#entity-and-numeric-character-references
# https://html.spec.whatwg.org/multipage/parsing.html#numeric-character-reference-end-state
_SPELLED = re.compile(
    r"&(?:#0*+[0-9]{1,7};?|#[xX]0*+[0-9A-Fa-f]{1,6};?|[A-Za-z][A-Za-z0-9]{1,31};|nbsp)"
    r"|\\(?=[!-/:-@\[-`{-~])"
)
# What stands in the source only: comments, tags, where a link leads, and marks of emphasis.
# https://spec.commonmark.org/0.31.2/#open-tag: what is quoted may have a ">" in it.
_TAG = re.compile(
    r"<[A-Za-z][A-Za-z0-9-]*+"
    r"(?>(?:\s++[A-Za-z_:][A-Za-z0-9_.:-]*+"
    r"(?>(?:\s*+=\s*+(?:[^\s\"'=<>`]++|'[^']*+'|\"[^\"]*+\"))?))*)"
    r"\s*+/?>|</?[A-Za-z][^<>]*>"
)
_UNSEEN = re.compile(rf"<!--[^<>]*-->|{_TAG.pattern}|\\(?=\n)|\]\([^()\n]*\)|[*_~`\[\]]")
# A comment ends where it says so, whatever is in it.
_COMMENT = re.compile(r"<!--(?>(?:[^-]|-(?!->))*)(?:-->|\Z)")
# https://docs.github.com/en/issues/tracking-your-work-with-issues/using-issues/linking-a-pull-request-to-an-issue
# https://docs.gitlab.com/user/project/issues/managing_issues/#default-closing-pattern
_CLOSING = re.compile(
    r"\b(?:clos(?:e[sd]?|ing)|fix(?:e[sd]|ing)?|resolv(?:e[sd]?|ing)|implement(?:s|ed|ing)?)"
    r"(?=:?\s+(?:issues?\s+)?\S*(?:#|/|gh-)[0-9])",
    re.IGNORECASE,
)
_LINK = re.compile(r"https?://[A-Za-z0-9._~:/?#@!&=+,;%-]+")
_NOT_FOR_MERMAID = re.compile(r"[^A-Za-z0-9 ._+/@:-]")
_WORD = re.compile(r"[^\s<>\"']+")
# Servers' answers point to sections of their help, whose names are short lower-case words.
_HELP = re.compile(r"\Adocs\.[^/]+/|/(?:docs|help)/")
_SECTION = re.compile(r"#[a-z]{2,15}(?:-[a-z]{1,15}){1,7}[.,;:)]*")
_MAX_MESSAGE_CHARS = 400
_SPAN = re.compile(r"`([^`\n]+)`")
_BACKTICKS = re.compile(r"`{3,}")
# What acts on a terminal or on the text around it, or is not to be seen; written with code points,
# as it would not be seen here either. Left alone are newline and tab, spaces of any width, joiners
# and variation selectors (of emoji and of many scripts), soft hyphens, and the zero-width space,
# which many put behind an "@" so that it mentions no user. Of tags, the flags made of them.
# https://www.unicode.org/reports/tr51/#def_emoji_tag_sequence
_HIDDEN = re.compile(
    "(\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{1,8}\U000e007f)"
    "|[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u180e\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ud800-\udfff\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)


def visible(text: str) -> str:
    """`text` on one line, with control characters and bidirectional overrides spelled out.

    https://trojansource.codes explains why the latter must not reach a reader.
    """
    if text.isprintable():
        return text
    return "".join(map(_visible_character, text))


@lru_cache(maxsize=1_024)
def _visible_character(char: str) -> str:
    if char.isprintable():
        return char
    return " " if char.isspace() else char.encode("unicode_escape").decode("ascii")


def visible_lines(text: str) -> str:
    """`text` of any number of lines, with its control and bidirectional characters spelled out and
    everything else as it is: for Markdown that is kept.
    """
    return _HIDDEN.sub(lambda found: found[1] or _visible_character(found[0]), text)


def redact_urls(text: str) -> str:
    """`text` with its URLs cut to what is public of them: no user, no query, and no fragment
    but the name of a section of a server's help.
    """
    # Anybody with a presigned URL has access.
    return _WORD.sub(_bare, text) if "://" in text else text


def _bare(match: re.Match[str]) -> str:
    """A word may hold several, one in the path of another or after a comma."""
    first, *others = match[0].split("://")
    shown = [first]
    for rest in others:
        public = re.split(r"[?#]", rest, maxsplit=1)[0]
        host, slash, path = public.partition("/")
        user, at, name = host.rpartition("@")
        shown.append(f"{'***' if user else ''}{at}{name}{slash}{path}")
        is_section = _HELP.search(public) and _SECTION.fullmatch(rest, len(public))
        if public != rest and not is_section:
            return f"{'://'.join(shown)}?…"
        shown[-1] += rest.removeprefix(public)
    return "://".join(shown)


def clip(text: str, limit: int) -> str:
    """At most `limit` characters. Clip first, escape afterwards: markup is never cut."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def one_line(text: str, limit: int = _MAX_MESSAGE_CHARS) -> str:
    """`text` made safe to show: no line ends, no control characters, bounded."""
    # Only white space makes the line shorter, and a message has little of it.
    start = redact_urls(text[: 16 * limit])
    line = " ".join(visible(start).split())
    return clip(line if len(text) <= 16 * limit else f"{line}…", limit)


def markdown(text: str) -> str:
    """For the middle of a line of Markdown or HTML, table cells included."""
    escaped = visible(text).translate(_MARKDOWN)
    return _AUTOLINK.sub(lambda match: f"&#{ord(match[0])};", escaped)


def subject(text: str) -> str:
    """The subject of a commit, for a line of Markdown. Escapes only what means something within a
    line, so that the text stays readable unrendered. It mentions no user and closes no issue;
    numbers of pull requests still link.
    """
    escaped = _MARKUP.sub(r"\\\g<0>", visible(text).replace("&", "&amp;"))
    escaped = _AUTOLINK.sub(lambda match: f"&#{ord(match[0])};", escaped)
    return notify_nobody(_NUMBER.sub(r"\1\\", escaped))


def notify_nobody(text: str) -> str:
    """Markdown that mentions no user and closes no issue, whatever it says and however a character
    is spelled. What is added is not to be seen.
    """
    decoded = _replace(text, range(1, len(text) + 1), _SPELLED)
    # A reference whose first character is one, as some programs decode twice; and what a reader
    # sees, which may have tags and marks in it.
    twice = _replace(*decoded, _SPELLED)
    places = set()
    views = [decoded, twice]
    for each in (twice, _replace(*twice, _COMMENT)):
        # A tag may break a line.
        views += [_replace(*each, _UNSEEN), _replace(*_replace(*each, _TAG, " "), _UNSEEN)]
    for shown, ends in views:
        places |= {ends[each.end() - 1] for each in _MENTION.finditer(shown)}
        places |= {ends[each.end() - 1] for each in _CLOSING.finditer(shown)}
    return splice(text, (((place, place), "\u200b") for place in places))


def _replace(
    text: str, ends: Sequence[int], pattern: re.Pattern[str], instead: str = ""
) -> tuple[str, Sequence[int]]:
    """`text` with what the pattern finds in it as it is read, or `instead`, and where each
    character ended in the source, as `ends` says of `text`.
    """
    shown, places, at = [], [*ends[:0]], 0
    for found in pattern.finditer(text):
        read = _read_spelled(found[0]) if pattern is _SPELLED else instead
        shown += [text[at : found.start()], read]
        places += [*ends[at : found.start()], *[ends[found.end() - 1]] * len(read)]
        at = found.end()
    return "".join([*shown, text[at:]]), [*places, *ends[at:]]


def _read_spelled(spelled: str) -> str:
    if spelled[0] == "\\":
        return ""
    return unescape(spelled if spelled.endswith(";") else f"{spelled};")


def code(text: str) -> str:
    """`text` in a monospaced font; a backtick span could not hold a pipe or a backtick."""
    return f"<code>{markdown(text)}</code>"


def prose(text: str) -> str:
    """As `markdown`, with what stands between backticks as code: our messages put names there."""
    return "".join(code(part) if is_code else markdown(part) for part, is_code in _split_code(text))


def html_prose(text: str) -> str:
    """As `prose`, for our own page."""
    return "".join(
        f"<code>{html(part)}</code>" if is_code else html(part)
        for part, is_code in _split_code(text)
    )


def _split_code(text: str) -> list[tuple[str, bool]]:
    return [(part, at % 2 == 1) for at, part in enumerate(_SPAN.split(text))]


def code_link(text: str, url: str) -> str:
    """As `code`, and a link to `url`, if that is a plain web address."""
    return _link_to(code(text), url)


def link(text: str, url: str) -> str:
    """`text` as a link to `url`, if that is a plain web address."""
    return _link_to(markdown(text), url)


def _link_to(shown: str, url: str) -> str:
    return f'<a href="{url.translate(_MARKDOWN)}">{shown}</a>' if _LINK.fullmatch(url) else shown


def html(text: str) -> str:
    """For a page of our own, between tags and inside quoted attributes."""
    return escape(visible(text))


def html_link(text: str, url: str) -> str:
    """As `link`, for our own page; it does not disclose where the reader came from."""
    shown = html(text)
    if not _LINK.fullmatch(url):
        return shown
    return f'<a href="{html(url)}" rel="noreferrer">{shown}</a>'


def plain(text: str) -> str:
    """Markdown for a terminal: what `markdown` and `subject` spell out reads as it is meant."""
    return visible_lines(unescape(text).replace("\u200b", ""))


def fence(lines: Iterable[str], language: str = "") -> str:
    """A fenced code block; its fence is longer than any run of backticks in `lines`.

    https://spec.commonmark.org/0.31.2/#fenced-code-blocks
    """
    body = [visible(line) for line in lines]
    longest = max((len(run) for line in body for run in _BACKTICKS.findall(line)), default=2)
    marks = "`" * (longest + 1)
    return "\n".join([marks + language, *body, marks])


def mermaid(text: str) -> str:
    """A quoted Mermaid label, ASCII only.

    Mermaid reads Markdown, HTML and `#entities;` inside quotes, so only harmless characters stay:
    https://mermaid.js.org/syntax/flowchart.html#special-characters-that-break-syntax
    """
    return f'"{mermaid_words(text)}"'


def mermaid_words(text: str) -> str:
    """`text` between the quotes of a label that has more in it."""
    return _NOT_FOR_MERMAID.sub("_", clip(text, 80))


def log_line(text: str) -> str:
    """For a line of a CI log: the runner finds no command in it."""
    return break_commands(visible(text))


def break_commands(line: str) -> str:
    """`line`, in which the runner finds no command.

    It looks for "::" at the start of a line and "##[" anywhere:
    https://github.com/actions/runner/blob/main/src/Runner.Common/ActionCommand.cs
    """
    return re.sub(r"^\s*::", ": :", line.replace("##[", "# #["))
