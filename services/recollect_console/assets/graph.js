// The picture of a graph: sigma draws it, graphology holds it, and ForceAtlas2 lays it out in slices between frames.
// What is shown can be dragged, expanded node by node, filtered by relation, walked by keys, and saved as a file.
/* global graphology, graphologyLibrary, Sigma, htmx */

const MAX_NODES = 2000;
const ADDED = 200; // Nodes that one expansion adds, at most.
const LISTED = 100; // Nodes of the list beside the picture, at most; relation types, too.
const TOLD = 8; // Relations that are told of the chosen node, at most.
const ROWS = 50; // Rows of a page of the table.
const ALL_LABELLED = 60; // Nodes of a picture in which each has its label, at most; in others, those of this size in pixels.
const LABELLED_SIZE = 5;
const MANY = 500; // Nodes of a picture whose relations are thin lines, which are left out while it moves.
const ITERATIONS = 120;
const SLICE_MS = 10;
const LABEL = 60; // Characters of a label in the picture, at most.
const PALETTES = {
  light: ["#2f55d4", "#0f766e", "#b45309", "#9333ea", "#be185d", "#4d7c0f", "#0369a1", "#7c5a3a"],
  dark: ["#8eacff", "#5eead4", "#fbbf24", "#c9a2ff", "#f9a8d4", "#bef264", "#7dd3fc", "#d6b894"],
};
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

const section = document.getElementById("graph");
const files = document.querySelector("script[data-files]")?.dataset.files;
const by = (id) => document.getElementById(id);
const calm = window.matchMedia("(prefers-reduced-motion: reduce)");
const dark = window.matchMedia("(prefers-color-scheme: dark)");

const graph = new graphology.MultiDirectedGraph();
const kinds = new Map(); // Kind → its place in the palette.
const hiddenTypes = new Set();
let shown = new Set(); // Nodes that no filter hides.
let look = {};
let renderer = null;
let root = section?.dataset.start;
let chosen = null;
let isLayingOut = false;
let page = 0;

/* Elements, made without markup: every text stays text. */
function make(tag, { text, isolated, ...attributes } = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.append(text);
  if (isolated !== undefined) element.append(make("bdi", { text: isolated }));
  element.append(...children);
  return element;
}
function button(text, act) {
  const made = make("button", { type: "button", class: "button small", text });
  made.addEventListener("click", act);
  return made;
}
const say = (text) => (by("graph-said").textContent = text);
const counted = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
const short = (text) => (text.length > LABEL ? `${text.slice(0, LABEL)}…` : text);

/* What is shown. */
async function fetchAround(node, depth, size) {
  const address = new URL(section.dataset.source, location.href);
  for (const [name, value] of Object.entries({ node, depth, size })) address.searchParams.set(name, value);
  const answer = await fetch(address, { headers: { Accept: "application/json" } });
  if (!answer.ok) throw new Error(`The answer was ${answer.status}`);
  return answer.json();
}
function merge(found, around) {
  const added = [];
  for (const node of found.nodes) {
    if (graph.hasNode(node.id) || graph.order >= MAX_NODES) continue;
    if (!kinds.has(node.kind)) kinds.set(node.kind, kinds.size);
    const { id, ...rest } = node;
    graph.addNode(id, { ...rest, ...placed(added.length, around), label: short(node.label), name: node.label, size: 4, fixed: false });
    added.push(id);
  }
  for (const { id, source, target, type, at } of found.edges) {
    if (graph.hasEdge(id) || !graph.hasNode(source) || !graph.hasNode(target)) continue;
    graph.addDirectedEdgeWithKey(id, source, target, { relation: type, at });
  }
  graph.forEachNode((node) => graph.setNodeAttribute(node, "size", 3 + Math.min(9, Math.sqrt(graph.degree(node)))));
  return added;
}
function placed(index, around) {
  // A spiral in the order of nearness: the same neighbourhood always looks the same.
  const angle = index * 2.399963;
  const distance = around ? 2 + Math.sqrt(index) : 10 * Math.sqrt(index);
  return { x: (around?.x ?? 0) + distance * Math.cos(angle), y: (around?.y ?? 0) + distance * Math.sin(angle) };
}
function filter() {
  shown = new Set(
    graph.filterNodes(
      (node) =>
        node === root ||
        hiddenTypes.size === 0 ||
        graph.degree(node) === 0 ||
        graph.someEdge(node, (edge, { relation }) => !hiddenTypes.has(relation)),
    ),
  );
}
const isLarge = () => graph.order > MANY;
const isShown = (edge) => !hiddenTypes.has(graph.getEdgeAttribute(edge, "relation"));

