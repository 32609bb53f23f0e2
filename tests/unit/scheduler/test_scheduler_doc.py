import doctest
from pathlib import Path


def test_the_scheduler_document_tells_the_truth() -> None:
    document = Path(__file__).resolve().parents[3] / "docs" / "scheduler.md"
    failed, tried = doctest.testfile(str(document), module_relative=False)
    assert (failed, tried > 10) == (0, True)
