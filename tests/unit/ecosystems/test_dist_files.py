from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest

from releasekit.config.values import Dist
from releasekit.ecosystems import ECOSYSTEMS, dist_files
from releasekit.ecosystems.dist_files import DistFile, collect_files, refuse_other_bytes
from releasekit.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

WHEEL = "a-1.0-py3-none-any.whl"
DIGEST = hashlib.sha256(b"a").hexdigest()


def files(root: Path, *names: str) -> Path:
    directory = root.resolve() / "dist"
    for name in names:
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"a")
    return directory


def found(directory: Path, owner: str = "") -> list[DistFile]:
    return collect_files([Dist(directory, "input dist", owner)], ECOSYSTEMS)


def refusal(directory: Path, owner: str = "") -> str:
    with pytest.raises(ConfigError) as caught:
        found(directory, owner)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_files_are_told_apart_by_their_names(tmp_path: Path) -> None:
    names = {
        WHEEL: "pypi",
        "deep/a-1.0.tar.gz": "pypi",
        "a-1.0.0.tgz": "npm",
        "a-1.0.0.crate": "cargo",
        "a-1.0.jar": "maven",
    }
    directory = files(tmp_path, *names)
    assert {
        file.path.relative_to(directory).as_posix(): file.ecosystem for file in found(directory)
    } == names


def test_what_tools_leave_beside_them_is_left_aside(tmp_path: Path) -> None:
    """uv writes a .gitignore, gh an attestation, and Maven checksums and metadata."""
    beside = (".gitignore", ".hidden/b.whl", f"{WHEEL}.asc", f"{WHEEL}.publish.attestation")
    more = ("a.sigstore.json", "a-1.0.jar.sha1", "g/a/maven-metadata.xml")
    directory = files(tmp_path, WHEEL, *beside, *more)
    assert [file.path.name for file in found(directory)] == [WHEEL]


def test_a_file_that_nobody_publishes_is_named(tmp_path: Path) -> None:
    """Someone who put it there expects it to be published."""
    directory = files(tmp_path, WHEEL, "acme.node")
    assert refusal(directory) == (
        f"{directory}/acme.node is not a package file: these are named *.whl, *.tar.gz, *.tgz, "
        "*.crate, *.pom, *.module, *.jar, *.war, *.ear, *.aar"
    )
    assert refusal(directory, "go").endswith("these are named by tags, not by files")


def test_a_directory_may_be_for_one_ecosystem(tmp_path: Path) -> None:
    directory = files(tmp_path, WHEEL)
    assert [file.owner for file in found(directory, "pypi:a")] == ["pypi:a"]
    assert refusal(directory, "npm") == (
        f"{directory}/{WHEEL} is not a package file of npm: these are named *.tgz"
    )


@pytest.mark.parametrize("names", [(), ("SHA256SUMS", "x.asc")])
def test_a_directory_without_files_is_a_mistake(tmp_path: Path, names: tuple[str, ...]) -> None:
    directory = files(tmp_path, *names)
    directory.mkdir(exist_ok=True)
    assert refusal(directory) == f"input dist: there is no package file below {directory}"


def test_a_link_that_leads_out_is_refused(tmp_path: Path) -> None:
    """R36"""
    directory = files(tmp_path, WHEEL)
    (directory / "again.whl").symlink_to(directory / WHEEL)
    assert [file.path.name for file in found(directory)] == [WHEEL]
    (tmp_path / "secret.whl").write_bytes(b"s")
    for target in (tmp_path / "secret.whl", tmp_path):
        (directory / "out.whl").symlink_to(target)
        assert refusal(directory).startswith(f"{directory}/out.whl is a symbolic link that leads")
        (directory / "out.whl").unlink()


def test_there_is_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dist_files, "MAX_FILES", 2)
    directory = files(tmp_path, WHEEL, "b.whl")
    assert len(found(directory)) == 2
    files(tmp_path, "c.whl")
    assert refusal(directory) == "input dist: there are more than 2 files in it"


def test_a_directory_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    assert "No such file" in refusal(tmp_path / "gone")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("SHA256SUMS", f"# of the release\n{DIGEST}  {WHEEL}\n\n"),
        ("sha256sum.txt", f"{DIGEST.upper()} *./{WHEEL}\n"),
        (f"{WHEEL}.sha256", f"{DIGEST}\n"),
        (f"{WHEEL}.sha256", f"{DIGEST}  {WHEEL}\n{DIGEST}  another.whl"),
    ],
)
def test_a_file_is_held_against_the_checksums_beside_it(
    tmp_path: Path, name: str, text: str
) -> None:
    directory = files(tmp_path, WHEEL)
    (directory / name).write_text(text)
    (file,) = found(directory)
    refuse_other_bytes(file, DIGEST)
    with pytest.raises(ConfigError) as caught:
        refuse_other_bytes(file, "00")
    assert str(caught.value) == (
        f"{directory}/{WHEEL} has sha256:00, and the checksums beside it say sha256:{DIGEST}"
    )


def test_what_is_no_checksum_is_named_by_its_line(tmp_path: Path) -> None:
    directory = files(tmp_path, WHEEL)
    (directory / "SHA256SUMS").write_text(f"{DIGEST}  {WHEEL}\nwhat is this\n")
    assert refusal(directory) == f"{directory}/SHA256SUMS: line 2 is not a sha256 and a filename"


def test_two_checksums_of_one_file_agree(tmp_path: Path) -> None:
    directory = files(tmp_path, WHEEL)
    (directory / "SHA256SUMS").write_text(f"{DIGEST}  {WHEEL}\n")
    (directory / f"{WHEEL}.sha256").write_text("0" * 64)
    assert refusal(directory).endswith(f"{WHEEL} has another sha256 in a file beside it")
