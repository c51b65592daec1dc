/** COSE receipts: made from a ledger, verified here and by others' code. */

import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { encodeCbor, parseCbor } from '../../src/base/cbor/codec.js';
import { TaggedCbor, type CborKey, type CborValue } from '../../src/base/cbor/value.js';
import { formatReceipt } from '../../src/format/cose/receipt.js';
import { signCoseSign1 } from '../../src/format/cose/sign1.js';
import { exportReceipts, type RecordReceipt } from '../../src/out/export/receipts.js';
import { bytesSource } from '../bytes-source.js';
import { generatePrivateKey } from '../../src/format/key/private-key.js';
import { formatPublicKeyAs } from '../../src/format/key/public-key.js';
import { parseNoteKey } from '../../src/format/note/note-key.js';
import { makeReceipt } from '../../src/proof/make-receipt.js';
import { isReceipt, verifyReceipt, type ReceiptResult } from '../../src/proof/verify-receipt.js';
import type { TrustPolicy } from '../../src/format/schema/generated/types.js';
import { createSigner, type Signer } from '../../src/format/signature/signer.js';
import { leafHash } from '../../src/format/tree/compact-range.js';
import { toDigestText } from '../../src/base/value/digest.js';
import { ownKeyEntry } from '../../src/log/writer/genesis.js';
import { logKey, makeLines, ORIGIN, rootOf, signer, stranger, witnessKey } from '../proof/support.js';
import { ledgerOf } from '../verify/support.js';

const lines = await makeLines({ events: [3, 2] });
const open = () => Promise.resolve(bytesSource(ledgerOf(lines), 'ledger.jsonl'));
/** Reads a COSE message. */
function decodeCbor(bytes: Uint8Array): CborValue {
  return parseCbor(bytes, new Set([18]));
}

const made = await makeReceipt(open, '3', { signer });
const p256 = createSigner(generatePrivateKey('p256'));

function verify(
  receipt: Uint8Array,
  trust: Parameters<typeof verifyReceipt>[1] = { keys: [logKey] },
  entry: Uint8Array | undefined = made.entry,
): ReceiptResult {
  return verifyReceipt(receipt, trust, entry === undefined ? {} : { entry });
}

function codesOf({ verdict, problems }: ReceiptResult): string[] {
  return [verdict, ...problems.map(({ code }) => code)];
}

/** A receipt of the one leaf of a tree. */
function receiptOf(entry: Uint8Array, by: Signer, issuer = ORIGIN): Uint8Array {
  return formatReceipt({ issuer, size: 1, index: 0, hashes: [], root: leafHash(entry) }, by);
}

/** The made receipt with other parts. */
function rebuilt(change: (parts: CborValue[]) => void): Uint8Array {
  const parts = [...((decodeCbor(made.bytes) as TaggedCbor).value as readonly CborValue[])];
  change(parts);
  return encodeCbor(new TaggedCbor(18, parts));
}

