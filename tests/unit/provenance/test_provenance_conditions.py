from __future__ import annotations

import httpx
import pytest

from releasekit.host.ci import CI
from releasekit.http.credentials import Credentials, snapshot
from releasekit.http.identity import IdTokens
from releasekit.provenance.conditions import NO_JOB, NO_PERMISSION, obstacle_here

JOB = {"GITHUB_ACTIONS": "true"}
IDENTITY = {
    "ACTIONS_ID_TOKEN_REQUEST_URL": "https://token.actions.example/get",
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "runner-token",
}
GITEA = {"GITHUB_SERVER_URL": "https://git.example"}


@pytest.mark.parametrize(
    ("environ", "public", "says"),
    [
        ({}, True, NO_JOB.condition),
        (JOB, True, NO_PERMISSION.condition),
        (JOB | IDENTITY, True, ""),
        # No permission would help there.
        (JOB | GITEA, True, "knows jobs of github.com, and this is git.example"),
        (JOB | GITEA | IDENTITY, True, "knows jobs of github.com, and this is git.example"),
        (JOB | GITEA, False, NO_PERMISSION.condition),
        (JOB | GITEA | IDENTITY, False, ""),
    ],
)
def test_the_first_condition_that_is_not_met_is_told(
    environ: dict[str, str], public: bool, says: str
) -> None:
    taken = snapshot(environ)
    tokens = IdTokens(Credentials(taken, mask=lambda _: None), httpx.AsyncClient())
    obstacle = obstacle_here(CI.of(taken.environment), tokens, public=public)
    assert (obstacle is not None) == bool(says)
    assert obstacle is None or says in obstacle.condition
