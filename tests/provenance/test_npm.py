"""What npmjs.com takes of us, and does not: publishes to a double that checks what it checks."""

from __future__ import annotations

import asyncio
import json
import subprocess
from typing import TYPE_CHECKING, Literal

import httpx
import pytest

import javascript
from harness.npm import registry
from harness.npm.documents import pack
from harness.npm.npmjs import Npmjs
from integration.tools import require_tool
from integration.verdaccio import verdaccio
from provenance import official, tampering, targets
from provenance.npmjs import Examiner
from releasekit.ecosystems.npm import NpmInputs
from releasekit.ecosystems.npm.manifest import Hosted, normalize_repository
from releasekit.ecosystems.shared.documents import text_in
from releasekit.errors import PackageError, Rejected
from releasekit.fields import replace
from releasekit.model import Package, PackageId
from releasekit.provenance.statement import SLSA

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from harness.npm.registry import Registry
    from provenance.sigstore_double import Sigstore
    from releasekit.attested import Obstacle
    from releasekit.ecosystems.interface import Target
    from releasekit.model import Artifact

REPOSITORY = {"type": "git", "url": "git+https://github.com/acme/widgets.git"}
PUBLIC = {"access": "public"}
MANIFEST: Mapping[str, object] = {"repository": REPOSITORY, "publishConfig": PUBLIC}
TOKEN = {"RELEASEKIT_NPM_TOKEN": "npm_bypass"}
ACTIONS = {
    "GITHUB_ACTIONS": "true",
    "ACTIONS_ID_TOKEN_REQUEST_URL": "https://token.example/?x=1",
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "runner-token",
}


@pytest.fixture
def npm(sigstore: Sigstore) -> Iterator[Registry]:
    require_tool("npm")  # whose verifier the double asks
    with registry.serving(Npmjs()) as served:
        served.before = Examiner(sigstore)
        yield served


def workspace(
    root: Path, manifest: Mapping[str, object] = MANIFEST, name: str = "@acme/core"
) -> Package:
    """One package, in the root."""
    javascript.write(root, {"package.json": {"name": name, "version": "1.0.0", **manifest}})
    return Package(
        id=PackageId("npm", name), version="1.0.0", directory=root, manifest=root / "package.json"
    )


def publish(
    npm: Registry,
    root: Path,
    prepare: Callable[[Target, Package, Artifact], bytes],
    *,
    manifest: Mapping[str, object] = MANIFEST,
    name: str = "@acme/core",
    stage: bool = False,
) -> Artifact:
    """`prepare` makes a bundle of a statement."""
    package = workspace(root, manifest, name)
    artifact = javascript.tarball(root / "dist", package, None, **manifest)

    async def main() -> Artifact:
        async with targets.opened("npm", root, npm.url, TOKEN, attestations="required") as target:
            data = await asyncio.to_thread(prepare, target, package, artifact)
            sent = targets.holding(artifact, data)
            if stage:
                assert target.staging is not None
                await target.staging.stage({package: [sent]})
            else:
                await target.registry.upload(package, [sent])
            return sent

    return asyncio.run(main())


def signed(sigstore: Sigstore) -> Callable[[Target, Package, Artifact], bytes]:
    def prepare(target: Target, package: Package, artifact: Artifact) -> bytes:
        statement = targets.wanted(sigstore, target, package, artifact)
        return tampering.claiming(sigstore, statement, {})

    return prepare


