"""Where a request may go: which URLs are safe, and which have the same origin."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.request import getproxies, proxy_bypass

import httpx

from releasekit.errors import ConfigError
from releasekit.problems import Problem
from releasekit.text.escape import clip, redact_urls, visible

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

MAX_PORT: Final = 65_535


def require_safe(url: str, *, name: str, insecure: Collection[str] = ()) -> httpx.URL:
    """Parse `url`, which must be one that credentials may go to: https, or http to this machine and
    to hosts that the user calls `insecure`.

    Raises ConfigError that names the input `name` and holds no credentials.
    """
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise ConfigError(f"{name}: not a URL ({error})", problem=Problem.ADDRESS) from error
    if not has_port(parsed):
        raise ConfigError(
            f"{name}: {parsed.port} is not a port: they end at {MAX_PORT}", problem=Problem.ADDRESS
        )
    if parsed.userinfo:
        raise ConfigError(
            f"{name}: a URL with credentials in it",
            hint="Give them in the environment (RELEASEKIT_…_TOKEN), never in a URL.",
            problem=Problem.SECRET_IN_THE_OPEN,
        )
    if not is_safe(parsed) and not is_insecure(parsed, insecure):
        shown = clip(visible(redact_urls(url)), 200)
        host = parsed.raw_host.decode("ascii") if parsed.scheme == "http" else ""
        cure = f"If it is in your own network, name it: `insecure-hosts: {host}`."
        raise ConfigError(
            f"{name} = {shown}: must be https:// (http:// only for localhost)",
            hint=cure if host else "",
            problem=Problem.ADDRESS,
        )
    return parsed


def is_insecure(url: httpx.URL, hosts: Collection[str]) -> bool:
    """Whether the user has named the host, with its port or without, as one to reach by http."""
    place = url.netloc.decode("ascii")
    host = place.removesuffix(f":{url.port}")
    return url.scheme == "http" and not {host, f"{host}:{url.port or 80}"}.isdisjoint(hosts)


def has_port(url: httpx.URL) -> bool:
    """Whether its port, if it names one, exists: neither httpx nor the socket looks."""
    return url.port is None or 0 <= url.port <= MAX_PORT


def is_safe(url: httpx.URL) -> bool:
    # As ASCII: httpx raises for some of the names that it would show in Unicode.
    host = url.raw_host.decode("ascii")
    return bool(host) and (url.scheme == "https" or (url.scheme == "http" and _is_loopback(host)))


def same_origin(one: httpx.URL | str, other: httpx.URL | str) -> bool:
    return _origin(httpx.URL(one)) == _origin(httpx.URL(other))


def _origin(url: httpx.URL) -> tuple[str, bytes, int | None]:
    return url.scheme, url.raw_host, url.port or {"https": 443, "http": 80}.get(url.scheme)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Proxy(NamedTuple):
    """Its address without credentials, and the variable that holds it."""

    address: str
    variable: str


def proxy_of(url: httpx.URL) -> Proxy | None:
    """The proxy that a request goes through, from where httpx takes it too.

    https://www.python-httpx.org/environment_variables/#proxies
    """
    for proxy in _proxies(url.scheme, "all"):
        return None if proxy_bypass(url.host) else proxy
    return None


def check_proxies() -> None:
    """Raises ConfigError for the first whose port does not exist."""
    for address, variable in _proxies("http", "https", "all"):
        if not has_port(url := httpx.URL(address)):
            raise ConfigError(
                f"{variable} = {clip(visible(address), 200)}: {url.port} is not a port: they end "
                f"at {MAX_PORT}",
                hint=f"Write the address of an HTTP proxy: {variable}=http://proxy.example:3128",
                problem=Problem.NETWORK_SETTINGS,
            )


def _proxies(*schemes: str) -> Iterator[Proxy]:
    addresses = getproxies()
    for scheme in schemes:
        if address := addresses.get(scheme):
            whole = httpx.URL(address if "://" in address else f"http://{address}")
            yield Proxy(str(whole.copy_with(userinfo=b"")), f"{scheme.upper()}_PROXY")


def describe_request(request: httpx.Request) -> str:
    """Method and URL as people write it, without the query and userinfo, which may hold secrets."""
    url = request.url.copy_with(query=None, fragment=None, userinfo=b"")
    return f"{request.method} {str(url).replace('%2f', '/')}"
