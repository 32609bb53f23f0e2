"""What a registry's packument says, and how long that may be relied on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from releasekit.ecosystems.npm import document
from releasekit.ecosystems.shared.documents import table_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    import httpx

# Another job may publish a version meanwhile, and move `latest`. npmjs.com's own caches keep a
# packument for five minutes, so that nobody who asks knows any better.
# https://github.com/npm/registry/blob/main/docs/responses/package-metadata.md
REUSED_FOR_S: Final = 60.0
_MAX_ETAG_CHARS: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Packument:
    """As it was asked for at `asked_s`, by the clock of the loop; `exists` where there is such a
    package, and `aged` where a cache on the way had kept it.
    """

    asked_s: float
    exists: bool = False
    tags: Mapping[str, Any] = field(default_factory=dict)
    etag: str = ""
    aged: bool = False
    entries: Mapping[str, Any] = field(default_factory=dict)

    @property
    def latest(self) -> str:
        return str(self.tags.get(document.LATEST, ""))

    @classmethod
    def from_response(cls, response: httpx.Response, version: str, *, asked_s: float) -> Packument:
        """Of its entries only that of `version` is kept. Blocks; raises ValueError."""
        found = document.packument_of(response.content, version)
        etag = response.headers.get("ETag", "")
        return cls(
            asked_s=asked_s,
            exists=True,
            tags=table_in(found, "dist-tags"),
            etag=etag if len(etag) <= _MAX_ETAG_CHARS else "",
            aged=is_aged(response),
            entries=table_in(found, "versions"),
        )


def is_aged(response: httpx.Response) -> bool:
    """Whether a cache on the way had kept it: https://www.rfc-editor.org/rfc/rfc9111#section-5.1"""
    return bool(response.headers.get("Age", "0").strip() != "0")
