/**
 * Any change of a single byte is found, with exactly these exceptions, in the last record only, which no later record
 * protects (a checkpoint would, or one more record):
 *
 * - its `meta`, which no digest and no signature covers: a change is silent as long as the line keeps its form;
 * - the `keyid` of a signature, where another signature is good or none is required: the signature turns from valid to
 *   unverified, which is a warning.
 */

import { describe, expect, test } from 'vitest';
import { examineLine, type Layout } from '../../src/ledger/examine-line.js';
import { verifyLedger } from '../../src/report/verify-ledger.js';
import { fixtureBytes } from '../fixtures/cases.js';
import { linesOf, rememberingVerifier } from './support.js';

const NEWLINE = 0x0a;
const KINDS = ['flip', 'replace', 'delete', 'insert', 'double'] as const;
type Kind = (typeof KINDS)[number];

interface Change {
  readonly position: number;
  readonly kind: Kind;
}

/** The bytes that stand in place of the one at `position`. */
function replacement(byte: number, kind: Kind): number[] {
  switch (kind) {
    case 'flip':
      return [byte ^ 1];
    case 'replace':
      return [alike(byte)];
    case 'delete':
      return [];
    case 'insert':
      return [0x61, byte];
    case 'double':
      return [byte, byte];
  }
}

/** Another byte of the same sort, so that the text keeps its form where it can: a digit, a letter, else a space. */
function alike(byte: number): number {
  const character = String.fromCharCode(byte);
  if (/[0-9]/.test(character)) return 0x30 + ((byte - 0x30 + 1) % 10);
  if (/[a-z]/.test(character)) return 0x61 + ((byte - 0x61 + 1) % 26);
  if (/[A-Z]/.test(character)) return 0x41 + ((byte - 0x41 + 1) % 26);
  if (character === '-' || character === '_') return byte ^ 0x72;
  return byte === 0x20 ? 0x5f : 0x20;
}

function apply(bytes: Buffer, { position, kind }: Change): Buffer {
  const middle = Buffer.from(replacement(bytes[position] as number, kind));
  return Buffer.concat([bytes.subarray(0, position), middle, bytes.subarray(position + 1)]);
}

/** Whether the changed line shows it by itself: most do, and then the rest of the ledger need not be looked at. */
function showsAlone(bytes: Buffer, change: Change, layout: Layout): boolean {
  const { position, kind } = change;
  const start = bytes.lastIndexOf(NEWLINE, position - 1) + 1;
  const line = bytes.subarray(start, bytes.indexOf(NEWLINE, position));
  const changed = apply(line, { position: position - start, kind });
  if (bytes[position] === NEWLINE || changed.length === 0 || changed.includes(NEWLINE)) return false;
  return examineLine(changed, layout).issues.length > 0;
}

interface Outcome {
  /** Changes after which the verdict is ok and there is no finding more. */
  readonly silent: Change[];
  /** Changes after which the verdict is ok, with a warning. */
  readonly warned: Change[];
}

async function tryChanges(bytes: Buffer, kindsAt: (position: number) => readonly Kind[]): Promise<Outcome> {
  const verifier = rememberingVerifier();
  const layout = (await verifyLedger(bytes, { verifier })).not_checked.some(({ code }) => code === 'CHAIN')
    ? 'bare'
    : 'records';
  const outcome: Outcome = { silent: [], warned: [] };
  for (let position = 0; position < bytes.length; position += 1) {
    for (const kind of kindsAt(position)) {
      const change = { position, kind };
      if (showsAlone(bytes, change, layout)) continue;
      const report = await verifyLedger(apply(bytes, change), { verifier });
      if (report.verdict === 'invalid') continue;
      expect(report.verdict, `${kind} at ${position}`).toBe('ok');
      if (report.findings.length === 0) outcome.silent.push(change);
      else {
        expect(report.findings).toMatchObject([{ code: 'KEY_UNKNOWN', severity: 'warning' }]);
        outcome.warned.push(change);
      }
    }
  }
  return outcome;
}

const everyKind = (): readonly Kind[] => KINDS;
const oneKind = (position: number): readonly Kind[] => [KINDS[position % KINDS.length] as Kind];

