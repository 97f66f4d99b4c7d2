/**
 * The model of the programs of the documentation: the AI SDK's own for tests, with rules instead of a mind.
 *
 * It remembers what it is asked to remember, if it has tools; else it answers with the first memory that it was given.
 */

import { MockLanguageModelV4 } from "ai/test";

type Options = Parameters<MockLanguageModelV4["doGenerate"]>[0];
type Result = Awaited<ReturnType<MockLanguageModelV4["doGenerate"]>>;

const USAGE: Result["usage"] = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

export const model = new MockLanguageModelV4({ doGenerate: async (options) => reply(options) });

function reply({ prompt, tools }: Options): Result {
  const [asked] = /(?<=Remember that ).*/.exec(lastSaid(prompt)) ?? [];
  if (prompt.at(-1)?.role === "tool") return answer("Noted.");
  if (!asked || !tools) return answer(/(?<=^- ).*?(?= \(|$)/m.exec(lastSaid(prompt))?.[0] ?? "I do not know.");
  const input = JSON.stringify({ items: [{ text: asked }] });
  return {
    content: [{ type: "tool-call", toolCallId: "call-1", toolName: "remember", input }],
    finishReason: { unified: "tool-calls", raw: undefined },
    usage: USAGE,
    warnings: [],
  };
}

function answer(text: string): Result {
  return {
    content: [{ type: "text", text }],
    finishReason: { unified: "stop", raw: undefined },
    usage: USAGE,
    warnings: [],
  };
}

function lastSaid(prompt: Options["prompt"]): string {
  const message = prompt.findLast(({ role }) => role === "user");
  const parts = message?.role === "user" ? message.content : [];
  return parts.map((part) => (part.type === "text" ? part.text : "")).join("\n");
}
