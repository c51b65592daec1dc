/**
 * Any change of a single byte is found, with exactly these exceptions, in the last record only, which no later record
 * protects (a checkpoint would, or one more record):
 *
 * - its `meta`, which no digest and no signature covers: a change is silent as long as the line keeps its form;
 * - the `keyid` of a signature, where another signature is good or none is required: the signature turns from valid to
 *   unverified, which is a warning.
 */

import { describe, expect, test } from 'vitest';
import { examineLine, type Layout } from '../../src/format/record/examine-line.js';
import { LineSplitter } from '../../src/format/record/line-splitter.js';
import { verifyLedger } from '../../src/log/read/verify-ledger.js';
import { nodeBackend } from '../../src/format/signature/node-backend.js';
import type { SignatureBackend } from '../../src/format/signature/backend.js';
import { restoreVerification, saveVerification } from '../../src/log/cache/saved-state.js';
import { startVerification, type VerifyState } from '../../src/rules/verify/state.js';
import { verifyLine } from '../../src/rules/verify/verify-line.js';
import { fixtureBytes } from '../fixtures/cases.js';
import { samplePositions, times } from '../slow.js';

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
  const middle = Buffer.from(replacement(bytes[position], kind));
  return Buffer.concat([bytes.subarray(0, position), middle, bytes.subarray(position + 1)]);
}

interface Outcome {
  /** Changes after which the verdict is ok and there is no finding. */
  readonly silent: Change[];
  /** Changes after which the verdict is ok, with a warning. */
  readonly warned: Change[];
  found: number;
}

/** Verifies the ledger once, and at each line, from the state before it, once more for each change in that line. */
function tryChanges(bytes: Buffer, kindsAt: (position: number) => readonly Kind[]): Outcome {
  const outcome: Outcome = { silent: [], warned: [], found: 0 };
  const state = startVerification(undefined, nodeBackend);
  for (let start = 0; start < bytes.length;) {
    const end = bytes.indexOf(NEWLINE, start) + 1;
    const rest = bytes.subarray(start);
    const line = bytes.subarray(start, end - 1);
    for (let position = start; position < end; position += 1) {
      for (const kind of kindsAt(position)) {
        const change = { position, kind };
        const inLine = { position: position - start, kind };
        const after = showsAlone(line, inLine, state.layout)
          ? FOUND
          : goOn(copyState(state), apply(rest, inLine));
        if (after.hasInvalid || after.hasViolation) outcome.found += 1;
        else (after.findings === 0 ? outcome.silent : outcome.warned).push(change);
      }
    }
    goOn(state, bytes.subarray(start, end));
    start = end;
  }
  expect(state.findings).toBe(0);
  return outcome;
}

const FOUND = { hasInvalid: true, hasViolation: false, findings: 1 };

/** Whether the changed line shows it by itself, as most do: then verification finds it, whatever stands around it. */
function showsAlone(line: Buffer, change: Change, layout: Layout | undefined): boolean {
  if (change.position === line.length) return false;
  const changed = apply(line, change);
  if (changed.length === 0 || changed.includes(NEWLINE)) return false;
  return examineLine(changed, layout).faults.length > 0;
}

/** Takes the state on to the end of a ledger, or to where it is invalid. */
function goOn(state: VerifyState, rest: Uint8Array): VerifyState {
  const splitter = new LineSplitter();
  const segment = { file: '-', firstSeq: undefined };
  for (const line of splitter.push(rest)) {
    verifyLine(state, line, segment);
    if (state.hasInvalid) return state;
  }
  const torn = splitter.finish();
  if (torn !== undefined) verifyLine(state, torn, segment);
  return state;
}

/** Of a copy whose keyring is not used. */
const NO_BACKEND: SignatureBackend = {
  name: 'none',
  importKey: (publicKey) => ({ publicKey, usable: false, verify: () => false }),
};

/** The keyring is shared, once genesis has filled it: nothing else changes it, and importing a key takes long. */
function copyState(state: VerifyState): VerifyState {
  const { state: copy } = restoreVerification(saveVerification({ state, findings: [] }), NO_BACKEND);
  return {
    ...copy,
    keyring: state.records === 0 ? startVerification(undefined, nodeBackend).keyring : state.keyring,
    assumedSignatures: state.assumedSignatures,
  };
}

