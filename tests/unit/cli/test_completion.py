"""What bash itself completes with the script."""

from __future__ import annotations

import subprocess

import pytest

from fakes import DECLARED
from releasekit.__main__ import main
from releasekit.cli.completion import write_bash_completion

# As readline does it: the words of the line, the last of which is completed.
COMPLETE = """
eval "$1"
complete -p releasekit-action >/dev/null || exit
COMP_WORDS=("${@:2}") COMP_CWORD=$(($# - 2))
_releasekit
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["p"], ["preview", "plan", "publish"]),
        (["do"], [""]),  # the old name
        (["completion", ""], ["bash"]),
        (["init", "--d"], ["--dry-run"]),
        (["check", "--fi"], ["--fix", "--find-links"]),
        (["publish", "--gate", ""], ["visible", "accepted"]),
        (["publish", "--gate", "=", "v"], ["visible"]),
        (["publish", "--gate", "="], ["visible", "accepted"]),
        (["publish", "--dry-run", "pa"], [""]),  # a path
        (["verify", "--no-such"], [""]),
    ],
)
def test_bash_completes_commands_flags_and_choices(words: list[str], found: list[str]) -> None:
    script = write_bash_completion(DECLARED)
    done = subprocess.run(
        ["bash", "-c", COMPLETE, "bash", script, "releasekit", *words],
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout.splitlines(), done.stderr) == (found, "")


def test_it_is_printed_for_bash_alone(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["completion", "bash"])
    assert capsys.readouterr().out == write_bash_completion(DECLARED)
    assert main(["completion", "fish"]) == 2
    assert "zsh reads that after bashcompinit" in capsys.readouterr().err
