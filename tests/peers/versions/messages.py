"""Messages of commits, and what they ask of a version: tests of conventional-commits-parser, of the
analyzer of semantic-release, and of release-please.
"""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING, Any, Final

from peers.scenarios import EQUAL, Case, Verdict
from peers.versions.recording import list_names, record
from releasekit.config.version_options import TYPES
from releasekit.decided import Level
from releasekit.versioning.messages import find_reverted, read_message, read_squashed
from releasekit.versioning.numbering import numbering_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from peers.versions.recording import Asked
    from releasekit.decided import Zero
    from releasekit.versioning.messages import Message

_MISSING: Final = object()
_NULL: Final[Mapping[str, object]] = {
    "null": None,
    "undefined": None,
    "true": True,
    "false": False,
}
# Of what a tool reads out of a message, the parts that ReleaseKit has as well.
_PARTS: Final = {"type", "scope", "subject", "breaking", "bareMessage"}
_OVERRIDDEN: Final = "moving.md: `BEGIN_COMMIT_OVERRIDE`, `Release-As`: a change file"
_SEVERAL: Final = "versions.md: the title of a pull request or the subject of a commit"


def read_parsed(checkout: Path, amaro: Path) -> Iterator[Case]:
    below = "packages/conventional-commits-parser/src"
    for number, asked in enumerate(record(amaro, checkout, f"{below}/CommitParser.spec.ts")):
        # With options of its own, it reads another language.
        if [*list_names(asked.on)][1:] == ["CommitParser", "parse"] and not asked.on.get("args"):
            judge = functools.partial(_judge_parsed, asked)
            yield Case(name=f"{asked.test}#{number}", judge=judge)


def _value(matcher: str, argument: Any) -> object:
    """What is expected there; nothing where the matcher is another one."""
    last = matcher.rsplit(".", maxsplit=1)[-1]
    if "not" in matcher.split("."):
        return _MISSING
    if last in _NULL:
        return _NULL[last]
    known = {"toBe", "toEqual", "equal", "equals", "eql", "is", "eq"}
    if last == "toBeNull":
        return None
    return argument if last in known else _MISSING


def _judge_parsed(asked: Asked, _directory: Path) -> Verdict:
    text = asked.arguments[0]
    message = read_message(text)
    own = _describe(message)
    wrong, used = [], False
    for path, matcher, argument in asked.expected:
        wanted = _value(matcher, argument)
        if len(path) != 1 or wanted is _MISSING or path[0] not in {*_PARTS, "notes", "header"}:
            continue
        used = True
        if path[0] == "notes":
            if bool(wanted) != own["breaking"]:
                wrong.append(f"breaking: {own['breaking']}, theirs {wanted}")
        elif path[0] != "header" and own[path[0]] != wanted:
            wrong.append(f"{path[0]}: {own[path[0]]!r}, theirs {wanted!r}")
    if not used:
        return Verdict("unusable", "about references, mentions and the like")
    return _decide(wrong, text)


def _describe(message: Message | None) -> dict[str, object]:
    if message is None:
        return dict.fromkeys(("type", "scope", "subject", "bareMessage")) | {"breaking": False}
    suffix = f" (#{message.pull_request})" if message.pull_request else ""
    return {
        "type": message.type,
        "scope": message.scope or None,
        "subject": f"{message.text}{suffix}",
        "bareMessage": message.text,
        "breaking": message.breaking,
    }


def _decide(wrong: list[str], text: str) -> Verdict:
    if not wrong:
        return EQUAL
    if "release-as" in text.lower():
        return Verdict("explained", _OVERRIDDEN)
    return Verdict("fault", f"{text}\n{wrong}")


def _find_level(messages: Iterable[str], types: Mapping[str, Level] = TYPES) -> Level:
    """What all of them ask for, as ReleaseKit reads commits that change a package."""
    found = Level.NONE
    for text in messages:
        message = read_message(text)
        for each in [message] if message else read_squashed(text):
            level = types.get(f"{each.type}({each.scope})", types.get(each.type, Level.NONE))
            found = max(found, Level.MAJOR if each.breaking else level)
    return found


def read_analyzed(checkout: Path, amaro: Path) -> Iterator[Case]:
    found = record(amaro, checkout, "test/integration.test.js")
    for number, asked in enumerate(found):
        if "analyzeCommits" in list_names(asked.on):
            judge = functools.partial(_judge_analyzed, asked)
            yield Case(name=f"{asked.test}#{number}", judge=judge)


