"""Requirements as the semver crate decides them, and R24: nothing but versions of path dependencies
changes, and only where they are needed.
"""

from __future__ import annotations

import pytest

from releasekit.ecosystems.cargo.requirements import Requirement, normalise_requirement, pin
from releasekit.errors import PlanError
from releasekit.text.toml_text import parse_toml

VERSIONS = {"core": "1.2.3", "text": "0.4.0", "web": "2.0.0-rc.1"}
PACKAGE = '[package]\nname = "web"\nversion = "2.0.0-rc.1"\n'

# What stands there, after auto, after exact. None: as it stands.
CASES: list[tuple[str, str | None, str | None]] = [
    (
        '[dependencies]\ncore = { path = "../core" } # ours\n',
        '[dependencies]\ncore = { version = "1.2.3", path = "../core" } # ours\n',
        '[dependencies]\ncore = { version = "=1.2.3", path = "../core" } # ours\n',
    ),
    (
        "[dependencies]\n'core'={optional=true,path='../core'}",
        "[dependencies]\n'core'={optional=true,version = \"1.2.3\", path='../core'}",
        "[dependencies]\n'core'={optional=true,version = \"=1.2.3\", path='../core'}",
    ),
    (
        '[dependencies.core]\n  path = "../core"\r\n',
        '[dependencies.core]\n  version = "1.2.3"\r\n  path = "../core"\r\n',
        '[dependencies.core]\n  version = "=1.2.3"\r\n  path = "../core"\r\n',
    ),
    (
        '[dependencies]\ncore.path = "../core"\ncore.optional = true\n',
        '[dependencies]\ncore.version = "1.2.3"\ncore.path = "../core"\ncore.optional = true\n',
        '[dependencies]\ncore.version = "=1.2.3"\ncore.path = "../core"\ncore.optional = true\n',
    ),
    (
        '[dependencies]\n  "c" . "path" = "c"\n"c".package="core"',
        '[dependencies]\n  "c" . version = "1.2.3"\n  "c" . "path" = "c"\n"c".package="core"',
        '[dependencies]\n  "c" . version = "=1.2.3"\n  "c" . "path" = "c"\n"c".package="core"',
    ),
    (
        '[dependencies]\ncore = { path = "../core", version = "1.2" }\n',
        None,
        '[dependencies]\ncore = { path = "../core", version = "=1.2.3" }\n',
    ),
    (
        "[target.x.dependencies]\nc = { path = 'c', package = 'core' }\n",
        "[target.x.dependencies]\nc = { version = \"1.2.3\", path = 'c', package = 'core' }\n",
        "[target.x.dependencies]\nc = { version = \"=1.2.3\", path = 'c', package = 'core' }\n",
    ),
    ('[dev-dependencies]\ncore = { path = "../core" }\n', None, None),
    ('[dependencies]\nother = { path = "../core" }\ncore = "1"\n', None, None),
    ('[dependencies]\nweb = { path = "." }\n', None, None),
    ('[dependencies]\ncore = { workspace = true }\n# path = "x"\n', None, None),
    ('[workspace.dependencies]\ntext = { path = "text" }\n', None, None),
    (
        '[workspace.dependencies]\ncore = { path = "core" }\n',
        '[workspace.dependencies]\ncore = { version = "1.2.3", path = "core" }\n',
        '[workspace.dependencies]\ncore = { version = "=1.2.3", path = "core" }\n',
    ),
    # An inline table of several lines, as TOML 1.1 has it (R66).
    (
        '[dependencies]\ncore = {\n  # { x,\n  path = "../core", # here\n}\n',
        '[dependencies]\ncore = {\n  # { x,\n  version = "1.2.3", path = "../core", # here\n}\n',
        '[dependencies]\ncore = {\n  # { x,\n  version = "=1.2.3", path = "../core", # here\n}\n',
    ),
    (
        '[dependencies]\ncore = {\n  path = "../core",\n  version = "1.2",\n}\n',
        None,
        '[dependencies]\ncore = {\n  path = "../core",\n  version = "=1.2.3",\n}\n',
    ),
]


