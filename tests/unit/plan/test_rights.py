"""What a plan makes of a registry that does not tell what credentials may do."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from fakes import FakeRegistry, FakeTarget, FakeWorkspace, package, plan
from releasekit.errors import Transient
from releasekit.plan.rights import refuse_unentitled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from releasekit.ecosystems.preflight import RightsFound
    from releasekit.model import Package


class Silent:
    """Implements `preflight.Rights`."""

    async def find_rights(self, _: Sequence[Package], *, proving: bool) -> RightsFound:
        raise Transient(f"GET https://r.example/whoami: no answer, proving: {proving}.")


def test_only_what_uploads_stops_where_nobody_says_what_credentials_may_do() -> None:
    targets = {"fake": FakeTarget(FakeWorkspace(), FakeRegistry(), rights=Silent())}
    made = plan(package("core"))
    noted = asyncio.run(refuse_unentitled(made, targets, None, proving=False))
    assert noted.packages == made.packages
    told = "GET https://r.example/whoami: no answer, proving: False"
    assert noted.notes == (f"whether these credentials may publish is not known: {told}",)
    with pytest.raises(Transient, match="proving: True"):
        asyncio.run(refuse_unentitled(made, targets, None, proving=True))
