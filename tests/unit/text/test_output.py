from __future__ import annotations

import os

from releasekit.text.output import ignore_write_errors


def test_lines_go_out_at_once_and_as_they_were_encoded() -> None:
    read_end, write_end = os.pipe()
    with (
        os.fdopen(write_end, "w", encoding="latin-1", errors="replace") as stream,
        os.fdopen(read_end, "rb", buffering=0) as reader,
    ):
        print("é → x", file=ignore_write_errors(stream))
        assert reader.read(100) == b"\xe9 \\u2192 x\n"


def test_half_a_surrogate_pair_ends_no_run() -> None:
    """R40: no encoding has a place for it."""
    read_end, write_end = os.pipe()
    with (
        os.fdopen(write_end, "w", encoding="utf-8", errors="strict") as stream,
        os.fdopen(read_end, "rb", buffering=0) as reader,
    ):
        print("\ud800", file=ignore_write_errors(stream))
        assert reader.read(100) == b"\\ud800\n"


def test_what_cannot_be_written_is_dropped() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "w", encoding="utf-8") as stream:
        out = ignore_write_errors(stream)
        print("x" * 100_000, file=out)
        out.close()


def test_a_descriptor_that_was_never_open_is_the_null_device() -> None:
    with ignore_write_errors(None) as out:
        assert out.name == os.devnull
        out.write("x")
