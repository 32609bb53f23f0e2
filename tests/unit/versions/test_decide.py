"""Which versions follow from intents, published requirements and groups: examples, refusals, and
what holds for every decision, on generated workspaces.
"""

from __future__ import annotations

import itertools
import random
import re
import sys
from functools import partial
from typing import TYPE_CHECKING, Final

import pytest
from packaging.specifiers import SpecifierSet

from releasekit.decided import (
    Decision,
    Edge,
    Level,
    Reason,
    Rules,
    Source,
    Standing,
    VersionGroup,
    VersionIntent,
)
from releasekit.fields import replace
from releasekit.model import DependencyKind, PackageId
from releasekit.problems import Problem
from releasekit.text.numbering import numbering_of
from releasekit.versions.decide import decide

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from releasekit.decided import Carry, Propagate, Zero

NONE, PATCH, MINOR, MAJOR = Level
RUNTIME, PEER, EXTRA = DependencyKind.RUNTIME, DependencyKind.PEER, DependencyKind.EXTRA


def named(text: str) -> PackageId:
    """Of npm, where it says nothing else."""
    return PackageId.parse(text) if ":" in text else PackageId("npm", text)


def standing(name: str, written: str, released: str | None = None, **more: object) -> Standing:
    """Released as it is written, where nothing else is said."""
    last = written if released is None else released
    return Standing(package=named(name), written=written, released=last, **more)  # type: ignore[arg-type]


def asking(
    name: str, level: Level = NONE, title: str = "a change", **more: object
) -> VersionIntent:
    source = Source(title=title)
    return VersionIntent(package=named(name), level=level, source=source, **more)  # type: ignore[arg-type]


def choosing(name: str, version: str, path: str = ".changeset/a.md") -> VersionIntent:
    source = Source(title=path or "--set", path=path)
    return VersionIntent(package=named(name), level=NONE, source=source, exact=version)


def edge(dependent: str, on: str, requirement: str = "", kind: DependencyKind = RUNTIME) -> Edge:
    """`requirement` is one of packaging's, or `^` or nothing."""
    if requirement.startswith("^"):
        numbers = requirement[1:].split(".")
        requirement, shown = f"=={numbers[0]}.*", requirement
    else:
        shown = requirement
    return Edge(
        dependent=named(dependent),
        on=named(on),
        kind=kind,
        requirement=shown,
        admits=SpecifierSet(requirement).contains,
    )


def declared(dependent: str, on: str, carry: Carry) -> Edge:
    return Edge(dependent=named(dependent), on=named(on), kind=EXTRA, carry=carry)


def fixed(*names: str, name: str = "ui") -> VersionGroup:
    return VersionGroup(name=name, packages=tuple(map(named, names)))


def linked(*names: str, name: str = "ui") -> VersionGroup:
    return VersionGroup(name=name, packages=tuple(map(named, names)), kind="linked")


def decided(
    standings: Sequence[Standing],
    intents: Sequence[VersionIntent] = (),
    edges: Sequence[Edge] = (),
    *groups: VersionGroup,
    zero: Zero = "shift",
    propagate: Propagate = "needed",
) -> Decision:
    return decide(standings, intents, edges, Rules(zero=zero, propagate=propagate, groups=groups))


def lines(decision: Decision) -> list[str]:
    """A line for each bump: from, to, level, reasons."""
    assert not decision.troubles
    return [
        f"{bump.package.name} {bump.old} -> {bump.new} {bump.level}: "
        f"{', '.join(map(word, bump.reasons))}"
        for bump in decision.bumps
    ]


def word(reason: Reason) -> str:
    if reason.source is not None:
        return reason.source.title
    if reason.edge is not None:
        return f"follows {reason.edge.on.name}"
    return f"{reason.group.kind} {reason.group.name}" if reason.group is not None else reason.rule


def versions(decision: Decision) -> dict[str, str]:
    assert not decision.troubles
    return {bump.package.name: bump.new for bump in decision.bumps}


def troubles(decision: Decision) -> list[tuple[str, Problem, str]]:
    return [(each.package.name, each.problem, each.message) for each in decision.troubles]


def test_only_a_published_pin_takes_dependents_along() -> None:
    """Of a uv workspace: cli admits the new core, web was published with the old one."""
    decision = decided(
        [
            standing("pypi:core", "1.2.0"),
            standing("pypi:cli", "0.4.1"),
            standing("pypi:web", "0.3.0"),
        ],
        [
            asking("pypi:core", MINOR, "feat: read parquet files (#41)"),
            asking("pypi:cli", PATCH, "fix: exit 1 when nothing matches (#42)"),
            asking("pypi:web", NONE, "docs: typo (#43)"),
        ],
        [edge("pypi:cli", "pypi:core", ">=1.2,<2"), edge("pypi:web", "pypi:core", "==1.2.0")],
    )
    assert lines(decision) == [
        "core 1.2.0 -> 1.3.0 minor: feat: read parquet files (#41)",
        "cli 0.4.1 -> 0.4.2 patch: fix: exit 1 when nothing matches (#42)",
        "web 0.3.0 -> 0.3.1 patch: follows core",
    ]
    assert [word(each) for each in decision.left_alone] == ["docs: typo (#43)"]


def test_a_requirement_that_stands_twice_is_one_reason() -> None:
    """For two platforms, or once as an option: each is read on its own."""
    twice = [edge("pypi:web", "pypi:core", "==1.2.0") for _ in range(2)]
    decision = decided(
        [standing("pypi:core", "1.2.0"), standing("pypi:web", "0.3.0")],
        [asking("pypi:core", MINOR, "feat: read parquet files (#41)")],
        [twice[0], replace(twice[1], optional=True)],
    )
    assert lines(decision) == [
        "core 1.2.0 -> 1.3.0 minor: feat: read parquet files (#41)",
        "web 0.3.0 -> 0.3.1 patch: follows core",
    ]


def test_a_fixed_group_goes_up_together_and_an_excluded_peer_is_a_patch() -> None:
    decision = decided(
        [standing("ui", "2.4.1"), standing("icons", "2.4.1"), standing("theme", "1.0.3")],
        [asking("icons", MAJOR, "bright-owls-sing: Icons are ES modules only.")],
        [edge("theme", "ui", "^2.0.0", PEER)],
        fixed("ui", "icons"),
    )
    assert lines(decision) == [
        "icons 2.4.1 -> 3.0.0 major: bright-owls-sing: Icons are ES modules only.",
        "ui 2.4.1 -> 3.0.0 major: fixed ui",
        "theme 1.0.3 -> 1.0.4 patch: follows ui",
    ]


