"""What is in the tarballs, beside those of npm and pnpm."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from peers import ours
from peers.npm.reading import MANIFEST
from peers.scenarios import EQUAL, Files, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# What npm packs as it is, so no requirement is pinned.
SETTINGS: Final = 'pin = "none"\n[npm]\nignore-scripts = true\n'
Tarballs = dict[str, bytes]
_PLACE: Final = Path(__file__).parents[3] / "build" / "peers"


def environment(home: Path) -> dict[str, str]:
    """Of a tool that asks nobody, and reads no settings of this machine."""
    home.mkdir(exist_ok=True)
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "npm_config_cache": str(home / "cache"),
        "npm_config_offline": "true",
        "npm_config_update_notifier": "false",
        "npm_config_loglevel": "error",
        "npm_config_ignore_scripts": "true",
        "npm_config_manage_package_manager_versions": "false",
    }


def install(program: str, package: str) -> Path:
    """Where it is, from npm unless it is there."""
    place = _PLACE / program
    found = place / "node_modules" / ".bin" / program
    if not found.exists():
        argv = ["npm", "install", "--silent", "--prefix", str(place), package]
        subprocess.run(argv, check=True, capture_output=True)
    return found


def read_json(path: Path) -> dict[str, Any]:
    with contextlib.suppress(OSError, ValueError):
        found = json.loads(path.read_text(encoding="utf-8-sig"))
        return found if isinstance(found, dict) else {}
    return {}


def judge(
    read: Callable[[], tuple[Files, str]],
    pack: Callable[[Path, Path], Tarballs],
    explain: Callable[[Path, ours.Ran, str], str],
    plain: Callable[[dict[str, Any]], dict[str, Any]],
    directory: Path,
) -> Verdict:
    """`read` says what to write, and where in it the workspace lies; `pack` runs the tool in that,
    and raises CalledProcessError where that refuses it; `explain` quotes the page of a difference.
    """
    root = directory / "repository"
    try:
        files, at = read()
        files.write(root)
    except ValueError as error:
        return Verdict("unusable", str(error))
    top = root / at
    if not (top / MANIFEST).is_file():
        return Verdict("unusable", "there is no package.json at its root")
    (top / "releasekit.toml").write_text(SETTINGS)
    ours.commit(root)
    refusal, theirs = "", Tarballs()
    try:
        theirs = pack(top, directory)
    except subprocess.CalledProcessError as error:
        refusal = f"{error.stdout}\n{error.stderr}"
    registry = directory / "registry"
    done = ours.run(
        "publish",
        top,
        "--registry",
        f"dir:{registry}",
        "--build-sandbox",
        "off",
        "--state-directory",
        directory / "state",
    )
    made = {path.name: path.read_bytes() for path in registry.glob("npm/-/**/*.tgz")}
    if refusal:
        if not made:
            return EQUAL
        what = f"only the tool refuses it: {refusal}"
    elif done.code and theirs:
        what = f"only ReleaseKit refuses it: {done.error}"
    elif wrong := compare(made, theirs, plain):
        what = "\n".join(wrong)
    else:
        return EQUAL
    if why := explain(top, done, what):
        return Verdict("explained", why)
    return Verdict("fault", f"{what}\n{done.error}{done.out[-1500:]}")


def as_it_is(manifest: dict[str, Any]) -> dict[str, Any]:
    return manifest


def compare(
    made: Tarballs,
    theirs: Tarballs,
    plain: Callable[[dict[str, Any]], dict[str, Any]] = as_it_is,
) -> list[str]:
    wrong = [f"only ReleaseKit makes {name}" for name in sorted(made.keys() - theirs.keys())]
    wrong += [f"only the tool makes {name}" for name in sorted(theirs.keys() - made.keys())]
    for name in sorted(made.keys() & theirs.keys()):
        if made[name] != theirs[name]:
            wrong += (
                f"{name}: {each}"
                for each in differ(contents(made[name], plain), contents(theirs[name], plain))
            )
    return wrong


def contents(
    data: bytes, plain: Callable[[dict[str, Any]], dict[str, Any]] = as_it_is
) -> dict[str, tuple[str, object]]:
    """Of each file its mode and what is in it; a manifest as a document."""
    found: dict[str, tuple[str, object]] = {}
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for member in archive:
            file = archive.extractfile(member)
            text = file.read() if file else b""
            name = member.name.partition("/")[2]
            content: object = text
            if name == MANIFEST:
                content = plain(json.loads(text.decode("utf-8-sig")))
            found[name] = (oct(member.mode & 0o111), content)
    return found


def differ(
    made: Mapping[str, tuple[str, object]], theirs: Mapping[str, tuple[str, object]]
) -> list[str]:
    wrong = [f"only ReleaseKit packs {name}" for name in sorted(made.keys() - theirs.keys())]
    wrong += [f"only the tool packs {name}" for name in sorted(theirs.keys() - made.keys())]
    for name in sorted(made.keys() & theirs.keys()):
        (mode, ours_), (their_mode, theirs_) = made[name], theirs[name]
        if mode != their_mode:
            wrong.append(f"{name} is {mode} here, and {their_mode} there")
        if isinstance(ours_, dict) and isinstance(theirs_, dict):
            wrong += [
                f"{name}: {key} is {ours_.get(key)!r} here, and {theirs_.get(key)!r} there"
                for key in sorted({*ours_, *theirs_})
                if is_other(key, ours_.get(key), theirs_.get(key))
                or (key in ours_) != (key in theirs_)
            ]
        elif ours_ != theirs_:
            wrong.append(f"{name} has other bytes")
    return wrong


def is_other(key: str, own: object, theirs: object) -> bool:
    """The first condition of an entry point that fits is taken, so their order counts.
    https://nodejs.org/api/packages.html#conditional-exports
    """
    if own == theirs and key in {"exports", "imports"}:
        return json.dumps(own) != json.dumps(theirs)
    return own != theirs


def is_private(tarball: bytes) -> bool:
    _, document = contents(tarball)[MANIFEST]
    return isinstance(document, dict) and bool(document.get("private"))


def pack_by_npm(top: Path, directory: Path, *, alone: bool = False) -> Tarballs:
    """All packages of the workspace by one process, or one `alone`, unless they are private."""
    into = directory / "theirs"
    into.mkdir()
    argv = ["npm", "pack", "--json", "--ignore-scripts", "--pack-destination", str(into)]
    if read_json(top / MANIFEST).get("workspaces") and not alone:
        argv += ["--workspaces", "--include-workspace-root"]
    done = subprocess.run(
        argv,
        cwd=top,
        env=environment(directory / "home"),
        capture_output=True,
        text=True,
        check=True,
    )
    found = {}
    for each in json.loads(done.stdout):
        name = each["filename"]
        data = (into / name).read_bytes()
        if not is_private(data):
            found[name] = data
    return found
