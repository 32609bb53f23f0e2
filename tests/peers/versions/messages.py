"""Messages of commits, and what they ask of a version: tests of conventional-commits-parser, of the
analyzer of semantic-release, and of release-please.
"""

from __future__ import annotations

import functools
import json
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from peers import ours
from peers.scenarios import EQUAL, Case, Files, Verdict, compare
from peers.versions.changesets import find_decided
from peers.versions.recording import list_names, record
from releasekit.versions.messages import read_message, read_squashed
from workspaces import git

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from peers.versions.recording import Asked
    from releasekit.versions.messages import Message

_MISSING: Final = object()
_NULL: Final[Mapping[str, object]] = {
    "null": None,
    "undefined": None,
    "true": True,
    "false": False,
}
# Of what a tool reads out of a message, the parts that ReleaseKit has as well.
_PARTS: Final = {"type", "scope", "subject", "breaking", "bareMessage"}
_OVERRIDDEN: Final = "moving.md: `BEGIN_COMMIT_OVERRIDE` | a [change file]"
_CHOSEN: Final = "moving.md: `Release-As` | a [change file]"
_SUBJECTS: Final = "versions.md: The title of a pull request or the subject of a commit"
_BEGINS: Final = "versions.md: with a line in the body that begins with `BREAKING CHANGE:`"
_ESLINT: Final = {"breaking": "major", "fix": "patch", "update": "minor", "new": "minor"}
# What commits of these presets ask for, besides the default of ReleaseKit.
# https://github.com/semantic-release/commit-analyzer/blob/master/lib/default-release-rules.js
_PRESETS: Final[Mapping[str, Mapping[str, str]]] = {
    "angular": {},
    "conventionalcommits": {},
    "eslint": _ESLINT,
    "conventional-changelog-eslint": _ESLINT,
}
_NEXT: Final[Mapping[object, str]] = {
    None: "",
    "patch": "1.0.1",
    "minor": "1.1.0",
    "major": "2.0.0",
}


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
                wrong.append(f"breaking: ours {own['breaking']}, theirs {wanted}")
        elif path[0] != "header" and own[path[0]] != wanted:
            wrong.append(f"{path[0]}: ours {own[path[0]]!r}, theirs {wanted!r}")
    if not used:
        return Verdict("unusable", "about references, mentions and the like")
    return Verdict("fault", "\n".join([text, *wrong])) if wrong else EQUAL


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


def _ask(
    directory: Path,
    commits: Iterable[tuple[str, str]],
    *,
    version: str,
    options: str,
    file: str = "",
) -> tuple[int, str]:
    """How `version` ends on a package with commits of these hashes and messages since this release,
    the oldest first, and the next version, empty where there is none. Hashes in messages become
    those of the commits here.
    """
    root = Path(tempfile.mkdtemp(dir=directory)) / "repository"
    root.mkdir()
    manifest = json.dumps({"name": "m", "version": version})
    Files(files={"package.json": manifest, "releasekit.toml": f"[version]\n{options}"}).write(root)
    ours.commit(root)
    git(root, "tag", f"m@{version}")
    known: dict[str, str] = {}
    for number, (name, written) in enumerate(commits):
        (root / "index.js").write_text(str(number))
        message = functools.reduce(lambda it, each: it.replace(*each), known.items(), written)
        git(root, "add", "--all")
        git(root, "commit", "--quiet", "--cleanup=verbatim", "--allow-empty-message", "-m", message)
        known |= {name: git(root, "rev-parse", "HEAD").strip()} if name else {}
    if file:
        Files(files={".changeset/x.md": f'---\n"m": {file}\n---\n\nText.\n'}).write(root)
    ran = ours.run("version", root, "--dry-run", "--registry", f"dir:{root.parent / 'registry'}")
    return ran.code, find_decided(ran).get("m", "")


def read_analyzed(checkout: Path, amaro: Path) -> Iterator[Case]:
    found = record(amaro, checkout, "test/integration.test.js")
    for number, asked in enumerate(found):
        if "analyzeCommits" in list_names(asked.on):
            judge = functools.partial(_judge_analyzed, asked, checkout)
            yield Case(name=f"{asked.test}#{number}", judge=judge)


def _find_types(options: Mapping[str, Any], checkout: Path) -> dict[str, str] | None:
    """`types` of [version] that say the same; None where none do."""
    preset = options.get("preset", options.get("config", "angular"))
    rules = options.get("releaseRules", [])
    if isinstance(rules, str):
        code = f"JSON.stringify(require({json.dumps(str((checkout / rules).resolve()))}))"
        rules = json.loads(subprocess.check_output(["node", "-p", code]))
    if preset not in _PRESETS or "parserOpts" in options or not isinstance(rules, list):
        return None
    own: dict[str, str] = {}
    for rule in rules:
        kind = str(rule.get("type", rule.get("tag", ""))).lower()
        if rule == {"breaking": True, "release": "major"}:
            continue
        if not kind or rule.keys() - {"type", "tag", "release", "scope"}:
            return None
        key = f"{kind}({rule['scope']})" if "scope" in rule else kind
        # The highest of several counts, and what is no level is refused.
        asked = {own.get(key, "none"), rule["release"] or "none"}
        own[key] = max(asked, key=["none", "patch", "minor", "major", *asked].index)
    return {**_PRESETS[preset], **own}


