"""The reactors among the tests of Maven and its plugins: directories with a POM, and lone POMs."""

from __future__ import annotations

import hashlib
import re
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

# Where tests have their fixtures: all that is directly below is one, or a POM.
_ROOMS: Final = re.compile(
    r".*/(?:src/it(?:/projects|/mrm/repository)?|src/test/(?:resources(?:-\w+)*|projects|remote-repo)"
    r"(?:/unit|/poms|/projects)?)/"
)
_PROJECT: Final = re.compile(rb"<(?:\w+:)?project[\s>]")
# What maven-invoker-plugin replaces in POMs.
_TOKEN: Final = re.compile(rb"@([\w.-]+)@")
MOST_FILES: Final = 300


@dataclass(frozen=True, kw_only=True)
class Reactor:
    """`top` is the directory of its POM below `directory`, the fixture; of a POM alone, `directory`
    is the file. `arguments` are those of mvn that define something.
    """

    name: str
    directory: Path
    top: str
    arguments: tuple[str, ...] = ()

    def lay(self, root: Path) -> None:
        """Copies it, without links."""
        if self.directory.is_file():
            root.mkdir(parents=True)
            data = self.directory.read_bytes()
            (root / "pom.xml").write_bytes(_release(_filter(data)))
            return
        # What a repository of the fixture has is a snapshot still.
        has_repository = any(self.directory.rglob("*.pom"))
        for path in self.directory.rglob("*"):
            if path.is_file() and not path.is_symlink() and ".git" not in path.parts:
                place = root / path.relative_to(self.directory)
                place.parent.mkdir(parents=True, exist_ok=True)
                if path.suffix in {".xml", ".pom"}:
                    data = _filter(path.read_bytes())
                    place.write_bytes(data if has_repository else _release(data))
                else:
                    shutil.copyfile(path, place)


def _filter(data: bytes) -> bytes:
    return _TOKEN.sub(b"1.0", data)


def _release(data: bytes) -> bytes:
    """Nobody publishes snapshots, so that there would be nothing to compare."""
    return data.replace(b"-SNAPSHOT", b"")


def find_reactors(*sources: Path) -> Iterator[Reactor]:
    """Each once: Maven 4 has many tests of Maven 3, and some twice."""
    known = set()
    for source in sources:
        for each in _find_reactors(source):
            if (digest := _digest(each)) not in known:
                known.add(digest)
                yield each


def _digest(reactor: Reactor) -> str:
    is_one = reactor.directory.is_file()
    poms = [reactor.directory] if is_one else sorted(reactor.directory.rglob("*.xml"))
    made = hashlib.sha256(reactor.top.encode())
    for path in poms:
        made.update(b"" if is_one else path.relative_to(reactor.directory).as_posix().encode())
        made.update(path.read_bytes() if path.is_file() else b"")
    return made.hexdigest()


def _find_reactors(source: Path) -> Iterator[Reactor]:
    taken: set[Path] = set()
    # The unit tests of plugins have POMs for one mojo, that nobody would build.
    begin = source / "src/it" if (source / "src/it").is_dir() else source
    for path in sorted(begin.rglob("*.xml")):
        room = _ROOMS.match(f"{path.as_posix()}")
        if room is None or path.is_symlink() or not path.is_file():
            continue
        below = Path(path.as_posix()[room.end() :])
        if len(below.parts) == 1 or path.name != "pom.xml":
            data = path.read_bytes()
            if _PROJECT.search(data[:8000]) and not (path.parent / "pom.xml").is_file():
                name = f"{source.name}: {path.relative_to(source).as_posix()}"
                yield Reactor(name=name, directory=path, top=".")
            continue
        fixture = Path(room[0]) / below.parts[0]
        above = [each for each in path.parent.parents if each.is_relative_to(fixture)]
        if path.parent in taken or any((each / "pom.xml").is_file() for each in above):
            continue
        taken.add(path.parent)
        if (
            sum(1 for _ in zip(fixture.rglob("*"), range(MOST_FILES + 1), strict=False))
            > MOST_FILES
        ):
            continue
        yield Reactor(
            name=f"{source.name}: {path.parent.relative_to(source).as_posix()}",
            directory=fixture,
            top=path.parent.relative_to(fixture).as_posix(),
            arguments=tuple(_read_arguments(path.parent)),
        )


def _read_arguments(directory: Path) -> Iterator[str]:
    """Of the call that the test makes, and of what mvn reads by itself.

    https://maven.apache.org/plugins/maven-invoker-plugin/examples/invoker-properties.html
    """
    given = directory / "invoker.properties"
    lines = given.read_text("latin-1").splitlines() if given.is_file() else []
    for line in lines:
        key, _, value = (each.strip() for each in line.partition("="))
        if re.fullmatch(r"invoker\.goals(\.1)?", key):
            words = shlex.split(value) if value.count('"') % 2 == 0 else value.split()
            yield from _choose(words)
        elif re.fullmatch(r"invoker\.profiles(\.1)?", key) and value:
            yield f"-P{value.replace(' ', '')}"
    given = directory / "test.properties"
    for line in given.read_text("latin-1").splitlines() if given.is_file() else []:
        key, _, value = (each.strip() for each in line.partition("="))
        if key and value and not key.startswith("#"):
            yield f"-D{key}={value}"


def _choose(words: list[str]) -> Iterator[str]:
    for word in words:
        if (
            re.fullmatch(r"-[DP]\S+", word)
            and "${" not in word
            and not word.startswith("-Dmaven.repo")
        ):
            yield word
