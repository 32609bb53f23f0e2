"""What a run still needs when builds have begun is loaded before, so that what they may change is
not.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from releasekit.config.config import PlanConfig

# Libraries import these where they first need them: httpcore with the first request, the others
# with the first archive, name of a host, and time, of that kind.
_ANY_RUN: Final = (
    "anyio._backends._asyncio",
    "anyio._core._resources",
    "anyio._core._sockets",
    "anyio._core._streams",
    "anyio._core._tasks",
    "anyio._core._testing",
    "anyio.lowlevel",
    "anyio.streams.tls",
    "anyio.to_thread",
    "httpcore._backends.anyio",
    "_strptime",
    "bz2",
    "concurrent.futures.thread",
    "encodings.cp437",
    "encodings.idna",
    "encodings.punycode",
    "encodings.utf_16",
    "encodings.utf_16_le",
    "encodings.utf_8_sig",
    "gzip",
    "lzma",
    "releasekit.ecosystems.directory",
    "releasekit.report.summary",
)
_ANNOUNCED: Final = ("releasekit.announce.post_release",)
_RELEASE: Final = ("releasekit.report.page",)
_SIGNED: Final = (
    "cryptography.hazmat.backends.openssl.backend",
    "releasekit.http.github",
    "releasekit.provenance.bundle",
    "releasekit.provenance.certificate",
    "releasekit.provenance.instance",
    "releasekit.provenance.release_statement",
    "releasekit.provenance.signer",
    "releasekit.provenance.statement",
)


def import_from_top(name: str) -> None:
    """Package by package: who asks for a module holds its lock while its package is loaded. Where
    another thread is loading that package, and comes to the module, both would wait for each other.
    """
    parts = name.split(".")
    for count in range(1, len(parts) + 1):
        import_module(".".join(parts[:count]))


def load_everything(config: PlanConfig, *, signs: bool) -> None:
    """All that `config` may need; blocks for some tens of milliseconds. `signs` says whether the
    job has an identity to sign with.
    """
    releases = config.mode == "publish"
    signed = _SIGNED if signs and config.attestations != "off" else ()
    announced = _ANNOUNCED if config.tag or config.announce else ()
    for name in (*_ANY_RUN, *(_RELEASE if releases else ()), *announced, *signed):
        import_from_top(name)
    if releases:  # it reads its files once, and keeps what it has read
        import_module("releasekit.report.page.assets").policy()
