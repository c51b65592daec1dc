/**
 * Ledgers of any records that seal, add keys and revoke them: one report however they are read, and as far sealed as a model that
 * knows who signed what says.
 */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { AnyEvent } from '../../src/format/event/build.js';
import { bytesSource } from '../bytes-source.js';
import { formatPublicKeyAs } from '../../src/format/key/public-key.js';
import { cosignNote, signNote } from '../../src/format/note/note-key.js';
import type { NoteSignature } from '../../src/format/note/signed-note.js';
import { buildReport, type Report } from '../../src/rules/report/report.js';
import { verifyLedger } from '../../src/log/read/verify-ledger.js';
import { checkReport } from '../../src/format/schema/check.js';
import type { Key, TrustPolicy } from '../../src/format/schema/generated/types.js';
import { nobleBackend } from '../signature/noble-backend.js';
import type { Signer } from '../../src/format/signature/signer.js';
import { parseWitnessPolicy } from '../../src/rules/trust/witness-policy.js';
import { runVerification, type VerifyOptions } from '../../src/rules/verify/run-verification.js';
import { restoreVerification, saveVerification } from '../../src/log/cache/saved-state.js';
import type { SavedVerification } from '../../src/rules/verify/verified-prefix.js';
import { genesis, keyOf, makeSigner, note } from '../docs/ledger-kit.js';
import { CASES, fixtureBytes, optionsOf } from '../fixtures/cases.js';
import { LedgerMaker, ORIGIN, anchorOf, attestationOf, keyEvent } from './seal-kit.js';
import { samplePositions, times } from '../slow.js';
import { inChunks, ledgerOf, linesOf, rememberingBackend } from './support.js';

const backend = rememberingBackend();

/** An admin that is never revoked, and three keys that come and go. */
const SIGNERS = Array.from({ length: 4 }, () => makeSigner());
const WITNESS = makeSigner();
const ROLES: readonly Key['roles'][] = [
  ['event', 'checkpoint', 'admin'],
  ['event', 'checkpoint'],
  ['event'],
  ['checkpoint'],
];
const signer = (n: number): Signer => SIGNERS[n];
const entry = (n: number): Key => keyOf(signer(n), { roles: ROLES[n] });
const WITNESS_KEY = keyOf(WITNESS, { roles: ['witness'], name: 'w.example' });

/** What is appended next. Numbers name signers, and checkpoints from the first on. */
type Step =
  | { readonly kind: 'note'; readonly by: readonly number[] }
  | { readonly kind: 'add' | 'revoke'; readonly key: number; readonly by: readonly number[] }
  | {
      readonly kind: 'checkpoint';
      readonly lines: readonly number[];
      readonly cosigned: boolean;
      readonly fault: 'none' | 'size' | 'root' | 'note' | 'signature';
    }
  | {
      readonly kind: 'attestation';
      readonly of: number;
      readonly lines: readonly number[];
      readonly cosigned: boolean;
    };

const someone = fc.integer({ min: 0, max: 3 });
const some = fc.uniqueArray(someone, { minLength: 1, maxLength: 2 });
const key = fc.integer({ min: 1, max: 3 });
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constant('note' as const), by: some }),
    fc.record({ kind: fc.constantFrom('add' as const, 'revoke' as const), key, by: some }),
    fc.record({
      kind: fc.constant('checkpoint' as const),
      lines: some,
      cosigned: fc.boolean(),
      fault: fc.constantFrom(
        ...(['none', 'none', 'none', 'none', 'size', 'root', 'note', 'signature'] as const),
      ),
    }),
    fc.record({
      kind: fc.constant('attestation' as const),
      of: fc.nat(5),
      lines: some,
      cosigned: fc.boolean(),
    }),
  ),
  { maxLength: 12 },
);

/** What a step made, and what the model says of it. */
interface Made {
  readonly bytes: Buffer;
  /** The texts of checkpoints over the whole ledger after each record. */
  readonly texts: readonly string[];
  /** The size of the largest tree that a right checkpoint by an entitled key seals. */
  readonly sealed: number | null;
}