@pytest.mark.parametrize(("text", "auto", "exact"), CASES)
def test_versions_are_put_where_they_are_needed(
    text: str, auto: str | None, exact: str | None
) -> None:
    before = PACKAGE + text
    for mode, wanted in (("auto", auto), ("exact", exact), ("none", None)):
        after = pin(before, VERSIONS, mode, shared={"core"})  # type: ignore[arg-type]
        assert after == PACKAGE + (text if wanted is None else wanted)
        assert pin(after, VERSIONS, mode, shared={"core"}) == after  # type: ignore[arg-type]


def test_byte_order_marks_line_ends_and_odd_strings_are_kept() -> None:
    text = (
        '\ufeff[package]\r\nname = "web"\r\ndescription = """path = "no"\r\n"""\r\n'
        "[dependencies]\r\ncore = { path = \"../core\" }\r\ntext = { path = '../text' }"
    )
    after = pin(text, VERSIONS)
    assert after.replace('version = "1.2.3", ', "").replace('version = "0.4.0", ', "") == text
    assert parse_toml(after)["dependencies"]["text"] == {"version": "0.4.0", "path": "../text"}


@pytest.mark.parametrize("mode", ["auto", "exact", "none"])
@pytest.mark.parametrize("table", ["dependencies", "dev-dependencies", "workspace.dependencies"])
def test_a_requirement_that_excludes_the_planned_version_is_refused(table: str, mode: str) -> None:
    text = f'{PACKAGE}[{table}]\ncore = {{ path = "../core", version = "2" }}\n'
    with pytest.raises(PlanError) as caught:
        pin(text, VERSIONS, mode)  # type: ignore[arg-type]
    assert 'requires core "2", but the workspace has core 1.2.3' in str(caught.value)


def test_a_requirement_that_binds_nobody_is_left_alone() -> None:
    text = f'{PACKAGE}[workspace.dependencies]\ncore = {{ path = "../core", version = "2" }}\n'
    assert pin(text, VERSIONS, binds=lambda owner, _: owner != "web") == text


def test_messages_about_a_workspace_say_so() -> None:
    text = '[workspace.dependencies]\ncore = { path = "core", version = "one" }\n'
    with pytest.raises(PlanError, match=r"workspace.dependencies.*core.*'one' is not"):
        pin(text, VERSIONS)


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ('core."p\\u0061th"', r"dependencies.core has no version"),
        ('"core, ours".path', r"cargo:web: its dependencies cannot be pinned"),
    ],
)
def test_what_cannot_be_written_is_said(key: str, message: str) -> None:
    text = f'{PACKAGE}[dependencies]\n{key} = "../core"\n'
    with pytest.raises(PlanError, match=message) as caught:
        pin(text, {"core": "1.2.3", "core, ours": "1.2.3"})
    assert "by hand" in caught.value.hint


