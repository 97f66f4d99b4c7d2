// The drawing, and how keys lead through it.

const RADIUS = 16;
const MAX_LABEL = 22; // Characters.
const MAX_PREDICATES = 80; // Relations whose predicates are drawn; the list below tells those of more.
const KINDS = 6; // Colours there are.
const SVG = "http://www.w3.org/2000/svg";

function element(name, attributes = {}, text = null) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== null) made.textContent = text;
  return made;
}

function shortened(text) {
  const characters = Array.from(text);
  return characters.length > MAX_LABEL ? `${characters.slice(0, MAX_LABEL - 1).join("")}…` : text;
}

function draw(graph) {
  $("graph").replaceChildren();
  $("node").hidden = true;
  if (!graph.nodes.length) return;
  place(graph.nodes);
  const reach = 90 + Math.max(...graph.nodes.map(({ x, y }) => Math.max(Math.abs(x), Math.abs(y))));
  const svg = element("svg", { width: 2 * reach, height: 2 * reach, viewBox: `${-reach} ${-reach} ${2 * reach} ${2 * reach}` });
  svg.append(arrowhead(), ...drawnEdges(graph.edges));
  const kinds = [...new Set(graph.nodes.map(({ kind }) => kind).filter(Boolean))];
  svg.append(...graph.nodes.map((node) => drawnNode(node, graph, kinds)), ...graph.nodes.map(drawnLabel));
  $("graph").append(svg);
  $("graph").scrollTo(reach - $("graph").clientWidth / 2, reach - $("graph").clientHeight / 2);
}

function arrowhead() {
  const marker = element("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 8, refY: 4, markerWidth: 8, markerHeight: 8, orient: "auto" });
  marker.append(element("path", { d: "M0 0 L8 4 L0 8 Z", class: "arrow" }));
  const defs = element("defs");
  defs.append(marker);
  return defs;
}

/** Relations of the same two nodes are bent apart; one from a node to itself is a loop. */
function drawnEdges(edges) {
  const together = new Map();
  return edges.flatMap((edge) => {
    const pair = [edge.from.place, edge.to.place].sort().join();
    const before = together.get(pair) ?? 0;
    together.set(pair, before + 1);
    const { path, middle } = edge.from === edge.to ? loop(edge.from, before) : bow(edge, before);
    const drawn = [element("path", { d: path, class: "edge", "marker-end": "url(#arrow)" })];
    if (edges.length <= MAX_PREDICATES) {
      drawn.push(element("text", { class: "predicate", x: middle[0], y: middle[1] }, shortened(edge.predicate)));
    }
    return drawn;
  });
}

function bow({ from, to }, before) {
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  const length = Math.hypot(dx, dy) || 1;
  const side = (before % 2 ? -1 : 1) * Math.ceil(before / 2) * 44 * (from.place > to.place ? -1 : 1);
  const bent = [(from.x + to.x) / 2 - (dy / length) * side, (from.y + to.y) / 2 + (dx / length) * side];
  const start = towards(from, bent);
  const end = towards(to, bent);
  const middle = [(from.x + to.x) / 4 + bent[0] / 2, (from.y + to.y) / 4 + bent[1] / 2 - 3];
  return { path: `M${start} Q${bent} ${end}`, middle };
}

function towards({ x, y }, [toX, toY]) {
  const length = Math.hypot(toX - x, toY - y) || 1;
  return [x + ((toX - x) * (RADIUS + 2)) / length, y + ((toY - y) * (RADIUS + 2)) / length];
}

function loop({ x, y }, before) {
  const high = 34 + 18 * before;
  const path = `M${x - 8} ${y - RADIUS} C${x - 34} ${y - RADIUS - high} ${x + 34} ${y - RADIUS - high} ${x + 8} ${y - RADIUS}`;
  return { path, middle: [x, y - RADIUS - high * 0.75] };
}

function drawnNode(node, graph, kinds) {
  const isCentre = node === graph.nodes[0];
  const kind = node.kind ? ` kind-${kinds.indexOf(node.kind) % KINDS}` : "";
  const drawn = element("g", {
    class: `node${isCentre ? " centre" : ""}${node.isUnknown ? " unknown" : ""}${kind}`,
    role: "button",
    tabindex: isCentre ? 0 : -1,
    "aria-label": node.kind ? `${node.label}, ${node.kind}` : node.label,
  });
  drawn.append(element("circle", { cx: node.x, cy: node.y, r: RADIUS }));
  for (const event of ["focus", "mouseenter"]) drawn.addEventListener(event, () => tell(node));
  drawn.addEventListener("click", () => explore(node));
  drawn.addEventListener("keydown", (event) => press(event, node, graph));
  node.drawn = drawn;
  return drawn;
}

/** A node's name as far as there is room: beside the node, whose own label says it whole. */
function drawnLabel({ label, x, y }) {
  return element("text", { class: "label", x, y: y + RADIUS + 14, "aria-hidden": true }, shortened(label));
}

/** One key leads into the graph; from there arrows lead from node to node. */
function press(event, node, graph) {
  const ways = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };
  if (event.key === "Enter" || event.key === " ") explore(node);
  else if (event.key === "Home") enter(graph.nodes[0], node);
  else if (event.key in ways) enter(nearest(node, graph.nodes, ways[event.key]), node);
  else return;
  event.preventDefault();
}

function enter(node, from) {
  from.drawn.setAttribute("tabindex", -1);
  node.drawn.setAttribute("tabindex", 0);
  node.drawn.focus();
}

/** The next node that way; where there is none, the node itself. */
function nearest(node, nodes, [wayX, wayY]) {
  const far = (other) => {
    const [dx, dy] = [other.x - node.x, other.y - node.y];
    const ahead = dx * wayX + dy * wayY;
    const aside = Math.abs(dx * wayY) + Math.abs(dy * wayX);
    return ahead > 1 && aside <= 2 * ahead ? ahead + 2 * aside : Infinity;
  };
  return nodes.reduce((best, other) => (far(other) < far(best) ? other : best), node);
}

function tell(node) {
  $("node").hidden = false;
  $("node-name").textContent = node.label;
  $("node-kind").textContent = node.isUnknown ? "Only named by relations" : (node.kind ?? "");
  $("node-text").textContent = node.text ?? "";
}

function list({ edges }) {
  $("relations").hidden = edges.length === 0;
  $("relation-list").replaceChildren(
    ...edges.map(({ from, predicate, to }) => {
      const item = document.createElement("li");
      item.textContent = `${from.label} — ${predicate} → ${to.label}`;
      return item;
    }),
  );
}

$("back").addEventListener("click", goBack);
begin();
