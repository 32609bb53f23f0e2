"""A process that starts with secrets, and what others can read off it afterwards."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from processes import PATIENCE_S
from releasekit import __main__, start
from releasekit.host import reexec
from releasekit.host.reexec import MARKER

if TYPE_CHECKING:
    from collections.abc import Mapping

SOURCE = str(Path(__file__).parents[3] / "src")
SECRETS = {
    "RELEASEKIT_PYPI_TOKEN": "pypi-5ecret",
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "id-5ecret",
    "HARMLESS": "a\nline=5ecret",
    "PYTHON_REGISTRY_TOKEN": "5ecret",
    "LD_INDEX": "https://user:5ecret@example.org",
}
# Tells what it is by then, and what /proc says.
REPORT = """
import json, os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
{before}
from releasekit.host.reexec import reexec_without_secrets
before = os.getpid()
reexec_without_secrets()
def initial(pid):
    path = Path("/proc", str(pid), "environ")
    return path.read_text() if path.exists() else ""
def is_libffi(descriptor):  # newer ones keep their own file open
    path = Path("/proc/self/fd", descriptor)
    return path.is_symlink() and "libffi" in os.readlink(path)
listed = [int(each) for each in os.listdir("/dev/fd") if not is_libffi(each)]
print(json.dumps({{
    "pid": os.getpid(), "argv": sys.argv[2:], "environment": dict(os.environ),
    "initial": initial("self") if os.geteuid() == 0 else "",
    "descriptors": sorted(listed)[:-1], "stdin": sys.stdin.read(),
}}))
"""


def started(
    variables: Mapping[str, str], *, before: str = "", stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    script = REPORT.format(before=before)
    return subprocess.run(
        [sys.executable, "-I", "-c", script, SOURCE, "a b", ""],
        env={"PATH": os.defpath, **variables},
        input=stdin,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


@pytest.mark.parametrize(
    "way", ["", "import os; os.__dict__.pop('memfd_create', None)"], ids=["memory", "a pipe"]
)
@pytest.mark.parametrize("large", [False, True])
def test_the_environment_arrives_and_its_initial_one_holds_no_secret(
    *, way: str, large: bool
) -> None:
    """R50: also one that is larger than a pipe."""
    given = {"PATH": os.defpath, "LC_MESSAGES": "C", **SECRETS}
    if large:
        given |= {f"N{number}": "x" * 60_000 for number in range(20)}
    done = started(given, before=way, stdin="text")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["environment"] == found["environment"] | given
    assert MARKER not in found["environment"]
    assert "5ecret" not in found["initial"]
    assert sys.platform != "linux" or os.geteuid() or "LC_MESSAGES=C" in found["initial"]
    assert found["argv"] == ["a b", ""]
    assert found["descriptors"] == [0, 1, 2]
    assert found["stdin"] == "text"


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # of a child that only writes
@pytest.mark.parametrize("way", ["memory", "a pipe"])
def test_both_lives_in_one_process(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """R50"""
    calls: list[tuple[str, list[str], Mapping[bytes, bytes]]] = []
    monkeypatch.setattr(os, "execve", lambda *call: calls.append(call))
    monkeypatch.setattr(reexec, "_forbid_inspection", lambda: None)
    if way == "a pipe":
        monkeypatch.delattr(os, "memfd_create", raising=False)
    monkeypatch.delenv(MARKER, raising=False)
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    reexec.reexec_without_secrets()
    ((program, argv, kept),) = calls
    assert (program, argv) == (sys.executable, [sys.executable, *sys.orig_argv[1:]])
    assert kept[b"PATH"] == os.environb[b"PATH"]
    assert "5ecret" not in str(kept)

    for name in SECRETS:
        monkeypatch.delenv(name)
    monkeypatch.setenv(MARKER, kept[MARKER.encode()].decode())
    reexec.reexec_without_secrets()
    assert os.environ.items() >= SECRETS.items()
    assert MARKER not in os.environ


def test_the_child_that_writes_does_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even the cleanup of the process it was made from."""
    written = []

    def write_all(descriptor: int, data: bytes) -> None:
        written.append(data)
        os.close(descriptor)
        raise BrokenPipeError

    def leave(status: int) -> None:
        raise SystemExit(status)

    monkeypatch.setattr(reexec, "_write_all", write_all)
    monkeypatch.setattr(os, "fork", lambda: 0)
    monkeypatch.setattr(os, "_exit", leave)
    with pytest.raises(SystemExit, match="0"):
        reexec._written_by_a_child(b"A=b")
    assert written == [b"A=b"]


def test_the_program_starts_once_the_secrets_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def main() -> int:
        calls.append("main")
        return 3

    monkeypatch.setattr(start, "reexec_without_secrets", lambda: calls.append("without secrets"))
    monkeypatch.setattr(gc, "disable", lambda: calls.append("without collections"))
    monkeypatch.setattr(__main__, "main", main)
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, getattr(sys, f"__{name}__"))
    assert start.start() == 3
    assert calls == ["without secrets", "without collections", "main"]


