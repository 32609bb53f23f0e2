from __future__ import annotations

import pytest

from peers.go import txtar
from peers.go.scripts import _list_roots


def test_files_of_a_txtar_are_told_apart() -> None:
    """R66: a mark is a whole line; the last file ends in a line end."""
    above, files = txtar.read(b"go list\n-- go.mod --\nmodule m\n-- a b/x.go --\n-- no mark\nlast")
    assert above == "go list\n"
    assert files == {"go.mod": b"module m\n", "a b/x.go": b"-- no mark\nlast\n"}


@pytest.mark.parametrize(
    ("files", "roots"),
    [
        ({"x.go": b""}, []),
        ({"go.mod": b"module a\n", "b/go.mod": b"module b\n"}, ["."]),
        ({"a/go.mod": b"module a\n", "b/go.mod": b"module b\n"}, ["."]),
        ({"a/go.mod": b"module a\n", "b/go.mod": b"module a\n"}, ["a", "b"]),
        ({"go.work": b"", "a/go.mod": b"module a\n", "b/go.mod": b"module a\n"}, ["."]),
        ({"a/go.work": b"", "a/b/go.mod": b"module a\n", "c/go.mod": b"module c\n"}, ["a", "c"]),
    ],
)
def test_a_script_is_one_repository_where_it_can_be(
    files: dict[str, bytes], roots: list[str]
) -> None:
    """R1"""
    assert _list_roots(files) == roots
