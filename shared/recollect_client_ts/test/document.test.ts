import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { isStreamed, takesKey } from "../dist/routes.js";

const SNAPSHOT = new URL("../../../tests/contract/__snapshots__/test_snapshots/test_openapi.json", import.meta.url);

type Operation = {
  parameters: { in: string; name: string }[];
  responses: Record<string, { content?: Record<string, unknown> }>;
};

test("the client knows of each route whether it takes an idempotency key, and whether its answer may be long", async () => {
  const { paths } = JSON.parse(await readFile(SNAPSHOT, "utf8")) as {
    paths: Record<string, Record<string, Operation>>;
  };
  for (const [path, operations] of Object.entries(paths)) {
    for (const [method, { parameters, responses }] of Object.entries(operations)) {
      const declared = parameters?.some(({ name }) => name === "Idempotency-Key") ?? false;
      assert.equal(takesKey(method.toUpperCase(), path), declared, `${method} ${path}`);
      const types = Object.keys(responses["200"]?.content ?? {});
      const isLong = types.some((type) => type !== "application/json");
      assert.ok(!isLong || isStreamed(path), `${method} ${path}: ${types.join(", ")}`);
    }
  }
});
