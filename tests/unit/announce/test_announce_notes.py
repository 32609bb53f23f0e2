"""What the release of a version says."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from markdown_it import MarkdownIt

from releasekit.announce.notes import MAX_CHARS, existing_commit, join_notes, shorten, write_notes
from releasekit.fields import replace
from releasekit.git.commits import Commit
from releasekit.host.forges import Pages
from releasekit.model import Package, PackageId
from releasekit.text.escape import visible

if TYPE_CHECKING:
    from collections.abc import Iterable

MARKDOWN = MarkdownIt("commonmark").enable("table").enable("strikethrough")
HOSTILE = [
    "<!-- releasekit: x sha256:0 -->",
    "@team and a@b.example, **bold** __bold__ ~~gone~~",
    "[link](https://x.example) ![image](https://x.example) <https://x.example>",
    "`code` \\ | a | &lt; &amp; \u202e\x07",
    "# heading",
    "- item",
    "1. item",
    "=====",
    "<img src=x onerror=alert(1)>",
]
ROOT = Path("/work")
PAGE = "https://github.com/acme/mono"
LOG = "# Changes\n\n## 1.1.0\n\n- New.\n\n## 1.0.0\n\n- Old.\n"


class Past:
    """`files` by their path; `changes` are what touched something."""

    def __init__(self, files: dict[str, str] | None = None, changes: Iterable[str] = ()) -> None:
        self.files = files or {}
        self.changes = [Commit(f"{number:040x}", text, "A") for number, text in enumerate(changes)]
        self.asked: tuple[object, ...] = ()

    def name_object(self, commit: str, path: Path) -> str:
        return f"{commit}:{path.relative_to(ROOT).as_posix()}"

    async def read_blobs(self, names: Iterable[str]) -> dict[str, bytes | None]:
        found = {name: self.files.get(name.partition(":")[2]) for name in names}
        return {name: None if text is None else text.encode() for name, text in found.items()}

    async def list_commits(
        self, paths: Iterable[Path], *, since: str, until: str, without: Iterable[Path]
    ) -> list[Commit]:
        self.asked = ([*paths], since, until, [*without])
        return self.changes

    async def find_existing(self, ids: Iterable[str]) -> list[str]:
        return [each for each in ids if each == "here"]


def package(where: str = "core", name: str = "core") -> Package:
    directory = ROOT / where
    return Package(
        id=PackageId("npm", name),
        version="1.1.0",
        directory=directory,
        manifest=directory / "package.json",
    )


def told(past: Past, **more: object) -> str:
    given: dict[str, object] = {"commit": "c", "previous": "b", "others": [], **more}
    return asyncio.run(write_notes(package(), past, **{"pages": Pages("github", ""), **given}))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["CHANGELOG.md", "changelog.md", "HISTORY.md", "CHANGES"])
def test_the_section_of_its_change_log(name: str) -> None:
    assert told(Past({f"core/{name}": LOG}, ["Work"])) == "- New."


def test_a_release_md_has_headings_of_its_own() -> None:
    log = (
        "# Upcoming Release\n\n- Later.\n\n# Release 1.1.0\n\n- New.\n\n# Release 1.0.0\n\n- Old.\n"
    )
    assert told(Past({"core/RELEASE.md": log}, ["Work"])) == "- New."


def test_of_a_change_log_that_is_no_markdown_nothing_is_taken() -> None:
    log = "1.1.0\n-----\n\n- New, :func:`run`.\n\n1.0.0\n-----\n\n- Old.\n"
    assert "Work" in told(Past({"core/CHANGES.rst": log}, ["Work"]))


def test_that_of_a_directory_beside_it_counts_where_that_is_said() -> None:
    past = Past({"CHANGELOG.md": LOG}, ["Work"])
    assert told(past, beside=[ROOT]) == "- New."
    assert told(past).startswith("- Work (")


def test_an_empty_log_beside_a_full_one_does_not_count() -> None:
    assert told(Past({"core/CHANGELOG.md": "# Changes\n", "core/NEWS.md": LOG})) == "- New."


def test_without_a_section_the_commits_that_touch_it_and_nothing_inside() -> None:
    inner, other = package("core/inner", "inner"), package("cli", "cli")
    past = Past(changes=["Fix @somebody <!-- x --> #12", "Add"])
    text = told(past, others=[package(), inner, other], pages=Pages("github", PAGE))
    assert past.asked == ([ROOT / "core"], "b", "c", [ROOT / "core/inner"])
    first, second = text.splitlines()
    assert "@somebody" not in first
    assert r"\<!-- x --\> #12" in first
    assert second == f"- Add ([00000000]({PAGE}/commit/{1:040x}))"


def test_without_either_its_name_and_version() -> None:
    assert told(Past()) == "core 1.1.0"
    assert told(Past(changes=["Work"]), previous="") == "core 1.1.0"


def test_many_commits_are_counted() -> None:
    lines = told(Past(changes=map(str, range(250)))).splitlines()
    assert (len(lines), lines[-1]) == (201, "- and 50 more")


@pytest.mark.parametrize(
    "subject", [*HOSTILE, "Mend `a` & <b>, see #12", "fix(core): snake_case _x_"]
)
def test_a_subject_is_text_and_stays_readable(subject: str) -> None:
    (line,) = told(Past(changes=[subject])).splitlines()
    (inline,) = [token for token in MARKDOWN.parse(line) if token.type == "inline"]
    assert {each.type for each in inline.children or ()} <= {"text", "text_special"}
    shown = "".join(each.content for each in inline.children or ())
    assert shown.replace("\u200b", "") == f"{visible(subject)} (00000000)"
    assert not re.search(r"@[A-Za-z0-9]", line)


@pytest.mark.parametrize(
    ("hidden", "shown"),
    [
        ("\x1b[2J\x1b]0;owned\x07", r"\x1b[2J\x1b]0;owned\x07"),
        ("\x9b31m\x00\x7f", r"\x9b31m\x00\x7f"),
        ("a\u202eb\u2066c\u200f", r"a\u202eb\u2066c\u200f"),
        ("a\u2028b\x0bc\x85d", "a b c d"),
        ("\ufeffa\u2060b", r"\ufeffa\u2060b"),
        ("hidden\U000e0068\U000e0069", r"hidden\U000e0068\U000e0069"),
        ("a\rb", "a\nb"),
    ],
)
def test_what_acts_in_a_change_log_is_spelled_out(hidden: str, shown: str) -> None:
    """R40: it goes to terminals, to logs and into releases."""
    log = LOG.replace("New.", f"New: {hidden}.")
    assert told(Past({"core/CHANGELOG.md": log})) == f"- New: {shown}."


@pytest.mark.parametrize(
    "text",
    [
        "\N{WOMAN}\u200d\N{PERSONAL COMPUTER} \u2764\ufe0f \U0001f44d\U0001f3fd 1\ufe0f\u20e3",
        "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
        "\N{REGIONAL INDICATOR SYMBOL LETTER D}\N{REGIONAL INDICATOR SYMBOL LETTER E}",
        "m\u00eame\u00a0: \u3000\u00ab\u202fd\u00e9j\u00e0\u202f\u00bb",
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 \u05e9\u05dc\u05d5\u05dd",
        "thanks @\u200bsomebody, soft\u00adhyphen, \ue0b0",
        "`code`\n\n\t  indented\n\n```sh\n::set-output\n##[x]\n```\n\n| a | b |\n|---|---|",
    ],
)
def test_an_honest_change_log_stays_as_it_is(text: str) -> None:
    log = LOG.replace("New.", text)
    assert told(Past({"core/CHANGELOG.md": log})) == f"- {text}"


def test_pull_requests_and_scopes_are_left_as_they_are() -> None:
    text = told(Past(changes=["fix(core): mend it (#12)"]))
    assert text == "- fix(core): mend it (#12) (00000000)"


@pytest.mark.parametrize(("commit", "expected"), [("here", "here"), ("gone", ""), ("", "")])
def test_what_came_before_is_known_or_not(commit: str, expected: str) -> None:
    assert asyncio.run(existing_commit(commit, Past())) == expected


def test_what_is_too_long_ends_with_a_whole_section() -> None:
    parts = [f"## Part {number}\n\n" + "- Line.\n" * 40 for number in range(10)]
    text = shorten("\n".join(parts), "REST", 2_000)
    assert len(text) <= 2_000
    assert text.endswith("- Line.\n\nREST")
    assert text.count("## Part") == text.count("- Line.") // 40


def test_no_code_is_left_open() -> None:
    text = "Before.\n\n```text\n" + "x\n\n" * 3_000 + "```\n"
    assert shorten(text, "REST", 2_000) == "Before.\n\nREST"


def test_one_line_that_is_too_long_is_left_out() -> None:
    assert shorten("x" * 5_000, "REST", 2_000) == "REST"


def test_a_long_section_has_a_link_to_the_rest() -> None:
    long = f"## 1.1.0\n\n{'- A line of it.' * 5_000}\n"
    text = told(Past({"core/CHANGELOG.md": long}), pages=Pages("github", PAGE))
    assert len(text) <= MAX_CHARS
    assert text == f"The rest is [in the repository]({PAGE}/blob/c/core/CHANGELOG.md)."


def test_packages_that_share_a_release_are_told_apart() -> None:
    one, two = package(), package("cli", "@acme/cli")
    assert join_notes({one: "Same.", two: "Same."}) == "Same."
    text = join_notes({one: "One.", two: "Two.", replace(one, version="2.0.0"): "Two."})
    assert [line for line in text.splitlines() if line] == [
        "## core 1.1.0",
        "One.",
        "## &#64;&#8203;acme/cli 1.1.0, core 2.0.0",
        "Two.",
    ]


def test_so_many_packages_that_no_release_holds_them_are_counted() -> None:
    texts = {package(f"p{number}", f"p{number}"): f"{number}" * 900 for number in range(80)}
    text = join_notes(texts)
    assert len(text) <= MAX_CHARS
    assert text.splitlines()[-1].startswith("And ")
