/**
 * Every error of the client, as in the client for Python.
 *
 *     RecollectError
 *       ConfigurationError           the client cannot be made like this
 *       ConnectionError              no answer came, or not a whole one
 *         TimeoutError               not in time
 *       ChangesLostError             changes cannot go on where they were: read the graph again
 *       ApiError                     the gateway refused: `status`, `code`, `detail`, `path`, `retryAfter`
 *         InvalidInputError          what was sent cannot be accepted; `path` names where
 *         UnauthenticatedError       no key or token, or one that is not valid
 *         ForbiddenError             the credential may not do this
 *           QuotaExceededError       the plan does not allow it
 *         NotFoundError              it does not exist, or belongs to somebody else
 *         ConflictError              the present state does not allow it
 *           VersionConflictError     somebody else changed it since it was read
 *         TooManyRequestsError       too often, or too much at once; try again in `retryAfter` seconds
 *         ServerError                something failed in the gateway, or in front of it
 *           UnavailableError         it is away or busy; try again in `retryAfter` seconds
 *
 * `code` is stable, for programs; messages are for people.
 */

/** Problem details (RFC 9457), as far as the gateway sent them. */
export interface Problem {
  code?: string;
  title?: string;
  detail?: string;
  path?: string | null;
}

/** Base of all errors of the client. */
export class RecollectError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** The client cannot be made like this. */
export class ConfigurationError extends RecollectError {}

/** No answer came, or not a whole one. What was asked for may have been done. */
export class ConnectionError extends RecollectError {}

/** The answer did not come in time. */
export class TimeoutError extends ConnectionError {}

/** The graph was replaced by another of its name, or by an older state. Read it again; go on after `revision`. */
export class ChangesLostError extends RecollectError {
  readonly revision: number;

  constructor(revision: number) {
    super(`The graph is not the one that was followed: read it again. It is at revision ${revision}.`);
    this.revision = revision;
  }
}

/** The gateway refused. `code` says why, `path` which part of the input, `retryAfter` (seconds) when to try again. */
export class ApiError extends RecollectError {
  readonly status: number;
  readonly code: string;
  readonly title: string;
  readonly detail: string;
  readonly path: string | undefined;
  readonly retryAfter: number | undefined;

  constructor(status: number, problem: Problem, retryAfter?: number) {
    super(messageOf(status, problem));
    this.status = status;
    this.code = problem.code ?? "";
    this.title = problem.title ?? "";
    this.detail = problem.detail ?? "";
    this.path = problem.path ?? undefined;
    this.retryAfter = retryAfter;
  }
}

/** What was sent cannot be accepted. */
export class InvalidInputError extends ApiError {}

/** There is no key or token, or it is not valid. */
export class UnauthenticatedError extends ApiError {}

/** The credential may not do this. */
export class ForbiddenError extends ApiError {}

/** The plan of the tenant does not allow it. */
export class QuotaExceededError extends ForbiddenError {}

/** It does not exist, or belongs to somebody else. */
export class NotFoundError extends ApiError {}

/** The present state does not allow it. */
export class ConflictError extends ApiError {}

/** Somebody else changed it since it was read. */
export class VersionConflictError extends ConflictError {}

/** It was asked too often, or too much at once. */
export class TooManyRequestsError extends ApiError {}

/** Something failed in the gateway, or in front of it. */
export class ServerError extends ApiError {}

/** The gateway, or something that it needs, is away or busy. */
export class UnavailableError extends ServerError {}

type Kind = new (status: number, problem: Problem, retryAfter?: number) => ApiError;

/** Errors that are more than their status says. */
const BY_CODE: Partial<Record<string, Kind>> = {
  quota_exceeded: QuotaExceededError,
  version_conflict: VersionConflictError,
  precondition_failed: VersionConflictError,
};

const BY_STATUS: Partial<Record<number, Kind>> = {
  401: UnauthenticatedError,
  403: ForbiddenError,
  404: NotFoundError,
  409: ConflictError,
  412: ConflictError,
  429: TooManyRequestsError,
  502: UnavailableError,
  503: UnavailableError,
  504: UnavailableError,
};

/** The error for an answer: by its code, else by its status. */
export function errorOf(status: number, problem: Problem, retryAfter?: number): ApiError {
  const kind = BY_CODE[problem.code ?? ""] ?? BY_STATUS[status] ?? (status >= 500 ? ServerError : InvalidInputError);
  return new kind(status, problem, retryAfter);
}

/** The error of an answer that is not a success. */
export async function refusal(response: Response): Promise<ApiError> {
  const { status, headers } = response;
  return errorOf(status, problemOf(await response.text(), response), secondsToWait(headers.get("Retry-After")));
}

/** The error for an answer that is no JSON: a page of somebody else, who has the address. */
export function notOfGateway(response: Response, origin: string): ApiError {
  const detail = `${origin} answered ${response.status} with something that is not JSON: is it the address of a gateway?`;
  return new ServerError(response.status, { detail });
}

/** The error for a stream that the gateway ended for good: its credential is no longer valid or sufficient. */
export function streamEnded(reason: string): ApiError {
  const status = { unauthenticated: 401, graph_not_found: 404 }[reason] ?? 403;
  return errorOf(status, { code: reason, detail: "The gateway ended the stream" });
}

function problemOf(text: string, response: Response): Problem {
  try {
    const problem: unknown = JSON.parse(text);
    if (typeof problem === "object" && problem !== null && "code" in problem) return problem as Problem;
  } catch {
    // Somebody in front of the gateway answered.
  }
  const location = response.headers.get("Location");
  const advice = location ? `, and redirects to ${location}: is that the right url?` : "";
  return { detail: `The server answered ${response.status} without an error of Recollect${advice}` };
}

/** Seconds that a `Retry-After` asks for: a number, or a date. */
function secondsToWait(header: string | null): number | undefined {
  if (!header) return undefined;
  if (/^\d+$/.test(header)) return Number(header);
  const at = Date.parse(header);
  return Number.isNaN(at) ? undefined : Math.max(0, (at - Date.now()) / 1000);
}

function messageOf(status: number, problem: Problem): string {
  const text = problem.detail || problem.title || `The gateway answered ${status}`;
  const marks = [problem.code, problem.path && `at ${problem.path}`].filter(Boolean).join(", ");
  return marks ? `${text} (${marks})` : text;
}
