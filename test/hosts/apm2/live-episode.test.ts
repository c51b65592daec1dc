/** An agent behind the kernel: what it asks for is decided, done, recorded and answered, and nothing else. */

import { describe, expect, it } from 'vitest';
import { runScript, verify, wrongIn } from './live-kit.js';

const READ = 'ask r1 fs.read \'{"path":"notes.txt"}\'';
const DONE = 'echo \'{"done":true}\'';

describe('an episode', () => {
  it('is decided, executed, answered and reviewed', async () => {
    const { result, ledger, log } = await runScript(`echo hello; ${READ}; echo "saw $answer"; ${DONE}`);
    expect(result).toMatchObject({
      review: 'recorded',
      reason: undefined,
      exitStatus: 0,
      counts: { requests: 1, allowed: 1, denied: 0 },
    });
    expect(log).toMatch(
      /^hello\n⟦TI1 [0-9a-f]{16}⟧ r1 fs\.read \S+\n⟦TR1 [0-9a-f]{16}⟧ r1 ok [0-9a-f]{64}\nsaw ⟦TR1/,
    );
    expect(wrongIn(result.record)).toEqual([]);
    expect((await verify(ledger)).verdict).toBe('ok');
  });
});
