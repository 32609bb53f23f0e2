// The graph: layers folded into boxes where there are many packages, single packages otherwise.
const FOLDED_BEYOND = 60;
const MOST_COLUMNS = 6; // of groups: with more of them the text is too small to read
const MOST_AROUND = 200;
const LEAST_SCALE = 0.02;
const MOST_SCALE = 4;
const canvas = byId("canvas");
const view = byId("view");
let unfolded = new Set(); // keys of groups that show their packages
let center = null; // the package that is looked at
let scene = null;
let zoom = null;

const absent = (each) => !["published", "already-published", "would-publish"].includes(each.outcome);
const deepest = data.packages.reduce((most, each) => Math.max(most, each.layer + 1), 1);
const thick = Math.ceil(deepest / MOST_COLUMNS); // layers in a group
const firstLayer = (each) => each.layer - (each.layer % thick);
const groupKey = (each) => `g${firstLayer(each)} ${each.ecosystem}`;
const views = [["all", "every package"]];
if (data.packages.length > FOLDED_BEYOND) views.unshift(["groups", "layers"]);
if (data.packages.some(absent) && !data.packages.every(absent)) views.push(["absent", "what is not published"]);
for (const [value, words] of views) view.append(make("option", { value }, words));

// The packages that a view is about, each of which may stand in a group.
function chosen() {
  if (view.value === "absent") return data.packages.filter(absent);
  if (view.value === "around") return reached(center).map((number) => data.packages[number]);
  return data.packages;
}

// What a package needs and what needs it, all the way, the nearest first.
function reached(start) {
  const seen = new Set([start]);
  let fronts = [[start, "needs"], [start, "neededBy"]];
  while (fronts.length && seen.size < MOST_AROUND) {
    const next = [];
    for (const [number, way] of fronts)
      for (const other of data.packages[number][way])
        if (!seen.has(other) && seen.size < MOST_AROUND) {
          seen.add(other);
          next.push([other, way]);
        }
    fronts = next;
  }
  return [...seen].sort((a, b) => a - b);
}

function boxesOf(packages) {
  const folded = view.value === "groups";
  const keyOf = (each) => (folded && !unfolded.has(groupKey(each)) ? groupKey(each) : String(each.number));
  const boxes = new Map();
  for (const each of packages) {
    const key = keyOf(each);
    const group = key[0] === "g";
    if (!boxes.has(key)) boxes.set(key, { key, layer: group ? firstLayer(each) : each.layer, needs: new Map(), members: [], group });
    boxes.get(key).members.push(each.number);
  }
  for (const each of packages)
    for (const on of each.needs) {
      const other = keyOf(data.packages[on]);
      const { needs } = boxes.get(keyOf(each));
      if (other !== keyOf(each) && boxes.has(other)) needs.set(other, (needs.get(other) ?? 0) + 1);
    }
  // Those of an ecosystem stand together in their column.
  const order = (box) => data.packages[box.members[0]].ecosystem;
  return [...boxes.values()].sort((a, b) => a.layer - b.layer || collator.compare(order(a), order(b)));
}

function showGraph(focusKey = null) {
  const boxes = boxesOf(chosen());
  const place = placed(boxes);
  scene = { boxes: new Map(boxes.map((box) => [box.key, box])), place, lines: [] };
  const content = draw("g", { class: "content" });
  for (const line of place.lines) {
    const element = draw("path", { class: line.far ? "edge far" : "edge", d: pathThrough(line.points), "aria-hidden": "true" });
    scene.lines.push({ ...line, element });
    content.append(element);
  }
  for (const box of boxes) content.append(boxElement(box, place.spots.get(box.key)));
  const picture = draw("svg", { role: "group", "aria-label": `Dependency graph, ${boxes.length} boxes`, width: "100%", height: "100%" }, content);
  const wanted = scene.boxes.get(focusKey) ?? boxes.find((box) => box.members.some((each) => absent(data.packages[each]))) ?? boxes[0];
  scene.current = wanted;
  wanted?.element.setAttribute("tabindex", "0");
  zoom?.destroy();
  canvas.replaceChildren(picture);
  canvas.style.height = `${frameHeight(place)}px`;
  const { scale, x, y } = fitting();
  zoom = Panzoom(content, {
    canvas: true, minScale: LEAST_SCALE, maxScale: MOST_SCALE, step: 0.25, animate: false,
    cursor: "grab", startScale: scale, startX: x, startY: y,
  });
  dim();
  if (focusKey !== null) focusOn(wanted);
  note(boxes);
}