def test_a_wheel_takes_over_the_level_of_the_crate_that_it_contains() -> None:
    decision = decided(
        [standing("cargo:measure", "0.5.0"), standing("pypi:measure", "0.5.0")],
        [asking("cargo:measure", MAJOR, "feat!: return errors instead of panicking (#88)")],
        [declared("pypi:measure", "cargo:measure", "same")],
    )
    assert lines(decision) == [
        "measure 0.5.0 -> 0.6.0 major: feat!: return errors instead of panicking (#88)",
        "measure 0.5.0 -> 0.6.0 major: follows measure",
    ]
    assert [bump.package.ecosystem for bump in decision.bumps] == ["cargo", "pypi"]


def test_a_go_module_follows_where_another_one_gets_a_new_path() -> None:
    def is_same_path(version: str) -> bool:
        return version.startswith("1.")

    decision = decided(
        [
            standing("go:example.com/acme", "1.8.0"),
            standing("go:example.com/acme/sdk", "1.2.0"),
            standing("go:example.com/acme/cmd/kit", "0.3.0"),
        ],
        [asking("go:example.com/acme/sdk", MAJOR, "feat(sdk)!: contexts everywhere (#97)")],
        [
            replace(
                edge("go:example.com/acme/cmd/kit", "go:example.com/acme/sdk"), admits=is_same_path
            )
        ],
    )
    assert lines(decision) == [
        "example.com/acme/sdk 1.2.0 -> 2.0.0 major: feat(sdk)!: contexts everywhere (#97)",
        "example.com/acme/cmd/kit 0.3.0 -> 0.3.1 patch: follows example.com/acme/sdk",
    ]


def test_the_highest_intent_decides_and_all_are_told_the_highest_first() -> None:
    intents = [asking("a", PATCH, "fix"), asking("a", MINOR, "feat"), asking("a", PATCH, "again")]
    assert lines(decided([standing("a", "1.0.0")], intents)) == [
        "a 1.0.0 -> 1.1.0 minor: feat, again, fix"
    ]


def test_nothing_is_released_without_a_reason() -> None:
    assert decided([standing("a", "1.0.0")]) == Decision()


def test_what_has_no_standing_is_left_out() -> None:
    """Private packages get no versions."""
    decision = decided(
        [standing("a", "1.0.0")],
        [asking("private", MAJOR), asking("a", PATCH)],
        [edge("private", "a", "==1.0.0"), edge("a", "private", "==1.0.0")],
        fixed("a", "private"),
    )
    assert versions(decision) == {"a": "1.0.1"}


@pytest.mark.parametrize(
    ("written", "released", "level", "expected"),
    [
        # Written by hand, or by an earlier run: it stands, and is what is released.
        ("1.2.1", "1.2.0", NONE, "1.2.1"),
        ("1.2.1", "1.2.0", PATCH, "1.2.1"),
        ("1.2.1", "1.2.0", MINOR, "1.3.0"),
        ("1.5.0", "1.2.0", MINOR, "1.5.0"),
        ("1.5.0", "1.2.0", MAJOR, "2.0.0"),
        ("1.2.0.post1", "1.2.0", NONE, "1.2.0.post1"),
        ("1.2.0.post1", "1.2.0", PATCH, "1.2.1"),
        ("1!0.1", "1.2.0", MAJOR, "1!0.1"),
        # A prerelease on a stable line leaves always.
        ("1.3.0rc2", "1.2.4", NONE, "1.3.0"),
        ("1.3.0rc2", "1.2.4", PATCH, "1.3.0"),
        ("1.3.0rc2", "1.2.4", MINOR, "1.3.0"),
        ("1.3.0rc2", "1.2.4", MAJOR, "2.0.0"),
        # A placeholder leaves where there is an intent.
        ("1.3.0.dev0", "1.2.4", NONE, ""),
        ("1.3.0.dev0", "1.2.4", PATCH, "1.3.0"),
        ("1.3.0.dev0", "1.2.4", MAJOR, "2.0.0"),
        # As a build computes it from a tag.
        ("1.2.5.dev4+g1a2b3c4d5", "1.2.4", PATCH, "1.2.5"),
        # The tree is behind its tags, as where a tool sets versions only to publish.
        ("0.0.0", "1.2.4", NONE, ""),
        ("0.0.0", "1.2.4", MINOR, "1.3.0"),
        ("1.3", "1.2.9", MINOR, "1.3"),
        ("2026.11.0", "2026.10.0", NONE, "2026.11.0"),
    ],
)
def test_a_written_version_stands_and_intents_only_go_higher(
    written: str, released: str, level: Level, expected: str
) -> None:
    intents = [asking("pypi:a", level)]
    decision = decided([standing("pypi:a", written, released)], intents)
    assert versions(decision) == ({"a": expected} if expected else {})


def test_a_version_that_is_written_already_is_a_reason() -> None:
    assert lines(decided([standing("a", "1.2.1", "1.2.0")], [asking("a", MINOR, "feat")])) == [
        "a 1.2.0 -> 1.3.0 minor: feat, 1.2.1 is already written"
    ]


@pytest.mark.parametrize(
    ("name", "written", "level", "expected"),
    [
        ("npm:a", "1.0.0", NONE, "1.0.0"),
        ("npm:a", "0.3.0", MAJOR, "0.3.0"),
        ("npm:a", "0.0.0", NONE, "0.1.0"),
        ("npm:a", "0.0.0-dev", MAJOR, "0.1.0"),
        ("npm:a", "0.0.0-dev", NONE, ""),
        ("npm:a", "1.0.0-rc.1", NONE, "1.0.0"),
        ("pypi:a", "0.0", PATCH, "0.1"),
        ("maven:a", "1.0-SNAPSHOT", PATCH, "1.0"),
        ("maven:a", "1.0-SNAPSHOT", NONE, ""),
        ("cargo:a", "2026.1.0", MINOR, "2026.1.0"),
    ],
)
def test_a_first_release_is_what_is_written(
    name: str, written: str, level: Level, expected: str
) -> None:
    decision = decided([standing(name, written, "")], [asking(name, level, "feat")])
    assert versions(decision) == ({"a": expected} if expected else {})
    if expected:
        assert [bump.old for bump in decision.bumps] == [""]
        assert "the first release" in [word(each) for each in decision.bumps[0].reasons]


