from __future__ import annotations

from releasekit.model import Outcome
from releasekit.report import results_table
from sample_runs import artifact, outcomes, partial_report, report, result


def test_results_table_ends_with_what_needs_attention() -> None:
    lines = results_table(partial_report()).splitlines()
    assert [line.split()[0] for line in lines[:6]] == [
        "package",
        "pypi:extras",
        "pypi:core",
        "pypi:http",
        "pypi:app",
        "pypi:broken",
    ]
    assert lines[-3] == "pypi:broken: Read the log."
    assert lines[-1] == "2 of 5 packages published, 1 already there, 1 failed, 1 blocked"


def test_a_dry_run_lists_the_files_it_would_upload() -> None:
    built = result("core", Outcome.WOULD_PUBLISH, artifacts=(artifact("core-1.0.0.tar.gz"),))
    kept = result("http", Outcome.ALREADY_PUBLISHED, artifacts=(artifact("http-1.0.0.tar.gz"),))
    # It is built all the same, so that its own mistakes show.
    blocked = result("app", Outcome.BLOCKED, artifacts=(artifact("app-1.0.0.tar.gz"),))
    lines = results_table(report(built, kept, blocked, dry_run=True)).splitlines()
    assert "app-1.0.0.tar.gz" not in "\n".join(lines)
    assert lines[-4:-1] == [
        "would be uploaded:",
        f"core-1.0.0.tar.gz  1234 bytes  sha256:{'ab' * 32}",
        "",
    ]
    assert "would be uploaded" not in results_table(report(built, kept))


def test_a_file_that_only_its_version_names_stands_behind_its_package() -> None:
    """As those of Go modules, of which a release may have many."""
    files = tuple(artifact(f"1.0.0.{end}") for end in ("mod", "zip"))
    built = result("core", Outcome.WOULD_PUBLISH, artifacts=files)
    text = results_table(report(built, dry_run=True))
    assert "core 1.0.0.mod" in text
    assert "core 1.0.0.zip" in text


def test_results_table_of_nothing_is_its_headline() -> None:
    assert results_table(outcomes()) == "No package to publish"
