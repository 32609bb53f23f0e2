"""A section is added to a changelog in Markdown, and everything else stays as it is."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from releasekit.errors import PlanError
from releasekit.problems import Problem
from releasekit.text import changelog
from releasekit.text.changelog import find_section, read_changelog
from releasekit.versions.changelog_edit import add_section
from watchdog import assert_no_worse_than_linear

BODY = "### Fixes\n\n- mend it (#41)"
INTRO = "# Changelog\n\nAll notable changes.\n\n"


def add(
    text: str | None,
    body: str = BODY,
    *,
    path: str = "CHANGELOG.md",
    version: str = "1.3.0",
    names: tuple[str, ...] = (),
    name: str = "",
    replaces: str = "",
) -> str:
    return add_section(
        text,
        path=path,
        version=version,
        date="2026-11-21",
        body=body,
        names=names or {name} - {""},
        name=name,
        replaces=replaces,
    )


@pytest.mark.parametrize("name", ["", "core"])
@pytest.mark.parametrize(
    "versions",
    [
        *("9 10 11", "9.9 10 10.1", "999 1000", "20260101 20260102", "1.0 1.1", "2024.1 2024.2"),
        *("9a1 9rc1 9 9.post1 10", "1!2 1!3", "1!2.0 1!2.1", "1.0+abc.1 1.1", "9+abc 10"),
        *("1.0.Final 1.1.Final", "9-RC1 9", "9-SNAPSHOT 9", "1.0-M1 1.0", "1.0.post1 1.0.post2"),
    ],
)
def test_each_form_of_a_version_gets_its_section(versions: str, name: str) -> None:
    """R66: in the order in which they are added, as PyPI and Maven have them."""
    text = None
    for version in versions.split():
        body = f"### Fixes\n\n- mend {version}."
        text = add(text, body, version=version, names=("core",), name=name)
    for version in versions.split():
        said = find_section(text or "", version, ["core"])
        assert (said.count("mend"), f"mend {version}." in said) == (1, True)


@pytest.mark.parametrize(
    "heading", ["2024", "28 November 2026", "3 things", "2026-11-28", "Part 2", "2024 - 2026-11-28"]
)
def test_a_number_is_a_version_only_where_it_stands_alone(heading: str) -> None:
    log = read_changelog(f"# Changelog\n\n## {heading}\n\n- old\n", ())
    assert log
    releases = [each.heading.text for each in log.sections if each.is_release]
    assert releases == ([heading] if heading.startswith("2024 -") else [])


def test_numbered_headings_stay_below_versions() -> None:
    text = "# Changelog\n\n## 1.2.0\n\n### 1\n\n- one\n\n### 2\n\n- two\n"
    assert "- two" in find_section(add(text), "1.2.0")
    assert add("# Log\n\n## 8\n\n- old\n", version="9").index("## 9 - ") == 7


@pytest.mark.parametrize("text", [None, "", "\n \n"])
def test_a_new_file_has_a_title(text: str | None) -> None:
    assert add(text) == f"# Changelog\n\n## 1.3.0 - 2026-11-21\n\n{BODY}\n"
    named = f"# Changelog\n\n## core 1.3.0 - 2026-11-21\n\n{BODY}\n"
    assert add(text, name="core") == named


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("## [1.2.0] - 2024-02-01", "## [1.3.0] - 2026-11-21"),
        ("## 1.2.0", "## 1.3.0 - 2026-11-21"),
        (
            "## [1.2.0](https://x.example/a/compare/v1.1.0...v1.2.0) (2024-02-01)",
            "## [1.3.0] - 2026-11-21",
        ),
        ("### [1.2.0][1.2.0] - 2024-02-01", "### [1.3.0] - 2026-11-21"),
        ("# v1.2.0 / 2024-02-01", "# 1.3.0 - 2026-11-21"),
        ("## Version 1.2.0", "## 1.3.0 - 2026-11-21"),
        ("## core@1.2.0 (2024-02-01)", "## 1.3.0 - 2026-11-21"),
        ("## 2024-02-01 - 1.2.0", "## 1.3.0 - 2026-11-21"),
        ("## **1.2.0**", "## 1.3.0 - 2026-11-21"),
        ("## <small>1.2.0 (2024-02-01)</small>", "## 1.3.0 - 2026-11-21"),
        ("## 1.2.0 ##", "## 1.3.0 - 2026-11-21"),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_heading_has_the_level_and_the_brackets_of_the_first_one(
    old: str, new: str, end: str
) -> None:
    before = f"{INTRO}{old}\n\n- old\n"
    level = max(3, len(new) - len(new.lstrip("#")) + 1)
    part = f"{'#' * level} Fixes\n\n- mend it (#41)"
    after = f"{INTRO}{new}\n\n{part}\n\n{old}\n\n- old\n"
    written = add("\ufeff" + before.replace("\n", end), names=("core",))
    assert written == "\ufeff" + after.replace("\n", end)
    assert find_section(written, "1.3.0", ("core",)) == part
    assert find_section(written, "1.2.0", ("core",)) == "- old"


@pytest.mark.parametrize(
    ("path", "text", "why"),
    [
        ("CHANGES.rst", None, "only Markdown is edited"),
        ("CHANGES.rst", "1.2.0\n-----\n\n- old\n", "only Markdown is edited"),
        ("HISTORY.md", "1.2.0\n-----\n\n- old\n" * 7, "none of its headings is a version"),
        ("HISTORY.md", "\ufffe#\0 \0C\0", "no text"),
    ],
)
def test_a_file_that_is_not_edited_gets_its_section_shown(
    path: str, text: str | None, why: str
) -> None:
    """R63: to be added by hand."""
    with pytest.raises(PlanError, match=why) as refused:
        add(text, path=path)
    assert str(refused.value).startswith(f"{path}: cannot add a section: ")
    word = "and" if path.endswith(".rst") else "or"
    assert f'`changelog = "none"` in [version], {word} add' in refused.value.hint
    assert refused.value.hint.endswith(f"\n\n## 1.3.0 - 2026-11-21\n\n{BODY}")


SECTION = f"## 1.3.0 - 2026-11-21\n\n{BODY}\n"
OLD = "## 1.2.0 - 2024-02-01\n\n- old\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", SECTION),
        (INTRO, f"{INTRO}{SECTION}"),
        ("# Changelog", f"# Changelog\n\n{SECTION}"),
        (
            "# Changelog\n[x]: https://x.example\n",
            f"# Changelog\n\n{SECTION}\n[x]: https://x.example\n",
        ),
        (OLD, f"{SECTION}\n{OLD}"),
        (f"# Changelog\n{OLD}", f"# Changelog\n\n{SECTION}\n{OLD}"),
        (
            f"{INTRO}<!-- new ones below -->\n\n{OLD}",
            f"{INTRO}<!-- new ones below -->\n\n{SECTION}\n{OLD}",
        ),
        (f'{INTRO}<a name="1.2.0"></a>\n{OLD}', f'{INTRO}{SECTION}\n<a name="1.2.0"></a>\n{OLD}'),
        (f"{INTRO}---\n\n{OLD}", f"{INTRO}---\n\n{SECTION}\n{OLD}"),
        (f"{INTRO}## Plans\n\n- x\n\n{OLD}", f"{INTRO}## Plans\n\n- x\n\n{SECTION}\n{OLD}"),
        (f"```\n{OLD}```\n\n{OLD}", f"```\n{OLD}```\n\n{SECTION}\n{OLD}"),
        (f"{OLD}\n## Unreleased\n\n- x\n", f"{SECTION}\n{OLD}\n## Unreleased\n\n- x\n"),
        (f"<!--\n{OLD}-->\n\n{OLD}", f"<!--\n{OLD}-->\n\n{SECTION}\n{OLD}"),
    ],
)
def test_a_section_stands_above_those_of_all_versions(before: str, after: str) -> None:
    if before:
        assert add(before) == after
    assert add(after) == after


KEEP = "# Changelog\n\n## [Unreleased]\n"
LINKS = "\n[unreleased]: https://x.example/1.2.0...HEAD\n"
NEW = "\n## [1.3.0] - 2026-11-21\n\n"
KEPT = "\n## [1.2.0] - 2024-02-01\n\n- old\n"


@pytest.mark.parametrize(
    ("unreleased", "left", "section"),
    [
        ("", "", BODY),
        ("\n- mine\n", "", f"- mine\n\n{BODY}"),
        ("\nMine.\n\n### Added\n- mine\n", "", f"Mine.\n\n### Added\n- mine\n\n{BODY}"),
        # Below the same heading, in one list or behind a paragraph.
        (
            "\n### fixes\n\n* mine\n\n### Other\n\n- x\n",
            "",
            "### fixes\n\n* mine\n- mend it (#41)\n\n### Other\n\n- x",
        ),
        ("\n### Fixes\n\nMine.\n", "", "### Fixes\n\nMine.\n\n- mend it (#41)"),
        # What a template leaves empty, and comments that are for authors.
        ("\n### Added\n\n### Fixed\n\n- mine\n", "", f"### Fixed\n\n- mine\n\n{BODY}"),
        ("\n### Added\n\n#### Sub\n\n- mine\n", "", f"### Added\n\n#### Sub\n\n- mine\n\n{BODY}"),
        (
            "\n<!-- Add yours below. -->\n\n- mine\n",
            "\n<!-- Add yours below. -->\n",
            f"- mine\n\n{BODY}",
        ),
        ("\n### Added\n\n### Fixed\n", "\n### Added\n\n### Fixed\n", BODY),
        ("\n- mend it (#41)\n", "", "- mend it (#41)"),
        (
            "\n```sh\n## 1.2.0\n\n### Fixes\n```\n",
            "",
            f"```sh\n## 1.2.0\n\n### Fixes\n```\n\n{BODY}",
        ),
    ],
)
def test_what_is_unreleased_moves_into_the_section(
    unreleased: str, left: str, section: str
) -> None:
    written = add(f"{KEEP}{unreleased}{KEPT}{LINKS}")
    assert written == f"{KEEP}{left}{NEW}{section}\n{KEPT}{LINKS}"
    assert find_section(written, "1.3.0") == section
    # Where no version has come out yet.
    assert add(f"{KEEP}{unreleased}{LINKS}") == f"{KEEP}{left}{NEW}{section}\n{LINKS}"


def test_links_of_what_is_unreleased_move_with_it() -> None:
    moved = "- mine, [a] and [b]\n\n[b]: /b\n\n- more\n"
    written = add(f"# Log\n\n[a]: /a\n\n## Unreleased\n\n{moved}\n{OLD}")
    assert f"## Unreleased\n\n## 1.3.0 - 2026-11-21\n\n{moved}\n{BODY}\n\n{OLD}" in written
    assert find_section(written, "1.3.0").endswith(f"{BODY}\n\n[a]: /a\n[b]: /b")


def test_a_version_that_is_said_to_be_unreleased_is_the_next_one() -> None:
    heading = "## 1.4 (unreleased)\n\n- mine\n"
    dated = "## 1.2.0 (2024-02-01)\n\n- old\n"
    section = f"## 1.3.0 - 2026-11-21\n\n- mine\n\n{BODY}\n"
    assert add(f"# Log\n\n{heading}\n\n{dated}") == f"# Log\n\n{section}\n\n{dated}"


@pytest.mark.parametrize(
    ("there", "section"),
    [
        ("- mine\n", f"- mine\n\n{BODY}\n"),
        (f"{BODY}\n", f"{BODY}\n"),
        (
            "### Other\n- x\n### Fixes\n- mine\n",
            "### Other\n- x\n\n### Fixes\n- mine\n- mend it (#41)\n",
        ),
        ("### Other\n\n### Fixes\n- mine\n", "### Other\n\n### Fixes\n- mine\n- mend it (#41)\n"),
        ("Words.\n\n- mend it (#41)\n", "Words.\n\n- mend it (#41)\n"),
    ],
)
def test_a_section_that_is_there_gets_what_it_lacks(there: str, section: str) -> None:
    heading = "## 1.3.0 (by hand, May 1st)\n"
    before = f"{INTRO}{heading}\n{there}\n{OLD}"
    assert add(before) == f"{INTRO}{heading}\n{section}\n{OLD}"
    # Also what has become unreleased since.
    later = before.replace(heading, f"## Unreleased\n\n- later\n\n{heading}")
    assert "- later" in find_section(add(later), "1.3.0")


@pytest.mark.parametrize("above", ["", "\n", "<!-- Thanks to all. -->\n", "\n<!--\nx\n-->\n\n"])
def test_what_stands_above_the_text_of_a_section_stays(above: str) -> None:
    before = f"## 1.3.0\n{above}- mine\n\n{OLD}"
    assert add(before) == f"## 1.3.0\n{above}- mine\n\n{BODY}\n\n{OLD}"


def test_a_version_that_was_not_published_is_taken_over() -> None:
    earlier = "### Fixes\n\n- earlier\n"
    before = f"{INTRO}## [1.2.1] - 2026-11-01\n\n{earlier}{KEPT}"
    assert add(before, replaces="1.2.1") == f"{INTRO}{NEW[1:]}{earlier}- mend it (#41)\n{KEPT}"
    # It was never there.
    assert add(before, replaces="1.2.9") == before.replace(INTRO, f"{INTRO}{NEW[1:]}{BODY}\n\n")


@pytest.mark.parametrize("there", ["- by hand\n", "### Notes\n\nBy hand.\n"])
@pytest.mark.parametrize("sentence", ["First release.", "No notable changes."])
def test_a_sentence_is_for_a_section_in_which_nothing_stands(there: str, sentence: str) -> None:
    before = f"{INTRO}## 1.3.0\n\n{there}"
    assert add(before, sentence) == before
    assert find_section(add(f"{INTRO}## 1.3.0\n", sentence), "1.3.0") == sentence


def test_entries_of_several_lines_stay_together() -> None:
    code = "- one\n\n  ```sh\n  - two\n  ```"
    body = f"### Features\n\n{code}\n- two\n\n  - nested\n\n### Fixes\n\n- mend it"
    written = add(None, body)
    assert find_section(written, "1.3.0") == body
    assert add(written, body) == written
    fewer = add(None, "### Features\n\n- one")
    assert find_section(add(fewer, body), "1.3.0") == (
        "### Features\n\n- one\n- two\n\n  - nested\n\n### Fixes\n\n- mend it"
    )


def test_a_file_of_several_packages() -> None:
    """Its sections have names; what is unreleased is left to those who know whose it is."""
    first = add(None, name="@acme/ui")
    second = add(first, "### Fixes\n\n- other", name="@acme/icons")
    assert second == (
        "# Changelog\n\n## @acme/icons 1.3.0 - 2026-11-21\n\n### Fixes\n\n- other\n\n"
        f"## @acme/ui 1.3.0 - 2026-11-21\n\n{BODY}\n"
    )
    assert add(second, name="@acme/ui") == second
    names = ("@acme/ui",)
    third = add(
        second.replace("# Changelog\n", KEEP + "\n- whose?\n"), version="1.4.0", name="@acme/ui"
    )
    assert find_section(third, "1.4.0", names) == BODY
    assert find_section(third, "1.3.0", names) == BODY
    assert f"{KEEP}\n- whose?\n\n## @acme/ui 1.4.0" in third


@pytest.mark.parametrize(
    "old", ["## ui 1.2.0", "## ui@1.2.0 (2024-02-01)", "## `ui` - [1.2.0](https://x.example)"]
)
def test_a_heading_beside_those_of_other_packages_names_its_own(old: str) -> None:
    written = add(f"{INTRO}{old}\n\n- old\n", name="core")
    new = "## core 1.3.0 - 2026-11-21"
    assert written == f"{INTRO}{new}\n\n{BODY}\n\n{old}\n\n- old\n"
    bracketed = add(f"{INTRO}## [ui-v1.2.0] - 2024-02-01\n\n- old\n", name="core")
    assert "\n## [core 1.3.0] - 2026-11-21\n" in bracketed
    assert find_section(bracketed, "1.3.0", ("core",)) == BODY


@pytest.mark.parametrize(
    ("text", "body", "why"),
    [
        (INTRO + "**1.2.0**\n\n- old\n" * 20, BODY, "none of its headings is a version"),
        (OLD, "### Fixes\n\n- <!-- open", "read otherwise"),
        (OLD, "### Fixes\n\n- it\n  ```", "read otherwise"),
        (OLD, "### Fixes\n\n- it\n\n  #### 1.1.0\n\n  - x", "read otherwise"),
        (
            f"{OLD}\n[x]\n\n[x]: https://x.example\n",
            "### Fixes\n\n- it\n\n[x]: /y",
            "read otherwise",
        ),
        ("###### 1.2.0\n\n- old\n", BODY, "read otherwise"),
        # Its name would be missing.
        ("## Acme Tool 1.2.0\n\n- old\n", BODY, "read otherwise"),
        (f"## Unreleased\n\n- mine <!--\n-->\n\n{OLD}", BODY, "read otherwise"),
    ],
)
def test_what_would_not_be_read_back_is_refused(text: str, body: str, why: str) -> None:
    with pytest.raises(PlanError, match=why) as refused:
        add(text, body, path="core/CHANGELOG.md")
    assert str(refused.value).startswith("core/CHANGELOG.md: ")
    assert refused.value.problem is Problem.CANNOT_WRITE
    assert "by hand" in refused.value.hint


@pytest.mark.parametrize(
    ("text", "body"),
    [
        # The section would reach over that of another package.
        ("## ui 1.2.0\n\n- other\n\n### core 1.1.0\n\n- old\n", BODY),
        ("## ui 1.2.0\n\n- other\n", "### Fixes\n\n- it\n  ```"),
    ],
)
def test_other_packages_of_the_file_are_read_back_too(text: str, body: str) -> None:
    with pytest.raises(PlanError, match="read otherwise"):
        add(text, body, name="core")


@pytest.mark.parametrize("text", [None, OLD, "# Log\n\n## 1.0\n\n- old\n", "## 1\n\n- old\n"])
def test_a_version_of_one_number_is_added_once(text: str | None) -> None:
    """Headings such as "Python 2" are about no release."""
    once = add(text, version="2")
    assert add(once, version="2") == once
    assert "mend it" in find_section(once, "2")


def test_a_file_beyond_the_limits_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """R40"""
    monkeypatch.setattr(changelog, "MAX_LINES", 20)
    assert add(f"{OLD}\n\n\n\n")
    with pytest.raises(PlanError, match="too long"):
        add(OLD + "\n" * 20)
    # The section is what makes it too long.
    with pytest.raises(PlanError, match="read otherwise"):
        add(OLD + "\n" * 15)


LINES = st.sampled_from(
    (
        *(
            "# Log",
            "## [Unreleased]",
            "## 1.2.0",
            "## [1.1.0] - 2024-02-01",
            "### 1.0.1",
            "# 1.0.0",
        ),
        *("## core 0.9.0", "### Fixes", "#### Sub", "- x", "  more", "text", "", "", "---", "===="),
        *("1.0.2", "```", "<!--", "-->", "[a]", "[a]: /x", '<a name="1"></a>', "~~~~", "\r"),
    )
)


@given(
    st.lists(LINES, max_size=25).map("\n".join),
    st.sampled_from(("", "core")),
)
def test_everything_else_stays(text: str, name: str) -> None:
    """Or the file is refused. The section is found, and older ones say what they said."""
    try:
        written = add(text, name=name, names=("core",))
    except PlanError:
        return
    assert add(written, name=name, names=("core",)) == written
    assert "mend it" in find_section(written, "1.3.0", ("core",))
    for version in (
        ("1.2.0", "1.1.0", "1.0.2", "1.0.1", "1.0.0", "0.9.0") if not name else ("0.9.0",)
    ):
        said = find_section(text, version, ("core",))
        assert find_section(written, version, ("core",)) == said


@pytest.mark.parametrize(
    ("piece", "times"),
    [
        ("## 1.0.0\n\n- x\n\n", 1_000),
        ("## core 1.0.0\n\n", 1_000),
        ("### x 1.0\n## 1.1\n", 800),
        ("## Unreleased\n\n- x\n", 1_000),
        ("### Fixes\n- x\n", 1_000),
        ("[a]: /x\n", 8_000),
        ("\n", 30_000),
        ('<a name="x"></a>\n', 8_000),
        ("<!--\n", 8_000),
        ("- ```\n", 8_000),
        ("[", 15_000),
    ],
)
@pytest.mark.parametrize(
    "first", ["", "## Unreleased\n\n", "## 1.3.0\n\n", "## [1.2.0](https://a/compare/"]
)
def test_nobody_keeps_it_busy(first: str, piece: str, times: int) -> None:
    """R40"""

    def add_to(times: int) -> None:
        with contextlib.suppress(PlanError):
            add(f"{first}{piece * times}\n## 0.1.0\n\n- old\n", names=("core",))

    assert_no_worse_than_linear(add_to, times)


def test_versions_that_differ_cost_no_more() -> None:
    """R40"""

    def add_to(times: int) -> None:
        add("".join(f"## 1.{at}.0\n\n[a{at}]\n\n[a{at}]: /x\n\n" for at in range(times)))

    assert_no_worse_than_linear(add_to, 1_000)