def test_a_package_before_its_first_release_excludes_nothing() -> None:
    decision = decided(
        [standing("a", "1.0.0"), standing("b", "0.1.0", "")],
        [asking("a", MINOR, "feat")],
        [edge("b", "a", "==1.0.0")],
    )
    assert lines(decision) == [
        "a 1.0.0 -> 1.1.0 minor: feat",
        "b  -> 0.1.0 none: the first release",
    ]


def test_what_was_late_raises_nothing_and_is_told() -> None:
    late = asking("a", MAJOR, "feat!: all new", late=True)
    decision = decided([standing("a", "1.2.0")], [late])
    assert not decision.bumps
    assert [word(each) for each in decision.left_alone] == ["feat!: all new: already in 1.2.0"]
    both = decided([standing("a", "1.2.0")], [late, asking("a", PATCH, "fix: less")])
    assert lines(both) == ["a 1.2.0 -> 1.2.1 patch: fix: less"]


@pytest.mark.parametrize(
    ("name", "written", "chosen", "expected"),
    [
        ("npm:a", "0.9.0", "1.0.0", "1.0.0"),
        ("npm:a", "1.2.0", "3.1.4", "3.1.4"),
        ("pypi:a", "1.2", "1.2-1", "1.2.post1"),
        ("pypi:a", "2026.11.0", "2026.12.0", "2026.12.0"),
        ("pypi:a", "7.0", "1!1.0", "1!1.0"),
        ("go:a", "1.2.0", "v1.9.0", "1.9.0"),
        ("maven:a", "33.4.0-jre", "34.0.0-jre", "34.0.0-jre"),
    ],
)
def test_an_exact_version_outvotes_all_levels(
    name: str, written: str, chosen: str, expected: str
) -> None:
    intents = [choosing(name, chosen), asking(name, MAJOR), asking(name, PATCH)]
    assert versions(decided([standing(name, written)], intents)) == {"a": expected}


def test_an_exact_version_may_be_written_already() -> None:
    """So that deciding by hand twice is the same as once."""
    decision = decided([standing("a", "2.0.0", "1.0.0")], [choosing("a", "2.0.0")])
    assert versions(decision) == {"a": "2.0.0"}


def test_dependents_follow_an_exact_version_as_they_follow_its_level() -> None:
    decision = decided(
        [standing("a", "1.0.0"), standing("b", "1.0.0"), standing("c", "1.0.0")],
        [choosing("a", "2.5.0")],
        [edge("b", "a", "^1.0.0"), declared("c", "a", "same")],
    )
    assert versions(decision) == {"a": "2.5.0", "b": "1.0.1", "c": "2.0.0"}


@pytest.mark.parametrize(
    ("written", "released", "chosen", "message"),
    [
        ("1.2.0", "1.2.0", "1.2.0", "1.2.0 is not higher than 1.2.0, which is released"),
        ("1.2.0", "1.2.0", "1.1.9", "1.1.9 is not higher than 1.2.0, which is released"),
        ("1.4.0", "1.2.0", "1.3.0", "1.3.0 is lower than 1.4.0, which is written"),
        ("1.2.0", "1.2.0", "2.0", "'2.0' is not a version"),
        ("1.2.0", "1.2.0", "2.0.0-dev", "2.0.0-dev stands for what is not released"),
        ("1.2.0", "1.2.0", "2.0.0-rc.1", "2.0.0-rc.1 is a prerelease, which labels in [version] "),
        ("1.2.0", "", "1.0.0", "1.0.0 is lower than 1.2.0, which is written"),
    ],
)
def test_an_exact_version_that_cannot_be_is_refused(
    written: str, released: str, chosen: str, message: str
) -> None:
    intents = [choosing("a", chosen), asking("a", MAJOR)]
    decision = decided(
        [standing("a", written, released), standing("b", "1.0.0")],
        [*intents, asking("b", PATCH)],
        [edge("b", "a", "==1.2.0")],
    )
    ((package, problem, told),) = troubles(decision)
    assert (package, problem) == ("a", Problem.CHANGE_FILE)
    assert told.startswith(f".changeset/a.md: {message}")
    assert [bump.package.name for bump in decision.bumps] == ["b"]


def test_a_version_chosen_on_the_command_line_is_no_fault_of_a_change_file() -> None:
    """R61: as `--set` has it."""
    decision = decided([standing("a", "1.4.0", "1.2.0")], [choosing("a", "1.3.0", path="")])
    ((_, problem, told),) = troubles(decision)
    assert problem is Problem.NO_NEXT_VERSION
    assert told == "--set: 1.3.0 is lower than 1.4.0, which is written; write a higher one"


@pytest.mark.parametrize(("other", "shared"), [("a", ""), ("b", " for npm:a, which shares it")])
def test_two_exact_versions_are_refused(other: str, shared: str) -> None:
    decision = decided(
        [standing("a", "1.0.0"), standing("b", "1.0.0")],
        [choosing("a", "2.0.0"), choosing(other, "3.0.0", ".changeset/b.md")],
        [],
        fixed("a", "b"),
    )
    message = f".changeset/b.md: 3.0.0 is not 2.0.0, as .changeset/a.md says{shared}; keep one"
    assert troubles(decision) == [(other, Problem.CHANGE_FILE, message)]
    assert not decision.bumps


def test_a_date_has_no_next_version_and_takes_nobody_along() -> None:
    decision = decided(
        [standing("a", "2026.11.0"), standing("b", "1.0.0"), standing("c", "2026.11.0")],
        [asking("a", MINOR)],
        [edge("b", "a", "==2026.11.0"), edge("a", "c", ">=1")],
    )
    message = "2026.11.0 is a date, and no level says which version follows it"
    assert troubles(decision) == [("a", Problem.NO_NEXT_VERSION, message)]
    assert '`"npm:a": VERSION`' in decision.troubles[0].hint
    assert not decision.bumps


def test_a_version_that_nobody_can_read_matters_only_where_it_is_released() -> None:
    standings = [standing("a", "${revision}"), standing("b", "1.0.0")]
    assert versions(decided(standings, [asking("b", PATCH)])) == {"b": "1.0.1"}
    unread = [("a", Problem.NO_NEXT_VERSION, "'${revision}' is not a version")]
    assert troubles(decided(standings, [asking("a", PATCH)])) == unread
    # It is told once, and of the package that has it.
    assert troubles(decided(standings, [asking("b", PATCH)], [], fixed("b", "a"))) == unread