@pytest.mark.parametrize("stage", [False, True])
@pytest.mark.parametrize("name", ["@acme/core", "core"])
def test_a_tarball_goes_out_with_what_npm_verifies(
    sigstore: Sigstore, npm: Registry, tmp_path: Path, name: str, *, stage: bool
) -> None:
    """Staged versions too: npm attaches it there as well, and shows it after the approval."""
    if stage:
        npm.npm.publish(pack({"name": name, "version": "0.9.0"}))
    sent = publish(npm, tmp_path, signed(sigstore), name=name, stage=stage)
    examiner = npm.before
    assert isinstance(examiner, Examiner)
    (release,) = examiner.taken
    assert (release.name, release.version) == (name, "1.0.0")
    assert sent.attestation is not None
    assert release.provenance.encode() == sent.attestation.path.read_bytes()
    told = json.loads(sigstore.entries[0].payload)
    purl = f"pkg:npm/{name.replace('@', '%40')}@1.0.0"
    assert told["subject"] == [{"name": purl, "digest": {"sha512": sent.digests["sha512"]}}]
    assert told["predicateType"] == SLSA
    assert bool(npm.npm.staged) is stage


def test_without_an_attestation_a_document_is_as_ever(npm: Registry, tmp_path: Path) -> None:
    package = workspace(tmp_path)
    artifact = javascript.tarball(tmp_path / "dist", package, None, **MANIFEST)

    async def main() -> None:
        async with targets.opened("npm", tmp_path, npm.url, TOKEN) as target:
            await target.registry.upload(package, [artifact])

    asyncio.run(main())
    (exchange,) = npm.seen("PUT")
    assert list(json.loads(exchange.request.body)["_attachments"]) == ["@acme/core-1.0.0.tgz"]


@pytest.mark.parametrize("tamper", tampering.EVERYWHERE)
def test_what_was_tampered_with_is_refused(
    sigstore: Sigstore,
    npm: Registry,
    tmp_path: Path,
    tamper: Callable[[Sigstore, bytes, Path], bytes],
) -> None:
    """R14, R29: by npm's own verifier, or by what the registry compares with the package."""

    def prepare(target: Target, package: Package, artifact: Artifact) -> bytes:
        return tamper(sigstore, targets.wanted(sigstore, target, package, artifact), tmp_path)

    with pytest.raises(Rejected, match="422 Error verifying sigstore provenance bundle") as caught:
        publish(npm, tmp_path, prepare)
    assert "`attestations: off`" in caught.value.hint
    assert npm.npm.published == {}


@pytest.mark.parametrize(
    ("claims", "said", "hint"),
    [
        (
            {"runner_environment": "self-hosted"},
            'runner environment: "self-hosted"',
            "ubuntu-latest",
        ),
        ({"repository_visibility": "private"}, 'visibility: "private"', "public repositories only"),
        (
            {"repository_visibility": "internal"},
            'visibility: "internal"',
            "public repositories only",
        ),
    ],
)
def test_jobs_that_npm_takes_nothing_from_are_told_what_to_change(
    sigstore: Sigstore,
    npm: Registry,
    tmp_path: Path,
    claims: Mapping[str, str],
    said: str,
    hint: str,
) -> None:
    def prepare(target: Target, package: Package, artifact: Artifact) -> bytes:
        sigstore.claims.update(claims)
        statement = targets.wanted(sigstore, target, package, artifact)
        return tampering.claiming(sigstore, statement, claims)

    with pytest.raises(Rejected, match="422") as caught:
        publish(npm, tmp_path, prepare)
    assert said in str(caught.value)
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    "repository", [None, "acme/other", "github:Acme/Widgets", "https://gitlab.com/acme/widgets"]
)
def test_another_repository_in_the_manifest_is_refused(
    sigstore: Sigstore, npm: Registry, tmp_path: Path, repository: object
) -> None:
    manifest = {**MANIFEST, "repository": repository}
    with pytest.raises(Rejected, match="Failed to validate repository information") as caught:
        publish(npm, tmp_path, signed(sigstore), manifest=manifest)
    assert "capitals count" in caught.value.hint


@pytest.mark.parametrize(
    "repository",
    ["acme/widgets", "github:acme/widgets", "https://github.com/acme/widgets", REPOSITORY],
)
def test_a_repository_is_sent_as_npm_spells_it(
    sigstore: Sigstore, npm: Registry, tmp_path: Path, repository: object
) -> None:
    """npm rewrites it before it publishes, and the registry looks at nothing else."""
    publish(npm, tmp_path, signed(sigstore), manifest={**MANIFEST, "repository": repository})
    (exchange,) = npm.seen("PUT")
    entry = json.loads(exchange.request.body)["versions"]["1.0.0"]
    assert entry["repository"] == REPOSITORY


