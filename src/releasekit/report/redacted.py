"""Takes the secrets out of all that is shown and kept of a run, as the last step before that."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_type_hints

from msgspec import Struct, structs

from releasekit.fields import Mark
from releasekit.text.escape import redact_urls

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T", bound=Struct)


class Redacted(Struct, frozen=True):
    """`redact` takes the secrets out of a text."""

    redact: Callable[[str], str]

    def text(self, text: str) -> str:
        """Also without what may be one in a URL: its user, its query."""
        return self.redact(redact_urls(text))

    def clean(self, value: T) -> T:
        """`value` without secrets in any text that it holds, as the marks of its fields say."""
        changed: dict[str, Any] = {}
        for name, links in _list_texts(type(value)).items():
            before = getattr(value, name)
            if before and (after := self._clean(before, links=links)) is not before:
                changed[name] = after
        return structs.replace(value, **changed) if changed else value

    def _clean(self, value: Any, *, links: bool) -> Any:
        clean = value
        if isinstance(value, str):
            clean = self.redact(value) if links else self.text(value)
        elif isinstance(value, tuple):
            clean = tuple(self._clean(each, links=links) for each in value)
        elif isinstance(value, Mapping):
            clean = {key: self._clean(each, links=links) for key, each in value.items()}
        elif isinstance(value, Struct):
            clean = self.clean(value)
        return value if clean == value else clean


@cache
def _list_texts(kind: type) -> Mapping[str, bool]:
    """The fields of a value that hold texts to redact, and whether links in them stay whole."""
    return {
        name: Mark.LINKS in marks
        for name, hint in get_type_hints(kind, include_extras=True).items()
        if _has_text(hint) and Mark.IDENTITY not in (marks := getattr(hint, "__metadata__", ()))
    }


def _has_text(hint: Any) -> bool:
    if isinstance(hint, type) and issubclass(hint, Struct):
        return bool(_list_texts(hint))
    return hint is str or any(map(_has_text, get_args(hint)))
