"""How long a registry takes to show what it has accepted: about as long for one package as for the
next, so that what was seen of one says when to look for another.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

# Below that, a first look at once costs next to nothing.
_WORTH_WAITING_S: Final = 0.5
# Looks are no closer together than this part of the time that is expected.
_STEP: Final = 0.03
# The first pause is this part of it.
_FIRST: Final = 0.25
# It may take less than it did: packages that were there at the first look move the next one ahead.
_EARLIER: Final = 0.8
# Multiples of it, modulo 1, are spread evenly, however many there are: several packages that went
# out together are looked for one after the other, and what is seen of one helps the rest.
_SPREAD: Final = 0.618034


@dataclass(slots=True)
class Lag:
    """Of one registry in one run: packages were not there `hidden_s` after their upload, and were
    `shown_s` after it, which is 0 while none has kept us waiting.
    """

    hidden_s: float = 0.0
    shown_s: float = 0.0
    _places: Iterator[float] = field(
        default_factory=lambda: (1.0 - n * _SPREAD % 1.0 for n in itertools.count())
    )

    @property
    def is_known(self) -> bool:
        return self.shown_s >= _WORTH_WAITING_S

    def first_pause_s(self, usual_s: float) -> float:
        """After a look at once: one that did not take as long as the others is soon found."""
        return max(usual_s, self.shown_s * _FIRST) if self.is_known else usual_s

    def pause_s(self, elapsed_s: float) -> float:
        """Until the next look at a package that was uploaded so long ago; 0 where that is longer
        than it should have taken.
        """
        if not self.is_known or elapsed_s >= self.shown_s:
            return 0.0
        since_s = max(elapsed_s, self.hidden_s)
        step_s = max((self.shown_s - since_s) * next(self._places), self.shown_s * _STEP)
        return since_s + step_s - elapsed_s

    def hidden(self, elapsed_s: float) -> None:
        """It was looked for so long after its upload, and not there."""
        if elapsed_s < self.shown_s:
            self.hidden_s = max(self.hidden_s, elapsed_s)

    def shown(self, elapsed_s: float, missed_s: float) -> None:
        """It was there, and last not there `missed_s` after its upload, 0 for never."""
        if missed_s >= self.shown_s or elapsed_s <= self.hidden_s:
            self.hidden_s, self.shown_s = missed_s, elapsed_s
            return
        self.shown_s = min(self.shown_s, elapsed_s)
        if not missed_s:
            self.hidden_s = min(self.hidden_s, self.shown_s * _EARLIER)
