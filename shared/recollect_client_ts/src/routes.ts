/** What a request is by its route, as far as it matters for sending it again. */

/** Routes that take no idempotency key: they only read, change nothing when repeated, or have a body of any length. */
const KEYLESS = /\/(recall|explore|imports|keys\/report|sessions\/[^/]+)$/;

/** Routes whose act may be repeated without a key, besides those that only read. */
const REPEATABLE = /\/(recall|explore|memories|conversations|relate|forget|keys\/report|sessions\/[^/]+)$/;

/** Routes whose answer may be long, and is handed on while it comes. */
const STREAMED = /\/(changes|export|output)$/;

const READS = new Set(["GET", "HEAD"]);

/** Whether the request takes an idempotency key. */
export function takesKey(method: string, path: string): boolean {
  return !READS.has(method) && !KEYLESS.test(path);
}

/** Whether the request may be sent again although it has no idempotency key. */
export function isRepeatable(method: string, path: string): boolean {
  return READS.has(method) || REPEATABLE.test(path);
}

/** Whether the answer may be a stream. */
export function isStreamed(path: string): boolean {
  return STREAMED.test(path);
}
