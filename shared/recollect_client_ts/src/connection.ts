/** The connection to a gateway: its address, its credential, and the typed client of every route. */

import createClient, { type Client } from "openapi-fetch";
import { ConfigurationError } from "./errors.js";
import type { paths } from "./generated/schema.js";
import { Pages, type Page } from "./pages.js";
import { send, type CredentialSource, type Sending } from "./sending.js";
import type { CallOptions, ChangeOptions, ListItem, ListParameters, ListPath } from "./types.js";

/** How to reach a gateway. */
export interface ConnectionOptions {
  /** Any address of it. Default: `RECOLLECT_URL`, else http://127.0.0.1:8787. */
  url?: string;
  /** An API key or an OAuth access token, or what gets a valid one. Default: `RECOLLECT_API_KEY`. */
  apiKey?: string | CredentialSource;
  /** Further attempts of a call, at most. Default: 3. */
  retries?: number;
  /** Milliseconds for one attempt. Default: 60,000. */
  timeout?: number;
  /** Milliseconds for which a call waits between its attempts, in all. Default: 60,000. */
  maxRetryWait?: number;
  /** Another `fetch`. */
  fetch?: typeof globalThis.fetch;
}

const LOCAL = "http://127.0.0.1:8787";
const DEFAULTS = { retries: 3, timeout: 60_000, maxRetryWait: 60_000 };

/** What openapi-fetch takes for one call. */
type CallInit = {
  fetch: (request: Request) => Promise<Response>;
  headers: Record<string, string>;
  signal?: AbortSignal;
};

/** The typed client of every route; its errors are thrown. */
export type Api = Client<paths>;

export class Connection {
  readonly api: Api;
  readonly url: string;
  readonly #sending: Sending;

  /** Throws ConfigurationError. */
  constructor(options: ConnectionOptions) {
    this.url = originOf(options.url ?? environment("RECOLLECT_URL") ?? LOCAL);
    const { retries, timeout, maxRetryWait } = { ...DEFAULTS, ...withoutUndefined(options) };
    const fetch = options.fetch ?? globalThis.fetch.bind(globalThis);
    this.#sending = {
      credential: credentialOf(options),
      fetch,
      retries,
      timeout,
      maxRetryWait,
      keys: { usedUpUntil: 0 },
    };
    this.api = createClient<paths>({ baseUrl: this.url, fetch: (request) => send(request, this.#sending) });
  }

  /** Whether a new credential can be had when one ends. */
  get renewsCredential(): boolean {
    return typeof this.#sending.credential === "function";
  }

  /** How to make one call with these options. */
  call(options: ChangeOptions = {}, headers: Record<string, string | undefined> = {}): CallInit {
    const { signal, idempotencyKey, ifMatch, retries, timeout } = options;
    const sending = { ...this.#sending, ...withoutUndefined({ retries, timeout }) };
    return {
      fetch: (request) => send(request, sending),
      headers: withoutUndefined({ "Idempotency-Key": idempotencyKey, "If-Match": ifMatch, ...headers }),
      ...(signal && { signal }),
    };
  }

  /** A list at a path of the API. */
  list<Path extends ListPath>(
    path: Path,
    parameters?: ListParameters<Path>,
    options?: CallOptions,
  ): Pages<ListItem<Path>> {
    // The types of a path that is not known yet cannot be resolved, so these calls are made without them.
    const get = this.api.GET as (path: string, init: object) => Promise<{ data?: unknown }>;
    const { query, ...others } = (parameters ?? {}) as { query?: object; path?: object };
    return new Pages(async (cursor) => {
      const params = { ...others, query: cursor === undefined ? query : { ...query, cursor } };
      return dataOf(await get(path, { ...this.call(options), params })) as Page<ListItem<Path>>;
    });
  }
}

/** The data of an answer: whatever is no success was thrown. */
export function dataOf<T>(answer: { data?: T }): T {
  return answer.data as T;
}

/** The same object without the fields that are undefined. */
export function withoutUndefined<T extends object>(fields: T): { [Name in keyof T]: Exclude<T[Name], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as never;
}

function credentialOf({ apiKey = environment("RECOLLECT_API_KEY") }: ConnectionOptions): string | CredentialSource {
  if (typeof apiKey === "function") return apiKey;
  if (!apiKey?.trim()) throw new ConfigurationError("An API key is needed: pass apiKey, or set RECOLLECT_API_KEY");
  return apiKey;
}

/** The origin of any address of the gateway, such as that for MCP: a gateway has its host for itself. */
function originOf(url: string): string {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed?.protocol !== "https:" && parsed?.protocol !== "http:") {
    throw new ConfigurationError(`The url must be like https://memory.example.com, and is ${JSON.stringify(url)}`);
  }
  return parsed.origin;
}

/** A variable of the environment, where there is one: browsers have none. */
function environment(name: string): string | undefined {
  const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } };
  return process?.env?.[name] || undefined;
}
