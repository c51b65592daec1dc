/** Equal bytes are found equal at once: Vitest compares one element after the other. What differs is still shown by Vitest. */

import { expect } from 'vitest';

expect.addEqualityTesters([
  (one: unknown, other: unknown): true | undefined =>
    one instanceof Uint8Array &&
    other instanceof Uint8Array &&
    one.constructor === other.constructor &&
    Buffer.compare(one, other) === 0
      ? true
      : undefined,
]);
