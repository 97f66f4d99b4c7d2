// mcp-remote: a program between a client of stdio and the server. It names the address to open, and listens for the
// person's return. It starts a browser, too, by ways that differ between machines: it gets one that does nothing.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { headers, own, tell, visit } from "./errand.mjs";

const proxy = join(dirname(createRequire(import.meta.url).resolve("mcp-remote/package.json")), "dist", "proxy.js");
const named = Object.entries(headers).flatMap(([name, value]) => ["--header", `${name}: ${value}`]);
const transport = new StdioClientTransport({
  command: process.execPath,
  args: [proxy, own.url, "--allow-http", ...named],
  env: { ...process.env, BROWSER: "true", DISPLAY: "" },
  stderr: "pipe",
});
let said = "";
let asked = false;
transport.stderr.on("data", async (part) => {
  process.stderr.write(part);
  said += part;
  const address = said.match(/(http\S+\/oauth\/authorize\?\S+)\s/);
  if (address && !asked) {
    asked = true;
    await visit(address[1]);
  }
});
const client = new Client({ name: "matrix", version: "1" });
await client.connect(transport);
const { tools } = await client.listTools();
const answers = [];
for (const [name, args] of own.calls) {
  const { content } = await client.callTool({ name, arguments: args });
  answers.push(content[0].text);
}
await client.close();
tell(tools.map(({ name }) => name), answers);
