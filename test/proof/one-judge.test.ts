/** A ledger and a proof from it are judged alike: the same trust finds the same fault with a checkpoint in both. */

import { expect, test } from 'vitest';
import { formatPublicKeyAs } from '../../src/format/key/public-key.js';
import { formatVkey } from '../../src/format/key/vkey.js';
import { cosignNote } from '../../src/format/note/note-key.js';
import { makeProof } from '../../src/proof/make-proof.js';
import type { ProofTrust } from '../../src/proof/proof-keys.js';
import { verifyProof } from '../../src/proof/verify-proof.js';
import { verifyLedger } from '../../src/log/read/verify-ledger.js';
import type { Key, TrustPolicy } from '../../src/format/schema/generated/types.js';
import { parseWitnessPolicy } from '../../src/rules/trust/witness-policy.js';
import { ownKeyEntry } from '../../src/log/writer/genesis.js';
import { ledgerOf } from '../verify/support.js';
import {
  ORIGIN,
  TIME,
  checkpointText,
  cosignatureOf,
  makeLines,
  noteOf,
  opener,
  signer,
  stranger,
  witness,
} from './support.js';

const lines = await makeLines({ events: [3] });
const text = checkpointText(lines);
const W1 = 'witness.example/w1';
const own = ownKeyEntry(signer.publicKey);
const second = { ...ownKeyEntry(stranger.publicKey), roles: ['checkpoint'] } as Key;
const cosigner = { ...ownKeyEntry(witness.publicKey), roles: ['witness'], name: W1 } as Key;

const policy = (require: object, ...keys: Key[]): ProofTrust => ({
  policy: { trust_version: '1', keys, require } as unknown as TrustPolicy,
});
const witnessPolicy = (...rows: string[]): ProofTrust => ({
  witnessPolicy: parseWitnessPolicy(Buffer.from(rows.map((row) => `${row}\n`).join(''))),
});
const logRow = `log ${formatPublicKeyAs(signer.publicKey, 'vkey', ORIGIN)}`;
const otherLogRow = `log ${formatPublicKeyAs(stranger.publicKey, 'vkey', ORIGIN)}`;
const witnessRow = `witness X ${formatVkey(W1, witness.publicKey, 'cosignature')}`;
const logAsWitnessRow = `witness L ${formatVkey('l.example', signer.publicKey, 'cosignature')}`;

const byLog = noteOf(lines);
const byBoth = noteOf(lines, { further: [cosignatureOf(lines)] });
const timeless = noteOf(lines, { further: [cosignNote(text, W1, witness, 0)] });
const byLogTwice = noteOf(lines, { further: [cosignNote(text, 'l.example', signer, TIME)] });

test.each<[string, Buffer, ProofTrust, string[]]>([
  ['one key of a quorum of one', byLog, policy({ checkpoint_quorum: 1 }, own), []],
  [
    'one key of a quorum of two',
    byLog,
    policy({ checkpoint_quorum: 2 }, own, second),
    ['CHECKPOINT_MISSING'],
  ],
  [
    'a key that only the witness policy names, in a quorum of the trust policy',
    byLog,
    { ...policy({ checkpoint_quorum: 1 }, second), ...witnessPolicy(logRow, 'quorum none') },
    ['CHECKPOINT_MISSING'],
  ],
  [
    'a key that the trust policy has for events, and the witness policy as its log',
    byLog,
    { ...policy({}, { ...own, roles: ['event'] }), ...witnessPolicy(logRow, 'quorum none') },
    [],
  ],
  [
    'a witness policy that names another log',
    byLog,
    { ...policy({}, own), ...witnessPolicy(otherLogRow, 'quorum none') },
    ['CHECKPOINT_MISSING'],
  ],
  ['a witness too few', byLog, policy({ witness_threshold: 1 }, own, cosigner), ['WITNESS_QUORUM']],
  ['a witness', byBoth, policy({ witness_threshold: 1 }, own, cosigner), []],
  ['a witness without a time', timeless, policy({ witness_threshold: 1 }, own, cosigner), ['WITNESS_QUORUM']],
  ['a witness of the file', byBoth, { ...policy({}, own), ...witnessPolicy(witnessRow, 'quorum X') }, []],
  [
    'a key that is pinned for the log and as a witness, in two policies',
    byLogTwice,
    { ...policy({}, own), ...witnessPolicy(logAsWitnessRow, 'quorum L') },
    ['WITNESS_QUORUM'],
  ],
])('%s is judged alike in a proof and beside a ledger', async (_what, note, trust, expected) => {
  const { bytes } = await makeProof(opener(lines), '3', { checkpoint: note });
  const proof = verifyProof(bytes, trust);
  expect(proof.problems.map(({ code }) => code)).toEqual(expected);
  const report = await verifyLedger(ledgerOf(lines), {
    checkpoints: [{ name: 'kept', note }],
    ...(trust.policy === undefined ? {} : { trust: trust.policy }),
    ...(trust.witnessPolicy === undefined ? {} : { witnessPolicy: trust.witnessPolicy }),
  });
  const ofCheckpoint = report.findings.filter(
    ({ code, severity }) => /^(?:CHECKPOINT|WITNESS)_/.test(code) && severity === 'error',
  );
  expect(ofCheckpoint.map(({ code }) => code)).toEqual(expected);
  if (proof.verdict === 'invalid') expect(report.verdict).toBe('invalid');
});
