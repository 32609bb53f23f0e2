// What all parts share: the data, elements, the theme, the hint beside the pointer.
const data = JSON.parse(document.getElementById("data").textContent);
const NARROW = 600; // as in page.css
const byId = (id) => document.getElementById(id);
const rowOf = (number) => byId(`p${number}`);
const { marks, worst } = data; // signs by outcome; outcomes, what needs attention first
data.packages.forEach((each, number) => {
  each.number = number;
  each.neededBy = [];
});
for (const each of data.packages)
  for (const other of each.needs) data.packages[other].neededBy.push(each.number);

// Text is only ever set as text.
function make(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

function draw(tag, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

const clipped = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

function lasting(seconds) {
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return `${minutes} min ${whole % 60} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

for (const each of document.querySelectorAll("[data-scripted]")) each.hidden = false;

// Pictures are drawn when somebody comes near them: the headline does not wait for them.
function whenNear(element, act) {
  new IntersectionObserver((entries, observer) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    observer.disconnect();
    act();
  }, { rootMargin: "300px" }).observe(element);
}

// The theme: that of the system, until somebody chooses.
const themes = ["system", "light", "dark"];
const remembered = "releasekit-theme";

function showTheme(name) {
  if (name === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  byId("theme").textContent = `Theme: ${name}`;
}

function storage() {
  try {
    return window.localStorage; // refused to pages in a sandbox
  } catch {
    return null;
  }
}

let theme = storage()?.getItem(remembered);
if (!themes.includes(theme)) theme = "system";
showTheme(theme);
byId("theme").addEventListener("click", () => {
  theme = themes[(themes.indexOf(theme) + 1) % themes.length];
  showTheme(theme);
  storage()?.setItem(remembered, theme);
});

// The hint: for the pointer and for the focus alike.
const hint = make("div", { id: "hint", role: "tooltip" });
hint.hidden = true;
document.body.append(hint);

function showHint(lines, near) {
  hint.replaceChildren(...lines.filter(Boolean).map((line) => make("p", {}, line)));
  hint.hidden = false;
  const box = near.getBoundingClientRect();
  const left = Math.min(box.left, window.innerWidth - hint.offsetWidth - 12);
  const below = box.bottom + 8 + hint.offsetHeight < window.innerHeight;
  hint.style.left = `${Math.max(8, left)}px`;
  hint.style.top = `${below ? box.bottom + 8 : Math.max(8, box.top - hint.offsetHeight - 8)}px`;
}

function hideHint() {
  hint.hidden = true;
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") hideHint();
});
document.addEventListener("scroll", hideHint, { passive: true });

// What a hint says of a package: the words of its row.
function wordsOf(number) {
  const each = data.packages[number];
  const row = rowOf(number);
  return [
    `${marks[each.outcome]} ${each.ecosystem}:${each.name} ${each.version} — ${each.outcome}`,
    row.querySelector("summary").textContent,
    row.querySelector(".why")?.textContent,
  ];
}
