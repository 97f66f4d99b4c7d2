// What the picture of a graph shows, as a file: PNG, SVG or GraphML. Texts become text nodes and attributes, never markup.

const WIDTH = 1600;
const HEIGHT = 1200;
const MARGIN = 100;
const FONT = 13;
const LABELLED = 200; // Nodes that get a label, at most: those with most relations.
const SVG = "http://www.w3.org/2000/svg";
const GRAPHML = "http://graphml.graphdrawing.org/xmlns";
const NO_XML = /[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu; // Characters that no XML may have.

export async function save(format, scene, name) {
  const make = { PNG: asPng, SVG: asSvg, GraphML: asGraphml }[format];
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await make(scene));
  link.download = `${name}.${format.toLowerCase()}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/* Positions on a sheet: all nodes fit, and up is up. */
function onSheet({ nodes, edges, look }) {
  const xs = nodes.map(({ x }) => x);
  const ys = nodes.map(({ y }) => y);
  const [left, bottom] = [Math.min(...xs), Math.min(...ys)];
  const wide = Math.max(...xs) - left || 1;
  const high = Math.max(...ys) - bottom || 1;
  const scale = Math.min((WIDTH - 2 * MARGIN) / wide, (HEIGHT - 2 * MARGIN) / high);
  const labelled = new Set([...nodes].sort((a, b) => b.degree - a.degree).slice(0, LABELLED));
  const placed = new Map(
    nodes.map((node) => {
      const x = WIDTH / 2 + (node.x - left - wide / 2) * scale;
      const y = HEIGHT / 2 - (node.y - bottom - high / 2) * scale;
      return [node.id, { ...node, x, y, isLabelled: labelled.has(node) }];
    }),
  );
  const lines = edges.map(({ source, target, type }) => ({ from: placed.get(source), to: placed.get(target), type }));
  return { nodes: [...placed.values()], lines, look };
}

function asPng(scene) {
  const { nodes, lines, look } = onSheet(scene);
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [WIDTH, HEIGHT];
  const context = canvas.getContext("2d");
  context.fillStyle = look.paper;
  context.fillRect(0, 0, WIDTH, HEIGHT);
  context.strokeStyle = look.line;
  for (const { from, to } of lines) {
    context.beginPath();
    context.moveTo(from.x, from.y);
    context.lineTo(to.x, to.y);
    context.stroke();
  }
  context.font = `${FONT}px sans-serif`;
  for (const { x, y, size, color, label, isLabelled } of nodes) {
    context.fillStyle = color;
    context.beginPath();
    context.arc(x, y, size, 0, 2 * Math.PI);
    context.fill();
    context.fillStyle = look.ink;
    if (isLabelled) context.fillText(label, x + size + 3, y + FONT / 3);
  }
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

function asSvg(scene) {
  const { nodes, lines, look } = onSheet(scene);
  const sheet = document.implementation.createDocument(SVG, "svg");
  const add = adder(sheet, SVG);
  const svg = sheet.documentElement;
  for (const [name, value] of [["viewBox", `0 0 ${WIDTH} ${HEIGHT}`], ["width", WIDTH], ["height", HEIGHT]]) svg.setAttribute(name, value);
  add(svg, "rect", { width: WIDTH, height: HEIGHT, fill: look.paper });
  for (const { from, to, type } of lines) {
    const line = add(svg, "line", { x1: round(from.x), y1: round(from.y), x2: round(to.x), y2: round(to.y), stroke: look.line });
    add(line, "title", {}, type);
  }
  for (const { x, y, size, color, label, name, isLabelled } of nodes) {
    add(add(svg, "circle", { cx: round(x), cy: round(y), r: round(size), fill: color }), "title", {}, name);
    const at = { x: round(x + size + 3), y: round(y + FONT / 3), fill: look.ink, "font-family": "sans-serif", "font-size": FONT };
    if (isLabelled) add(svg, "text", at, label);
  }
  return written(sheet, "image/svg+xml");
}

/* The same keys and ids as the export of a whole graph has, so that it can be imported. */
function asGraphml({ nodes, edges }) {
  const sheet = document.implementation.createDocument(GRAPHML, "graphml");
  const add = adder(sheet, GRAPHML);
  const keys = { node: ["entityType", "text", "kind"], edge: ["relationType"] };
  for (const [of, names] of Object.entries(keys)) {
    for (const name of names) add(sheet.documentElement, "key", { id: `${of}_${name}`, for: of, "attr.name": name, "attr.type": "string" });
  }
  const graph = add(sheet.documentElement, "graph", { edgedefault: "directed" });
  const ids = new Map(nodes.map(({ id, name, fact }) => [id, fact ? `fact:${id}` : name]));
  for (const { id, name, kind, fact } of nodes) {
    const node = add(graph, "node", { id: ids.get(id) });
    if (fact) add(node, "data", { key: "node_text" }, name);
    if (kind) add(node, "data", { key: fact ? "node_kind" : "node_entityType" }, kind);
  }
  for (const { id, source, target, type } of edges) {
    const edge = add(graph, "edge", { id, source: ids.get(source), target: ids.get(target) });
    add(edge, "data", { key: "edge_relationType" }, type);
  }
  return written(sheet, "application/graphml+xml");
}

const round = (number) => Math.round(number * 10) / 10;
const clean = (text) => String(text).replace(NO_XML, "\uFFFD");
function adder(sheet, namespace) {
  return (parent, tag, attributes, text) => {
    const element = sheet.createElementNS(namespace, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, clean(value));
    if (text !== undefined) element.append(clean(text));
    parent.append(element);
    return element;
  };
}
const written = (sheet, type) =>
  new Blob(['<?xml version="1.0" encoding="UTF-8"?>\n', new XMLSerializer().serializeToString(sheet)], { type });