def test_a_version_that_another_branch_has_tagged_is_refused() -> None:
    taken = {"1.5.0": "3f2a91c04b" * 4, "1.4.7": "c0ffee" * 6}
    decision = decided([standing("a", "1.4.7", taken=taken)], [asking("a", MINOR)])
    message = (
        "1.5.0 is tagged already, on commit 3f2a91c04, which is not in the history of this one"
    )
    assert troubles(decision) == [("a", Problem.TAGGED_ELSEWHERE, message)]
    free = "2.0.0 (major) and 1.4.8 (patch) would be free."
    assert decision.troubles[0].hint.startswith(free)
    pending = decided([standing("a", "1.4.8", "1.4.7", taken=taken)], [asking("a", MINOR)])
    assert pending.troubles[0].hint.startswith(free)
    assert versions(decided([standing("a", "1.4.7", taken=taken)], [asking("a", PATCH)])) == {
        "a": "1.4.8"
    }


def test_all_troubles_are_told_at_once() -> None:
    decision = decided(
        [
            standing("a", "2026.1.0"),
            standing("b", "1.0.0"),
            standing("c", "1.0.0", taken={"1.0.1": "f"}),
        ],
        [asking("a", PATCH), choosing("b", "0.1.0"), asking("c", PATCH)],
    )
    assert [problem for _, problem, _ in troubles(decision)] == [
        Problem.NO_NEXT_VERSION,
        Problem.CHANGE_FILE,
        Problem.TAGGED_ELSEWHERE,
    ]


@pytest.mark.parametrize(
    ("propagate", "expected"),
    [
        ("needed", {"core": "1.1.0", "pins": "1.0.1"}),
        ("always", {"core": "1.1.0", "pins": "1.0.1", "admits": "1.0.1"}),
        ("never", {"core": "1.1.0"}),
    ],
)
def test_propagation_is_a_choice(propagate: Propagate, expected: Mapping[str, str]) -> None:
    names = ("core", "pins", "admits", "peer", "optional")
    decision = decided(
        [standing(name, "1.0.0") for name in names],
        [asking("core", MINOR)],
        [
            edge("pins", "core", "==1.0.0"),
            edge("admits", "core", "^1.0.0"),
            edge("peer", "core", "^1.0.0", PEER),
            edge("optional", "core", "^1.0.0", DependencyKind.OPTIONAL),
        ],
        propagate=propagate,
    )
    assert versions(decision) == expected


@pytest.mark.parametrize(
    ("carry", "change", "expected"),
    [
        ("patch", MAJOR, "1.0.1"),
        ("same", PATCH, "1.0.1"),
        ("same", MINOR, "1.1.0"),
        ("same", MAJOR, "2.0.0"),
        ("none", MAJOR, ""),
        ("", MAJOR, ""),
        # Written by hand; what is released without a level asks for a patch.
        ("same", "1.0.1", "1.0.1"),
        ("same", "1.7.0", "1.1.0"),
        ("same", "1.0.0.post1", "1.0.1"),
        ("patch", "1.0.0.post1", "1.0.1"),
    ],
)
def test_a_declared_dependency_carries_what_it_says(
    carry: Carry, change: Level | str, expected: str
) -> None:
    written, level = (change, NONE) if isinstance(change, str) else ("1.0.0", change)
    decision = decided(
        [standing("pypi:a", written, "1.0.0"), standing("b", "1.0.0")],
        [asking("pypi:a", level)],
        [declared("b", "pypi:a", carry)],
    )
    assert versions(decision).get("b", "") == expected


def test_why_dependents_are_left_alone_is_told() -> None:
    standings = [standing(name, "1.0.0") for name in ("a", "b", "c", "d", "e")]
    edges = [edge("b", "a", "^1.0.0"), declared("c", "a", "none"), edge("d", "a")]
    edges += [declared("e", "a", "")]
    left_alone = decided(standings, [asking("a", MINOR)], edges).left_alone
    assert left_alone[0] == Reason(package=named("b"), edge=edges[0])
    why = 'no manifest says that it contains this; write bump = "patch" if it does'
    assert [word(each) for each in left_alone[1:]] == [
        "does not follow npm:a 1.1.0: [dependencies] says so",
        "takes any version of npm:a",
        f"does not follow npm:a 1.1.0: {why}",
    ]
    edges = [edge("b", "a", "==1.0.0")]
    left_alone = decided(standings, [asking("a", MINOR)], edges, propagate="never").left_alone
    assert [word(each) for each in left_alone] == [
        "does not follow npm:a 1.1.0: propagate is never"
    ]


def test_dependents_of_dependents_follow_and_dependencies_are_told_first() -> None:
    names = ("d", "a", "c", "b")
    decision = decided(
        [standing(name, "1.0.0") for name in names],
        [asking("d", MINOR, "feat")],
        [edge(one, on, "==1.0.0") for one, on in itertools.pairwise(reversed(names))],
    )
    assert lines(decision) == [
        "d 1.0.0 -> 1.1.0 minor: feat",
        "a 1.0.0 -> 1.0.1 patch: follows d",
        "c 1.0.0 -> 1.0.1 patch: follows a",
        "b 1.0.0 -> 1.0.1 patch: follows c",
    ]


def test_packages_that_need_each_other_are_decided() -> None:
    """A peer gives way where the order closes a cycle."""
    decision = decided(
        [standing("a", "1.0.0"), standing("b", "1.0.0")],
        [asking("b", MAJOR, "feat!")],
        [edge("a", "b", "==1.0.0", PEER), edge("b", "a", "==1.0.0"), edge("a", "a", "==1.0.0")],
    )
    assert lines(decision) == [
        "a 1.0.0 -> 1.0.1 patch: follows b",
        "b 1.0.0 -> 2.0.0 major: feat!, follows a",
    ]


def test_a_fixed_group_counts_from_its_highest_member() -> None:
    decision = decided(
        [standing("a", "1.2.0"), standing("b", "3.0.0"), standing("c", "2.0.0", "1.0.0")],
        [asking("a", PATCH, "fix")],
        [],
        fixed("a", "b", "c"),
    )
    assert versions(decision) == {"a": "3.0.1", "b": "3.0.1", "c": "3.0.1"}


