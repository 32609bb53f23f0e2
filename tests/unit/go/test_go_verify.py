"""What the go command is told to build, by a program that writes that down in its place."""

from __future__ import annotations

import asyncio
import io
import os
import zipfile
from typing import TYPE_CHECKING

import pytest

import fakes
from releasekit.ecosystems.go import GoOptions
from releasekit.ecosystems.go.target import Go
from releasekit.ecosystems.go.verify import Verifier
from releasekit.fields import replace
from releasekit.host.process import Processes
from releasekit.model import Package, PackageId

if TYPE_CHECKING:
    from pathlib import Path

GO = '#!/bin/sh\nprintf "%s\\n" "$@" > "$HOME/argv"\ncat go.mod > "$HOME/go.mod"\n'


@pytest.fixture(name="home")
def _home(tmp_path: Path) -> Path:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "go").write_text(GO)
    (tmp_path / "bin" / "go").chmod(0o755)
    return tmp_path


def processes_at(home: Path) -> Processes:
    environment = {"PATH": f"{home / 'bin'}{os.pathsep}/usr/bin:/bin", "HOME": str(home)}
    return Processes(environment=environment, variables=fakes.TOOL_VARIABLES)


def make_verifier(home: Path, processes: Processes, *, build_concurrency: int = 1) -> Verifier:
    return Verifier(
        processes=processes,
        logs=fakes.services(fakes.config(home), processes).logs,
        directory=home / "modules",
        environment={},
        build_concurrency=build_concurrency,
    )


def verify(home: Path, mod: str, *beside: str) -> tuple[list[str], str]:
    """The arguments of go, and the go.mod that it found."""

    async def main() -> None:
        async with processes_at(home) as processes:
            verifier = make_verifier(home, processes)
            for name in ("app", *beside):
                packed = io.BytesIO()
                with zipfile.ZipFile(packed, "w") as archive:
                    archive.writestr(f"acme.example/{name}@v1.0.0/go.mod", "")
                verifier.unpack(packed.getvalue())
            package = Package(
                id=PackageId("go", "acme.example/app"),
                version="v1.0.0",
                directory=home,
                manifest=home / "go.mod",
            )
            others = [(f"acme.example/{name}", "v1.0.0") for name in beside]
            place = verifier.prepare(package, mod, others)
            if place is not None:
                assert await verifier.build_all({package.id: place})
                assert await verifier.build(package, place) is None

    (home / "modules").mkdir()
    asyncio.run(main())
    return (home / "argv").read_text().splitlines(), (home / "go.mod").read_text()


def test_no_program_is_written_where_a_module_has_something_of_its_name(home: Path) -> None:
    """With one package alone, a program, go would write that beside go.mod, and refuses to where a
    directory or a script is called so.
    """
    argv, _ = verify(home, "module acme.example/app\n")
    assert argv == ["build", "-mod=readonly", "-o", os.devnull, "./..."]


def test_what_stands_beside_a_module_in_the_checkout_alone_keeps_it_from_being_built(
    home: Path,
) -> None:
    """With `pin: none`, its go.mod still names a directory that its zip does not have."""
    with pytest.raises(FileNotFoundError):  # go was not called
        verify(home, "module acme.example/app\n\nreplace acme.example/core => ../core\n")


@pytest.mark.parametrize(("build_concurrency", "loops"), [(1, 1), (2, 2), (9, 3)])
def test_as_many_modules_are_built_at_a_time_as_may_be(
    home: Path, build_concurrency: int, loops: int
) -> None:
    """Each loop is one shell, and the parent of what it builds."""
    (home / "bin" / "go").write_text('#!/bin/sh\necho "$PPID $PWD" >> "$HOME/built"\n')
    places = {PackageId("go", name): home / name for name in ("one", "two words", "three")}
    for place in places.values():
        place.mkdir()

    async def main() -> bool:
        async with processes_at(home) as processes:
            verifier = make_verifier(home, processes, build_concurrency=build_concurrency)
            return await verifier.build_all(places)

    (home / "modules").mkdir()
    assert asyncio.run(main())
    built = [line.partition(" ") for line in (home / "built").read_text().splitlines()]
    assert {place for _, _, place in built} == {*map(str, places.values())}
    assert len({shell for shell, _, _ in built}) == loops


def test_one_module_that_does_not_build_is_told(home: Path) -> None:
    (home / "bin" / "go").write_text('#!/bin/sh\ntest "${PWD##*/}" != two\n')
    places = {PackageId("go", name): home / name for name in ("one", "two", "three")}
    for place in places.values():
        place.mkdir()

    async def main() -> bool:
        async with processes_at(home) as processes:
            return await make_verifier(home, processes).build_all(places)

    (home / "modules").mkdir()
    assert not asyncio.run(main())


def test_what_a_module_needs_only_through_another_is_found_beside_it(home: Path) -> None:
    """Before Go 1.17, go.mod names what its packages import; with `pin: none`, nothing is added."""
    mod = "module acme.example/app\n\nrequire acme.example/text v1.0.0\n"
    _, found = verify(home, mod, "text", "core")
    for name in ("core", "text"):
        place = home / "modules" / "acme.example" / f"{name}@v1.0.0"
        assert f'replace acme.example/{name} v1.0.0 => "{place}"\n' in found


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ("https://proxy.example", "file:///registry,https://proxy.example"),
        (
            "https://me:hunter2@proxy.example",
            "file:///registry,https://proxy.golang.org,direct",
        ),
    ],
)
def test_no_build_gets_the_password_of_a_proxy(tmp_path: Path, given: str, asked: str) -> None:
    async def main() -> None:
        environment = {"GOPROXY": given}
        async with Processes(environment=environment, variables=fakes.TOOL_VARIABLES) as processes:
            services = fakes.services(fakes.config(tmp_path), processes)
            services = replace(services, environment=environment)
            go = Go(GoOptions(), services, absent, edits=True, proxy="file:///registry")
            async with go.open_verifier() as verifier:
                assert verifier is not None
                assert verifier.environment["GOPROXY"] == asked

    asyncio.run(main())


async def absent(_package: Package) -> None:
    return None
