"""Good workspaces with a few bytes changed by chance, which is known: FIRST_MUTANT, MUTANTS=500."""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING, Final

import pytest

from effort import tries
from hostile.case import Case
from hostile.manifests import SAID
from hostile.workspaces_of import MANIFESTS

if TYPE_CHECKING:
    from hostile.conftest import Judge

FIRST: Final = int(os.environ.get("FIRST_MUTANT", "0"))
COUNT: Final = tries("MUTANTS", sample=12, all_of_them=30)
_SPLICED: Final = (
    *(
        b"\0",
        b"\n",
        b"\r",
        b'"',
        b"'",
        b"[",
        b"]",
        b"{",
        b"}",
        b"<",
        b">",
        b"\\",
        b"\xff",
        b"\x1b[",
    ),
    *(b"::error::INJECTED", b"\xed\xa0\x80", b"\\ud800", b"9" * 5000, b"../", b"*", b"${", b"&a;"),
)


def mutated(data: bytes, chance: random.Random, others: list[bytes]) -> bytes:
    """A few changes: bits, what is cut off, doubled, or taken from another file."""
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 4, 8))):
        at = chance.randrange(len(changed) + 1)
        match chance.randrange(6):
            case 0 if changed:
                changed[at % len(changed)] ^= 1 << chance.randrange(8)
            case 1:
                del changed[at : at + chance.choice((1, 5, 50))]
            case 2:
                changed[at:at] = chance.choice(_SPLICED) * chance.choice((1, 2, 100))
            case 3:
                other = chance.choice(others)
                start = chance.randrange(len(other))
                changed[at:at] = other[start : start + chance.choice((5, 50, 500))]
            case 4:
                changed[at:at] = changed[at : at + 40] * chance.choice((1, 10, 1000))
            case _ if chance.random() < 0.3:
                del changed[at:]
            case _:
                pass
    return bytes(changed)


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_mutant(seed: int, judge: Judge) -> None:
    """R35, R36, R40, R51"""
    chance = random.Random(seed)
    files: dict[str, str | bytes] = dict(chance.choice(list(MANIFESTS.values())))
    others = [text.encode() for workspace in MANIFESTS.values() for text in workspace.values()]
    for name in chance.sample(sorted(files), k=chance.choice((1, 1, len(files)))):
        text = files[name]
        data = text.encode() if isinstance(text, str) else text
        files[name] = mutated(data or b"\n", chance, [each for each in others if each])
    judge(Case(name=str(seed), files=files, codes=SAID))
