"""The entry point of a checkout, which nobody has installed.

entrypoint.sh runs this file, not its directory: `runpy`, which that would take, has more to import
before the first line of ours.
"""

import signal
import sys

# Until a run handles signals itself, they end the process: it has begun nothing yet. Python's own
# KeyboardInterrupt may strike inside an import, where it is swallowed with the import lock held,
# and every later import in a thread would wait for ever.
# https://github.com/python/cpython/blob/v3.11.7/Lib/importlib/_bootstrap.py#L197
signal.signal(signal.SIGINT, signal.SIG_DFL)

from pathlib import Path  # noqa: E402 - see above

# -I keeps everything out of the path, the directory of this file too.
sys.path.insert(0, str(Path(__file__).parent))

from releasekit.__main__ import start  # noqa: E402 - see above

if __name__ == "__main__":
    sys.exit(start())
