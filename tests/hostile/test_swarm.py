"""R51, R52, R53: attacks at random, on whatever a release of five ecosystems reads and
writes where builds can write too.
"""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Final

import pytest

from effort import tries
from hostile.judge import complaints
from hostile.run import carried_out
from hostile.swarm import SAID, VICTIMS, swarmed
from integration.tools import require_closed, require_landlock, require_tool

if TYPE_CHECKING:
    from hostile.run import Ended, Template

ATTACKS: Final = tries("ATTACKS", sample=120, all_of_them=500)
PARTS: Final = 4


@pytest.mark.parametrize("part", range(PARTS))
def test_attacks_change_nothing_outside(part: int, template: Template) -> None:
    """R51, R52, R53: each run ends by itself, in the memory it has, says what became of every
    package, and has told no secret; whatever is closed to builds is as it was, with its inode.
    """
    require_landlock()
    require_closed()
    for tool in ("cargo", "git", "npm", "uv"):
        require_tool(tool)
    made = 0
    for number in itertools.count():
        case = swarmed(1001 * part + number)  # one of the parts begins in the plan
        with carried_out(case, template) as ended:
            attacks = ended.written.get(SAID, b"").decode().splitlines()
            found = [*complaints(case, ended), *_victims(ended), *_unaccounted(ended)]
            assert not found, "\n".join([case.name, *found, *attacks, ended.streams[-6000:]])
        made += len(attacks)
        if made >= ATTACKS / PARTS:
            return
        assert number < ATTACKS / PARTS, "no run was attacked"


def _victims(ended: Ended) -> list[str]:
    """Also those in the home directory, of which builds may write the caches alone."""
    return [
        f"{name} was changed or replaced"
        for name in VICTIMS
        if (ended.before[name], ended.before[name].inode)
        != (there := ended.after.get(name), there and there.inode)
    ]


def _unaccounted(ended: Ended) -> list[str]:
    """A run that published, or tried to, says of each package what became of it."""
    if ended.code not in {0, 1} or "Plan:" not in ended.out:
        return []
    text = ended.written.get("out/results.json")
    if text is None:
        return ["there are no results"]
    rows = json.loads(text)["packages"]
    return [f"{row['name']} has no outcome" for row in rows if not row["outcome"]]
