// The lanes: what ran when, in as many rows as ran at a time.
const LANES = [
  ["build", "builds"], ["attest", "signatures"], ["upload", "uploads"],
  ["confirm", "confirmations"], ["approval", "approvals"], ["follow-up", "follow-ups"], ["wait", "other jobs"],
];
const RIGHT = 16;
const timeline = byId("timeline");
let drawnWidth = 0;

// Packages that share a task, as those of one build, are one bar.
function tasksOf(phase) {
  const tasks = new Map();
  for (const each of data.packages)
    for (const [what, start, end] of each.spans) {
      if (what !== phase) continue;
      const key = phase === "build" ? `${start} ${end}` : `${start} ${end} ${each.number}`;
      if (!tasks.has(key)) tasks.set(key, { phase, start, end, members: [] });
      tasks.get(key).members.push(each.number);
    }
  return [...tasks.values()].sort((a, b) => a.start - b.start || a.end - b.end);
}

// Each into the first row that is free by then.
function inRows(tasks) {
  const ends = [];
  for (const task of tasks) {
    let row = ends.findIndex((end) => end <= task.start + 0.0005);
    if (row < 0) row = ends.length;
    ends[row] = task.end;
    task.row = row;
  }
  return ends.length;
}

const lanes = LANES.map(([phase, words]) => {
  const tasks = tasksOf(phase);
  return { phase, words, tasks, rows: inRows(tasks) };
}).filter((lane) => lane.rows);
const total = Math.max(data.duration, 0.001, ...lanes.flatMap((lane) => lane.tasks.map((task) => task.end)));
function ticks(most) {
  const rough = total / most;
  const unit = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 86400];
  const step = unit.find((each) => each >= rough) ?? rough;
  return Array.from({ length: Math.floor(total / step) + 1 }, (_, index) => index * step);
}

function showTimeline() {
  const width = timeline.clientWidth;
  drawnWidth = width;
  const left = width < NARROW ? 100 : 150;
  const scale = (width - left - RIGHT) / total;
  const across = (second) => left + second * scale;
  const picture = draw("svg", { role: "group", "aria-label": "Timeline", width });
  const bars = [];
  let y = 24;
  const marks = draw("g", { "aria-hidden": "true" });
  picture.append(marks);
  const add = (step, top, high, kind, words) => {
    const wide = Math.max(1.5, (step.end - step.start) * scale);
    const element = draw("rect", { class: `task ${kind}${wide < 6 ? " thin" : ""}`, x: across(step.start).toFixed(1), y: top, width: wide.toFixed(1), height: Math.max(2, high - 1), rx: high > 6 ? 2 : 0, role: "button", tabindex: "-1", "aria-label": words.join(". ") });
    bars.push({ element, words, number: step.number ?? step.members[0], members: step.members ?? [step.number] });
    picture.append(element);
  };
  const title = (words, more) => {
    picture.append(draw("text", { x: 0, y: y + 11 }, words));
    if (more) picture.append(draw("text", { x: 0, y: y + 25, class: "second" }, more));
  };
  for (const lane of lanes) {
    const high = Math.max(3, Math.min(16, 240 / lane.rows));
    title(lane.words, `${lane.rows} at a time`);
    for (const task of lane.tasks)
      add(task, y + task.row * high, high, task.phase, taskWords(task));
    y += Math.max(32, lane.rows * high) + 14;
  }
  for (const second of ticks(width / 110)) {
    const x = across(second).toFixed(1);
    marks.append(draw("line", { x1: x, x2: x, y1: 18, y2: y }), draw("text", { x, y: 12, class: "second" }, lasting(second).replace(".0 s", " s").replace(/ 0 (s|min)$/, "")));
  }
  picture.setAttribute("height", y);
  picture.setAttribute("viewBox", `0 0 ${width} ${y}`); // paper may be narrower
  bars[0]?.element.setAttribute("tabindex", "0");
  timeline.replaceChildren(picture);
  scenes.bars = bars;
  dimTimeline();
}

const scenes = { bars: [] };
const nameOf = (number) => (number < 0 ? "the run" : `${data.packages[number].ecosystem}:${data.packages[number].name}`);

function taskWords(task) {
  const others = task.members.length - 1;
  const outcome = data.packages[task.members[0]].outcome;
  return [
    `${nameOf(task.members[0])}${others ? ` and ${others} more` : ""} ${task.phase} ${lasting(task.end - task.start)}`,
    `from ${lasting(task.start)} to ${lasting(task.end)}; ended as ${outcome}`,
    rowOf(task.members[0]).querySelector(".why")?.textContent,
  ];
}

const barAt = (target) => scenes.bars.find((each) => each.element === target);

function dimTimeline() {
  for (const each of scenes.bars)
    each.element.classList.toggle("dim", each.number >= 0 && !each.members.some(matches));
}

for (const kind of ["pointerover", "focusin"])
  timeline.addEventListener(kind, (event) => {
    const found = barAt(event.target);
    if (found) showHint(found.words.filter(Boolean), found.element);
  });
for (const kind of ["pointerout", "focusout"]) timeline.addEventListener(kind, hideHint);
timeline.addEventListener("click", (event) => {
  const found = barAt(event.target);
  if (found && found.number >= 0) openDetails(found.number);
});
timeline.addEventListener("keydown", (event) => {
  const at = scenes.bars.findIndex((each) => each.element === event.target);
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  const target = event.key === "Home" ? scenes.bars[0] : event.key === "End" ? scenes.bars.at(-1) : scenes.bars[at + step];
  if (at < 0) return;
  if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    if (scenes.bars[at].number >= 0) openDetails(scenes.bars[at].number);
  } else if (target) {
    event.preventDefault();
    scenes.bars[at].element.setAttribute("tabindex", "-1");
    target.element.setAttribute("tabindex", "0");
    target.element.focus();
  }
});
onFilter(dimTimeline);

whenNear(timeline, () => new ResizeObserver(() => {
  if (timeline.clientWidth && timeline.clientWidth !== drawnWidth) showTimeline();
}).observe(timeline));
window.addEventListener("beforeprint", () => drawnWidth || showTimeline());
applyFilter();
