"""Lengths, measured as the crate acme-measure does."""

MILLIMETRES = {"mm": 1, "cm": 10, "m": 1000}


def length(text: str) -> int | None:
    """The length that `text` says, like "2 cm", in millimetres."""
    count, _, unit = text.partition(" ")
    if unit not in MILLIMETRES or not count.isdigit():
        return None
    return int(count) * MILLIMETRES[unit]
