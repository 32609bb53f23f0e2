"""The release statement, from the log's double to GitHub's."""

from __future__ import annotations

import asyncio
import hashlib
import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec import Struct
from sigstore.models import Bundle, ClientTrustConfig
from sigstore.verify import Verifier
from sigstore.verify.policy import Identity

from fakes import SEAL
from harness.github import TOKEN, GitHubDouble, serving_github
from provenance import official, sigstore_double
from releasekit.attested import RELEASE_STATEMENT
from releasekit.errors import Denied, PackageError, Transient
from releasekit.fields import replace
from releasekit.host.ci import CI
from releasekit.http.client import RetryPolicy, http_client
from releasekit.http.credentials import Credentials, Secret, snapshot
from releasekit.http.github import GitHub
from releasekit.http.identity import open_tokens
from releasekit.model import Artifact
from releasekit.provenance import release_statement
from releasekit.provenance.instance import instance_at
from releasekit.provenance.release_statement import (
    send_to_github,
    sign_release,
    stored_bundles,
    subjects_of,
)
from releasekit.provenance.signer import Signer
from releasekit.state.seals import Seal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from provenance.sigstore_double import Sigstore
    from releasekit.attested import ReleaseStatement
    from releasekit.provenance.bundle import Bundle as OurBundle
    from releasekit.provenance.job import Job

AT_ONCE = RetryPolicy(max_retries=3, base_delay_s=0.0)
HINDERED = "GitHub has not taken it: "


@pytest.fixture
def github(tmp_path: Path) -> Iterator[GitHubDouble]:
    with serving_github(tmp_path, "acme/widgets") as served:
        yield served


def refuse(github: GitHubDouble, *statuses: int, retry_after: str = "") -> None:
    """The next requests that write."""
    headers = {"Retry-After": retry_after} if retry_after else {}
    github.failing = [(each, {"message": "what the test wants"}, headers) for each in statuses]


Signed = tuple["Job", "ReleaseStatement", "Sequence[OurBundle]"]


class Run(Struct, frozen=True):
    """One job, which begins with what the ones before it have left."""

    sigstore: Sigstore
    path: Path
    seal: Seal = SEAL

    @property
    def seals(self) -> Path:
        return self.path.with_name("provenance.seals")

    def sign(self, artifacts: Sequence[Artifact]) -> ReleaseStatement:
        return asyncio.run(self._with_signer(artifacts))[1]

    def publish(
        self,
        artifacts: Sequence[Artifact],
        github: GitHubDouble,
        *,
        api: str = "",
        token: str = TOKEN,
    ) -> ReleaseStatement:
        async def main() -> ReleaseStatement:
            job, statement, bundles = await self._with_signer(artifacts)
            async with http_client() as http:
                there = GitHub(
                    http=http,
                    api=api or f"{github.api}/",
                    token=Secret(token) if token else None,
                )
                return await send_to_github(statement, bundles, job, there, policy=AT_ONCE)

        return asyncio.run(main())

    async def _with_signer(self, artifacts: Sequence[Artifact]) -> Signed:
        credentials = Credentials(snapshot(self.sigstore.environment), mask=lambda _: None)
        config = self.sigstore.trust_config
        async with http_client() as http:
            tokens = open_tokens(CI.of(credentials.environment), credentials, http)
            signer = Signer(
                instance_at(config),
                tokens,
                http,
                credentials=credentials,
                server="https://github.com",
            )
            async with signer:
                job = await signer.job()
                statement, bundles = await sign_release(
                    artifacts,
                    job,
                    signer,
                    self.path,
                    seals=self.seals,
                    seal=partial(self.seal.of_bytes, b"release statement, 1"),
                    policy=AT_ONCE,
                )
                return job, statement, bundles


@pytest.fixture
def run(sigstore: Sigstore, tmp_path: Path) -> Run:
    return Run(sigstore, tmp_path / RELEASE_STATEMENT)


def file(name: str, content: str = "", place: str = "core/1.0.0") -> Artifact:
    digest = hashlib.sha256((content or name).encode()).hexdigest()
    return Artifact(path=Path("/work/dist") / place / name, size=1, digests={"sha256": digest})


FILES = (file("core-1.0.0.tar.gz"), file("core-1.0.0.whl"), file("core-1.0.0.crate"))


