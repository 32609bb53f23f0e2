// Where the boxes of the graph go: dagre's places up to a size that takes it no time to notice, and
// columns by layer beyond, or where layers are what is shown.
const WIDE = 200;
const HIGH = 40;
const FOLDED_HIGH = 80;
const MOST_FOR_DAGRE = 200;
const MOST_ARROWS = 2;

const highOf = (box) => (box.group ? FOLDED_HIGH : HIGH);

// Boxes have a key, a layer, and the keys of those they need; gets x and y of their middles.
function placed(boxes) {
  const layered = boxes.some((box) => box.group);
  return layered || boxes.length > MOST_FOR_DAGRE ? inColumns(boxes) : byDagre(boxes);
}

function byDagre(boxes) {
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ rankdir: "LR", ranker: "tight-tree", nodesep: 10, ranksep: 56, marginx: 12, marginy: 12 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const box of boxes) graph.setNode(box.key, { width: WIDE, height: HIGH });
  for (const box of boxes) for (const on of box.needs.keys()) graph.setEdge(on, box.key);
  dagre.layout(graph);
  const lines = graph.edges().map((edge) => (
    { from: edge.v, to: edge.w, points: graph.edge(edge).points }));
  return {
    spots: new Map(boxes.map((box) => [box.key, graph.node(box.key)])),
    lines,
    width: graph.graph().width,
    height: graph.graph().height,
  };
}

function inColumns(boxes) {
  const layers = new Map();
  for (const box of boxes) {
    if (!layers.has(box.layer)) layers.set(box.layer, []);
    layers.get(box.layer).push(box);
  }
  const rows = Math.max(20, Math.ceil(Math.sqrt(boxes.length) * 1.2));
  const spots = new Map();
  let x = 12;
  let height = 0;
  for (const layer of [...layers.keys()].sort((a, b) => a - b)) {
    let y = 12;
    layers.get(layer).forEach((box, index) => {
      const column = Math.floor(index / rows);
      if (index % rows === 0) y = 12;
      spots.set(box.key, { x: x + WIDE / 2 + column * (WIDE + 8), y: y + highOf(box) / 2 });
      y += highOf(box) + (box.group ? 16 : 8);
      height = Math.max(height, y + 4);
    });
    x += Math.ceil(layers.get(layer).length / rows) * (WIDE + 8) + 64;
  }
  const lines = [];
  const boxOf = new Map(boxes.map((box) => [box.key, box]));
  for (const box of boxes)
    for (const on of box.group ? strongest(box, boxOf) : box.needs.keys()) {
      const [from, to] = [spots.get(on), spots.get(box.key)];
      const ends = [{ x: from.x + WIDE / 2, y: from.y }, { x: to.x - WIDE / 2, y: to.y }];
      lines.push({ from: on, to: box.key, points: ends, far: !box.group && box.layer - boxOf.get(on).layer > 1 });
    }
  return { spots, lines, width: x - 52, height };
}

// Of what a group needs, that of the column before which most of its packages have; where it has
// none there, the strongest of all. With every arrow nobody could follow any.
function strongest(box, boxOf) {
  const before = [...box.needs].filter(([key]) => boxOf.get(key).layer < box.layer);
  const nearest = Math.max(...[...boxOf.values()].map((other) => other.layer).filter((layer) => layer < box.layer));
  const near = before.filter(([key]) => boxOf.get(key).layer === nearest);
  const ranked = (near.length ? near : before).sort(([, a], [, b]) => b - a);
  return ranked.slice(0, near.length ? MOST_ARROWS : 1).map(([key]) => key);
}

function pathThrough(points) {
  const [first, ...rest] = points.map((point) => [point.x.toFixed(1), point.y.toFixed(1)]);
  if (rest.length === 1) {
    const middle = ((Number(first[0]) + Number(rest[0][0])) / 2).toFixed(1);
    return `M${first}C${middle},${first[1]} ${middle},${rest[0][1]} ${rest[0]}`;
  }
  // Rounded corners: each inner point bends the line between the middles of its sides.
  const last = rest.pop();
  const bends = rest.map((point, index) => {
    const next = rest[index + 1] ?? last;
    const half = [0, 1].map((axis) => ((Number(point[axis]) + Number(next[axis])) / 2).toFixed(1));
    return `Q${point} ${half}`;
  });
  return `M${first}${bends.join("")}L${last}`;
}