def test_a_group_without_intents_rests_whatever_its_members_have() -> None:
    standings = [standing("a", "1.2.0"), standing("b", "3.0.0")]
    assert not decided(standings, [], [], fixed("a", "b")).bumps


def test_a_version_that_one_member_has_by_hand_is_that_of_its_fixed_group() -> None:
    decision = decided(
        [standing("a", "2.5.0", "2.4.1"), standing("b", "2.4.1")], [], [], fixed("a", "b")
    )
    assert lines(decision) == [
        "a 2.4.1 -> 2.5.0 minor: 2.5.0 is already written",
        "b 2.4.1 -> 2.5.0 minor: fixed ui",
    ]


def test_a_new_member_joins_a_fixed_group_at_its_version() -> None:
    decision = decided(
        [standing("a", "2.4.1"), standing("new", "0.1.0", "")], [], [], fixed("a", "new")
    )
    assert lines(decision) == ["new  -> 2.4.1 none: the first release"]


def test_linked_packages_share_a_version_where_they_are_released() -> None:
    standings = [standing("a", "1.4.0"), standing("b", "1.2.0"), standing("c", "1.3.0")]
    intents = [asking("b", MINOR, "feat"), asking("c", PATCH, "fix")]
    assert lines(decided(standings, intents, [], linked("a", "b", "c"))) == [
        "b 1.2.0 -> 1.5.0 minor: feat",
        "c 1.3.0 -> 1.5.0 minor: fix, linked ui",
    ]


def test_the_level_of_a_version_that_is_written_is_the_lowest_that_leads_there() -> None:
    """Below 1.0.0, a patch and a minor lead to the same one."""
    decision = decided(
        [standing("a", "0.4.3", "0.4.2"), standing("b", "1.0.0")],
        [],
        [declared("b", "a", "same")],
    )
    assert versions(decision) == {"a": "0.4.3", "b": "1.0.1"}


def test_a_prerelease_that_was_the_last_release_leaves_by_a_patch() -> None:
    decision = decided([standing("a", "0.1.0-beta.3")])
    (line,) = lines(decision)
    change, _, reason = line.partition(": ")
    assert change == "a 0.1.0-beta.3 -> 0.1.0 patch"
    assert reason == "0.1.0-beta.3 is a prerelease, and [version] gives it no label"


def test_only_the_group_that_raises_a_package_is_a_reason() -> None:
    decision = decided(
        [standing(name, "1.0.0") for name in ("a", "b", "c")],
        [asking("a", PATCH, "fix"), asking("b", MINOR, "feat")],
        [],
        linked("a", "b", name="one"),
        linked("a", "c", name="two"),
    )
    assert lines(decision) == [
        "a 1.0.0 -> 1.1.0 minor: fix, linked one",
        "b 1.0.0 -> 1.1.0 minor: feat",
    ]


def test_a_group_takes_the_dependents_of_all_its_members_along() -> None:
    """The group is raised by one member, whose dependents are none; those of another follow."""
    decision = decided(
        [standing(name, "1.0.0") for name in ("a", "b", "user", "far")],
        [asking("a", MINOR)],
        [edge("user", "b", "==1.0.0"), edge("far", "user", "==1.0.0")],
        fixed("a", "b"),
    )
    assert versions(decision) == {"a": "1.1.0", "b": "1.1.0", "user": "1.0.1", "far": "1.0.1"}


def test_packages_of_several_groups_share_one_version() -> None:
    """As where a crate shares its version with all of a Cargo workspace, and with its wheel."""
    decision = decided(
        [
            standing("cargo:core", "1.2.0"),
            standing("cargo:macros", "1.2.0"),
            standing("pypi:core", "1.1"),
        ],
        [asking("cargo:macros", MINOR, "feat")],
        [],
        fixed("cargo:core", "cargo:macros", name="Cargo.toml"),
        fixed("cargo:core", "pypi:core", name="wheel"),
    )
    assert lines(decision) == [
        "core 1.2.0 -> 1.3.0 minor: fixed Cargo.toml, fixed wheel",
        "macros 1.2.0 -> 1.3.0 minor: feat",
        "core 1.1 -> 1.3 minor: fixed wheel",
    ]


def test_a_shared_version_that_not_all_can_have_is_refused() -> None:
    decision = decided(
        [standing("pypi:a", "1.2.0.1"), standing("npm:b", "1.2.0")],
        [asking("pypi:a", NONE, exact="1.2.0.2")],
        [],
        fixed("pypi:a", "npm:b"),
    )
    assert troubles(decision) == [
        ("b", Problem.NO_NEXT_VERSION, "'1.2.0.2' is not a version"),
    ]


def test_each_ecosystem_may_spell_the_version_that_all_share() -> None:
    decision = decided(
        [standing("pypi:a", "0.9"), standing("npm:b", "0.9.0")],
        [asking("pypi:a", exact="1.0.0rc1"), asking("npm:b", exact="1.0.0-rc.1")],
        [],
        fixed("pypi:a", "npm:b"),
    )
    assert versions(decision) == {"a": "1.0.0rc1", "b": "1.0.0-rc.1"}


def test_go_modules_of_different_majors_share_no_version() -> None:
    group = fixed("go:example.com/a", "go:example.com/b", "go:example.com/c/v2")
    standings = [
        standing("go:example.com/a", "0.3.0"),
        standing("go:example.com/b", "1.3.0"),
        standing("go:example.com/c/v2", "2.0.1"),
    ]
    decision = decided(standings, [asking("go:example.com/a", PATCH)], [], group)
    message = "by its path it is v1, and go:example.com/c/v2, which shares its version, is v2"
    assert troubles(decision) == [("example.com/b", Problem.NO_NEXT_VERSION, message)]
    of_v1 = fixed("go:example.com/a", "go:example.com/b")
    assert versions(decided(standings, [asking("go:example.com/a", PATCH)], [], of_v1)) == {
        "example.com/a": "1.3.1",
        "example.com/b": "1.3.1",
    }


OLD: Final = asking("a", MINOR, "feat: one", fresh=False)
NEW: Final = asking("a", PATCH, "fix: two")


def tagged(*found: str) -> Mapping[str, str]:
    return dict.fromkeys(found, "3f2a91c04b" * 4)


