"""The frames that the scripts fill: controls, the graph, the timeline. Hidden without them."""

from __future__ import annotations

from typing import Final

FILTERS: Final = """\
<div id="filters" role="search" hidden data-scripted aria-label="Filter packages">
<label>Search <input type="search" id="search" placeholder="name, version, reason"></label>
<label>Ecosystem <select id="ecosystem"><option value="">all</option></select></label>
<button type="button" id="reset">Show all</button>
<p id="shown" role="status"></p>
<fieldset id="outcomes"><legend>Outcome</legend></fieldset>
</div>"""

GRAPH: Final = """\
<p class="note">Packages on the left go first. Point at one, or walk there with the arrow keys, to
see why it waited; Enter opens it. Drag to move, Ctrl and the wheel to zoom.</p>
<div class="controls">
<label>Show <select id="view"></select></label>
<button type="button" id="closer" aria-label="Zoom in">+</button>
<button type="button" id="farther" aria-label="Zoom out">&minus;</button>
<button type="button" id="fit">Fit</button>
</div>
<div id="canvas"></div>
<p id="graph-note" class="note" role="status"></p>"""

TIMELINE: Final = """\
<div hidden data-scripted>
<p class="note">Each lane has as many rows as tasks ran in it at a time. The outlined tasks are on
the critical path: to make any other one faster makes no run shorter.</p>
<div id="timeline"></div>
</div>"""
