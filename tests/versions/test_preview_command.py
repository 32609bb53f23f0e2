"""The command preview, on pull requests as GitHub checks them out, and on branches."""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from releasekit.__main__ import main
from releasekit.ecosystems.directory import DirectoryRegistry
from versions.test_version_command import (
    PYTHON,
    PYTHON_TAGS,
    bare_environment,
    commit,
    lines,
    member,
    repository,
    write,
)
from workspaces import git

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from releasekit.model import Package, Published

    # Exit code, outputs, and summary.
    Told = tuple[int, dict[str, str], str]
    Job = Callable[..., Told]

__all__ = ["bare_environment"]

CORE = {"packages/core/src/parquet.py": "1\n"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """On main, core gets a fix that is not released yet."""
    root = repository(tmp_path / "w", PYTHON, *PYTHON_TAGS)
    commit(root, "fix: count from one (#40)", {"packages/core/src/count.py": "1\n"})
    git(root, "switch", "--quiet", "--create", "topic")
    return root


@pytest.fixture
def preview(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    """What a job of a pull request tells."""

    def run(title: str, *, repository: str = "acme/acme", base: str = "main") -> Told:
        head = git(root, "rev-parse", "HEAD").strip()
        old = git(root, "rev-parse", base).strip()
        git(root, "switch", "--quiet", "--detach", base)
        git(root, "merge", "--quiet", "--no-ff", "--message", f"Merge {head} into {old}", head)
        event = {
            "pull_request": {
                "number": 41,
                "title": title,
                "head": {"sha": head, "ref": "topic/#1", "repo": {"full_name": repository}},
                "base": {"sha": old, "repo": {"full_name": "acme/acme"}},
            }
        }
        (tmp_path / "event.json").write_text(json.dumps(event), encoding="utf-8")
        environment = {
            "GITHUB_ACTIONS": "true",
            "GITHUB_REPOSITORY": "acme/acme",
            "GITHUB_EVENT_NAME": "pull_request",
            "GITHUB_EVENT_PATH": str(tmp_path / "event.json"),
            "GITHUB_OUTPUT": str(tmp_path / "out"),
            "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
            "RUNNER_TEMP": str(tmp_path),
            "RELEASEKIT_MODE": "preview",
            "RELEASEKIT_WORKING_DIRECTORY": str(root),
        }
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        for name in ("out", "summary"):
            (tmp_path / name).write_text("")
        code = main([])
        told = (tmp_path / "out").read_text().splitlines()
        outputs = {
            line.partition("<<")[0]: told[at + 1] for at, line in enumerate(told) if "<<" in line
        }
        return code, outputs, (tmp_path / "summary").read_text()

    return run


def rows(summary: str) -> list[list[str]]:
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in summary.splitlines()
        if line.startswith("| <code>")
    ]


def test_a_release_pull_request_changes_nothing_whatever_its_title(
    root: Path, preview: Job
) -> None:
    base = git(root, "rev-parse", "main").strip()
    versions = {"packages/core/pyproject.toml": member("acme-core", "1.2.1")}
    commit(root, f"Release\n\nReleaseKit-Base: {base}", versions)
    code, outputs, summary = preview("feat!: release acme-core 1.2.1")
    assert code == 0
    assert "Merging this changes no version" in summary
    assert json.loads(outputs["missing"]) == []


def test_a_pull_request_shows_what_its_title_adds(root: Path, preview: Job) -> None:
    commit(root, "wip", CORE)
    code, outputs, summary = preview("feat: read parquet files")
    assert code == 0
    assert "Merging this changes the next version of 1 package" in summary
    assert [row[:4] for row in rows(summary)] == [
        ["<code>acme-core</code>", "1.2.0", "1.2.1", "1.3.0"],
        ["<code>acme-web</code>", "0.3.0", "0.3.1", "0.3.1"],
    ]
    assert json.loads(outputs["missing"]) == []
    assert [row["to"] for row in json.loads(outputs["versions"])] == ["1.3.0", "0.3.1"]
    assert Path(outputs["preview-file"]).read_text() in summary


def test_what_nothing_speaks_for_is_named_with_the_file_to_write(
    root: Path, preview: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(root, "fix: one of two", CORE)
    commit(root, "Tidy up", {"packages/cli/src/main.py": "2\n"})
    code, outputs, summary = preview("Some things", repository="somebody/acme")
    assert code == 0
    assert json.loads(outputs["missing"]) == ["pypi:acme-cli"]
    assert "**Nothing speaks for <code>acme-cli</code>.**" in summary
    page = "https://github.com/somebody/acme/new/topic/%231/.changeset?filename=change-41.md&value="
    assert page in html.unescape(summary)
    write(root, {"releasekit.toml": '[warnings]\nmissing-intent = "error"\n'})
    assert preview("Some things")[0] == 3
    monkeypatch.setenv("GITEA_ACTIONS", "true")
    _, _, summary = preview("Some things", repository="somebody/acme")
    assert "**Nothing speaks for <code>acme-cli</code>.**" in summary
    page = "https://github.com/somebody/acme/_new/topic/%231/.changeset"
    assert page in html.unescape(summary)


@pytest.mark.parametrize("title", ["chore: tidy up", "Tidy up"])
def test_a_change_file_or_a_type_without_level_speaks(root: Path, preview: Job, title: str) -> None:
    file = {".changeset/tidy.md": '---\n"acme-cli": none\n---\nNothing.\n'}
    change = {"packages/cli/src/main.py": "2\n"}
    commit(root, "Tidy up", change if title.startswith("chore") else {**change, **file})
    _, outputs, summary = preview(title)
    assert json.loads(outputs["missing"]) == []
    assert "Merging this changes no version" in summary


@pytest.mark.parametrize(
    ("title", "changes"),
    [
        ("feat!: new", CORE),
        ("fix: a", {**CORE, "packages/cli/src/a.py": "1\n"}),
        ("docs: a", CORE),
        ('Revert "fix: count from one (#40)"', {"packages/core/src/count.py": "0\n"}),
        ("whatever", {".changeset/a.md": '---\n"acme-web": major\n---\nNew.\n'}),
    ],
)
def test_it_says_what_version_says_before_and_after_the_merge(
    root: Path,
    preview: Job,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    title: str,
    changes: Mapping[str, str],
) -> None:
    """Squashed, as GitHub names it."""
    commit(root, "fix: not the last word", changes)
    shown = {row[0]: row[2:4] for row in rows(preview(title)[2])}
    for name in ("GITHUB_ACTIONS", "GITHUB_EVENT_NAME", "RELEASEKIT_MODE"):
        monkeypatch.delenv(name)

    def decided() -> dict[str, str]:
        capsys.readouterr()
        assert main(["version", str(root), "--dry-run"]) == 0
        cells = [line.split() for line in lines(capsys) if "→" in line]
        return {f"<code>{cell[0]}</code>": cell[3] for cell in cells}

    git(root, "switch", "--quiet", "main")
    before = decided()
    git(root, "merge", "--quiet", "--squash", "topic")
    git(root, "commit", "--quiet", "--message", f"{title} (#41)")
    after = decided()
    names = {*before, *after}
    assert shown == {name: [before.get(name, "-"), after.get(name, "-")] for name in names}


def test_a_branch_is_compared_with_what_it_is_merged_into(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also one that has merged it since."""
    commit(root, "feat: read parquet files", CORE)
    git(root, "switch", "--quiet", "main")
    commit(root, "fix: exit", {"packages/cli/src/a.py": "1\n"})
    git(root, "switch", "--quiet", "topic")
    git(root, "merge", "--quiet", "--no-edit", "main")
    assert main(["preview", str(root), "--since", "main"]) == 0
    cells = [line.split()[:4] for line in lines(capsys)]
    assert ["acme-core", "1.2.0", "1.2.1", "1.3.0"] in cells
    assert ["acme-cli", "0.4.1", "0.4.2", "0.4.2"] in cells


@pytest.mark.parametrize("since", ["main", "origin/main", ""])
def test_a_prerelease_branch_shows_what_merging_it_releases(
    root: Path, capsys: pytest.CaptureFixture[str], since: str
) -> None:
    """R68"""
    config = {"releasekit.toml": '[version]\nbranches = { topic = "rc" }\n'}
    commit(root, "feat: stream", CORE | config)
    assert main(["version", str(root)]) == 0
    commit(root, "chore: release candidates", {})
    git(root, "tag", "acme-core-v1.3.0-rc.1")
    git(root, "update-ref", "refs/remotes/origin/main", "main")
    git(root, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    capsys.readouterr()
    assert main(["preview", str(root), *(("--since", since) if since else ())]) == 0
    shown = capsys.readouterr().out
    assert [line.split()[:4] for line in shown.splitlines() if line.startswith("acme-core")] == [
        ["acme-core", "1.2.0", "1.2.1", "1.3.0"]
    ]


def test_without_a_branch_to_compare_with_it_asks_for_one(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["preview", str(root)]) == 2
    told = capsys.readouterr().err
    assert "git knows no origin/HEAD here" in told
    assert "`--since main`" in told
    git(root, "update-ref", "refs/remotes/origin/main", "main")
    git(root, "switch", "--quiet", "--detach")
    assert main(["preview", str(root)]) == 2
    told = capsys.readouterr().err
    assert "`--since origin/main`" in told
    assert "`git remote set-head origin --auto`" in told
    assert main(["preview", str(root), "--since", "mian"]) == 2
    assert "git knows no mian here" in capsys.readouterr().err
    git(root, "switch", "--quiet", "--orphan", "other")
    git(root, "commit", "--quiet", "--allow-empty", "--message", "other")
    git(root, "switch", "--quiet", "--detach", "main")
    assert main(["preview", str(root), "--since", "other"]) == 2
    assert "it has no commit in common with other" in capsys.readouterr().err


def test_a_check_of_change_files_names_what_nothing_speaks_for(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(root, "Tidy up", {"packages/cli/src/main.py": "2\n"})
    arguments = ["change", str(root), "--check", "--since", "main"]
    assert main(arguments) == 1
    assert lines(capsys) == ["nothing speaks for pypi:acme-cli"]
    write(root, {".changeset/tidy.md": '---\n"acme-cli": patch\n---\nTidier.\n'})
    assert main(arguments) == 0
    commit(root, "Say so", {".changeset/tidy.md": '---\n"acme-cli": patch\n---\nTidier.\n'})
    assert main(arguments) == 0


def test_a_title_reaches_nobody_as_markup_or_command(
    root: Path,
    preview: Job,
    capfd: pytest.CaptureFixture[str],
) -> None:
    commit(root, "wip", CORE)
    title = "feat: <img src=x> @everyone | fixes #1\r\n::set-output name=x::y \x1b[2J\u202e"
    _, _, summary = preview(title)
    printed = capfd.readouterr().out
    for text in (summary, printed):
        assert "\x1b" not in text
        assert "\u202e" not in text
    assert "<img" not in summary
    assert "@everyone" not in summary
    assert not any(line.startswith("::set-output") for line in printed.splitlines())


def test_files_that_count_on_both_sides_are_named(root: Path, preview: Job) -> None:
    """R68: the versions without this are decided by what it makes of requirements and options."""
    text = (root / "packages/web/pyproject.toml").read_text()
    commit(
        root,
        "docs: describe",
        {"releasekit.toml": "# ours\n", "packages/web/pyproject.toml": f"# ours\n{text}"},
    )
    _, _, summary = preview("docs: describe")
    assert "both sides use packages/web/pyproject.toml, releasekit.toml as changed here" in summary


def test_a_registry_is_asked_once_for_both_decisions(
    root: Path, preview: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    look_up = DirectoryRegistry.lookup

    async def count(self: DirectoryRegistry, package: Package) -> Published | None:
        asked.append(package.id.name)
        return await look_up(self, package)

    monkeypatch.setattr(DirectoryRegistry, "lookup", count)
    git(root, "tag", "--delete", *PYTHON_TAGS)
    commit(root, "feat: read parquet files", CORE)
    assert preview("feat: read parquet files")[0] == 0
    assert sorted(asked) == ["acme-cli", "acme-core", "acme-web"]
