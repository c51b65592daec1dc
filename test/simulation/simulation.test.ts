/**
 * Seeds of faults, with the real writers, gates and sweepers: whatever fails, the invariants hold. A failure names its seed, which
 * `SIM_SEED` replays with its trace; `SIM_SEEDS` runs as many.
 */

import { describe, expect, it } from 'vitest';
import { findBroken } from '../invariants.js';
import { simulate } from './world.js';
import { times } from '../slow.js';

const ONE = process.env['SIM_SEED'];
const SEEDS = Number(process.env['SIM_SEEDS'] ?? times(200, 1_000));
const FIRST = Number(ONE ?? process.env['SIM_FIRST'] ?? 1);
const AT_ONCE = 20;
/** Lines of a trace that are shown unless one seed is replayed. */
const SHOWN = 60;

async function faultsOf(seed: number, setsClocks = false): Promise<string | undefined> {
  const { history, trace } = await simulate({ seed, setsClocks });
  if (ONE !== undefined) process.stdout.write(`${trace.join('\n')}\n`);
  const { sound = [], ...others } = findBroken(history);
  // An execution during which its machine's clock was set has other times than it took: `concurrency-held` counts what ran.
  const unsound = sound.filter((found) => !(setsClocks && found.startsWith('CONCURRENCY_EXCEEDED')));
  const broken = unsound.length === 0 ? others : { ...others, sound: unsound };
  if (Object.keys(broken).length === 0 && history.surprises.length === 0) return undefined;
  const found = JSON.stringify({ ...broken, surprises: history.surprises }, undefined, 1);
  return `SIM_SEED=${seed}\n${found}\n${trace.slice(-SHOWN).join('\n')}`;
}

describe('whatever fails', () => {
  const count = ONE === undefined ? SEEDS : 1;
  const chunks = Array.from({ length: Math.ceil(count / AT_ONCE) }, (_, n) => FIRST + n * AT_ONCE);
  it.each(chunks)('the invariants hold, seeds from %i on', async (first) => {
    for (let seed = first; seed < Math.min(first + AT_ONCE, FIRST + count); seed += 1)
      expect(await faultsOf(seed)).toBeUndefined();
  });

  it.each(chunks.slice(0, Math.ceil(chunks.length / 8)))(
    'they hold while clocks are set, seeds from %i on',
    async (first) => {
      for (let seed = first; seed < Math.min(first + AT_ONCE, FIRST + count); seed += 1)
        expect(await faultsOf(seed, true)).toBeUndefined();
    },
  );
});
