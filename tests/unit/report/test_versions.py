"""Decisions in words; how they come about is tested in tests/versions."""

from __future__ import annotations

import html
import json
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from releasekit.decided import Bump, Decision, Edge, Level, Reason, Source, VersionGroup
from releasekit.model import DependencyKind, Package, PackageId
from releasekit.report.release_pr import write_body
from releasekit.report.versions import (
    VersionsView,
    versions_outputs,
    versions_summary,
    versions_table,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from releasekit.decided import Carry

ROOT = Path("/w")


def package(text: str, version: str) -> Package:
    found = PackageId.parse(text)
    directory = ROOT / found.ecosystem / found.name
    return Package(id=found, version=version, directory=directory, manifest=directory / "manifest")


def stated(text: str, title: str, level: Level = Level.PATCH) -> Reason:
    return Reason(package=PackageId.parse(text), level=level, source=Source(title=title))


def edge(
    dependent: str, on: str, requirement: str = "", *, admits: bool = False, **more: object
) -> Edge:
    return Edge(
        dependent=PackageId.parse(dependent),
        on=PackageId.parse(on),
        requirement=requirement,
        admits=lambda _: admits,
        **more,  # type: ignore[arg-type]
    )


def needed(found: Edge, level: Level = Level.PATCH) -> Reason:
    return Reason(package=found.dependent, level=level, edge=found)


def bump(text: str, old: str, new: str, *reasons: Reason) -> Bump:
    level = max(reason.level for reason in reasons)
    return Bump(
        package=PackageId.parse(text), old=old, new=new, level=level, reasons=tuple(reasons)
    )


def view(*bumps: Bump, written: Mapping[str, str] | None = None, **more: object) -> VersionsView:
    """Of packages whose old versions are written, where `written` does not say another."""
    there = {str(each.package): each.old for each in bumps} | dict(written or {})
    packages = [package(text, version) for text, version in there.items()]
    decision = Decision(bumps=bumps, **more)  # type: ignore[arg-type]
    return VersionsView(decision, {each.id: each for each in packages})


CORE = bump(
    "pypi:acme-core",
    "1.2.0",
    "1.3.0",
    stated("pypi:acme-core", "feat: read parquet files (#41)", Level.MINOR),
    stated("pypi:acme-core", "fix: close the file (#40)"),
)


def test_each_package_and_reason_has_a_line() -> None:
    web = edge("pypi:acme-web", "pypi:acme-core", "==1.2.0")
    shown = versions_table(view(CORE, bump("pypi:acme-web", "0.3.0", "0.3.1", needed(web))), {})
    assert shown == dedent("""\
        acme-core  1.2.0 → 1.3.0  minor  feat: read parquet files (#41)
                                  patch  fix: close the file (#40)
        acme-web   0.3.0 → 0.3.1  patch  when packed, 0.3.0 requires acme-core==1.2.0

        2 packages to release""")


def test_a_peer_and_a_group_say_so() -> None:
    group = VersionGroup(name="ui", packages=(PackageId("npm", "ui"), PackageId("npm", "icons")))
    icons = bump("npm:icons", "2.4.1", "3.0.0", stated("npm:icons", "bright-owls: ES", Level.MAJOR))
    ui = bump(
        "npm:ui", "2.4.1", "3.0.0", Reason(package=icons.package, level=Level.MAJOR, group=group)
    )
    assert versions_table(view(icons, ui), {}).splitlines()[1].endswith("major  fixed group ui")
    peer = edge("npm:theme", "npm:ui", "^2.0.0", kind=DependencyKind.PEER)
    shown = versions_table(view(icons, ui, bump("npm:theme", "1.0.3", "1.0.4", needed(peer))), {})
    assert "patch  its peer ^2.0.0 excludes ui 3.0.0" in shown


def test_a_place_that_holds_several_versions_is_named() -> None:
    place = "Cargo.toml: workspace.package.version"
    both = (PackageId("cargo", "a"), PackageId("cargo", "b"))
    group = VersionGroup(name=place, packages=both, place=place)
    reason = Reason(package=both[1], level=Level.PATCH, group=group)
    shown = versions_table(view(bump("cargo:b", "1.0.0", "1.0.1", reason)), {})
    assert f"patch  one version for 2 packages, in {place}" in shown


@pytest.mark.parametrize(
    ("old", "new", "level", "words"),
    [
        ("0.5.0", "0.6.0", Level.MAJOR, "breaking, minor below 1.0"),
        ("0.5.0", "0.5.1", Level.MINOR, "feature, patch below 1.0"),
        ("0.0.3", "0.0.4", Level.MAJOR, "breaking, patch below 1.0"),
        ("0.5.0", "1.0.0", Level.MAJOR, "major"),
        ("0.5", "0.6", Level.MINOR, "minor"),
        ("1!1.2", "1!2.0", Level.MAJOR, "major"),
        ("1.2.3-jre", "2.0.0-jre", Level.MAJOR, "major"),
    ],
)
def test_a_level_says_what_came_of_it(old: str, new: str, level: Level, words: str) -> None:
    shown = versions_table(view(bump("pypi:a", old, new, stated("pypi:a", "title", level))), {})
    assert shown.startswith(f"a  {old} → {new}  {words}  title")


def test_a_first_release_has_the_level_that_is_asked_for() -> None:
    first = bump("pypi:a", "", "0.1.0", stated("pypi:a", "feat: start", Level.MINOR))
    assert versions_table(view(first), {}).startswith("a  0.1.0  minor  feat: start")


@pytest.mark.parametrize(("carry", "words"), [("same", "the same level"), ("patch", "patch")])
def test_a_package_that_follows_another_says_which(carry: Carry, words: str) -> None:
    crate = bump("cargo:m", "0.5.0", "0.6.0", stated("cargo:m", "feat!: x", Level.MAJOR))
    follows = edge("pypi:m", "cargo:m", carry=carry)
    shown = versions_table(view(crate, bump("pypi:m", "0.5.0", "0.6.0", needed(follows))), {})
    wheel = shown.splitlines()[1]
    assert wheel.startswith(f"pypi:m   0.5.0 → 0.6.0  {words} ")
    assert wheel.endswith("  follows cargo:m 0.6.0")


def test_go_writes_a_v() -> None:
    sdk = "go:a.b/sdk"
    found = view(
        bump(sdk, "1.2.0", "1.3.0", stated(sdk, "feat: contexts", Level.MINOR)),
        written={sdk: "v1.2.0"},
    )
    assert [each.name for each in found.to_write] == ["a.b/sdk"]
    assert "v1.2.0 → v1.3.0" in versions_table(found, {})


def test_a_dependent_that_would_do_says_what_it_requires() -> None:
    web = edge("pypi:acme-web", "pypi:acme-core", ">=1", admits=True)
    shown = versions_table(view(CORE, bump("pypi:acme-web", "0.3.0", "0.3.1", needed(web))), {})
    assert "requires acme-core, now 1.3.0" in shown


def test_what_is_written_already_is_not_to_be_written() -> None:
    found = view(CORE, written={"pypi:acme-core": "1.3.0"})
    assert found.to_write == {}
    assert versions_table(found, {}).endswith("1 package to release, 1 of them already written")
    assert versions_outputs(found, {}, ROOT)["bumped"] == "false"


def test_what_was_left_alone_is_said_when_asked() -> None:
    why = Reason(package=PackageId("pypi", "acme-core"), rule="docs: typo (#43) asks for nothing")
    found = view(written={"pypi:acme-core": "1.2.0"}, left_alone=(why,))
    assert versions_table(found, {}) == "No package gets a new version"
    assert versions_table(found, {}, verbose=True).splitlines()[:2] == [
        "left alone:",
        "acme-core  docs: typo (#43) asks for nothing",
    ]


def test_the_steps_that_follow_read_it_as_json() -> None:
    found = versions_outputs(view(CORE), {}, ROOT)
    assert found["bumped"] == "true"
    assert json.loads(found["versions"]) == [
        {
            "package": "acme-core",
            "ecosystem": "pypi",
            "directory": "pypi/acme-core",
            "from": "1.2.0",
            "to": "1.3.0",
            "level": "minor",
            "reasons": ["feat: read parquet files (#41)", "fix: close the file (#40)"],
        }
    ]


def test_very_many_packages_are_all_listed_without_their_reasons() -> None:
    bumps = [
        bump(f"pypi:p{n}", "1.0.0", "1.0.1", stated(f"pypi:p{n}", "x" * 190)) for n in range(2_500)
    ]
    found = versions_outputs(view(*bumps), {}, ROOT)["versions"]
    assert len(found) < 450_000
    assert len(json.loads(found)) == 2_500


def test_the_summary_is_a_table_of_what_is_to_come() -> None:
    shown = html.unescape(versions_summary(view(CORE)))
    because = "feat: read parquet files (#41)<br>fix: close the file (#40)"
    assert shown.splitlines() == [
        "## 1 package to release",
        "",
        "| package | now | next | because |",
        "| --- | --- | --- | --- |",
        f"| <code>acme-core</code> | 1.2.0 | 1.3.0 | {because} |",
    ]


def test_the_summary_says_less_rather_than_too_much() -> None:
    bumps = [
        bump(f"pypi:p{n}", "1.0.0", "1.0.1", *[stated(f"pypi:p{n}", "x" * 190)] * 9)
        for n in range(1_000)
    ]
    shown = versions_summary(view(*bumps), limit_bytes=100_000)
    assert len(shown.encode()) <= 100_000
    assert "and 8 more" in shown
    assert shown.endswith("… and 950 packages more.\n")


def test_what_moves_along_is_named_everywhere() -> None:
    moved = {PackageId("maven", f"g:it{number:02}"): "1.3.0" for number in range(60)}
    told = "moved along, and not released: g:it00 1.3.0, g:it01 1.3.0, "
    found = view(CORE).with_moved(moved)
    shown = versions_table(found, {}).splitlines()[-1]
    assert shown.startswith(told)
    assert shown.endswith(", g:it49 1.3.0 and 10 more")
    notes = {bump.package: "" for bump in found.decision.bumps}
    body = write_body(found, notes, into="main", page="", told=[], last="")
    for page in (versions_summary(found), body):
        assert told in html.unescape(page)


def test_what_a_commit_says_reaches_nobody_as_a_command() -> None:
    title = "feat: ::set-output x\x1b[2J | @everyone <script> \u202e"
    found = view(bump("pypi:a", "1.0.0", "1.1.0", stated("pypi:a", title, Level.MINOR)))
    told = versions_table(found, {})
    assert "\x1b" not in told
    assert "\u202e" not in told
    summary = versions_summary(found)
    assert "\x1b" not in summary
    assert "<script>" not in summary
    assert "@everyone" not in summary
