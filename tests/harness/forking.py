"""A process that has imported everything, and forks for each request."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Final, Self, TypeVar

_TESTS: Final = Path(__file__).parents[1]
_Answer = TypeVar("_Answer")


class ForkServer:
    """Runs `serve` of a module, which reads pickled requests from its standard input, and answers
    on the descriptor that it is given; for as long as the context is open.
    """

    def __init__(self, module: str) -> None:
        read, write = os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-c", f"from {module} import serve; serve({write})"],
            stdin=subprocess.PIPE,
            pass_fds=[write],
            env={**os.environ, "PYTHONPATH": f"{_TESTS.parent / 'src'}{os.pathsep}{_TESTS}"},
        )
        os.close(write)
        self._answers = os.fdopen(read, "rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()
        self._answers.close()

    def send(self, request: object) -> None:
        assert self._process.stdin
        pickle.dump(request, self._process.stdin)
        self._process.stdin.flush()

    def receive(self, kind: type[_Answer]) -> _Answer:
        answer = pickle.load(self._answers)
        assert isinstance(answer, kind)
        return answer
