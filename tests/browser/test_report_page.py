"""report.html in a browser: for the eye, the keyboard and a screen reader, in both themes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

from integration.tools import require_tool
from make_pictures.releases import release
from releasekit.fields import replace
from releasekit.model import Outcome, Span
from releasekit.report.page import report_page
from releasekit.text.escape import visible
from sample_runs import HOSTILE, report, result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import Literal

    from playwright.sync_api import Browser, BrowserContext, Page

    from releasekit.model import Report, Result

    Open = Callable[..., Page]

# Where it runs as root it has no sandbox of its own; what it opens is ours.
ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")
# What axe looks at alike a thousand times takes it minutes.
MOST_ALIKE = "#table tbody tr:nth-child(n+13), #timeline rect:nth-of-type(n+41)"


# A loop that runs for as long as the browser would be in the way of other modules' tests.
@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    program = require_tool("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(ARGUMENTS))
        yield browser
        browser.close()


@pytest.fixture
def opened(chromium: Browser, tmp_path: Path) -> Iterator[Open]:
    """Opens the page of a report; at the end, nothing was asked of a network or complained of."""
    complaints: list[str] = []
    asked: list[str] = []
    contexts: list[BrowserContext] = []

    def open_page(
        told: Report,
        *,
        scheme: Literal["light", "dark"] = "light",
        script: bool = True,
        width: int = 1280,
    ) -> Page:
        path = tmp_path / "report.html"
        path.write_text(report_page(told), encoding="utf-8")
        context = chromium.new_context(
            color_scheme=scheme,
            java_script_enabled=script,
            offline=True,
            reduced_motion="reduce",
            viewport={"width": width, "height": 844},
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(path.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []
    assert {url.rpartition("/")[2] for url in asked} == {"report.html"}
    assert all(url.startswith("file:") for url in asked)


def draw(page: Page) -> Page:
    """The pictures, which are drawn once somebody comes near them."""
    for picture, part in (("#timeline", ".task"), ("#canvas", ".box")):
        page.locator(picture).scroll_into_view_if_needed()
        page.locator(f"{picture} {part}").first.wait_for()
    return page


def violations(page: Page) -> list[str]:
    found = Axe().run(page).response["violations"]
    return [f"{each['id']}: {[node['target'] for node in each['nodes']]}" for each in found]


def focused(page: Page) -> str:
    """What has the focus: its id, or else what it says."""
    told = page.evaluate(
        "(({id, ariaLabel, textContent}) => id || ariaLabel || textContent)(document.activeElement)"
    )
    return str(told)


def names(page: Page) -> list[str]:
    """Of the packages whose rows can be seen, in their order."""
    return page.locator("#table tbody tr:not([hidden]) th").all_text_contents()


# Colours differ with the theme, and not with the size.
@pytest.mark.parametrize(
    ("packages", "boxes", "scheme"),
    [(6, 6, "light"), (60, 60, "light"), (60, 60, "dark"), (1_000, 25, "light")],
)
def test_a_page_of_any_size_is_for_everybody(
    opened: Open, packages: int, boxes: int, scheme: str
) -> None:
    """axe finds nothing in either theme; a thousand packages stand folded in layers."""
    told = release(packages)
    page = draw(opened(told, scheme=scheme))
    assert page.locator("#canvas .box").count() == boxes
    assert page.locator("#table tbody tr").count() == packages
    spans = sum(len(each.spans) for each in told.results)
    assert page.locator("#timeline .task").count() == spans
    page.evaluate(f"for (const each of document.querySelectorAll('{MOST_ALIKE}')) each.remove()")
    assert violations(page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_details_are_for_everybody_too(opened: Open, scheme: str) -> None:
    page = draw(opened(release(6), scheme=scheme))
    page.locator("#canvas .box.failed").click()
    assert page.locator("#dialog h2").text_content() == "pypi:acme-measure 2.4.0"
    assert page.locator("#dialog pre").count() == 1
    assert violations(page) == []


def test_one_filter_is_for_all_parts(opened: Open) -> None:
    page = draw(opened(release(60)))
    page.keyboard.press("/")
    assert focused(page) == "search"
    page.keyboard.type("Orders-")
    rows = names(page)
    assert rows
    assert len(rows) < 60
    assert page.locator("#shown").text_content() == f"{len(rows)} of 60 shown"
    assert page.locator("#canvas .box:not(.dim)").count() == len(rows)
    page.locator("#reset").click()
    assert len(names(page)) == 60
    page.get_by_label("✗ failed 2").check()
    assert len(names(page)) == 2
    page.locator("#ecosystem").select_option("cargo")
    assert names(page) == ["acme-orders-schema"]
    assert page.locator("#canvas .box:not(.dim)").count() == 1
    page.locator("#reset").click()
    assert page.locator("#shown").text_content() == "All 60 shown"


def test_every_column_sorts_both_ways(opened: Open) -> None:
    told = report(*(result(name) for name in ("b10", "B2", "a")), *release(6).results)
    page = opened(told)
    numbers: dict[str, Callable[[Result], float]] = {
        "Time": lambda each: round(each.duration_s, 3),
        "Attempts": lambda each: each.attempts,
    }
    for column in (*numbers, "Package"):
        heading = page.locator("th", has_text=column)
        for order in ("ascending", "descending"):
            heading.locator("button").press("Enter")
            assert heading.get_attribute("aria-sort") == order
            if column in numbers:
                by_name = {each.package.id.name: numbers[column](each) for each in told.results}
                keys = [by_name[name] for name in names(page)]
                assert keys == sorted(keys, reverse=order == "descending")
    assert [name for name in names(page) if name in {"a", "B2", "b10"}] == ["b10", "B2", "a"]


def test_the_keyboard_reaches_everything_in_the_order_it_is_read(opened: Open) -> None:
    page = draw(opened(release(6)))
    page.evaluate("document.activeElement.blur(), scrollTo(0, 0)")
    order = []
    for _ in range(25):  # as far as the first task of the timeline
        page.keyboard.press("Tab")
        order.append(focused(page))
    known = ["theme", "search", "ecosystem", "reset", "view", "closer", "farther", "fit"]
    assert order[0] == "Skip to the report"
    assert [each for each in order if each in known] == known
    # One stop for the whole graph: the worst there is.
    after = order[order.index("fit") + 1 :]
    assert after[0].startswith(
        "✗ pypi:acme-measure 2.4.0 — failed. its build failed with exit code 1: "
    )
    assert " build " in after[1]


def test_arrow_keys_walk_along_dependencies(opened: Open) -> None:
    page = draw(opened(release(6)))
    page.locator("#canvas .box.failed").focus()
    assert "OSError: Readme file does not exist" in page.locator("#hint").inner_text()
    page.keyboard.press("ArrowRight")
    assert focused(page).startswith("⊘ pypi:acme-web 2.4.0 — blocked. ")
    assert "needs pypi:acme-measure, which failed" in page.locator("#hint").inner_text()
    page.keyboard.press("Enter")
    assert page.locator("#dialog").get_attribute("open") is not None
    assert focused(page) == "Close"
    page.locator("#dialog a", has_text="pypi:acme-measure").first.press("Enter")
    assert page.locator("#dialog h2").text_content() == "pypi:acme-measure 2.4.0"
    page.keyboard.press("Escape")
    assert focused(page).startswith("⊘ pypi:acme-web")
    page.keyboard.press("ArrowLeft")
    assert focused(page).startswith("✗ pypi:acme-measure")
    page.keyboard.press("Home")
    assert focused(page).startswith("✓ cargo:acme-core")
    page.keyboard.press("ArrowLeft")  # it needs nothing
    assert focused(page).startswith("✓ cargo:acme-core")


def test_pointing_shows_why_a_package_waited(opened: Open) -> None:
    page = draw(opened(release(6)))
    assert not page.locator("#hint").is_visible()
    page.locator("#canvas .box", has_text="@acme/client").hover()
    assert "Waited longest for cargo:acme-core: " in page.locator("#hint").inner_text()
    assert page.locator(".edge.near").count() == 2
    assert page.locator(".edge.waited").count() == 1
    page.locator("h1").hover()
    assert not page.locator("#hint").is_visible()
    assert page.locator(".edge.near").count() == 0


def test_the_picture_zooms_and_moves(opened: Open) -> None:
    page = draw(opened(release(60)))
    canvas = page.locator("#canvas")
    content = page.locator("#canvas .content")
    seen = [content.get_attribute("style")]

    def changed() -> bool:
        page.wait_for_function(
            "before => document.querySelector('#canvas .content').getAttribute('style') !== before",
            arg=seen[-1],
        )
        seen.append(content.get_attribute("style"))
        return True

    page.locator("#closer").click()
    assert changed()
    page.locator("#farther").click()
    assert changed()
    canvas.hover()
    page.keyboard.down("Control")
    page.mouse.wheel(0, -200)
    page.keyboard.up("Control")
    assert changed()
    box = canvas.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] - 9, box["y"] + 9)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 99, box["y"] + 49, steps=3)
    page.mouse.up()
    assert changed()
    assert page.locator("#dialog").get_attribute("open") is None


def test_a_thousand_packages_are_read_at_a_glance_and_unfold_layer_by_layer(
    opened: Open,
) -> None:
    """The frame is as high as what is in it, its text is no smaller than that of the page's notes,
    few arrows cross it, each outcome can be seen in the bar, and no control stands alone.
    """
    page = draw(opened(release(1_000)))
    frame = page.locator("#canvas").bounding_box()
    content = page.locator("#canvas .content").bounding_box()
    assert frame is not None
    assert content is not None
    assert content["height"] > 0.9 * frame["height"]
    assert content["width"] > 0.9 * frame["width"]
    # The height of a line is more than that of its letters.
    lowest = page.evaluate(
        "Math.min(...[...document.querySelectorAll('#canvas text')]"
        ".map((each) => each.getBoundingClientRect().height))"
    )
    assert lowest >= 14
    assert page.locator("#canvas .edge").count() <= 2 * 25
    assert inside_their_boxes(page)
    bar = page.locator(".bar").bounding_box()
    parts = [part.bounding_box() for part in page.locator(".bar svg").all()]
    assert bar is not None
    assert len(parts) == 4
    assert all(part is not None and part["width"] >= 3.99 for part in parts)
    assert sum(part["width"] for part in parts if part) <= bar["width"] + 0.1
    search, reset = (page.locator(name).bounding_box() for name in ("#search", "#reset"))
    assert search is not None
    assert reset is not None
    assert abs(search["y"] + search["height"] / 2 - reset["y"] - reset["height"] / 2) < 8
    page.locator("#canvas .box.failed").first.focus()
    assert "1 failed" in page.locator("#hint").inner_text()
    page.keyboard.press("Enter")
    assert focused(page).startswith("✗ ")
    assert page.locator("#canvas .box").count() > 25
    page.locator("#view").select_option("absent")
    assert page.locator("#canvas .box").count() == 116
    page.locator("#view").select_option("all")
    assert page.locator("#canvas .box").count() == 1_000
    page.locator("#canvas .box.failed").first.press("Enter")
    page.get_by_role("button", name="Show in graph").click()
    assert page.locator("#view").input_value() == "around"
    assert 1 < page.locator("#canvas .box").count() <= 200
    page.locator("#canvas .box.failed").first.press("Enter")
    page.get_by_role("button", name="Show in table").click()
    assert page.locator("#table details[open]").count() == 1


def inside_their_boxes(page: Page) -> bool:
    return bool(
        page.evaluate(
            "[...document.querySelectorAll('#canvas .box')].every((box) =>"
            " [...box.querySelectorAll('text')].every((text) => text.getBoundingClientRect().right"
            " <= box.querySelector('.paper').getBoundingClientRect().right))"
        )
    )


def test_a_name_that_is_too_long_for_its_box_shows_its_end(opened: Open) -> None:
    page = draw(opened(release(6)))
    shown = page.locator("#canvas .box text").all_text_contents()
    assert "…/acme/platform/sdk" in shown
    assert "acme-measure" in shown
    assert inside_their_boxes(page)


def test_signatures_have_a_lane_of_their_own(opened: Open) -> None:
    spans = (
        Span(phase="build", start_s=0.0, end_s=1.0),
        Span(phase="attest", start_s=1.0, end_s=2.0),
        Span(phase="upload", start_s=2.0, end_s=3.0),
    )
    page = draw(opened(replace(report(replace(result("core"), spans=spans)), duration_s=3.0)))
    assert page.locator("#timeline .task.attest").count() == 1
    assert page.locator("#timeline text", has_text="signatures").count() == 1
    assert page.locator("#graph-note").text_content() == "1 package."


def test_the_timeline_is_walked_in_time(opened: Open) -> None:
    page = draw(opened(release(6)))
    first = page.locator("#timeline .task").first
    first.focus()
    assert "ended as published" in page.locator("#hint").inner_text()
    page.keyboard.press("ArrowRight")
    assert " build " in focused(page)
    page.keyboard.press("End")
    assert " confirm " in focused(page)
    page.keyboard.press("Enter")
    assert page.locator("#dialog").get_attribute("open") is not None


def test_the_theme_can_be_chosen_and_is_remembered(opened: Open) -> None:
    page = opened(release(6), scheme="light")
    paper = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(paper) == "rgb(255, 255, 255)"
    page.locator("#theme").click()
    page.locator("#theme").click()
    assert page.locator("#theme").text_content() == "Theme: dark"
    assert page.evaluate(paper) == "rgb(13, 17, 23)"
    page.reload()
    assert page.evaluate(paper) == "rgb(13, 17, 23)"


# What is wider than the page; a log scrolls by itself.
WIDER = """() => [...document.querySelectorAll("body :not(pre, pre *, svg *)")]
    .filter((each) => each.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
    .map((each) => each.outerHTML.slice(0, 99))"""


# Of what paper has to show: what is folded or hidden, or has more in it than fits.
CUT_OFF = """() => [...document.querySelectorAll("#table tbody tr, #table .details, pre")]
    .filter((each) => !each.checkVisibility() || each.scrollHeight > each.clientHeight + 1
        || each.scrollWidth > each.clientWidth + 1)
    .map((each) => each.outerHTML.slice(0, 99))"""


@pytest.mark.parametrize("packages", [6, 60])
def test_a_phone_shows_the_outcome_and_what_to_do_on_its_first_screen(
    opened: Open, packages: int
) -> None:
    """Then all the rest, without scrolling sideways: a package is a card, and its name's text is
    as large as on a screen.
    """
    page = draw(opened(release(packages), width=390))
    page.evaluate("scrollTo(0, 0)")
    tops = [page.locator(each).first.bounding_box() for each in ("h1", ".bar", ".card .advice")]
    assert all(top is not None for top in tops)
    heights = [top["y"] + top["height"] for top in tops if top]
    assert heights == sorted(heights)
    assert heights[-1] < 844
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert page.evaluate(WIDER) == []
    name, outcome, what = (
        page.locator(f"#table tbody tr:first-child > :nth-child({place})").bounding_box()
        for place in (1, 4, 7)
    )
    assert name is not None
    assert outcome is not None
    assert what is not None
    assert outcome["y"] < name["y"] < what["y"]
    assert outcome["x"] == name["x"] == what["x"]
    letters = "getComputedStyle(document.querySelector('#canvas .box text')).fontSize"
    scale = "document.querySelector('#canvas .box').getBoundingClientRect().width / 200"
    assert float(page.evaluate(letters).removesuffix("px")) * page.evaluate(scale) > 9
    page.get_by_role("button", name="Time").click()
    assert page.locator("th[aria-sort]").text_content() == "Time"
    if packages == 6:
        assert violations(page) == []


def test_paper_shows_all_of_it_in_light_colours(opened: Open) -> None:
    """Also what a filter hides, what is folded, and pictures that nobody has come near to."""
    page = opened(release(60), scheme="dark")
    page.locator("#search").fill("acme-fraud-admin")
    found = names(page)
    assert 0 < len(found) < 60
    page.set_viewport_size({"width": 700, "height": 844})  # A4 between its margins
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    rows, details = page.locator("#table tbody tr"), page.locator("#table .details")
    assert rows.count() == details.count() == 60
    assert page.evaluate(CUT_OFF) == []
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate(WIDER) == []
    for picture, part, count in (("#canvas", ".box", 60), ("#timeline", ".task", 100)):
        assert page.locator(f"{picture} {part}").count() >= count
        paper, drawn = (
            page.locator(each).bounding_box() for each in ("#packages", f"{picture} svg > g")
        )
        assert paper is not None
        assert drawn is not None
        assert paper["x"] - 1 <= drawn["x"]
        assert 0.6 * paper["width"] < drawn["width"] <= paper["width"] + 1
    for hidden in ("#filters", "#theme", ".controls", ".skip"):
        assert not page.locator(hidden).first.is_visible()
    page.emulate_media(media="screen")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert names(page) == found
    assert page.locator("#canvas svg").get_attribute("viewBox") is None
    assert page.locator("#table .details:visible").count() == 0


def test_without_scripts_the_headline_and_the_table_are_there(opened: Open) -> None:
    page = opened(release(6), script=False)
    assert page.locator("h1").is_visible()
    assert page.locator("#table tbody tr").count() == 6
    page.locator("#table summary").first.click()
    assert page.locator("#table .details").first.is_visible()
    for part in ("#filters", "#graph", "#timeline", "#theme"):
        assert not page.locator(part).is_visible()


def test_hostile_names_stay_names(opened: Open) -> None:
    """R35: in the graph, the timeline, hints, details and the table."""
    evil = [
        *dict.fromkeys(visible(each) for each in HOSTILE),
        "<img src=x onerror=alert(1)>",
        "</script><script>alert(2)</script>",
        "__proto__",
        "constructor",
    ]
    told = report(
        *(
            result(
                name,
                Outcome.FAILED,
                version=name,
                reason=name,
                hint=name,
                log=(name,),
                spans=(Span(phase="build", start_s=0.0, end_s=number + 1.0),),
            )
            for number, name in enumerate(evil)
        ),
        edges=dict.fromkeys(evil[1:], (evil[0],)),
    )
    page = draw(opened(told))
    assert names(page) == evil
    for number in (evil.index("<b>"), len(evil) - 4, len(evil) - 3, len(evil) - 2):
        page.locator(f"#canvas .box[data-key='{number}']").press("Enter")
        title = page.locator("#dialog h2").text_content()
        assert title == f"pypi:{evil[number]} {evil[number]}"
        page.keyboard.press("Escape")
    assert page.locator("img, script[src], h2 b, th b, iframe").count() == 0
    assert page.locator("script").count() == 4
    page.locator("#search").fill("<img")
    assert names(page) == ["<img src=x onerror=alert(1)>"]
