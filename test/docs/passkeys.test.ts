/** docs/spec/passkeys.md: its worked bytes, recomputed with node:crypto alone; and its members, held against the schema. */

import { createHash, createPublicKey, verify } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { schemaDocument } from '../../src/format/schema/documents.js';
import { codeOf, lists, namedBlocks, readText } from './markdown.js';

const text = readText('docs/spec/passkeys.md');
const blocks = namedBlocks(text);
const used = new Set<string>();

function block(name: string): string {
  used.add(name);
  return blocks.get(name) ?? '';
}

const sha256 = (bytes: string | Buffer): Buffer => createHash('sha256').update(bytes).digest();

describe('docs/spec/passkeys.md', () => {
  it('shows an assertion that verifies, step by step', () => {
    const event = block('event');
    const type = 'application/vnd.northroot.event+json';
    const pae = `DSSEv1 ${type.length} ${type} ${Buffer.byteLength(event)} ${event}`;
    expect(block('pae-sha256-hex')).toBe(sha256(pae).toString('hex'));
    expect(block('challenge')).toBe(sha256(pae).toString('base64url'));
    const clientData = block('client-data');
    const data = JSON.parse(clientData) as Record<string, unknown>;
    const key = JSON.parse(block('key')) as {
      public_key: string;
      webauthn: { rp_id: string; origins: string[] };
    };
    expect(data).toMatchObject({ type: 'webauthn.get', challenge: block('challenge'), crossOrigin: false });
    expect(key.webauthn.origins).toContain(data['origin']);
    expect(block('client-data-sha256-hex')).toBe(sha256(clientData).toString('hex'));
    expect(block('rp-id-hash-hex')).toBe(sha256(key.webauthn.rp_id).toString('hex'));
    const authenticatorData = block('authenticator-data-hex');
    expect(authenticatorData).toBe(`${block('rp-id-hash-hex')}0500000007`);
    expect(block('signed-hex')).toBe(authenticatorData + block('client-data-sha256-hex'));
    expect(block('length-hex')).toBe((authenticatorData.length / 2).toString(16).padStart(4, '0'));
    const whole = block('signature-hex') + block('length-hex') + authenticatorData;
    const sig = Buffer.concat([Buffer.from(whole, 'hex'), Buffer.from(clientData)]);
    expect(block('sig')).toBe(sig.toString('base64url'));
    const point = Buffer.from(key.public_key.slice('p256:'.length), 'base64url');
    const [x, y] = [point.subarray(1, 33), point.subarray(33)].map((half) => half.toString('base64url'));
    const jwk = { kty: 'EC', crv: 'P-256', x, y };
    const publicKey = createPublicKey({ key: jwk, format: 'jwk' });
    const signature = Buffer.from(block('signature-hex'), 'hex');
    const signed = Buffer.from(block('signed-hex'), 'hex');
    expect(verify('sha256', signed, { key: publicKey, dsaEncoding: 'ieee-p1363' }, signature)).toBe(true);
    const [, , line = ''] = readText('fixtures/ledgers/passkeys.jsonl').split('\n');
    expect(line).toContain(event);
    expect(line).toContain(block('sig'));
    expect([...blocks.keys()].filter((name) => !used.has(name))).toEqual([]);
  });

  it('lists the members of a passkey as the schema has them', () => {
    const { $defs } = schemaDocument('common') as unknown as {
      $defs: { webauthn: { properties: object; required: string[] } };
    };
    const { properties, required } = $defs.webauthn;
    const rows = lists(text).find(({ before }) => before.startsWith('<!-- schema: '))?.rows ?? [];
    const documented = rows.map(([member = '']) => [codeOf(member), !member.endsWith('?')]);
    expect(documented).toEqual(Object.keys(properties).map((name) => [name, required.includes(name)]));
  });
});