/* Layout: nodes that are there already stay where they are. */
async function layOut(added) {
  if (added.length < 2 && graph.order > added.length) return;
  isLayingOut = true;
  section.setAttribute("aria-busy", "true");
  const news = new Set(added);
  const work = calm.matches ? graph.copy() : graph;
  const held = graph.filterNodes((node, { fixed }) => fixed); // Those that somebody has dragged.
  work.forEachNode((node) => news.has(node) || work.setNodeAttribute(node, "fixed", true));
  const settings = { ...graphologyLibrary.layoutForceAtlas2.inferSettings(work), barnesHutOptimize: work.order > 200 };
  for (let done = 0; done < ITERATIONS; ) {
    const end = performance.now() + SLICE_MS;
    do graphologyLibrary.layoutForceAtlas2.assign(work, { iterations: 1, settings });
    while (++done < ITERATIONS && performance.now() < end);
    await new Promise((resolve) => setTimeout(resolve));
  }
  if (work !== graph) for (const node of added) graph.mergeNodeAttributes(node, place(work, node));
  graph.forEachNode((node) => graph.setNodeAttribute(node, "fixed", false));
  for (const node of held) graph.setNodeAttribute(node, "fixed", true);
  isLayingOut = false;
  section.removeAttribute("aria-busy");
}
const place = (of, node) => ({ x: of.getNodeAttribute(node, "x"), y: of.getNodeAttribute(node, "y") });

/* Colours, which are those of the page. */
function readLook() {
  const style = getComputedStyle(document.documentElement);
  const value = (name) => style.getPropertyValue(`--${name}`).trim();
  const palette = PALETTES[dark.matches ? "dark" : "light"];
  look = { paper: value("paper"), ink: value("ink"), line: value("control"), accent: value("accent"), palette };
}
const colourOf = (kind) => look.palette[kinds.get(kind) % look.palette.length];
function drawnNode(node, data) {
  const drawn = { ...data, color: colourOf(data.kind), hidden: !shown.has(node) };
  if (node === chosen) Object.assign(drawn, { highlighted: true, forceLabel: true, zIndex: 1 });
  if (node === root) drawn.forceLabel = true;
  return drawn;
}
function drawnEdge(edge, data) {
  const touches = chosen !== null && graph.hasExtremity(edge, chosen);
  const type = isLarge() && !touches ? "line" : "arrow";
  return { ...data, type, hidden: !isShown(edge), color: touches ? look.accent : look.line, size: touches ? 2.5 : 1.5, zIndex: touches ? 1 : 0 };
}
function drawHover(context, data, settings) {
  context.font = `600 ${settings.labelSize}px ${settings.labelFont}`;
  const width = context.measureText(data.label).width;
  context.fillStyle = look.paper;
  context.strokeStyle = look.accent;
  context.lineWidth = 2;
  context.beginPath();
  context.roundRect(data.x + data.size + 2, data.y - settings.labelSize, width + 10, settings.labelSize * 2, 4);
  context.fill();
  context.stroke();
  context.beginPath();
  context.arc(data.x, data.y, data.size + 3, 0, 2 * Math.PI);
  context.stroke();
  context.fillStyle = look.ink;
  context.fillText(data.label, data.x + data.size + 7, data.y + settings.labelSize / 3);
}
function recolour() {
  readLook();
  renderer?.setSetting("labelColor", { color: look.ink });
  renderer?.refresh();
  tellTypes();
  tellNodes();
}

