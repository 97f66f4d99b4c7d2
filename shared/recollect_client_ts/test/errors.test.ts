import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import { inspect } from "node:util";
import { test } from "node:test";
import {
  ApiError,
  ConfigurationError,
  ConflictError,
  ConnectionError,
  ForbiddenError,
  InvalidInputError,
  NotFoundError,
  RecollectError,
  Recollect,
  ServerError,
  TooManyRequestsError,
  UnauthenticatedError,
} from "recollect-client";
import { Between, newClient } from "./gateway.ts";

test("an error says what, where and why, by its class and its code", async () => {
  const memory = newClient();
  await assert.rejects(memory.remember({ text: "" }), (error: unknown) => {
    assert.ok(error instanceof InvalidInputError && error instanceof ApiError && error instanceof RecollectError);
    assert.equal(error.name, "InvalidInputError");
    assert.equal(error.code, "invalid_input");
    assert.equal(error.status, 400);
    assert.equal(error.path, "items.0.text");
    assert.match(error.message, /invalid_input, at items\.0\.text/);
    return true;
  });
});

test("errors are told apart", async () => {
  const memory = newClient();
  const { data } = await memory.api.POST("/v1/keys", { body: { name: "reader", scopes: ["memory:read"] } });
  const reader = newClient({ apiKey: data?.secret ?? "" });
  await memory.graphs.create({ name: memory.name });
  await assert.rejects(memory.graphs.create({ name: memory.name }), { name: ConflictError.name, code: "graph_exists" });
  await assert.rejects(memory.graphs.get("nowhere"), { name: NotFoundError.name, code: "graph_not_found" });
  await assert.rejects(reader.remember("Not allowed."), { name: ForbiddenError.name, code: "scope_required" });
  await assert.rejects(newClient({ apiKey: "rcl_made_up" }).recall("tea"), { name: UnauthenticatedError.name });
});

test("a key whose requests are used up learns when to try again", async () => {
  const limited = newClient({ apiKey: process.env.LIMITED_API_KEY ?? "", maxRetryWait: 0 });
  const asked = Array.from({ length: 40 }, () => limited.graphs.list().pages().next());
  const refused = (await Promise.allSettled(asked)).flatMap((each) =>
    each.status === "rejected" ? [each.reason] : [],
  );
  assert.ok(refused.length > 0);
  for (const error of refused) {
    assert.ok(error instanceof TooManyRequestsError);
    assert.ok(error.retryAfter !== undefined && error.retryAfter > 0);
  }
});

test("an access token is valid where memories are read and written, and elsewhere the error says so", async () => {
  const memory = newClient({ apiKey: () => process.env.ACCESS_TOKEN ?? "" });
  await memory.remember("Ada prefers tea.");
  assert.equal((await memory.recall("tea")).memories.length, 1);
  await assert.rejects(memory.tenant.get(), { name: UnauthenticatedError.name, message: /Access tokens of OAuth/ });
});

test("where nobody answers, the error says where", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, "close");
  const lost = newClient({ url: `http://127.0.0.1:${port}`, retries: 0 });
  await assert.rejects(lost.recall("tea"), {
    name: ConnectionError.name,
    message: new RegExp(`127\\.0\\.0\\.1:${port}.*ECONNREFUSED`),
  });
});

test("where somebody else answers, the error says so", async () => {
  const page = { headers: { "Content-Type": "text/html" }, body: "<!doctype html>" };
  const between = await Between.open();
  const lost = newClient({ url: between.url, retries: 0 });
  between.fates = [
    { status: 200, ...page },
    { status: 404, ...page },
  ];
  await assert.rejects(lost.recall("tea"), {
    name: ServerError.name,
    message: /127\.0\.0\.1.* is it the address of a gateway/,
  });
  await assert.rejects(lost.recall("tea"), { name: NotFoundError.name, message: /without an error of Recollect/ });
});

test("a client that cannot work is not made, and does not show its key", () => {
  const { RECOLLECT_API_KEY } = process.env;
  delete process.env.RECOLLECT_API_KEY;
  assert.throws(() => new Recollect(), ConfigurationError);
  process.env.RECOLLECT_API_KEY = RECOLLECT_API_KEY;
  assert.throws(() => new Recollect({ url: "memory.example.com" }), ConfigurationError);
  assert.ok(!inspect(new Recollect(), { depth: 9, showHidden: true }).includes(RECOLLECT_API_KEY ?? "rcl_"));
});
