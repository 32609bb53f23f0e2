"""The section of a version in the change logs of the field."""

from __future__ import annotations

import pytest

from releasekit.text import changelog
from releasekit.text.changelog import find_section
from watchdog import assert_no_worse_than_linear

KEEP = """\
# Changelog

All notable changes.

## [Unreleased]

### Added

- not out yet

## [1.2.30] - 2024-03-01

- thirty

## [1.2.3] - 2024-02-01

### Fixed

- three, see [#7]

```sh
## [1.2.2] is no heading here
```

## [1.2.3-rc.1] - 2024-01-01 [YANKED]

- candidate

[unreleased]: https://example.com/compare/v1.2.30...HEAD
[1.2.3]: https://example.com/compare/v1.2.2...v1.2.3
[#7]: https://example.com/7
"""
THREE = """\
### Fixed

- three, see [#7]

```sh
## [1.2.2] is no heading here
```

[#7]: https://example.com/7"""


@pytest.mark.parametrize(
    ("version", "text"),
    [
        ("1.2.3", THREE),
        ("v1.2.3", THREE),
        ("1.2.30", "- thirty"),
        ("1.2.3-rc.1", "- candidate"),
        ("1.2.3rc1", "- candidate"),
        ("1.2", ""),
        ("1.2.2", ""),
        ("2.3", ""),
        ("2024", ""),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_keep_a_changelog(version: str, text: str, end: str) -> None:
    assert find_section("\ufeff" + KEEP.replace("\n", end), version) == text


@pytest.mark.parametrize(
    "heading",
    [
        "## 1.2.3",
        "# v1.2.3 / 2020-01-01",
        "## 1.2.3 (2020-01-01)",
        "## [1.2.3](https://example.com/compare/core-v1.2.2...core-v1.2.3) (2020-01-01)",
        "## [core-v1.2.3] - 2020-01-01",
        "## `core` - [1.2.3](https://example.com/1.2.2...1.2.3) - 2020-01-01",
        "## core 1.2.3",
        "## core@1.2.3",
        "## Version 1.2.3",
        "## **1.2.3**",
        "## Release v1.2.3 (January 1st, 2020)",
        "## 2020-01-01 - 1.2.3",
        "## 1.2.3 ##",
        "## Acme Tool 1.2.3",
    ],
)
def test_a_heading_is_known_in_every_form(heading: str) -> None:
    other = heading.replace("1.2.3", "1.2.2")
    text = f"{heading}\n\n- new\n\n{other}\n\n- old\n"
    assert find_section(text, "1.2.3", ["core"]) == "- new"
    assert find_section(text, "1.2.2", ["core"]) == "- old"


def test_a_file_of_several_packages() -> None:
    text = "## other 1.2.3\n\n- its\n\n## core 1.2.3\n\n- ours\n\n## other 1.2.2\n\n- its too\n"
    assert find_section(text, "1.2.3", ["@acme/core", "core"]) == "- ours"
    assert not find_section(text, "1.2.2", ["@acme/core", "core"])
    below = "# other\n## 1.2.3\n- its\n# @acme/core\n## 1.2.3\n- ours\n"
    assert find_section(below, "1.2.3", ["@acme/core", "core"]) == "- ours"


def test_the_case_of_a_name_does_not_count() -> None:
    text = "## Mypy 1.2.3\n\n### Python 3.8\n\n- new\n\n## Mypy 1.2.2\n\n- old\n"
    assert find_section(text, "1.2.3", ["mypy"]) == "### Python 3.8\n\n- new"
    assert find_section(text, "1.2.2", ["mypy"]) == "- old"


@pytest.mark.parametrize(
    "next_", ["Unreleased", "[Unreleased]", "Unreleased changes", "Next release"]
)
def test_what_is_unreleased_belongs_to_no_version(next_: str) -> None:
    text = f"# 2.0.0\n\n- major\n\n### {next_}\n\n- later\n\n### 1.2.3\n\n- patch\n"
    assert find_section(text, "2.0.0") == "- major"


def test_patches_with_deeper_headings_than_majors() -> None:
    text = (
        "# [2.0.0](u) (2020-02-02)\n### Features\n* big\n"
        "### [1.0.1](u) (2020-01-02)\n\n### Bug Fixes\n* small\n\n"
        '<a name="1.0.0"></a>\n# 1.0.0 (2020-01-01)\n* first\n'
    )
    assert find_section(text, "2.0.0") == "### Features\n* big"
    assert find_section(text, "1.0.1") == "### Bug Fixes\n* small"
    assert find_section(text, "1.0.0") == "* first"


@pytest.mark.parametrize(
    "text", ["1.2.3\n-----\n\n- new\n", "=====\n1.2.3\n=====\n\n* new\n\n.. _x:\n"]
)
def test_an_underlined_heading_is_none(text: str) -> None:
    assert not find_section(text, "1.2.3")


def test_nested_headings_with_a_version_among_other_words_stay_inside() -> None:
    text = "## 2.0.0\n\n### Upgrading from 1.2.3\n\ndo this\n\n## 1.2.3\n\n- old\n"
    assert find_section(text, "2.0.0") == "### Upgrading from 1.2.3\n\ndo this"
    assert find_section(text, "1.2.3") == "- old"


def test_comments_are_left_out_with_the_headings_in_them() -> None:
    text = (
        "<!--\n## 1.2.3\n- hidden\n-->\n## 1.2.3\n- new <!-- releasekit: x -->\n<!-- open\n- gone"
    )
    assert find_section(text, "1.2.3") == "- new "


def test_code_that_is_not_ended_is_ended() -> None:
    assert find_section("## 1.2.3\n````\nx\n```\n", "1.2.3") == "````\nx\n```\n````"


@pytest.mark.parametrize("mark", ["-", "*", "1.", "- 12)"])
def test_code_may_begin_an_item_of_a_list(mark: str) -> None:
    """The line that ended it began the code of all that follows."""
    text = f"{mark} ```sh\n  # 1.2.2\n  ```"
    log = f"## 1.2.3\n\n{text}\n\n## 1.2.2\n\n- old\n"
    assert (find_section(log, "1.2.3"), find_section(log, "1.2.2")) == (text, "- old")


def test_a_section_without_text_is_none() -> None:
    assert not find_section("## 1.2.3\n\n---\n\n## 1.2.2\n\n- old\n", "1.2.3")
    assert not find_section("", "1.2.3")


@pytest.mark.parametrize(
    ("first", "hostile", "last", "times"),
    [
        ("## ", "](", "", 200_000),
        ("## ", "a", "", 400_000),
        ("## ", "<", "", 400_000),
        ("", " ", "x", 400_000),
        ("", "<!---->", "", 100_000),
        ("", "# 1.2.3\n", "", 8_000),
        ("# # ", "[" * 1_000 + "\n# ", "", 400),
        ("", "- ", "", 200_000),
        ("", "1. " + " " * 50, "", 8_000),
    ],
)
def test_nobody_keeps_it_busy(first: str, hostile: str, last: str, times: int) -> None:
    """Each took minutes, or hours."""

    def find(times: int) -> None:
        text = f"## 1.2.3\n\n- three\n\n{first}{hostile * times}{last}\n"
        find_section(text, "1.2.3", ("core",))

    assert_no_worse_than_linear(find, times)


@pytest.mark.parametrize(
    ("line", "most"),
    [
        ("# 1.0.0\n", 200),
        ("# 1.0.0\r", 200),
        (" # 1.0.0\n", 200),
        ("\n", 1_996),
        ("\r", 1_996),
    ],
)
def test_one_with_more_lines_or_headings_than_anybody_reads_says_nothing(
    line: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each heading costs, however it is written: four megabytes of them took 20 s and 700 MB."""
    monkeypatch.setattr(changelog, "MAX_HEADINGS", 200)
    monkeypatch.setattr(changelog, "MAX_LINES", 2_000)
    log = "# 1.2.3\n\n- three\n\n"
    assert find_section(log + line * (most - 1), "1.2.3") == "- three"
    assert not find_section(log + line * (most + 1), "1.2.3")
