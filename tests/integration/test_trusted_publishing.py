"""Trusted publishing over real sockets: one server plays GitHub's token service and the index."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

import distributions
import registries
from releasekit.errors import Denied
from trusted_index import RUNNER_TOKEN, TrustedIndex, served

if TYPE_CHECKING:
    from pathlib import Path


def publish(origin: str, index: TrustedIndex, dist: Path, masked: list[str]) -> None:
    packages = [distributions.package(f"acme-{number}") for number in range(4)]

    async def main() -> None:
        async with registries.opened(
            f"{origin}/legacy/",
            index.environment(origin),
            {"trusted_publishing": "always"},
            masked=masked,
        ) as registry:
            registry.check_credentials()
            async with asyncio.TaskGroup() as group:
                for package in packages:
                    built = distributions.both(dist / package.id.name, package)
                    group.create_task(registry.upload(package, built))

    asyncio.run(main())


def test_a_workflow_publishes_as_itself(tmp_path: Path) -> None:
    """R38: one identity, one token, masked before anything else could print them."""
    index = TrustedIndex()
    masked: list[str] = []
    with served(index) as origin:
        publish(origin, index, tmp_path, masked)
    assert len(index.files) == len(set(index.files)) == 8
    assert (len(index.id_tokens), len(index.minted)) == (1, 1)
    assert masked[-2:] == [*index.id_tokens, *index.minted]
    assert RUNNER_TOKEN in masked


def test_an_index_that_does_not_know_the_workflow_says_what_to_register(tmp_path: Path) -> None:
    index = TrustedIndex(refusal=("invalid-publisher", "no corresponding publisher"))
    with served(index) as origin, pytest.raises(ExceptionGroup) as caught:
        publish(origin, index, tmp_path, [])
    assert index.files == []
    for error in caught.value.exceptions:
        assert isinstance(error, Denied)
        assert "Workflow name: release.yml" in error.hint
