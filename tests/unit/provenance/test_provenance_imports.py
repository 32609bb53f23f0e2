"""Cryptography takes a tenth of a second to import, and most runs sign nothing."""

from __future__ import annotations

import subprocess
import sys

import pytest

from releasekit.ecosystems import FOLDERS


@pytest.mark.parametrize(
    "modules",
    [("cli.plan", "cli.publish"), ("provenance.signer", "provenance.bundle"), FOLDERS],
    ids=["commands", "signer", "ecosystems"],
)
def test_cryptography_is_imported_when_something_is_signed(modules: tuple[str, ...]) -> None:
    names = [name if name.startswith("releasekit.") else f"releasekit.{name}" for name in modules]
    if modules is FOLDERS:
        names = [f"{name}.target" for name in names]
    unwanted = "{'cryptography', 'sigstore'} & {*sys.modules}"
    code = f"import sys, {', '.join(names)}; sys.exit(bool({unwanted}))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_plan_imports_nothing_that_signs() -> None:
    """Bundles and statements are for files that are signed."""
    names = ", ".join(["releasekit.cli.plan", *(f"{each}.target" for each in FOLDERS)])
    code = f"import sys, {names}; print(*sorted(sys.modules))"
    argv = [sys.executable, "-c", code]
    found = subprocess.run(argv, check=True, capture_output=True, text=True).stdout.split()
    assert [name for name in found if name.startswith("releasekit.provenance.")] == [
        "releasekit.provenance.conditions"
    ]
