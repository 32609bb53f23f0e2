from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import fakes
from releasekit.__main__ import main
from releasekit.cli.outputs_file import OutputsFile
from releasekit.host.ci import CI, FOREIGN_EVENTS

if TYPE_CHECKING:
    from pathlib import Path

GITLAB = CI.of({"GITLAB_CI": "true"})
OTHER = CI.of({})


def test_gitlab_reads_them_from_the_state_directory(tmp_path: Path) -> None:
    found = OutputsFile.of_config(fakes.config(tmp_path), GITLAB)
    assert found == OutputsFile(tmp_path / ".releasekit/outputs.env", is_state=True)
    assert OutputsFile.of_config(fakes.config(tmp_path), OTHER) is None


@pytest.mark.parametrize(
    ("environment", "ci", "place"),
    [
        ({}, GITLAB, ".releasekit/outputs.env"),
        ({"RELEASEKIT_STATE_DIRECTORY": "a/b"}, GITLAB, "a/b/outputs.env"),
        ({"RELEASEKIT_WORKING_DIRECTORY": "js"}, GITLAB, "js/.releasekit/outputs.env"),
        ({"RELEASEKIT_OUTPUTS_FILE": "x.env"}, GITLAB, "x.env"),
        ({"RELEASEKIT_OUTPUTS_FILE": "../x.env", "RELEASEKIT_WORKING_DIRECTORY": "js"}, OTHER,
         "x.env"),
        ({}, OTHER, ""),
        ({"RELEASEKIT_OUTPUTS_FILE": "x.env"}, CI.of({"GITHUB_ACTIONS": "true"}), ""),
    ],
)  # fmt: skip
def test_variables_say_where_they_are_without_a_configuration(
    tmp_path: Path, environment: dict[str, str], ci: CI, place: str
) -> None:
    found = OutputsFile.of_variables(environment, tmp_path, ci)
    assert (found.path if found else None) == (tmp_path / place if place else None)


def test_variables_alone_replace_no_file_of_others(tmp_path: Path) -> None:
    """R52"""
    (tmp_path / "x.env").write_text("PATH=/evil\n")
    environment = {"RELEASEKIT_OUTPUTS_FILE": "x.env"}
    assert OutputsFile.of_variables(environment, tmp_path, OTHER) is None
    (tmp_path / "x.env").write_text("RK_RESULT=success\n")
    assert OutputsFile.of_variables(environment, tmp_path, OTHER) is not None


def test_gitlab_reads_nothing_foreign_where_the_configuration_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R52: a cache may have brought it, and later jobs take its variables."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    monkeypatch.setenv("GITLAB_CI", "true")
    (tmp_path / "releasekit.toml").write_text("nonsense = 1\n")
    path = tmp_path / ".releasekit/outputs.env"
    path.parent.mkdir()
    path.write_text("LD_PRELOAD=/evil.so\n")
    assert main(["publish"]) == 2
    assert path.read_text() == "RK_RESULT=failure\n"


def test_what_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    """R4: the release itself has ended by then."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for path in (tmp_path / "link/x.env", tmp_path / "link"):
        said = OutputsFile(path, is_state=False).write("RK_RESULT=success\n")
        assert said.startswith(f"{path}: the outputs are not written: ")
        assert "\n" not in said
        assert "[Errno" not in said
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("kind", ["link", "file", "directory"])
def test_gitlab_reads_nothing_that_a_build_has_put_in_their_place(
    tmp_path: Path, kind: str
) -> None:
    """R52"""
    path = tmp_path / ".releasekit/outputs.env"
    path.parent.mkdir()
    planted = tmp_path / "planted"
    planted.write_text("RK_RESULT=success\n")
    if kind == "link":
        path.symlink_to(planted)
    elif kind == "file":
        path.write_text("RK_RESULT=success\n")
    else:
        (path / "inner").mkdir(parents=True)
    assert OutputsFile(path, is_state=True).write("RK_RESULT=failure\n") == ""
    assert not path.is_symlink()
    assert path.read_text() == "RK_RESULT=failure\n"
    assert planted.read_text() == "RK_RESULT=success\n"


def test_git_ignores_a_state_directory_that_is_made_for_them(tmp_path: Path) -> None:
    path = tmp_path / ".releasekit/outputs.env"
    assert OutputsFile(path, is_state=True).write("RK_RESULT=failure\n") == ""
    assert (path.parent / ".gitignore").read_text() == "*\n"
    OutputsFile(path, is_state=True).forget()
    assert not path.exists()


def test_what_a_run_breaks_off_leaves_no_earlier_outputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R4: nothing says how this one went, and the other one's result would be taken for it."""
    file = tmp_path / "x.env"
    file.write_text("RK_RESULT=success\n")
    monkeypatch.setattr("releasekit.cli.plan.run", None)  # a bug
    with pytest.raises(TypeError):
        main(["plan", str(tmp_path), "--outputs-file", str(file)])
    assert not file.exists()


