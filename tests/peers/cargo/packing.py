"""What is uploaded of the projects that cargo's tests write, beside what `cargo package` makes of
them: byte for byte.
"""

from __future__ import annotations

import functools
import io
import tarfile
from typing import TYPE_CHECKING, Final

from peers import ours
from peers.cargo import judge, projects
from peers.scenarios import EQUAL, Case, Files, Verdict
from workspaces import git

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Those whose projects are packaged, or say what would be.
_SUITES: Final = (
    *("package", "publish", "publish_lockfile", "package_features", "inheritable_workspace_fields"),
    *("workspaces", "metadata", "rename_deps", "member_discovery", "member_errors", "alt_registry"),
    *("features_namespaced", "weak_dep_features", "cargo_targets", "cargo_features", "edition"),
    *("artifact_dep", "required_features", "rust_version", "path"),
)
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
    if any(need["name"] not in own and not need.get("path") for need in needs):
        return Verdict("unusable", "it needs what is on no registry here")
    said = judge.package(root, public, directory / "target")
    git(root, "clean", "-ffdxq")  # of what that leaves in a build-dir of the project
    registry = f"dir:{directory / 'registry'}"
    arguments = ["--registry", registry, "--build-sandbox", "off", "--max-retries", "0"]
    ran = ours.run("publish", root, *arguments)
    if said.code and ran.code:
        return EQUAL
    if said.code:
        is_pinned = "must have a version requirement specified" in said.error
        return _PINNED if is_pinned else Verdict("fault", f"cargo refuses it: {said.error}")
    if ran.code:
        return Verdict("fault", f"cargo packages it\n{ran.out}{ran.error}")
    theirs = {path.name: path.read_bytes() for path in directory.glob("target/package/*.crate")}
    found = {path.name: path.read_bytes() for path in directory.glob("registry/cargo/crates/*/*")}
    if theirs == found:
        return EQUAL
    names = sorted(theirs.keys() ^ found.keys())
    wrong = [f"{name} is of one only" for name in names]
    for name in sorted(theirs.keys() & found.keys()):
        wrong += _compare(theirs[name], found[name])
    return Verdict("fault", "\n".join(wrong))


def _compare(theirs: bytes, found: bytes) -> list[str]:
    contents = []
    for data in (theirs, found):
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            contents.append(
                {
                    each.name: (file.read() if (file := archive.extractfile(each)) else b"")
                    for each in archive
                }
            )
    return [
        f"{name}: {[content.get(name, b'(none)').decode(errors='replace') for content in contents]}"
        for name in sorted({*contents[0], *contents[1]})
        if contents[0].get(name) != contents[1].get(name)
    ]
