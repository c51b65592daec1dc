/** Walks and edits plain JSON by pointer, for tests that break one place of a document. */

type Node = Record<string, unknown>;

const escape = (token: string) => token.replaceAll('~', '~0').replaceAll('/', '~1');
const unescape = (token: string) => token.replaceAll('~1', '/').replaceAll('~0', '~');

/** A copy in which no two places share an object. */
export const copy = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T;

/** Every place in a document, the root first. */
export function places(value: unknown, pointer = ''): { pointer: string; value: unknown }[] {
  const found = [{ pointer, value }];
  if (typeof value !== 'object' || value === null) return found;
  for (const [key, child] of Object.entries(value)) found.push(...places(child, `${pointer}/${escape(key)}`));
  return found;
}

/** A copy with the place set to a value; `undefined` takes the member out. */
export function withPlace(document: unknown, pointer: string, value: unknown): unknown {
  const root = { root: copy(document) };
  const tokens = ['root', ...pointer.split('/').slice(1).map(unescape)];
  const last = tokens.pop() as string;
  let node = root as Node;
  for (const token of tokens) node = node[token] as Node;
  if (value === undefined) delete node[last];
  // Not an assignment: `__proto__` is a member like any other here.
  else Object.defineProperty(node, last, { value, enumerable: true, configurable: true, writable: true });
  return root.root;
}
