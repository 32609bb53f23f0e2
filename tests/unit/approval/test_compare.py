from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from approvals import FakeApproval, artifact, recorded
from releasekit.approval.review import Examined, differences, examine
from releasekit.fields import replace
from releasekit.model import Result, Staged

CORE = recorded("core")


def examined(registry: FakeApproval, result: Result = CORE, *, compare: bool = True) -> Examined:
    return asyncio.run(examine(result, registry, Path("/scratch"), compare=compare))


def test_what_waits_as_it_was_built_may_be_approved() -> None:
    found = examined(FakeApproval.holding([CORE]))
    assert found.waiting is not None
    assert found.refusal is None
    assert [file.path for file in found.files] == [Path("/scratch/core.tgz")]


def test_other_bytes_are_refused_with_both_digests() -> None:
    """R17"""
    registry = FakeApproval.holding([CORE])
    registry.data["core"] = b"forged"
    refusal = str(examined(registry).refusal)
    assert CORE.artifacts[0].sha256 in refusal
    assert artifact(Path(), b"forged").sha256 in refusal


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"name": "cora"}, "has the name 'cora'"),
        ({"version": "1.0.1"}, "has the version '1.0.1'"),
        ({"tag": "next", "by": "mallory"}, "has the tag 'next', staged by mallory"),
        ({"id": "another"}, "has the id 'another'"),
    ],
)
def test_what_waits_in_another_place_is_refused(change: dict[str, str], says: str) -> None:
    registry = FakeApproval.holding([CORE])
    registry.held["core"] = replace(registry.held["core"], **change)
    assert says in str(examined(registry).refusal)


def test_a_run_that_was_told_no_id_is_known_by_its_bytes() -> None:
    result = replace(CORE, staged=Staged())
    assert examined(FakeApproval.holding([CORE]), result).refusal is None


def test_without_comparing_nothing_is_downloaded() -> None:
    registry = FakeApproval.holding([CORE])
    registry.data.clear()
    found = examined(registry, compare=False)
    assert found.waiting is not None
    assert found.refusal is None


def test_what_everybody_sees_is_compared_too() -> None:
    registry = FakeApproval.holding([])
    registry.visible = {"core"}
    assert examined(registry).visible
    registry.forged = {"core"}
    assert examined(registry).refusal is not None


def test_differences_name_each_file() -> None:
    one, other = artifact(Path("a.jar"), b"a"), artifact(Path("b.jar"), b"b")
    result = replace(CORE, artifacts=(one, other))
    assert differences(result, [other, one]) == []
    assert differences(result, [one, artifact(Path("c.jar"), b"c")]) == [
        "b.jar was built, and does not wait",
        "c.jar waits, and was not built",
    ]
    assert "(2 bytes), and" in differences(result, [one, artifact(Path("b.jar"), b"bb")])[0]