describe('every position, every kind of change', () => {
  test.each([
    'unsigned',
    'bare-events',
    'optional-signing',
    'p256',
    'prev-event-links',
    'nesting-64',
  ])('%s: all are found', async (name) => {
    const outcome = await tryChanges(fixtureBytes(`ledgers/${name}.jsonl`), everyKind);
    expect(outcome).toEqual({ silent: [], warned: [] });
  });

  test('unsigned-meta: all but what keeps the form of the last meta', async () => {
    const bytes = fixtureBytes('ledgers/unsigned-meta.jsonl');
    const { silent, warned } = await tryChanges(bytes, everyKind);
    const meta = '{"attempt":"2","host":"node-7"}';
    const from = bytes.lastIndexOf(meta);
    const insideValue = (text: string): number[] => {
      const at = bytes.indexOf(text, from);
      return Array.from({ length: text.length }, (_, index) => at + index);
    };
    const values = new Set([...insideValue('2'), ...insideValue('node-7')]);
    const keys = new Set([...insideValue('attempt'), ...insideValue('host')]);
    const has = (position: number, kind: Kind): boolean =>
      silent.some((change) => change.position === position && change.kind === kind);
    for (const { position } of silent) {
      expect(position >= from && position < from + meta.length).toBe(true);
    }
    // A value may become any other; a key may where the keys stay in order.
    for (const position of values) for (const kind of KINDS) expect(has(position, kind)).toBe(true);
    for (const position of keys) expect(has(position, 'double')).toBe(true);
    expect(warned).toEqual([]);
  });

  test('multi-signature: the keyid of either signature of the last record is a warning', async () => {
    const bytes = fixtureBytes('ledgers/multi-signature.jsonl');
    const { silent, warned } = await tryChanges(bytes, everyKind);
    expect(silent).toEqual([]);
    const last = bytes.lastIndexOf(NEWLINE, bytes.length - 2) + 1;
    const keyids = [...bytes.toString('latin1').matchAll(/"keyid":"([^"]{43})","sig"/g)]
      .map((match) => match.index + '"keyid":"'.length)
      .filter((at) => at > last);
    expect(keyids).toHaveLength(2);
    const isKeyid = (position: number): boolean => keyids.some((at) => position >= at && position < at + 43);
    expect(warned.every(({ position, kind }) => isKeyid(position) && kind !== 'delete')).toBe(true);
    for (const at of keyids) {
      for (let position = at; position < at + 42; position += 1) {
        expect(warned).toContainEqual({ position, kind: 'replace' });
      }
    }
  });
});

describe('larger ledgers', () => {
  test('agent-run: one change at every position', async () => {
    const outcome = await tryChanges(fixtureBytes('ledgers/agent-run.jsonl'), oneKind);
    expect(outcome).toEqual({ silent: [], warned: [] });
  });

  test('pipeline-1000: changes all over it', async () => {
    const bytes = fixtureBytes('ledgers/pipeline-1000.jsonl');
    const verifier = rememberingVerifier();
    for (let sample = 0; sample < 40; sample += 1) {
      const position = Math.floor((bytes.length * (sample + 0.5)) / 40);
      const kind = KINDS[sample % KINDS.length] as Kind;
      const report = await verifyLedger(apply(bytes, { position, kind }), { verifier });
      expect(report.verdict, `${kind} at ${position}`).toBe('invalid');
    }
  });
});

test('a line that shows a change by itself is one that verification finds', async () => {
  const bytes = fixtureBytes('ledgers/agent-run.jsonl');
  const verifier = rememberingVerifier();
  for (let position = 3; position < bytes.length; position += 211) {
    const change = { position, kind: KINDS[position % KINDS.length] as Kind };
    if (!showsAlone(bytes, change, 'records')) continue;
    expect((await verifyLedger(apply(bytes, change), { verifier })).verdict).toBe('invalid');
  }
});

test('a record after it protects the meta of a record', async () => {
  const lines = linesOf(fixtureBytes('ledgers/unsigned-meta.jsonl'));
  const [genesis, first, last] = lines.map(String) as [string, string, string];
  const changed = first.replace('"attempt":"1"', '"attempt":"7"');
  expect(changed).not.toBe(first);
  const report = await verifyLedger(Buffer.from(`${[genesis, changed, last].join('\n')}\n`));
  expect(report.findings).toMatchObject([{ code: 'PREV_MISMATCH', at: { line: 3 } }]);
});
