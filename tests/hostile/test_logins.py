"""R34, R53, R69: what a build leaves in the settings of the checkout gets no login, in this run
neither. The remote is a project of GitLab, whose token only a credential helper asks for.
"""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from harness.gitlab import TOKEN, serving_gitlab, write_login
from hostile.builds import TOOLS
from hostile.case import Case
from hostile.environments import NOBODY
from hostile.planted import project
from integration.tools import find_closed, require_landlock, require_tool
from workspaces import git

if TYPE_CHECKING:
    from hostile.conftest import Judge

# Says so in the workspace if it has the token, which it has in no piece.
_SPY: Final = f"""\
#!/bin/sh
if {{ env; echo "$@"; }} | grep -q '{TOKEN[:3]}''{TOKEN[3:9]}'; then touch "{{root}}/w/loot"; fi
[ "$1" = get ] || exit 1
echo username=x; echo password=x
"""
# What the build does, once, in the place of nothing else.
_POISONS: Final = {
    "settings": """
    config = W / ".git/config"
    with config.open("a") as file:
        file.write(f'''
[core]
\\tsshCommand = {W}/spy
\\tfsmonitor = {W}/spy
\\thooksPath = {W}/hooks
\\taskPass = {W}/spy
\\tgitProxy = {W}/spy
\\talternateRefsCommand = {W}/spy
[credential]
\\thelper = {W}/spy
[remote "origin"]
\\turl = ssh://127.0.0.1:1/x
\\tpushurl = ssh://127.0.0.1:1/x
\\treceivepack = {W}/spy
\\tuploadpack = {W}/spy
\\tproxy = http://127.0.0.1:1
[url "ext::{W}/spy "]
\\tinsteadOf = http://
[protocol "ext"]
\\tallow = always
[http]
\\tproxy = http://127.0.0.1:1
[push]
\\tgpgSign = true
[gpg]
\\tprogram = {W}/spy
[alias]
\\tpush = !{W}/spy
\\tls-remote = !{W}/spy
''')
""",
    "included settings": """
    (W / "more").write_text(f"[credential]\\n\\thelper = {W}/spy\\n")
    with (W / ".git/config").open("a") as file:
        file.write(f'[include]\\n\\tpath = {W}/more\\n')
        file.write(f'[includeIf "gitdir:**"]\\n\\tpath = {W}/more\\n')
    (W / ".git/config.worktree").write_text(f"[credential]\\n\\thelper = {W}/spy\\n")
""",
    "hooks, and a program on PATH": """
    for name in ("pre-push", "reference-transaction", "post-index-change", "fsmonitor-watchman"):
        (W / ".git/hooks").mkdir(exist_ok=True)
        shutil.copy(W / "spy", W / ".git/hooks" / name)
    for name in ("git", "ssh", "sh", "git-credential-spy", "git-remote-http"):
        shutil.copy(W / "spy", W / "bin" / name)
""",
    "a link for the repository": """
    (W / ".git").rename(W / "other")
    with (W / "other/config").open("a") as file:
        file.write(f"[credential]\\n\\thelper = {W}/spy\\n")
    (W / ".git").symlink_to("other")
""",
    "a file for the repository": """
    (W / ".git").rename(W / "other")
    with (W / "other/config").open("a") as file:
        file.write(f"[credential]\\n\\thelper = {W}/spy\\n")
    (W / ".git").write_text("gitdir: other\\n")
    (W / "other/objects/info").mkdir(exist_ok=True)
    (W / "other/objects/info/alternates").write_text("/nowhere\\n")
""",
}
_TAKING_AWAY: Final = {"hooks, and a program on PATH", "a file for the repository"}
# A version that a build tells is told before anything is planned.
_HOOK: Final = {
    "as it is built": (
        "def build_sdist(directory, *_):\n    poison()\n    return sdist(directory)\n"
    ),
    "as it tells its version": (
        "def prepare_metadata_for_build_wheel(directory, *_):\n"
        "    poison()\n"
        "    place = Path(directory, f'{STEM}.dist-info')\n"
        "    place.mkdir()\n"
        "    (place / 'METADATA').write_text(ABOUT)\n"
        "    return place.name\n"
    ),
}


def _case(poison: str, when: str, uid: int | None, page: str) -> Case:
    backend = TOOLS.replace("evil.py", "backend.py").replace(
        'tomllib.loads(Path("pyproject.toml").read_text())["project"]["name"]', '"core"'
    )
    body = f"""
import shutil

W = Path("{{root}}/w")

def poison():
    if (W / "poisoned").exists():
        return
    (W / "poisoned").touch()
    {_POISONS[poison].strip()}

{_HOOK[when]}
"""
    path = os.pathsep.join(
        ["{root}/w/bin", str(require_tool("uv").parent), str(Path(sys.executable).parent)]
    )

    def prepare(root: Path) -> None:
        (root / "w/spy").chmod(0o755)
        (root / "w/bin").mkdir()
        git(root / "w", "init", "--quiet", "--initial-branch", "main")
        git(root / "w", "remote", "add", "origin", f"{page}.git")
        git(root / "w", "config", "include.path", f"{root}/w.tmp/runner.conf")
        git(root / "w", "add", "--all")
        git(root / "w", "commit", "--quiet", "--message", "Start")

    return Case(
        name=f"{poison} {when}, as {uid or 'root'}",
        files={
            "w/pyproject.toml": project("core", dynamic=when == "as it tells its version"),
            "w/backend.py": backend + body,
            "w/spy": _SPY,
            "w/.gitignore": "/poisoned\n/loot\n/more\n/other\n/bin\n/.releasekit\n/hooks\n",
            "w.tmp/runner.conf": write_login(page),
        },
        argv=(
            *("publish", "--build-sandbox", "required", "--deadline", "60s", "--tag"),
            *("--pypi-registry", "dir:{root}/registry"),
        ),
        environment={
            "PATH": f"{path}:/usr/local/bin:/usr/bin:/bin",
            "GITHUB_ACTIONS": None,
            "CI_JOB_TOKEN": TOKEN,
        },
        # What is taken away is not pushed, and a git of the build's own tells of no commit.
        codes=frozenset({0, 1, 3} if poison in _TAKING_AWAY else {0}),
        may_write=("registry", "w"),
        prepare=prepare,
        server=lambda: nullcontext(page),
        uid=uid,
        sandboxed=True,
        executed=True,
    )


# What is built is built with this Python, which a home of root's keeps from another user.
_USERS: Final = {"whoever runs this": None} | (
    {"an ordinary user": NOBODY} if os.geteuid() == 0 and not find_closed(sys.executable) else {}
)


@pytest.mark.parametrize("uid", _USERS.values(), ids=_USERS)
@pytest.mark.parametrize("poison", _POISONS)
def test_a_build_gets_no_login_of_this_run(
    poison: str, uid: int | None, judge: Judge, tmp_path: Path
) -> None:
    """R34, R53, R69: and the tag is pushed where the remote led when the run began."""
    require_landlock()
    when = list(_HOOK)[uid is None]
    with serving_gitlab(tmp_path) as world:
        ended = judge(_case(poison, when, uid, world.page))
        assert world.tags.keys() <= {"core-v1.0.0"}
        assert world.tags or poison in _TAKING_AWAY
    assert "w/poisoned" in ended.after
    assert "w/loot" not in ended.after
