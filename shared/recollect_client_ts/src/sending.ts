/** How one request is sent: with a credential, in time, and again where that helps. */

import { ApiError, ConnectionError, TimeoutError, notOfGateway, refusal, type RecollectError } from "./errors.js";
import { isRepeatable, isStreamed, takesKey } from "./routes.js";

/** What gets a valid key or token. It is called before each attempt, with the one that was refused, if one was. */
export type CredentialSource = (refused?: string) => string | Promise<string>;

/** Everything that sending depends on. */
export interface Sending {
  credential: string | CredentialSource;
  fetch: typeof globalThis.fetch;
  /** Further attempts, at most. */
  retries: number;
  /** Milliseconds for one attempt. */
  timeout: number;
  /** Milliseconds of waiting between the attempts, in all. */
  maxRetryWait: number;
  /** Until when (in `Date.now()`) the credential has no room for idempotency keys. */
  keys: { usedUpUntil: number };
}

const KEY = "Idempotency-Key";
const TRANSIENT = new Set([408, 429, 502, 503, 504]);
const UNDER_WAY = "idempotency_conflict";
const KEYS_USED_UP = "too_many_idempotency_keys";
const KEYLESS_MILLISECONDS = 600_000;
const FIRST_WAIT = 500;
const LONGEST_WAIT = 10_000;
const WITHOUT_BODY = new Set([204, 205, 304]);

/** Send a request, and return an answer that is a success or 304. Throws ApiError, ConnectionError, or why it was aborted. */
export async function send(request: Request, sending: Sending): Promise<Response> {
  const sent = new SentRequest(request, sending);
  for (;;) {
    const outcome = await sent.attempt();
    if (outcome instanceof Response) return outcome;
    await pause(sent.waitAfter(outcome), request.signal);
  }
}

/** Wait so long; throws why the signal was aborted, at once. */
export async function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  await new Promise<void>((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, milliseconds);
    signal.addEventListener("abort", done);
  });
  signal.throwIfAborted();
}

/** Milliseconds before the attempt of this number, from 1: what `Retry-After` asks for, else twice as long each time. */
export function waitBefore(attempt: number, error: unknown): number {
  if (error instanceof ApiError && error.retryAfter !== undefined) return error.retryAfter * 1000;
  return Math.min(FIRST_WAIT * 2 ** (attempt - 1), LONGEST_WAIT) * (0.5 + Math.random() / 2);
}

/** Whether the same request may succeed later. */
export function isTransient(error: unknown): boolean {
  if (!(error instanceof ApiError)) return error instanceof ConnectionError;
  return error.code !== KEYS_USED_UP && (TRANSIENT.has(error.status) || error.code === UNDER_WAY);
}

class SentRequest {
  readonly #request: Request;
  readonly #sending: Sending;
  readonly #path: string;
  readonly #hasOwnKey: boolean;
  #attempts = 0;
  #waited = 0;

  constructor(request: Request, sending: Sending) {
    this.#request = request;
    this.#sending = sending;
    this.#path = new URL(request.url).pathname;
    this.#hasOwnKey = request.headers.has(KEY);
    const hasRoom = Date.now() >= sending.keys.usedUpUntil;
    if (!this.#hasOwnKey && hasRoom && takesKey(request.method, this.#path)) {
      request.headers.set(KEY, crypto.randomUUID());
    }
  }

  /** The answer, or the error of one attempt. Throws why the request was aborted, and what the credential's source throws. */
  async attempt(): Promise<Response | RecollectError> {
    this.#attempts += 1;
    const source = this.#sending.credential;
    const credential = typeof source === "function" ? await source() : source;
    const outcome = await this.#exchange(credential);
    if (typeof source === "string" || !(outcome instanceof ApiError) || outcome.status !== 401) return outcome;
    const renewed = await source(credential);
    return renewed === credential ? outcome : this.#exchange(renewed);
  }

  /** Milliseconds until the next attempt; throws the error if there is none. */
  waitAfter(error: RecollectError): number {
    if (this.#hasNoRoomForKey(error)) return 0;
    const wait = waitBefore(this.#attempts, error);
    this.#waited += wait;
    const isSafe = this.#request.headers.has(KEY) || isRepeatable(this.#request.method, this.#path);
    const isOver = this.#attempts > this.#sending.retries || this.#waited > this.#sending.maxRetryWait;
    if (isOver || !isSafe || !isTransient(error)) throw error;
    return wait;
  }

  /** Whether the key that we made found no room. Then the request goes on without one, as do those of the next minutes. */
  #hasNoRoomForKey(error: RecollectError): boolean {
    const isFull = error instanceof ApiError && error.code === KEYS_USED_UP;
    if (!isFull || this.#hasOwnKey || !this.#request.headers.has(KEY)) return false;
    this.#request.headers.delete(KEY);
    this.#sending.keys.usedUpUntil = Date.now() + KEYLESS_MILLISECONDS;
    return true;
  }

  async #exchange(credential: string): Promise<Response | RecollectError> {
    const clock = new AbortController();
    const timer = setTimeout(() => clock.abort(), this.#sending.timeout);
    try {
      const signal = AbortSignal.any([this.#request.signal, clock.signal]);
      const attempt = new Request(this.#request.clone(), { signal, redirect: "manual" });
      attempt.headers.set("Authorization", `Bearer ${credential.trim()}`);
      const response = await this.#sending.fetch(attempt);
      if (!response.ok && response.status !== 304) return await refusal(response);
      if (isStreamed(this.#path)) return response;
      return hasJson(response) ? await whole(response) : notOfGateway(response, new URL(this.#request.url).origin);
    } catch (error) {
      this.#request.signal.throwIfAborted();
      return this.#connectionError(error, clock.signal.aborted);
    } finally {
      clearTimeout(timer);
    }
  }

  #connectionError(error: unknown, isLate: boolean): ConnectionError {
    const { origin } = new URL(this.#request.url);
    if (isLate)
      return new TimeoutError(`${origin} did not answer within ${this.#sending.timeout} ms`, { cause: error });
    return new ConnectionError(`${origin} does not answer (${reasonOf(error)})`, { cause: error });
  }
}

function hasJson({ status, headers }: Response): boolean {
  return WITHOUT_BODY.has(status) || /[/+]json\b/.test(headers.get("Content-Type") ?? "");
}

/** The same answer, once all of it has come. */
async function whole(response: Response): Promise<Response> {
  const { status, statusText, headers } = response;
  const body = WITHOUT_BODY.has(status) ? null : await response.arrayBuffer();
  return new Response(body, { status, statusText, headers });
}

/** Why a connection failed: `fetch` only says that it did, and its cause why. */
function reasonOf(error: unknown): string {
  const { cause } = error as { cause?: { code?: string; message?: string } };
  return cause?.code ?? cause?.message ?? (error instanceof Error ? error.message : String(error));
}