@pytest.mark.parametrize(
    ("written", "taken", "intents", "expected"),
    [
        ("1.2.0", (), [NEW], "1.2.1-rc.1"),
        ("1.2.1-rc.1", ("1.2.1-rc.1",), [OLD], "1.3.0-rc.1"),
        # Written and not tagged, it keeps its number; tagged, it is there.
        ("1.3.0-rc.1", (), [OLD], "1.3.0-rc.1"),
        ("1.3.0-rc.1", ("1.3.0-rc.1",), [OLD], None),
        ("1.3.0-rc.1", ("1.3.0-rc.1",), [OLD, NEW], "1.3.0-rc.2"),
        ("1.3.0-rc.9", ("1.3.0-rc.9",), [OLD, NEW], "1.3.0-rc.10"),
        ("1.3.0-rc.1", ("1.3.0-rc.7", "1.3.0-rc.1"), [OLD, NEW], "1.3.0-rc.8"),
        ("1.3.0-rc.4", ("1.3.0-rc.4",), [OLD, asking("a", MAJOR)], "2.0.0-rc.1"),
        # Another label counts on its own.
        ("1.3.0-beta.3", ("1.3.0-beta.3",), [OLD], "1.3.0-rc.1"),
        # What was chosen is the stable version.
        ("1.2.0", (), [choosing("a", "4.0.0")], "4.0.0-rc.1"),
        ("4.0.0-rc.1", ("4.0.0-rc.1",), [choosing("a", "4.0.0")], "4.0.0-rc.2"),
        ("1.2.0", (), [], None),
    ],
)
def test_prereleases_are_counted_for_each_version_that_they_lead_to(
    written: str, taken: Sequence[str], intents: Sequence[VersionIntent], expected: str | None
) -> None:
    one = standing("a", written, "1.2.0", taken=tagged(*taken), label="rc")
    assert versions(decided([one], intents)).get("a") == expected


@pytest.mark.parametrize(
    ("name", "written", "expected"),
    [
        ("npm:a", "3.0.0", "3.0.0-rc.1"),
        ("npm:a", "0.0.0", "0.1.0-rc.1"),
        ("pypi:a", "0.1", "0.1rc1"),
        ("maven:g:a", "1.0.0-SNAPSHOT", "1.0.0-rc.1"),
    ],
)
def test_a_first_release_may_be_a_prerelease(name: str, written: str, expected: str) -> None:
    one = standing(name, written, "", label="rc")
    (bump,) = decided([one], [asking(name, PATCH)]).bumps
    assert bump.new == expected


def test_a_prerelease_may_be_above_a_stable_version_that_is_written_and_not_released() -> None:
    one = standing("a", "1.3.0", "1.2.0", label="rc")
    assert versions(decided([one], [asking("a", MAJOR)])) == {"a": "2.0.0-rc.1"}


def test_what_holds_the_place_of_a_version_gives_way_to_its_prerelease() -> None:
    """Maven sorts 1.3.0-SNAPSHOT behind 1.3.0-rc.1."""
    one = standing("maven:g:a", "1.3.0-SNAPSHOT", "1.2.0", label="rc")
    assert versions(decided([one], [asking("maven:g:a", PATCH)])) == {"g:a": "1.3.0-rc.1"}


def test_what_a_build_computes_from_the_last_prerelease_leads_to_the_next_one() -> None:
    written = "1.3.0rc2.dev1+g1a2b3c4d5"
    one = standing("pypi:a", written, "1.2.0", taken=tagged("1.3.0rc1"), label="rc")
    assert versions(decided([one], [asking("pypi:a", MINOR, fresh=True)])) == {"a": "1.3.0rc2"}


@pytest.mark.parametrize(("name", "written"), [("pypi:a", "1.3.0.dev1"), ("npm:a", "1.3.0-dev.1")])
def test_a_tagged_prerelease_leads_to_its_stable_version_whatever_it_is_called(
    name: str, written: str
) -> None:
    """Without a tag, the same version may only hold a place."""
    one = standing(name, written, "1.2.0")
    assert versions(decided([one])) == {}
    assert versions(decided([replace(one, taken=tagged(written))])) == {"a": "1.3.0"}


@pytest.mark.parametrize(
    ("written", "label", "message"),
    [
        ("2.0.0", "rc", "2.0.0-rc.1 is lower than 2.0.0, which is written"),
        ("1.3.0-rc.3", "beta", "1.3.0-beta.1 is lower than 1.3.0-rc.3, which is written"),
    ],
)
def test_no_prerelease_goes_below_what_is_written(written: str, label: str, message: str) -> None:
    decision = decided([standing("a", written, "1.2.0", label=label)], [OLD])
    assert troubles(decision) == [("a", Problem.NO_NEXT_VERSION, message)]


def test_a_prerelease_of_what_another_branch_has_released_is_refused() -> None:
    """As where main was released and not merged back."""
    taken = tagged("1.3.0", "1.3.0-rc.2")
    one = standing("a", "1.3.0-rc.2", "1.2.0", taken=taken, label="rc")
    assert decided([one], [OLD]) == Decision()
    decision = decided([one], [OLD, NEW])
    message = (
        "1.3.0 is tagged already, on commit 3f2a91c04, which is not in the history of this one"
    )
    assert troubles(decision) == [("a", Problem.TAGGED_ELSEWHERE, message)]
    assert decision.troubles[0].hint.startswith("2.0.0-rc.1 (major) would be free.")


def test_packages_that_share_a_version_share_its_number() -> None:
    """And its label: one version is not stable for some of them."""
    members = [
        standing("npm:a", "1.3.0-rc.1", "1.2.0", taken=tagged("1.3.0-rc.1"), label="rc"),
        standing("pypi:b", "1.3.0rc1", "1.2.0", taken=tagged("1.3.0rc1"), label="rc"),
        standing("npm:new", "0.0.0", "", label="rc"),
    ]
    group = fixed("npm:a", "pypi:b", "npm:new")
    assert versions(decided(members, [OLD, NEW], [], group)) == {
        "a": "1.3.0-rc.2",
        "b": "1.3.0rc2",
        "new": "1.3.0-rc.2",
    }
    mixed = decided([*members[:2], replace(members[2], label="")], [OLD, NEW], [], group)
    message = "npm:new shares its version, and their labels are 'rc' and ''"
    assert ("a", Problem.NO_NEXT_VERSION, message) in troubles(mixed)


