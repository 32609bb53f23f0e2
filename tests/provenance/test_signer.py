"""Signing, with everything that can go wrong on the way: a package is then not sent, and is told so
in words that name a way out.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import ssl
import threading
import time
from typing import TYPE_CHECKING

import pytest

from provenance import official, signing
from provenance.oidc import RUNNER_TOKEN
from releasekit.aio import GroupClosed
from releasekit.errors import ConfigError, Denied, PackageError, Rejected, Transient
from releasekit.http.traffic import record_pauses
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from provenance.sigstore_double import Answer, Fault, Request, Service, Sigstore
    from releasekit.http.traffic import Pause
    from releasekit.provenance.bundle import Bundle
    from releasekit.provenance.signer import Signer

STATEMENT = signing.about(b"a wheel")


def failure(sigstore: Sigstore) -> PackageError:
    """Of one attempt, which has to fail."""

    async def main() -> PackageError:
        async with signing.signer(sigstore) as signer:
            with pytest.raises(PackageError) as caught:
                await signer.sign(STATEMENT)
            return caught.value

    return asyncio.run(main())


def run(
    sigstore: Sigstore,
    work: Callable[[Signer], Awaitable[list[Bundle]]],
    clock: Callable[[], float] = time.time,
) -> list[Bundle]:
    async def main() -> list[Bundle]:
        async with signing.signer(sigstore, clock=clock) as signer:
            return await work(signer)

    return asyncio.run(main())


def test_the_job_is_asked_for_once(sigstore: Sigstore) -> None:
    async def main() -> None:
        async with signing.signer(sigstore) as signer:
            one, other = await asyncio.gather(signer.job(), signer.job())
            assert one is other
            assert one.repository_url == "https://github.com/acme/widgets"
            assert one.visibility == "public"

    asyncio.run(main())
    assert sigstore.issuer.audiences == ["sigstore"]


def test_one_certificate_serves_all_who_sign(sigstore: Sigstore) -> None:
    async def work(signer: Signer) -> list[Bundle]:
        statements = [signing.about(bytes([number])) for number in range(12)]
        return await asyncio.gather(*map(signer.sign, statements))

    bundles = run(sigstore, work)
    assert len({bundle.certificate for bundle in bundles}) == 1
    assert len(sigstore.seen("authority")) == len(sigstore.seen("tokens")) == 1
    assert sorted(bundle.log_index for bundle in bundles) == list(range(12))
    assert {entry.payload for entry in sigstore.entries} == {each.payload for each in bundles}


def test_secrets_are_masked_and_go_to_whom_they_are_for(sigstore: Sigstore) -> None:
    """R29: the token of the runner to GitHub, the job's to the authority, neither to the log."""
    masked: list[str] = []

    async def main() -> None:
        async with signing.signer(sigstore, masked=masked) as signer:
            await signer.sign(STATEMENT)

    asyncio.run(main())
    tokens, authority, log = (
        sigstore.seen("tokens"),
        sigstore.seen("authority"),
        sigstore.seen("log"),
    )
    assert tokens[0].headers["authorization"] == f"Bearer {RUNNER_TOKEN}"
    id_token = authority[0].headers["authorization"].removeprefix("Bearer ")
    assert {RUNNER_TOKEN, id_token} <= set(masked)
    assert "authorization" not in log[0].headers
    assert id_token.encode() not in authority[0].body
    assert all(b"PRIVATE KEY" not in each.body for each in (*authority, *log))


def test_a_certificate_is_renewed_before_it_ends(sigstore: Sigstore) -> None:
    """A release may take longer than the ten minutes that a certificate is valid for."""
    clock = [time.time()]

    async def work(signer: Signer) -> list[Bundle]:
        first = await signer.sign(signing.about(b"1"))
        clock[0] += 530  # of 600, in which 60 are left at 540
        second = await signer.sign(signing.about(b"2"))
        clock[0] += 20
        third = await signer.sign(signing.about(b"3"))
        return [first, second, third]

    first, second, third = run(sigstore, work, lambda: clock[0])
    assert first.certificate == second.certificate != third.certificate
    for bundle in (first, second, third):
        assert official.python(sigstore, bundle) == bundle.payload


