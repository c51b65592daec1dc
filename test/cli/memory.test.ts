/** A ledger that needs more memory than there is: could not be decided, and never an abort (SPEC §8). */

import { closeSync, openSync, writeSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { canonicalText, formatRecord } from '../../src/api/index.js';
import { leafHash, hashToBase64url, emptyRange, rangeRoot } from '../../src/format/tree/compact-range.js';
import { DIGEST, event, genesis } from '../docs/ledger-kit.js';
import { Workshop, expectError } from './runner.js';

const shop = new Workshop({ ownProcesses: true });

/** Each grant stays in memory: its bounds are held against whatever comes. */
function writeGrants(path: string, count: number): void {
  const file = openSync(path, 'w');
  let prev = hashToBase64url(rangeRoot(emptyRange()));
  for (let seq = 0; seq <= count; seq += 1) {
    const one =
      seq === 0
        ? genesis()
        : event('authorization', {
            intents: { intent_digest: DIGEST },
            policy_id: `policy ${seq}`,
            policy_digest: DIGEST,
            decision: 'allow',
            decision_code: 'ALLOW',
            authorization: {
              kind: 'grant',
              bounds: {
                allowed_tools: ['a*', 'b*', 'c'],
                meter_caps: ['calls', 'usd', 'eur'].map((unit) => ({ unit, amount: { t: 'int', v: '1' } })),
              },
            },
          });
    const line = formatRecord({ eventText: canonicalText(one), meta: undefined, prev, seq, signatures: [] });
    prev = hashToBase64url(leafHash(line.subarray(0, -1)));
    writeSync(file, line);
  }
  closeSync(file);
}

describe('a ledger that needs more memory than there is', () => {
  it('ends with 2 and says so', () => {
    writeGrants(shop.path('large.jsonl'), 9_000);
    const env = { NODE_OPTIONS: '--max-old-space-size=36' };
    for (const command of [
      ['verify', 'large.jsonl'],
      ['append', 'large.jsonl', '--principal', 'agent:a1'],
    ]) {
      expectError(shop.run(command, { input: '', env }), 2, 'OUT_OF_MEMORY');
    }
    expect(shop.run(['verify', 'large.jsonl']).status).toBe(0);
  });
});