describe('a receipt', () => {
  it('proves a record to whoever has the key and the record', () => {
    const result = verify(made.bytes);
    expect(result).toMatchObject({
      verdict: 'ok',
      exit_status: 0,
      origin: ORIGIN,
      index: 3,
      event_id: toDigestText(made.eventId.replace('sha-256:', '')),
      receipt_signers: [signer.publicKey.keyid],
      event_signatures: [{ result: 'valid' }],
    });
    expect(result.tree?.tree_size).toBe(made.checkpoint.size);
    expect(result.not_checked.map(({ code }) => code)).toEqual(['TREE_SIZE', 'WITNESSES', 'LEDGER']);
    expect(isReceipt(made.bytes)).toBe(true);
  });

  it('is the same whenever it is made', async () => {
    const again = await makeReceipt(open, '3', { signer });
    expect(Buffer.from(again.bytes).equals(made.bytes)).toBe(true);
  });

  it('takes the entry with the newline that its file ends in', () => {
    expect(
      verify(made.bytes, { keys: [logKey] }, Buffer.concat([made.entry, Buffer.from('\n')])).verdict,
    ).toBe('ok');
  });

  it('is of another log too, whatever its entries are', () => {
    const entry = Buffer.from('not JSON');
    const result = verify(
      receiptOf(entry, p256),
      { keys: [{ kind: 'public-key', key: p256.publicKey }] },
      entry,
    );
    expect(result).toMatchObject({ verdict: 'ok', entry: { kind: 'bytes' }, event: null });
    expect(result.not_checked.map(({ code }) => code)).toContain('NOT_A_RECORD');
  });

  it('is not signed with a key that COSE has no algorithm for', async () => {
    const mlDsa = createSigner(generatePrivateKey('ml-dsa-44'));
    await expect(makeReceipt(open, '3', { signer: mlDsa })).rejects.toMatchObject({
      code: 'KEY_UNSUPPORTED',
    });
  });

  it.each<[string, () => ReceiptResult, string[]]>([
    [
      'without the entry',
      () => verifyReceipt(made.bytes, { keys: [logKey] }),
      ['undecided', 'ENTRY_MISSING'],
    ],
    ['without a key', () => verify(made.bytes, {}), ['undecided', 'KEY_UNKNOWN']],
    [
      'with the key of somebody else',
      () => verify(made.bytes, { keys: [{ kind: 'public-key', key: stranger.publicKey }] }),
      ['undecided', 'KEY_UNKNOWN'],
    ],
    ["with a witness's key", () => verify(made.bytes, { keys: [witnessKey] }), ['undecided', 'KEY_UNKNOWN']],
    [
      'with the vkey of another log',
      () => {
        const vkey = formatPublicKeyAs(signer.publicKey, 'vkey', 'example.com/b');
        return verify(made.bytes, { keys: [{ kind: 'note-key', key: parseNoteKey(vkey) }] });
      },
      ['undecided', 'KEY_UNKNOWN'],
    ],
    [
      'of another record',
      () => verify(made.bytes, undefined, lines[2]),
      ['invalid', 'PROOF_INVALID', 'SEQ_GAP'],
    ],
    [
      'whose signature is by another key than it names',
      () => {
        const parts = (decodeCbor(made.bytes) as TaggedCbor).value as readonly CborValue[];
        const [protectedBytes] = parts;
        const other = decodeCbor(
          signCoseSign1(Buffer.from(rootOf(lines.slice(0, made.checkpoint.size)), 'latin1'), stranger),
        ) as TaggedCbor;
        const signature = (other.value as readonly CborValue[])[3] as Uint8Array;
        return verify(rebuilt((all) => void ([all[0], all[3]] = [protectedBytes, signature])));
      },
      ['invalid', 'PROOF_INVALID'],
    ],
    [
      'by a key without the role',
      () => verify(made.bytes, { policy: policyOf({ roles: ['event'] }) }),
      ['invalid', 'KEY_NOT_FOR_ROLE'],
    ],
    [
      'of an origin that is not pinned',
      () => verify(made.bytes, { policy: { ...policyOf({}), origins: ['example.com/b'] } }),
      ['invalid', 'ORIGIN_MISMATCH'],
    ],
    [
      'where witnesses are required',
      () => verify(made.bytes, { policy: { ...policyOf({}), require: { witness_threshold: 1 } } }),
      ['invalid', 'WITNESS_QUORUM'],
    ],
    ['in text', () => verify(Buffer.from('c2sp.org/tlog-proof@v1\n')), ['invalid', 'PROOF_MALFORMED']],
    ['of 64 KiB and a byte', () => verify(Buffer.alloc(65_537)), ['invalid', 'PROOF_MALFORMED']],
    [
      'over another structure',
      () => {
        const protectedHeaders = new Map<CborKey, CborValue>([[395, 2]]);
        return verify(signCoseSign1(Buffer.alloc(32), signer, { protectedHeaders, detached: true }));
      },
      ['invalid', 'PROOF_MALFORMED'],
    ],
    [
      'without a proof',
      () => verify(rebuilt((parts) => (parts[1] = new Map()))),
      ['invalid', 'PROOF_MALFORMED'],
    ],
    [
      'with a hash of 31 bytes',
      () => {
        const proof = encodeCbor([7, 3, [Buffer.alloc(31)]]);
        return verify(rebuilt((parts) => (parts[1] = new Map([[396, new Map([[-1, [proof]]])]]))));
      },
      ['invalid', 'PROOF_MALFORMED'],
    ],
    [
      'with 64 hashes',
      () => {
        const proof = encodeCbor([7, 3, Array.from({ length: 64 }, () => Buffer.alloc(32))]);
        return verify(rebuilt((parts) => (parts[1] = new Map([[396, new Map([[-1, [proof]]])]]))));
      },
      ['invalid', 'PROOF_MALFORMED'],
    ],
    [
      'of a place beyond the tree',
      () => {
        const proof = encodeCbor([3, 3, []]);
        return verify(rebuilt((parts) => (parts[1] = new Map([[396, new Map([[-1, [proof]]])]]))));
      },
      ['invalid', 'PROOF_INVALID'],
    ],
  ])('%s is not ok', (_, run, codes) => {
    expect(codesOf(run())).toEqual(codes);
  });

  it('is ok with a trust policy that pins the key and the origin', () => {
    expect(codesOf(verify(made.bytes, { policy: { ...policyOf({}), origins: [ORIGIN] } }))).toEqual(['ok']);
  });

  it('is not ok with any byte changed, but for what its signature cannot cover', () => {
    const passed: number[] = [];
    for (let i = 0; i < made.bytes.length; i += 1) {
      const changed = Uint8Array.from(made.bytes);
      changed[i] = changed[i] ^ 0x01;
      if (verify(changed).verdict === 'ok') passed.push(i);
    }
    const proof = (decodeCbor(made.bytes) as TaggedCbor).value as readonly CborValue[];
    const inner = ((proof[1] as Map<number, Map<number, Uint8Array[]>>).get(396)?.get(-1) ?? [])[0];
    // The size's own byte: the root of a tree does not say how many leaves it has.
    const at = Buffer.from(made.bytes).indexOf(Buffer.from(inner)) + 1;
    expect(passed.filter((i) => i !== at)).toEqual([]);
  });
});

