"""What the message of a commit says of versions: its type, what it breaks, what it takes back.

Only the subject is parsed, as https://www.conventionalcommits.org/en/v1.0.0/ has it. The body is
searched for single lines, so that nothing in it makes a commit unreadable.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from releasekit.fields import replace

_SUBJECT: Final = re.compile(
    r"([A-Za-z][A-Za-z0-9_-]*+)(?:\(((?>(?:[^()]++|\([^()]*+\))*))\))?(!?):[ \t]++(.+)"
)
_PULL_REQUEST: Final = re.compile(r"\(#([1-9][0-9]{0,9})\)\Z")
_BREAKING: Final = re.compile(r"^BREAKING[ -]CHANGE:", re.MULTILINE)
# Of GitHub, and of Gitea, which has the title in the subject, and `!` beside a tracker elsewhere.
# https://github.com/go-gitea/gitea/blob/v1.26.0/services/pull/merge.go (getMergeMessage)
_MERGED: Final = re.compile(
    r"Merge pull request (?:'(?P<title>.+)' \()?[#!](?P<number>[1-9][0-9]{0,9})\)? from "
)
# Below the title of a squash merge stand the reverts that its branch had within itself: of 5,276
# real messages with such a line, 575 take nothing back that a release could have.
_TAKES_BACK: Final = re.compile(r"revert|reapply|reland|re-land", re.IGNORECASE)
# What `git revert` writes, and what the button of GitHub does.
_REVERTED_COMMIT: Final = re.compile(r"^This reverts commit ([0-9a-f]{7,40})\b", re.MULTILINE)
_REVERTED_PULL_REQUEST: Final = re.compile(
    r"^Reverts (?:[\w.-]+/[\w.-]+)?#([1-9][0-9]{0,9})\b", re.MULTILINE | re.ASCII
)
# Where a squash merge keeps the title alone.
_REVERTED_TITLE: Final = re.compile(r'Revert ".*\(#([1-9][0-9]{0,9})\)"')


class Message(Struct, frozen=True, kw_only=True):
    """`type` is in lower case, and empty for one that is not conventional; `scope` is as it was
    written. `title` is the whole subject, `text` what stands behind its colon, without the pull
    request at its end.
    """

    type: str
    scope: str = ""
    breaking: bool = False
    text: str
    pull_request: int = 0
    title: str


class Reverted(Struct, frozen=True, kw_only=True):
    """What a commit takes back: the beginning of a commit's hash, else the number of a pull
    request.
    """

    commit: str = ""
    pull_request: int = 0


def read_message(message: str) -> Message | None:
    """None where the subject is not conventional."""
    subject, body = _split(message)
    found = _SUBJECT.fullmatch(subject)
    if found is None:
        return None
    kind, scope, mark, text = found.groups()
    pull_request = _PULL_REQUEST.search(text)
    return Message(
        type=kind.lower(),
        scope=(scope or "").strip(),
        breaking=bool(mark or _BREAKING.search(body)),
        text=text[: pull_request.start()].rstrip() if pull_request else text,
        pull_request=int(pull_request[1]) if pull_request else 0,
        title=subject,
    )


def read_subject(message: str, kind: str) -> Message:
    """Its subject, whatever that says."""
    subject, _ = _split(message)
    return Message(type=kind, text=subject, pull_request=find_pull_request(message), title=subject)


def read_merged(message: str) -> Message | None:
    """As `read_message`, of a merge commit: forges put the title of the pull request below its own
    subject, or into it.
    """
    subject, body = _split(message)
    merged = _MERGED.match(subject)
    if merged and merged["title"]:
        body = f"{merged['title']}\n{body}"
    found = read_message(body)
    return replace(found, pull_request=find_pull_request(subject)) if found and merged else found


def read_squashed(message: str) -> list[Message]:
    """Those of the commits that a squash merge lists below its own subject, as lines `* type: …`
    with their bodies; the pull request is that of the subject.
    """
    subject, body = _split(message)
    listed: list[list[str]] = []
    for line in body.split("\n"):
        if line.startswith("* ") and read_message(line[2:]):
            listed.append([line[2:]])
        elif listed:
            listed[-1].append(line)
    found = [each for lines in listed if (each := read_message("\n".join(lines)))]
    pull_request = find_pull_request(subject)
    return [replace(each, pull_request=pull_request or each.pull_request) for each in found]


def find_pull_request(message: str) -> int:
    """The pull request that the subject says was merged; 0 where it says of none."""
    subject, _ = _split(message)
    if merged := _MERGED.match(subject):
        return int(merged["number"])
    found = _PULL_REQUEST.search(subject)
    return int(found[1]) if found else 0


def find_reverted(message: str) -> Reverted | None:
    """What the commit takes back, if its subject says that it does."""
    subject, body = _split(message)
    if not _TAKES_BACK.search(subject):
        return None
    if commit := _REVERTED_COMMIT.search(body):
        return Reverted(commit=commit[1])
    number = _REVERTED_PULL_REQUEST.search(body) or _REVERTED_TITLE.match(subject)
    return Reverted(pull_request=int(number[1])) if number else None


def _split(message: str) -> tuple[str, str]:
    """Subject and body."""
    subject, _, body = message.lstrip().partition("\n")
    return subject.rstrip(), body