/* The relations, as toggles. */
function tellTypes() {
  const counts = new Map();
  graph.forEachEdge((edge, { relation }) => counts.set(relation, (counts.get(relation) ?? 0) + 1));
  const types = [...counts].sort(([a, n], [b, m]) => m - n || a.localeCompare(b)).slice(0, LISTED);
  by("graph-types").replaceChildren(
    ...types.map(([type, count]) => {
      const box = make("input", { type: "checkbox" });
      box.checked = !hiddenTypes.has(type);
      box.addEventListener("change", () => toggle(type, box.checked));
      return make("label", { class: "choice" }, box, make("span", { class: "free-text", isolated: type }), make("span", { class: "soft small", text: count.toLocaleString("en") }));
    }),
  );
}
function toggle(type, on) {
  if (on) hiddenTypes.delete(type);
  else hiddenTypes.add(type);
  update();
  if (!shown.has(chosen)) choose(root, { centre: true });
  say(`${type}: ${on ? "shown" : "hidden"}. ${summary()}`);
}

/* The nodes, as a list. */
function tellNodes() {
  const sought = by("graph-find").value.trim().toLowerCase();
  const found = [...shown].filter((node) => graph.getNodeAttribute(node, "name").toLowerCase().includes(sought));
  const items = found.slice(0, LISTED).map((node) => {
    const { label, kind } = graph.getNodeAttributes(node);
    const swatch = make("span", { class: "graph-swatch", "aria-hidden": "true" });
    swatch.style.background = colourOf(kind);
    const opener = make("button", { type: "button", class: "button plain small", "data-node": node }, swatch, make("span", { class: "graph-name", isolated: label }), make("span", { class: "soft", isolated: kind }));
    if (node === chosen) opener.setAttribute("aria-current", "true");
    return make("li", {}, opener);
  });
  if (found.length > LISTED) items.push(make("li", { class: "small soft", text: `and ${counted(found.length - LISTED, "more node")}` }));
  if (!found.length) items.push(make("li", { class: "small soft", text: "None in the picture. Enter it at “Start at” to look in the whole graph." }));
  by("graph-nodes").replaceChildren(...items);
}

/* The node that is chosen. */
function choose(node, { centre = false } = {}) {
  chosen = node;
  const { name, kind, href } = graph.getNodeAttributes(node);
  const around = new URL(location.href);
  around.searchParams.delete("cursor");
  around.searchParams.set("node", node);
  const actions = make("div", { class: "row" }, button("Expand", () => expand(node)));
  if (href) actions.append(details(href));
  actions.append(make("a", { class: "button small", href: around.href, text: "Start here" }));
  by("graph-chosen").replaceChildren(
    make("h2", { class: "free-text", isolated: name }),
    make("p", { class: "small soft" }, make("bdi", { text: kind }), `${kind && " · "}${counted(graph.degree(node), "relation")} in the picture`),
    relationsOf(node),
    actions,
    by("graph-help") ?? "",
  );
  say(`${name}, ${kind && `${kind}, `}${counted(graph.degree(node), "relation")}`);
  for (const other of by("graph-nodes").querySelectorAll("[aria-current]")) other.removeAttribute("aria-current");
  by("graph-nodes").querySelector(`[data-node="${node}"]`)?.setAttribute("aria-current", "true");
  renderer.refresh({ skipIndexation: true });
  if (centre || !isInSight(node)) moveTo(node);
}
function details(href) {
  const link = make("a", { class: "button small", href, text: "Details", "hx-get": href, "hx-target": "#panel", "hx-swap": "innerHTML" });
  queueMicrotask(() => window.htmx?.process(link));
  return link;
}
function relationsOf(node) {
  const items = graph.filterEdges(node, isShown).slice(0, TOLD).map((edge) => {
    const [source, target] = graph.extremities(edge);
    const [arrow, other] = source === node ? ["→", target] : ["←", source];
    return make("li", {}, make("bdi", { text: graph.getEdgeAttribute(edge, "relation") }), ` ${arrow} `, make("bdi", { text: graph.getNodeAttribute(other, "label") }));
  });
  return make("ul", { class: "small graph-list" }, ...items);
}
async function expand(node) {
  if (isLayingOut) return;
  const room = MAX_NODES - graph.order;
  if (room <= 0) return say(`The picture has ${counted(MAX_NODES, "node")}, which is all that fits. Start at another node.`);
  try {
    const size = Math.min(MAX_NODES, graph.degree(node) + 1 + Math.min(room, ADDED));
    const added = merge(await fetchAround(node, 1, size), graph.getNodeAttributes(node));
    update();
    await layOut(added);
    update();
    choose(node);
    section.dataset.expanded = node;
    say(`${counted(added.length, "node")} added. ${summary()}`);
  } catch {
    say("That did not work. Try again in a moment.");
  }
}

