"""What is published of a reactor into a directory, beside what `mvn deploy` puts into one."""

from __future__ import annotations

import functools
import io
import os
import re
import subprocess
import zipfile
from typing import TYPE_CHECKING, Any, Final
from xml.etree import ElementTree as ET

from peers import ours
from peers.maven import plans
from peers.scenarios import EQUAL, Case, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from peers.maven.fixtures import Reactor

# Each takes two JVMs that build, and what these have to fetch.
MOST: Final = 40
# What maven-invoker-plugin installs first, or is on no registry.
_FOREIGN: Final = re.compile(rb"<(?:plugin|extension|dependency|repository|snapshotRepository)>")
_SUMS: Final = (".md5", ".sha1", ".sha256", ".sha512")
_LOCK: Final = ".lock"
_PAGE: Final = "maven-metadata.xml"
_FILLED_IN: Final = (
    "maven.md: In the copy, POMs name the version itself in place of `${revision}` and "
    "everything else that is set from outside"
)
_OUTSIDE: Final = re.compile(rb"\$\{(?:revision|sha1|changelist)\}")


def read(*sources: Path) -> Iterator[Case]:
    """Of reactors that need no plugins but Maven's own, the first ones with modules."""
    found = 0
    for reactor, answer in plans.ask(*sources):
        public = [each for each in answer.get("projects", ()) if not each["skipped"]]
        if found < MOST and not answer["errors"] and len(public) > 1 and _is_plain(reactor):
            found += 1
            judge = functools.partial(_judge, reactor, len(public))
            yield Case(name=f"{reactor.name} deployed", judge=judge)


def _is_plain(reactor: Reactor) -> bool:
    """Whether all that it needs is on Central."""
    if reactor.arguments or reactor.directory.is_file():
        return False
    poms = [path.read_bytes() for path in reactor.directory.rglob("*.xml")]
    return not any(_FOREIGN.search(each) for each in poms)


def _judge(reactor: Reactor, count: int, directory: Path) -> Verdict:
    root = directory / "repository"
    plans.lay(reactor, root, "mvn")
    ours.commit(root)
    planned = ours.plan(root, "--ecosystem", "maven")
    if planned.code or len(planned.packages) != count:
        return Verdict("unusable", f"plans tell the same of it: {planned.error}")
    os.environ["MAVEN_OPTS"] = "-XX:TieredStopAtLevel=1"
    registry = f"dir:{directory / 'registry'}"
    arguments = ["--ecosystem", "maven", "--registry", registry, "--build-sandbox", "off"]
    arguments += ["--max-retries", "0", "--state-directory", str(directory / "state")]
    ran = ours.run("publish", root, *arguments)
    # The plugin that comes with older Mavens wants a layout.
    to = f"-DaltDeploymentRepository=theirs::default::{(directory / 'theirs').as_uri()}"
    argv = ["mvn", "--batch-mode", "--no-transfer-progress", "-Dmaven.install.skip=true", to]
    done = subprocess.run(
        [*argv, "deploy"], cwd=root / reactor.top, capture_output=True, text=True, check=False
    )
    if done.returncode and ran.code:
        return EQUAL
    if done.returncode or ran.code:
        return Verdict("fault", f"ours: {ran.out}{ran.error}\ntheirs: {done.stdout[-3000:]}")
    return _compare(_read(directory / "registry" / "maven"), _read(directory / "theirs"))


def _read(directory: Path) -> dict[str, bytes]:
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file() and path.suffix not in _SUMS and path.name != _LOCK
    }


def _compare(made: Mapping[str, bytes], theirs: Mapping[str, bytes]) -> Verdict:
    wrong = [f"only ours: {name}" for name in sorted(made.keys() - theirs.keys())]
    wrong += [f"only theirs: {name}" for name in sorted(theirs.keys() - made.keys())]
    is_filled_in = False
    for name in sorted(made.keys() & theirs.keys()):
        here, there = _parse(name, made[name]), _parse(name, theirs[name])
        if here == there:
            continue
        if name.endswith((".pom", ".jar")) and _OUTSIDE.search(str(there).encode()):
            is_filled_in = True
        else:
            wrong.append(f"{name}: ours: {here}, theirs: {there}")
    if wrong or not made:
        return Verdict("fault", "\n".join(wrong) or "nothing was published")
    return Verdict("explained", _FILLED_IN) if is_filled_in else EQUAL


def _parse(name: str, data: bytes) -> Any:
    """All of a file but the time of the build, and `latest`, which Maven 3 gives plugins alone."""
    if name.endswith(_PAGE):
        tree = ET.fromstring(data)
        return [
            (each.tag, (each.text or "").strip())
            for each in tree.iter()
            if each.tag not in {"lastUpdated", "latest"}
        ]
    if not name.endswith((".jar", ".war")):
        return data
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {
            each: re.sub(rb"^#.*\n", b"", content, flags=re.MULTILINE)
            if each.endswith("pom.properties")
            else content
            for each in archive.namelist()
            for content in [archive.read(each)]
        }
