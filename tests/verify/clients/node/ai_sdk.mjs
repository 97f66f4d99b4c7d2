// The MCP client of the AI SDK.
import { auth, createMCPClient } from "@ai-sdk/mcp";
import { headers, own, tell, Wallet } from "./errand.mjs";

const wallet = new Wallet();
if (!own.key) {
  await auth(wallet, { serverUrl: own.url });
  await auth(wallet, { serverUrl: own.url, authorizationCode: wallet.said.get("code"), callbackState: wallet.said.get("state") });
}
const authProvider = own.key ? {} : { authProvider: wallet };
const client = await createMCPClient({ transport: { type: "http", url: own.url, headers, ...authProvider } });
const tools = await client.tools();
const answers = [];
for (const [name, args] of own.calls) {
  const { content } = await tools[name].execute(args, { toolCallId: "1", messages: [] });
  answers.push(content[0].text);
}
await client.close();
tell(Object.keys(tools), answers);
