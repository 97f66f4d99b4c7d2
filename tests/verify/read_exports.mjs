// Reads {dot, mermaid} as JSON from stdin with Graphviz and Mermaid themselves, and writes the labels that each found.
import { Graphviz } from "@hpcc-js/wasm-graphviz";
import { JSDOM } from "jsdom";

const { window } = new JSDOM(""); // what Mermaid sanitises with needs a document
globalThis.window = window;
globalThis.document = window.document;
const { default: mermaid } = await import("mermaid");

const chunks = [];
for await (const chunk of process.stdin) chunks.push(chunk);
const given = JSON.parse(Buffer.concat(chunks).toString());

// Mermaid keeps `#35;` in this form until it draws.
const shown = (text) =>
  (text ?? "").replace(/ﬂ°°(\d+)¶ß/g, (_, code) => String.fromCodePoint(Number(code))).replace(/ﬂ°(\w+)¶ß/g, "&$1;");

await mermaid.parse(given.mermaid); // its own parser: it throws where it does not understand
const { db } = await mermaid.mermaidAPI.getDiagramFromText(given.mermaid);
const drawn = JSON.parse((await Graphviz.load()).layout(given.dot, "json0", "dot"));
process.stdout.write(
  JSON.stringify({
    mermaid: {
      nodes: [...db.getVertices().values()].map((vertex) => shown(vertex.text)),
      edges: db.getEdges().map((edge) => [edge.start, edge.end, shown(edge.text)]),
    },
    dot: {
      nodes: (drawn.objects ?? []).map((node) => node.label),
      edges: (drawn.edges ?? []).map((edge) => [edge.tail, edge.head, edge.label]),
    },
  }),
);
process.exit(0);
