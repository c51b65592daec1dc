/**
 * What a call that another machine answers throws, as SDKs were seen to do. Most of it does not say that nothing was done: of a connection
 * that breaks, the other side may have done all of its work.
 */

/** No connection was made. */
const UNCONNECTED = new Set([
  'ECONNREFUSED',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'NOT_CONNECTED',
  'UND_ERR_CONNECT_TIMEOUT',
]);
/** What the AI SDK throws before it asks a provider. */
const UNSENT = new Set([
  'AI_InvalidArgumentError',
  'AI_InvalidPromptError',
  'AI_LoadAPIKeyError',
  'AI_LoadSettingError',
  'AI_NoSuchModelError',
  'AI_UnsupportedFunctionalityError',
]);
/** What clients of MCP throw themselves: the connection was closed, the time is over. */
const CLIENT_CODES = new Set([-32_000, -32_001]);
const MAX_CAUSES = 8;

/** Who answers a call that is not run here: a provider of models, who charges nothing for an error; or a server of tools. */
export type Answerer = 'model' | 'server';

/**
 * Whether it shows that nothing was done: the status of an HTTP error (RFC 9110 §15.5; of a model also §15.6), an error of a server in
 * JSON-RPC, no connection, or a fault found before one.
 */
export function wasRefused(thrown: unknown, by: Answerer): boolean {
  let error = thrown;
  for (let depth = 0; depth < MAX_CAUSES && typeof error === 'object' && error !== null; depth += 1) {
    const { name, code, status, statusCode, cause } = error as Readonly<Record<string, unknown>>;
    const answered = [statusCode, status, code].find((each) => typeof each === 'number');
    if (answered !== undefined) return isRefusal(answered, by);
    if (typeof code === 'string' && UNCONNECTED.has(code)) return true;
    if (typeof name === 'string' && UNSENT.has(name)) return true;
    error = cause;
  }
  return false;
}

function isRefusal(answered: number, by: Answerer): boolean {
  if (answered <= -32_000) return !CLIENT_CODES.has(answered);
  return answered >= 400 && answered <= (by === 'model' ? 599 : 499);
}
