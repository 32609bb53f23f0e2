"""What holds for every test."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from outside import remove_outside
from releasekit.state import lock_order

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

# A busy machine is no failure. Counterexamples are printed as code, so no database is kept.
settings.register_profile("releasekit", deadline=None, database=None, print_blob=True)
settings.load_profile("releasekit")

pytest_plugins = ["integration.fixtures"]


@pytest.fixture(autouse=True, scope="session")
def _key_of_the_machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """All tests of a session are one user of one machine, and not who runs them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("machine")))
        yield


def pytest_sessionfinish() -> None:
    remove_outside()


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Failures(config))


class _Failures:
    """Names a test when it fails; dots alone would leave that for the end."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if report.failed and reporter is not None and reporter.verbosity <= 0:
            reporter.write_line(f"\nFAILED {report.nodeid}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A program that failed says why; the error of subprocess says only that."""
    report = yield
    error = call.excinfo.value if call.excinfo is not None else None
    while error is not None:
        if isinstance(error, subprocess.CalledProcessError | subprocess.TimeoutExpired):
            for name, said in (("stdout", error.stdout), ("stderr", error.stderr)):
                text = said.decode(errors="replace") if isinstance(said, bytes) else said
                if text:
                    report.sections.append((f"{name} of {error.cmd}", text))
        error = error.__cause__ or error.__context__
    return report


@pytest.fixture(autouse=True)
def _nothing_held() -> None:
    """A test that fails may leave locks in its traceback; the next one holds none of them."""
    lock_order._held.set(())


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Archives hold the second they were made in, and all processes have to name a test alike."""
    return argname if isinstance(val, bytes) else None
