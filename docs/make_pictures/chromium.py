"""Pages shown in a headless Chromium: what becomes of them, and how they look."""

from __future__ import annotations

import io
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

Theme = Literal["light", "dark"]
THEMES: Final[tuple[Theme, ...]] = ("light", "dark")
_NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# Pixels of a picture for each one of the page: letters stay sharp on a screen of today.
_SCALE: Final = 1.5
_COLOURS: Final = 128
# A window's frame and bars, which its size includes though there are none.
_FRAME: Final = 120


def found() -> str | None:
    """The program, if there is one."""
    return next(filter(None, map(shutil.which, _NAMES)), None)


def document(page: Path, *, width: int = 1_000) -> str:
    """Its HTML, once its scripts have come to rest."""
    return _run(page, ["--dump-dom", f"--window-size={width},1000"]).decode()


def picture(page: Path, *, width: int, height: int, theme: Theme) -> bytes:
    """A PNG of a few colours, of the page's upper part."""
    from PIL import Image  # noqa: PLC0415 (who only wants the document may lack it)

    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "page.png"
        _run(
            page,
            [
                f"--screenshot={file}",
                f"--window-size={width},{height + _FRAME}",
                f"--force-device-scale-factor={_SCALE}",
                f"--blink-settings=preferredColorScheme={1 - THEMES.index(theme)}",
            ],
        )
        with Image.open(file) as shot:
            cut = shot.convert("RGB").crop((0, 0, round(width * _SCALE), round(height * _SCALE)))
    few = cut.quantize(_COLOURS, dither=Image.Dither.NONE)
    png = io.BytesIO()
    few.save(png, "PNG", optimize=True)
    return png.getvalue()


def _run(page: Path, options: Sequence[str]) -> bytes:
    program = found()
    if program is None:
        raise SystemExit(f"no {_NAMES[0]} is on PATH: apt-get install {_NAMES[0]}")
    with tempfile.TemporaryDirectory() as profile:
        return subprocess.run(
            [
                program,
                "--headless",
                # It shows pages of this repository alone, and inside a container it has no other.
                "--no-sandbox",
                "--disable-gpu",
                "--hide-scrollbars",
                "--force-color-profile=srgb",
                "--font-render-hinting=none",
                "--host-resolver-rules=MAP * ~NOTFOUND",
                "--virtual-time-budget=60000",
                f"--user-data-dir={profile}",
                *options,
                page.as_uri(),
            ],
            check=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=300,
        ).stdout
