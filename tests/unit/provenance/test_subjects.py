"""What files are called in a release statement."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from releasekit.model import Artifact
from releasekit.provenance.release_statement import subjects_of

DIST = Path("/work/.releasekit/dist")


def file(path: str, sha256: str) -> Artifact:
    return Artifact(path=DIST / path, size=1, digests={"sha256": sha256, "sha512": "x"})


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["pypi/core/1.0/core-1.0.whl"], ["core-1.0.whl"]),
        (
            ["maven/a:core/1.0/core-1.0.jar", "maven/b:core/1.0/core-1.0.jar"],
            ["a:core/1.0/core-1.0.jar", "b:core/1.0/core-1.0.jar"],
        ),
        (
            ["npm/core/1.0/core-1.0.tgz", "npm/core/2.0/core-1.0.tgz", "npm/b/1.0/b-1.0.tgz"],
            ["1.0/core-1.0.tgz", "2.0/core-1.0.tgz", "b-1.0.tgz"],
        ),
        (
            ["npm/core/1.0/core.tgz", "pypi/core/1.0/core.tgz"],
            ["npm/core/1.0/core.tgz", "pypi/core/1.0/core.tgz"],
        ),
    ],
)
def test_a_name_is_as_short_as_it_may_be(paths: list[str], names: list[str]) -> None:
    """One statement names nothing twice."""
    subjects = subjects_of(file(path, f"{number}") for number, path in enumerate(paths))
    assert sorted(each.name for each in subjects) == sorted(names)
    assert all(set(each.digests) == {"sha256"} for each in subjects)


def test_the_same_bytes_of_one_name_are_one_file() -> None:
    twice = [file("npm/a/1.0/x.tgz", "aa"), file("npm/b/1.0/x.tgz", "aa")]
    (subject,) = subjects_of(twice)
    assert (subject.name, subject.digests) == ("x.tgz", {"sha256": "aa"})


PLACES = st.tuples(
    st.sampled_from(["npm", "pypi"]),
    st.sampled_from(["a", "b", "@s/a"]),
    st.sampled_from(["1.0", "2.0"]),
    st.sampled_from(["x.tgz", "y.tgz"]),
)


@given(st.dictionaries(PLACES.map("/".join), st.sampled_from(["aa", "bb", "cc"])))
def test_no_name_is_there_twice_and_no_file_is_missing(files: dict[str, str]) -> None:
    artifacts = [file(path, sha256) for path, sha256 in files.items()]
    subjects = subjects_of(artifacts)
    assert len({each.name for each in subjects}) == len(subjects)
    told = {(each.name.rpartition("/")[2], each.digests["sha256"]) for each in subjects}
    assert told == {(each.filename, each.sha256) for each in artifacts}
