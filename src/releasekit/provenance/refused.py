"""Why an attestation is not believed."""

from __future__ import annotations


class NotVerified(ValueError):
    """`str(error)` is a sentence without a full stop, about "its" statement, certificate or log
    entry: what is wrong with it.
    """