SPELLINGS = (
    *("acme/widgets", "github:acme/widgets", "acme/widgets.git", "acme/widgets#v1"),
    *("https://github.com/acme/widgets", "https://github.com/acme/widgets.git"),
    *("https://github.com/acme/widgets/", "https://github.com/acme/widgets#main"),
    *("https://www.github.com/acme/widgets", "https://GitHub.com/Acme/Widgets"),
    *("git+https://github.com/acme/widgets.git", "git+https://user@github.com/acme/widgets.git"),
    *("http://github.com/acme/widgets", "git://github.com/acme/widgets.git"),
    *("git@github.com:acme/widgets.git", "ssh://git@github.com/acme/widgets.git"),
    *("git+ssh://git@github.com/acme/widgets.git", "gitlab:acme/widgets"),
    *("bitbucket:acme/widgets", "https://example.com/acme/widgets.git", "acme", "./acme/widgets"),
    *("github.com/acme/widgets", "git+http://github.com/acme/widgets.git", "acme/widgets/more"),
    *("https://gitlab.com/acme/tools/widgets.git", "gitlab:acme/tools/widgets"),
    *("git@gitlab.com:acme/tools/widgets.git", "https://github.com/acme/tools/widgets"),
    *("git+ssh://git@gitlab.com/acme/a/b/widgets.git"),
    *("https://gitlab.com/acme/widgets/-/tree/main"),
    *("https://github.com/acme", "https://github.com/acme/widgets.git.git", "file:acme/widgets"),
)
_NPMS_OWN = """
const { fromUrl } = require(`${process.argv[1]}/node_modules/hosted-git-info`)
const spelled = text => {
  const hosted = fromUrl(text)
  if (!hosted) return text
  return hosted.getDefaultRepresentation() === 'shortcut' ? hosted.https() : hosted.toString()
}
console.log(JSON.stringify(JSON.parse(process.argv[2]).map(spelled)))
"""


def normalized_url(repository: object) -> str:
    return text_in(normalize_repository(repository), "url")


def test_repositories_are_spelled_as_npm_does() -> None:
    argv: list[str | Path] = [
        require_tool("node"),
        "-e",
        _NPMS_OWN,
        official.npm_itself(),
        json.dumps(SPELLINGS),
    ]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    ours = [normalized_url(text) for text in SPELLINGS]
    assert dict(zip(SPELLINGS, ours, strict=True)) == dict(
        zip(SPELLINGS, json.loads(done.stdout), strict=True)
    )


@pytest.mark.parametrize("value", [None, "", 7, [], {}, {"url": 7}, {"url": ""}, "a" * 2000])
def test_what_is_no_repository_stays_what_it_is(value: object) -> None:
    assert Hosted.parse(normalized_url(value)) is None


def obstacle(
    root: Path,
    sigstore: Sigstore,
    *,
    manifest: Mapping[str, object] = MANIFEST,
    name: str = "@acme/core",
    environment: Mapping[str, str] = ACTIONS,
    exists: bool | None = None,
    place: str = "",
    claims: Mapping[str, str] | None = None,
    access: Literal["", "public", "restricted"] = "",
    trust_config: Path | None = None,
) -> Obstacle | None:
    """`exists` is what a lookup has told, if there was one."""
    package = workspace(root, manifest, name)
    sigstore.claims.update(claims or {})

    def answer(request: httpx.Request) -> httpx.Response:
        assert exists is not None, request
        return httpx.Response(200 if exists else 404, json={"versions": {}, "dist-tags": {}})

    async def main() -> Obstacle | None:
        inputs = (NpmInputs(access=access),)
        async with targets.opened(
            "npm",
            root,
            place,
            environment,
            transport=httpx.MockTransport(answer),
            attestations="required",
            ecosystem_inputs=inputs,
            trust_config=trust_config,
        ) as target:
            if exists is not None:
                assert await target.registry.lookup(package) is None
            assert target.attesting is not None
            return target.attesting.obstacle(package, targets.job(sigstore))

    return asyncio.run(main())


