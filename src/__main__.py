"""What `python src` runs: the entry point of a checkout, which nobody has installed."""

import signal
import sys

# Until a run handles signals itself, they end the process: it has begun nothing yet. Python's own
# KeyboardInterrupt may strike inside an import, where it is swallowed with the import lock held,
# and every later import in a thread would wait for ever.
# https://github.com/python/cpython/blob/v3.11.7/Lib/importlib/_bootstrap.py#L197
signal.signal(signal.SIGINT, signal.SIG_DFL)

from releasekit.__main__ import start  # noqa: E402 - see above

if __name__ == "__main__":
    sys.exit(start())
