"""What a level does to a version, as uv and npm do it, and how each ecosystem spells it."""

from __future__ import annotations

import json
import random
import subprocess
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from packaging.version import Version

from integration.tools import require_tool
from releasekit.decided import Level
from releasekit.text.numbering import numbering_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from releasekit.decided import Zero

LEVELS = (Level.PATCH, Level.MINOR, Level.MAJOR)
ECOSYSTEMS = ("pypi", "npm", "cargo", "go", "maven")


def bumped(ecosystem: str, version: str, zero: Zero = "shift") -> str:
    numbering = numbering_of(ecosystem)
    return " ".join(numbering.bump(version, level, zero) for level in LEVELS)


@pytest.mark.parametrize("ecosystem", ECOSYSTEMS)
@pytest.mark.parametrize(
    ("version", "zero", "expected"),
    [
        ("1.2.3", "shift", "1.2.4 1.3.0 2.0.0"),
        ("1.2.3", "minor", "1.2.4 1.3.0 2.0.0"),
        ("1.2.3", "literal", "1.2.4 1.3.0 2.0.0"),
        ("0.4.2", "shift", "0.4.3 0.4.3 0.5.0"),
        ("0.4.2", "minor", "0.4.3 0.5.0 0.5.0"),
        ("0.4.2", "literal", "0.4.3 0.5.0 1.0.0"),
        ("0.0.3", "shift", "0.0.4 0.0.4 0.0.4"),
        ("0.0.3", "minor", "0.0.4 0.1.0 0.1.0"),
        ("0.0.3", "literal", "0.0.4 0.1.0 1.0.0"),
        ("0.0.0", "shift", "0.0.1 0.0.1 0.0.1"),
        ("1899.2.3", "shift", "1899.2.4 1899.3.0 1900.0.0"),
    ],
)
def test_a_level_raises_a_number_and_those_behind_it_begin_again(
    ecosystem: str, version: str, zero: Zero, expected: str
) -> None:
    assert bumped(ecosystem, version, zero) == expected


@pytest.mark.parametrize(
    ("ecosystem", "version", "expected"),
    [
        ("pypi", "1.2", "1.2.1 1.3 2.0"),
        ("pypi", "1", "1.0.1 1.1 2"),
        ("pypi", "0.4", "0.4.1 0.4.1 0.5"),
        ("pypi", "1.2.3.4", "1.2.4.0 1.3.0.0 2.0.0.0"),
        ("pypi", "1!1.2.0", "1!1.2.1 1!1.3.0 1!2.0.0"),
        ("pypi", "1.2.3.post1", "1.2.4 1.3.0 2.0.0"),
        ("npm", "1.2.3+build.5", "1.2.4 1.3.0 2.0.0"),
        ("go", "v1.2.3", "1.2.4 1.3.0 2.0.0"),
        ("maven", "1.2", "1.2.1 1.3 2.0"),
        ("maven", "33.4.0-jre", "33.4.1-jre 33.5.0-jre 34.0.0-jre"),
        ("maven", "5.6.2.Final", "5.6.3.Final 5.7.0.Final 6.0.0.Final"),
        ("maven", "1.2.3-spark3.5", "1.2.4-spark3.5 1.3.0-spark3.5 2.0.0-spark3.5"),
        ("maven", "1.2.3.SP1", "1.2.4 1.3.0 2.0.0"),
        ("maven", "1.2.3-1", "1.2.4 1.3.0 2.0.0"),
    ],
)
def test_the_next_version_is_spelled_like_the_one_before(
    ecosystem: str, version: str, expected: str
) -> None:
    assert bumped(ecosystem, version) == expected


@pytest.mark.parametrize(
    ("ecosystem", "version", "stable", "is_placeholder"),
    [
        ("pypi", "1.3.0rc2", "1.3.0", False),
        ("pypi", "1.3a1", "1.3", False),
        ("pypi", "1!1.3.0-beta.1", "1!1.3.0", False),
        ("pypi", "1.3.0.dev0", "1.3.0", True),
        ("pypi", "1.3.0rc1.dev4", "1.3.0", True),
        ("pypi", "1.3.0.dev4+g1a2b3c4d5", "1.3.0", True),
        ("npm", "1.3.0-rc.2", "1.3.0", False),
        ("cargo", "1.3.0-dev", "1.3.0", True),
        ("npm", "1.3.0-dev.7+sha.5", "1.3.0", True),
        ("go", "1.3.0-rc.2", "1.3.0", False),
        ("maven", "1.3.0-SNAPSHOT", "1.3.0", True),
        ("maven", "1.3.0-jre-SNAPSHOT", "1.3.0-jre", True),
        ("maven", "1.3.0-RC1", "1.3.0", False),
        ("maven", "1.3.0.CR2", "1.3.0", False),
        ("maven", "1.3.0-rc-1-SNAPSHOT", "1.3.0", True),
        ("maven", "1.3.0-M4", "1.3.0", False),
        ("maven", "1.3.0-alpha.2-jre", "1.3.0-jre", False),
    ],
)
def test_a_prerelease_leads_to_what_it_is_one_of(
    ecosystem: str, version: str, stable: str, is_placeholder: bool
) -> None:
    numbering = numbering_of(ecosystem)
    parts = numbering.read(version)
    assert (parts.is_prerelease, parts.is_placeholder) == (True, is_placeholder)
    assert numbering.bump(version, Level.NONE, "shift") == stable
    major = numbering.bump(stable, Level.MAJOR, "shift")
    assert bumped(ecosystem, version) == f"{stable} {stable} {major}"


