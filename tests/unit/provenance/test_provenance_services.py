from __future__ import annotations

import httpx
import pytest

from releasekit.errors import Rejected, Transient
from releasekit.problems import Problem
from releasekit.provenance.services import explain


def test_a_server_that_nobody_vouches_for_stays_one() -> None:
    error = Rejected(
        "POST https://fulcio.example: self-signed", hint="Set it.", problem=Problem.CERTIFICATE
    )
    error.__cause__ = httpx.ConnectError("self-signed")
    explained = explain(error)
    assert explained.problem is Problem.CERTIFICATE
    assert explained.hint.startswith("Set it. ")
    assert "`attestations: off`" in explained.hint


@pytest.mark.parametrize("hint", ["", "That is trouble of the registry."])
def test_what_is_said_of_registries_is_not_said_of_services(hint: str) -> None:
    error = Transient("POST https://rekor.example: HTTP 503", ambiguous=True, hint=hint)
    explained = explain(error)
    assert isinstance(explained, Transient)
    assert not explained.ambiguous
    assert explained.problem is Problem.ATTESTATIONS_DOWN
    assert "registry" not in explained.hint
