"""JSON from elsewhere: a registry, a manifest, a file of another job."""

from __future__ import annotations

import json
import re
from typing import Any, Final, NoReturn

# Half of a pair that stands for one character can only come from such an escape; most texts have
# none, and need not be gone over.
_HALF: Final = re.compile(r"\\u[dD][89a-fA-F]")


def parse_json(text: str | bytes) -> Any:
    """Raises ValueError for all that cannot be used: no JSON, NaN, not UTF-8, nested too deeply, an
    integer of thousands of digits.

    Halves of surrogate pairs become U+FFFD: no file and no stream takes them.
    https://www.rfc-editor.org/rfc/rfc8259#section-8.2
    """
    # json.loads takes bytes too, but lets encoded halves through.
    whole = text.decode() if isinstance(text, bytes) else text
    try:
        document = json.loads(whole, parse_constant=_refuse)
        return _mended(document) if _HALF.search(whole) else document
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    except ValueError as error:
        # Python's own words name a function that turns its limit off.
        if "integer string conversion" in str(error):
            raise ValueError("it holds an integer of thousands of digits") from error
        raise


def _refuse(constant: str) -> NoReturn:
    # Python reads NaN and Infinity, JSON has neither: https://www.rfc-editor.org/rfc/rfc8259#section-6
    raise ValueError(f"{constant} is not JSON")


def _mended(value: object) -> object:
    match value:
        case str():
            return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        case list():
            return [_mended(item) for item in value]
        case dict():
            return {_mended(key): _mended(item) for key, item in value.items()}
        case _:
            return value
