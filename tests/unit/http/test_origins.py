from __future__ import annotations

import httpx
import pytest

from releasekit.errors import ConfigError
from releasekit.http.origins import is_safe, require_safe, same_origin


@pytest.mark.parametrize(
    "url",
    [
        "https://registry.example/legacy/",
        "http://127.0.0.1:3141/root/dev/",
        "http://127.8.9.1/",
        "http://localhost:8080/",
        "http://[::1]:8080/",
    ],
)
def test_https_and_this_machine_are_safe(url: str) -> None:
    """R37"""
    assert str(require_safe(url, name="pypi-registry")) == url


@pytest.mark.parametrize(
    "url",
    [
        "http://registry.example/",
        "http://127.0.0.1.evil.example/",
        "http://localhost.evil.example/",
        "ftp://localhost/",
        "file:///etc/passwd",
        "https:///legacy/",
        "registry.example/legacy/",
        "",
        "https://[::1",
        "https://bad\x00host/",
        "https://registry.example:99999/",
    ],
)
def test_everything_else_is_refused_by_name(url: str) -> None:
    """R37"""
    with pytest.raises(ConfigError, match=r"^pypi-registry\b") as caught:
        require_safe(url, name="pypi-registry")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "hosts", "allowed"),
    [
        ("http://packages.lan/simple/", {"packages.lan"}, True),
        ("http://packages.lan:8081/", {"packages.lan"}, True),
        ("http://packages.lan:8081/", {"packages.lan:8081"}, True),
        ("http://packages.lan/", {"packages.lan:80"}, True),
        ("http://PACKAGES.lan/", {"packages.lan"}, True),
        ("http://[fd00::1]:8081/", {"[fd00::1]"}, True),
        ("http://packages.lan/", {"packages.lan:8081"}, False),
        ("http://a.packages.lan/", {"packages.lan"}, False),
        ("http://packages.lan.evil.example/", {"packages.lan"}, False),
        ("ftp://packages.lan/", {"packages.lan"}, False),
    ],
)
def test_a_host_that_the_user_names_needs_no_encryption(
    url: str, hosts: set[str], *, allowed: bool
) -> None:
    """R37"""
    if allowed:
        assert str(require_safe(url, name="npm-registry", insecure=hosts)) == url.lower()
        return
    with pytest.raises(ConfigError, match="must be https") as caught:
        require_safe(url, name="npm-registry", insecure=hosts)
    assert ("insecure-hosts: " in caught.value.hint) is url.startswith("http:")


@pytest.mark.parametrize("url", ["https://me:hunter2@registry.example/", "https://me@host/"])
def test_credentials_in_a_url_are_refused_and_not_shown(url: str) -> None:
    """R34"""
    with pytest.raises(ConfigError, match="credentials in it") as caught:
        require_safe(url, name="pypi-registry")
    assert "hunter2" not in f"{caught.value} {caught.value.hint}"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("https://a.example/x", "https://a.example:443/y", True),
        ("https://A.example/", "https://a.example/", True),
        ("https://a.example/", "https://a.example:8443/", False),
        ("https://a.example/", "http://a.example/", False),
        ("https://a.example/", "https://b.example/", False),
        ("http://127.0.0.1:1/", "http://127.0.0.1:2/", False),
    ],
)
def test_an_origin_is_scheme_host_and_port(one: str, other: str, same: bool) -> None:
    """R37"""
    assert same_origin(httpx.URL(one), httpx.URL(other)) is same


def test_a_name_that_httpx_cannot_show_is_compared_all_the_same() -> None:
    """R37"""
    odd = httpx.URL("https://xn--a/")
    assert same_origin(odd, odd)
    assert not same_origin(odd, httpx.URL("https://registry.example/"))
    assert not is_safe(httpx.URL("http://xn--a/"))
