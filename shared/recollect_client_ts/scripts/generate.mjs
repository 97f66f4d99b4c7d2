// Writes src/generated/ from the snapshots of the repository: the types of the OpenAPI document, and the six tools for
// agents as models are told about them. Also copies the licence, which npm publishes. The snapshots are what the gateway serves: `make test` compares them.
import { copyFile, mkdir, readFile, writeFile } from "node:fs/promises";
import openapiTS, { astToString } from "openapi-typescript";

const SNAPSHOTS = new URL("../../../tests/contract/__snapshots__/test_snapshots/", import.meta.url);
const GENERATED = new URL("../src/generated/", import.meta.url);
const VERBS = ["remember", "recall", "relate", "revise", "forget", "explore"];
const HEADER = "// Made by `npm run generate`; do not edit.\n";

await copyFile(new URL("../../../LICENSE", import.meta.url), new URL("../LICENSE", import.meta.url));
await mkdir(GENERATED, { recursive: true });

const types = await openapiTS(new URL("test_openapi.json", SNAPSHOTS));
await writeFile(new URL("schema.ts", GENERATED), HEADER + astToString(types));

const tools = {};
for (const verb of VERBS) {
  const { description, inputSchema } = JSON.parse(await readFile(new URL(`test_tool[${verb}].json`, SNAPSHOTS)));
  const { graph, ...properties } = inputSchema.properties; // the program chooses the graph, not the model
  tools[verb] = { description, inputSchema: { ...inputSchema, properties } };
}
await writeFile(
  new URL("tools.ts", GENERATED),
  `${HEADER}export const TOOLS = ${JSON.stringify(tools, null, 2)} as const;\n`,
);
