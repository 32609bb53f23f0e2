"""The entry point of a checkout, which nobody has installed.

entrypoint.sh runs this file, not its directory: `runpy`, which that would take, has more to import
before the first line of ours.
"""

import os
import signal
import sys

# Until a run handles signals itself, they end the process: it has begun nothing yet. Python's own
# KeyboardInterrupt may strike inside an import, where it is swallowed with the import lock held,
# and every later import in a thread would wait for ever.
# https://github.com/python/cpython/blob/v3.11.7/Lib/importlib/_bootstrap.py#L197
signal.signal(signal.SIGINT, signal.SIG_DFL)

# -I keeps everything out of the path, the directory of this file too. pathlib would take longer to
# import than the rest of what happens before `start` executes the process once more.
sys.path.insert(0, os.path.dirname(__file__))  # noqa: PTH120

from releasekit.start import start  # noqa: E402 - see above

if __name__ == "__main__":
    sys.exit(start())