/* The camera. */
function move(state) {
  const camera = renderer.getCamera();
  if (calm.matches) camera.setState(state);
  else camera.animate(state, { duration: 150 });
}
function moveTo(node) {
  const { x, y } = renderer.getNodeDisplayData(node);
  move({ x, y });
}
function isInSight(node) {
  const { x, y } = renderer.graphToViewport(place(graph, node));
  const { width, height } = renderer.getDimensions();
  return x > 0 && y > 0 && x < width && y < height;
}
const zooms = {
  in: () => move({ ratio: renderer.getCamera().ratio / 1.5 }),
  out: () => move({ ratio: renderer.getCamera().ratio * 1.5 }),
  all: () => move({ x: 0.5, y: 0.5, ratio: 1, angle: 0 }),
};

/* Keys: arrows lead to the neighbour that lies most nearly in their direction. */
function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const act = { Enter: () => expand(chosen), "+": zooms.in, "=": zooms.in, "-": zooms.out, 0: zooms.all, Home: () => choose(root) };
  if (ARROWS[event.key]) step(ARROWS[event.key]);
  else if (act[event.key]) act[event.key]();
  else return;
  event.preventDefault();
}
function step([right, up]) {
  const from = place(graph, chosen);
  const near = graph
    .filterEdges(chosen, isShown)
    .map((edge) => graph.opposite(chosen, edge))
    .filter((node) => node !== chosen)
    .map((node) => [node, place(graph, node)])
    .map(([node, { x, y }]) => [node, (right * (x - from.x) + up * (y - from.y)) / (Math.hypot(x - from.x, y - from.y) || 1)])
    .filter(([, cosine]) => cosine > 0.1)
    .sort(([, a], [, b]) => b - a);
  if (near.length) choose(near[0][0]);
  else say("No neighbour lies there.");
}

/* The pointer: a node is dragged, and stays where it is left. */
function onPointer() {
  let dragged = null;
  renderer.on("clickNode", ({ node }) => choose(node));
  renderer.on("doubleClickNode", (event) => {
    event.preventSigmaDefault();
    expand(event.node);
  });
  renderer.on("downNode", ({ node }) => {
    dragged = node;
    keepFrame();
  });
  renderer.on("moveBody", ({ event }) => {
    if (!dragged) return;
    graph.mergeNodeAttributes(dragged, { ...renderer.viewportToGraph(event), fixed: true });
    event.preventSigmaDefault();
    event.original.preventDefault();
    event.original.stopPropagation();
  });
  for (const name of ["upNode", "upStage"]) renderer.on(name, () => (dragged = null));
}
const keepFrame = () => renderer.getCustomBBox() ?? renderer.setCustomBBox(renderer.getBBox());

/* The table has what the picture has. */
function tellTable() {
  const listed = [...graph.filterEdges(isShown), ...graph.filterNodes((node) => graph.degree(node) === 0)];
  const last = Math.max(0, Math.ceil(listed.length / ROWS) - 1);
  page = Math.min(page, last);
  const rows = listed.slice(page * ROWS, (page + 1) * ROWS).map((edge) => {
    if (graph.hasNode(edge)) return make("tr", {}, cell(edge), make("td"), make("td"), make("td"));
    const { relation, at } = graph.getEdgeAttributes(edge);
    const [source, target] = graph.extremities(edge);
    const time = make("time", { datetime: at, "data-local": "time", text: at });
    return make("tr", {}, cell(source), make("td", { isolated: relation }), cell(target), make("td", { class: "fixed" }, time));
  });
  const table = by("graph-table");
  table.querySelector("tbody").replaceChildren(...rows);
  const turn = (by) => () => {
    page += by;
    tellTable();
  };
  const paging = make("nav", { class: "paging", "aria-label": "Pages of the list" }, make("span", { text: `Page ${page + 1} of ${last + 1}` }));
  if (page > 0) paging.append(button("Page before", turn(-1)));
  if (page < last) paging.append(button("Next page", turn(1)));
  table.querySelector(".paging")?.remove();
  if (last > 0) table.append(paging);
}
function cell(node) {
  const { name, href, kind } = graph.getNodeAttributes(node);
  const label = href ? make("a", { href, "data-row": "", isolated: short(name) }) : make("bdi", { text: short(name) });
  return make("td", { class: "free-text" }, label, " ", make("span", { class: "small soft", isolated: kind }));
}

