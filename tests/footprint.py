"""What users see of ReleaseKit, as text files: `python tests/footprint.py DIRECTORY`.

Run in two checkouts, `diff -r` of the two directories shows what a change of the source has changed
for users: plans of real repositories, a release of the example with its results, outputs, summary
and page, a release in which a build fails, simulated journals, `--help-all`, and the inputs of
the action. Durations, times, run ids and temporary places are masked.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from releasekit.__main__ import main  # noqa: E402 (after the path is set)
from releasekit.cli import commands  # noqa: E402
from simulation import publish_line, staged_line  # noqa: E402
from workspaces import git  # noqa: E402
from world import facts, skeleton  # noqa: E402

RELEASES: Final = int(os.environ.get("RELEASES", "2000"))
COMMANDS: Final = ("", *commands.COMMANDS)
COPIED: Final = ("action.yml", "docs/inputs.md", "docs/results.schema.json", "docs/problems.md")
# What differs between two runs of the same source: times, durations, run ids, digests of builds.
MASKS: Final = (
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)?", "<time>"),
    (r"\d{8}T\d{6}Z?-?[0-9a-f]*", "<run>"),
    (r"sha512-[A-Za-z0-9+/=]+", "<digest>"),
    (r"ghadelimiter_[0-9a-f-]+", "<delimiter>"),
    (r"\b[0-9a-f]{7,128}\b", "<hex>"),
    (r'(": ?)\d+(?:\.\d+)?', r"\1<number>"),
    (r"\b\d+(?:\.\d+)? (?:ms|s|min|kB|MB|KiB|MiB)\b", "<amount>"),
    (r"( :.*, )\d+(?:, |ms, )\d+(?:ms)?$", r"\1<span>"),
    (r"\b\d+m \d+s\b|\b\d+(?:\.\d+)?s\b", "<amount>"),
)


def write(directory: Path) -> None:
    directory.mkdir(parents=True)
    for name in COPIED:
        shutil.copyfile(ROOT / name, directory / Path(name).name)
    for name in COMMANDS:
        (directory / f"help-{name or 'all'}.txt").write_text(
            _run(*filter(None, [name]), "--help-all")
        )
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        write_plans(directory, place)
        write_releases(directory, place)
        write_journals(directory, place)


def write_plans(directory: Path, scratch: Path) -> None:
    for world in facts.all_worlds():
        root = scratch / world.name
        root.mkdir()
        skeleton.write(root, world)
        registry = f"dir:{scratch / 'none'}"
        where = ("plan", str(root), "--ecosystem", world.ecosystem, "--registry", registry)
        for form in ("json", "table"):
            told = _mask(_run(*where, "--format", form), scratch)
            (directory / f"plan-{world.name}.{form}").write_text(told)


def write_releases(directory: Path, scratch: Path) -> None:
    """The example, once more when all is published, and with a build that fails."""
    root = scratch / "example"
    shutil.copytree(ROOT / "examples" / "polyglot", root)
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "Start")
    _release(directory, scratch, root, "first")
    _release(directory, scratch, root, "second")
    manifest = root / "python/acme-core/pyproject.toml"
    broken = re.sub('build-backend = ".*"', 'build-backend = "missing"', manifest.read_text())
    manifest.write_text(broken)
    git(root, "commit", "--quiet", "--all", "--message", "Break a build")
    _release(directory, scratch, root, "broken", registry="other")


def _release(
    directory: Path, scratch: Path, root: Path, name: str, *, registry: str = "one"
) -> None:
    told = {each: scratch / f"{name}.{each}" for each in ("summary", "output", "json")}
    told["summary"].touch()
    told["output"].touch()
    environment = {key: value for key, value in os.environ.items() if "RELEASEKIT" not in key}
    environment |= {
        "GITHUB_ACTIONS": "true",
        "GITHUB_STEP_SUMMARY": str(told["summary"]),
        "GITHUB_OUTPUT": str(told["output"]),
        "GITHUB_REPOSITORY": "acme/widgets",
        "GITHUB_WORKSPACE": str(root),
        "COLUMNS": "100",
    }
    flags = ["--registry", f"dir:{scratch / registry}", "--results-file", str(told["json"])]
    flags += [
        "--state-directory",
        str(scratch / "state"),
        "--concurrency",
        "1",
        "--build-concurrency",
        "1",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "releasekit", "publish", str(root), *flags],
        env={**environment, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    parts = {"log": done.stdout + done.stderr + f"\nexit {done.returncode}\n"}
    told["html"] = scratch / "report.html"
    parts |= {each: path.read_text() for each, path in told.items()}
    for each, text in parts.items():
        (directory / f"release-{name}.{each}").write_text(_mask(text, scratch))


def write_journals(directory: Path, scratch: Path) -> None:
    """A digest of each: what a seed of a release in bad weather leaves in the journal."""
    logging.disable(logging.CRITICAL)
    for name, line in (("publish", publish_line), ("staged", staged_line)):
        lines = []
        for seed in range(RELEASES):
            place = scratch / "journals" / "x"
            place.mkdir(parents=True)
            journal = bytes(line.simulate(seed, place).journal)
            lines.append(f"{seed} {hashlib.sha256(journal).hexdigest()}\n")
            shutil.rmtree(place)
        (directory / f"journals-{name}.txt").write_text("".join(lines))


def _run(*arguments: str) -> str:
    told = io.StringIO()
    with contextlib.redirect_stdout(told), contextlib.redirect_stderr(told):
        try:
            code = main([*arguments])
        except SystemExit as end:
            code = int(end.code or 0)
    return told.getvalue() + f"exit {code}\n"


def _mask(text: str, scratch: Path) -> str:
    text = text.replace(str(scratch), "<scratch>").replace(str(ROOT), "<checkout>")
    for pattern, mask in MASKS:
        text = re.sub(pattern, mask, text, flags=re.MULTILINE)
    return text


if __name__ == "__main__":
    write(Path(sys.argv[1]))
