import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import {
  ConnectionError,
  InvalidInputError,
  TimeoutError,
  TooManyRequestsError,
  UnavailableError,
} from "recollect-client";
import { Between, newClient } from "./gateway.ts";

const between = await Between.open();
const FULL = { status: 429, body: JSON.stringify({ code: "too_many_idempotency_keys", detail: "No room." }) };

function client(options = {}) {
  between.passed.length = 0;
  between.fates = [];
  return newClient({ url: between.url, ...options });
}

test("a write whose answer was lost is done once", async () => {
  const memory = client();
  between.fates = ["lose the answer"];
  const { memories } = await memory.remember("Ada prefers tea.");
  const [first, second] = between.passed;
  assert.equal(memories[0]?.status, "new", "the first answer, not that the fact is known");
  assert.equal(first?.key, second?.key);
  assert.equal(second?.replayed, true);
});

test("so is one that is not repeatable", async () => {
  const memory = client();
  const { memories } = await memory.remember("The port is 8080.");
  between.fates = ["lose the answer"];
  const revised = await memory.revise({ id: memories[0]?.id ?? "", text: "The port is 8787." });
  assert.equal(revised.status, "revised");
  assert.equal(between.passed.at(-1)?.replayed, true);
});

test("reads are repeated, and have no key", async () => {
  const memory = client();
  between.fates = ["lose the answer", { status: 503 }];
  await memory.recall("tea");
  assert.deepEqual(
    between.passed.map(({ key }) => key),
    [undefined, undefined, undefined],
  );
});

test("Retry-After decides, in seconds or as a date", async () => {
  const memory = client();
  between.fates = [
    { status: 429, headers: { "Retry-After": "0" } },
    { status: 503, headers: { "Retry-After": new Date(0).toUTCString() } },
  ];
  await memory.remember("Ada prefers tea.");
  assert.equal(new Set(between.passed.map(({ key }) => key)).size, 1);
  assert.equal(between.passed.length, 3);
});

test("a Retry-After that is too long to wait for is left to the program", async () => {
  const memory = client();
  between.fates = [{ status: 429, headers: { "Retry-After": "3600" } }];
  await assert.rejects(
    memory.recall("tea"),
    (error: unknown) => error instanceof TooManyRequestsError && error.retryAfter === 3600,
  );
  assert.equal(between.passed.length, 1);
});

test("attempts are bounded, for the client and for a call", async () => {
  const memory = client({ retries: 1 });
  const away = { status: 503, headers: { "Retry-After": "0" } };
  between.fates = Array(9).fill(away);
  await assert.rejects(memory.recall("tea"), UnavailableError);
  assert.equal(between.passed.length, 2);
  await assert.rejects(memory.recall("tea", { retries: 2 }), UnavailableError);
  assert.equal(between.passed.length, 5);
});

test("what is refused for good is sent once", async () => {
  const memory = client();
  await assert.rejects(memory.remember({ text: "" }), InvalidInputError);
  assert.equal(between.passed.length, 1);
});

test("an attempt has its time, and the next may succeed", async () => {
  const memory = client({ timeout: 2_000 });
  between.fates = ["hang"];
  assert.equal((await memory.remember("Ada prefers tea.")).memories.length, 1);
  between.fates = ["hang"];
  await assert.rejects(memory.recall("tea", { timeout: 50, retries: 0 }), TimeoutError);
});

test("a signal ends the call, and says why", async () => {
  const memory = client();
  const stopped = new AbortController();
  between.fates = [{ status: 503, headers: { "Retry-After": "30" } }];
  const asked = memory.recall("tea", { signal: stopped.signal });
  while (between.passed.length === 0) await setImmediate();
  stopped.abort(new Error("the person left"));
  await assert.rejects(asked, /the person left/);
  await assert.rejects(memory.recall("tea", { signal: AbortSignal.abort() }), { name: "AbortError" });
});

test("a key of the program's own is sent as it is", async () => {
  const memory = client();
  const idempotencyKey = `order-${memory.name}`;
  const first = await memory.remember("Ada prefers tea.", { idempotencyKey });
  assert.deepEqual(await memory.remember("Ada prefers tea.", { idempotencyKey }), first);
  await assert.rejects(memory.remember("Another.", { idempotencyKey }), { code: "idempotency_mismatch" });
  assert.ok(between.passed.every(({ key }) => key === idempotencyKey));
});

test("a credential that has no room for keys goes on without them", async () => {
  const memory = client();
  between.fates = [FULL];
  await memory.remember("Ada prefers tea.");
  await memory.remember("Ada prefers jam.");
  assert.deepEqual(
    between.passed.map(({ key }) => key === undefined),
    [false, true, true],
  );
});

test("without a key, what is not repeatable is sent once", async () => {
  const memory = client();
  const { memories } = await memory.remember("The port is 8080.");
  between.fates = [FULL, "lose the answer"];
  await assert.rejects(memory.revise({ id: memories[0]?.id ?? "", text: "The port is 8787." }), ConnectionError);
});

test("an expired token is renewed once", async () => {
  const refused: (string | undefined)[] = [];
  const memory = client({
    apiKey: async (old?: string) => {
      refused.push(old);
      return old === undefined ? "rcl_expired" : (process.env.RECOLLECT_API_KEY ?? "");
    },
  });
  await memory.recall("tea");
  assert.deepEqual(refused, [undefined, "rcl_expired"]);
  const hopeless = client({ apiKey: () => "rcl_expired" });
  await assert.rejects(hopeless.recall("tea"), { status: 401 });
  assert.equal(between.passed.length, 1);
});

test("a redirect is not followed: a POST would become a GET", async () => {
  const memory = client();
  between.fates = [{ status: 301, headers: { Location: "https://memory.example.com/" } }];
  await assert.rejects(memory.recall("tea"), /redirects to https:\/\/memory\.example\.com\//);
});
