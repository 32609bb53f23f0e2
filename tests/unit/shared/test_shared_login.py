"""What is said where nothing is there to log in with; each ecosystem's own words are its tests'."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from releasekit.ecosystems.shared.login import TokenInput

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("ecosystem", ["pypi", "npm", "cargo"])
def test_a_pull_request_from_a_fork_is_told_to_publish_elsewhere(
    tmp_path: Path, ecosystem: str
) -> None:
    """R38: no secret that is set reaches such a run, so none is asked for."""
    head, base = ({"repo": {"full_name": name}} for name in ("me/mono", "acme/mono"))
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"pull_request": {"head": head, "base": base}}))
    environment = {
        "GITHUB_ACTIONS": "true",
        "GITHUB_EVENT_NAME": "pull_request",
        "GITHUB_EVENT_PATH": str(event),
    }
    wanted = TokenInput(ecosystem=ecosystem, place="https://r.example/", kind="a token")
    error = wanted.missing(environment, trusting=True)
    where = f"{ecosystem}: no credentials for https://r.example/"
    assert str(error) == f"{where}: this run is for a pull request from a fork"
    assert "tags: ['v*']" in error.hint
    assert "is not set" in str(wanted.missing(environment, trusting=False))