def test_a_command_without_outputs_leaves_those_of_the_run_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one job, `publish` and then `notes`; it fails here, as there are no packages."""
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    monkeypatch.setenv("GITLAB_CI", "true")
    file = tmp_path / ".releasekit/outputs.env"
    file.parent.mkdir()
    file.write_text("RK_RESULT=success\n")
    monkeypatch.chdir(tmp_path)
    for command in (["notes", "npm:acme", "1.0.0"], ["check"]):
        assert main(command) != 0
        assert file.read_text() == "RK_RESULT=success\n"


@pytest.mark.parametrize(
    ("flags", "traced"),
    [((), "true"), (("--dry-run",), "true"), ((), "1"), ((), "TRUE"), ((), "t")],
)
def test_nothing_is_published_while_gitlab_prints_every_secret(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    flags: tuple[str, ...],
    traced: str,
) -> None:
    """R34: its runner takes every spelling of true."""
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    monkeypatch.setenv("GITLAB_CI", "true")
    monkeypatch.setenv("CI_DEBUG_TRACE", traced)
    assert main(["publish", str(tmp_path), *flags]) == 2
    said = capsys.readouterr()
    assert "GitLab prints every variable of this job, secrets too [RK-230]" in said.err
    assert said.out == ""  # an error that ends the log is told once
    assert (tmp_path / ".releasekit/outputs.env").read_text() == "RK_RESULT=failure\n"
    monkeypatch.setenv("CI_DEBUG_TRACE", "false")
    main(["publish", str(tmp_path), *flags])
    assert "RK-230" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "command", [("approve", "--yes"), ("reject", "--yes"), ("release-pr",), ("trust", "--write")]
)
@pytest.mark.parametrize("event", FOREIGN_EVENTS)
def test_nothing_is_decided_where_a_stranger_may_have_left_what_it_is_decided_by(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    event: str,
    command: tuple[str, ...],
) -> None:
    """R69"""
    name, *flags = command
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_EVENT_NAME", event)
    assert main([name, str(tmp_path), *flags]) == 2
    said = capsys.readouterr()
    assert "RK-231" in said.out + said.err
    assert f"Run `{name}` on a push" in said.out + said.err
    main([name, str(tmp_path), *flags, "--allow-events", event])
    said = capsys.readouterr()
    assert "RK-231" not in said.out + said.err


@pytest.mark.parametrize("event", FOREIGN_EVENTS)
def test_nothing_is_published_at_an_event_that_may_run_a_strangers_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], event: str
) -> None:
    """R69"""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_EVENT_NAME", event)
    assert main(["publish", str(tmp_path)]) == 2
    said = capsys.readouterr()
    assert f"`{event}` started this job" in said.out + said.err
    assert "RK-231" in said.out + said.err
    assert f"set `allow-events: {event}`" in said.out + said.err
    for allowed in (["--dry-run"], ["--allow-events", event]):
        main(["publish", str(tmp_path), *allowed])
        said = capsys.readouterr()
        assert "RK-210" in said.out + said.err
        assert "RK-231" not in said.out + said.err
    assert main(["publish", str(tmp_path), "--allow-events", "push"]) == 2
    said = capsys.readouterr()
    assert "'push' is not an event that `publish` refuses" in said.out + said.err
    for other in ("push", "pull_request", "workflow_dispatch", "release"):
        monkeypatch.setenv("GITHUB_EVENT_NAME", other)
        main(["publish", str(tmp_path)])
        said = capsys.readouterr()
        assert "RK-231" not in said.out + said.err
