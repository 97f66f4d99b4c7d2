import assert from "node:assert/strict";
import { test } from "node:test";
import { newClient } from "./gateway.ts";
import { VersionConflictError } from "recollect-client";

test("graphs are made, listed, changed and deleted", async () => {
  const { graphs, name } = newClient();
  await graphs.create({ name, metadata: { team: "engines" } });
  const { etag } = await graphs.get(name);
  const changed = await graphs.update(name, { metadata: { team: "notes" } }, { ifMatch: etag });
  assert.deepEqual(changed.metadata, { team: "notes" });
  await assert.rejects(graphs.update(name, { metadata: {} }, { ifMatch: etag }), VersionConflictError);
  assert.ok((await Array.fromAsync(graphs.list())).some((graph) => graph.name === name));
  await graphs.delete(name);
  assert.ok(!(await Array.fromAsync(graphs.list())).some((graph) => graph.name === name));
});

test("a pair is dismissed, and that is taken back", async () => {
  const memory = newClient();
  const { memories } = await memory.remember([
    { text: "Ada writes programs.", about: ["Ada Lovelace"] },
    { text: "Ada is her cousin.", about: ["Ada Lovelac"] },
  ]);
  const [one = "", other = ""] = memories.map(({ node }) => node);
  await memory.dismissPair(one, other);
  const pairs = await Array.fromAsync(memory.dismissals());
  assert.deepEqual(
    pairs.map((pair) => new Set([pair.node_id, pair.other_id])),
    [new Set([one, other])],
  );
  assert.deepEqual(new Set([pairs[0]?.name, pairs[0]?.other]), new Set(["Ada Lovelace", "Ada Lovelac"]));
  await memory.takeBackDismissal(other, one);
  assert.deepEqual(await Array.fromAsync(memory.dismissals()), []);
});

test("a graph is read as it was", async () => {
  const memory = newClient();
  await memory.remember("The first.");
  const between = new Date();
  await memory.remember("The second.");
  const { revision } = await memory.graphs.get(memory.name);
  assert.equal((await memory.graphs.get(memory.name, { as_of: between })).revision, revision - 1);
  assert.equal((await memory.recall({ query: "second", as_of: between })).memories.length, 0);
});

test("the tenant is read and changed", async () => {
  const { tenant } = newClient();
  const { etag, slug } = await tenant.get();
  const changed = await tenant.update({ settings: { time_zone: "Europe/Berlin" } }, { ifMatch: etag });
  assert.equal(changed.slug, slug);
  assert.equal(changed.settings.time_zone, "Europe/Berlin");
  await tenant.update({ settings: { time_zone: null } });
});

test("pages follow each other to the end, each item once", async () => {
  const memory = newClient();
  await memory.remember(
    Array.from({ length: 7 }, (_, number) => ({ text: `Fact ${number}.`, name: `Name ${number}` })),
  );
  const nodes = memory.list("/v1/graphs/{name}/nodes", {
    path: { name: memory.name },
    query: { limit: 3, prefix: "Name" },
  });
  const sizes = [];
  for await (const { items } of nodes.pages()) sizes.push(items.length);
  const names = (await Array.fromAsync(nodes)).map(({ name }) => name);
  // @ts-expect-error: the path needs a name
  memory.list("/v1/graphs/{name}/nodes");
  assert.deepEqual(sizes, [3, 3, 1]);
  assert.equal(new Set(names).size, 7);
});

test("memories that pass a filter come in pages, too", async () => {
  const memory = newClient();
  await memory.remember(
    Array.from({ length: 5 }, (_, number) => ({ text: `Ada wrote note ${number}.`, about: ["Ada"] })),
  );
  const listed = memory.memories({ about: ["Ada"], limit: 2 });
  const sizes = [];
  for await (const { items } of listed.pages()) sizes.push(items.length);
  assert.deepEqual(sizes, [2, 2, 1]);
  assert.equal(new Set((await Array.fromAsync(listed)).map(({ id }) => id)).size, 5);
});

test("any address of the gateway will do", async () => {
  const memory = newClient({ url: `${process.env.RECOLLECT_URL}/mcp/x/memory` });
  assert.deepEqual((await memory.recall("anything")).memories, []);
});

test("every other route is called by its path", async () => {
  const { api } = newClient();
  const { data } = await api.POST("/v1/keys", { body: { name: "reader", scopes: ["memory:read"] } });
  const reader = newClient({ apiKey: data?.secret ?? "" });
  assert.deepEqual((await reader.recall("anything")).memories, []);
});
