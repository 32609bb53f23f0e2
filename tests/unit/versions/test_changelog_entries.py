"""What a changelog says of a new version, by the reasons for it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from releasekit.decided import Bump, Edge, Level, Reason, Source, VersionGroup, VersionIntent
from releasekit.fields import replace
from releasekit.model import DependencyKind, PackageId
from releasekit.text.changelog import find_section
from releasekit.text.escape import visible
from releasekit.versions.changelog_entries import write_date, write_section_body
from sample_runs import hostile_text
from watchdog import assert_no_worse_than_linear

MARKDOWN = MarkdownIt("commonmark").enable("table").enable("strikethrough")
CORE, CLI, WEB = (PackageId("pypi", name) for name in ("acme-core", "acme-cli", "acme-web"))
ICONS = PackageId("npm", "@acme/icons")
FIX = Source(title="fix: mend it", text="mend it", type="fix")


def write(*reasons: Reason, late: tuple[VersionIntent, ...] = (), old: str = "1.2.0") -> str:
    bump = Bump(package=WEB, old=old, new="1.3.0", level=Level.MINOR, reasons=reasons)
    return write_section_body(bump, {WEB: "1.3.0", CORE: "1.3.0", ICONS: "3.0.0"}, late)


def by(source: Source, level: Level = Level.PATCH) -> Reason:
    return Reason(package=WEB, level=level, source=source)


def needs(package: PackageId, kind: DependencyKind = DependencyKind.RUNTIME) -> Reason:
    return Reason(package=WEB, level=Level.PATCH, edge=Edge(dependent=WEB, on=package, kind=kind))


def write_entry(text: str, *, path: str = ".changeset/x.md", pull_request: int = 0) -> str:
    body = write(by(Source(title="x", text=text, path=path, pull_request=pull_request)))
    return body.removeprefix("### Fixes\n\n")


@pytest.mark.parametrize(
    ("source", "level", "part"),
    [
        (replace(FIX, breaking=True), Level.PATCH, "Breaking changes"),
        (replace(FIX, type="feat"), Level.MAJOR, "Breaking changes"),
        (replace(FIX, type="feat"), Level.PATCH, "Features"),
        (replace(FIX, type="build"), Level.MINOR, "Features"),
        (replace(FIX, type="revert"), Level.PATCH, "Reverts"),
        (FIX, Level.PATCH, "Fixes"),
        (replace(FIX, type="perf"), Level.PATCH, "Fixes"),
        (replace(FIX, type="", path=".changeset/x.md"), Level.MINOR, "Features"),
    ],
)
def test_an_entry_is_in_the_part_of_its_type_and_level(
    source: Source, level: Level, part: str
) -> None:
    assert write(by(source, level)) == f"### {part}\n\n- mend it"


def test_parts_have_one_order_and_entries_that_of_the_reasons() -> None:
    body = write(
        needs(CORE),
        by(replace(FIX, type="revert", text="Revert it")),
        by(FIX),
        by(replace(FIX, text="mend that")),
        by(replace(FIX, type="feat", text="add it"), Level.MINOR),
        by(replace(FIX, text="break it", breaking=True), Level.MAJOR),
    )
    assert body == (
        "### Breaking changes\n\n- break it\n\n### Features\n\n- add it\n\n"
        "### Fixes\n\n- mend it\n- mend that\n\n### Reverts\n\n- Revert it\n\n"
        "### Dependencies\n\n- acme-core 1.3.0"
    )


@pytest.mark.parametrize(
    ("text", "number", "entry"),
    [
        ("mend it", 0, "- mend it"),
        ("mend it", 41, "- mend it (#41)"),
        ('Revert "feat: it (#40)" (#41)', 41, '- Revert "feat: it (#40)" (#41)'),
        ("mend #4", 4, "- mend #4 (#4)"),
        ("fixes #1", 41, "- fixes\u200b #1 (#41)"),
        ("# 1.2.0", 0, "- \\# 1.2.0"),
        ("x" * 2_000, 41, f"- {'x' * 999}… (#41)"),
    ],
)
def test_a_commit_is_told_by_its_text_and_its_pull_request(
    text: str, number: int, entry: str
) -> None:
    assert write_entry(text, path="", pull_request=number) == entry


@given(hostile_text)
def test_a_commit_is_one_line_of_text(text: str) -> None:
    """R35"""
    body = write(by(replace(FIX, text=text)), by(replace(FIX, text="last")))
    inline = [each for each in MARKDOWN.parse(body) if each.type == "inline"]
    told = visible(text.strip()).strip()
    assert [each.content for each in inline][-1] == "last"
    assert len(inline) == (3 if text.strip() else 2)
    children = inline[1].children or ()
    assert {each.type for each in children} <= {"text", "text_special"}
    shown = "".join(each.content for each in children).replace("\u200b", "")
    assert shown == (told if text.strip() else "last")


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        ("Icons are ES modules.", "- Icons are ES modules."),
        ("Two\nlines.\n\nMore.", "- Two\n  lines.\n\n  More."),
        ("\n\n  Two.  \n\n\n\nMore.\n\n", "- Two.\n\n  More."),
        ("Use *this*, @you: [it](https://x.example).", None),
        ("- one\n- two", "- - one\n  - two"),
        # A heading is lower than a part, and the first line is none.
        (
            "# Title\n\nText.\n\n## Sub\n\n#### Deep",
            "- Title\n\n  Text.\n\n  #### Sub\n\n  ###### Deep",
        ),
        ("# Title #\nText.", "- Title\n\n  Text."),
        ("It.\n##### Low", "- It.\n\n  ##### Low"),
        ("Title\n=====\n\nText.\n\nSub\n---", "- Title\n\n  Text.\n\n  #### Sub"),
        (
            "It.\n\n```sh\n# no heading\n\n- x\n```",
            "- It.\n\n  ```sh\n  # no heading\n\n  - x\n  ```",
        ),
        # What is open is closed.
        ("It.\n\n```\ncode", "- It.\n\n  ```\n  code\n  ```"),
        ("```\ncode\n\nmore\n```\n\nIt.", "- ```\n  code\n\n  more\n  ```\n\n  It."),
        ("<!-- Say what. -->\nIt. <!-- x\ny -->\n\nMore.", "- It.\n\n  More."),
        ("Read `<!--` and more.\n\nX", "- Read `<\u200b!--` and more.\n\n  X"),
        ("It <!<!-- x -->-- y", "- It <\u200b!-- y"),
        ("---", "- \\---"),
        ("It <!<!<!-- x -->-- y -->-- z", "- It <!<\u200b!-- y -->-- z"),
        ("It\x1b[2J\u202e.", "- It\\x1b[2J\\u202e."),
    ],
)
def test_a_change_file_is_told_as_markdown_inside_one_item(text: str, entry: str | None) -> None:
    assert write_entry(text) == (f"- {text}" if entry is None else entry)


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        ("Two\nlines.\n\nMore.", "- Two\n  lines. (#7)\n\n  More."),
        ("Two (#7).\n\nMore.", "- Two (#7).\n\n  More."),
        ("# Title\nMore.", "- Title (#7)\n\n  More."),
        ("```\ncode\n```\nmore", "- ```\n  code\n  ```\n  more (#7)"),
        ("```\ncode\n```", "- ```\n  code\n  ```\n\n  (#7)"),
    ],
)
def test_the_pull_request_of_a_change_file_stands_behind_its_first_paragraph(
    text: str, entry: str
) -> None:
    assert write_entry(text, pull_request=7) == entry


PIECES = st.sampled_from(
    (
        *(
            "```",
            "~~~~",
            "<!--",
            "-->",
            "<!",
            "<!-->",
            "- ```",
            "# a",
            "## 1.2.3",
            "###### b",
            "===",
            "---",
        ),
        *("- x", "* * *", "- ---", "-", "#", "> q", "1. n", "    c", "\tt", "<div>", "<pre>"),
        *("</pre>", "[a]: /x", "[a]", "| a |", "`", "\\", "@team", "::set-output", "text", "", ""),
    )
)


@given(st.lists(st.one_of(PIECES, hostile_text), max_size=12).map("\n".join))
def test_no_change_file_reaches_out_of_its_item(text: str) -> None:
    """R35: what follows it is the next entry, and the next part."""
    file = Source(title="x", text=text, path=".changeset/x.md", pull_request=7)
    last = replace(FIX, text="last")
    tokens = MARKDOWN.parse(write(by(file), by(last), needs(CORE)))
    top = [each.type for each in tokens if each.level == 0 and each.nesting >= 0]
    assert top == ["heading_open", "bullet_list_open"] * 2
    items = [
        at for at, each in enumerate(tokens) if each.type == "list_item_open" and each.level == 1
    ]
    assert [tokens[at + 2].content for at in items[-2:]] == ["last", "acme-core 1.3.0"]
    assert len(items) in {2, 3}


@given(st.lists(PIECES, max_size=12).map("\n".join))
def test_no_change_file_hides_what_stands_below_it(text: str) -> None:
    """Headings of releases inside it end a section; `add_section` finds out."""
    body = write(by(Source(title="x", text=text, path=".changeset/x.md")), needs(CORE))
    assert find_section(f"## 2.0.0\n\n{body}\n\n## 1.0.0\n\n- old\n", "1.0.0") == "- old"


def test_dependencies_are_those_that_get_a_version_each_once() -> None:
    peer = needs(CORE, DependencyKind.PEER)
    body = write(needs(CORE), peer, needs(ICONS), needs(CLI))
    assert body == "### Dependencies\n\n- acme-core 1.3.0\n- `npm:@acme/icons` 3.0.0"


def test_late_changes_are_marked() -> None:
    late = [
        VersionIntent(
            package=WEB, level=level, source=replace(FIX, text=text, type=kind), late=True
        )
        for level, text, kind in [
            (Level.PATCH, "mend late", "fix"),
            (Level.MINOR, "add late", "feat"),
            (Level.NONE, "say it", "docs"),
        ]
    ]
    exact = VersionIntent(
        package=WEB,
        level=Level.NONE,
        exact="1.2.0",
        source=Source(title="x", text="By hand.\n\nMore.", path="x.md", pull_request=7),
        late=True,
    )
    assert write(by(FIX), late=(*late, exact)) == (
        "### Features\n\n- add late *(already in 1.2.0)*\n\n"
        "### Fixes\n\n- mend it\n- mend late *(already in 1.2.0)*\n"
        "- By hand. (#7) *(already in 1.2.0)*\n\n  More."
    )


def test_a_first_release_says_so_alone() -> None:
    assert write(by(FIX), needs(CORE), old="") == "First release."


@pytest.mark.parametrize(
    ("members", "sentence"),
    [
        ((WEB, CORE), "Released together with acme-core."),
        ((WEB, CORE, CLI, ICONS), "Released together with acme-core, `@acme/icons`."),
        ((WEB, CLI), "No notable changes."),
    ],
)
def test_a_member_of_a_group_names_those_that_it_is_released_with(
    members: tuple[PackageId, ...], sentence: str
) -> None:
    group = VersionGroup(name="ui", packages=members)
    assert write(Reason(package=WEB, level=Level.MAJOR, group=group)) == sentence


@pytest.mark.parametrize(
    "reason",
    [
        Reason(package=WEB, rule="1.3.0 is already written"),
        by(Source(title="--set acme-web=1.3.0")),
        by(Source(title="x", text="<!-- nothing -->", path=".changeset/x.md", pull_request=7)),
    ],
)
def test_reasons_that_say_nothing_to_users_leave_one_sentence(reason: Reason) -> None:
    assert write(reason) == "No notable changes."


@pytest.mark.parametrize(
    ("times", "newest_s", "date"),
    [
        ((1_700_000_000, 1_795_305_599), 0, "2026-11-21"),
        ((1_795_305_600,), 0, "2026-11-22"),
        ((0,), 1_795_305_599, "2026-11-21"),
        ((), 1_795_305_599, "2026-11-21"),
        ((2**62,), 0, "9999-12-31"),
    ],
)
def test_the_date_is_that_of_the_newest_intent(
    times: tuple[int, ...], newest_s: int, date: str
) -> None:
    reasons = tuple(by(replace(FIX, time_s=each)) for each in times)
    bump = Bump(package=WEB, old="1", new="2", level=Level.PATCH, reasons=reasons)
    assert write_date(bump, newest_s) == date


@pytest.mark.parametrize(
    "piece", ["<!--", "<!-- -->", "```\n", "# a\n", "a\n---\n", "\n", "fix ", "`"]
)
@pytest.mark.parametrize("path", ["", ".changeset/x.md"])
def test_nobody_keeps_it_busy(piece: str, path: str) -> None:
    """R40"""

    def write_long(times: int) -> None:
        write_entry(f"x\n{piece * times}", path=path)

    assert_no_worse_than_linear(write_long, 60_000)