def _judge_analyzed(asked: Asked, _directory: Path) -> Verdict:
    options, context = asked.arguments[:2]
    if not isinstance(options, dict) or options.keys() & {"preset", "config", "parserOpts"}:
        return Verdict("unusable", "it reads another language")
    rules = options.get("releaseRules", [])
    if not isinstance(rules, list) or any(it.keys() - {"type", "release", "scope"} for it in rules):
        return Verdict("unusable", "`types` of [version] has no such rules")
    types = {**TYPES}
    for rule in rules:
        if "type" in rule:
            scope = f"({rule['scope']})" if "scope" in rule else ""
            types[f"{rule['type']}{scope}"] = Level[(rule["release"] or "none").upper()]
    taken = {it.commit for each in context["commits"] if (it := find_reverted(each["message"]))}
    told = [
        each["message"]
        for each in context["commits"]
        if each["hash"] not in taken and not find_reverted(each["message"])
    ]
    own = _find_level(told, types)
    for path, matcher, argument in asked.expected:
        wanted = _value(matcher, argument)
        if not path and wanted is not _MISSING and wanted != (str(own) if own else None):
            return Verdict("fault", f"{asked.arguments}\nours is {own}, theirs {wanted}")
    return EQUAL


def read_commits(checkout: Path, amaro: Path) -> Iterator[Case]:
    helpers = {"./helpers": checkout.resolve() / "test/helpers.ts"}
    for number, asked in enumerate(record(amaro, checkout, "test/commits.ts", **helpers)):
        if "parseConventionalCommits" in list_names(asked.on):
            judge = functools.partial(_judge_commits, asked)
            yield Case(name=f"{asked.test}#{number}", judge=judge)


def _judge_commits(asked: Asked, _directory: Path) -> Verdict:
    if not all(isinstance(each, dict) and "message" in each for each in asked.arguments[0]):
        return Verdict("unusable", "the test computes its commits")
    if "COMMIT_OVERRIDE" in json.dumps(asked.arguments[0]):
        return Verdict("explained", _OVERRIDDEN)
    texts = [each["message"] for each in asked.arguments[0]]
    whole = "\n\n".join(texts)
    read: list[Message] = []
    for text in texts:
        message = read_message(text)
        read += [message] if message else read_squashed(text)
    wrong = []
    for path, matcher, argument in asked.expected:
        wanted = _value(matcher, argument)
        if not path and "lengthOf" in matcher and len(read) != argument:
            if len(read) < argument:
                return Verdict("explained", _SEVERAL)
            wrong.append(f"{len(read)} messages, theirs {argument}")
        if len(path) != 2 or wanted is _MISSING or path[1] not in _PARTS:
            continue
        own = _describe(read[int(path[0])]) if int(path[0]) < len(read) else _describe(None)
        if own[path[1]] != wanted:
            wrong.append(f"{path[1]}: {own[path[1]]!r}, theirs {wanted!r}")
    return _decide(wrong, whole)


def read_strategies(checkout: Path, amaro: Path) -> Iterator[Case]:
    """Of its strategies, ReleaseKit has the one that is the default."""
    found = record(amaro, checkout, "test/versioning-strategies/default.ts")
    for number, asked in enumerate(found):
        judge = functools.partial(_judge_bump, asked)
        yield Case(name=f"{asked.test}#{number}", judge=judge)


def _judge_bump(asked: Asked, _directory: Path) -> Verdict:
    """`strategy.bump(version, commits).toString()`"""
    names = [*list_names(asked.on)]
    if names[-2:] != ["bump", "toString"]:
        return Verdict("unusable", "about something else than the next version")
    made = asked.on["call"]["args"]
    options = made[0] if made and isinstance(made[0], dict) else {}
    version, commits = asked.on["args"]
    texts = [each["message"] for each in commits]
    minor, patch = options.get("bumpMinorPreMajor"), options.get("bumpPatchForMinorPreMajor")
    if patch and not minor:
        return Verdict("unusable", "`zero` of [version] has no such value")
    wanted = next(argument for _, _, argument in asked.expected)
    if any("RELEASE AS" in str(each["notes"]).upper() for each in commits):
        return Verdict("explained", _OVERRIDDEN)
    zero: Zero = "shift" if minor and patch else "minor" if minor else "literal"
    # release-please releases a patch for any commit.
    level = max(_find_level(texts), Level.PATCH)
    own = numbering_of("npm").bump(version["recorded"]["args"][0], level, zero)
    return EQUAL if own == wanted else Verdict("fault", f"{texts}\n{own}, theirs {wanted}")