@pytest.mark.parametrize(
    ("ecosystem", "version"),
    [
        ("pypi", "v1.2"),
        ("pypi", "1.0-1"),
        ("pypi", "1.2.3.post1"),
        ("npm", "1.2.3+build.5"),
        ("maven", "5.6.2.Final"),
        ("maven", "33.4.0-jre"),
        # Words, of which these are parts.
        ("maven", "1.2-march1"),
        ("maven", "1.2-b"),
        ("maven", "1.2.arc1"),
        ("maven", "2026.11.0"),
    ],
)
def test_without_a_level_a_stable_version_stays_as_it_is_written(
    ecosystem: str, version: str
) -> None:
    numbering = numbering_of(ecosystem)
    parts = numbering.read(version)
    assert (parts.is_prerelease, parts.is_placeholder) == (False, False)
    assert numbering.bump(version, Level.NONE, "shift") == version


@pytest.mark.parametrize("ecosystem", ECOSYSTEMS)
@pytest.mark.parametrize("level", LEVELS)
def test_no_level_leads_on_from_a_date(ecosystem: str, level: Level) -> None:
    with pytest.raises(ValueError, match=r"^1900\.1\.0 is a date"):
        numbering_of(ecosystem).bump("1900.1.0", level, "literal")


@pytest.mark.parametrize(
    ("ecosystem", "version", "canonical"),
    [
        ("pypi", "v1.0-RC.1", "1.0rc1"),
        ("pypi", "1.0-1", "1.0.post1"),
        ("npm", "1.0.0-rc.1+build", "1.0.0-rc.1+build"),
        ("go", "v2.0.0", "2.0.0"),
        ("maven", "1.0.0-RC1", "1.0.0-RC1"),
        ("unknown", "1.0.0", "1.0.0"),
    ],
)
def test_a_version_that_is_chosen_gets_its_canonical_spelling(
    ecosystem: str, version: str, canonical: str
) -> None:
    assert numbering_of(ecosystem).check(version) == canonical


@pytest.mark.parametrize(
    ("ecosystem", "text"),
    [
        *((ecosystem, text) for ecosystem in ECOSYSTEMS for text in ("", "x", "1.0,2.0")),
        *((ecosystem, "1." * 50_000 + "0") for ecosystem in ECOSYSTEMS),
        *((ecosystem, "9" * 50_000 + ".0.0") for ecosystem in ECOSYSTEMS),
        *((ecosystem, "1.0.0 1.0.1") for ecosystem in ECOSYSTEMS),
        *(("npm", text) for text in ("1.2", "01.2.3", "1.2.3-01", "1.2.3-a..b", "v1.2.3")),
        ("cargo", "1.2.3+"),
        ("go", "1.2.3+incompatible"),
        ("pypi", "1.0-jre"),
        ("maven", "HEAD-SNAPSHOT"),
        ("maven", "${revision}"),
        ("maven", "1.0/../../x"),
    ],
)
def test_what_is_no_version_is_refused(ecosystem: str, text: str) -> None:
    numbering = numbering_of(ecosystem)
    for ask in (numbering.read, numbering.check, numbering.order):
        with pytest.raises(ValueError, match="is not a version") as caught:
            ask(text)
        assert len(str(caught.value)) < 600


@pytest.mark.parametrize(
    ("ecosystem", "version", "numbers", "expected"),
    [
        ("pypi", "1.2", (1, 3, 0), "1.3"),
        ("pypi", "1.2", (1, 3, 1), "1.3.1"),
        ("pypi", "1!1.2.0", (2,), "1!2.0.0"),
        ("npm", "1.2.3", (1, 3), "1.3.0"),
        ("npm", "1.2.3", (1, 3, 0, 0), "1.3.0"),
        ("maven", "1.2.3-jre", (1, 3), "1.3.0-jre"),
    ],
)
def test_a_shared_version_is_spelled_as_each_ecosystem_does(
    ecosystem: str, version: str, numbers: Sequence[int], expected: str
) -> None:
    assert numbering_of(ecosystem).respell(version, numbers) == expected


def test_a_shared_version_with_a_fourth_number_is_none_of_npm() -> None:
    with pytest.raises(ValueError, match=r"'1\.2\.3\.4' is not a version"):
        numbering_of("npm").respell("1.2.2", (1, 2, 3, 4))