# https://docs.rs/semver/latest/semver/enum.Op.html
# and https://doc.rust-lang.org/cargo/reference/specifying-dependencies.html
COMPARED = {
    "1.2.3": ("1.2.3 1.2.4 1.9.0", "1.2.2 2.0.0 1.3.0-rc.1 1.2.3-rc.1"),
    "^1.2": ("1.2.0 1.9.9", "1.1.9 2.0.0"),
    "1": ("1.0.0 1.9.9", "0.9.9 2.0.0"),
    "0.2.3": ("0.2.3 0.2.9", "0.2.2 0.3.0"),
    "^0.0.3": ("0.0.3", "0.0.2 0.0.4"),
    "0.0": ("0.0.0 0.0.9", "0.1.0"),
    "0": ("0.0.0 0.9.0", "1.0.0"),
    "~1.2.3": ("1.2.3 1.2.9", "1.2.2 1.3.0"),
    "~1.2": ("1.2.0 1.2.9", "1.3.0"),
    "~1": ("1.0.0 1.9.0", "2.0.0"),
    "=1.2.3": ("1.2.3 1.2.3+build", "1.2.4 1.2.3-rc.1"),
    "=1.2": ("1.2.0 1.2.9", "1.3.0 1.1.0"),
    "= 1": ("1.0.0 1.9.9", "2.0.0"),
    ">1.2.3": ("1.2.4 2.0.0", "1.2.3 1.2.2"),
    ">1.2": ("1.3.0 2.0.0", "1.2.9"),
    ">1": ("2.0.0", "1.9.9"),
    ">=1.2": ("1.2.0 3.0.0", "1.1.9 2.0.0-rc.1"),
    "<1.2": ("1.1.9", "1.2.0 1.2.0-rc.1"),
    "<=1.2": ("1.2.9 1.0.0", "1.3.0"),
    "<=1.2.3": ("1.2.3 1.2.2", "1.2.4"),
    "<=1": ("1.9.9 0.1.0", "2.0.0"),
    "*": ("0.0.0 9.9.9", "1.0.0-rc.1"),
    "1.*": ("1.0.0 1.9.9", "2.0.0"),
    "1.2.x": ("1.2.0 1.2.9", "1.3.0"),
    "1.2.*": ("1.2.0", "1.1.0"),
    ">=1.2, <1.5": ("1.2.0 1.4.9", "1.5.0 1.1.0"),
    ">=1.2.0-rc.1": ("1.2.0-rc.1 1.2.0-rc.2 1.2.0 1.3.0", "1.2.0-beta 1.3.0-rc.1"),
    "1.2.0-rc.1": ("1.2.0-rc.1 1.2.0 1.4.0", "1.2.0-alpha 2.0.0"),
    "=1.0.0-rc.1": ("1.0.0-rc.1", "1.0.0 1.0.0-rc.2"),
    ">1.0.0-alpha, <1.0.0": ("1.0.0-beta", "1.0.0-alpha 1.0.0"),
    "1.2.3+next": ("1.2.3 1.9.0", "1.2.2 2.0.0"),
    # No shortened version holds a prerelease of what it stands for, but with a caret.
    "1.2.0-alpha, <1.2": ("", "1.2.0-beta"),
    "1.2.0-alpha, <=1.2": ("", "1.2.0-beta"),
    "1.2.0-alpha, >=1.2": ("1.2.0 1.3.0", "1.2.0-beta"),
    "1.2.0-alpha, ~1.2": ("1.2.0", "1.2.0-beta"),
    "1.2.0-alpha, =1": ("1.2.0", "1.2.0-beta"),
    "1.2.0-alpha, ^1": ("1.2.0 1.2.0-beta", "1.3.0-beta"),
    "1.2.0-alpha, 1.2": ("1.2.0 1.2.0-beta", "1.1.0"),
    "1.2.0-alpha, >1.1": ("1.2.0 1.2.0-beta", "1.1.9"),
}


@pytest.mark.parametrize("requirement", COMPARED)
def test_what_a_requirement_holds_and_what_not(requirement: str) -> None:
    inside, outside = map(str.split, COMPARED[requirement])
    parsed = Requirement.parse(requirement)
    assert [version for version in inside if not parsed.matches(version)] == []
    assert [version for version in outside if parsed.matches(version)] == []


@pytest.mark.parametrize(
    "text",
    [
        *("one", "1.2.3.4", ">>1", "1,", "", "1.2 || 2", "1.2-rc.1"),
        # Nor does cargo take these: nothing but wildcards comes after one, nor another with a star.
        *("*.1", "1.*.1", ">=1.x.1", "*, <2", "1, *", ", ".join(["1"] * 33)),
    ],
)
def test_what_is_no_requirement(text: str) -> None:
    with pytest.raises(ValueError, match="is not a version requirement"):
        Requirement.parse(text)


@pytest.mark.parametrize(
    ("written", "index"),
    [
        ("1.2", "^1.2"),
        ("^1", "^1"),
        ("= 1.2.3", "=1.2.3"),
        (">=1,<2", ">=1, <2"),
        ("~1", "~1"),
        ("1.*", "1.*"),
        ("*", "*"),
        ("1.0.0-x", "^1.0.0-x"),
        ("1.0.0+next", "^1.0.0"),
    ],
)
def test_the_index_has_requirements_as_cargo_writes_them(written: str, index: str) -> None:
    assert normalise_requirement(written) == index
