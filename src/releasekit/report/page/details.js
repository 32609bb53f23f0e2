// Everything about one package, over the page: a copy of what is folded into its row.
const dialog = make("dialog", { id: "dialog", "aria-labelledby": "dialog-title" });
document.body.append(dialog);

function openDetails(number) {
  const each = data.packages[number];
  hideHint();
  const close = make("button", { type: "button" }, "Close");
  close.addEventListener("click", () => dialog.close());
  const around = make("button", { type: "button" }, "Show in graph");
  around.addEventListener("click", () => {
    dialog.close();
    showAround(number);
  });
  const row = make("button", { type: "button" }, "Show in table");
  row.addEventListener("click", () => {
    dialog.close();
    unfold(number);
  });
  const title = make("h2", { id: "dialog-title" }, `${each.ecosystem}:${each.name} ${each.version}`);
  const words = make("p", {}, rowOf(number).querySelector(".outcome").cloneNode(true));
  words.append(" ", rowOf(number).querySelector("summary").textContent);
  const body = rowOf(number).querySelector(".details").cloneNode(true);
  dialog.replaceChildren(title, words, body, make("div", { class: "controls" }, around, row, close));
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
  close.focus({ preventScroll: true });
}

dialog.addEventListener("click", (event) => {
  // A press beside it closes it; a link in it opens the package that it names.
  if (event.target === dialog) dialog.close();
  const target = numberIn(event.target.closest?.("a")?.getAttribute("href"));
  if (target === null) return;
  event.preventDefault();
  openDetails(target);
});

function numberIn(href) {
  const found = /^#p([0-9]+)$/.exec(href ?? "");
  return found ? Number(found[1]) : null;
}

function unfold(number) {
  const row = rowOf(number);
  if (row.hidden) clearFilters();
  row.querySelector("details").open = true;
  row.querySelector("summary").focus({ preventScroll: true });
  row.scrollIntoView({ block: "center" });
}

byId("table").addEventListener("click", (event) => {
  const target = numberIn(event.target.closest("a")?.getAttribute("href"));
  if (target === null) return;
  event.preventDefault();
  unfold(target);
});
