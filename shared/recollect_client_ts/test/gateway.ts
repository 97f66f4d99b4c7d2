/** The gateway that the tests call, which whoever runs them has started, and a connection to it that fails on demand. */

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { after } from "node:test";
import { Recollect, type RecollectOptions } from "recollect-client";

const { RECOLLECT_URL = "" } = process.env;

let serial = 0;

/** A client on a graph of its own, with a key that may do everything. */
export function newClient(options: RecollectOptions = {}): Recollect {
  serial += 1;
  return new Recollect({ graph: `test-${process.pid}-${serial}`, ...options });
}

/** What happens to a request: nothing, an answer from somebody else, or one of the faults of connections. */
type Fate = "pass" | "lose the answer" | "hang" | { status: number; headers?: Record<string, string>; body?: string };

/** One request that came, and the answer of the gateway to it. */
interface Passed {
  method: string;
  path: string;
  key: string | undefined;
  lastEvent: string | undefined;
  replayed: boolean;
}

/** A server between client and gateway. `fates` are those of the next requests; further ones pass. */
export class Between {
  readonly passed: Passed[] = [];
  fates: Fate[] = [];
  url = "";
  readonly #server = createServer((request, answer) => void this.#serve(request, answer));

  /** One that is closed after the tests of this file. */
  static async open(): Promise<Between> {
    const between = new Between();
    between.#server.listen(0, "127.0.0.1");
    await once(between.#server, "listening");
    between.url = `http://127.0.0.1:${(between.#server.address() as AddressInfo).port}`;
    after(() => between.#close());
    return between;
  }

  /** Cut every connection. */
  cut(): void {
    this.#server.closeAllConnections();
  }

  #close(): void {
    this.cut();
    this.#server.close();
  }

  async #serve(request: IncomingMessage, answer: ServerResponse): Promise<void> {
    const fate = this.fates.shift() ?? "pass";
    const { method = "", url: path = "", headers } = request;
    const passed = {
      method,
      path,
      key: headers["idempotency-key"]?.toString(),
      lastEvent: headers["last-event-id"]?.toString(),
      replayed: false,
    };
    this.passed.push(passed);
    const body = await bodyOf(request);
    if (fate === "hang") return;
    if (typeof fate === "object") {
      answer.writeHead(fate.status, fate.headers).end(fate.body ?? "");
      return;
    }
    const left = new AbortController();
    answer.on("close", () => left.abort());
    try {
      const sent = { method, headers: forwarded(headers), signal: left.signal, body: body || null };
      const got = await fetch(RECOLLECT_URL + path, sent);
      passed.replayed = got.headers.get("Idempotency-Replayed") === "true";
      if (fate === "lose the answer") {
        await got.arrayBuffer();
        request.socket.destroy();
        return;
      }
      answer.writeHead(got.status, Object.fromEntries(got.headers));
      for await (const chunk of got.body ?? []) answer.write(chunk);
      answer.end();
    } catch {
      answer.destroy();
    }
  }
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

function forwarded(headers: IncomingMessage["headers"]): Record<string, string> {
  const others = Object.entries(headers).filter(([name]) => !["host", "connection", "content-length"].includes(name));
  return Object.fromEntries(others.map(([name, value]) => [name, String(value)]));
}