@pytest.mark.parametrize(
    ("written", "requirement", "is_refused"),
    [
        ("1.2.0", "==1.2.0", True),
        ("1.2.0", "<1.3.0a1", True),
        ("1.2.0", ">=1.2,<2", False),
        # The prerelease is there, and nothing new for it.
        ("1.3.0a1", "==1.2.0", True),
        ("1.3.0a1", ">=1.3.0a1", True),
        ("1.3.0a1", ">=1.2,<2", False),
    ],
)
def test_a_stable_version_requires_no_prerelease(
    written: str, requirement: str, *, is_refused: bool
) -> None:
    """Neither a new one nor one that was there: publishing would pin what stands in the tree."""
    admits = SpecifierSet(requirement, prereleases=True).contains
    asks = replace(edge("pypi:b", "pypi:a", requirement), admits=admits)
    taken = tagged("1.3.0a1") if written == "1.3.0a1" else {}
    decision = decided(
        [
            standing("pypi:a", written, "1.2.0", taken=taken, label="alpha"),
            standing("pypi:b", "1.0.0"),
        ],
        [asking("pypi:a", MINOR, fresh=not taken), asking("pypi:b", PATCH)],
        [asks],
    )
    message = "it is stable, and would have to require pypi:a 1.3.0a1"
    refused = [("b", Problem.STABLE_NEEDS_PRERELEASE, message)]
    assert troubles(decision) == (refused if is_refused else [])


def test_prereleases_chosen_by_hand_may_require_each_other() -> None:
    decision = decided(
        [standing("a", "1.2.0"), standing("b", "1.0.0")],
        [asking("a", exact="2.0.0-rc.1"), asking("b", exact="1.1.0-rc.1")],
        [replace(edge("b", "a", "^1.2.0"), admits=lambda _: False)],
    )
    assert versions(decision) == {"a": "2.0.0-rc.1", "b": "1.1.0-rc.1"}


# A workspace of generated packages.
World = tuple[list[Standing], list[VersionIntent], list[Edge], Rules]
_KINDS: Final = ("==", "~", "^", ">=")


