/** The changes of a graph, as they are made: each once and in order, whatever happens to the connection. */

import type { Connection } from "./connection.js";
import { ChangesLostError, ConnectionError, streamEnded } from "./errors.js";
import { isTransient, pause, waitBefore } from "./sending.js";
import { eventsOf, type ServerSentEvent } from "./server-sent.js";
import type { CallOptions, Change } from "./types.js";

/** Which changes. */
export interface ChangesOptions extends CallOptions {
  /** Go on after this revision, or after the `id` of a change. Default: changes that are made from now on. */
  after?: number | string;
  /** Only those that touch a node of one of these kinds. */
  kinds?: string[];
  /** Only those that touch a node with one of these tags. */
  tags?: string[];
}

/** The gateway sends a comment every 15 seconds when there is nothing else. */
const SILENCE = 60_000;

/** Connections that fail one after another until it is given up. */
const RETRIES = 10;
const RECONNECT = 1_000;
const DRAINING = "draining";
const NEVER = new AbortController().signal;

/** Every change, without end. Throws ChangesLostError, ApiError, ConnectionError, or why it was aborted. */
export async function* changesOf(
  connection: Connection,
  graph: string,
  options: ChangesOptions,
): AsyncGenerator<Change, void, undefined> {
  const feed = new Feed(connection, graph, options);
  for (;;) {
    try {
      for await (const event of await feed.open()) {
        const change = feed.take(event);
        if (change !== undefined) yield change;
      }
    } catch (error) {
      feed.failed(error);
    }
    await feed.rest();
  }
}

class Feed {
  readonly #connection: Connection;
  readonly #graph: string;
  readonly #options: ChangesOptions;
  #lastId: string | undefined;
  #failures = 0;
  #wait = RECONNECT;

  constructor(connection: Connection, graph: string, options: ChangesOptions) {
    this.#connection = connection;
    this.#graph = graph;
    this.#options = options;
    this.#lastId = options.after === undefined ? undefined : String(options.after);
  }

  /** The events after the last one. */
  async open(): Promise<AsyncGenerator<ServerSentEvent>> {
    const { kinds, tags, signal, timeout } = this.#options;
    const headers = { Accept: "text/event-stream", "Last-Event-ID": this.#lastId };
    const { data } = await this.#connection.api.GET("/v1/graphs/{name}/changes", {
      ...this.#connection.call({ signal, timeout, retries: 0 }, headers),
      params: { path: { name: this.#graph }, query: { kind: kinds, tag: tags } },
      parseAs: "stream",
    });
    return eventsOf(data as ReadableStream<Uint8Array>, SILENCE);
  }

  /** The change that an event is, if it is one. Throws why the stream cannot go on. */
  take({ id, event, data }: ServerSentEvent): Change | undefined {
    this.#failures = 0;
    this.#wait = RECONNECT;
    if (event === "end") return this.#end(JSON.parse(data).reason);
    if (event === "refetch") throw new ChangesLostError(JSON.parse(data).revision);
    if (id !== undefined) this.#lastId = id;
    return event === "change" ? { ...JSON.parse(data), id } : undefined;
  }

  /** Throws the error where to connect again does not help. */
  failed(error: unknown): void {
    this.#options.signal?.throwIfAborted();
    const failure = error instanceof TypeError || isTransient(error) ? error : undefined;
    this.#failures += 1;
    if (failure === undefined) throw error;
    if (this.#failures > (this.#options.retries ?? RETRIES)) throw asConnectionError(failure);
    this.#wait = Math.max(RECONNECT, waitBefore(this.#failures, failure));
  }

  /** Wait before the next connection. */
  async rest(): Promise<void> {
    await pause(this.#wait, this.#options.signal ?? NEVER);
  }

  #end(reason: string): undefined {
    this.#wait = 0;
    const goesOn = reason === DRAINING || (reason === "unauthenticated" && this.#connection.renewsCredential);
    if (!goesOn) throw streamEnded(reason);
  }
}

/** What broke off while it was read is an error of `fetch`. */
function asConnectionError(error: unknown): unknown {
  return error instanceof TypeError ? new ConnectionError("The stream of changes broke off", { cause: error }) : error;
}
