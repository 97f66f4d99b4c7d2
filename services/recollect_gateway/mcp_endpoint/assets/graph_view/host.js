// Draws what `explore` found, as an MCP App (revision 2026-01-26): the host hands the tool's result over by postMessage,
// in JSON-RPC 2.0. Names and texts were written by anybody: they become text of the page and never anything else.
"use strict";

const PROTOCOL = "2026-01-26";
const CARRIED = ["graph", "owner_id", "as_of", "depth", "direction", "predicates", "max_nodes"];

const $ = (id) => document.getElementById(id);

const waiting = new Map();
let lastId = 0;
let mayCall = false;

function send(message) {
  window.parent.postMessage({ jsonrpc: "2.0", ...message }, "*");
}

function request(method, params) {
  const id = ++lastId;
  send({ id, method, params });
  return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
}

const told = new Map([
  ["ui/notifications/tool-input", (params) => { explored = params.arguments ?? {}; }],
  ["ui/notifications/tool-result", (result) => show(result)],
  ["ui/notifications/tool-cancelled", () => say("This was cancelled.")],
  ["ui/notifications/host-context-changed", (context) => dress(context)],
  ["ui/resource-teardown", () => ({})],
  ["ping", () => ({})],
]);

window.addEventListener("message", ({ source, data }) => {
  if (source !== window.parent || data?.jsonrpc !== "2.0") return;
  if (data.method === undefined) {
    const asked = waiting.get(data.id);
    waiting.delete(data.id);
    if (data.error) asked?.reject(new Error(data.error.message));
    else asked?.resolve(data.result);
    return;
  }
  const answer = told.get(data.method)?.(data.params ?? {});
  if (data.id === undefined) return;
  if (told.has(data.method)) send({ id: data.id, result: answer ?? {} });
  else send({ id: data.id, error: { code: -32601, message: "Method not found" } });
});

async function begin() {
  const { hostCapabilities, hostContext } = await request("ui/initialize", {
    protocolVersion: PROTOCOL,
    appInfo: { name: "recollect-graph", version: "1" },
    appCapabilities: { availableDisplayModes: ["inline", "fullscreen"] },
  });
  mayCall = Boolean(hostCapabilities?.serverTools);
  dress(hostContext ?? {});
  send({ method: "ui/notifications/initialized", params: {} });
  new ResizeObserver(tellSize).observe(document.documentElement);
}

function tellSize() {
  const { width, height } = document.documentElement.getBoundingClientRect();
  send({ method: "ui/notifications/size-changed", params: { width: Math.ceil(width), height: Math.ceil(height) } });
}

/** Look like the host: light or dark, and in its colours. */
function dress({ theme, styles }) {
  const { style } = document.documentElement;
  if (theme === "light" || theme === "dark") style.colorScheme = theme;
  for (const [name, value] of Object.entries(styles?.variables ?? {})) {
    if (name.startsWith("--") && typeof value === "string") style.setProperty(name, value);
  }
}

let explored = {}; // The arguments of what is shown.
let current = null; // The result that is shown.
const earlier = [];

function say(text) {
  $("status").textContent = text;
}

function textOf(result) {
  return (result?.content ?? []).filter(({ type }) => type === "text").map(({ text }) => text).join("\n");
}

/** Draw a result; one that holds no graph is told as its text. */
function show(result) {
  const drawn = !result.isError && Array.isArray(result.structuredContent?.nodes);
  for (const id of ["graph", "relations", "node"]) $(id).hidden = !drawn;
  $("text").hidden = drawn;
  $("back").hidden = earlier.length === 0;
  if (!drawn) {
    $("text").textContent = textOf(result);
    say(result.isError ? "This could not be explored." : "Nothing to draw.");
    return;
  }
  current = result;
  const graph = graphOf(result.structuredContent);
  const cut = result.structuredContent.cut ? ` There is more: ${result.structuredContent.cut}.` : "";
  say(`${counted(graph.nodes.length, "node")}, ${counted(graph.edges.length, "relation")}.${cut}`);
  $("title").textContent = graph.nodes.length ? `Around ${graph.nodes[0].label}` : "Nothing is here";
  draw(graph);
  list(graph);
}

async function explore(node) {
  if (!mayCall) return say("This host lets nothing be explored from here.");
  const carried = Object.fromEntries(CARRIED.filter((name) => name in explored).map((name) => [name, explored[name]]));
  const asked = { ...carried, start: node.id ?? node.label };
  say(`Exploring ${node.label}…`);
  try {
    const result = await request("tools/call", { name: "explore", arguments: asked });
    if (result.isError) return say(textOf(result));
    earlier.push({ explored, result: current });
    explored = asked;
    show(result);
    $("graph").querySelector(".centre")?.focus();
  } catch (error) {
    say(`The host did not explore it: ${error.message}`);
  }
}

function goBack() {
  const before = earlier.pop();
  explored = before.explored;
  show(before.result);
  $("graph").querySelector(".centre")?.focus();
}