def test_all_files_of_a_release_are_signed_together(run: Run, sigstore: Sigstore) -> None:
    made = run.sign(FILES)
    assert len(sigstore.entries) == 1
    (bundle,) = stored_bundles(run.path)
    assert official.python(sigstore, bundle) == bundle.payload
    assert bundle.subjects == subjects_of(FILES)
    assert made.subjects == 3
    (attestation,) = made.attestations
    assert attestation.sha256 == hashlib.sha256(run.path.read_bytes().rstrip(b"\n")).hexdigest()
    assert (attestation.log_index, attestation.log_url) == (bundle.log_index, sigstore.url)
    assert (made.url, made.note) == ("", "")


def test_files_of_one_name_are_told_apart_and_found_again(run: Run, sigstore: Sigstore) -> None:
    twice = [file("core-1.0.jar", place, f"{place}/1.0") for place in ("a:core", "b:core")]
    run.sign(twice)
    (bundle,) = stored_bundles(run.path)
    assert official.python(sigstore, bundle) == bundle.payload
    assert [each.name for each in bundle.subjects] == [
        "a:core/1.0/core-1.0.jar",
        "b:core/1.0/core-1.0.jar",
    ]
    for one, other in zip(bundle.subjects, twice, strict=True):
        assert one.covers(other.filename, other.digests)
        assert not one.covers("core-1.0.jar", {"sha256": "0" * 64})
        assert not one.covers("0.jar", other.digests)


def test_the_official_verifier_takes_it(run: Run, sigstore: Sigstore) -> None:
    run.sign(FILES)
    config = ClientTrustConfig.from_json(sigstore.trust_config.read_text())
    workflow = "https://github.com/acme/widgets/.github/workflows/release.yml@refs/heads/main"
    (line,) = run.path.read_bytes().splitlines()
    _, payload = Verifier(trusted_root=config.trusted_root).verify_dsse(
        Bundle.from_json(line), Identity(identity=workflow)
    )
    assert {each["name"] for each in json.loads(payload)["subject"]} == {
        each.filename for each in FILES
    }


