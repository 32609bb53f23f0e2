"""Text for acme."""

from acme_core import greeting


def loud(name: str) -> str:
    return greeting(name).upper()
