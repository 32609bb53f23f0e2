// One filter for the graph, the timeline and the table; and the order of the table.
const filter = { text: "", outcomes: new Set(), ecosystem: "" };
const watchers = [];
const onFilter = (watcher) => watchers.push(watcher);
// Not what a package needs: whoever looks for one does not look for all around it.
const searched = data.packages.map((each) => {
  const said = [...rowOf(each.number).querySelectorAll("summary, .said")].map((part) => part.textContent);
  return [`${each.ecosystem}:${each.name} ${each.version}`, ...said].join(" ").toLowerCase();
});

for (const kind of Object.keys(marks)) {
  const count = data.packages.filter((each) => each.outcome === kind).length;
  if (!count) continue;
  const box = make("input", { type: "checkbox", value: kind });
  box.addEventListener("change", () => {
    if (box.checked) filter.outcomes.add(kind);
    else filter.outcomes.delete(kind);
    applyFilter();
  });
  byId("outcomes").append(make("label", { class: kind }, box, ` ${marks[kind]} ${kind} ${count}`));
}
for (const name of [...new Set(data.packages.map((each) => each.ecosystem))].sort())
  byId("ecosystem").append(make("option", { value: name }, name));

const matches = (number) => {
  const each = data.packages[number];
  return (!filter.outcomes.size || filter.outcomes.has(each.outcome))
    && (!filter.ecosystem || each.ecosystem === filter.ecosystem)
    && (!filter.text || searched[number].includes(filter.text));
};

function applyFilter() {
  let shown = 0;
  data.packages.forEach((_, number) => {
    const wanted = matches(number);
    rowOf(number).hidden = !wanted;
    shown += wanted;
  });
  const total = data.packages.length;
  byId("shown").textContent = shown === total ? `All ${total} shown` : `${shown} of ${total} shown`;
  for (const watcher of watchers) watcher();
}

function clearFilters() {
  filter.text = filter.ecosystem = "";
  filter.outcomes.clear();
  byId("search").value = byId("ecosystem").value = "";
  for (const box of byId("outcomes").querySelectorAll("input")) box.checked = false;
  applyFilter();
}

byId("search").addEventListener("input", (event) => {
  filter.text = event.target.value.trim().toLowerCase();
  applyFilter();
});
byId("ecosystem").addEventListener("change", (event) => {
  filter.ecosystem = event.target.value;
  applyFilter();
});
byId("reset").addEventListener("click", clearFilters);
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest?.("input, select, textarea");
  if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  byId("search").focus();
});

const collator = new Intl.Collator("en", { numeric: true });
const headings = [...byId("table").querySelectorAll("thead th")];
headings.forEach((heading, column) => {
  const button = make("button", { type: "button" }, ...heading.childNodes);
  heading.append(button);
  button.addEventListener("click", () => sortBy(column));
});

function sortBy(column) {
  const heading = headings[column];
  const up = heading.getAttribute("aria-sort") !== "ascending";
  for (const other of headings) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", up ? "ascending" : "descending");
  const body = byId("table").tBodies[0];
  const numeric = heading.dataset.sort === "number";
  const keyed = [...body.rows].map((row) => {
    const cell = row.cells[column];
    return { row, key: numeric ? Number(cell.dataset.value ?? cell.textContent) : cell.textContent };
  });
  const order = numeric ? (a, b) => a.key - b.key : (a, b) => collator.compare(a.key, b.key);
  keyed.sort((a, b) => (up ? order(a, b) : order(b, a)));
  body.append(...keyed.map((each) => each.row));
}
