"""Plans of the projects that cargo's tests write, beside `cargo metadata`: versions, what is never
published, and what goes first. What ReleaseKit refuses, `cargo package` has to refuse as well.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from peers import ours
from peers.cargo import judge, projects
from peers.scenarios import EQUAL, Case, Files, Verdict
from world import cargo, facts
from world.test_world import differences

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from peers.ours import Ran

# What cargo says where ReleaseKit refuses a plan.
_REFUSALS: Final = {
    "RK-304": "no matching package named|failed to select a version|failed to get",
    "RK-306": "failed to select a version",
    "RK-307": "must have a version requirement specified",
}
# Cargo asks for what a dependency names before it looks whether that can be published.
_ABSENT: Final = re.compile(
    "failed to (get|load source|fetch|update)|can't (find|checkout)|unable to update|"
    "no matching package|failed to select a version|failed to resolve|failed to query|"
    "download of config.json failed"
)
_NO_VERSION: Final = Verdict(
    "explained",
    "limits.md: A dependency without a version on a git repository, or on a path that is not a "
    "member | No registry accepts it",
)
_CYCLE: Final = Verdict(
    "explained",
    "cargo.md: Some crates cargo can only package once others are on the registry: those that need "
    "another member by its version alone",
)


def read(checkout: Path) -> Iterator[Case]:
    """Of projects whose manifests are the same, the first."""
    seen = set()
    for name, files in projects.read(checkout):
        shape = _find_shape(files)
        if files is None or shape not in seen:
            seen.add(shape)
            yield Case(name=name, judge=functools.partial(_judge, files))


def _find_shape(files: Files | None) -> frozenset[object]:
    """All that a plan may depend on."""
    if files is None:
        return frozenset()
    read = (".toml", ".lock", "config", ".gitignore")
    return frozenset(
        [(name, text if name.endswith(read) else "") for name, text in files.files.items()]
        + [(name, ("to", target)) for name, target in files.links.items()]
    )


def _judge(files: Files | None, directory: Path) -> Verdict:
    root = projects.write(files, directory)
    if isinstance(root, Verdict):
        return root
    packages = judge.read_metadata(root)
    # A list may name several registries, and a crate without one goes to each of them.
    names = sorted({name for each in packages or () for name in each["publish"] or ()})
    verdicts = [_judge_for(name, root, packages, directory) for name in ("", *names)]
    return next((each for each in verdicts if each.kind != "equal"), EQUAL)


def _judge_for(
    registry: str, root: Path, packages: list[dict[str, Any]] | None, directory: Path
) -> Verdict:
    """For the registry of that name; for one that cargo has no name for, if it is empty."""
    if registry:
        (root / "releasekit.toml").write_text(f"[cargo]\nregistry = {json.dumps(registry)}\n")
    planned = ours.plan(root)
    if packages is None:
        return _expect_nothing(planned, "metadata refuses it")
    # https://doc.rust-lang.org/cargo/reference/manifest.html#the-publish-field
    packages = [
        each if each["publish"] is None or registry in each["publish"] else each | {"publish": []}
        for each in packages
    ]
    public = [each["name"] for each in packages if each["publish"] != []]
    if not public:
        return _expect_nothing(planned, f"would publish nothing of it to {registry or 'this'}")
    if planned.code:
        said = judge.package(root, public, directory / "target")
        return _judge_refusal(planned, said)
    resolved = _resolve(root) if _is_patched(root, packages) else None
    if isinstance(resolved, Verdict):
        return resolved
    documents = [resolved] if resolved else []
    expected = cargo.expected(packages, documents, patched=bool(documents))
    soft = frozenset(
        (each["name"], need["name"])
        for each in packages
        for need in each["dependencies"]
        if (each["name"], need["name"]) in expected.idle and need.get("path")
        if {need["name"], each["name"]}.issubset(public) and need["name"] != each["name"]
        if _is_awaited(need["name"], each["name"], root, public, directory)
    )
    expected = dataclasses.replace(expected, soft=soft, idle=expected.idle - soft)
    document = {"ecosystem": "cargo", "at": ".", "config": {}, "shape": {}}
    world = facts.read("cargo", {**document, "expected": expected.document()})
    wrong = differences(planned.packages, world)
    if not wrong:
        return EQUAL
    return Verdict("fault", f"for {registry or 'no name'}: {wrong}\n{planned.error}")


def _expect_nothing(planned: Ran, theirs: str) -> Verdict:
    is_refused = planned.code or not planned.packages
    return EQUAL if is_refused else Verdict("fault", f"cargo {theirs}\n{planned.out}")


def _is_awaited(
    on: str, dependent: str, root: Path, public: Sequence[str], directory: Path
) -> bool:
    """Whether cargo packages `dependent` only beside `on`, or after it."""
    said = judge.package(root, [each for each in public if each != on], directory / "target")
    absent = rf"no matching package named `{on}` found(?s:.*?)required by package `{dependent} v"
    return bool(said.code and re.search(absent, said.error))


def _judge_refusal(planned: Ran, said: judge.Said) -> Verdict:
    problems = re.findall(r"\[(RK-\d+)\]", planned.error)
    if said.code and any(re.search(_REFUSALS.get(each, "$^"), said.error) for each in problems):
        return EQUAL
    if said.code and "RK-307" in problems and _ABSENT.search(said.error):
        return _NO_VERSION
    return Verdict("fault", f"ours: {planned.error}\ntheirs: {said.code}\n{said.error}")


def _is_patched(root: Path, packages: list[dict[str, Any]]) -> bool:
    manifests = {root / "Cargo.toml", *(Path(each["manifest_path"]) for each in packages)}
    return any("[patch" in path.read_text("utf-8-sig") for path in manifests)


def _resolve(root: Path) -> dict[str, Any] | Verdict | None:
    """None where it needs what is on no registry here."""
    said = judge.run(root, "metadata", "--format-version", "1", "--all-features")
    if "cyclic package dependency" in said.error:
        # Cargo compiles no such workspace, but packages each crate of it without `[patch]`.
        return _CYCLE
    if said.code:
        # Cargo packages without `[patch]`, also where that fits nothing.
        is_absent = _ABSENT.search(said.error) or "error: patch " in said.error
        return None if is_absent else Verdict("fault", f"cargo refuses it: {said.error}")
    document: dict[str, Any] = json.loads(said.out)
    return document
