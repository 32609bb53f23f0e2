"""What git does not take from a repository's own settings, which may name programs to be run: it is
asked about files, and the files may come from anywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

# Programs that reading starts: https://git-scm.com/docs/git-config. What reaches a server is left
# to the user, as checkouts set it: core.sshCommand, credential helpers; and so are the filters that
# make files of what is stored, for Git LFS is one.
_OVERRULED: Final = {
    "core.fsmonitor": "false",
    "core.hooksPath": "/dev/null",
    "log.showSignature": "false",
    # Tracked files may look like a repository of their own, with settings: git 2.38 and later. To
    # name the repository (GIT_DIR) would serve older ones, but skips the check of whose it is.
    # https://git-scm.com/docs/git-config#Documentation/git-config.txt-safedirectory
    "safe.bareRepository": "explicit",
}


def settled(environment: Mapping[str, str]) -> dict[str, str]:
    """`environment` for git, in which it overrules these settings, submodules' too.

    https://git-scm.com/docs/git-config#Documentation/git-config.txt-GITCONFIGCOUNT
    """
    given = environment.get("GIT_CONFIG_COUNT", "")
    first = int(given) if given.isascii() and given.isdigit() and len(given) < 4 else 0
    settings = {
        name: value
        for number, (key, setting) in enumerate(_OVERRULED.items(), start=first)
        for name, value in (
            (f"GIT_CONFIG_KEY_{number}", key),
            (f"GIT_CONFIG_VALUE_{number}", setting),
        )
    }
    count = str(first + len(_OVERRULED))
    return {**environment, **settings, "GIT_CONFIG_COUNT": count}
