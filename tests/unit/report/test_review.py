from __future__ import annotations

import asyncio
import io
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from approvals import FakeApproval, recorded
from releasekit.approval.review import Held, build_review, examine
from releasekit.ecosystems.approval import Contents
from releasekit.errors import Denied
from releasekit.model import PackageId, Report
from releasekit.report.review import Change, Review, show_review
from releasekit.report.tables import approval_table

if TYPE_CHECKING:
    from collections.abc import Mapping


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def change(name: str, **more: object) -> Change:
    values = {"version": "1.1.0", "level": 1, "size": 1_500, "tag": "latest", **more}
    return Change(package=PackageId("npm", name), **values)  # type: ignore[arg-type]


def review(*changes: Change, **more: object) -> Review:
    values: dict[str, object] = {
        "run_id": "run",
        "commit": "0123456789abcdef",
        "place": "https://registry.npmjs.org/",
        "settled": {},
        "refused": {},
        "behind": {},
        **more,
    }
    return Review(changes=changes, **values)  # type: ignore[arg-type]


def shown(made: Review, stream: io.StringIO | None = None, **environment: str) -> str:
    out = stream or io.StringIO()
    show_review(made, out, environment)
    return out.getvalue()


WHOLE = review(
    change(
        "core",
        before="1.0.0",
        size_before=1_000,
        files=3,
        added=("new.js",),
        removed=("old.js", "older.js"),
        scripts=("postinstall: node new.js",),
        needed_by=(PackageId("npm", "api"),),
    ),
    change("api", level=2, tag="next", note="not compared", size=2_500_000),
    refused={"npm:web 1.1.0": "other bytes"},
    settled={"npm:cli 1.1.0": "everybody sees it"},
    behind={PackageId("pypi", "acme"): [PackageId("npm", "core")]},
    run={"repository": "acme/widgets", "workflow": ".github/workflows/release.yml"},
)


_CORE = ("1", "npm:core", "1.0.0", "→", "1.1.0")


def test_everything_that_matters_is_said() -> None:
    lines = [line.strip() for line in shown(WHOLE).splitlines()]
    assert lines[0] == (
        "2 packages of commit 0123456789a… wait for approval at https://registry.npmjs.org/"
    )
    assert lines[2:5] == [
        "Staged by this run:",
        "repository: acme/widgets",
        "workflow: .github/workflows/release.yml",
    ]
    table = [line.split() for line in lines[6:9]]
    assert table == [
        ["package", "version", "tag", "size", "files"],
        [*_CORE, "latest", "1.5", "kB", "(+500", "bytes)", "3", "(+1", "-2)"],
        ["2", "npm:api", "1.1.0", "(new)", "next", "2.5", "MB", "?"],
    ]
    for line in (
        "! runs on installation: postinstall: node new.js",
        "+ new.js",
        "- older.js",
        "needed by npm:api",
        "not compared",
        "npm:web 1.1.0: other bytes",
        "npm:cli 1.1.0: everybody sees it",
        "pypi:acme: needs npm:core",
    ):
        assert line in lines


@pytest.mark.parametrize("width", [80, 120])
def test_it_fits_the_terminal(width: int) -> None:
    many = [
        change(f"@acme-corporation/package-{number}", before="10.11.12-beta.1", size_before=9_999)
        for number in range(30)
    ]
    text = shown(review(*many), Terminal(), COLUMNS=str(width), TERM="xterm", NO_COLOR="1")
    assert max(len(re.sub(r"\x1b\[\d*m", "", line)) for line in text.splitlines()) <= width
    assert "\x1b[3" not in text


def test_a_terminal_has_colours_and_a_log_has_none() -> None:
    assert "\x1b[" in shown(WHOLE, Terminal(), COLUMNS="100", TERM="xterm-256color")
    assert "\x1b[" not in shown(WHOLE)
    assert "\x1b[" not in shown(WHOLE, Terminal(), TERM="dumb")


