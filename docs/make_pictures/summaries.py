"""Job summaries as GitHub shows them: GFM with alerts, graphs drawn, in both themes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page

    from make_pictures.chromium import Theme

WIDTH: Final = 1_012
_PAGE: Final = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Job summary</title>
<link rel="stylesheet" href="{files}/github-markdown-{theme}.css">
<style>
  body {{ margin: 0; background: {ground}; }}
  .markdown-body {{ padding: 24px; font-size: 14px; }}
  .mermaid {{ text-align: center; background: none !important; padding: 0 !important; }}
</style>
<main class="markdown-body"></main>
<script src="{files}/marked.js"></script>
<script src="{files}/marked-alert.js"></script>
<script src="{files}/mermaid.js"></script>
<script>
  const main = document.querySelector('main')
  marked.use({{ gfm: true }}, markedAlert())
  main.innerHTML = marked.parse({markdown})
  // GitHub lets no style of its own pass.
  for (const styled of main.querySelectorAll('[style]')) styled.removeAttribute('style')
  mermaid.initialize({{ startOnLoad: false, theme: '{mermaid}', securityLevel: 'strict' }})
  const draw = async () => {{
    const charts = [...main.querySelectorAll('code.language-mermaid')]
    const troubles = []
    for (const [number, code] of charts.entries()) {{
      const place = document.createElement('div')
      place.className = 'mermaid'
      try {{
        const drawn = await mermaid.render(`chart-${{number}}`, code.textContent)
        place.innerHTML = drawn.svg
      }} catch (trouble) {{
        troubles.push(`${{trouble.message}}`)
      }}
      code.parentElement.replaceWith(place)
    }}
    window.drawn = {{ charts: charts.length, troubles }}
  }}
  draw()
</script>
</html>
"""
_GROUNDS: Final[dict[Theme, str]] = {"light": "#ffffff", "dark": "#0d1117"}
_MERMAID: Final[dict[Theme, str]] = {"light": "default", "dark": "dark"}


class Drawn(NamedTuple):
    """How many graphs a page has, and what Mermaid says is wrong with them."""

    charts: int
    troubles: list[str]


def page(markdown: str, files: Path, *, theme: Theme) -> str:
    """HTML; `files` is where `npm_files` has put what it loads."""
    return _PAGE.format(
        files=files.as_uri(),
        theme=theme,
        ground=_GROUNDS[theme],
        mermaid=_MERMAID[theme],
        # In a script, only `</` and `<!--` would end it.
        markdown=json.dumps(markdown).replace("<", "\\u003c"),
    )


def drawn(page: Page) -> Drawn:
    """Once all is drawn."""
    told = page.wait_for_function("window.drawn", timeout=300_000).json_value()
    return Drawn(**told)
