"""The bare limit: what a release takes that keeps the order and does nothing else.

    python -m bench.release.limit pypi ROOT ORIGIN SLOTS LAG [--confirm]

Built by the ecosystem's own means, in as few processes as it can be; then plain concurrent uploads
in dependency order. There are no lookups, no journal, no retries, and no digests but those that the
protocol asks for. With --confirm, the registry is asked for each package once, after its upload and
before what needs it goes out. npm's is npm.mjs.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import subprocess
import sys
import tomllib
from collections.abc import Coroutine
from functools import partial
from pathlib import Path
from typing import Final

from bench.release.limit.client import Client, in_order
from bench.release.servers.cargo import Cargo
from bench.release.servers.wire import Connection, Seen
from bench.release.shape import VERSION

Needs = "Mapping[str, tuple[str, ...]]"
InOrder = partial[Coroutine[None, None, None]]

# What shows that a package is there. Of a Go module the first question is the upload.
_SHOWN: Final = {
    "pypi": "/simple/{0}/",
    "cargo": "/index/be/nc/{0}",
    "maven": f"/maven2/org/example/bench/{{0}}/{VERSION}/{{0}}-{VERSION}.pom.sha1",
    "go": f"/github.com/acme/mono/{{0}}/@v/v{VERSION}.zip",
}


def _needs(root: Path) -> dict[str, tuple[str, ...]]:
    held: dict[str, tuple[str, ...]] = json.loads((root.parent / "shape.json").read_text())
    return {name: tuple(needs) for name, needs in held.items()}


async def pypi(root: Path, client: Client, order: InOrder, lag_s: float) -> None:
    """One environment, and two processes that build in it."""
    needs = _needs(root)
    place = root / "dist"
    place.mkdir()
    environment = place / "environment"
    for argv in (
        ["uv", "venv", "--quiet", str(environment)],
        ["uv", "pip", "install", "--quiet", "--python", str(environment), "hatchling==1.33.0"],
    ):
        await _run(argv, root)
    queue = list(reversed(needs))
    built: dict[str, list[str]] = {}
    ready = {name: asyncio.Event() for name in needs}

    async def builds() -> None:
        worker = await asyncio.create_subprocess_exec(
            *(environment / "bin" / "python", Path(__file__).with_name("python_builds.py"), place),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert worker.stdin is not None
        assert worker.stdout is not None
        while queue:
            name = queue.pop()
            worker.stdin.write(f"{root / 'packages' / name}\n".encode())
            built[name] = (await worker.stdout.readline()).decode().split()
            ready[name].set()
        worker.stdin.close()
        await worker.wait()

    async def publish(name: str) -> None:
        async with asyncio.TaskGroup() as group:
            for filename in built[name]:
                group.create_task(_post(client, name, filename, (place / filename).read_bytes()))

    async with asyncio.TaskGroup() as group:
        group.create_task(builds())
        group.create_task(builds())
        group.create_task(order(needs, publish, lag_s=lag_s, ready=ready))


async def _post(client: Client, name: str, filename: str, data: bytes) -> None:
    is_wheel = filename.endswith(".whl")
    fields = {
        ":action": "file_upload",
        "protocol_version": "1",
        "metadata_version": "2.1",
        "name": name,
        "version": VERSION,
        "filetype": "bdist_wheel" if is_wheel else "sdist",
        "pyversion": "py3" if is_wheel else "source",
        "sha256_digest": hashlib.sha256(data).hexdigest(),
    }
    form = "".join(
        f'--bench\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{value}\r\n'
        for key, value in fields.items()
    )
    form += f'--bench\r\nContent-Disposition: form-data; name="content"; filename="{filename}"'
    body = form.encode() + b"\r\n\r\n" + data + b"\r\n--bench--\r\n"
    await client.send("POST", "/legacy/", body, "multipart/form-data; boundary=bench")


async def cargo(root: Path, client: Client, order: InOrder, lag_s: float) -> None:
    """One `cargo package`, whose looks at the index are answered at once, and by this process."""
    needs = _needs(root)
    app, seen = Cargo(0.0, None), Seen()
    stand_in = await asyncio.get_running_loop().create_server(
        lambda: Connection(app, seen, 0.0, 0.0), "127.0.0.1", 0
    )
    port = stand_in.sockets[0].getsockname()[1]
    index = f'registries.local.index="sparse+http://127.0.0.1:{port}/index/"'
    argv = ["cargo", "package", "--workspace", "--no-verify", "--quiet", "--config", index]
    await _run([*argv, "--registry", "local"], root)
    stand_in.close()

    async def publish(name: str) -> None:
        crate = (root / "target" / "package" / f"{name}-{VERSION}.crate").read_bytes()
        manifest = tomllib.loads((root / "crates" / name / "Cargo.toml").read_text())
        document = json.dumps(
            {
                "name": name,
                "vers": VERSION,
                "features": {},
                "authors": [],
                "license": "MIT",
                "description": manifest["package"]["description"],
                "deps": [
                    {
                        "name": need,
                        "version_req": f"^{VERSION}",
                        "features": [],
                        "optional": False,
                        "default_features": True,
                        "target": None,
                        "kind": "normal",
                        "registry": None,
                    }
                    for need in needs[name]
                ],
            }
        ).encode()
        sizes = len(document).to_bytes(4, "little"), len(crate).to_bytes(4, "little")
        await client.send("PUT", "/api/v1/crates/new", sizes[0] + document + sizes[1] + crate)

    await order(needs, publish, lag_s=lag_s)


async def maven(root: Path, client: Client, order: InOrder, lag_s: float) -> None:
    """One `mvn package`; of each module the files that `mvn deploy` sends, checksums included."""
    needs = _needs(root)
    await _run(["mvn", "--quiet", "--batch-mode", "-T2", "package"], root)
    parent = "bench-parent"
    whole = {parent: ()} | {name: (parent, *below) for name, below in needs.items()}

    async def publish(name: str) -> None:
        directory = root if name == parent else root / name
        place = f"/maven2/org/example/bench/{name}"
        listed = (
            f"<metadata><groupId>org.example.bench</groupId><artifactId>{name}</artifactId>"
            f"<versioning><release>{VERSION}</release><versions><version>{VERSION}</version>"
            "</versions></versioning></metadata>"
        )
        files = {
            f"{place}/{VERSION}/{name}-{VERSION}.pom": (directory / "pom.xml").read_bytes(),
            f"{place}/maven-metadata.xml": listed.encode(),
        }
        if name != parent:
            jar = directory / "target" / f"{name}-{VERSION}.jar"
            files[f"{place}/{VERSION}/{jar.name}"] = jar.read_bytes()
        async with asyncio.TaskGroup() as group:
            for path, data in files.items():
                group.create_task(client.send("PUT", path, data))
                for algorithm in ("md5", "sha1"):
                    page = hashlib.new(algorithm, data).hexdigest().encode()
                    group.create_task(client.send("PUT", f"{path}.{algorithm}", page))

    await order(whole, publish, lag_s=lag_s)


async def go(root: Path, client: Client, order: InOrder, lag_s: float) -> None:
    """One push of all tags, and one question about each to the proxy, which then has it."""
    needs = _needs(root)
    tags = [f"{name}/v{VERSION}" for name in needs]
    lines = "".join(f"create refs/tags/{tag} HEAD\n" for tag in tags)
    await _run(["git", "update-ref", "--stdin"], root, lines)
    await _run(["git", "push", "--quiet", "--atomic", "origin", *tags], root)

    async def ask(name: str) -> None:
        await client.send("GET", f"/github.com/acme/mono/{name}/@v/v{VERSION}.info")

    # A proxy's questions have no order: all tags are there, and it sees them all at once.
    await asyncio.sleep(lag_s)
    await order(dict.fromkeys(needs, ()), ask, lag_s=0.0)


async def _run(argv: list[str], where: Path, text: str = "") -> None:
    process = await asyncio.create_subprocess_exec(*argv, cwd=where, stdin=subprocess.PIPE)
    await process.communicate(text.encode())
    if process.returncode:
        raise SystemExit(f"{argv[0]} failed with exit code {process.returncode}")


def main() -> None:
    ecosystem, root, origin, slots, lag_s, *flags = sys.argv[1:]
    way = {"pypi": pypi, "cargo": cargo, "maven": maven, "go": go}[ecosystem]
    client = Client(origin)

    async def confirm(name: str) -> None:
        await client.send("GET", _SHOWN[ecosystem].format(name))

    asks = confirm if flags == ["--confirm"] else None
    order = partial(in_order, slots=int(slots), confirm=asks)
    asyncio.run(way(Path(root).resolve(), client, order, float(lag_s)))


if __name__ == "__main__":
    main()