def test_a_large_release_is_several_statements(
    run: Run, sigstore: Sigstore, github: GitHubDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(release_statement, "MAX_SUBJECTS", 2)
    files = [file(f"f{number}.whl") for number in range(5)]
    made = run.publish(files, github)
    assert (made.subjects, len(made.attestations), len(sigstore.entries)) == (5, 3, 3)
    told = [each.name for bundle in stored_bundles(run.path) for each in bundle.subjects]
    assert told == [f"f{number}.whl" for number in range(5)]
    assert len(github.attestations) == 3
    assert made.url == "https://github.com/acme/widgets/attestations"


def test_what_is_signed_is_not_signed_again(run: Run, sigstore: Sigstore) -> None:
    """Neither by the same workflow in a later attempt, nor in another order of the files."""
    made = run.sign(FILES)
    before = run.path.read_bytes()
    sigstore.claims["run_attempt"] = "2"
    assert run.sign(FILES[::-1]) == replace(made, kept=True)
    assert run.path.read_bytes() == before
    assert len(sigstore.entries) == 1


def a_foreign_repository(run: Run) -> None:
    run.sigstore.become("evil/widgets")


def another_workflow(run: Run) -> None:
    run.sigstore.become("acme/widgets", "other.yml")


def damage(run: Run) -> None:
    data = run.path.read_bytes()
    run.path.write_bytes(data.replace(b'"payload":"e', b'"payload":"f'))


def half_a_line(run: Run) -> None:
    run.path.write_bytes(run.path.read_bytes()[:100])


def something_else(run: Run) -> None:
    run.path.write_bytes(b"\xff\n")


def a_link(run: Run) -> None:
    elsewhere = run.path.with_name("elsewhere")
    run.path.rename(elsewhere)
    run.path.symlink_to(elsewhere)


@pytest.mark.parametrize(
    "meanwhile", [a_foreign_repository, another_workflow, damage, half_a_line, something_else]
)
def test_what_nobody_can_vouch_for_is_signed_anew(
    run: Run, sigstore: Sigstore, meanwhile: Callable[[Run], None]
) -> None:
    """Of another repository, another workflow, or not as it was written."""
    run.sign(FILES)
    meanwhile(run)
    run.sign(FILES)
    assert len(sigstore.entries) == 2
    (bundle,) = stored_bundles(run.path)
    repository = sigstore.claims["repository"]
    assert official.python(sigstore, bundle, repository=repository) == bundle.payload


@pytest.mark.parametrize("sealed", [True, False])
def test_what_another_authority_has_issued_is_signed_anew(
    run: Run, sigstore: Sigstore, tmp_path: Path, *, sealed: bool
) -> None:
    """R52: anyone can make a certificate that names our job, and seals it with another key."""
    run.sign(FILES)
    ours = run.seals.read_bytes()
    with sigstore_double.serving(tmp_path / "other") as other:
        Run(other, run.path, Seal(b"another key")).sign(FILES)
        assert len(other.entries) == 1
    if not sealed:
        run.seals.write_bytes(ours)
    run.sign(FILES)
    assert len(sigstore.entries) == 2
    (bundle,) = stored_bundles(run.path)
    assert official.python(sigstore, bundle) == bundle.payload


def test_github_is_sent_nothing_else_that_lies_there(
    run: Run, sigstore: Sigstore, github: GitHubDouble
) -> None:
    """R36: a repository may have put there what another job has signed, soundly."""
    run.sign(FILES)
    ours = run.path.read_bytes()
    seals = run.seals.read_bytes()
    run.path.unlink()
    sigstore.become("evil/widgets")
    run.sign([file("evil.whl")])
    run.path.write_bytes(ours + run.path.read_bytes())
    run.seals.write_bytes(seals + run.seals.read_bytes())
    sigstore.become("acme/widgets")
    assert run.publish(FILES, github).kept
    assert run.path.read_bytes() == ours
    assert github.attestations == [json.loads(ours)]


def test_it_lies_beside_results_whose_directory_nobody_has_made_yet(run: Run) -> None:
    place = replace(run, path=run.path.parent / "reports/release" / RELEASE_STATEMENT)
    place.sign(FILES)
    assert len(stored_bundles(place.path)) == 1


def test_a_link_is_not_followed(run: Run, sigstore: Sigstore) -> None:
    """R36"""
    run.sign(FILES)
    a_link(run)
    with pytest.raises(PackageError, match=r"provenance\.jsonl: cannot be written: .*link"):
        run.sign((*FILES, file("more.whl")))
    assert run.path.is_symlink()


def test_without_room_for_its_seals_it_is_signed_and_the_next_run_signs_anew(run: Run) -> None:
    """R14, R40: a build may have made a directory there."""
    run.seals.mkdir(parents=True)
    run.sign(FILES)
    (bundle,) = stored_bundles(run.path)
    assert len(bundle.subjects) == len(FILES)
    assert not run.sign(FILES).kept


@pytest.mark.parametrize(
    "files", [FILES[:2], (*FILES, file("more.whl")), (*FILES[:2], file(FILES[2].filename, "new"))]
)
def test_other_files_are_signed_anew(
    run: Run, sigstore: Sigstore, files: Sequence[Artifact]
) -> None:
    run.sign(FILES)
    run.sign(files)
    (bundle,) = stored_bundles(run.path)
    assert bundle.subjects == subjects_of(files)
    assert len(sigstore.entries) == 2


def test_of_a_large_release_only_what_has_changed_is_signed_anew(
    run: Run, sigstore: Sigstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(release_statement, "MAX_SUBJECTS", 2)
    files = [file(f"f{number}.whl") for number in range(4)]
    run.sign(files)
    run.sign([*files[:3], file("f3.whl", "new")])
    assert len(sigstore.entries) == 3
    told = [each for bundle in stored_bundles(run.path) for each in bundle.subjects]
    assert told == list(subjects_of([*files[:3], file("f3.whl", "new")]))


def test_a_log_that_is_down_for_a_moment_is_asked_again(run: Run, sigstore: Sigstore) -> None:
    sigstore.fail("log", 502)
    sigstore.fail("log", "lost")
    run.sign(FILES)
    assert len(sigstore.entries) == 1


def test_without_the_log_nothing_is_written(run: Run, sigstore: Sigstore) -> None:
    sigstore.fail("log", 503, times=4)
    with pytest.raises(Transient):
        run.sign(FILES)
    assert not run.path.exists()


def test_a_job_without_an_identity_signs_nothing(run: Run, sigstore: Sigstore) -> None:
    sigstore.fail("authority", 403)
    with pytest.raises(Denied):
        run.sign(FILES)
    assert not run.path.exists()


def test_github_shows_it(run: Run, github: GitHubDouble) -> None:
    made = run.publish(FILES, github)
    assert made.url == "https://github.com/acme/widgets/attestations/1001"
    assert made.note == ""
    assert github.attestations == [json.loads(run.path.read_bytes())]


@pytest.mark.parametrize(
    ("status", "cure"),
    [
        (401, "`forge-token` has to be a token of this GitHub"),
        (403, "Give the job the permission `attestations: write`. For private repositories"),
        (404, "Give the job the permission `attestations: write`. A GitHub Enterprise Server"),
        (422, "what the test wants."),
    ],
)
def test_what_github_refuses_is_a_note_with_its_cure(
    run: Run, github: GitHubDouble, status: int, cure: str
) -> None:
    """The release is as good as without."""
    refuse(github, status)
    made = run.publish(FILES, github)
    assert made.note.startswith(HINDERED)
    assert f"HTTP {status} what the test wants" in made.note
    assert cure in made.note
    assert made.url == ""
    assert len(github.asked) == 1


def test_a_job_that_may_not_write_attestations_is_told_so(run: Run, github: GitHubDouble) -> None:
    github.read_only = True
    made = run.publish(FILES, github)
    assert "Resource not accessible by integration" in made.note
    assert "Give the job the permission `attestations: write`." in made.note


def test_an_outage_of_github_is_waited_out(run: Run, github: GitHubDouble) -> None:
    refuse(github, 502, 500, 429, retry_after="0")
    assert run.publish(FILES, github).url
    assert len(github.asked) == 4


def test_a_long_outage_of_github_is_a_note(run: Run, github: GitHubDouble) -> None:
    refuse(github, *[503] * 9)
    made = run.publish(FILES, github)
    assert "HTTP 503" in made.note
    assert made.note.endswith("Run the job again: what is signed is kept, and sent.")
    assert len(github.asked) == 4
    github.failing = []
    assert run.publish(FILES, github).note == ""


def test_too_many_requests_are_waited_out(run: Run, github: GitHubDouble) -> None:
    refuse(github, 403, retry_after="0")
    assert run.publish(FILES, github).url


def test_what_is_sent_again_is_not_signed_again(
    run: Run, github: GitHubDouble, sigstore: Sigstore
) -> None:
    refuse(github, 403)
    run.publish(FILES, github)
    assert run.publish(FILES, github).url
    assert len(sigstore.entries) == 1


def test_of_several_none_is_passed_over_in_silence(
    run: Run, github: GitHubDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(release_statement, "MAX_SUBJECTS", 2)
    refuse(github, 422)
    made = run.publish(FILES, github)
    assert len(github.attestations) == 1
    assert made.note.startswith(HINDERED)


def test_the_token_goes_to_no_other_place_than_https(run: Run, github: GitHubDouble) -> None:
    """R34"""
    made = run.publish(FILES, github, api="http://api.elsewhere.example")
    assert "GITHUB_API_URL" in made.note
    assert "must be https://" in made.note
    assert github.asked == []


def test_without_a_token_nothing_is_sent(run: Run, github: GitHubDouble) -> None:
    made = run.publish(FILES, github, token="")
    assert "there is no token" in made.note
    assert github.asked == []


def test_a_note_holds_no_secret(run: Run, github: GitHubDouble) -> None:
    """R34"""
    made = run.publish(FILES, github, token="ghp_wrong")
    assert "Bad credentials" in made.note
    assert "ghp_wrong" not in made.note


@pytest.mark.parametrize("page", ["", "[]", '{"attestations": {}}', "{", '{"id": []}'])
def test_a_strange_answer_of_github_hinders_nobody(
    run: Run, github: GitHubDouble, page: str
) -> None:
    run.publish(FILES, github)
    github.strange = page.encode()
    made = run.publish(FILES, github)
    assert (made.note, made.url) == ("", "https://github.com/acme/widgets/attestations")


def test_what_github_has_of_an_earlier_run_is_not_sent_again(
    run: Run, github: GitHubDouble
) -> None:
    first = run.publish(FILES, github)
    assert not first.kept
    again = run.publish(FILES, github)
    assert again.kept
    assert (again.note, again.url) == ("", "https://github.com/acme/widgets/attestations")
    assert len(github.attestations) == 1
    assert [request.partition(" ")[0] for request in github.asked] == ["POST", "GET"]


def test_what_an_earlier_run_signed_and_could_not_send_is_sent(
    run: Run, github: GitHubDouble, sigstore: Sigstore
) -> None:
    run.sign(FILES)
    made = run.publish(FILES, github)
    assert (len(sigstore.entries), len(github.attestations)) == (1, 1)
    assert made.url == "https://github.com/acme/widgets/attestations/1001"


def test_what_another_workflow_has_sent_about_the_same_files_counts_for_nothing(
    run: Run, github: GitHubDouble, sigstore: Sigstore
) -> None:
    sigstore.become("acme/widgets", "other.yml")
    run.publish(FILES, github)
    sigstore.become("acme/widgets")
    run.sign(FILES)
    assert run.publish(FILES, github).kept
    assert len(github.attestations) == 2