function make(list: readonly Step[]): Made {
  const maker = new LedgerMaker();
  maker.append(genesis([entry(0), entry(1)]), signer(0));
  const texts = [maker.text()];
  const known = new Set([0, 1]);
  const revoked = new Set<number>();
  const checkpoints: { event: AnyEvent; size: number; isRight: boolean; isSigned: boolean }[] = [];
  const may = (n: number, role: Key['roles'][number]): boolean =>
    known.has(n) && !revoked.has(n) && ROLES[n].includes(role);
  const by = (signers: readonly number[]): Signer[] => signers.map(signer);
  for (const [index, step] of list.entries()) {
    if (step.kind === 'note') maker.append(note(index), ...by(step.by));
    if (step.kind === 'add' || step.kind === 'revoke') {
      maker.append(keyEvent(step.kind, entry(step.key), { reason: `step ${index}` }), ...by(step.by));
      if (step.by.some((n) => may(n, 'admin'))) {
        if (step.kind === 'add') known.add(step.key);
        else if (known.has(step.key)) revoked.add(step.key);
      }
    }
    if (step.kind === 'checkpoint') {
      const text = maker.text(step.fault === 'note' ? 'example.com/other' : undefined);
      const lines = linesFor(text, step);
      const size = maker.lines.length;
      const event = maker.checkpoint(
        `${text}\n${lines}`,
        step.fault === 'size'
          ? { tree_size: size + 1 }
          : step.fault === 'root'
            ? { root: { alg: 'sha-256', b64: 'A'.repeat(43) } }
            : {},
      );
      maker.append(event, signer(0));
      const isSigned = step.fault !== 'signature' && step.lines.some((n) => may(n, 'checkpoint'));
      checkpoints.push({
        event,
        size,
        isRight: ['none', 'signature'].includes(step.fault),
        isSigned: step.fault !== 'note' && isSigned,
      });
    }
    if (step.kind === 'attestation') {
      const of = checkpoints[step.of];
      if (of === undefined) continue;
      const note = (text: string): NoteSignature[] => [
        ...step.lines.map((n) => signNote(text, ORIGIN, signer(n))),
        ...(step.cosigned ? [cosignNote(text, 'w.example', WITNESS, 1_700_000_000 + index)] : []),
      ];
      maker.append(attestationOf(of.event, note, { context_digest: contextOf(index) }), signer(0));
      if (step.lines.some((n) => may(n, 'checkpoint'))) of.isSigned = true;
    }
    texts.push(maker.text());
  }
  const sizes = checkpoints.filter(({ isRight, isSigned }) => isRight && isSigned).map(({ size }) => size);
  return { bytes: maker.bytes, texts, sealed: sizes.length === 0 ? null : Math.max(...sizes) };
}

function contextOf(index: number): object {
  return { alg: 'sha-256', b64: `${String.fromCharCode(65 + index)}${'A'.repeat(42)}` };
}

function linesFor(
  text: string,
  { lines, cosigned, fault }: Extract<Step, { readonly kind: 'checkpoint' }>,
): string {
  const signed = fault === 'signature' ? `${text}x` : text;
  const all = [
    ...lines.map((n) => signNote(signed, ORIGIN, signer(n))),
    ...(cosigned ? [cosignNote(text, 'w.example', WITNESS, 1_700_000_000)] : []),
  ];
  return all
    .map(({ name, keyId, signature }) => {
      const bytes = Buffer.concat([Buffer.from(keyId, 'hex'), signature]);
      return `— ${name} ${bytes.toString('base64')}\n`;
    })
    .join('');
}

const POLICY: TrustPolicy = {
  trust_version: '1',
  origins: [ORIGIN],
  keys: [entry(0), entry(2), WITNESS_KEY],
  require: {
    checkpoint_quorum: 1,
    witness_threshold: 1,
    checkpoint_max_records: 2,
    checkpoint_max_age_seconds: 60,
    max_unsealed_records: 1,
  },
};
const WITNESS_POLICY = parseWitnessPolicy(
  Buffer.from(
    `log ${formatPublicKeyAs(signer(1).publicKey, 'vkey', ORIGIN)}
witness W ${formatPublicKeyAs(WITNESS.publicKey, 'cosigner', 'w.example')}
quorum W
`,
  ),
);

const options = fc.record(
  {
    trust: fc.constant(POLICY),
    witnessPolicy: fc.constant(WITNESS_POLICY),
    now: fc.constantFrom('2026-01-02T00:00:30Z', '2026-01-02T00:02:00Z'),
  },
  { requiredKeys: ['now'] },
);

async function verify(bytes: Buffer, given: VerifyOptions, from?: SavedVerification) {
  const result = await runVerification(bytesSource(bytes, '-'), {
    backend,
    ...given,
    ...(from === undefined ? {} : { from }),
  });
  const saved = saveVerification({ state: result.state, findings: result.kept });
  return { report: buildReport(result), saved };
}

