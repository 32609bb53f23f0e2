"""report.html, as text: what it holds, and what nothing in it can become."""

from __future__ import annotations

import json
import re
from colorsys import rgb_to_hls
from hashlib import sha256
from html.parser import HTMLParser
from importlib import resources
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from make_pictures.releases import SIZES, release
from releasekit.fields import replace
from releasekit.host.output_path import describe_obstacle
from releasekit.model import Outcome, PackageWarning, Span, WarningName
from releasekit.problems import Problem
from releasekit.report import summary
from releasekit.report.marks import OUTCOMES
from releasekit.report.page import BEGINNING, assets, report_page
from releasekit.report.view import View
from releasekit.spent import Spent
from sample_runs import (
    HOSTILE,
    artifact,
    hostile_followed,
    hostile_text,
    package,
    partial_report,
    report,
    result,
    signed,
    staged_report,
    statement,
)

if TYPE_CHECKING:
    from pathlib import Path

    from releasekit.model import Report

VENDOR = resources.files("releasekit.report.page") / "vendor"
RECORD = json.loads((VENDOR / "vendor.json").read_text())


class Page(HTMLParser):
    """The elements of a page with their attributes, and the text of each kind of element."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str | None]] = []
        self.texts: dict[str, list[str]] = {}
        self.data = ""
        self._inside = ""
        self.feed(text)
        self.close()

    @property
    def links(self) -> list[str]:
        return [value or "" for tag, name, value in self.attributes if (tag, name) == ("a", "href")]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        self._inside = "data" if ("id", "data") in attrs else tag
        self.texts.setdefault(self._inside, []).append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.texts[self._inside][-1] += data

    @property
    def drawing(self) -> dict[str, list[dict[str, object]]]:
        found: dict[str, list[dict[str, object]]] = json.loads(self.texts["data"][0])
        return found


@pytest.mark.parametrize(("packages", "most"), [(6, 300_000), (60, 400_000), (1_000, 2_000_000)])
def test_a_page_is_one_file_of_bounded_size(packages: int, most: int) -> None:
    text = report_page(release(packages))
    assert len(text.encode()) < most
    page = Page(text)
    loading = {"link", "img", "iframe", "object", "embed", "base", "source", "audio", "video"}
    assert not loading & set(page.tags)
    assert [value for _, name, value in page.attributes if name == "src"] == []
    assert {name for _, name, _ in page.attributes if name.startswith("on")} == set()
    assert {name for _, name, _ in page.attributes if name == "style"} == set()


def test_every_package_has_a_row_that_needs_no_script() -> None:
    for size in SIZES[:2]:
        told = release(size)
        page = Page(report_page(told))
        assert page.texts["h1"] == [View(told).registry_headline]
        rows = [value for tag, name, value in page.attributes if (tag, name) == ("tr", "id")]
        assert rows == [f"p{number}" for number in range(size)]
        assert len(page.drawing["packages"]) == size


def test_what_is_blocked_looks_the_same_and_stands_in_the_same_place_everywhere() -> None:
    """R47: after what failed, in the order of a headline; in the summary's orange."""
    told = partial_report()
    page = Page(report_page(told))
    assert re.findall(r"\d (\w+)", View(told).headline)[-2:] == ["failed", "blocked"]
    assert re.findall(r"🟥|🟧", summary(told))[:2] == ["🟥", "🟧"]
    assert [value for tag, name, value in page.attributes if (tag, name) == ("rect", "class")] == [
        "published",
        "already-published",
        "failed",
        "blocked",
    ]
    assert f'blocked"><span aria-hidden="true">{OUTCOMES[Outcome.BLOCKED].sign}' in report_page(
        told
    )
    assert all(20 < rgb_to_hls(*theme["blocked"])[0] * 360 < 30 for theme in colours())


