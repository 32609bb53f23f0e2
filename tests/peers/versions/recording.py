"""What the tests of JavaScript expect of a call, told by `record.cjs`, which executes nothing of
what they test.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_RECORDER: Final = Path(__file__).with_name("record.cjs")


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A call, and what is expected at each path of its answer: the matcher, and its argument."""

    test: str
    on: Mapping[str, Any]
    arguments: list[Any]
    expected: list[tuple[tuple[str, ...], str, Any]] = field(default_factory=list)


def record(amaro: Path, checkout: Path, test: str, **real: Path | str) -> list[Asked]:
    """In their order. A test that cannot be run this way has a call of nothing."""
    given = [f"{name}={path}" for name, path in real.items()]
    done = subprocess.run(
        ["node", str(_RECORDER), str(amaro.resolve()), str(checkout.resolve() / test), *given],
        cwd=checkout,
        stdout=subprocess.PIPE,
        check=True,
    )
    found: dict[str, Asked] = {}
    for each in json.loads(done.stdout):
        path, call = _find_call(each["subject"])
        if call is None:
            continue
        key = json.dumps([each["test"], call["call"], call["args"]])
        asked = found.setdefault(
            key, Asked(test=each["test"], on=call["call"], arguments=call["args"])
        )
        argument = each["args"][0] if each["args"] else None
        asked.expected.append((tuple(path), ".".join(each["chain"]), argument))
    return [*found.values()]


def _find_call(subject: object) -> tuple[list[str], dict[str, Any] | None]:
    """Where in the answer of which call it lies."""
    if not isinstance(subject, dict) or not isinstance(subject.get("recorded"), dict):
        return [], None
    told = subject["recorded"]
    return told["path"], told if "call" in told else None


def list_names(call: Mapping[str, Any]) -> Iterator[str]:
    """What was called, from within: the name of the module, the function, a method."""
    if "call" in call:
        yield from list_names(call["call"])
    else:
        yield call["name"]
    yield from call["path"]


def drop_undefined(value: Any) -> Any:
    """Without what is undefined, or another recorder."""
    if isinstance(value, dict):
        if value.keys() & {"undefined", "recorded", "function"}:
            return None
        kept = {key: drop_undefined(each) for key, each in value.items()}
        return {key: each for key, each in kept.items() if each is not None}
    return [drop_undefined(each) for each in value] if isinstance(value, list) else value
