"""What a whole release takes, from the sources to the last confirmed upload: ours against the
ecosystems' own tools, side by side.

    python bench/release.py [--rounds 3] [--lag 0.25] [pypi] [npm] [cargo]

24 packages in four layers go to a server on loopback that takes `lag` seconds for each upload.
Every way gets a new server and a new checkout, and has to publish everything; the ways take turns
in each round, and the best rounds are compared.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).resolve().parents[1] / part) for part in ("src", "tests")]

from integration import crates, servers, verdaccio
from workspaces import Program, git, npm_workspace, uv_workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from integration.recorder import Recorder

WIDTH, LAYERS = 6, 4
PACKAGES: Mapping[str, tuple[str, ...]] = {
    f"bench-{layer}-{place}": tuple(
        f"bench-{layer - 1}-{needed}" for needed in (place, (place + 1) % WIDTH) if layer
    )
    for layer in range(LAYERS)
    for place in range(WIDTH)
}
UV = str(Path(sys.executable).with_name("uv"))


class Command(NamedTuple):
    """One process of a way; a way may need several."""

    argv: Sequence[str | Path]
    environment: Mapping[str, str]


def seconds(root: Path, recorder: Recorder, lag_s: float, commands: Sequence[Command]) -> float:
    """From the start of the first command to the end of the last, once all of them succeeded."""
    recorder.lag_s = lag_s
    began = time.perf_counter()
    for command in commands:
        done = subprocess.run(
            command.argv,
            cwd=root,
            env={**command.environment},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise SystemExit(f"{command.argv[0]}: {(done.stdout + done.stderr)[-6000:]}")
    took = time.perf_counter() - began
    stored = {upload.filename for upload in recorder.uploads if upload.status in {200, 201}}
    missing = [name for name in PACKAGES if not any(_is_of(name, file) for file in stored)]
    if missing:
        raise SystemExit(f"{commands[0].argv[0]}: did not publish {', '.join(missing)}")
    return took


def _is_of(name: str, filename: str) -> bool:
    return f"{name}-1.0.0" in filename.replace("_", "-")


def pypi(way: str, where: Path, lag_s: float) -> float:
    root = uv_workspace(where / "workspace", PACKAGES)
    with servers.pypiserver(where / "server") as server:
        program = Program(where, server.environment)
        environment = {
            **program.full_environment,
            "UV_PUBLISH_URL": server.upload_url,
            "UV_PUBLISH_USERNAME": server.username,
            "UV_PUBLISH_PASSWORD": server.password,
        }
        argv: dict[str, list[list[str]]] = {
            "ReleaseKit": [program.argv("publish", root, "--pypi-registry", server.upload_url)],
            "uv build --all-packages; uv publish": [
                [UV, "build", "--quiet", "--all-packages"],
                [UV, "publish", "--quiet"],
            ],
            "uv build; uv publish, one by one": [
                command
                for name in PACKAGES
                for command in (
                    [UV, "build", "--quiet", "--package", name, "--out-dir", f"dist/{name}"],
                    [UV, "publish", "--quiet", f"dist/{name}/*"],
                )
            ],
        }
        commands = [Command(it, environment) for it in argv[way]]
        return seconds(root, server.recorder, lag_s, commands)


def npm(way: str, where: Path, lag_s: float) -> float:
    root = npm_workspace(where / "workspace", PACKAGES)
    if way == "pnpm -r publish":
        (root / "pnpm-workspace.yaml").write_text("packages: [packages/*]\n")
    with verdaccio.verdaccio(where / "server") as server:
        program = Program(where, server.environment)
        host = server.url.removeprefix("http:")
        (where / "npmrc").write_text(f"registry={server.url}\n{host}:_authToken={server.token}\n")
        environment = {
            **program.full_environment,
            "NPM_CONFIG_USERCONFIG": str(where / "npmrc"),
            "NPM_CONFIG_CACHE": str(where / "cache"),
        }
        argv: dict[str, list[str | Path]] = {
            "ReleaseKit": [*program.argv("publish", root, "--npm-registry", server.url)],
            "npm publish --workspaces": ["npm", "publish", "--workspaces", "--silent"],
            "pnpm -r publish": [*verdaccio.pnpm(), "-r", "publish", "--no-git-checks"],
        }
        return seconds(root, server.recorder, lag_s, [Command(argv[way], environment)])


def cargo(way: str, where: Path, lag_s: float) -> float:
    root = cargo_workspace(where / "workspace")
    with crates.crate_server() as server:
        home = where / "cargo"
        server.cargo_config(home)
        rust = {"CARGO_HOME": str(home), "CARGO_TARGET_DIR": str(where / "target")}
        program = Program(where, {**rust, "RELEASEKIT_CARGO_TOKEN": crates.TOKEN})
        argv: dict[str, list[str | Path]] = {
            "ReleaseKit": [*program.argv("publish", root, "--cargo-registry", server.index_url)],
            "cargo publish --workspace": [
                *("cargo", "publish", "--workspace", "--no-verify", "--quiet"),
                *("--registry", "local"),
            ],
        }
        commands = [Command(argv[way], program.full_environment)]
        return seconds(root, server.recorder, lag_s, commands)


def cargo_workspace(root: Path) -> Path:
    root.mkdir(parents=True)
    (root / ".gitignore").write_text(".releasekit/\nCargo.lock\n")
    (root / "Cargo.toml").write_text('[workspace]\nmembers = ["crates/*"]\nresolver = "2"\n')
    for name, needs in PACKAGES.items():
        source = root / "crates" / name / "src"
        source.mkdir(parents=True)
        (source / "lib.rs").write_text(f'pub const NAME: &str = "{name}";\n')
        needed = "".join(
            f'{need} = {{ path = "../{need}", version = "1.0.0" }}\n' for need in needs
        )
        (source.parent / "Cargo.toml").write_text(
            f'[package]\nname = "{name}"\nversion = "1.0.0"\nedition = "2021"\nlicense = "MIT"\n'
            f'description = "Of a benchmark"\n\n[dependencies]\n{needed}'
        )
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "Start")
    return root


Ways = tuple["Callable[[str, Path, float], float]", tuple[str, ...]]
ECOSYSTEMS: Mapping[str, Ways] = {
    "pypi": (
        pypi,
        (
            "ReleaseKit",
            "uv build --all-packages; uv publish",
            "uv build; uv publish, one by one",
        ),
    ),
    "npm": (npm, ("ReleaseKit", "npm publish --workspaces", "pnpm -r publish")),
    "cargo": (cargo, ("ReleaseKit", "cargo publish --workspace")),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("ecosystems", nargs="*", metavar="ECOSYSTEM", help="default: all three")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--lag", type=float, default=0.25, help="seconds an upload takes")
    options = parser.parse_args()
    if unknown := {*options.ecosystems} - {*ECOSYSTEMS}:
        parser.error(f"no {', '.join(sorted(unknown))} here; write some of {', '.join(ECOSYSTEMS)}")
    for ecosystem in options.ecosystems or ECOSYSTEMS:
        release, ways = ECOSYSTEMS[ecosystem]
        took: dict[str, list[float]] = defaultdict(list)
        for _ in range(options.rounds):
            for way in ways:
                with tempfile.TemporaryDirectory(prefix="bench-") as directory:
                    took[way].append(release(way, Path(directory), options.lag))
        print(f"\n{ecosystem}: {len(PACKAGES)} packages, best of {options.rounds}")
        for way in ways:
            ratio = min(took[way]) / min(took[ways[0]])
            print(f"{way:38} {min(took[way]):7.1f} s {ratio:6.1f}")


if __name__ == "__main__":
    main()
