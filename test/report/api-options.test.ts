/** What plain JavaScript gives the API and TypeScript would refuse: each is a TypeError that names it. */

import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import {
  buildEvent,
  createSigner,
  makeConsistencyProof,
  makeProof,
  readRecords,
  verifyConsistencyProof,
  verifyLedger,
  verifyProof,
} from '../../src/api/index.js';
import { openLedgerSource } from '../../src/log/fs/source.js';
import { findRecord } from '../../src/log/read/read-records.js';
import { readKeyList } from '../../src/rules/report/key-list.js';

const LEDGER = 'fixtures/ledgers/agent-run.jsonl';

/** As plain JavaScript calls it. */
const js = <T>(value: unknown): T => value as T;
const open = (): ReturnType<typeof openLedgerSource> => openLedgerSource(LEDGER);
const drain = async (options: object): Promise<void> => {
  for await (const _record of readRecords(await open(), options)) return;
};
const empty = new Uint8Array();

describe('an option that is not known', () => {
  it.each<readonly [string, string, () => unknown]>([
    ['verifyLedger', 'checkpoint', () => verifyLedger(LEDGER, js({ checkpoint: [] }))],
    ['verifyLedger', 'policy', () => verifyLedger(LEDGER, js({ policy: {} }))],
    ['readRecords', 'verifies', () => drain({ verifies: {} })],
    ['readRecords', 'policy', () => drain({ verify: { policy: {} } })],
    ['buildEvent', 'occuredAt', async () => Promise.resolve(buildEvent({}, js({ occuredAt: 'now' })))],
    ['readKeyList', 'policy', async () => readKeyList(await open(), js({ policy: {} }))],
    ['makeProof', 'checkpoints', () => makeProof(open, '0', js({ checkpoints: empty }))],
    ['makeConsistencyProof', 'extra', () => makeConsistencyProof(open, empty, js({ extra: true }))],
    ['verifyProof', 'key', async () => Promise.resolve(verifyProof(empty, js({ key: [] })))],
    ['verifyProof', 'extra', async () => Promise.resolve(verifyProof(empty, {}, js({ extra: empty })))],
    [
      'verifyConsistencyProof',
      'trust',
      async () => Promise.resolve(verifyConsistencyProof(empty, empty, js({ trust: {} }))),
    ],
  ])('of %s, %s, is named', async (where, option, call) => {
    const refusal: unknown = await Promise.resolve()
      .then(call)
      .catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(TypeError);
    expect((refusal as TypeError).message).toContain(where);
    expect((refusal as TypeError).message).toMatch(new RegExp(`\\b${option}\\b`));
  });

  it('is told of with the one that was meant', async () => {
    await expect(verifyLedger(LEDGER, js({ checkpoint: [] }))).rejects.toThrow(/checkpoints/);
  });
});

describe('an option of the wrong type', () => {
  it.each<readonly [string, string, () => unknown]>([
    ['verifyLedger', 'trust', () => verifyLedger(LEDGER, js({ trust: 'trust.json' }))],
    ['verifyLedger', 'checkpoints', () => verifyLedger(LEDGER, js({ checkpoints: 'note' }))],
    ['verifyLedger', 'options', () => verifyLedger(LEDGER, js('trust.json'))],
    ['readRecords', 'onUnread', () => drain({ onUnread: true })],
    ['findRecord', 'record', async () => findRecord(await open(), js(1))],
    ['makeProof', 'record', () => makeProof(open, js(1))],
    ['makeProof', 'checkpoint', () => makeProof(open, '0', js({ checkpoint: 'note' }))],
    ['verifyProof', 'trust', async () => Promise.resolve(verifyProof(empty, js('key.pub')))],
    ['createSigner', 'private key', async () => Promise.resolve(createSigner(js('key.pem')))],
  ])('of %s, %s, is named', async (where, option, call) => {
    const refusal: unknown = await Promise.resolve()
      .then(call)
      .catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(TypeError);
    expect((refusal as TypeError).message).toContain(where);
    expect((refusal as TypeError).message).toContain(option);
  });

  it.each([pathToFileURL(LEDGER), 7, undefined, null, {}])(
    'and so is a ledger that is %s',
    async (ledger) => {
      await expect(verifyLedger(js(ledger))).rejects.toThrow(TypeError);
    },
  );

  it('says nothing of the value, which may be a secret', async () => {
    await expect(verifyLedger(LEDGER, js({ trust: 'hunter2' }))).rejects.not.toThrow(/hunter2/);
  });
});

it('an option that is undefined is one that is not given', async () => {
  const options = { trust: undefined, checkpoints: undefined, now: undefined, signal: undefined };
  expect((await verifyLedger(LEDGER, options)).verdict).toBe('ok');
});
