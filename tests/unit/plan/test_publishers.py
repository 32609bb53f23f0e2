"""Workflows that publish with other tools are named, and nothing else is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from releasekit.plan.publishers import (
    describe_publishers,
    find_publishers,
    list_own_jobs,
    read_workflows,
)

if TYPE_CHECKING:
    from pathlib import Path


def write(root: Path, text: str, name: str = "other.yml") -> None:
    directory = root / ".github/workflows"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / name).write_text(text)


def write_job(root: Path, step: str) -> None:
    write(root, f"on: push\njobs:\n  ship:\n    steps:\n      - {step}\n")


@pytest.mark.parametrize(
    ("step", "shown"),
    [
        ("run: npm publish --access public", "`npm publish`"),
        ("run: pnpm -r --filter ./packages publish", "`pnpm -r --filter ./packages publish`"),
        ("run: yarn npm publish", "`yarn npm publish`"),
        ("run: npx lerna publish from-package", "`lerna publish`"),
        ("run: yarn changeset publish", "`yarn changeset publish`"),
        ("run: cargo +stable publish -p acme", "`cargo +stable publish`"),
        ("run: uv publish", "`uv publish`"),
        ("run: python -m twine upload dist/*", "`twine upload`"),
        ("run: maturin upload dist/*", "`maturin upload`"),
        ("run: ./mvnw -B -DskipTests deploy", "`./mvnw -B -DskipTests deploy`"),
        ("run: npx semantic-release", "`semantic-release`"),
        ("run: release-plz release", "`release-plz release`"),
        ("run: make release", "`make release`"),
        ("uses: pypa/gh-action-pypi-publish@release/v1", "pypa/gh-action-pypi-publish"),
        ("{uses: changesets/action@v1, with: {publish: yarn ship}}", "changesets/action"),
        ("{uses: changesets/action@v2, with: {publish-script: pnpm ship}}", "changesets/action"),
        ("{uses: PyO3/maturin-action@v1, with: {command: upload}}", "PyO3/maturin-action"),
        ("uses: googleapis/release-please-action@v4", "googleapis/release-please-action"),
        ("uses: release-plz/action@v0.5", "release-plz/action"),
    ],
)
def test_what_publishes_is_named(tmp_path: Path, step: str, shown: str) -> None:
    """R68: by its step, its job and what starts it."""
    write_job(tmp_path, step)
    (found,) = find_publishers(tmp_path)
    assert found.steps == (f"{shown} (job ship)",)
    (said,) = describe_publishers([found])
    assert said.startswith(f".github/workflows/other.yml publishes too on push: {shown} (job ship)")


@pytest.mark.parametrize(
    "step",
    [
        "run: npm run build",
        "run: npm publish --dry-run",
        "run: cargo publish --dry-run -p acme",
        "run: npm run publish-docs",
        "run: pnpm exec pkg-pr-new publish",
        "run: pnpm pkg-pr-new publish ./packages/*",
        "run: cargo run -p maint -- publish",
        "run: npm ci && echo publish",
        "run: mvn site:deploy",
        "run: release-plz release-pr",
        "run: 'echo done # uv publish: later'",
        "uses: changesets/action@v1",
        "{uses: PyO3/maturin-action@v1, with: {command: build}}",
        "{uses: release-plz/action@v0.5, with: {command: release-pr}}",
        "{uses: org/releasekit-action@v1, with: {mode: publish}}",
        "run: releasekit publish",
    ],
)
def test_what_publishes_nothing_is_not_named(tmp_path: Path, step: str) -> None:
    """R68: nobody removes what does no harm."""
    write_job(tmp_path, step)
    assert [*find_publishers(tmp_path)] == []


def test_events_and_files_that_cannot_be_read_are_said(tmp_path: Path) -> None:
    """R66: of each file, and of a workflow of another repository."""
    jobs = "jobs: {a: {uses: acme/ci/.github/workflows/publish.yml@main}}\n"
    write(tmp_path, f"on: {{push: {{tags: [v*]}}, release: }}\n{jobs}", "a.yaml")
    write(tmp_path, "on: [", "b.yml")
    (tmp_path / ".github/workflows/c.yml").symlink_to("/etc/hostname")
    write(tmp_path, "jobs: [1]\n", "d.yml")
    write(tmp_path, "jobs: {a: 1, b: {steps: [1, {run: 2}]}}\n", "e.yml")
    said = [*describe_publishers(find_publishers(tmp_path))]
    assert len(said) == 3
    assert said[0].startswith(
        ".github/workflows/a.yaml publishes too on push of tags, release: "
        "acme/ci/.github/workflows/publish.yml (job a). "
    )
    assert "cannot tell whether .github/workflows/b.yml publishes" in said[1]
    assert "cannot tell whether .github/workflows/c.yml publishes" in said[2]


def test_a_long_line_takes_no_long_time(tmp_path: Path) -> None:
    """R63: the file may be hostile, and the pattern looks only so far ahead."""
    for words in ("npm ", "mvn -x ", "cargo -x", "n" * 9):
        write_job(tmp_path, "run: " + words * (240_000 // len(words)))
        assert [*find_publishers(tmp_path)] == []


def test_files_without_the_word_are_not_parsed(tmp_path: Path) -> None:
    """R40: to parse a megabyte of YAML takes ten seconds."""
    write(tmp_path, "on: [", "a.yml")
    step = "{uses: acme/releasekit-action@v1, with: {mode: publish}}"
    write(
        tmp_path, f"jobs: {{ship: {{steps: [{step}]}}, test: {{steps: [{{run: make}}]}}}}", "b.yml"
    )
    (other, nothing), (_, own) = read_workflows(tmp_path, "releasekit")
    assert (other, nothing) == (".github/workflows/a.yml", None)
    assert [name for name, _ in list_own_jobs(own)] == ["ship"]
