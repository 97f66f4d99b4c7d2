// @modelcontextprotocol/sdk: signs in before its first request, as the Inspector does, or after a 401.
import { auth } from "@modelcontextprotocol/sdk/client/auth.js";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { headers, own, tell, Wallet } from "./errand.mjs";

const url = new URL(own.url);
const wallet = new Wallet();
const transport = () =>
  new StreamableHTTPClientTransport(url, own.key ? { requestInit: { headers } } : { authProvider: wallet });
const client = new Client({ name: "matrix", version: "1" });

if (own.key) await client.connect(transport());
else if (process.env.SIGN_IN === "first") {
  await auth(wallet, { serverUrl: url });
  await auth(wallet, { serverUrl: url, authorizationCode: wallet.said.get("code") });
  await client.connect(transport());
} else {
  const refused = transport();
  await client.connect(refused).catch(() => refused.finishAuth(wallet.said.get("code")));
  await client.connect(transport());
}

const { tools } = await client.listTools();
const answers = [];
for (const [name, args] of own.calls) {
  const { content } = await client.callTool({ name, arguments: args });
  answers.push(content[0].text);
}
tell(tools.map(({ name }) => name), answers);
