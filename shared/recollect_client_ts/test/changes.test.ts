import assert from "node:assert/strict";
import { test } from "node:test";
import { ChangesLostError, NotFoundError, TimeoutError, UnauthenticatedError, type Change } from "recollect-client";
import { eventsOf } from "../dist/server-sent.js";
import { Between, newClient } from "./gateway.ts";

async function take(changes: AsyncIterator<Change>, count: number): Promise<Change[]> {
  const taken: Change[] = [];
  while (taken.length < count) {
    const { value, done } = await changes.next();
    assert.ok(!done);
    taken.push(value);
  }
  return taken;
}

/** The first changes of a stream, which is closed then: an open one keeps the process alive. */
async function first(changes: AsyncGenerator<Change>, count: number): Promise<Change[]> {
  const taken = await take(changes, count);
  await changes.return(undefined);
  return taken;
}

test("changes come as they are made, and after a place", async () => {
  const memory = newClient();
  await memory.remember("The first.");
  const changes = memory.changes({ after: 0 });
  const [one] = await take(changes, 1);
  await memory.remember("The second.");
  const [two] = await take(changes, 1);
  await changes.return();
  assert.deepEqual([one?.revision, two?.revision], [1, 2]);
  assert.equal(one?.operation, "remember");
  assert.deepEqual(await first(memory.changes({ after: one?.id ?? "" }), 1), [two]);
});

test("a stream that was cut goes on where it was", async () => {
  const between = await Between.open();
  const memory = newClient();
  const followed = newClient({ url: between.url, graph: memory.name });
  await memory.remember("Fact 0.");
  const changes = followed.changes({ after: 0 });
  const revisions: number[] = [];
  for (const number of [1, 2, 3, 4]) {
    revisions.push(...(await take(changes, 1)).map(({ revision }) => revision));
    between.cut();
    await memory.remember(`Fact ${number}.`);
  }
  revisions.push(...(await take(changes, 1)).map(({ revision }) => revision));
  await changes.return();
  assert.deepEqual(revisions, [1, 2, 3, 4, 5]);
  assert.ok(
    between.passed.slice(1).some(({ lastEvent }) => lastEvent?.includes("-")),
    "by the id of the last change",
  );
});

test("a gateway that stops sends its clients to another, at the same place", async () => {
  const between = await Between.open();
  const memory = newClient();
  await memory.remember("The first.");
  const [one] = await first(memory.changes({ after: 0 }), 1);
  const body = `id: ${one?.id}\n\nevent: end\ndata: {"reason":"draining"}\n\n`;
  between.fates = [{ status: 200, headers: { "Content-Type": "text/event-stream" }, body }, { status: 503 }];
  const changes = newClient({ url: between.url, graph: memory.name }).changes();
  const next = take(changes, 1);
  await memory.remember("The second.");
  assert.deepEqual(
    (await next).map(({ revision }) => revision),
    [2],
  );
  await changes.return(undefined);
  assert.deepEqual(new Set(between.passed.map(({ lastEvent }) => lastEvent)), new Set([undefined, one?.id]));
});

test("a stream that says nothing at all is given up", async () => {
  const silent = new ReadableStream<Uint8Array>();
  await assert.rejects(eventsOf(silent, 20).next(), TimeoutError);
});

test("events come whole, however they are cut", async () => {
  const text = 'retry: 1000\n\n: a comment\n\nid: ä-1\n\nid: ä-2\r\nevent: change\r\ndata: {"a":\r\ndata: "ß"}\r\n\r\n';
  const stream = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const byte of new TextEncoder().encode(text)) controller.enqueue(Uint8Array.of(byte));
      controller.close();
    },
  });
  const events = await Array.fromAsync(eventsOf(stream, 10_000));
  assert.deepEqual(events, [
    { id: "ä-1", event: undefined, data: "" },
    { id: "ä-2", event: "change", data: '{"a":\n"ß"}' },
  ]);
});

test("only some changes", async () => {
  const memory = newClient();
  await memory.remember([{ text: "Water boils.", tags: ["physics"] }]);
  await memory.remember([{ text: "Bach wrote fugues.", tags: ["music"] }]);
  const changes = memory.changes({ after: 0, tags: ["music"] });
  assert.deepEqual(
    (await take(changes, 1)).map(({ revision }) => revision),
    [2],
  );
  await changes.return();
});

test("a graph that was replaced has lost its changes", async () => {
  const memory = newClient();
  await memory.remember("The first.");
  const [seen] = await first(memory.changes({ after: 0 }), 1);
  await memory.graphs.delete(memory.name);
  await memory.remember("Another graph of this name.");
  await assert.rejects(memory.changes({ after: seen?.id ?? "" }).next(), (error: unknown) => {
    assert.ok(error instanceof ChangesLostError);
    assert.equal(error.revision, 1);
    return true;
  });
});

test("what cannot go on ends with its error", async () => {
  const memory = newClient();
  await assert.rejects(memory.changes().next(), NotFoundError);
  await memory.remember("The first.");
  const { data } = await memory.api.POST("/v1/keys", { body: { name: "short", scopes: ["memory:read"] } });
  const reader = newClient({ apiKey: data?.secret ?? "", graph: memory.name });
  const changes = reader.changes({ after: 0 });
  await take(changes, 1);
  await memory.api.DELETE("/v1/keys/{key_id}", { params: { path: { key_id: data?.id ?? "" } } });
  await memory.remember("The second.");
  await assert.rejects(changes.next(), UnauthenticatedError);
});

test("a signal ends them", async () => {
  const memory = newClient();
  await memory.remember("The first.");
  const stopped = new AbortController();
  const changes = memory.changes({ after: 0, signal: stopped.signal });
  await take(changes, 1);
  const next = changes.next();
  stopped.abort();
  await assert.rejects(next, { name: "AbortError" });
});
