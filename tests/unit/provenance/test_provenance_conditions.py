from __future__ import annotations

import httpx
import pytest

from releasekit.host.ci import CI
from releasekit.http.credentials import Credentials, snapshot
from releasekit.http.identity import NO_PERMISSION, open_tokens
from releasekit.provenance.conditions import NO_JOB, obstacle_here

JOB = {"GITHUB_ACTIONS": "true"}
IDENTITY = {
    "ACTIONS_ID_TOKEN_REQUEST_URL": "https://token.actions.example/get",
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "runner-token",
}
GITEA = {"GITHUB_SERVER_URL": "https://git.example"}
KNOWN = "knows jobs of github.com and gitlab.com, and this is"


@pytest.mark.parametrize(
    ("environ", "public", "says"),
    [
        ({}, True, NO_JOB.condition),
        (JOB, True, NO_PERMISSION.condition),
        (JOB | IDENTITY, True, ""),
        # No permission would help there.
        (JOB | GITEA, True, f"{KNOWN} git.example"),
        (JOB | GITEA | IDENTITY, True, f"{KNOWN} git.example"),
        (JOB | GITEA, False, NO_PERMISSION.condition),
        (JOB | GITEA | IDENTITY, False, ""),
        # Nor would an instance of Sigstore.
        (JOB | GITEA | {"GITEA_ACTIONS": "true"}, True, "Gitea has no ID tokens"),
    ],
)
def test_the_first_condition_that_is_not_met_is_told(
    environ: dict[str, str], public: bool, says: str
) -> None:
    taken = snapshot(environ)
    ci = CI.of(taken.environment)
    tokens = open_tokens(ci, Credentials(taken, mask=lambda _: None), httpx.AsyncClient())
    obstacle = obstacle_here(ci, tokens, public=public)
    assert (obstacle is not None) == bool(says)
    assert obstacle is None or says in obstacle.condition