def test_an_old_certificate_signs_once(sigstore: Sigstore) -> None:
    """One with half a minute left is of use to whoever waits for it, and to nobody after that."""
    sigstore.authority.age_s = 570

    async def work(signer: Signer) -> list[Bundle]:
        return [await signer.sign(signing.about(b"1")), await signer.sign(signing.about(b"2"))]

    first, second = run(sigstore, work)
    assert first.certificate != second.certificate
    assert official.python(sigstore, second) == second.payload


def test_what_the_log_takes_too_late_is_signed_again(sigstore: Sigstore) -> None:
    """Nobody accepts a signature that was logged after its certificate had ended."""
    sigstore.log.shift_s = 700

    async def work(signer: Signer) -> list[Bundle]:
        with pytest.raises(Transient, match="when its certificate was not valid") as caught:
            await signer.sign(STATEMENT)
        assert not caught.value.ambiguous
        sigstore.log.shift_s = 0
        return [await signer.sign(STATEMENT)]

    (bundle,) = run(sigstore, work)
    assert len(sigstore.seen("authority")) == 2
    assert official.python(sigstore, bundle) == STATEMENT


def test_two_who_were_too_late_get_one_certificate(sigstore: Sigstore) -> None:
    sigstore.log.shift_s = 700

    async def work(signer: Signer) -> list[Bundle]:
        late = map(signer.sign, (signing.about(b"1"), signing.about(b"2")))
        failed = await asyncio.gather(*late, return_exceptions=True)
        assert [type(each) for each in failed] == [Transient, Transient]
        sigstore.log.shift_s = 0
        again = map(signer.sign, (signing.about(b"1"), signing.about(b"2")))
        return await asyncio.gather(*again)

    run(sigstore, work)
    assert len(sigstore.seen("authority")) == 2


@pytest.mark.parametrize("service", ["tokens", "authority", "log"])
@pytest.mark.parametrize("fault", [408, 429, 500, 502, 503, "lost"])
def test_trouble_that_passes_is_worth_another_attempt(
    sigstore: Sigstore, service: Service, fault: Fault
) -> None:
    """R19: it is never ambiguous, since nothing has been sent to a registry."""
    sigstore.fail(service, fault)

    async def work(signer: Signer) -> list[Bundle]:
        with pytest.raises(Transient) as caught:
            await signer.sign(STATEMENT)
        error = caught.value
        assert not error.ambiguous
        assert error.problem is Problem.ATTESTATIONS_DOWN
        assert "`attestations: off`" in error.hint
        assert error.limited == (fault == 429)
        return [await signer.sign(STATEMENT)]

    (bundle,) = run(sigstore, work)
    assert official.python(sigstore, bundle) == STATEMENT


def test_a_log_that_was_asked_too_much_is_asked_at_its_pace(sigstore: Sigstore) -> None:
    sigstore.fail("log", 429)
    pauses: list[Pause] = []

    async def work(signer: Signer) -> list[Bundle]:
        with record_pauses(pauses):
            with pytest.raises(Transient, match="429"):
                await signer.sign(STATEMENT)
            return [await signer.sign(STATEMENT)]

    run(sigstore, work)
    assert [pause.cause for pause in pauses] == ["rate-limit"]


