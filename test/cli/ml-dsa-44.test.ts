/** ML-DSA-44 through the command line: a key is made, added, and signs beside the ledger's own; proofs and witnesses take it. */

import { describe, expect, it } from 'vitest';
import type { Report } from '../../src/rules/report/report.js';
import { parseNote } from '../../src/format/note/signed-note.js';
import { ndjson, note } from './drafts.js';
import { expectError, expectOk, parse, Workshop } from './runner.js';

const shop = new Workshop();
const ORIGIN = 'example.com/tests/pq';

describe('a hybrid ledger', () => {
  it('is sealed with both keys, verified by either, and proven', () => {
    expectOk(shop.run(['append', 'l.jsonl', '--origin', ORIGIN], { input: ndjson([note(0), note(1)]) }));
    const { stdout: made } = shop.run(['keygen', '--type', 'ml-dsa-44', '--out', 'pq.pem']);
    expect(shop.mode('pq.pem')).toBe('600');
    const { keyid, public_key: publicKey } = parse<{ keyid: string; public_key: string }>(made);
    expect(publicKey).toMatch(/^ml-dsa-44:/);
    const { stdout: added } = shop.run(['key', 'add', 'l.jsonl', 'pq.pem', '--role', 'checkpoint']);
    expect(parse<{ key: object }>(added).key).toMatchObject({ keyid, roles: ['checkpoint'] });

    expectOk(shop.run(['checkpoint', 'l.jsonl', '--key', 'l.jsonl.key', '--key', 'pq.pem']));
    const { signatures } = parseNote(shop.bytes('l.jsonl.checkpoint'));
    expect(signatures.map(({ name, signature }) => [name, signature.length])).toEqual([
      [ORIGIN, 64],
      [ORIGIN, 2428],
    ]);
    const { stdout, status } = shop.run(['verify', 'l.jsonl', '--format', 'json']);
    expect([status, parse<Report>(stdout).checkpoints.last_tree_size]).toEqual([0, 4]);

    const vkey = shop.run(['key', 'show', 'pq.pem', '--form', 'vkey', '--name', ORIGIN]).stdout.trim();
    expect(vkey).toMatch(/^example\.com\/tests\/pq\+[0-9a-f]{8}\+B/);
    expectOk(shop.run(['prove', 'l.jsonl', '1', '--out', 'proof']));
    expectOk(shop.run(['verify-proof', 'proof', '--key', vkey]));
    const policy = `log ${vkey}\nwitness W w+00000000+CQ==\nquorum none\n`;
    shop.write('policy', policy);
    const judged = shop.run(['verify', 'l.jsonl', '--witness-policy', 'policy', '--format', 'json']);
    expect(judged.status).toBe(0);
    expect(judged.stderr).toContain('0x09');
    expect(parse<Report>(judged.stdout).not_checked.map(({ code }) => code)).toContain('WITNESS_POLICY_KEYS');
  });

  it('has no records that an ML-DSA-44 key signs', () => {
    expectOk(shop.run(['keygen', '--type', 'ml-dsa-44', '--out', 'alone.pem']));
    expectError(
      shop.run(['append', 'new.jsonl', '--key', 'alone.pem', '--origin', ORIGIN], {
        input: ndjson([note(0)]),
      }),
      2,
      'KEY_UNSUPPORTED',
    );
    expect(shop.has('new.jsonl')).toBe(false);
    expectOk(shop.run(['append', 'o.jsonl', '--origin', ORIGIN], { input: ndjson([note(0)]) }));
    expectError(shop.run(['key', 'add', 'o.jsonl', 'alone.pem', '--role', 'event']), 1, 'SCHEMA');
  });
});