@pytest.mark.parametrize("terminal", [True, False])
def test_no_text_of_a_package_is_a_command(terminal: bool) -> None:
    """R35"""
    evil = "::error::x\n\x1b[2J\u202e[bold]##[error]"
    made = review(
        change(evil, tag=evil, by=evil, before=evil, added=(evil,), scripts=(evil,), note=evil),
        refused={evil: evil},
        run={"title": evil},
    )
    stream = Terminal() if terminal else io.StringIO()
    text = shown(made, stream, COLUMNS="200", TERM="xterm", NO_COLOR="1")
    assert "\x1b[2J" not in text
    assert "\u202e" not in text
    assert "[bold]" in text
    if not terminal:
        assert not any(line.strip().startswith("::") or "##[" in line for line in text.splitlines())


def test_many_files_are_counted() -> None:
    names = tuple(f"{number}.js" for number in range(100))
    text = shown(review(change("core", before="1.0.0", added=names, files=100)))
    assert "+ and 92 more" in text


def test_a_release_without_a_commit_and_of_one_package() -> None:
    text = shown(review(change("core", size=10), commit=""))
    assert text.startswith("1 package waits for approval at")


def made_of(
    registry: FakeApproval, needs: Mapping[str, list[str]], *, compare: bool = True
) -> Review:
    results = [recorded(name) for name in needs]
    edges = {
        PackageId("npm", name): frozenset(PackageId("npm", need) for need in on)
        for name, on in needs.items()
    }
    report = Report(
        run_id="run",
        plan_digest="",
        commit="",
        started_at="",
        duration_s=0.0,
        results=tuple(results),
        edges=edges,
    )

    async def main() -> Review:
        examined = {
            each.package.id: await examine(each, registry, Path(), compare=compare)
            for each in results
        }
        held = Held.of(report, "results.json", lambda _: True)
        return await build_review(report, held, examined, registry, compare=compare)

    return asyncio.run(main())


NEEDS = {"web": ["core"], "core": []}


def holding(*names: str) -> FakeApproval:
    return FakeApproval.holding([recorded(name) for name in names])


def test_what_changed_since_the_last_version() -> None:
    registry = holding("core", "web")
    names = frozenset({"package.json", "old.js"})
    registry.before["core"] = Contents(version="0.9.0", size=1, names=names, scripts={})
    same = Contents(version="0.9.0", size=3, scripts={"postinstall": "node new.js"})
    registry.before["web"] = same
    core, web = made_of(registry, NEEDS).changes
    assert (core.before, core.added, core.removed) == ("0.9.0", ("new.js",), ("old.js",))
    assert core.scripts == ("postinstall: node new.js",)
    assert core.needed_by == (PackageId("npm", "web"),)
    assert (web.level, web.scripts) == (2, ())


def test_a_new_package_has_only_new_scripts() -> None:
    (core,) = made_of(holding("core"), {"core": []}).changes
    assert (core.before, core.added, core.scripts) == ("", (), ("postinstall: node new.js",))


def test_what_cannot_be_compared_says_why() -> None:
    class Closed(FakeApproval):
        async def last_published(self, recorded: object, _into: Path) -> Contents | None:
            raise Denied(f"HTTP 403 {bool(recorded)}")

    registry = holding("core")
    closed = Closed(held=registry.held, data=registry.data)
    (core,) = made_of(closed, {"core": []}).changes
    assert core.note == "not compared with the version before: HTTP 403 True"
    assert core.scripts == ("postinstall: node new.js",)


def test_to_take_it_back_nothing_is_compared() -> None:
    registry = holding("core")
    registry.data.clear()
    (core,) = made_of(registry, {"core": []}, compare=False).changes
    assert (core.files, core.scripts) == (0, ())


def test_what_is_settled_and_what_is_refused() -> None:
    registry = holding("forged")
    registry.visible = {"seen"}
    registry.data["forged"] = b"x"
    made = made_of(registry, {"seen": [], "gone": [], "forged": []})
    assert made.changes == ()
    assert made.settled["npm:seen 1.0.0"] == "everybody sees it"
    assert "approved a while ago, or rejected" in made.settled["npm:gone 1.0.0"]
    assert "was built" in made.refused["npm:forged 1.0.0"]


def test_endings_share_their_hints() -> None:
    rows = [(name, "1", "failed", "::x") for name in "abcd"]
    text = approval_table(rows, [(name, "run again", None) for name in "abcd"])
    assert "a, b, c and 1 more: run again" in text
    assert "\n::" not in text
