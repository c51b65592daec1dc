/**
 * A bundle read by others' code: python3-cbor2 reads the form, python3-cryptography verifies the signature, and RFC 6962's hashes are
 * computed by hashlib. It needs the Debian packages `python3-cbor2` and `python3-cryptography`; without them it is skipped.
 */

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { decodeBundle } from '../../src/proof/bundle/bundle-file.js';
import { valueOf } from '../value-of.js';
import { bundleOf, exporter, sealFixture } from './support.js';

const SCRIPT = fileURLToPath(new URL('read-bundle.py', import.meta.url));
const NEEDS = 'import cbor2, cryptography.hazmat.primitives.asymmetric.ed25519';
/** Debian's own, which has Debian's packages, and whatever else is called so. */
const python = ['/usr/bin/python3', 'python3'].find(
  (program) => spawnSync(program, ['-c', NEEDS]).status === 0,
);
if (python === undefined) {
  console.log(
    'skipped: bundles read by Python; it needs the packages python3-cbor2 and python3-cryptography',
  );
}

const folder = mkdtempSync(join(tmpdir(), 'northroot-bundle-'));
afterAll(() => rmSync(folder, { recursive: true }));

describe.skipIf(python === undefined)('Python', () => {
  const run = sealFixture('ledgers/agent-run.jsonl');

  it.each([
    ['the whole', {}],
    ['a selection', { selection: { principal: 'agent:researcher' } }],
    ['a stretch', { selection: { tool: 'none' }, complete: [{ from: 5, to: 12 }] }],
  ])('reads and verifies a bundle of %s', async (_, options) => {
    const { file } = await bundleOf(run.ledger, { ...options, checkpoint: run.note, signer: exporter });
    const path = join(folder, 'bundle.nrb');
    writeFileSync(path, file);
    const { stdout, stderr } = spawnSync(python as string, [SCRIPT, path], { encoding: 'utf8' });
    expect(stderr).toBe('');
    const { bundle } = valueOf(decodeBundle(file));
    expect(JSON.parse(stdout)).toEqual({
      proven: true,
      canonical: true,
      records: bundle.records.map(({ seq, isSelected, line }) => [
        seq,
        isSelected,
        createHash('sha256').update(line).digest('hex'),
      ]),
      note: run.note.toString(),
      verdict: 'ok',
      signed_by: exporter.publicKey.keyid,
    });
  });
});