def numbers_of(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def requirement(kind: str, version: str) -> Callable[[str], bool]:
    low = numbers_of(version)
    alike = {"==": 3, "~": 2, "^": 1, ">=": 0}[kind]
    return lambda new: numbers_of(new) >= low and numbers_of(new)[:alike] == low[:alike]


def make_world(seed: int, *, most: int) -> World:
    """Versions from 1.0.0, of three numbers, all of them released."""
    drawn = random.Random(seed)
    names = [
        PackageId(drawn.choice(("npm", "pypi", "cargo", "maven")), f"p{number}")
        for number in range(drawn.randint(1, most))
    ]
    standings = []
    for name in names:
        version = ".".join(str(drawn.randint(low, 2)) for low in (1, 0, 0))
        standings.append(Standing(package=name, written=version, released=version))
    released = {each.package: each.released for each in standings}
    intents = [
        VersionIntent(
            package=drawn.choice(names),
            level=drawn.choice(tuple(Level)),
            source=Source(title=str(n)),
        )
        for n in range(drawn.randint(0, 3))
    ]
    edges = []
    for dependent, on in itertools.permutations(names, 2):
        if drawn.random() < 0.3:
            kind = drawn.choice(_KINDS)
            found = Edge(dependent=dependent, on=on, requirement=f"{kind}{released[on]}")
            edges.append(replace(found, admits=requirement(kind, released[on])))
        elif drawn.random() < 0.1:
            carry: Carry = drawn.choice(("patch", "same", "none", ""))
            edges.append(Edge(dependent=dependent, on=on, kind=EXTRA, carry=carry))
    groups = tuple(
        VersionGroup(
            name=f"g{number}",
            packages=tuple(drawn.sample(names, drawn.randint(1, len(names)))),
            kind=drawn.choice(("fixed", "linked")),
        )
        for number in range(drawn.choice((0, 0, 1, 2)))
    )
    propagate: Propagate = drawn.choice(("needed", "needed", "needed", "always", "never"))
    return standings, intents, edges, Rules(propagate=propagate, groups=groups)


class Judge:
    """Says whether levels serve everybody, by the rules alone; 0 is a package that rests."""

    def __init__(self, world: World) -> None:
        standings, self.intents, self.edges, self.rules = world
        self.released = {each.package: numbers_of(each.released) for each in standings}
        self.base = dict(self.released)
        for _ in self.released:  # as often as groups may overlap in a row
            for group in self.rules.groups:
                highest = max(self.base[package] for package in group.packages)
                self.base |= dict.fromkeys(group.packages, highest)

    def version(self, package: PackageId, level: int) -> str:
        major, minor, patch = self.base[package]
        new = {1: (major, minor, patch + 1), 2: (major, minor + 1, 0), 3: (major + 1, 0, 0)}[level]
        return ".".join(map(str, new))

    def demands(self, package: PackageId, levels: Mapping[PackageId, int]) -> int:
        """The highest level that anybody asks of the package, if the others have theirs."""
        asked = [0, *(each.level for each in self.intents if each.package == package)]
        for each in self.edges:
            level = levels[each.on]
            if each.dependent != package or not level or self.rules.propagate == "never":
                continue
            if each.kind is EXTRA:
                asked.append({"patch": 1, "same": level, "none": 0, "": 0}[each.carry])
            else:
                excluded = not each.admits(self.version(each.on, level))
                asked.append(int(excluded or self.rules.propagate == "always"))
        for group in self.rules.groups:
            others = [levels[each] for each in group.packages if each != package]
            if package in group.packages and (group.kind == "fixed" or levels[package]):
                asked += others
        return max(asked)

    def serves(self, levels: Mapping[PackageId, int]) -> bool:
        return all(self.demands(package, levels) <= level for package, level in levels.items())

    def least(self) -> dict[PackageId, int]:
        packages = list(self.released)
        everything = itertools.product(range(4), repeat=len(packages))
        serving = [
            levels
            for found in everything
            if self.serves(levels := dict(zip(packages, found, strict=True)))
        ]
        return {package: min(levels[package] for levels in serving) for package in packages}


def levels_of(world: World, decision: Decision) -> dict[PackageId, int]:
    bumped = {bump.package: int(bump.level) for bump in decision.bumps}
    return {each.package: bumped.get(each.package, 0) for each in world[0]}


@pytest.mark.parametrize(("most", "seeds"), [(4, 150), (6, 25)])
def test_the_decision_is_the_least_that_serves_everybody(most: int, seeds: int) -> None:
    """Of all levels of all packages, by trying each."""
    bumped = 0
    for seed in range(seeds):
        world = make_world(seed, most=most)
        judge, decision = Judge(world), decide(*world)
        levels = levels_of(world, decision)
        assert judge.serves(levels), seed
        assert levels == judge.least(), seed
        for bump in decision.bumps:
            assert bump.new == judge.version(bump.package, bump.level), seed
            assert bump.old == ".".join(map(str, judge.released[bump.package]))
        bumped += len(decision.bumps)
    assert bumped > seeds


def test_no_bump_can_be_taken_away() -> None:
    """Each is asked for by an intent, an edge or a group, and says so in its reasons."""
    for seed in range(200):
        world = make_world(seed, most=8)
        judge, decision = Judge(world), decide(*world)
        levels = levels_of(world, decision)
        for bump in decision.bumps:
            assert judge.demands(bump.package, {**levels, bump.package: 0}) > 0 or any(
                reason.group for reason in bump.reasons
            )
            assert max(reason.level for reason in bump.reasons) == bump.level
            for reason in bump.reasons:
                kinds = (reason.source, reason.edge, reason.group, reason.rule or None)
                assert sum(kind is not None for kind in kinds) == 1
                if reason.edge:
                    assert reason.edge.dependent == bump.package
                    assert levels[reason.edge.on]


def test_the_order_of_what_is_given_decides_nothing() -> None:
    for seed in range(100):
        standings, intents, edges, rules = make_world(seed, most=8)
        first = decide(standings, intents, edges, rules)
        shuffled = random.Random(seed)
        for _ in range(3):
            for given in (standings, intents, edges):
                shuffled.shuffle(given)
            groups = tuple(
                replace(group, packages=tuple(shuffled.sample(group.packages, len(group.packages))))
                for group in shuffled.sample(rules.groups, len(rules.groups))
            )
            again = decide(standings, intents, edges, replace(rules, groups=groups))
            assert again == first, seed


def test_what_is_decided_is_decided_again_once_it_is_written() -> None:
    """Until it is released: the intents are used, the versions stand in the manifests."""
    for seed in range(200):
        standings, intents, edges, rules = make_world(seed, most=8)
        first = {each.package: each.new for each in decide(standings, intents, edges, rules).bumps}
        written = [
            replace(each, written=first.get(each.package, each.written)) for each in standings
        ]
        again = {each.package: each.new for each in decide(written, [], edges, rules).bumps}
        assert again == first, seed


def test_prereleases_lead_to_what_would_be_released_without_them() -> None:
    """Each bump of a generated workspace is the first prerelease of its stable version; written,
    it is decided again; tagged, nothing is left; and something new makes the second of those that
    share a version with it, or exclude it.
    """

    def admits_target(admits: Callable[[str], bool], version: str) -> bool:
        return admits(re.split("-?rc", version)[0])

    for seed in range(200):
        standings, intents, edges, rules = make_world(seed, most=8)
        stable = {it.package: it.new for it in decide(standings, intents, edges, rules).bumps}
        labelled = [replace(each, label="rc") for each in standings]
        edges = [replace(each, admits=partial(admits_target, each.admits)) for each in edges]
        first = {it.package: it.new for it in decide(labelled, intents, edges, rules).bumps}
        assert first == {
            package: numbering_of(package.ecosystem).prerelease(version, "rc", 1)
            for package, version in stable.items()
        }, seed
        written = [replace(it, written=first.get(it.package, it.written)) for it in labelled]
        old = [replace(each, fresh=False) for each in intents]
        again = {it.package: it.new for it in decide(written, old, edges, rules).bumps}
        assert again == first, seed
        there = [replace(each, taken=tagged(each.written)) for each in written]
        assert not decide(there, old, edges, rules).bumps, seed
        for new in old:
            more = decide(there, [*old, replace(new, fresh=True)], edges, rules)
            second = {
                package: numbering_of(package.ecosystem).prerelease(stable[package], "rc", 2)
                for package in (it.package for it in more.bumps)
            }
            assert {it.package: it.new for it in more.bumps} == second, seed
            assert (new.package in second) == bool(new.level), seed
            assert all(each.reasons for each in more.bumps), seed


def make_large_world(packages: int) -> tuple[World, list[str]]:
    """Ten intents for each package, ten edges, groups of all sizes, a cycle that all others need;
    and what was asked of edges.
    """
    drawn = random.Random(packages)
    names = [PackageId("npm", f"p{number:05}") for number in range(packages)]
    asked: list[str] = []

    def admits(version: str) -> bool:
        asked.append(version)
        return False

    intents = [
        VersionIntent(
            package=drawn.choice(names), level=drawn.choice(tuple(Level)), source=Source(title="")
        )
        for _ in range(10 * packages)
    ]
    edges = [
        Edge(dependent=dependent, on=on, admits=admits)
        for number, dependent in enumerate(names)
        for on in {names[max(0, number - 1)], *drawn.choices(names[: number + 1], k=9)}
    ]
    edges += [Edge(dependent=names[0], on=name, admits=admits) for name in names[1:4]]
    groups = [
        VersionGroup(name="all of a half", packages=tuple(names[::2])),
        VersionGroup(name="all of a third", packages=tuple(names[::3]), kind="linked"),
        *(
            VersionGroup(name=name.name, packages=(name, drawn.choice(names)), kind="linked")
            for name in names[1::8]
        ),
    ]
    standings = [Standing(package=name, written="1.0.0", released="1.0.0") for name in names]
    return (standings, intents, edges, Rules(groups=tuple(groups))), asked


def count_calls(world: World) -> int:
    calls = 0

    def count(_frame: object, event: str, _arg: object) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    sys.setprofile(count)
    try:
        decide(*world)
    finally:
        sys.setprofile(None)
    return calls


def test_steps_grow_with_the_workspace_and_no_faster() -> None:
    """2,000 packages with 20,000 intents; four times as many take five times the calls at most."""
    small, _ = make_large_world(500)
    large, asked = make_large_world(2_000)
    assert count_calls(large) < 5 * count_calls(small)
    assert len(large[2]) < len(asked) <= 3 * len(large[2])


def test_numbers_of_generated_versions_are_those_of_the_numbering() -> None:
    """So that the judge above judges by what ecosystems write."""
    world = make_world(0, most=8)
    for each in world[0]:
        numbering = numbering_of(each.package.ecosystem)
        assert numbering.read(each.written).numbers == numbers_of(each.written)