// As high as the picture is once it is as wide as the frame, within bounds.
function frameHeight(place) {
  const wanted = place.height * Math.min(canvas.clientWidth / place.width, 1.25);
  return Math.round(Math.min(Math.max(wanted + 2, 200), Math.max(320, window.innerHeight * 0.66)));
}

function boxElement(box, spot) {
  const only = box.group ? null : data.packages[box.members[0]];
  const worst = worstOf(box.members);
  const label = box.group ? data.packages[box.members[0]].ecosystem : only.name;
  const high = highOf(box);
  const below = box.group ? layersOf(box) : `${marks[only.outcome]} ${only.outcome} · ${only.version}`;
  const said = box.group ? `${label}, ${below}, ${sized(box)}, ${counted(box.members)}` : wordsOf(only.number).filter(Boolean).join(". ");
  const element = draw("g", { class: `box ${worst}${box.group ? " folded" : ""}`, role: "button", tabindex: "-1", "aria-label": said, transform: `translate(${spot.x - WIDE / 2} ${spot.y - high / 2})`, "data-key": box.key });
  element.append(draw("rect", { class: "paper", width: WIDE, height: high, rx: 6 }));
  if (box.group) bar(element, box.members);
  else element.append(draw("rect", { class: `strip ${worst}`, width: 6, height: HIGH, rx: 3 }));
  element.append(
    draw("text", { x: 14, y: box.group ? 24 : 17 }, ending(label, box.group ? 18 : 13)),
    draw("text", { x: 14, y: box.group ? 43 : 32, class: "second" }, clipped(below, 30)));
  if (box.group) element.append(draw("text", { x: 14, y: 62, class: "second" }, sized(box)));
  box.element = element;
  return element;
}

const sized = (box) => `${box.members.length} ${box.members.length === 1 ? "package" : "packages"}`;

function layersOf(box) {
  const layers = box.members.map((each) => data.packages[each].layer + 1);
  const [first, last] = [layers.reduce((a, b) => Math.min(a, b)), layers.reduce((a, b) => Math.max(a, b))];
  return first === last ? `layer ${first}` : `layers ${first}–${last}`;
}

const MOST_GIVEN_UP = 10; // letters of a name, for its end to begin at a slash
const pen = make("canvas").getContext("2d");

// The end of a name that is wider than its box: names of one origin begin alike.
function ending(text, size) {
  pen.font = `${size}px ${getComputedStyle(document.body).fontFamily}`;
  const fits = (shown) => pen.measureText(shown).width <= WIDE - 22;
  if (fits(text)) return text;
  let from = 1;
  while (from < text.length && !fits(`…${text.slice(from)}`)) from += 1;
  const slash = text.indexOf("/", from);
  const whole = slash >= 0 && slash - from < MOST_GIVEN_UP ? slash : from;
  return `…${text.slice(whole)}`;
}

function worstOf(members) {
  const found = new Set(members.map((each) => data.packages[each].outcome));
  return worst.find((kind) => found.has(kind));
}

function counts(members) {
  return Object.keys(marks)
    .map((kind) => [kind, members.filter((each) => data.packages[each].outcome === kind).length])
    .filter(([, count]) => count);
}

const counted = (members) => counts(members).map(([kind, count]) => `${count} ${kind}`).join(", ");

function bar(element, members) {
  let x = 8;
  for (const [kind, count] of counts(members)) {
    const width = ((WIDE - 16) * count) / members.length;
    element.append(draw("rect", { class: `strip ${kind}`, x: x.toFixed(1), y: FOLDED_HIGH - 10, width: width.toFixed(1), height: 6 }));
    x += width;
  }
}

