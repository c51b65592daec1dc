/** What the parts of the generator share. */

/** A result that differs from what the rules say stops the generator: nothing wrong is packed. */
export function assertSame(actual, expected, about) {
  const [given, wanted] = [actual, expected].map((value) => JSON.stringify(value));
  if (given !== wanted) throw new Error(`${about}: expected ${wanted}, the product gives ${given}`);
}

export const base64 = (bytes) => Buffer.from(bytes).toString('base64');
export const file = (path) => ({ $file: path });
export const utf8 = (text) => ({ $utf8: text });
export const hex = (bytes) => ({ $hex: Buffer.from(bytes).toString('hex') });

/** A digest as text. */
export const digestText = (bytes) => `sha-256:${Buffer.from(bytes).toString('base64url')}`;
