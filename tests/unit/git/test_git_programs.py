from __future__ import annotations

from pathlib import Path

import pytest

from releasekit.git.programs import find_open_program

ENVIRONMENT = {"HOME": "/home/me", "CI_PROJECT_DIR": "/home/me/work"}


def find(command: str) -> str:
    """The path in it that a build could write, below /home/me/work and in /dev."""

    def can_change(place: Path) -> bool:
        return any(place.is_relative_to(each) for each in ("/home/me/work", "/dev"))

    top = Path("/home/me/work")
    found = find_open_program([("a", ""), ("b", command)], top, ENVIRONMENT, can_change)
    assert found is None or found[0] == "b"
    return found[1] if found else ""


@pytest.mark.parametrize(
    "command",
    [
        "ssh -F/home/me/work/file",
        "ssh -oProxyCommand=/home/me/work/later",
        "ssh -o ProxyCommand=/home/me/work/later",
        "ssh -o 'ProxyCommand /home/me/work/later %h'",
        "ssh -oPKCS11Provider=/home/me/work/later.so",
        "ssh -oControlPath=/home/me/work/socket -i /etc/key",
        "timeout 9 sh -i /home/me/work/later",
        "A=1 sh -i /home/me/work/later",
        "$CI_PROJECT_DIR/later",
        "$HOME/work/later",
        "ssh -oProxyCommand=${CI_PROJECT_DIR}/later",
        "ssh -oProxyCommand=~/work/later",
        "${NONE:-/home/me/work/later}",
        "!sh -c 'true; /home/me/work/later'",
        "!true&&/home/me/work/later",
        "!true;/home/me/work/later",
        "!echo password=$(/home/me/work/later)",
        "!echo password=`/home/me/work/later`",
        '!echo "password=$(cat /home/me/work/later)"',
        "!sh -c 'eval \"$(sh /home/me/work/later)\"'",
        "!f() { . /home/me/work/later; }; f",
        "!cd /home/me/work && ./later",
        "!/usr/bin/env X=/home/me/work/later.so tool",
        '!"/home/me/work/my tools/later"',
        "!sh -c '\"/home/me/work/my tools/later\"'",
        "!/home/me/work/later 'an open quote",
        "/home/me/work/my tools/later",
        "/home/me/work/later for kernel.org",
    ],
)
def test_a_path_that_builds_can_write_is_found_wherever_a_command_has_it(command: str) -> None:
    """R69: it need not be there yet, and need not be executable."""
    assert find(command).startswith("/home/me/work")


@pytest.mark.parametrize(
    "command",
    [
        # https://docs.gitlab.com/runner/configuration/feature-flags/ (FF_GIT_URLS_WITHOUT_TOKENS)
        '!f(){ if [ "$1" = "get" ] ; then echo "password=${CI_JOB_TOKEN}" ; fi ; } ; f',
        # https://cli.github.com/manual/gh_auth_setup-git
        "!/usr/bin/gh auth git-credential",
        # https://docs.aws.amazon.com/codecommit/latest/userguide/setting-up-https-unixes.html
        "!aws codecommit credential-helper $@",
        "store --file /home/me/work/credentials",
        "cache --timeout=60 --socket=/home/me/work/socket",
        '!f() { test "$1" = get && echo password=x 2>/dev/null; }; f',
        # https://github.com/actions/checkout/blob/main/src/git-auth-helper.ts
        '"/usr/bin/ssh" -i "$CI_PROJECT_DIR/key" -o "UserKnownHostsFile=/home/me/work/known_hosts"',
        "ssh -i ~/work/key -oIdentitiesOnly=yes -p 2222",
    ],
)
def test_keys_may_lie_where_builds_write(command: str) -> None:
    """R69: their program does not obey them."""
    assert not find(command)


def test_a_command_of_any_length_is_read_in_time() -> None:
    assert not find("!" + "'\\" * 20_000)
    assert not find("!" + "$(a " * 20_000)