@pytest.mark.parametrize("script", ["", "-"])
def test_a_script_that_cannot_be_read_again_goes_on(
    script: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [script])
    monkeypatch.delenv(MARKER, raising=False)
    reexec.reexec_without_secrets()


def test_linux_is_asked_to_forbid_inspection(monkeypatch: pytest.MonkeyPatch) -> None:
    """R50: PR_SET_DUMPABLE is 4. A Python without ctypes starts all the same."""
    asked: list[tuple[int, ...]] = []
    library = SimpleNamespace(prctl=lambda *call: asked.append(call))
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setitem(sys.modules, "ctypes", SimpleNamespace(CDLL=lambda _: library))
    reexec._forbid_inspection()
    assert asked == [(4, 0, 0, 0, 0)]
    monkeypatch.setitem(sys.modules, "ctypes", None)
    reexec._forbid_inspection()
    monkeypatch.setattr(sys, "platform", "darwin")
    reexec._forbid_inspection()
    assert len(asked) == 1


def test_the_pid_stays() -> None:
    """R28: it is the one that the runner signals."""
    with subprocess.Popen(
        [sys.executable, "-I", "-c", REPORT.format(before=""), SOURCE],
        env=SECRETS,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    ) as process:
        out, _ = process.communicate(timeout=PATIENCE_S)
    assert json.loads(out)["pid"] == process.pid


@pytest.mark.parametrize(
    "marker", ["", "x", "1:2:3", "1:3:5:0", "0:0:0:0", f"{'9' * 5000}:3:1:0", "\udcff"]
)
def test_a_marker_of_somebody_else_is_named(marker: str) -> None:
    """R50: in one line and a hint, without reading from whatever descriptor it names."""
    done = started({MARKER: marker})
    assert done.returncode == 2
    assert done.stdout == ""
    error, hint, page = done.stderr.splitlines()
    assert error.startswith(f"error: {MARKER}: ")
    assert error.endswith("does not come from this process [RK-226]")
    assert page.endswith("#rk-226")
    assert len(error) < 200
    assert hint.startswith("  Unset it")


@pytest.mark.parametrize("ours", [False, True])
@pytest.mark.parametrize("length", [0, 3, 99])
def test_a_hand_over_that_is_not_what_was_announced_is_refused(
    length: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *,
    ours: bool,
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"A=bc")
    descriptor = os.open(path, os.O_RDONLY)
    monkeypatch.setenv(MARKER, f"{os.getpid() if ours else 1}:{descriptor}:{length}:0")
    with pytest.raises(SystemExit) as ended:
        reexec.reexec_without_secrets()
    with contextlib.suppress(OSError):  # read, and closed then, if the pid was right
        os.close(descriptor)
    assert ended.value.code == 2
    assert "does not come from this process" in capsys.readouterr().err


def test_a_python_that_is_gone_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """R50: rather no release than one whose builds see everything."""
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.delenv(MARKER, raising=False)
    with pytest.raises(SystemExit) as ended:
        reexec.reexec_without_secrets()
    assert ended.value.code == 2
    error = capsys.readouterr().err.splitlines()[0]
    assert error == (
        f"error: {tmp_path / 'python'}: cannot be executed again: No such file or directory "
        "[RK-226]"
    )


def test_a_script_that_is_read_from_stdin_runs_once() -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-", SOURCE],
        env=SECRETS,
        input=REPORT.format(before=""),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert json.loads(done.stdout)["environment"]["HARMLESS"] == SECRETS["HARMLESS"]


@pytest.mark.parametrize("closed", ["<&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_standard_streams_that_are_closed_stay_out_of_it(closed: str, tmp_path: Path) -> None:
    script = (
        "import os, sys; sys.path.insert(0, sys.argv[1])\n"
        "from releasekit.host.reexec import reexec_without_secrets\n"
        "reexec_without_secrets()\n"
        "open(sys.argv[2], 'w').write(os.environ['HARMLESS'])"
    )
    done = subprocess.run(
        [
            *("sh", "-c", f'exec "$@" {closed}', "sh"),
            *(sys.executable, "-I", "-c", script, SOURCE, str(tmp_path / "out")),
        ],
        env={"PATH": os.defpath, **SECRETS},
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0
    assert (tmp_path / "out").read_text() == SECRETS["HARMLESS"]


def test_the_first_life_imports_little() -> None:
    """Each start waits for it."""
    slow = {"dataclasses", "pathlib", "re", "typing"}
    code = f"import sys; sys.path.insert(0, {SOURCE!r}); import releasekit.start"
    code += f"; sys.exit(str({slow!r} & sys.modules.keys() or 0))"
    # Without `site`, whose .pth files may import anything.
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, check=False
    )
    assert done.stderr == b"0\n"
