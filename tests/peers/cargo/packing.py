"""What is uploaded of the projects that cargo's tests write, beside what `cargo publish` uploads:
crates byte for byte, and every field that goes with them.
"""

from __future__ import annotations

import contextlib
import functools
import io
import os
import re
import tarfile
from typing import TYPE_CHECKING, Any, Final

from integration.crates import TOKEN, Crates, CrateServer, crate_server
from peers import ours
from peers.cargo import empty, judge, projects
from peers.scenarios import EQUAL, Case, Files, Verdict
from workspaces import git

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

# Those whose projects are packaged, or say what would be.
_SUITES: Final = (
    *("package", "publish", "publish_lockfile", "package_features", "inheritable_workspace_fields"),
    *("workspaces", "metadata", "rename_deps", "member_discovery", "member_errors", "alt_registry"),
    *("features_namespaced", "weak_dep_features", "cargo_targets", "cargo_features", "edition"),
    *("artifact_dep", "required_features", "rust_version", "path"),
)
_CRATES_IO: Final = "registry+https://github.com/rust-lang/crates.io-index"
_SAME: Final = (
    "cargo.md: A registry other than crates.io is told that a dependency on another crate of the "
    "workspace is in that registry"
)
_README: Final = (
    "cargo.md: cargo packages that file, with a warning, but sends the text of the other one"
)
_SHADOWED: Final = "but there is already a file named"
_UNCOMPILED: Final = "[cargo]\nverify = false\n"
_PINNED: Final = Verdict(
    "explained",
    "cargo.md: Where there is none, in a member or in `[workspace.dependencies]`, `pin: auto` "
    "writes the planned one for the time of the build",
)


def read(checkout: Path) -> Iterator[Case]:
    """Of projects that are the same, the first."""
    seen = set()
    for name, files in projects.read(checkout, *_SUITES):
        whole = frozenset(files.files.items()) if files else frozenset()
        if files is not None and whole not in seen:
            seen.add(whole)
            yield Case(name=f"{name} packed", judge=functools.partial(_judge, files))


def _judge(files: Files, directory: Path) -> Verdict:
    given = {"releasekit.toml": _UNCOMPILED, **files.files}
    placed = Files(files=given, links=files.links, executable=files.executable)
    root = projects.write(placed, directory)
    if isinstance(root, Verdict):
        return root
    if root != directory / "repository":
        return Verdict("unusable", "its workspace is not at the root of its repository")
    packages = judge.read_metadata(root) or []
    public = [each["name"] for each in packages if each["publish"] is None]
    if not public or len(public) != len(packages):
        return Verdict("unusable", "plans tell the same of it")
    own = {each["name"] for each in packages}
    needs = [need for each in packages for need in each["dependencies"]]
    foreign = [each for each in needs if each["name"] not in own and not each.get("path")]
    if any(each["source"] != _CRATES_IO or each["features"] for each in foreign):
        return Verdict("unusable", "it needs what is on no registry here")
    held = Crates()
    for each in foreign:
        if each["name"].lower().replace("-", "_") not in held.lines:
            held.hold(each["name"], _find_least(each["req"]))
    argv = ["publish", "--no-verify", "--allow-dirty", f"--target-dir={directory / 'target'}"]
    with _registry(directory, held) as theirs:
        index = ["--index", f"sparse+{theirs.index_url}", "--token", TOKEN]
        said = judge.run(root, *argv, *index, *(f"--package={name}" for name in public))
    git(root, "clean", "-ffdxq")  # of what that leaves in a build-dir of the project
    os.environ["RELEASEKIT_CARGO_TOKEN"] = TOKEN
    with _registry(directory, held) as made:
        arguments = ["--cargo-registry", made.index_url, "--build-sandbox", "off"]
        arguments += ["--max-retries", "0", "--state-directory", str(directory / "state")]
        ran = ours.run("publish", root, *arguments)
    if said.code and ran.code:
        return EQUAL
    if said.code:
        is_pinned = "must have a version requirement specified" in said.error
        return _PINNED if is_pinned else Verdict("fault", f"cargo refuses it: {said.error}")
    if ran.code:
        return Verdict("fault", f"cargo publishes it\n{ran.out}{ran.error}")
    return _compare(made.crates, theirs.crates, said.error)


class _Taking(Crates):
    """What has no name, license or description for crates.io, others take."""

    def _check(self, document: dict[str, Any], crate: bytes) -> None:
        pass


@contextlib.contextmanager
def _registry(directory: Path, held: Crates) -> Iterator[CrateServer]:
    """In the place of crates.io, and with nothing else."""
    config = directory / "cargo" / "config.toml"
    before = config.read_text()
    lines = {name: [*there] for name, there in held.lines.items()}
    crates = _Taking(files={**held.files}, lines=lines)
    with crate_server(crates) as server:
        config.write_text(before.replace(empty.serve(), server.index_url))
        yield server
    config.write_text(before)


def _find_least(requirement: str) -> str:
    """A version that most requirements of that form admit."""
    found = re.search(r"\d+(\.\d+)*(-[\w.]+)?", requirement)
    numbers, dash, suffix = (found[0] if found else "1").partition("-")
    return ".".join([*numbers.split("."), "0", "0"][:3]) + dash + suffix


def _compare(made: Crates, theirs: Crates, warned: str) -> Verdict:
    here, there = made.requests, theirs.requests
    wrong = [f"only ours: {name}" for name in sorted(here.keys() - there.keys())]
    wrong += [f"only theirs: {name}" for name in sorted(there.keys() - here.keys())]
    explained = set()
    for name in sorted(here.keys() & there.keys()):
        sent, wanted = here[name], there[name]
        for key in sorted({*sent, *wanted}):
            if (key in sent, sent.get(key)) == (key in wanted, wanted.get(key)):
                continue
            if key == "deps" and sent[key] == [_name_home(each, theirs) for each in wanted[key]]:
                explained.add(_SAME)
            elif key == "readme" and _SHADOWED in warned:
                explained.add(_README)
            else:
                both = f"ours: {sent.get(key)!r}, theirs: {wanted.get(key)!r}"
                wrong.append(f"{name}: {key}: {both}")
        if made.files[name] != theirs.files[name]:
            contents = _compare_contents(theirs.files[name], made.files[name])
            wrong += contents or [f"{name}: the same files, and other bytes"]
    if wrong:
        return Verdict("fault", "\n".join(wrong))
    return Verdict("explained", "; ".join(sorted(explained))) if explained else EQUAL


def _name_home(need: Mapping[str, Any], uploaded: Crates) -> Mapping[str, Any]:
    """As one on the same registry, where it is uploaded with others."""
    is_member = any(each["name"] == need["name"] for each in uploaded.requests.values())
    is_named = need["registry"] == _CRATES_IO.removeprefix("registry+")
    return {**need, "registry": None} if is_member and is_named else need


def _compare_contents(theirs: bytes, made: bytes) -> list[str]:
    contents = []
    for data in (made, theirs):
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            contents.append(
                {
                    each.name: (file.read() if (file := archive.extractfile(each)) else b"")
                    for each in archive
                }
            )
    return [
        f"{name}: ours: {contents[0].get(name)!r}, theirs: {contents[1].get(name)!r}"
        for name in sorted({*contents[0], *contents[1]})
        if contents[0].get(name) != contents[1].get(name)
    ]
