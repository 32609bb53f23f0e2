from __future__ import annotations

import gc
import re
import sys
from types import ModuleType
from typing import TYPE_CHECKING, cast

import pytest

from releasekit.__main__ import main, trust_as_machine
from releasekit.cli.commands import COMMANDS
from releasekit.config.command import Command
from screens import Terminal
from workspaces import write_member

if TYPE_CHECKING:
    from pathlib import Path

    from releasekit.cli.session import Session
    from releasekit.config.config import Config


@pytest.mark.parametrize(
    ("given", "added"),
    [
        ({}, {"SSL_CERT_FILE": "{here}/store"}),
        ({"REQUESTS_CA_BUNDLE": "{here}/own"}, {"SSL_CERT_FILE": "{here}/own"}),
        ({"REQUESTS_CA_BUNDLE": "{here}"}, {"SSL_CERT_DIR": "{here}"}),
        ({"REQUESTS_CA_BUNDLE": "{here}/none"}, {"SSL_CERT_FILE": "{here}/none"}),
        ({"SSL_CERT_FILE": "a", "REQUESTS_CA_BUNDLE": "{here}/own"}, {}),
        ({"SSL_CERT_DIR": "a"}, {}),
    ],
)
def test_what_the_machine_trusts_is_trusted(
    tmp_path: Path, given: dict[str, str], added: dict[str, str]
) -> None:
    """R37: unless a variable says otherwise."""
    (tmp_path / "store").touch()
    before = {name: value.format(here=tmp_path) for name, value in given.items()}
    environment = dict(before)
    trust_as_machine(environment, [str(tmp_path / name) for name in ("missing", "store")])
    assert environment == before | {
        name: value.format(here=tmp_path) for name, value in added.items()
    }


def test_a_machine_without_certificates_leaves_the_lists_that_programs_have(tmp_path: Path) -> None:
    """R37"""
    environment: dict[str, str] = {}
    trust_as_machine(environment, [str(tmp_path / "missing")])
    assert environment == {}


def test_errors_of_one_kind_share_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for where, text in {
        ".": '{"private": true, "workspaces": ["*"]}',
        "a": '{"name": "no name"}',
        "b": '{"name": "none either"}',
    }.items():
        (tmp_path / where).mkdir(exist_ok=True)
        (tmp_path / where / "package.json").write_text(text)
    assert main(["plan", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert said.count("error: ") == 2
    assert said.count("Write a name like") == 1
    assert said.index("none either") < said.index("Write a name like")


def test_an_annotation_has_what_to_do_and_where_to_read_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    (tmp_path / "package.json").write_text('{"name": "no name", "version": "1.0.0"}')
    assert main(["plan", str(tmp_path)]) == 2
    (line,) = (each for each in capsys.readouterr().out.splitlines() if "::error" in each)
    _, message = line.split("::", 2)[1:]
    said, hint, page = message.split("%0A")
    assert "no name" in said
    assert hint.startswith("Write a name like")
    assert page.startswith("https://")
    assert "/problems.md#rk-" in page


def test_a_terminal_says_at_once_what_takes_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", screen := Terminal())
    main(["plan", str(tmp_path)])
    first, second, *_ = screen.getvalue().splitlines()
    assert first.endswith(f"plan {tmp_path}")
    assert second == "planning…"
    write_member(tmp_path, "demo")
    screen.truncate(0)
    main(["status", "--working-directory", str(tmp_path), "--registry", "dir:r", "--smoke"])
    assert screen.getvalue().splitlines()[1:] == ["asking registries…", "resolving what is there…"]


def test_a_command_is_a_row_and_a_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither the command line nor the start of a run names one."""

    async def run(config: Config, session: Session) -> int:
        print(f"{config.mode} {config.root}", file=session.out)
        return 7

    module = ModuleType("greeting")
    module.run = run  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "greeting", module)
    rows = cast("dict[str, Command]", COMMANDS)
    monkeypatch.setitem(rows, "greet", Command(name="greet", about="Greet.", module="greeting"))
    assert main(["greet", str(tmp_path)]) == 7
    assert capsys.readouterr().out == f"greet {tmp_path}\n"
    with pytest.raises(SystemExit):
        main(["--help"])
    assert re.search("^  greet +Greet[.]$", capsys.readouterr().out, re.MULTILINE)


def test_what_was_imported_is_never_looked_at_for_garbage(tmp_path: Path) -> None:
    gc.disable()
    try:
        main(["plan", str(tmp_path)])
        assert gc.isenabled()
        assert gc.get_freeze_count()
    finally:
        gc.enable()
        gc.unfreeze()
