"""A signed release, killed around everything that it does to the world, and finished."""

from __future__ import annotations

import json
import os
from collections import Counter
from typing import TYPE_CHECKING

from effort import SEARCHING
from harness.killing import Killing
from integration.tools import require_tool
from provenance.world import FILES, NODE, PYTHON, serving_all, workspace
from releasekit.provenance.release_statement import stored_bundles
from workspaces import Program

if TYPE_CHECKING:
    from pathlib import Path

# One for each: what is sent to GitHub, to PyPI (two files a package) and npm, and signed.
POINTS = 2 * (FILES + FILES + 1)
# A token, a certificate, a file signed and all of them, an upload to PyPI and to npm.
KINDS = 2 * 6


def subjects(payload: bytes) -> tuple[str, ...]:
    return tuple(each["name"] for each in json.loads(payload)["subject"])


def test_killed_around_everything_it_is_finished_with_every_file_attested(tmp_path: Path) -> None:
    """R14, R15, R18: four packages; before each signature, each upload, each token and each
    certificate, and after it with its answer lost; in a test run, once for each kind of them.
    """
    require_tool("npm")
    root = workspace(tmp_path / "a workspace")
    (tmp_path / "home").mkdir()
    path = f"{require_tool('uv').parent}{os.pathsep}{os.environ['PATH']}"
    with serving_all(tmp_path) as world:
        program = Program(tmp_path / "home", {**world.environment, "PATH": path})
        flags = [text for name, value in world.inputs.items() for text in (f"--{name}", value)]
        arguments: list[str | Path] = ["publish", root, *flags, "--retry-base-delay", "0s"]
        killing = Killing(lambda: program.start(*arguments), root, program.log.read_text)

        def may_die(moment: str, what: str) -> None:
            killing.die_once(moment, what if SEARCHING else what.rpartition(" ")[0])

        world.around = may_die
        killing.finish(most=2 * POINTS + 1)
        killed = killing.killed
        assert len(killed) >= (POINTS if SEARCHING else KINDS), sorted(killed)
        attested = world.attested
        assert len(attested) == FILES
        assert all(attested.values())
        # What died between the log and the disk was signed once more, and nothing else was: each
        # file's own death, and those that it was in flight beside.
        signed = Counter(entry.payload for entry in world.sigstore.entries)
        files = Counter(subjects(payload) for payload in signed.elements())
        assert len(files) == FILES + 1
        lost = [what for moment, what in killed if moment == "after" and what.startswith("sign")]
        assert len(lost) >= (len(files) if SEARCHING else 2)
        assert files.total() >= len(files) + len(lost)
        assert files.total() <= len(files) + len(killed)
        (bundle,) = stored_bundles(program.home / "provenance.jsonl")
        assert len(bundle.subjects) == FILES
        assert [each["dsseEnvelope"] for each in world.github.attestations] == [
            bundle.document["dsseEnvelope"]
        ]
        world.around = lambda moment, what: None
        before = len(world.sigstore.entries)
        ended = program.run(*arguments)
        assert (ended.code, set(ended.outcomes.values())) == (0, {"already-published"})
        assert len(ended.outcomes) == len(PYTHON) + len(NODE)
        assert (len(world.sigstore.entries), len(world.github.attestations)) == (before, 1)