def test_a_row_tells_all_that_is_known() -> None:
    told = report(
        replace(
            result(
                "core",
                Outcome.FAILED,
                reason="the build failed, and " + "this is why. " * 20,
                hint="Mend pyproject.toml.",
                log=("one", "two"),
                url="https://pypi.org/project/core/",
                artifacts=(artifact(),),
                spans=(Span(phase="build", start_s=1.0, end_s=3.0),),
            ),
            warnings=(
                PackageWarning(name=WarningName.MISSING_README, message="no readme", error=True),
            ),
            spent=Spent(requests=3, seconds={"slot": 4.0}, waited_for="pypi:other", longest_s=2.0),
        ),
        result("app", Outcome.BLOCKED, reason="needs pypi:core, which failed"),
        edges={"app": ("core",)},
    )
    text = report_page(told)
    for words in (
        "this is why. this is why.",
        "Mend pyproject.toml.",
        "one\ntwo",
        'href="https://pypi.org/project/core/"',
        "core-1.0.0.tar.gz (1.2 kB)",
        "ab" * 32,
        "build 2.0 s (from 1.0 s)",
        "error missing-readme: no readme",
        "3 requests (0 bytes sent, 0 bytes received).",
        "Waited 4.0 s: for other uploads 4.0 s. Waited longest for pypi:other: 2.0 s.",
        '<a href="#p1">pypi:app</a>',
        "1 package waits for it",
    ):
        assert words in text, words


def first_of(told: Report) -> str:
    return report_page(told).partition('id="filters"')[0]


def test_what_to_do_comes_first_and_once() -> None:
    """What only waits is counted by what it waits for; whoever reads it acts on the failure."""
    many = [
        result(f"f{number}", Outcome.FAILED, hint="Log in.", reason=f"f{number} is refused")
        for number in range(20)
    ]
    blocked = result("b", Outcome.BLOCKED, hint="Mend what it needs.")
    first = first_of(report(*many, blocked, edges={"b": ("f0",)}))
    assert first.count("Log in.") == 1
    assert "and 17 more for the same reason" in first
    assert "Mend what it needs." not in first


def test_where_the_run_is_from_comes_last() -> None:
    text = report_page(replace(partial_report(), registries={"pypi": "https://pypi.example/"}))
    assert text.index("</table>") < text.index('id="about"') < text.index("https://pypi.example/")
    assert "<dl>" not in text.partition("</h1>")[2].partition('id="table"')[0]


def test_a_failure_tells_why_then_what_to_do_then_where_the_log_is() -> None:
    where = "The whole output is in .releasekit/logs/build-core.log."
    core = result("core", Outcome.FAILED, reason="it broke", hint=where, log=("error: the end",))
    text = report_page(report(replace(core, problem=Problem.BUILD_FAILED)))
    first = text.partition('id="filters"')[0]
    page = f'<a href="{Problem.BUILD_FAILED.url}" rel="noreferrer">RK-101</a>'
    parts = ("it broke", "Fix what the end of its log says", page, where, "error: the end")
    found = [first.index(part) for part in parts]
    assert found == sorted(found)
    assert text.count(page) == 2  # in its row too
    assert f"<dt>Its log</dt><dd>{where}</dd>" in text


def test_a_failure_without_a_hint_has_advice() -> None:
    told = report(result("core", Outcome.FAILED, reason="HTTP 400 from the registry"))
    assert "Fix what the reason names, then run the same command again" in first_of(told)


def test_what_most_packages_wait_for_comes_first() -> None:
    told = report(
        result("late", Outcome.UNKNOWN, reason="nobody knows"),
        result("small", Outcome.FAILED, reason="one"),
        result("large", Outcome.FAILED, reason="two"),
        *(result(name, Outcome.BLOCKED) for name in ("a", "b", "c")),
        edges={"a": ("small",), "b": ("large",), "c": ("b",)},
    )
    first = first_of(told)
    found = [first.index(f"<b>pypi:{name} ") for name in ("large", "small", "late")]
    assert found == sorted(found)
    assert "2 packages wait for it" in first


def test_what_waits_for_approval_is_something_to_do() -> None:
    told = first_of(staged_report())
    assert 'class="card staged"' in told


@pytest.mark.parametrize(
    ("at", "shown"),
    [
        ("2026-11-22T12:00:00+00:00", "2026-11-22 12:00 UTC"),
        ("2026-11-22T01:30:59+02:00", "2026-11-21 23:30 UTC"),
        ("0001-01-01T00:00:00+14:00", "0001-01-01T00:00:00+14:00"),
        ("2026-11-22T12:00:00", "2026-11-22T12:00:00"),
        ("some <day>", "some &lt;day&gt;"),
    ],
)
def test_when_it_began_can_be_read(at: str, shown: str) -> None:
    assert f"<time>{shown}</time>" in report_page(replace(report(result()), started_at=at))