function note(boxes) {
  const packages = new Set(boxes.flatMap((box) => box.members)).size;
  const words = [`${packages} ${packages === 1 ? "package" : "packages"}${packages === boxes.length ? "" : ` in ${boxes.length} boxes`}.`];
  if (boxes.some((box) => box.group)) words.push("A box opens by Enter or a press, into its packages. Of the arrows between boxes, those that most packages share are drawn.");
  if (view.value === "around") {
    const each = data.packages[center];
    words.push(`All that ${each.name} needs, and all that needs it${boxes.length >= MOST_AROUND ? `, the nearest ${MOST_AROUND}` : ""}.`);
  }
  byId("graph-note").textContent = words.join(" ");
}

// All of it, where that can be read; else what is looked at comes into the middle.
function fitting() {
  const room = canvas.getBoundingClientRect();
  const { width, height } = scene.place;
  const whole = Math.min(room.width / width, room.height / height, 1.25);
  const least = room.width < NARROW ? 0.75 : 0.45;
  if (whole >= least) return { scale: whole, x: (room.width / whole - width) / 2, y: (room.height / whole - height) / 2 };
  const scale = Math.max(0.6, least);
  return { scale, ...middled(scene.current, scale) };
}

// Where the picture goes for a box to be in the middle, or as near to it as leaves no empty edge.
function middled(box, scale) {
  const room = canvas.getBoundingClientRect();
  const spot = scene.place.spots.get(box.key);
  const kept = (wish, own, size) => Math.min(0, Math.max(wish, size / scale - own));
  return {
    x: kept(room.width / 2 / scale - spot.x, scene.place.width, room.width),
    y: kept(room.height / 2 / scale - spot.y, scene.place.height, room.height),
  };
}

function fit() {
  const { scale, x, y } = fitting();
  zoom.zoom(scale, { force: true });
  zoom.pan(x, y, { force: true });
}

function bringToView(box) {
  const { x, y } = middled(box, zoom.getScale());
  zoom.pan(x, y, { force: true });
}

function inView(box) {
  const [room, own] = [canvas.getBoundingClientRect(), box.element.getBoundingClientRect()];
  return own.left >= room.left && own.right <= room.right && own.top >= room.top && own.bottom <= room.bottom;
}

function focusOn(box) {
  if (!box) return;
  scene.current?.element.setAttribute("tabindex", "-1");
  scene.current = box;
  box.element.setAttribute("tabindex", "0");
  if (!inView(box)) bringToView(box);
  box.element.focus({ preventScroll: true });
}

// Edges that lead to what is pointed at, and the one along which it waited longest.
function light(box) {
  const waited = box.group ? -1 : data.packages[box.members[0]].waited;
  for (const line of scene.lines) {
    const near = line.to === box.key || line.from === box.key;
    line.element.classList.toggle("near", near);
    line.element.classList.toggle("waited", line.to === box.key && line.from === String(waited));
  }
}

function point(box) {
  light(box);
  if (!box.group) return showHint(wordsOf(box.members[0]), box.element);
  const names = box.members.slice(0, 8).map((each) => data.packages[each].name).join(", ");
  const more = box.members.length > 8 ? ` and ${box.members.length - 8} more` : "";
  showHint([`${sized(box)}: ${counted(box.members)}`, names + more], box.element);
}

function leave() {
  hideHint();
  for (const line of scene.lines) line.element.classList.remove("near", "waited");
}

function open(box) {
  if (!box.group) return openDetails(box.members[0]);
  unfolded.add(box.key);
  showGraph(String(box.members.find((each) => absent(data.packages[each])) ?? box.members[0]));
}

function dim() {
  for (const box of scene.boxes.values())
    box.element.classList.toggle("dim", !box.members.some(matches));
}

function showAround(number) {
  center = number;
  view.querySelector("option[value=around]")?.remove();
  view.append(make("option", { value: "around" }, `around ${clipped(data.packages[number].name, 40)}`));
  view.value = "around";
  byId("graph").scrollIntoView({ block: "start" });
  showGraph(String(number));
}

