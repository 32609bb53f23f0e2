from __future__ import annotations

import traceback

import pytest

from releasekit.errors import BuildFailed, CodeWanted, PackageError, Rejected, Transient
from releasekit.problems import Problem


def caught() -> Transient:
    with pytest.raises(Transient) as found:
        raise Transient("busy", retry_after=3.0, ambiguous=True, status=503) from OSError("broke")
    return found.value


def test_a_changed_error_is_another_one_with_the_same_cause() -> None:
    error = caught()
    other = error.with_(hint="Wait.", problem=Problem.DOWN, ambiguous=False)
    assert (error.hint, error.problem, error.ambiguous) == ("", Problem.UNREACHABLE, True)
    assert (other.hint, other.problem, other.ambiguous) == ("Wait.", Problem.DOWN, False)
    assert (str(other), other.retry_after, other.status) == ("busy", 3.0, 503)
    assert other.__cause__ is error.__cause__
    assert traceback.extract_tb(other.__traceback__)[0].name == "caught"


def test_a_changed_message_is_the_whole_message() -> None:
    assert str(caught().with_(message="busy; come back")) == "busy; come back"
    assert Rejected("no").with_(message="never").args == ("never",)


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (BuildFailed("it broke", log=("the last line",), premature=True), "log"),
        (CodeWanted("a code", page="https://npm.example/login"), "page"),
    ],
)
def test_it_keeps_what_its_class_adds(error: PackageError, name: str) -> None:
    other = error.with_(hint="Try again.")
    assert type(other) is type(error)
    assert getattr(other, name) == getattr(error, name)
