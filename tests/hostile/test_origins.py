"""R34, R37: a file of the checkout, which anybody can propose a change of, sends no credential to a
server of its choice: only inputs, variables and the user's own settings name where tokens go.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import pytest

from effort import SEARCHING
from hostile import worlds
from hostile.case import SECRETS, Case
from hostile.wire import Reply, Wire
from integration.tools import require_landlock

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from hostile.conftest import Judge
    from hostile.wire import Part, Request

# Those that take a credential; Go's packages go out by git.
PROTOCOLS: Final = ("pypi", "npm", "cargo", "maven", "portal")
# A portal is asked with one for deployments alone: what is published, everybody may read.
ASKED: Final = ("pypi", "npm", "cargo", "maven")
QUICK: Final = ("--max-retries", "0", "--attestations", "off", "--dist", "dist")
NOTE: Final = r"names http://127\.0\.0\.1:\d+/\S*, and no input does"
WITHOUT_TOKENS: Final[Mapping[str, str | None]] = dict.fromkeys(SECRETS)
IDENTITY: Final[Mapping[str, str | None]] = {
    **WITHOUT_TOKENS,
    "GITHUB_ACTIONS": "true",
    "ACTIONS_ID_TOKEN_REQUEST_URL": "{server}/identity?of=job",
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "runner-token",
}


@dataclass
class Seen:
    """The registry of a world, of which it is remembered what came; a `private` one wants to know
    who asks.
    """

    world: worlds.World
    private: bool = False
    wire: Wire | None = None

    @contextlib.contextmanager
    def __call__(self) -> Iterator[str]:
        spoken = self.world.speak()

        def answer(request: Request) -> Iterable[Part]:
            assert self.wire
            if self.private and not request.credentials:
                return [Reply(401, b'{"error": "who asks?"}').wire()]
            reply = spoken.answer(request, self.wire.url)
            if self.private and request.path.endswith("/config.json"):
                told = {**json.loads(reply.body), "auth-required": True}
                reply = Reply(body=json.dumps(told).encode())
            return [reply.wire()]

        with Wire(answer) as self.wire:
            yield self.wire.url

    @property
    def asked(self) -> list[str]:
        assert self.wire
        return [request.target for request in self.wire.seen]

    @property
    def credentials(self) -> set[str]:
        assert self.wire
        return {request.credentials for request in self.wire.seen} - {""}


def settings(world: worlds.World, **more: str) -> str:
    """Its flags as a releasekit.toml has them."""
    pairs = zip(world.flags[::2], world.flags[1::2], strict=True)
    given = {flag.removeprefix("--"): value for flag, value in pairs}
    given |= {name.replace("_", "-"): value for name, value in more.items()}
    return "".join(f'{name} = "{value}"\n' for name, value in given.items()) + world.settings


def case(
    server: Seen,
    *argv: str,
    code: int = 0,
    says: tuple[str, ...] = (),
    never_says: tuple[str, ...] = (),
    files: Mapping[str, str | bytes] | None = None,
    environment: Mapping[str, str | None] | None = None,
) -> Case:
    given: dict[str, str | bytes] = {f"w/{name}": data for name, data in server.world.files.items()}
    return Case(
        name="origins",
        files={**given, "w/releasekit.toml": settings(server.world), **(files or {})},
        argv=(*argv, *QUICK),
        environment=environment or {},
        codes=frozenset({code}),
        says=says,
        never_says=never_says,
        # Where a case has its CARGO_HOME.
        may_write=("w/tools",),
        server=server,
    )


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_plan_sends_no_token_where_only_the_file_says(protocol: str, judge: Judge) -> None:
    # A dry run makes its plan as `plan` does.
    dry = [("publish", "--dry-run")] if SEARCHING or protocol == "npm" else []
    for argv in (("plan",), *dry):
        server = Seen(worlds.world(protocol))
        judge(case(server, *argv, says=(rf"releasekit\.toml: \S+-registry {NOTE}", "Add `")))
        assert server.asked
        assert server.credentials == set()


@pytest.mark.parametrize("protocol", ASKED)
def test_a_plan_says_what_it_cannot_know_without_the_token(protocol: str, judge: Judge) -> None:
    server = Seen(worlds.world(protocol), private=True)
    says = ("HTTP 401", "not known without the token", NOTE, "Add `")
    judge(case(server, "plan", code=1, says=says))
    assert server.asked
    assert server.credentials == set()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_publish_refuses_before_anything_is_sent(protocol: str, judge: Judge) -> None:
    server = Seen(worlds.world(protocol), private=True)
    name = worlds.world(protocol).flags[0].removeprefix("--")
    variable = f"RELEASEKIT_{name.replace('-', '_').upper()}"
    address = r"http://127\.0\.0\.1:\d+/\S*"
    says = (NOTE, rf"Add `{name}: {address}` to .*`--{name} {address}`.*{variable}", "RK-229")
    judge(case(server, "publish", code=2, says=says))
    assert server.asked == []


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_a_flag_or_a_variable_names_too_is_sent_to(protocol: str, judge: Judge) -> None:
    world = worlds.world(protocol)
    server = Seen(world)
    judge(case(server, "publish", *world.flags, never_says=(NOTE,)))
    assert server.credentials
    flag, value = world.flags[:2]
    environment = {f"RELEASEKIT_{flag.removeprefix('--').replace('-', '_').upper()}": value}
    again = Seen(world, private=True)
    if protocol in ASKED:
        judge(case(again, "plan", *world.flags[2:], environment=environment))
        assert again.credentials


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_without_a_credential_nothing_is_said_of_it(protocol: str, judge: Judge) -> None:
    server = Seen(worlds.world(protocol))
    judge(case(server, "plan", environment=WITHOUT_TOKENS, never_says=(NOTE,)))
    judge(
        case(
            server,
            "publish",
            code=3,
            environment=WITHOUT_TOKENS,
            says=("no credentials",),
            never_says=(NOTE,),
        )
    )


def test_every_registry_is_named_with_its_cure(judge: Judge) -> None:
    pypi, npm = worlds.world("pypi"), worlds.world("npm")
    server = Seen(pypi)
    files: dict[str, str | bytes] = {f"w/{name}": data for name, data in npm.files.items()}
    files["w/releasekit.toml"] = settings(pypi) + settings(npm)
    says = tuple(
        rf"^error: .*{name}-registry {NOTE}.*\n +Add `{name}-registry: " for name in ("npm", "pypi")
    )
    judge(case(server, "publish", code=2, files=files, says=says))
    assert server.asked == []


@pytest.mark.parametrize("protocol", ["pypi", "npm"])
def test_no_identity_is_made_for_it(protocol: str, judge: Judge) -> None:
    """Trusted publishing asks the registry itself for whom the token is to be."""
    server = Seen(worlds.world(protocol))
    files = {"w/releasekit.toml": settings(server.world, trusted_publishing="always")}
    judge(case(server, "plan", files=files, environment=IDENTITY, says=(NOTE,)))
    assert not [target for target in server.asked if "identity" in target]
    assert server.credentials == set()
    judge(case(server, "publish", code=2, files=files, environment=IDENTITY, says=(NOTE,)))
    assert server.asked == []


CORP: Final = '[registries.corp]\nindex = "sparse+{server}/index/"\n'
DEFAULT: Final = '[registry]\ndefault = "corp"\n'


@pytest.mark.parametrize(
    ("argv", "files", "environment"),
    [
        ((), {"w/.cargo/config.toml": CORP + DEFAULT}, {}),
        (("--cargo-registry", "corp"), {"w/.cargo/config.toml": CORP}, {}),
        ((), {"w/.cargo/config.toml": CORP, "w/releasekit.toml": 'cargo-registry = "corp"\n'}, {}),
        (
            (),
            {"w/.cargo/config.toml": CORP, "w/releasekit.toml": '[cargo]\nregistry = "corp"\n'},
            {},
        ),
        ((), {"w/.cargo/config.toml": CORP}, {"CARGO_REGISTRY_DEFAULT": "corp"}),
        # Beside what the user's own say of a registry of that name.
        (
            ("--cargo-registry", "corp"),
            {
                "w/.cargo/config.toml": CORP,
                "home/.cargo/config.toml": '[registries.corp]\nindex = "sparse+https://c.example/"\n',
            },
            {},
        ),
        (
            ("--cargo-registry", "corp"),
            {"w/tools/config.toml": CORP},
            {"CARGO_HOME": "{root}/w/tools"},
        ),
        (("--cargo-registry", "corp"), {"w/tools/config.toml": CORP}, {"CARGO_HOME": "tools"}),
    ],
)
def test_what_cargo_configures_in_the_checkout_names_nothing(
    argv: tuple[str, ...],
    files: dict[str, str],
    environment: dict[str, str],
    judge: Judge,
) -> None:
    files = {"w/releasekit.toml": "", **files}
    server = Seen(worlds.world("cargo"), private=True)
    says = (NOTE, r"Add `cargo-registry: http://127\.0\.0\.1:\d+/index/`")
    judge(case(server, "plan", *argv, code=1, files=files, environment=environment, says=says))
    assert server.credentials == set()
    judge(case(server, "publish", *argv, code=2, files=files, environment=environment, says=says))
    assert server.asked == []


@pytest.mark.parametrize(
    ("files", "environment"),
    [
        ({"home/.cargo/config.toml": CORP}, {}),
        ({"home/elsewhere/config.toml": CORP}, {"CARGO_HOME": "{root}/home/elsewhere"}),
        ({}, {"CARGO_REGISTRIES_CORP_INDEX": "sparse+{server}/index/"}),
        # The same, as another file writes it.
        ({"w/.cargo/config.toml": CORP, "home/.cargo/config.toml": CORP.replace("x/", "x")}, {}),
    ],
)
def test_what_the_user_configures_for_cargo_does(
    files: dict[str, str], environment: dict[str, str], judge: Judge
) -> None:
    files = {"w/releasekit.toml": 'cargo-registry = "corp"\n', **files}
    server = Seen(worlds.world("cargo"), private=True)
    # Where no build can write, which /tmp is not.
    users = case(server, "plan", files=files, environment=environment, never_says=(NOTE,))
    judge(replace(users, sandboxed=True))
    assert server.credentials == {SECRETS["RELEASEKIT_CARGO_TOKEN"]}


@pytest.mark.parametrize(
    ("place", "argv"),
    [("tmp", ()), ("home/.npm", ()), ("open", ("--build-sandbox-paths", "{root}/open"))],
)
def test_what_a_build_can_write_is_not_of_the_user(
    place: str, argv: tuple[str, ...], judge: Judge
) -> None:
    require_landlock()
    files = {"w/releasekit.toml": "", f"{place}/cargo/config.toml": CORP + DEFAULT}
    environment = {"CARGO_HOME": f"{{root}}/{place}/cargo"}
    server = Seen(worlds.world("cargo"), private=True)
    for command, code in (("plan", 1), ("publish", 2)):
        planted = case(
            server, command, *argv, code=code, files=files, environment=environment, says=(NOTE,)
        )
        judge(replace(planted, sandboxed=True, may_write=(place,)))
    assert server.credentials == set()


def test_what_else_names_a_server_is_not_asked(judge: Judge) -> None:
    """What npm, uv and Maven read of a project says nothing to ReleaseKit of where tokens go."""
    pypi, npm, maven = map(worlds.world, ("pypi", "npm", "maven"))
    server = Seen(pypi)
    files: dict[str, str | bytes] = {
        f"w/{name}": data for each in (npm, maven) for name, data in each.files.items()
    }
    host = "registry={server}/\n//{server}/:_authToken=${RELEASEKIT_NPM_TOKEN}\n"
    index = '\n[[tool.uv.index]]\nname = "corp"\nurl = "{server}/simple/"\n'
    index += 'publish-url = "{server}/legacy/"\nauthenticate = "always"\n'
    place = "<repository><id>corp</id><url>{server}/</url></repository>"
    place = f"<distributionManagement>{place}</distributionManagement></project>"
    files["w/.npmrc"] = host
    files["w/pyproject.toml"] = pypi.files["pyproject.toml"].decode() + index
    files["w/pom.xml"] = maven.files["pom.xml"].decode().replace("</project>", place)
    files["w/releasekit.toml"] = ""
    argv = ("publish", "--registry", "dir:{root}/registry")
    judge(
        Case(
            name="others",
            files={**{f"w/{name}": data for name, data in pypi.files.items()}, **files},
            argv=(*argv, *QUICK),
            codes=frozenset({0}),
            may_write=("registry",),
            server=server,
        )
    )
    assert server.asked == []


def test_a_package_json_sends_nothing_elsewhere(judge: Judge) -> None:
    server = Seen(worlds.world("npm"))
    page = {"name": "@acme/core", "version": "1.0.0", "publishConfig": {"registry": "{server}/"}}
    files = {"w/releasekit.toml": "", "w/packages/core/package.json": json.dumps(page)}
    judge(case(server, "publish", code=2, files=files, says=("publishConfig.registry",)))
    assert server.asked == []