const boxAt = (target) => scene.boxes.get(target.closest?.(".box")?.dataset.key);

// A press that has moved the picture is none on what it ended at.
let pressed = null;
canvas.addEventListener("pointerdown", (event) => {
  pressed = [event.clientX, event.clientY];
}, { capture: true });
canvas.addEventListener("click", (event) => {
  const moved = pressed && Math.hypot(event.clientX - pressed[0], event.clientY - pressed[1]) > 4;
  const box = boxAt(event.target);
  if (!box || moved) return;
  focusOn(box);
  open(box);
});
for (const kind of ["pointerover", "focusin"])
  canvas.addEventListener(kind, (event) => {
    const box = boxAt(event.target);
    if (box) point(box);
  });
for (const kind of ["pointerout", "focusout"]) canvas.addEventListener(kind, leave);
canvas.addEventListener("wheel", (event) => {
  if (event.ctrlKey || event.metaKey) zoom.zoomWithWheel(event);
}, { passive: false });

canvas.addEventListener("keydown", (event) => {
  const box = boxAt(event.target);
  if (!box || event.ctrlKey || event.metaKey || event.altKey) return;
  const act = {
    Enter: () => open(box),
    " ": () => open(box),
    ArrowLeft: () => focusOn(cause(box) ?? nearest(box, [...box.needs.keys()])),
    ArrowRight: () => focusOn(nearest(box, [...scene.boxes.values()].filter((other) => other.needs.has(box.key)).map((other) => other.key))),
    ArrowUp: () => focusOn(beside(box, -1)),
    ArrowDown: () => focusOn(beside(box, 1)),
    Home: () => focusOn([...scene.boxes.values()][0]),
    End: () => focusOn([...scene.boxes.values()].at(-1)),
    "+": closer, "=": closer, "-": farther, 0: fit,
  }[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

// What somebody who asks why it waited wants to see first: what is missing, or what took longest.
function cause(box) {
  const needed = [...box.needs.keys()].map((key) => scene.boxes.get(key));
  const lacking = needed.find((other) => other.members.some((each) => absent(data.packages[each])));
  return lacking ?? (box.group ? undefined : needed.find((other) => other.key === String(data.packages[box.members[0]].waited)));
}

function nearest(box, keys) {
  const y = scene.place.spots.get(box.key).y;
  const away = (key) => Math.abs(scene.place.spots.get(key).y - y);
  return scene.boxes.get(keys.sort((a, b) => away(a) - away(b))[0]);
}

// The next in the same column, or in the one after it at its end.
function beside(box, step) {
  const spots = scene.place.spots;
  const ordered = [...scene.boxes.keys()].sort((a, b) => spots.get(a).x - spots.get(b).x || spots.get(a).y - spots.get(b).y);
  return scene.boxes.get(ordered[ordered.indexOf(box.key) + step]);
}

function closer() {
  zoomAbout(1.3);
}

function farther() {
  zoomAbout(1 / 1.3);
}

// The middle of the canvas stays where it is.
function zoomAbout(factor) {
  const [room, before] = [canvas.getBoundingClientRect(), zoom.getScale()];
  const after = Math.min(MOST_SCALE, Math.max(LEAST_SCALE, before * factor));
  const shift = (size) => size / 2 / after - size / 2 / before;
  const { x, y } = zoom.getPan();
  zoom.zoom(after, { force: true });
  zoom.pan(x + shift(room.width), y + shift(room.height), { force: true });
}

byId("closer").addEventListener("click", closer);
byId("farther").addEventListener("click", farther);
byId("fit").addEventListener("click", fit);
view.addEventListener("change", () => {
  unfolded = new Set();
  showGraph();
});
onFilter(() => scene && dim());

whenNear(canvas, () => scene || showGraph());

// On paper all of it is shown, as wide as the page is; the style takes the zoom away.
window.addEventListener("beforeprint", () => {
  if (!scene) showGraph();
  canvas.firstChild.setAttribute("viewBox", `0 0 ${scene.place.width} ${scene.place.height}`);
});
window.addEventListener("afterprint", () => canvas.firstChild.removeAttribute("viewBox"));
