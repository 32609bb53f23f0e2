"""What PyPI takes of us, and does not: uploads to a double that verifies as PyPI does."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import httpx
import pypi_attestations
import pytest

import distributions
from provenance import signing, tampering, targets
from provenance.warehouse import TOKEN, Refused, Warehouse, as_form
from releasekit.errors import Rejected
from releasekit.fields import replace
from releasekit.provenance.statement import PUBLISH, SLSA, Subject, slsa
from trusted_index import served

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from provenance.sigstore_double import Sigstore
    from releasekit.ecosystems.interface import Target
    from releasekit.model import Artifact

PACKAGE = distributions.package("widgets")
NO_TOKENS: dict[str, str] = {}


@pytest.fixture
def warehouse(sigstore: Sigstore) -> Warehouse:
    return Warehouse(sigstore=sigstore)


@pytest.fixture
def origin(warehouse: Warehouse) -> Iterator[str]:
    with served(warehouse) as found:
        yield found


@pytest.fixture
def files(tmp_path: Path) -> tuple[Artifact, ...]:
    return distributions.both(tmp_path / "dist", PACKAGE)


async def send(
    warehouse: Warehouse,
    origin: str,
    root: Path,
    prepare: Callable[[Target], Any],
    environment: Mapping[str, str] | None = None,
    trusted_publishing: str = "always",
) -> None:
    """What `prepare` makes of a target and awaits to files is uploaded to it."""
    known = warehouse.environment(origin) if environment is None else environment
    async with targets.opened(
        "pypi",
        root,
        f"{origin}/legacy/",
        known,
        trusted_publishing=trusted_publishing,
        attestations="required",
    ) as target:
        await target.registry.upload(PACKAGE, await prepare(target))


def test_each_file_goes_out_with_what_pypi_verifies(
    sigstore: Sigstore,
    warehouse: Warehouse,
    origin: str,
    files: tuple[Artifact, ...],
    tmp_path: Path,
) -> None:
    async def attested(target: Target) -> list[Artifact]:
        return await targets.attested(sigstore, target, PACKAGE, *files)

    asyncio.run(send(warehouse, origin, tmp_path, attested))
    assert warehouse.stored == {file.filename: file.path.read_bytes() for file in files}
    assert warehouse.attested == {file.filename: [PUBLISH] for file in files}


def test_a_file_without_attestation_is_sent_as_ever(
    warehouse: Warehouse, origin: str, files: tuple[Artifact, ...], tmp_path: Path
) -> None:
    async def as_they_are(_target: Target) -> tuple[Artifact, ...]:
        return files

    asyncio.run(send(warehouse, origin, tmp_path, as_they_are))
    assert warehouse.attested == {file.filename: [] for file in files}
    assert all("attestations" not in form for form in warehouse.forms)


@pytest.mark.parametrize("tamper", tampering.EVERYWHERE)
def test_what_was_tampered_with_is_refused_and_the_way_out_is_told(
    sigstore: Sigstore,
    warehouse: Warehouse,
    origin: str,
    files: tuple[Artifact, ...],
    tmp_path: Path,
    tamper: Callable[[Sigstore, bytes, Path], bytes],
) -> None:
    """R14, R29: nothing of it is stored."""

    async def tampered(target: Target) -> list[Artifact]:
        statement = targets.wanted(sigstore, target, PACKAGE, files[0])
        data = await asyncio.to_thread(tamper, sigstore, statement, tmp_path)
        return [targets.holding(files[0], data)]

    with pytest.raises(Rejected, match="Invalid attestations supplied during upload") as caught:
        asyncio.run(send(warehouse, origin, tmp_path, tampered))
    assert "`attestations: off`" in caught.value.hint
    assert warehouse.stored == {}
    assert len(warehouse.forms) == 1


def test_a_token_is_no_trusted_publisher(
    sigstore: Sigstore,
    warehouse: Warehouse,
    origin: str,
    files: tuple[Artifact, ...],
    tmp_path: Path,
) -> None:
    async def attested(target: Target) -> list[Artifact]:
        return await targets.attested(sigstore, target, PACKAGE, files[0])

    environment = {"RELEASEKIT_PYPI_TOKEN": TOKEN}
    with pytest.raises(Rejected, match="only supported when using Trusted Publishing") as caught:
        asyncio.run(
            send(
                warehouse,
                origin,
                tmp_path,
                attested,
                environment,
                trusted_publishing="auto",
            )
        )
    assert "leave out `pypi-token`" in caught.value.hint
    assert warehouse.stored == {}


def test_another_workflow_of_the_repository_is_not_the_publisher(
    sigstore: Sigstore,
    warehouse: Warehouse,
    origin: str,
    files: tuple[Artifact, ...],
    tmp_path: Path,
) -> None:
    sigstore.become("acme/widgets", "other.yml")

    async def attested(target: Target) -> list[Artifact]:
        return await targets.attested(sigstore, target, PACKAGE, files[0])

    with pytest.raises(Rejected, match="Could not verify the uploaded artifact") as caught:
        asyncio.run(send(warehouse, origin, tmp_path, attested))
    assert "exactly this repository and this workflow file" in caught.value.hint


def test_a_bundle_that_was_changed_on_disk_is_not_sent(
    sigstore: Sigstore,
    warehouse: Warehouse,
    origin: str,
    files: tuple[Artifact, ...],
    tmp_path: Path,
) -> None:
    async def attested(target: Target) -> list[Artifact]:
        (found,) = await targets.attested(sigstore, target, PACKAGE, files[0])
        assert found.attestation is not None
        found.attestation.path.write_bytes(found.attestation.path.read_bytes() + b"\n")
        return [found]

    with pytest.raises(Exception, match="is not the attestation that was signed"):
        asyncio.run(send(warehouse, origin, tmp_path, attested))
    assert warehouse.forms == []


def test_the_double_takes_two_kinds_and_one_of_each(
    sigstore: Sigstore, warehouse: Warehouse, files: tuple[Artifact, ...]
) -> None:
    """What PyPI allows besides what is sent here."""
    file = files[0]
    content = file.path.read_bytes()
    subject = Subject(name=file.filename, digests={"sha256": file.sha256})
    both = signing.signed(
        sigstore,
        [signing.about(content, file.filename), slsa([subject], targets.job(sigstore))],
    )
    published, built = (bundle.pep740() for bundle in both)

    def examined(*attestations: dict[str, Any]) -> list[str]:
        return warehouse.examined(as_form(*attestations), file.filename, content, trusted=True)

    assert examined(published, built) == [PUBLISH, SLSA]
    for refused in ([published, published], [], [published, built, built], [{"version": 1}]):
        with pytest.raises(Refused):
            examined(*refused)


def test_what_is_signed_is_what_pypis_own_signer_signs(
    sigstore: Sigstore, files: tuple[Artifact, ...], tmp_path: Path
) -> None:
    """The name as it is uploaded: PyPI reads it, and no longer rewrites it."""

    async def statement() -> bytes:
        async with targets.opened("pypi", tmp_path, f"dir:{tmp_path}/www", {}) as target:
            return targets.wanted(sigstore, target, PACKAGE, files[1])

    told = json.loads(asyncio.run(statement()))
    assert told == {
        "_type": "https://in-toto.io/Statement/v1",
        "predicate": None,
        "predicateType": pypi_attestations.AttestationType.PYPI_PUBLISH_V1.value,
        "subject": [
            {
                "name": "widgets-1.0.0-py3-none-any.whl",
                "digest": {"sha256": files[1].sha256},
            }
        ],
    }


ACTIONS = {
    "GITHUB_ACTIONS": "true",
    "ACTIONS_ID_TOKEN_REQUEST_URL": "https://token.example/?x=1",
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "runner-token",
}


@pytest.mark.parametrize(
    ("place", "environment", "caller", "condition", "cure"),
    [
        ("", ACTIONS, "", "", ""),
        ("https://test.pypi.org/legacy/", ACTIONS, "", "", ""),
        ("", {"RELEASEKIT_PYPI_TOKEN": "x"}, "", "trusted publishing only", "`pypi-token`"),
        ("", NO_TOKENS, "", "trusted publishing only", "trusted publisher"),
        ("", ACTIONS, "caller.yml", "reusable workflow", "into caller.yml"),
        ("https://pkgs.example/legacy/", {"RELEASEKIT_PYPI_TOKEN": "x"}, "caller.yml", "", ""),
    ],
)
def test_obstacles_are_told_before_anything_is_signed(
    sigstore: Sigstore,
    tmp_path: Path,
    place: str,
    environment: Mapping[str, str],
    caller: str,
    condition: str,
    cure: str,
) -> None:
    job = targets.job(sigstore)
    if caller:
        path = f".github/workflows/{caller}"
        job = replace(job, workflow_path=path, is_reusable=True)
    # A private repository is none of PyPI's business.
    job = replace(job, visibility="private")

    async def main() -> None:
        changes = {"attestations": "required" if "example" in place else "auto"}
        transport = httpx.MockTransport(lambda request: pytest.fail(str(request)))
        async with targets.opened(
            "pypi", tmp_path, place, environment, transport=transport, **changes
        ) as target:
            assert target.attesting is not None
            assert target.attesting.wish(PACKAGE) is None
            found = target.attesting.obstacle(PACKAGE, job)
        assert (found is not None) == bool(condition)
        if found is not None:
            assert condition in found.condition
            assert not found.condition.endswith(".")
            assert cure in found.cure

    asyncio.run(main())


@pytest.mark.parametrize(
    ("place", "condition"),
    [
        ("", "public instance only, and `trust-config` names another one"),
        ("https://pkgs.example/legacy/", ""),
        ("dir:/www", ""),
    ],
)
def test_pypi_is_not_sent_what_a_private_instance_has_signed(
    sigstore: Sigstore, tmp_path: Path, place: str, condition: str
) -> None:
    """It would refuse each file."""

    async def main() -> None:
        config = sigstore.trust_config
        async with targets.opened(
            "pypi", tmp_path, place, ACTIONS, attestations="required", trust_config=config
        ) as target:
            assert target.attesting is not None
            found = target.attesting.obstacle(PACKAGE, targets.job(sigstore))
        assert (found.condition if found else "").endswith(condition)
        assert (found is not None) == bool(condition)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("place", "attestations", "takes"),
    [
        ("", "auto", True),
        ("https://test.pypi.org/legacy/", "auto", True),
        ("https://pkgs.example/legacy/", "auto", False),
        ("https://pkgs.example/legacy/", "required", True),
        ("dir:/www", "auto", True),
    ],
)
def test_only_an_index_that_is_known_to_take_attestations_gets_any(
    tmp_path: Path, place: str, attestations: str, *, takes: bool
) -> None:
    async def main() -> None:
        async with targets.opened("pypi", tmp_path, place, {}, attestations=attestations) as target:
            assert (target.attesting is not None) is takes

    asyncio.run(main())