def test_long_names_break_at_their_slashes() -> None:
    text = report_page(report(result("github.com/acme/sdk", Outcome.FAILED)))
    assert '<th scope="row">github.com/<wbr>acme/<wbr>sdk</th>' in text
    assert "<b>pypi:github.com/<wbr>acme/<wbr>sdk 1.0.0</b>" in text


PHASES = ("build", "attest", "upload", "confirm", "waiting")
ENDINGS = ("published", "staged", "failed", "unknown", "blocked", "cancelled")


def colours() -> list[dict[str, tuple[float, float, float]]]:
    """Of each theme by their names."""
    themes = re.findall(r"color-scheme: \w+;(.*?)\}", assets.style(), re.DOTALL)
    return [
        {
            name: (int(red, 16) / 255, int(green, 16) / 255, int(blue, 16) / 255)
            for name, red, green, blue in re.findall(r"--([\w-]+): #(..)(..)(..);", theme)
        }
        for theme in themes
    ]


def luminance(colour: tuple[float, float, float]) -> float:
    """https://www.w3.org/TR/WCAG22/#dfn-relative-luminance"""
    red, green, blue = (
        each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in colour
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("theme", colours(), ids=["light", "system dark", "dark"])
def test_phases_look_like_no_outcome(theme: dict[str, tuple[float, float, float]]) -> None:
    """Their hues are apart, and each can be told from the paper."""
    for phase in PHASES:
        low, high = sorted((luminance(theme[phase]), luminance(theme["paper"])))
        assert (high + 0.05) / (low + 0.05) >= 3, phase
    for phase in PHASES[:4]:
        for outcome in ENDINGS:
            apart = abs(rgb_to_hls(*theme[phase])[0] - rgb_to_hls(*theme[outcome])[0])
            assert min(apart, 1 - apart) * 360 > 30, (phase, outcome)


def test_more_causes_than_fit_are_counted() -> None:
    told = report(*(result(f"f{n}", Outcome.FAILED, hint=f"Do {n:02}.") for n in range(20)))
    assert "8 more stand in the table below." in report_page(told)


def test_a_release_of_nothing_is_a_page_too() -> None:
    page = Page(report_page(report()))
    assert page.texts["h1"] == ["No package to publish"]
    assert "table" not in page.tags


def test_all_went_well_has_nothing_to_do() -> None:
    text = report_page(replace(release(6, well=True), spent=None))
    assert 'id="first"' not in text


@pytest.mark.parametrize("told", [partial_report(), staged_report()], ids=["partial", "staged"])
def test_needs_are_numbers_and_layers_rise(told: Report) -> None:
    packages = Page(report_page(told)).drawing["packages"]
    for each in packages:
        needs = each["needs"]
        assert isinstance(needs, list)
        assert all(packages[on]["layer"] < each["layer"] for on in needs)  # type: ignore[operator]


def hostile_report(text: str) -> Report:
    """With that text wherever something comes from outside."""
    hurt = replace(
        result(text, Outcome.FAILED, version=text, reason=text, hint=text, log=(text,), url=text),
        warnings=(PackageWarning(name=WarningName.NEW_NAME, message=text),),
        artifacts=(signed(f"{text.replace('/', '') or 'x'}.whl", log=text),),
        spent=Spent(waited_for=text, longest_s=1.0),
        tag=hostile_followed(text).tag,
        announcement=hostile_followed(text).announcement,
    )
    return replace(
        report(
            hurt,
            result("other"),
            edges={"other": (text,)},
            private=(package(text, unpublishable=text),),
            run_id=text,
            commit=text,
            started_at=text,
        ),
        builds=text,
        project=text,
        repository=text,
        run_url=text,
        registries={"pypi": text},
        provenance=text,
        statement=statement(url=text, note=text),
        spent=Spent(requests=1),
    )


def test_only_registries_that_have_a_package_are_listed() -> None:
    places = {"pypi": "https://upload.pypi.org/legacy/", "maven": "https://central.example/"}
    page = report_page(replace(partial_report(), registries=places))
    assert "https://upload.pypi.org/legacy/" in page
    assert "central.example" not in page


@settings(max_examples=60)
@given(hostile_text | st.sampled_from(HOSTILE))
def test_hostile_text_stays_text(text: str) -> None:
    """R35: elements and attributes are those of a harmless report, but for links to web pages."""
    page = Page(report_page(hostile_report(text)))
    harmless = Page(report_page(hostile_report("x" * len(text))))
    own = {"a", "wbr", "code"}  # links; where names may break; what stands in backticks
    assert [tag for tag in page.tags if tag not in own] == [
        tag for tag in harmless.tags if tag not in own
    ]
    named = {(tag, name) for tag, name, _ in page.attributes}
    assert named - {("a", "rel")} == {(tag, name) for tag, name, _ in harmless.attributes}
    assert all(re.match(r"#(main|p\d+)$|https?://", link) for link in page.links)
    assert page.drawing["packages"][0]["outcome"] == "failed"


@pytest.mark.parametrize(
    "url",
    [
        "https://registry.npmjs.org@elsewhere.example/core",
        "https://user:password@elsewhere.example/core",
        "https://elsewhere.example/" + "a" * 300,
    ],
)
def test_no_link_pretends_to_lead_elsewhere(url: str) -> None:
    """R35: the page links to what the summary links to."""
    page = Page(report_page(hostile_report(url)))
    assert "elsewhere" not in " ".join(page.links)


def test_what_vouches_for_the_run_is_no_page_that_anybody_on_the_way_can_change() -> None:
    """R35"""
    plain = "http://elsewhere.example/acme"
    told = replace(partial_report(), project="acme", repository=plain, run_url=plain)
    page = Page(report_page(told))
    assert "elsewhere" not in " ".join(page.links)


@pytest.mark.parametrize(
    "text", ["</script><script>alert(1)</script>", "<!--<script>", "\u2028\u2029", "]]>", "'\"&"]
)
def test_no_text_ends_the_data(text: str) -> None:
    told = report_page(hostile_report(text))
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', told)
    assert not set(data) & set("<>&\u2028\u2029")
    assert len(json.loads(data)["packages"]) == 2


def test_the_policy_lets_run_what_is_there_and_nothing_else() -> None:
    page = Page(report_page(partial_report()))
    policy = assets.policy()
    (shown,) = [value for _, name, value in page.attributes if value and "default-src" in value]
    assert shown == policy
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    assert tuple(page.texts["script"]) == assets.scripts()


def test_a_later_run_knows_the_page_as_ours(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(report_page(partial_report()))
    assert report_page(partial_report()).startswith(BEGINNING)
    assert describe_obstacle(path, "page") == ""
    assert describe_obstacle(path) == "is there, and is neither a plan nor results"
    path.write_text("<!doctype html>\n<html>")
    assert describe_obstacle(path, "page") == "is there, and is no report page"


@pytest.mark.parametrize("row", RECORD, ids=lambda row: str(row["file"]))
def test_what_others_wrote_is_as_they_published_it(row: dict[str, str]) -> None:
    """`integrity` is that of the package in npm's registry, whose file `path` has this digest."""
    text = (VENDOR / row["file"]).read_bytes()
    assert sha256(text).hexdigest() == row["sha256"]
    assert re.fullmatch(r"sha512-[A-Za-z0-9+/]{86}==", row["integrity"])
    assert "Permission is hereby granted" in (VENDOR / row["license_file"]).read_text()
    assert b"</script" not in text
    assert text.decode() in assets.scripts()


def test_nothing_else_is_vendored() -> None:
    known = {name for row in RECORD for name in (row["file"], row["license_file"])}
    assert {each.name for each in VENDOR.iterdir()} == known | {"vendor.json"}


def test_what_is_in_backticks_is_code_on_the_page_and_in_the_summary() -> None:
    """R47: readers saw the backticks themselves."""
    hint, shown = "Run `npm login <b>` or `uv`", "Run <code>npm login &lt;b&gt;</code> or"
    told = report(result("core", Outcome.FAILED, reason="`a` broke", hint=hint))
    assert shown in first_of(told)
    assert "<code>a</code> broke" in first_of(told)
    assert "Run <code>npm login &#60;b&#62;</code> or <code>uv</code>" in summary(told)
    assert "<code>a</code> broke" in summary(told)


def test_the_page_counts_what_is_there_as_the_summary_does() -> None:
    """R47: a second run that fails again said `0 of 2`, with one package on its registry."""
    told = report(result("a", Outcome.ALREADY_PUBLISHED), result("b", Outcome.FAILED))
    assert "<h1>1 of 2 packages is on its registry</h1>" in report_page(told)