function policyOf(change: Partial<TrustPolicy['keys'][number]>): TrustPolicy {
  return { trust_version: '1', keys: [{ ...ownKeyEntry(signer.publicKey), ...change }] };
}

const python = ['/usr/bin/python3', 'python3'].find(
  (each) => spawnSync(each, ['-c', 'import cbor2, cryptography'], { stdio: 'ignore' }).status === 0,
);
if (python === undefined) {
  console.log(
    'skipped: receipts read by Python; it needs the packages python3-cbor2 and python3-cryptography',
  );
}

describe.skipIf(python === undefined)('Python', () => {
  const folder = mkdtempSync(join(tmpdir(), 'northroot-receipt-'));
  afterAll(() => {
    rmSync(folder, { recursive: true });
  });

  it.each([
    ['Ed25519', signer],
    ['P-256', p256],
  ])('verifies a receipt by a key of %s, and none that was changed', async (_, by) => {
    const { entry, checkpoint } = await makeReceipt(open, '3', { signer: by });
    let bytes = Buffer.alloc(0);
    const take = (receipt: RecordReceipt): undefined => {
      if (receipt.seq === 3) bytes = Buffer.from(receipt.bytes);
    };
    await exportReceipts(ledgerOf(lines), take, { signer: by });
    const run = (receipt: Uint8Array, of: Uint8Array) => {
      writeFileSync(join(folder, 'receipt'), receipt);
      writeFileSync(join(folder, 'entry'), of);
      writeFileSync(join(folder, 'key'), formatPublicKeyAs(by.publicKey, 'pem'));
      const script = fileURLToPath(new URL('read-receipt.py', import.meta.url));
      const paths = ['receipt', 'entry', 'key'].map((name) => join(folder, name));
      return spawnSync(python as string, [script, ...paths], { encoding: 'utf8' });
    };
    const { stdout, stderr } = run(bytes, entry);
    expect(stderr).toBe('');
    expect(JSON.parse(stdout)).toEqual({
      issuer: ORIGIN,
      kid: by.publicKey.keyid,
      size: checkpoint.size,
      index: 3,
      root: Buffer.from(checkpoint.root, 'latin1').toString('hex'),
    });
    expect(run(bytes, lines[2] as Uint8Array).status).not.toBe(0);
  });
});
