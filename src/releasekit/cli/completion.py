"""What the word completion prints: a script for bash that completes commands, flags and choices.

It is static, because Python takes longer to start than a person waits for Tab. Other shells have
ways to load it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from releasekit.cli.help import EVERYTHING

if TYPE_CHECKING:
    from releasekit.config.inputs import Declared

# A word that is neither a flag nor a choice is a path, which `-o default` completes. Bash makes a
# word of each `=`. https://www.gnu.org/software/bash/manual/bash.html#Programmable-Completion
_SCRIPT: Final = """\
_releasekit() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} flag=${{COMP_WORDS[COMP_CWORD-1]}} words=
    if [[ $word == = ]]; then
        word=
    elif [[ $flag == = ]]; then
        flag=${{COMP_WORDS[COMP_CWORD-2]}}
    fi
    if ((COMP_CWORD == 1)); then
        words='{commands} completion --help --version'
    elif [[ ${{COMP_WORDS[1]}} == completion ]]; then
        words=bash
    else
        case $flag in
{choices}
        esac
        if [[ -z $words && $word == -* ]]; then
            case ${{COMP_WORDS[1]}} in
{flags}
            esac
        fi
    fi
    COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _releasekit releasekit releasekit-action
"""


def write_bash_completion(declared: Declared) -> str:
    """All words are names of ours, so that none needs quotes."""
    inputs = declared.inputs.values()
    flags = {
        name: [each.flag for each in inputs if name in each.commands] + ["--help", EVERYTHING]
        for name in declared.commands
    }
    choices = {each.flag: each.choices for each in inputs if each.choices and each.commands}
    return _SCRIPT.format(
        commands=" ".join(declared.commands),
        choices="\n".join(
            f"        {flag}) words='{' '.join(own)}' ;;" for flag, own in choices.items()
        ),
        flags="\n".join(
            f"            {name}) words='{' '.join(own)}' ;;" for name, own in flags.items()
        ),
    )
