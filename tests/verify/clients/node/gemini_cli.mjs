// The OAuth flow of the Gemini CLI, from its own packages; its tokens go to a client of the SDK, as in the CLI.
import { MCPOAuthProvider, OAuthUtils } from "@google/gemini-cli-core";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { headers, own, tell } from "./errand.mjs";

let authorization = headers;
if (!own.key) {
  const config = await OAuthUtils.discoverOAuthConfig(own.url);
  if (!config) throw new Error("nothing was discovered");
  const provider = new MCPOAuthProvider();
  const tokens = await provider.authenticate("recollect", { enabled: true, ...config }, own.url);
  authorization = { Authorization: `Bearer ${tokens.accessToken}` };
}
const client = new Client({ name: "matrix", version: "1" });
await client.connect(new StreamableHTTPClientTransport(new URL(own.url), { requestInit: { headers: authorization } }));
const { tools } = await client.listTools();
const answers = [];
for (const [name, args] of own.calls) {
  const { content } = await client.callTool({ name, arguments: args });
  answers.push(content[0].text);
}
tell(tools.map(({ name }) => name), answers);
