"""Pages for acme."""

from acme_core import greeting


def page(name: str) -> str:
    return f"<h1>{greeting(name)}</h1>"
