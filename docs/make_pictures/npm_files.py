"""What shows Markdown and Mermaid as GitHub does, from npm: fetched once, and true to its digest.

Only the tarballs themselves: installed, Mermaid brings 118 more packages, which its bundle has.
"""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import Final, NamedTuple


class _Pinned(NamedTuple):
    package: str
    sha512: str
    member: str


_FILES: Final = {
    "github-markdown-light.css": _Pinned(
        "github-markdown-css@5.9.0",
        "tmT5sY+zvg2302XLYEfH2mtkViIM1SWf2nvYoF5N1ZsO0V6B2qZTiw3GOzw4vpjLygK/KG35qRlPFweHqfzz5w==",
        "github-markdown-light.css",
    ),
    "github-markdown-dark.css": _Pinned(
        "github-markdown-css@5.9.0",
        "tmT5sY+zvg2302XLYEfH2mtkViIM1SWf2nvYoF5N1ZsO0V6B2qZTiw3GOzw4vpjLygK/KG35qRlPFweHqfzz5w==",
        "github-markdown-dark.css",
    ),
    "marked.js": _Pinned(
        "marked@18.2.1",
        "ii4bxCTCqqwpT86XZWgJNs+ZnAIZksmLGYMViWA7PDIXYIeNo1x6cDdX3JOip9NM/cI6p8z57FxliACboTruMA==",
        "lib/marked.umd.js",
    ),
    "marked-alert.js": _Pinned(
        "marked-alert@2.1.2",
        "EFNRZ08d8L/iEIPLTlQMDjvwIsj03gxWCczYTht6DCiHJIZhMk4NK5gtPY9UqAYb09eV5VGT+jD4lp396E0I+w==",
        "dist/index.umd.js",
    ),
    "mermaid.js": _Pinned(
        "mermaid@11.17.2",
        "V6K3C8EBdEsPFZXSKMJe6ppQOENxuHARr9GvHX4hh47lAbhMRD9qf4oEK7LoaRQxULMa80/qt5gHO73aCleBBg==",
        "dist/mermaid.min.js",
    ),
}


def npm_files() -> Path:
    """The directory in the user's cache that holds all of them."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    state = hashlib.sha256(repr(_FILES).encode()).hexdigest()[:16]
    directory = cache / "releasekit-tests" / f"pictures-{state}"
    if not directory.is_dir():
        directory.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=directory.parent) as scratch:
            _fetch(Path(scratch))
            # Several may have done so at once.
            shutil.copytree(scratch, directory, dirs_exist_ok=True)
    return directory


def _fetch(into: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        for name, pinned in _FILES.items():
            tarball = Path(scratch) / f"{pinned.sha512[:8].replace('/', '-')}.tgz"
            if not tarball.exists():
                _pack(pinned, Path(scratch), tarball)
            with tarfile.open(tarball) as archive:
                member = archive.extractfile(f"package/{pinned.member}")
                assert member is not None  # noqa: S101 (a file of a tarball whose digest is known)
                (into / name).write_bytes(member.read())


def _pack(pinned: _Pinned, scratch: Path, tarball: Path) -> None:
    packed = subprocess.run(
        [shutil.which("npm") or "npm", "pack", "--silent", "--ignore-scripts", pinned.package],
        cwd=scratch,
        check=True,
        capture_output=True,
        text=True,
    )
    file = scratch / packed.stdout.split()[-1]
    found = base64.b64encode(hashlib.sha512(file.read_bytes()).digest()).decode()
    if found != pinned.sha512:
        raise SystemExit(f"{pinned.package}: npm has other bytes than were pinned, sha512-{found}")
    file.rename(tarball)
