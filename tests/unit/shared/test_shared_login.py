"""What is said where nothing is there to log in with, or must not be used; each ecosystem's own
words are its tests'.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, cast

import httpx
import pytest

import fakes
from releasekit.config.values import Url
from releasekit.ecosystems.maven import repository
from releasekit.ecosystems.shared.login import Login, TokenAuth, TokenInput, choose_login
from releasekit.errors import MissingCredentials, UnnamedRegistry
from releasekit.fields import replace
from releasekit.host.ci import CI
from releasekit.http.credentials import Credentials, Secret, snapshot
from releasekit.http.identity import GITHUB, GITLAB, NO_PERMISSION

if TYPE_CHECKING:
    from pathlib import Path

    from releasekit.config.config import Config
    from releasekit.config.values import TrustedPublishing
    from releasekit.ecosystems.interface import Services
    from releasekit.host.process import Processes

IDENTITY = {
    "GITHUB_ACTIONS": "true",
    "ACTIONS_ID_TOKEN_REQUEST_URL": "https://token.actions.example/get",
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "runner-token",
}
PLACE = Url("https://r.example/", "releasekit.toml: pypi-registry")


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
    wanted = TokenInput(ecosystem=ecosystem, registry=Url("https://r.example/"), kind="a token")
    error = wanted.missing(CI.of(environment), NO_PERMISSION)
    where = f"{ecosystem}: no credentials for https://r.example/"
    assert str(error) == f"{where}: this run is for a pull request from a fork"
    assert "tags: ['v*']" in error.hint
    assert "GitHub" not in error.hint  # Gitea and Forgejo run the same jobs
    assert "is not set" in str(wanted.missing(CI.of(environment), None))


@pytest.mark.parametrize("environ", [{"RELEASEKIT_PYPI_TOKEN": "secret"}, IDENTITY])
def test_what_only_a_file_names_gets_no_credential(tmp_path: Path, environ: dict[str, str]) -> None:
    """R37: neither a token nor what would be made from an identity, to read or to upload."""
    wanted = TokenInput(ecosystem="pypi", registry=PLACE, kind="a token")
    config, trusted = fakes.config(tmp_path), TokenAuth(Secret("exchanged"))
    with pytest.raises(UnnamedRegistry, match=r"releasekit\.toml: pypi-registry names https://r\."):
        asyncio.run(_use(config, wanted, environ, trusted))
    named = replace(wanted, registry=Url(PLACE.text))
    assert asyncio.run(_use(config, named, environ, trusted))
    nothing = _choose("auto", config, {}, wanted, None)
    with pytest.raises(MissingCredentials):
        nothing.check()


async def _use(
    config: Config, wanted: TokenInput, environ: dict[str, str], trusted: TokenAuth
) -> Secret | None:
    login = _choose("auto", config, environ, wanted, trusted)
    if wanted.registry.only_in:
        assert login.for_reading() is None
        with pytest.raises(UnnamedRegistry):
            login.check()
    return await login.get(fakes.package("a"))


def _choose(
    wish: TrustedPublishing,
    config: Config,
    environ: dict[str, str],
    wanted: TokenInput,
    trusted: TokenAuth | None,
) -> Login:
    services = _services(config, environ)
    known = (GITHUB, GITLAB)
    return choose_login(wish, services, wanted, trusted=trusted, audiences=["r"], issuers=known)


def _services(config: Config, environ: dict[str, str]) -> Services:
    taken = snapshot(environ)
    credentials = Credentials(taken, mask=lambda _: None)
    processes = cast("Processes", None)
    return fakes.make_services(config, httpx.AsyncClient(), processes, credentials)


@pytest.mark.parametrize("ecosystem", ["pypi", "npm", "cargo"])
def test_only_jobs_of_github_are_told_of_a_permission(tmp_path: Path, ecosystem: str) -> None:
    """R38: a registry knows no job of another server that runs actions, as Gitea does."""
    config, trusted = fakes.config(tmp_path), TokenAuth(Secret("exchanged"))
    wanted = TokenInput(ecosystem=ecosystem, registry=Url("https://r.example/"), kind="a token")

    def said(server: str, wish: TrustedPublishing = "auto") -> str:
        environ = {"GITHUB_ACTIONS": "true", "GITHUB_SERVER_URL": server}
        chosen = _choose(wish, config, environ, wanted, trusted)
        with pytest.raises(MissingCredentials) as caught:
            chosen.check()
        return f"{caught.value} {caught.value.hint}"

    assert "id-token: write" in said("https://github.com")
    elsewhere = said("https://git.example")
    assert "id-token" not in elsewhere
    assert f"Set the input `{ecosystem}-token` to a token" in elsewhere
    assert elsewhere.endswith("works in jobs of github.com and gitlab.com only.")
    assert "id-token: write" in said("https://git.example", "always")


def test_a_password_goes_where_an_input_says() -> None:
    """R37"""
    login = repository.MavenLogin(PLACE, "ci", Secret("hunter2"))
    assert login.header() == login.header("Bearer") == {}
    with pytest.raises(UnnamedRegistry, match="no input does") as caught:
        login.check()
    assert "`maven-registry: https://r.example/`" in caught.value.hint
    assert replace(login, registry=Url(PLACE.text)).header()
    with pytest.raises(MissingCredentials):
        replace(login, password=None).check()
