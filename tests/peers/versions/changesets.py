"""What changesets makes of change files: what it reads out of one, and which versions come of a
workspace of npm with some.
"""

from __future__ import annotations

import functools
import itertools
import json
import re
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from peers import ours
from peers.scenarios import EQUAL, Case, Files, Verdict, compare
from peers.versions.recording import drop_undefined, list_names, record
from releasekit.errors import PlanError
from releasekit.versions.change_files import read_change_file
from workspaces import git

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from peers.versions.recording import Asked

_YAML: Final = (
    "change-files.md: All other YAML is refused, such as lists, anchors and values of several lines"
)
_PINNED: Final = "versions.md: That is the range after [pins]"
_PEERS: Final = "moving.md: If it admits the new version, nothing changes."
_EVERY_RANGE: Final = (
    "moving.md: `bumpVersionsWithWorkspaceProtocolOnly`, `privatePackages`, `snapshot` | none"
)
_DECIDED: Final = re.compile(r"^(\S+) +(\S+) +→ +(\S+) ", re.MULTILINE)


def find_decided(ran: ours.Ran) -> dict[str, str]:
    """The next version of each package."""
    return {name: new for name, _, new in _DECIDED.findall(ran.out)}


def read_files(checkout: Path, amaro: Path) -> Iterator[Case]:
    found = record(amaro, checkout, "packages/parse/src/index.test.ts")
    for number, asked in enumerate(found):
        if asked.arguments and isinstance(asked.arguments[0], str):
            judge = functools.partial(_judge_file, asked)
            yield Case(name=f"{asked.test}#{number}", judge=judge)


def _judge_file(asked: Asked, _directory: Path) -> Verdict:
    text = asked.arguments[0]
    refused = any("throw" in matcher.lower() for _, matcher, _ in asked.expected)
    try:
        file = read_change_file(".changeset/x.md", text)
    except PlanError as error:
        if refused:
            return EQUAL
        return (
            Verdict("explained", _YAML) if "cannot read `" in str(error) else _fault(asked, error)
        )
    if refused:
        return _fault(asked, file)
    own = {
        "releases": [{"name": each.name, "type": str(each.level)} for each in file.entries],
        "summary": file.text,
    }
    for path, _, wanted in asked.expected:
        there: Any = own
        for key in path:
            there = there[int(key) if key.isdigit() else key]
        if there != wanted:
            return _fault(asked, own)
    return EQUAL


def _fault(asked: Asked, own: object) -> Verdict:
    return compare(asked.arguments, own, asked.expected)


def read_plans(checkout: Path, amaro: Path, semver: Path) -> Iterator[Case]:
    below = checkout.resolve() / "packages/assemble-release-plan/src"
    found = record(
        amaro,
        checkout,
        "packages/assemble-release-plan/src/index.test.ts",
        **{"semver": semver.resolve(), "./test-utils.ts": below / "test-utils.ts"},
    )
    for number, asked in enumerate(found):
        if "assembleReleasePlan" in list_names(asked.on):
            judge = functools.partial(_judge_plan, asked)
            yield Case(name=f"{asked.test}#{number}", judge=judge)


