// Remember and recall with the types that openapi-typescript makes, and see what an error looks like.
import createClient from "openapi-fetch";
import type { paths } from "./recollect";

declare const process: { env: Record<string, string | undefined> };
const client = createClient<paths>({
  baseUrl: process.env.RECOLLECT_URL ?? "",
  headers: { Authorization: `Bearer ${process.env.RECOLLECT_API_KEY}` },
});
const params = { path: { name: "default" } };
await client.POST("/v1/graphs/{name}/memories", {
  params,
  body: { items: [{ text: "Ada drinks tea", about: ["Ada"] }] },
});
const found = await client.POST("/v1/graphs/{name}/recall", { params, body: { query: "What does Ada drink?" } });
console.log(found.data?.memories[0]?.text);
const refused = await client.POST("/v1/graphs/{name}/revise", {
  params,
  body: { id: "01a2068b-60f8-77bf-9341-0c9ad5bf2adb", text: "Ada drinks coffee" },
});
console.log(refused.error?.code);
