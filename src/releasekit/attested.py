"""What is signed about where files come from, and what keeps it from being so, as values."""

from pathlib import Path
from typing import Final

from msgspec import Struct

from releasekit.fields import Identity, Links

# The log of Sigstore's public instance has a page for people.
# https://docs.sigstore.dev/logging/overview/
_PUBLIC_LOG: Final = "https://rekor.sigstore.dev"
_SEARCH: Final = "https://search.sigstore.dev/"
# The release statement, beside the results; one bundle a line, as `gh attestation verify --bundle`
# reads them.
RELEASE_STATEMENT: Final = "provenance.jsonl"
# How its name ends on the page of a release, where scanners look for it.
# https://github.com/ossf/scorecard/blob/v5.5.0/probes/releasesHaveProvenance/impl.go
ATTACHED_STATEMENT: Final = ".intoto.jsonl"


# How a plan ends of which nothing is left without.
COMPLETE: Final = "all files in the release statement"


def bundle_name(filename: str) -> str:
    """What the bundle of a file is called, beside it, as Sigstore's own tools call it.

    https://docs.sigstore.dev/about/bundle/
    """
    return f"{filename}.sigstore.json"


def unfinished_name(filename: str) -> str:
    """What a run that is killed while it writes the bundle leaves."""
    return f".{bundle_name(filename)}.tmp"


class Attestation(Struct, frozen=True, kw_only=True):
    """A Sigstore bundle about one file, or about several, lies at `path`, and `sha256` (hex) is its
    own digest; the transparency log at `log_url` has it as entry `log_index`.
    """

    log_index: int
    log_url: Links
    sha256: Identity
    path: Path

    @property
    def link(self) -> str:
        """Where the log shows the entry."""
        log = self.log_url.rstrip("/")
        if log == _PUBLIC_LOG:
            return f"{_SEARCH}?logIndex={self.log_index}"
        return f"{log}/api/v1/log/entries?logIndex={self.log_index}"


class Obstacle(Struct, frozen=True, kw_only=True):
    """Why something cannot be attested: `condition` is a clause, "this job has no `id-token: write`
    permission", and `cure` a sentence that says what to change.
    """

    condition: str
    cure: str

    def __str__(self) -> str:
        return f"{self.condition}. {self.cure}"


class ReleaseStatement(Struct, frozen=True, kw_only=True):
    """The attestations over all files of a release, `subjects` of them, which lie in the JSON lines
    at `path`; `kept` where an earlier run has signed them. `url` is where GitHub shows them, and
    `note` says why it does not; each is empty where there is nothing to say.
    """

    path: Path
    subjects: int
    url: str = ""
    note: str = ""
    attestations: tuple[Attestation, ...]
    kept: bool = False
