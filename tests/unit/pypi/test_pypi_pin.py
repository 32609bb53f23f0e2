from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from releasekit.ecosystems.pypi.manifest import pin

if TYPE_CHECKING:
    from releasekit.config.values import PinMode

VERSIONS = {"acme": "9.0", "acme-core": "1.2.0", "acme-text": "2.0rc1", "project": "3.0"}

MANIFEST = """\
# acme-core, "acme-core"
[build-system]
requires = ["hatchling", 'acme-text']
[project]
name = "Acme"
dependencies = [
    "acme-core",  # "acme-core"
    "Acme_Core[fast, extra] ; python_version < '3.13'",
    "httpx>=0.28", 'acme.text >=2.0b1' ,
]
description = "acme-core"
[project.optional-dependencies]
all = ["acme[web]", "acme-core (>=1) ; os_name == \\"posix\\""]
web = [ "acme-text @ file:///somewhere" ]
[dependency-groups]
dev = ["acme-core"]
[tool.uv.sources]
"acme-core" = { workspace = true }
"""


def test_auto_pins_bare_requirements_and_keeps_the_others() -> None:
    """R24"""
    changed = {
        before: after
        for before, after in zip(
            MANIFEST.splitlines(), pin(MANIFEST, VERSIONS).splitlines(), strict=True
        )
        if before != after
    }
    assert changed == {
        "requires = [\"hatchling\", 'acme-text']": (
            "requires = [\"hatchling\", 'acme-text==2.0rc1']"
        ),
        '    "acme-core",  # "acme-core"': '    "acme-core==1.2.0",  # "acme-core"',
        "    \"Acme_Core[fast, extra] ; python_version < '3.13'\",": (
            "    \"Acme_Core[fast, extra]==1.2.0 ; python_version < '3.13'\","
        ),
    }


def test_exact_pins_all() -> None:
    pinned = tomllib.loads(pin(MANIFEST, VERSIONS, "exact"))
    assert pinned["project"]["dependencies"] == [
        "acme-core==1.2.0",
        "Acme_Core[fast, extra]==1.2.0 ; python_version < '3.13'",
        "httpx>=0.28",
        "acme.text==2.0rc1",
    ]
    assert pinned["project"]["optional-dependencies"] == {
        "all": ["acme[web]", 'acme-core==1.2.0 ; os_name == "posix"'],
        "web": ["acme-text @ file:///somewhere"],
    }
    assert pinned["dependency-groups"] == {"dev": ["acme-core"]}


def test_none_changes_and_refuses_nothing() -> None:
    manifest = MANIFEST.replace(">=2.0b1", ">=7")
    assert pin(manifest, VERSIONS, "none") == manifest


@pytest.mark.parametrize("mode", ["auto", "exact"])
def test_nothing_is_pinned_that_needs_no_pin(mode: PinMode) -> None:
    """R24"""
    manifest = '[project]\nname = "a"\ndependencies = ["acme-core == 1.2.0", "other"]\n'
    assert pin(manifest, VERSIONS, mode) == manifest
    assert pin(MANIFEST, {}, mode) == MANIFEST


@pytest.mark.parametrize("mode", ["auto", "exact"])
def test_a_requirement_on_a_version_the_workspace_lacks_is_left_alone(mode: PinMode) -> None:
    manifest = '[project]\nname = "a"\ndependencies = ["acme-core>=2"]\n'
    assert pin(manifest, VERSIONS, mode) == manifest


@pytest.mark.parametrize(
    ("literal", "expected"),
    [
        ('"acme-core"', '"acme-core==1.2.0"'),
        ("'acme-core'", "'acme-core==1.2.0'"),
        ('"""acme-core"""', '"""acme-core==1.2.0"""'),
        ("'''\nacme-core'''", "'''\nacme-core==1.2.0'''"),
        ('" acme-core "', '" acme-core==1.2.0 "'),
        (
            '"acme-core; os_name == \\"nt\\""',
            '"acme-core==1.2.0; os_name == \\"nt\\""',
        ),
        ('"acme\\u002dcore"', '"acme-core==1.2.0"'),
        ('"acme-core\\t; os_name == \\"n\\""', '"acme-core==1.2.0\\t; os_name == \\"n\\""'),
        ('"acme-core [a , b]"', '"acme-core [a , b]==1.2.0"'),
        ('"acme-core ()"', '"acme-core==1.2.0"'),
    ],
)
def test_every_way_to_write_a_string(literal: str, expected: str) -> None:
    """R24"""
    manifest = f'project = {{ name = "a", dependencies = [{literal}] }}'
    assert pin(manifest, VERSIONS) == f'project = {{ name = "a", dependencies = [{expected}] }}'


def test_a_quoted_table_name_is_no_requirement() -> None:
    manifest = '["project"]\nname = "a"\ndependencies = ["project"]\n["build-system"]\n'
    assert pin(manifest, VERSIONS) == manifest.replace('["project"]\n[', '["project==3.0"]\n[')


def test_a_text_that_is_used_to_look_for_requirements_may_stand_in_the_manifest() -> None:
    manifest = (
        '[project]\nname = "a"\ndescription = "mark-"\ndependencies = ["acme-core", "mark"]\n'
    )
    assert '["acme-core==1.2.0", "mark"]' in pin(manifest, VERSIONS)


names = st.sampled_from(["acme-core", "Acme_Text", "httpx", "acme", "other"])
extras = st.sampled_from(["", "[x]", " [x,y]", "[ x , y ]"])
specifiers = st.sampled_from(["", ">=1", " >=1.0, <3", "(>=1)", "==1.2.0"])
markers = st.sampled_from(["", " ; python_version > '3.8'", ";os_name=='nt'  "])
requirements = st.builds(lambda *parts: "".join(parts), names, extras, specifiers, markers)
quotes = st.sampled_from(['"{}"', '"""{}"""'])
filler = st.sampled_from(
    ["", "# acme-core 'acme-core'\n", '\n# "acme-core', "\n", "  ", "\t# \U0001f600 it's\n\n"]
)


@given(
    st.lists(st.tuples(requirements, quotes, filler), max_size=6),
    st.lists(filler, min_size=3, max_size=3),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["auto", "exact"]),
)
def test_everything_outside_the_requirements_is_kept_to_the_byte(
    declared: list[tuple[str, str, str]],
    between: list[str],
    line_end: str,
    bom: bool,
    last_line_end: bool,
    mode: PinMode,
) -> None:
    """R24: comments, formatting, CRLF, BOM, a missing final newline."""
    head = f'{between[0]}\n[project]\nname = "acme"\ndependencies = [{between[1]}\n'
    tail = f"{between[2]}\n]\n[tool.x]\ny = ['acme-core']" + "\n" * last_line_end
    literals = [quote.format(text) for text, quote, _ in declared]

    def manifest(strings: list[str]) -> str:
        items = "".join(
            f"{string},{space}\n" for string, (_, _, space) in zip(strings, declared, strict=True)
        )
        return "\ufeff" * bom + (head + items + tail).replace("\n", line_end)

    before = manifest(literals)
    versions = {"acme-core": "1.2.0", "acme-text": "1.2.0", "acme": "1.2.0"}
    after = pin(before, versions, mode)
    parsed = tomllib.loads(after.removeprefix("\ufeff"))
    changed = [
        quote.format(text)
        for text, (_, quote, _) in zip(parsed["project"]["dependencies"], declared, strict=True)
    ]
    assert after == manifest(changed)
    assert pin(after, versions, mode) == after
