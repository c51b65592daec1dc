/** Signatures wait in room that is used again: whatever else was refused meanwhile, each gets its own verdict. */

import { describe, expect, it } from 'vitest';
import { SignatureQueue } from '../../src/fast/blocks/signature-queue.js';
import { INVALID, NOT_COMPUTED, VALID } from '../../src/fast/blocks/verdicts.js';
import { generatePrivateKey } from '../../src/format/key/private-key.js';
import { MAX_WAITING } from '../../src/fast/signature/batch-verifier.js';

import { nodeBackend } from '../../src/format/signature/node-backend.js';
import { createSigner, signEvent } from '../../src/format/signature/signer.js';

const COUNT = MAX_WAITING + 40;

const signer = createSigner(generatePrivateKey());
const key = nodeBackend.importKey(signer.publicKey);
const events = Array.from({ length: COUNT }, (_, n) => Buffer.from(`{"n":${n}}`));
const signatures = events.map((event) => signEvent(event, signer).sig);
/** 86 characters of base64url, of which the last has bits that mean nothing. */
const UNDECODABLE = `${'A'.repeat(85)}B`;

/** The verdicts on all events, the texts at some places replaced. */
function verdictsOf(texts: ReadonlyMap<number, string>): number[] {
  const queue = new SignatureQueue(true, 1);
  const verdicts: number[] = [];
  for (const [place, event] of events.entries()) {
    const text = Buffer.from(texts.get(place) ?? signatures[place]);
    const given = queue.addAt(key, event, text, 0, text.length, place);
    if (given !== NOT_COMPUTED) verdicts[place] = given;
  }
  queue.flush(verdicts);
  return verdicts;
}

const NEAR = [0, 1, 2, 97, MAX_WAITING - 2, MAX_WAITING - 1, MAX_WAITING, MAX_WAITING + 1, COUNT - 1];

describe('a signature that waits', () => {
  it.each(NEAR)('keeps its verdict where one at place %i cannot be decoded', (place) => {
    // A sound signature of another event.
    const other = COUNT - 3;
    const verdicts = verdictsOf(
      new Map([
        [place, UNDECODABLE],
        [other, signatures[7]],
      ]),
    );
    const wrong = verdicts.flatMap((verdict, at) => (verdict === VALID ? [] : [at]));
    expect(wrong).toEqual([place, other].sort((a, b) => a - b));
    expect(verdicts[place]).toBe(INVALID);
  });

  it('keeps it whatever number of others cannot be decoded', () => {
    for (const every of [2, 3, 7, 50]) {
      const refused = events.flatMap((_, place) => (place % every === 1 ? [place] : []));
      const verdicts = verdictsOf(new Map(refused.map((place) => [place, UNDECODABLE])));
      expect(verdicts.flatMap((verdict, at) => (verdict === VALID ? [] : [at]))).toEqual(refused);
    }
  });
});
