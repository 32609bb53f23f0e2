"""Changed copies of values, and what the annotation of a field says besides its type."""

from enum import Enum, auto
from typing import TYPE_CHECKING, Annotated, Any

if TYPE_CHECKING:
    from dataclasses import replace as replace  # noqa: PLC0414 (mypy checks its changes)
else:

    def replace(value: Any, /, **changes: Any) -> Any:
        return value.__replace__(**changes)


class Mark(Enum):
    """Of a text without a mark, only what is public is shown and kept: no secrets, and of a URL
    neither its user nor its query.
    """

    IDENTITY = auto()  # stays as it is, since registries, states and other jobs know it so
    LINKS = auto()  # without secrets, but a URL stays whole, for people to follow
    SINCE = auto()  # results of earlier versions lack it


Identity = Annotated[str, Mark.IDENTITY]
Links = Annotated[str, Mark.LINKS]