def test_nothing_is_in_the_way_of_a_public_package(sigstore: Sigstore, tmp_path: Path) -> None:
    assert obstacle(tmp_path, sigstore) is None
    unsaid = {"repository": REPOSITORY}
    assert obstacle(tmp_path, sigstore, manifest=unsaid, name="core") is None
    assert obstacle(tmp_path, sigstore, manifest=unsaid, access="public") is None
    # Whoever is shown it without a token sees what everybody sees.
    assert obstacle(tmp_path, sigstore, manifest=unsaid, exists=True) is None


@pytest.mark.parametrize(
    ("options", "condition", "cure"),
    [
        ({"claims": {"runner_environment": "self-hosted"}}, "GitHub-hosted", "ubuntu-latest"),
        ({"claims": {"repository_visibility": "internal"}}, "is internal", "public repository"),
        ({"manifest": {"repository": REPOSITORY}}, "nothing says", "`npm-access: public`"),
        (
            {"manifest": {"repository": REPOSITORY}, "exists": False},
            "nothing says",
            "publishConfig",
        ),
        (
            {"manifest": {"repository": REPOSITORY}, "exists": True, "environment": TOKEN},
            "nothing says",
            "publishConfig",
        ),
        ({"access": "restricted"}, "`restricted`", "`npm-access: public`"),
        (
            {"manifest": {**MANIFEST, "publishConfig": {"access": "restricted"}}},
            "`restricted`",
            "`npm-access: public`",
        ),
        (
            {"manifest": {"publishConfig": PUBLIC}},
            "is missing",
            "git+https://github.com/acme/widgets",
        ),
        (
            {"manifest": {**MANIFEST, "repository": "Acme/widgets"}},
            "is 'git+https://github.com/Acme/widgets.git', not this repository",
            "capitals included",
        ),
        (
            {"manifest": {**MANIFEST, "repository": "https://ci:hunter2@github.com/acme/x"}},
            "is 'git+https://***@github.com/acme/x.git'",
            "capitals included",
        ),
        (
            {"manifest": {**MANIFEST, "repository": "https://x.example/\x1b[31mred"}},
            "\\\\x1b",
            "git+https",
        ),
    ],
)
def test_obstacles_are_told_before_anything_is_signed(
    sigstore: Sigstore, tmp_path: Path, options: dict[str, object], condition: str, cure: str
) -> None:
    found = obstacle(tmp_path, sigstore, **options)  # type: ignore[arg-type]
    assert found is not None
    assert condition in found.condition
    assert "\x1b" not in found.condition
    assert not found.condition.endswith(".")
    assert cure in found.cure


@pytest.mark.parametrize(
    ("claims", "repository", "condition", "cure"),
    [
        ({}, "https://gitlab.com/acme/tools/widgets", "", ""),
        ({}, "git@gitlab.com:acme/tools/widgets.git", "", ""),
        ({}, "https://gitlab.com/tools/widgets", "not this repository", "acme/tools/widgets.git"),
        ({"runner_environment": "self-hosted"}, "", "from GitLab-hosted runners only", "`tags: ["),
        ({"project_visibility": "private"}, "", "this one is private", "public repository"),
    ],
)
def test_a_job_of_gitlab_meets_the_same_obstacles(
    sigstore: Sigstore,
    tmp_path: Path,
    claims: dict[str, str],
    repository: str,
    condition: str,
    cure: str,
) -> None:
    sigstore.become_gitlab()
    manifest = {**MANIFEST, "repository": repository}
    found = obstacle(tmp_path, sigstore, claims=claims, manifest=manifest)
    assert (found is None) is not bool(condition)
    assert condition in (found.condition if found else "")
    assert cure in (found.cure if found else "")