def _judge_plan(asked: Asked, directory: Path) -> Verdict:
    if len(asked.arguments) < 4:
        return Verdict("unusable", "it computes what it asks")
    changesets, workspace, config, state, *more = [drop_undefined(it) for it in asked.arguments]
    if any(more):
        return Verdict("unusable", "a snapshot is called by the time")
    label = state["tag"] if state and state["mode"] == "pre" else ""
    if any("throw" in matcher.lower() for _, matcher, _ in asked.expected):
        return Verdict("unusable", "how its configuration is refused is its own matter")
    config = config or {}
    root = directory / "repository"
    root.mkdir()
    packages = [each["packageJson"] for each in workspace["packages"]]
    places = {each["name"]: f"packages/{each['name'].replace('/', '-')}" for each in packages}
    manifests = {f"{places[it['name']]}/package.json": json.dumps(it) for it in packages}
    private = {"name": "root", "private": True, "workspaces": ["packages/*"]}
    entries = {f"{places[each['name']]}/index.js": "" for each in packages}
    written = {**manifests, **entries, "package.json": json.dumps(private)}
    Files(files={**written, "releasekit.toml": _options(config, label)}).write(root)
    ours.commit(root)
    for each in packages:
        if each.get("version") and not each.get("private"):
            git(root, "tag", f"{each['name']}@{each['version']}")
    Files(files=dict(map(_write_change, changesets, itertools.count()))).write(root)
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--allow-empty", "--message", "Change")
    ran = ours.run("version", root, "--dry-run", "--registry", f"dir:{directory / 'registry'}")
    own = find_decided(ran)
    wrong = _compare(asked, own, {each["name"]: each.get("version") for each in packages})
    if not wrong:
        return EQUAL
    if any("*" in (each.get("dependencies") or {}).values() for each in packages):
        return Verdict("explained", _PINNED)
    has_peers = any(each.get("peerDependencies") for each in packages)
    if has_peers and 'propagate = "always"' in _options(config, label):
        return Verdict("explained", _PEERS)
    if config.get("bumpVersionsWithWorkspaceProtocolOnly"):
        return Verdict("explained", _EVERY_RANGE)
    shown = json.dumps([packages, changesets, config])
    return Verdict("fault", f"{wrong}\n{shown}\nexit {ran.code}\n{ran.out}{ran.error}")


def _options(config: Mapping[str, Any], label: str) -> str:
    groups = [
        f'g{number} = {{ packages = {json.dumps(names)}, kind = "{kind}" }}\n'
        for kind in ("fixed", "linked")
        for number, names in enumerate(config.get(kind, ()), 100 * (kind == "fixed"))
    ]
    experimental: Mapping[str, Any] = next(
        (it for key, it in config.items() if "xperimental" in key), {}
    )
    propagate = "always" if experimental.get("updateInternalDependents") == "always" else "needed"
    ranges = "keep" if config.get("updateInternalDependencies") == "minor" else "raise"
    prerelease = f'prerelease = {{ "*" = "{label}" }}\n' if label else ""
    excluded = json.dumps(config.get("ignore", []))
    return (
        f'exclude-packages = {excluded}\n\n[version]\nchanges = "files"\nzero = "literal"\n'
        f'propagate = "{propagate}"\nranges = "{ranges}"\n'
        f"{prerelease}\n[version.groups]\n{''.join(groups)}"
    )


def _write_change(changeset: Mapping[str, Any], number: int) -> tuple[str, str]:
    lines = [f'"{each["name"]}": {each["type"]}' for each in changeset["releases"]]
    text = "\n".join(["---", *lines, "---", "", changeset["summary"], ""])
    return f".changeset/change-{number}.md", text


def _compare(asked: Asked, own: Mapping[str, str], versions: Mapping[str, Any]) -> list[str]:
    told: defaultdict[str, dict[str, Any]] = defaultdict(dict)
    length = None
    for path, _, wanted in asked.expected:
        match path:
            case ("releases", "length"):
                length = wanted
            case ("releases",) if isinstance(wanted, list):
                length = len(wanted)
                told |= {str(at): it.get("containing", it) for at, it in enumerate(wanted)}
            case ("releases", at) if isinstance(wanted, dict):
                told[at] |= wanted.get("containing", wanted)
            case ("releases", at, key):
                told[at][key] = wanted
            case _:
                pass
    wrong = []
    for at, release in told.items():
        if at.startswith("="):
            release["name"] = at[1:]
        name, new = release.get("name", ""), release.get("newVersion")
        if isinstance(new, list):  # one of these
            new = own.get(name) if own.get(name) in new else versions.get(name)
        if release.get("type") == "none" or (name and versions.get(name) == new):
            length = None if length is None else length - 1
            if name in own:
                wrong.append(f"{name}: ours {own[name]}, theirs stays")
        elif name and new and own.get(name) != new:
            wrong.append(f"{name}: ours {own.get(name)}, theirs {new}")
        elif name and name not in own:
            wrong.append(f"{name}: ours not released, theirs released")
    if length is not None and len(own) != length:
        wrong.append(f"ours {len(own)} released, theirs {length}")
    return wrong