describe('random ledgers', () => {
  test('are sealed as far as the model says, and have reports of the right form', async () => {
    let sealed = 0;
    const numRuns = times(60, 250);
    await fc.assert(
      fc.asyncProperty(steps, async (list) => {
        const made = make(list);
        const report = await verifyLedger(made.bytes, { backend });
        expect(report.checkpoints.last_tree_size).toBe(made.sealed);
        expect(checkReport(JSON.parse(JSON.stringify(report)))).toEqual([]);
        const { by_verdict: counts } = report.counts;
        expect(counts.ok + counts.denied + counts.violation + counts.invalid).toBe(report.ledger.records);
        if (counts.invalid > 0) expect(report.verdict).toBe('invalid');
        if (made.sealed !== null) sealed += 1;
      }),
      { numRuns },
    );
    // Some three in ten are sealed. Of few, chance decides.
    if (numRuns >= 60) expect(sealed).toBeGreaterThan(2);
  });

  test('have one report in any chunks, resumed anywhere, by either backend', async () => {
    await fc.assert(
      fc.asyncProperty(
        steps,
        options,
        fc.array(fc.tuple(fc.nat(12), fc.boolean()), { maxLength: 2 }),
        fc.array(fc.nat(12), { maxLength: 3 }),
        fc.integer({ min: 1, max: 3_000 }),
        async (list, given, held, stops, size) => {
          const { bytes, texts } = make(list);
          const checkpoints = held.map(([at, isForged], n) => {
            const text = texts[at % texts.length];
            return anchorOf(isForged ? text.replace(/\n(\d+)\n/, '\n1$1\n') : text, signer(n), `${n}`);
          });
          const all = { ...given, checkpoints };
          const { report } = await verify(bytes, all);
          const stream = inChunks(bytes, size);
          expect(await verifyLedger(stream, { backend, ...all })).toEqual(report);
          const lines = linesOf(bytes);
          let from: SavedVerification | undefined;
          for (const stop of stops.map((each) => each % (lines.length + 1)).sort((x, y) => x - y)) {
            const { saved } = await verify(ledgerOf(lines.slice(0, stop)), given, from);
            from = restoreVerification(saved, backend);
          }
          expect((await verify(bytes, all, from)).report).toEqual(report);
        },
      ),
      { numRuns: times(40, 200) },
    );
  });

  test('have one report by either backend', async () => {
    await fc.assert(
      fc.asyncProperty(steps, options, async (list, given) => {
        const { bytes } = make(list);
        const noble = await verifyLedger(bytes, { ...given, backend: nobleBackend });
        expect(noble).toEqual(await verifyLedger(bytes, { ...given, backend }));
      }),
      { numRuns: 15 },
    );
  });
});

describe('fixtures with checkpoints and keys that change', () => {
  const chosen = CASES.filter(
    ({ ledger, trust, witness_policy: witnesses, checkpoints }) =>
      ledger.endsWith('.jsonl') &&
      fixtureBytes(ledger).length < 12_000 &&
      (/checkpoint|key-|seal|witness|cosigned|truncated|forked/.test(`${ledger} ${trust}`) ||
        witnesses !== undefined ||
        checkpoints !== undefined),
  );

  test('are more than ninety', () => {
    expect(chosen.length).toBeGreaterThan(90);
  });

  test('go on after any line as if nothing had happened', async () => {
    // What parents say is not part of a saved state.
    for (const fixture of chosen.filter(({ parents }) => parents === undefined)) {
      const bytes = fixtureBytes(fixture.ledger);
      // Without a time of its own a report is of the present, which two of them do not share.
      const given = { now: '2026-01-02T00:00:00Z', ...optionsOf(fixture) };
      const { report } = await verify(bytes, given);
      const lines = linesOf(bytes);
      for (const count of samplePositions(lines.length + 1, Math.max(2, times(3, 4)))) {
        const { saved } = await verify(ledgerOf(lines.slice(0, count)), given);
        const from = restoreVerification(saved, backend);
        expect((await verify(bytes, given, from)).report, `${fixture.ledger} ${count}`).toEqual(report);
      }
    }
  });

  test('have one report by either backend', async () => {
    const few = chosen.filter((_, index) => index % 5 === 0);
    for (const fixture of few) {
      const bytes = fixtureBytes(fixture.ledger);
      const given = (): VerifyOptions => ({ now: '2026-01-02T00:00:00Z', ...optionsOf(fixture) });
      const noble: Report = await verifyLedger(bytes, { ...given(), backend: nobleBackend });
      expect(noble, fixture.ledger).toEqual(await verifyLedger(bytes, { ...given(), backend }));
    }
  });
});