def _judge_analyzed(asked: Asked, checkout: Path, directory: Path) -> Verdict:
    options, context = asked.arguments[:2]
    types = _find_types(options, checkout) if isinstance(options, dict) else None
    if types is None:
        return Verdict("unusable", "`types` of [version] has no such rules")
    commits = [(it.get("hash", ""), it["message"]) for it in context.get("commits", [])]
    given = ", ".join(f"{json.dumps(kind)} = {json.dumps(it)}" for kind, it in types.items())
    newest_first = reversed(commits)
    code, own = _ask(directory, newest_first, version="1.0.0", options=f"types = {{ {given} }}\n")
    for path, matcher, argument in asked.expected:
        wanted = _value(matcher, argument)
        if "throws" in matcher:
            if not code:
                return compare((types, commits), own, "refused")
        elif not path and wanted is not _MISSING:
            verdict = compare((types, commits), own, _NEXT[wanted])
            is_indented = any("\n BREAKING CHANGE:" in message for _, message in commits)
            if verdict != EQUAL and is_indented and (own, wanted) == ("1.1.0", "major"):
                return Verdict("explained", _BEGINS)
            if verdict != EQUAL:
                return verdict
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
    texts = [each["message"] for each in asked.arguments[0]]
    read: list[Message] = []
    for text in texts:
        message = read_message(text)
        read += [message] if message else read_squashed(text)
    places = {str(place): each for place, each in enumerate(read)}
    places |= {f"={each.text}": each for each in read}
    wrong: list[str] = []
    missing: list[str] = []
    for path, matcher, argument in asked.expected:
        wanted = _value(matcher, argument)
        if not path and "lengthOf" in matcher and len(read) != argument:
            several = missing if len(read) < argument else wrong
            several.append(f"ours {len(read)} messages, theirs {argument}")
        elif path and path[0] not in places:
            is_own = path[0][0] == "=" and any(it.title.endswith(path[0][1:]) for it in read)
            several = wrong if is_own else missing
            several.append(f"ours {[*places]}, theirs {'.'.join(path)}")
        elif len(path) == 2 and wanted is not _MISSING and path[1] in _PARTS:
            own = _describe(places[path[0]])[path[1]]
            if own != wanted:
                wrong.append(f"{'.'.join(path)}: ours {own!r}, theirs {wanted!r}")
    if not (wrong or missing):
        return EQUAL
    if [each.title for each in read] == [text.partition("\n")[0] for text in texts]:
        if "COMMIT_OVERRIDE" in json.dumps(asked.arguments[0]):
            return Verdict("explained", _OVERRIDDEN)
        if not wrong:
            return Verdict("explained", _SUBJECTS)
    return Verdict("fault", "\n".join([*texts, *wrong, *missing]))


def read_strategies(checkout: Path, amaro: Path) -> Iterator[Case]:
    """Of its strategies, ReleaseKit has the one that is the default."""
    found = record(amaro, checkout, "test/versioning-strategies/default.ts")
    for number, asked in enumerate(found):
        judge = functools.partial(_judge_bump, asked)
        yield Case(name=f"{asked.test}#{number}", judge=judge)


def _judge_bump(asked: Asked, directory: Path) -> Verdict:
    """`strategy.bump(version, commits).toString()`"""
    names = [*list_names(asked.on)]
    if names[-2:] != ["bump", "toString"]:
        return Verdict("unusable", "about something else than the next version")
    made = asked.on["call"]["args"]
    options = made[0] if made and isinstance(made[0], dict) else {}
    version, commits = asked.on["args"]
    minor, patch = options.get("bumpMinorPreMajor"), options.get("bumpPatchForMinorPreMajor")
    if patch and not minor:
        return Verdict("unusable", "`zero` of [version] has no such value")
    wanted = next(argument for _, _, argument in asked.expected)
    chosen = [
        f"Release-As: {note['text']}"
        for each in commits
        for note in each["notes"]
        if note["title"] == "RELEASE AS"
    ]
    zero = "shift" if minor and patch else "minor" if minor else "literal"
    ask = functools.partial(
        _ask,
        directory,
        [("", "\n\n".join([each["message"], *chosen])) for each in commits],
        version=version["recorded"]["args"][0],
        options=f'zero = "{zero}"\n',
    )
    _, own = ask()
    if own != wanted and chosen and ask(file=wanted) == (0, wanted):
        return Verdict("explained", _CHOSEN)
    return compare((asked.on, options), own, wanted)
