/** Random histories of a ledger against a model of it that is only a list of ids. */

import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Ledger } from '../../src/log/writer/ledger.js';
import { soundFileSystem } from './file-systems.js';
import {
  draft,
  expectSound,
  lastFile,
  openLedger,
  openUnsigned,
  readRecords,
  temporaryFolder,
} from './support.js';

type Step =
  | { readonly do: 'append'; readonly drafts: readonly { readonly n: number; readonly meta: boolean }[] }
  | { readonly do: 'append any'; readonly members: object }
  | { readonly do: 'refused' }
  | { readonly do: 'reopen' }
  | { readonly do: 'tear'; readonly tail: string };

const steps = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        do: fc.constant('append' as const),
        drafts: fc.array(fc.record({ n: fc.nat(30), meta: fc.boolean() }), { maxLength: 8 }),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        do: fc.constant('append any' as const),
        members: fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue()),
      }),
    },
    fc.record({ do: fc.constant('refused' as const) }),
    fc.record({ do: fc.constant('reopen' as const) }),
    fc.record({
      do: fc.constant('tear' as const),
      tail: fc.string({ unit: 'binary', minLength: 1 }).map((text) => text.replaceAll('\n', ' ')),
    }),
  ),
  { maxLength: 12 },
);

test('whatever is done with a ledger, it verifies and holds each event once, in order', async () => {
  const folder = temporaryFolder();
  let run = 0;
  await fc.assert(
    fc.asyncProperty(
      steps,
      fc.constantFrom(openLedger, openUnsigned),
      fc.option(fc.integer({ min: 1, max: 5_000 }), { nil: undefined }),
      async (history, open, segmentBytes) => {
        run += 1;
        const path = join(folder, segmentBytes === undefined ? `${run}.jsonl` : `${run}/`);
        const model: string[] = [];
        const reopen = (): Promise<Ledger> =>
          open(path, {
            fileSystem: soundFileSystem,
            ...(segmentBytes === undefined ? {} : { segmentBytes }),
          });
        let ledger = await reopen();
        const enter = async (calls: readonly ReturnType<Ledger['append']>[]): Promise<void> => {
          for (const outcome of await Promise.allSettled(calls)) {
            if (outcome.status === 'rejected') continue;
            const { seq, eventId, status } = outcome.value;
            if (status === 'appended') expect(model.push(eventId)).toBe(seq);
            else expect(model[seq - 1]).toBe(eventId);
          }
        };
        for (const step of history as Step[]) {
          switch (step.do) {
            case 'append':
              await enter(
                step.drafts.map(({ n, meta }) =>
                  ledger.append({ event: draft(n), ...(meta ? { meta: { n: `${n}` } } : {}) }),
                ),
              );
              break;
            case 'append any':
              await enter([ledger.append({ event: { ...step.members, event_type: 'x.any' } })]);
              break;
            case 'refused':
              await enter([
                ledger.append({ event: {} }),
                ledger.append({ event: draft(1, { event_type: 5 }) }),
              ]);
              break;
            case 'reopen':
              await ledger.close();
              ledger = await reopen();
              break;
            case 'tear':
              await ledger.close();
              appendFileSync(lastFile(path), step.tail);
              ledger = await reopen();
              break;
          }
          expect(ledger.size).toBe(model.length + 1);
        }
        await ledger.close();
        const ids = readRecords(path).map(({ event }) => `sha-256:${event.event_id.b64}`);
        expect(ids.slice(1)).toEqual(model);
        await expectSound(path, model.length + 1);
      },
    ),
    { numRuns: 60 },
  );
});
