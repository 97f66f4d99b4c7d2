import assert from "node:assert/strict";
import { test } from "node:test";
import { newClient } from "./gateway.ts";

test("what is remembered is recalled", async () => {
  const memory = newClient();
  const { memories } = await memory.remember({ text: "Ada prefers tea to coffee.", about: ["Ada"], tags: ["drinks"] });
  const found = await memory.recall("What does Ada prefer?");
  assert.equal(memories[0]?.status, "new");
  assert.equal(found.memories[0]?.id, memories[0]?.id);
  assert.deepEqual(found.memories[0]?.tags, ["drinks"]);
});

test("remember takes a text, several, and the arguments of the tool", async () => {
  const memory = newClient();
  const at = new Date("2026-01-31T12:00:00Z");
  await memory.remember("The build takes four minutes.");
  await memory.remember(["Deploys are on Tuesdays.", { text: "Releases are on Fridays.", at }]);
  await memory.remember({ items: [{ text: "Backups are made at night." }], time_zone: "Europe/Berlin" });
  const listed = await Array.fromAsync(memory.memories({ until: at }));
  assert.deepEqual(
    listed.map(({ text }) => text),
    ["Releases are on Fridays."],
  );
  assert.equal((await Array.fromAsync(memory.memories({ since: new Date(0) }))).length, 4);
});

test("a conversation is kept once, and grows", async () => {
  const memory = newClient();
  const said = { role: "user", name: "Ada", content: "I moved to Ulm.", at: new Date("2026-11-02T10:00:00Z") };
  const first = await memory.rememberConversation({ thread: "support-1", messages: [said] });
  const answer = { role: "assistant", content: [{ type: "text", text: "Shall I change your address?" }] };
  const grown = await memory.rememberConversation({ thread: "support-1", messages: [said, answer] });
  assert.deepEqual([first, grown].map(({ memories }) => memories.map(({ status }) => status)), [["new"], ["known", "new"]]);
  assert.equal((await memory.recall("Where did Ada move?")).memories[0]?.text, "Ada: I moved to Ulm.");
});

test("relations are explored", async () => {
  const memory = newClient();
  const triple = { subject: "Ada", predicate: "works on", object: "the engine" };
  await memory.remember({ text: "They are at work.", about: ["Ada", "the engine", "the notes", "the tables"] });
  const { relations } = await memory.relate(triple);
  await memory.relate([
    { ...triple, object: "the notes" },
    { ...triple, object: "the tables" },
  ]);
  const { nodes } = await memory.explore("Ada");
  const { paths } = await memory.explore({ start: "the engine", to: "the tables", depth: 2 });
  assert.equal(relations[0]?.status, "new");
  assert.deepEqual(new Set(nodes.map(({ name }) => name)), new Set(["Ada", "the engine", "the notes", "the tables"]));
  assert.deepEqual(paths[0], ["the engine", "Ada", "the tables"]);
});

test("a memory is revised, and forgotten", async () => {
  const memory = newClient();
  const { memories } = await memory.remember({ text: "The port is 8080.", about: ["server"] });
  const id = memories[0]?.id ?? "";
  const revised = await memory.revise({ id, text: "The port is 8787.", reason: "moved" });
  const found = await memory.recall("port");
  const forgotten = await memory.forget({ ids: [id] });
  assert.equal(revised.status, "revised");
  assert.equal(found.memories[0]?.text, "The port is 8787.");
  assert.deepEqual(forgotten.forgotten, [id]);
  assert.deepEqual((await memory.recall("port")).memories, []);
});

test("another graph has memories of its own", async () => {
  const memory = newClient();
  const work = memory.graph(`${memory.name}-work`);
  await work.remember("The stand-up is at nine.");
  assert.equal((await work.recall("stand-up")).memories.length, 1);
  assert.deepEqual((await memory.recall("stand-up")).memories, []);
});
