"""Runs in an environment with hatchling: for each directory on standard input, the source
distribution, and the wheel that is made from it, as installers and uv do it.
"""

import contextlib
import os
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path

from hatchling import build

out = sys.argv[1]
for line in sys.stdin:
    directory = line.strip()
    with tempfile.TemporaryDirectory() as scratch, contextlib.redirect_stdout(sys.stderr):
        os.chdir(directory)
        sdist = build.build_sdist(out)
        with tarfile.open(Path(out, sdist)) as archive:
            archive.extractall(scratch, filter="data")
        os.chdir(next(Path(scratch).iterdir()))
        wheel = build.build_wheel(out)
        os.chdir(out)
        shutil.rmtree(scratch)
        Path(scratch).mkdir()
    print(sdist, wheel, flush=True)