def test_python_versions_sort_as_packaging_sorts_them() -> None:
    """But for local versions, which no index takes: they count as equal."""
    spelled = random.Random(1)
    versions = sorted({python_version(spelled) for _ in range(2_000)}, key=Version)
    assert len(versions) > 1_000
    order = numbering_of("pypi").order
    for earlier, later in pairwise(versions):
        same = Version(earlier) == Version(later)
        assert order(earlier) == order(later) if same else order(earlier) < order(later), (
            earlier,
            later,
        )


@pytest.mark.parametrize(
    ("ecosystem", "stable", "label", "first"),
    [
        ("npm", "1.3.0", "rc", "1.3.0-rc.1"),
        ("cargo", "1.3.0", "next", "1.3.0-next.1"),
        ("go", "1.3.0", "beta", "1.3.0-beta.1"),
        ("pypi", "1.3.0", "rc", "1.3.0rc1"),
        ("pypi", "1!1.3", "beta", "1!1.3b1"),
        ("pypi", "1.3", "a", "1.3a1"),
        ("pypi", "1.3", "dev", "1.3.dev1"),
        ("maven", "1.3.0", "rc", "1.3.0-rc.1"),
        ("maven", "33.5.0-jre", "milestone", "33.5.0-milestone.1-jre"),
    ],
)
def test_prereleases_of_a_version_are_numbered(
    ecosystem: str, stable: str, label: str, first: str
) -> None:
    numbering = numbering_of(ecosystem)
    spelled = [numbering.prerelease(stable, label, number) for number in (0, 1, 2, 9, 10)]
    assert spelled[1] == first
    assert sorted([stable, *spelled], key=numbering.order) == [*spelled, stable]
    found = [numbering.find_number(each, label, stable) for each in spelled]
    # What development begins with holds the place of a version.
    assert found == [-1 if label == "dev" else 0, 1, 2, 9, 10]
    assert numbering.find_number(stable, label, stable) == -1
    for each in spelled:
        assert numbering.read(each).is_prerelease
        assert numbering.bump(each, Level.NONE, "shift") == stable


def test_build_metadata_does_not_hide_the_number_of_a_prerelease() -> None:
    assert numbering_of("cargo").find_number("1.3.0-rc.2+build.4", "rc", "1.3.0") == 2


def python_version(random: random.Random) -> str:
    """Any that a project may have, spelled in any way."""
    separator = random.choice(("", ".", "-", "_"))
    return "".join(
        (
            random.choice(("", "", "", "v")),
            random.choice(("", "", "", "1!")),
            ".".join(str(random.choice((0, 1, 2, 9, 10))) for _ in range(random.randint(1, 4))),
            random.choice(("", "", f"{separator}{random.choice(('a', 'beta', 'RC', 'c'))}1")),
            random.choice(("", "", ".post1", "-2", ".rev3", ".post10")),
            random.choice(("", "", f"{separator}dev{random.randint(0, 11)}")),
        )
    )


def test_levels_do_to_python_versions_what_uv_does(tmp_path: Path) -> None:
    """uv never shifts below 1.0.0. It counts a prerelease as released, while here the next version
    of 1.3.0rc1 is 1.3.0.
    """
    uv = require_tool("uv")
    spelled = random.Random(2)
    versions = [python_version(spelled) for _ in range(60)]
    stable = [each for each in versions if not Version(each).is_prerelease]
    assert len(stable) > 20
    project = tmp_path / "pyproject.toml"
    for version in stable:
        for level in LEVELS:
            project.write_text(f'[project]\nname = "acme"\nversion = "{version}"\n')
            argv = [str(uv), "version", "--frozen", "--dry-run", "--short", "--bump", str(level)]
            done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=True)
            ours = numbering_of("pypi").bump(version, level, "literal")
            assert ours == done.stdout.strip(), (version, level)


# Reads versions, and prints what each level makes of each, by the semver that npm runs with.
_INCREMENT = """
const { inc } = require(require.resolve("semver", { paths: [process.argv[1]] }));
const versions = JSON.parse(require("fs").readFileSync(0, "utf8"));
const levels = ["patch", "minor", "major"];
console.log(JSON.stringify(versions.map((version) => levels.map((level) => inc(version, level)))));
"""


@pytest.mark.parametrize("ecosystem", ["npm", "cargo", "go"])
def test_levels_do_to_semantic_versions_what_npm_does(ecosystem: str) -> None:
    spelled = random.Random(3)
    versions = [
        ".".join(str(spelled.choice((0, 0, 1, 9, 10))) for _ in range(3))
        + spelled.choice(("", "-rc.1", "-alpha", "-0.x.7", "-dev.3"))
        + spelled.choice(("", "" if ecosystem == "go" else "+build.5"))
        for _ in range(400)
    ]
    argv = [str(require_tool("node")), "-e", _INCREMENT, str(require_tool("npm").resolve())]
    done = subprocess.run(
        argv, input=json.dumps(versions), capture_output=True, text=True, check=True
    )
    ours = [bumped(ecosystem, version, "literal").split() for version in versions]
    assert ours == json.loads(done.stdout)