@pytest.mark.parametrize("service", ["tokens", "authority", "log"])
def test_a_service_that_never_answers_is_not_waited_for(
    sigstore: Sigstore, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hours pass between any two looks at the clock, once a service has its question."""
    sigstore.fail(service, "silent")
    hours = itertools.count(0, 3600)
    asked = threading.Event()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        time_s = loop.time

        def before(request: Request) -> None:
            if request.service == service:
                asked.set()
                loop.call_soon_threadsafe(bool)  # which wakes it

        sigstore.before = before
        async with signing.signer(sigstore) as signer:
            with monkeypatch.context() as patched:
                patched.setattr(loop, "time", lambda: time_s() + asked.is_set() * next(hours))
                with pytest.raises(Transient, match="Timeout") as caught:
                    await signer.sign(STATEMENT)
        assert not caught.value.ambiguous

    asyncio.run(main())
    assert [request.service for request in sigstore.requests][-1] == service


def test_an_entry_whose_answer_was_lost_is_found_again(sigstore: Sigstore) -> None:
    """The same statement gets the same signature, and the log says 409: it has that."""
    sigstore.fail("log", "lost")

    async def work(signer: Signer) -> list[Bundle]:
        with pytest.raises(Transient):
            await signer.sign(STATEMENT)
        return [await signer.sign(STATEMENT), await signer.sign(STATEMENT)]

    one, other = run(sigstore, work)
    assert len(sigstore.entries) == 1
    assert [request.method for request in sigstore.seen("log")] == [
        *("POST", "POST", "GET", "POST", "GET")
    ]
    for bundle in (one, other):
        assert bundle.log_index == 0
        assert official.python(sigstore, bundle) == STATEMENT


@pytest.mark.parametrize("service", ["tokens", "authority", "log"])
@pytest.mark.parametrize(("status", "kind"), [(400, Rejected), (401, Denied), (403, Denied)])
def test_a_no_is_final(
    sigstore: Sigstore, service: Service, status: int, kind: type[Rejected]
) -> None:
    sigstore.fail(service, status)
    error = failure(sigstore)
    assert type(error) is kind
    assert error.problem is Problem.NOT_ATTESTED
    assert f"HTTP {status} a fault that the test wants" in str(error)
    assert "`attestations: off`" in error.hint
    assert "registry" not in error.hint


def test_a_job_without_the_permission_is_told_so(sigstore: Sigstore) -> None:
    environment = {"GITHUB_ACTIONS": "true"}

    async def main() -> None:
        async with signing.signer(sigstore, environment=environment) as signer:
            for asked in (signer.job(), signer.sign(STATEMENT)):
                with pytest.raises(Denied, match="may not ask GitHub") as caught:
                    await asked
                assert "`id-token: write`" in caught.value.hint

    asyncio.run(main())
    assert not sigstore.requests


def test_an_address_that_is_not_safe_gets_no_token(sigstore: Sigstore) -> None:
    """R29: nor is it a failure of this package alone."""
    url = "http://token.example/get"
    environment = {**sigstore.environment, "ACTIONS_ID_TOKEN_REQUEST_URL": url}

    async def main() -> None:
        async with signing.signer(sigstore, environment=environment) as signer:
            with pytest.raises(ConfigError, match="ACTIONS_ID_TOKEN_REQUEST_URL"):
                await signer.sign(STATEMENT)

    asyncio.run(main())


def test_a_failure_is_shared_and_told_by_each(sigstore: Sigstore) -> None:
    """Eight who wait for one certificate make one request, and none of them changes the error of
    another.
    """
    sigstore.fail("authority", 503)

    async def main() -> list[BaseException | Bundle]:
        async with signing.signer(sigstore) as signer:
            statements = [signing.about(bytes([number])) for number in range(8)]
            asked = map(signer.sign, statements)
            failed = await asyncio.gather(*asked, return_exceptions=True)
            assert (await signer.sign(STATEMENT)).payload == STATEMENT
            return failed

    failed = asyncio.run(main())
    assert len(sigstore.seen("authority")) == 2
    assert {type(each) for each in failed} == {Transient}
    assert len({id(each) for each in failed}) == 8
    assert len({str(each) for each in failed}) == 1


def test_whoever_is_cancelled_leaves_the_certificate_to_the_others(sigstore: Sigstore) -> None:
    async def work(signer: Signer) -> list[Bundle]:
        asked = asyncio.Event()
        loop = asyncio.get_running_loop()
        held = asyncio.Event()

        def before(request: Request) -> None:
            if request.service == "authority":
                loop.call_soon_threadsafe(asked.set)
                asyncio.run_coroutine_threadsafe(held.wait(), loop).result()

        sigstore.before = before
        first = asyncio.ensure_future(signer.sign(signing.about(b"1")))
        second = asyncio.ensure_future(signer.sign(signing.about(b"2")))
        await asked.wait()
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        held.set()
        return [await second]

    (bundle,) = run(sigstore, work)
    assert len(sigstore.seen("authority")) == 1
    assert official.python(sigstore, bundle) == bundle.payload


def test_nothing_is_signed_once_it_is_closed(sigstore: Sigstore) -> None:
    async def main() -> None:
        async with signing.signer(sigstore) as signer:
            pass
        with pytest.raises(GroupClosed):
            await signer.sign(STATEMENT)

    asyncio.run(main())


def swapped(sigstore: Sigstore, service: Service, change: Callable[[bytes], bytes]) -> None:
    """Have a service answer otherwise, as a hostile one would, or one that is in between."""
    answers = sigstore._answer

    def changed(request: Request) -> Answer:
        answer = answers(request)
        if request.service == service:
            return type(answer)(answer.status, change(answer.body), answer.headers)
        return answer

    sigstore._answer = changed  # type: ignore[method-assign]


def nonsense(_: bytes) -> bytes:
    return b"<html>welcome to the hotel's network</html>"


def empty_object(_: bytes) -> bytes:
    return b"{}"


def deep(_: bytes) -> bytes:
    return b"[" * 100_000


@pytest.mark.parametrize("service", ["tokens", "authority", "log"])
@pytest.mark.parametrize("change", [nonsense, empty_object, deep])
def test_an_answer_that_is_none_is_told_as_that(
    sigstore: Sigstore, service: Service, change: Callable[[bytes], bytes]
) -> None:
    swapped(sigstore, service, change)
    error = failure(sigstore)
    assert isinstance(error, Transient | Rejected)
    assert error.problem in {Problem.ATTESTATIONS_DOWN, Problem.NOT_ATTESTED}


def test_a_certificate_for_another_key_is_refused(sigstore: Sigstore) -> None:
    """Whoever answers so could sign in our name."""
    signing.signed(sigstore, [STATEMENT])
    (foreign,) = sigstore.authority.issued
    pem = foreign.public_bytes(official.PEM).decode()
    chain = {"chain": {"certificates": [pem]}}
    swapped(
        sigstore,
        "authority",
        lambda _: json.dumps({"signedCertificateEmbeddedSct": chain}).encode(),
    )
    assert "a certificate for a key that is not ours" in str(failure(sigstore))


def test_the_entry_of_another_signature_is_refused(sigstore: Sigstore) -> None:
    """It would be of no use, and nobody would notice before the registry does."""
    signing.signed(sigstore, [signing.about(b"another wheel")])
    other = json.dumps(sigstore.log.shown(sigstore.entries[0])).encode()
    swapped(sigstore, "log", lambda _: other)
    assert "the entry of another signature" in str(failure(sigstore))


@pytest.mark.parametrize(
    "location",
    ["", "https://evil.example/api/v1/log/entries/0", "//evil.example/entries/0", "http://[::1"],
)
def test_an_entry_is_looked_for_in_its_own_log(sigstore: Sigstore, location: str) -> None:
    sigstore.fail("log", 409)
    answers = sigstore._failed

    def failed(fault: Fault | None) -> Answer | None:
        answer = answers(fault)
        return answer and type(answer)(answer.status, answer.body, (("Location", location),))

    sigstore._failed = failed  # type: ignore[method-assign]
    error = failure(sigstore)
    assert isinstance(error, Transient)
    assert "HTTP 409 without an address" in str(error)
    assert len(sigstore.seen("log")) == 1


def test_a_token_that_is_none_of_a_job_is_told_as_that(sigstore: Sigstore) -> None:
    del sigstore.claims["repository_visibility"]

    async def main() -> None:
        async with signing.signer(sigstore) as signer:
            with pytest.raises(Rejected, match="no usable claim repository_visibility") as caught:
                await signer.job()
            assert caught.value.problem is Problem.NOT_ATTESTED

    asyncio.run(main())


@pytest.mark.parametrize(
    ("part", "other"),
    [("06082a8648ce3d030107", "06082a8648ce3d030109"), ("a003020102", "a003020107")],
    ids=["curve", "version"],
)
def test_a_certificate_of_an_unknown_kind_is_none(
    sigstore: Sigstore, part: str, other: str
) -> None:
    """Which `cryptography` refuses with errors of its own."""

    def change(answer: bytes) -> bytes:
        document = json.loads(answer)
        chain = document["signedCertificateEmbeddedSct"]["chain"]["certificates"]
        der = ssl.PEM_cert_to_DER_cert(chain[0])
        chain[0] = ssl.DER_cert_to_PEM_cert(der.replace(bytes.fromhex(part), bytes.fromhex(other)))
        return json.dumps(document).encode()

    swapped(sigstore, "authority", change)
    assert "an answer without a certificate" in str(failure(sigstore))