/* Files. */
function scene() {
  const nodes = [...shown].map((id) => ({ id, ...graph.getNodeAttributes(id), degree: graph.degree(id), color: colourOf(graph.getNodeAttribute(id, "kind")) }));
  const edges = graph.filterEdges((edge) => isShown(edge)).map((edge) => {
    const [source, target] = graph.extremities(edge);
    return { id: edge, source, target, type: graph.getEdgeAttribute(edge, "relation") };
  });
  return { nodes, edges: edges.filter(({ source, target }) => shown.has(source) && shown.has(target)), look };
}
async function save(format) {
  const { save: write } = await import(files);
  await write(format, scene(), section.dataset.graph);
  say(`Saved as ${format}.`);
}

function summary() {
  return `${counted(shown.size, "node")}, ${counted(graph.filterEdges(isShown).length, "relation")}`;
}
function update() {
  filter();
  tellTypes();
  tellNodes();
  tellTable();
  by("graph-count").textContent = summary();
  renderer?.setSetting("labelRenderedSizeThreshold", graph.order > ALL_LABELLED ? LABELLED_SIZE : 0);
  renderer?.setSetting("hideEdgesOnMove", isLarge());
  renderer?.refresh();
}

function draw() {
  const { NodePointProgram, EdgeArrowProgram, EdgeLineProgram } = Sigma.rendering;
  renderer = new Sigma(graph, by("graph-canvas"), {
    allowInvalidContainer: true,
    nodeProgramClasses: { circle: NodePointProgram },
    edgeProgramClasses: { arrow: EdgeArrowProgram, line: EdgeLineProgram },
    defaultEdgeType: "arrow",
    hideEdgesOnMove: isLarge(),
    labelColor: { color: look.ink },
    labelFont: getComputedStyle(document.body).fontFamily,
    labelSize: 12,
    labelRenderedSizeThreshold: graph.order > ALL_LABELLED ? LABELLED_SIZE : 0,
    labelDensity: 0.6,
    minCameraRatio: 0.02,
    maxCameraRatio: 5,
    zIndex: true,
    nodeReducer: drawnNode,
    edgeReducer: drawnEdge,
    defaultDrawNodeHover: drawHover,
  });
  section.picture = renderer;
  onPointer();
  new ResizeObserver(() => renderer.resize()).observe(by("graph-canvas"));
}
function listen() {
  by("graph-canvas").addEventListener("keydown", onKey);
  by("graph-find").addEventListener("input", tellNodes);
  by("graph-nodes").addEventListener("click", (event) => {
    const node = event.target.closest("[data-node]")?.dataset.node;
    if (node) choose(node, { centre: true });
  });
  section.addEventListener("click", (event) => {
    const { zoom, export: format } = event.target.closest("[data-zoom], [data-export]")?.dataset ?? {};
    if (zoom) zooms[zoom]();
    if (format) save(format);
  });
  document.addEventListener(
    "click",
    (event) => {
      if (!event.target.closest("#panel [data-back]")) return;
      event.stopPropagation(); // The panel alone closes: the picture stays as it was expanded.
      by("panel").replaceChildren();
      by("graph-canvas").focus();
    },
    true,
  );
  dark.addEventListener("change", recolour);
}

async function begin() {
  section.hidden = false;
  readLook();
  merge(await fetchAround(root, section.dataset.depth, section.dataset.size));
  update();
  if (calm.matches) await layOut(graph.nodes());
  draw();
  listen();
  choose(root);
  if (!calm.matches) await layOut(graph.nodes());
  keepFrame();
  section.dataset.ready = "";
}
if (section) {
  begin().catch(() => {
    section.hidden = false;
    section.replaceChildren(make("p", { class: "note", text: "The picture cannot be drawn here: this browser has no WebGL, or the server could not be reached. The table has the same." }));
  });
}
