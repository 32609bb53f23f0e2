"""Where a run starts and ends: the environment read once, one command, one exit code."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from releasekit import __version__
from releasekit.cli import command_line
from releasekit.config.config import load
from releasekit.config.declared import Declared
from releasekit.ecosystems import ECOSYSTEMS
from releasekit.errors import INTERRUPTED, ReleasekitError
from releasekit.host.runner import Actions
from releasekit.http.credentials import Credentials, snapshot
from releasekit.text.escape import clip, log_line
from releasekit.text.output import ignore_write_errors

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from releasekit.config.config import Config
    from releasekit.config.ecosystem import EcosystemDeclaration

# The names of a cycle of some hundred packages. Nothing that is longer says more.
_MAX_MESSAGE_CHARS: Final = 16_384


def start() -> int:
    """`main` for a process of its own."""
    sys.stdout, sys.stderr = ignore_write_errors(sys.stdout), ignore_write_errors(sys.stderr)
    return main()


def main(
    argv: Sequence[str] | None = None, ecosystems: Mapping[str, EcosystemDeclaration] = ECOSYSTEMS
) -> int:
    """Run one command; never raises for what a user, a registry or a signal can cause."""
    declared = Declared.for_ecosystems(ecosystems)
    taken = snapshot(os.environ, {each.variable for each in declared.secrets.values()})
    actions = Actions(taken.environment, sys.stdout)
    # Before anything else is printed, the runner has to know what to hide.
    credentials = Credentials(taken, mask=actions.mask)
    try:
        # The names of secrets are looked at too, for misspelt ones; their values are not.
        variables = {**taken.environment, **dict.fromkeys(taken.secrets, "")}
        inputs = command_line.parse_command_line(
            sys.argv[1:] if argv is None else argv, variables, declared
        )
        config = load(inputs, Path.cwd(), declared)
        print(f"ReleaseKit {__version__}: {config.mode} {config.root}", file=sys.stderr, flush=True)
        return asyncio.run(_command(config, credentials, actions, ecosystems))
    except ReleasekitError as error:
        _say(error, actions, credentials)
        return error.exit_code
    except (KeyboardInterrupt, asyncio.CancelledError):
        print("error: cancelled before anything was published", file=sys.stderr)
        actions.output("result", "cancelled")
        return INTERRUPTED


async def _command(
    config: Config,
    credentials: Credentials,
    actions: Actions,
    ecosystems: Mapping[str, EcosystemDeclaration],
) -> int:
    # Takes 0.2 s to import, which --help and a mistyped flag should not wait for.
    from releasekit.cli.commands import run  # noqa: PLC0415
    from releasekit.cli.session import Session  # noqa: PLC0415

    session = Session(
        credentials=credentials, actions=actions, ecosystems=ecosystems, out=sys.stdout
    )
    return await run(config, session)


def _say(error: ReleasekitError, actions: Actions, credentials: Credentials) -> None:
    message = clip(log_line(credentials.redact(str(error))), _MAX_MESSAGE_CHARS)
    print(f"error: {message}", file=sys.stderr, flush=True)
    if error.hint:
        print(f"  {log_line(credentials.redact(error.hint))}", file=sys.stderr, flush=True)
    actions.annotate("error", [("ReleaseKit", message)])
    actions.output("result", "cancelled" if error.exit_code == INTERRUPTED else "failure")


if __name__ == "__main__":
    sys.exit(start())