const everyKind = (): readonly Kind[] => KINDS;
const oneKind = (position: number): readonly Kind[] => [KINDS[position % KINDS.length]];

describe('every position of small ledgers', () => {
  test.each(['unsigned', 'bare-events'])('%s: all are found', (name) => {
    const bytes = fixtureBytes(`ledgers/${name}.jsonl`);
    const found = bytes.length * KINDS.length;
    expect(tryChanges(bytes, everyKind)).toEqual({ silent: [], warned: [], found });
  });

  test('optional-signing: all are found', () => {
    const bytes = fixtureBytes('ledgers/optional-signing.jsonl');
    expect(tryChanges(bytes, () => ['flip'])).toEqual({ silent: [], warned: [], found: bytes.length });
  });

  test('unsigned-meta: all but what keeps the form of the last meta', () => {
    const bytes = fixtureBytes('ledgers/unsigned-meta.jsonl');
    const { silent, warned } = tryChanges(bytes, everyKind);
    const meta = '{"attempt":"2","host":"node-7"}';
    const from = bytes.lastIndexOf(meta);
    const placesOf = (text: string): number[] => {
      const at = bytes.indexOf(text, from);
      return Array.from({ length: text.length }, (_, index) => at + index);
    };
    for (const { position } of silent) {
      expect(position > from && position < from + meta.length - 1).toBe(true);
    }
    // A value may become any other; a key may where the keys stay in order.
    for (const position of [...placesOf('2'), ...placesOf('node-7')]) {
      for (const kind of KINDS) expect(silent).toContainEqual({ position, kind });
    }
    for (const position of [...placesOf('attempt'), ...placesOf('host')]) {
      expect(silent).toContainEqual({ position, kind: 'double' });
    }
    expect(warned).toEqual([]);
  });

  test('multi-signature: the keyid of either signature of the last record gives a warning', () => {
    const bytes = fixtureBytes('ledgers/multi-signature.jsonl');
    const { silent, warned } = tryChanges(bytes, () => ['replace']);
    expect(silent).toEqual([]);
    const last = bytes.lastIndexOf(NEWLINE, bytes.length - 2) + 1;
    const keyids = [...bytes.toString('latin1').matchAll(/"keyid":"([^"]{43})","sig"/g)]
      .map((match) => match.index + '"keyid":"'.length)
      .filter((at) => at > last);
    expect(keyids).toHaveLength(2);
    for (const { position } of warned) {
      expect(keyids.some((at) => position >= at && position < at + 43)).toBe(true);
    }
    for (const at of keyids) {
      for (let position = at; position < at + 42; position += 1) {
        expect(warned).toContainEqual({ position, kind: 'replace' });
      }
    }
  });
});

describe('larger ledgers', () => {
  test('agent-run: one change at each of many positions', () => {
    const bytes = fixtureBytes('ledgers/agent-run.jsonl');
    const positions = new Set(samplePositions(bytes.length, times(200, bytes.length)));
    const outcome = tryChanges(bytes, (position) => (positions.has(position) ? oneKind(position) : []));
    expect(outcome).toEqual({ silent: [], warned: [], found: positions.size });
  });

  test('pipeline-1000: changes all over it', () => {
    const bytes = fixtureBytes('ledgers/pipeline-1000.jsonl');
    const step = Math.ceil(bytes.length / times(32, 112));
    const outcome = tryChanges(bytes, (position) => (position % step === 0 ? oneKind(position) : []));
    expect(outcome).toEqual({ silent: [], warned: [], found: Math.ceil(bytes.length / step) });
  });
});

test('a whole verification says the same', async () => {
  const bytes = fixtureBytes('ledgers/agent-run.jsonl');
  for (let position = 3; position < bytes.length; position += 499) {
    const [kind] = oneKind(position) as [Kind];
    const report = await verifyLedger(apply(bytes, { position, kind }));
    expect(report.verdict, `${kind} at ${position}`).toBe('invalid');
  }
});

test('a record after it protects the meta of a record', async () => {
  const text = fixtureBytes('ledgers/unsigned-meta.jsonl').toString();
  const report = await verifyLedger(Buffer.from(text.replace('"attempt":"1"', '"attempt":"7"')));
  expect(report.findings).toMatchObject([{ code: 'PREV_MISMATCH', at: { line: 3 } }]);
});
