"""Pieces of HTML. What comes from outside passes `html` or `html_link` of text/escape.py first."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from releasekit.report.marks import OUTCOMES
from releasekit.report.view import what_to_do, whole_output
from releasekit.text.escape import clip, html, html_link, html_prose

if TYPE_CHECKING:
    from collections.abc import Iterable

    from releasekit.model import Outcome, Report, Result

_MOST_CHARS: Final = 4_000
# Characters that a browser could take for the end of the element, or for the start of another.
_IN_SCRIPT: Final = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}


def outcome(kind: Outcome) -> str:
    sign = OUTCOMES[kind].sign
    return f'<span class="outcome {kind}"><span aria-hidden="true">{sign}</span> {kind}</span>'


def name(text: str) -> str:
    """A name that breaks after its slashes before it breaks inside a word."""
    return html(clip(text, 200)).replace("/", "/<wbr>")


def advice(result: Result) -> str:
    """What to do, and the page that says more."""
    problem = result.problem
    page = html_link(str(problem), problem.url) if problem else ""
    said = html_prose(clip(what_to_do(result), _MOST_CHARS))
    return " ".join(filter(None, (f'<strong class="said">{said}</strong>' if said else "", page)))


def output(result: Result, report: Report) -> str:
    """Where the whole output of its build is."""
    return html(clip(whole_output(result, report), _MOST_CHARS))


def section(title: str, anchor: str, body: Iterable[str], *, needs_script: bool = False) -> str:
    """With a heading. One that needs a script is hidden without it."""
    hidden = " hidden data-scripted" if needs_script else ""
    inner = "\n".join(body)
    return (
        f'<section id="{anchor}" aria-labelledby="{anchor}-title"{hidden}>\n'
        f'<h2 id="{anchor}-title">{title}</h2>\n{inner}\n</section>'
    )


def definition_list(items: Iterable[tuple[str, str]]) -> str:
    """Terms and what belongs to them, both as HTML; what is empty is left out."""
    rows = [f"<div><dt>{term}</dt><dd>{text}</dd></div>" for term, text in items if text]
    return f"<dl>{''.join(rows)}</dl>" if rows else ""


def log(lines: Iterable[str], label: str) -> str:
    """It scrolls, so it can be reached by keyboard."""
    body = "\n".join(html(clip(line, 2_000)) for line in lines)
    return (
        f'<pre tabindex="0" role="region" aria-label="{html(label)}">{body}</pre>' if body else ""
    )


def json_element(value: object) -> str:
    """JSON that a script reads, inside a script element that no browser runs."""
    text = json.dumps(value, separators=(",", ":")).translate(_IN_SCRIPT)
    return f'<script type="application/json" id="data">{text}</script>'