def test_npmjs_is_not_sent_what_a_private_instance_has_signed(
    sigstore: Sigstore, tmp_path: Path
) -> None:
    """It would refuse each tarball; what other registries believe, nobody knows."""
    trust_config = sigstore.trust_config
    found = obstacle(tmp_path, sigstore, trust_config=trust_config)
    assert found is not None
    assert found.condition.endswith("public instance only, and `trust-config` names another one")
    for place in ("https://npm.example/", "dir:/www"):
        assert obstacle(tmp_path, sigstore, trust_config=trust_config, place=place) is None


@pytest.mark.parametrize("place", ["https://npm.example/", "dir:/www"])
def test_of_other_registries_nobody_knows_what_they_refuse(
    sigstore: Sigstore, tmp_path: Path, place: str
) -> None:
    assert obstacle(tmp_path, sigstore, manifest={"x": 1}, place=place) is None


@pytest.mark.parametrize(
    ("place", "attestations", "takes"),
    [
        ("", "auto", True),
        ("https://npm.example/", "auto", False),
        ("https://npm.example/", "required", True),
        ("dir:/www", "auto", True),
    ],
)
def test_only_a_registry_that_is_known_to_take_attestations_gets_any(
    tmp_path: Path, place: str, attestations: str, *, takes: bool
) -> None:
    workspace(tmp_path)

    async def main() -> None:
        async with targets.opened("npm", tmp_path, place, {}, attestations=attestations) as target:
            assert (target.attesting is not None) is takes

    asyncio.run(main())


@pytest.mark.parametrize(
    ("said", "wish"), [(True, True), (False, False), ("true", None), (None, None)]
)
def test_a_package_may_ask_for_it_itself(tmp_path: Path, said: object, wish: bool | None) -> None:
    package = workspace(tmp_path, {"publishConfig": {"provenance": said}})

    async def main() -> None:
        async with targets.opened("npm", tmp_path, "", {}) as target:
            assert target.attesting is not None
            assert target.attesting.wish(package) is wish

    asyncio.run(main())


def test_verdaccio_has_no_place_for_it_and_the_way_out_is_told(
    sigstore: Sigstore, tmp_path: Path
) -> None:
    """Only `required` sends it there; `auto` signs nothing for a registry that is not known."""
    require_tool("npm")
    package = workspace(tmp_path)
    artifact = javascript.tarball(tmp_path / "dist", package, None, **MANIFEST)

    async def main(url: str, token: str) -> None:
        environment = {"RELEASEKIT_NPM_TOKEN": token}
        async with targets.opened(
            "npm", tmp_path, url, environment, attestations="required"
        ) as target:
            assert await target.registry.lookup(package) is None
            (sent,) = await targets.attested(sigstore, target, package, artifact)
            with pytest.raises(Rejected, match="unsupported registry call") as caught:
                await target.registry.upload(package, [sent])
            assert "leave `attestations` at `auto`" in caught.value.hint

    with verdaccio(tmp_path / "verdaccio") as served:
        asyncio.run(main(served.url, served.token))


def test_a_bundle_that_was_changed_on_disk_is_not_sent(
    sigstore: Sigstore, npm: Registry, tmp_path: Path
) -> None:
    package = workspace(tmp_path)
    artifact = javascript.tarball(tmp_path / "dist", package, None, **MANIFEST)

    async def main() -> None:
        async with targets.opened(
            "npm", tmp_path, npm.url, TOKEN, attestations="required"
        ) as target:
            (sent,) = await targets.attested(sigstore, target, package, artifact)
            assert sent.attestation is not None
            changed = replace(sent.attestation, sha256="0" * 64)
            with pytest.raises(PackageError, match="is not the attestation that was signed"):
                await target.registry.upload(package, [replace(sent, attestation=changed)])

    asyncio.run(main())
    assert npm.seen("PUT") == []
