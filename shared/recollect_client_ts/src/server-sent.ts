/** Server-sent events, as HTML defines them. */

import { TimeoutError } from "./errors.js";

/** One event, or only an id (`event` undefined): up to there was nothing. */
export interface ServerSentEvent {
  id: string | undefined;
  event: string | undefined;
  data: string;
}

/** The events of a stream. Throws TimeoutError where nothing, not even a comment, came for so many milliseconds. */
export async function* eventsOf(stream: ReadableStream<Uint8Array>, silence: number): AsyncGenerator<ServerSentEvent> {
  let block: string[] = [];
  for await (const line of linesOf(stream, silence)) {
    if (line !== "") {
      block.push(line);
    } else if (block.length > 0) {
      const event = eventOf(block);
      block = [];
      if (event.id !== undefined || event.event !== undefined) yield event;
    }
  }
}

function eventOf(lines: string[]): ServerSentEvent {
  const values = (field: string) =>
    lines.filter((line) => line.startsWith(`${field}:`)).map((line) => line.slice(field.length + 1).replace(/^ /, ""));
  return { id: values("id").at(-1), event: values("event").at(-1), data: values("data").join("\n") };
}

async function* linesOf(stream: ReadableStream<Uint8Array>, silence: number): AsyncGenerator<string> {
  const reader = stream.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await inTime(reader.read(), silence);
      if (done) return;
      const lines = (rest + decoder.decode(value, { stream: true })).split(/\r?\n/);
      rest = lines.pop() ?? "";
      yield* lines;
    }
  } finally {
    // Whoever waits for no more events does not wait for the end of the connection, either.
    reader.cancel().catch(() => undefined);
  }
}

async function inTime<T>(promise: Promise<T>, milliseconds: number): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new TimeoutError(`Nothing came for ${milliseconds} ms`)), milliseconds);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
