"""The same judge for every hostile case: what has to hold however a run was attacked."""

from __future__ import annotations

import base64
import gzip
import re
import zlib
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, quote_plus

from hostile.case import HARM, SECRETS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hostile.case import Case
    from hostile.run import Ended

# A cycle is named as a whole, however long it is.
MAX_ERROR_CHARS: Final = 16_500
MAX_STREAM_CHARS: Final = 4 * 1024 * 1024
# What begins so may be the fault of a machine that is busy.
SLOW: Final = "slow:"
# Where every run may write. `streams` is the harness's own.
_FREE: Final = ("w/.releasekit", "home", "tmp", "runner/output", "runner/summary", "streams")
_COMMANDS: Final = ("add-mask", "error", "warning", "notice", "group", "endgroup")
# Lines end where a terminal or the runner would end them. INJECTED is what the cases' commands say.
_COMMAND: Final = re.compile(r"^[ \t]*(?:::([\w-]+)(.*)|##\[.*)", re.MULTILINE)
_ACTIVE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]"
)


def complaints(case: Case, ended: Ended) -> list[str]:
    """What is wrong with how `case` ended, one line each; nothing where all is as it should be."""
    return [
        *_bounds(case, ended),
        *_verdict(case, ended),
        *_streams(case, ended),
        *_secrets(ended),
        *_tree(case, ended),
    ]


def _bounds(case: Case, ended: Ended) -> Iterator[str]:
    if ended.timed_out:
        yield f"not over after {ended.wall_s:.0f} s"
    if ended.cpu_s > case.cpu_s * ended.slowness:
        yield f"{SLOW} took {ended.cpu_s:.1f} s of CPU"
    if ended.peak_mb > case.peak_mb:
        yield f"took {ended.peak_mb:.0f} MB"
    # What is measured is the time of all threads, and that of measuring what lines are run.
    if ended.stall_s > 3 * case.stall_s * ended.slowness:
        yield f"{SLOW} the event loop was deaf for {ended.stall_s:.2f} s"
    if ended.left:
        yield f"left running: {', '.join(ended.left)}"


def _verdict(case: Case, ended: Ended) -> Iterator[str]:
    if ended.code not in case.codes:
        yield f"exit code {ended.code}, not {sorted(case.codes)}"
    texts = [content for content in case.files.values() if isinstance(content, str)]
    if any(HARM in text for text in texts) and HARM not in ended.after:
        yield "what does the harm was never run"
    for pattern in case.says:
        if not re.search(pattern, ended.streams, re.MULTILINE):
            yield f"does not say {pattern!r}"
    # What the runner is told to hide, it shows nowhere.
    shown = _HIDDEN.sub("", ended.streams) if case.on_runner else ended.streams
    for pattern in case.never_says:
        if re.search(pattern, shown, re.MULTILINE):
            yield f"says {pattern!r}"
    for name, content in ended.written.items() if case.unpublished else ():
        if name.startswith("registry/") and case.unpublished in _packed(content):
            yield f"{name} holds {case.unpublished!r}"
    for name, outcome in case.outcomes.items():
        if ended.results.get(name) != outcome:
            yield f"{name} is {ended.results.get(name)}, not {outcome}"


def _packed(content: bytes) -> bytes:
    try:
        return content + gzip.decompress(content)
    except (OSError, EOFError, zlib.error):
        return content


# The last lines of a build's log, where it may say what it likes.
_LOG: Final = re.compile(r"^ +\| .*$", re.MULTILINE)


def _streams(case: Case, ended: Ended) -> Iterator[str]:
    own = _LOG.sub("", ended.streams)
    for bad in ("Traceback (most recent", "Exception ignored", "Task exception was never"):
        if bad in own:
            yield f"prints {bad!r}"
    errors = [line for line in ended.err.split("\n") if line.startswith("error: ")]
    told = errors or re.search(r"error: |^to do  ", ended.out, re.MULTILINE)
    if ended.code in {2, 3, 4} and not case.silent and not told:
        yield "ends without a word why"
    if errors and len(errors[0]) > MAX_ERROR_CHARS:
        yield f"an error of {len(errors[0])} characters"
    if len(ended.streams) > MAX_STREAM_CHARS:
        yield f"prints {len(ended.streams)} characters"
    for stream in (ended.out, ended.err):
        for found in _COMMAND.finditer(re.sub("[\r\v\f\x85\u2028\u2029]", "\n", stream)):
            if found[1] not in _COMMANDS or not case.on_runner or found[2].startswith("::INJECTED"):
                yield f"a workflow command: {found[0][:80]!r}"
        if active := _ACTIVE.search(stream):
            yield f"prints {active[0]!r}: {stream[max(active.start() - 40, 0) :][:80]!r}"


def forms(secret: str) -> set[bytes]:
    """How a secret may be written down."""
    users = [secret, *(f"{user}:{secret}" for user in ("__token__", "releaser", ""))]
    encoded = [coded(user.encode()) for user in users for coded in _CODED]
    plain = [secret, quote(secret), quote(secret, safe=""), quote_plus(secret)]
    return {text.encode() for text in plain} | {text.rstrip(b"=") for text in encoded}


_CODED: Final = (base64.b64encode, base64.urlsafe_b64encode)
_FORMS: Final = {name: forms(secret) for name, secret in SECRETS.items()}
# How the runner is told what to hide; it shows nothing of that line.
_MASK: Final = re.compile(rb"^::add-mask::.*$", re.MULTILINE)
_HIDDEN: Final = re.compile(r"^::add-mask::.*$", re.MULTILINE)


def _secrets(ended: Ended) -> Iterator[str]:
    for name, content in ended.written.items():
        searched = _MASK.sub(b"", content) if name == "streams/out" else content
        for variable, known in _FORMS.items():
            if any(form in searched for form in known):
                yield f"{variable} is in {name}"


def _tree(case: Case, ended: Ended) -> Iterator[str]:
    free = (*_FREE, *case.may_write)
    for name in sorted(ended.before.keys() | ended.after.keys()):
        if any(name == each or name.startswith(f"{each}/") for each in free):
            continue
        before, after = ended.before.get(name), ended.after.get(name)
        if before != after:
            what = "appeared" if before is None else "is gone" if after is None else "changed"
            yield f"{name[:200]!r} {what}"
        elif before and after and name.startswith("canary/") and before.inode != after.inode:
            yield f"{name[:200]!r} was replaced"
