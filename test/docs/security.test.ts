/** The bounds of docs/reference/bounds.md are those of the code, and what SECURITY.md says that a single changed byte cannot hide. */

import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  formatPublicKey,
  type AnyEvent,
  type Key,
  type TrustPolicy,
  type VerificationKey,
  type SignatureBackend,
} from '../../src/api/index.js';
import { nodeBackend } from '../../src/format/signature/node-backend.js';
import { brief, checkpoint, genesis, keyOf, ledger, makeSigner, note, verify } from './ledger-kit.js';
import { headings, readText, root, sectionOf } from './markdown.js';

function sources(folder = 'src'): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory()) return sources(path);
    return path.endsWith('.ts') ? [path] : [];
  });
}

describe('the list of bounds', () => {
  const document = readText('docs/reference/bounds.md');
  const rows = headings(document).flatMap((heading) => {
    const folders = [...heading.matchAll(/`([^`]+)`/g)].map(([, folder = '']) => folder);
    return sectionOf(document, heading)
      .split('\n')
      .flatMap((line) => {
        if (folders.length === 0 || !line.startsWith('- ')) return [];
        const [, bound = '', name = ''] = /: (\d+)(?: \w+)? \(`([A-Z0-9_]+)`\)$/.exec(line) ?? [];
        return [[name, Number(bound), folders] as const];
      });
  });
  const texts = sources().map((path) => [path.slice('src/'.length), readText(path)] as const);

  it.each(rows)('%s is %i', (name, bound, folders) => {
    const statement = new RegExp(`^(?:export )?const ${name} = ([\\d_* ]+);`, 'm');
    const values = texts
      .filter(([path]) => folders.some((folder) => path.startsWith(folder)))
      .flatMap(([, text]) => statement.exec(text)?.[1] ?? [])
      .map((value) => value.split('*').reduce((all, factor) => all * Number(factor.replaceAll('_', '')), 1));
    expect(values).toContain(bound);
  });

  it('has lost no item', () => {
    expect(rows.length).toBeGreaterThanOrEqual(180);
  });
});

const MAY_CONNECT = [
  'src/proof/witness/',
  'src/gate/',
  'src/base/platform/serve-http.ts',
  'src/log/object/s3-client.ts',
];

it('nothing in src but the witness, its client, the gate, their server and the client of buckets can open a connection', () => {
  for (const path of sources()) {
    if (MAY_CONNECT.some((place) => path.startsWith(place))) continue;
    // The driver of PostgreSQL is loaded in one place.
    if (path !== 'src/log/postgres/session.ts')
      expect(readText(path)).not.toMatch(/import\('pg'\)|from 'pg'/);
    expect(readText(path)).not.toMatch(
      /from '(?:node:)?(?:net|http|https|http2|tls|dgram|dns)(?:\/|')|\bfetch\(/,
    );
  }
});

it('the client of a service connects to sockets in the file system alone', () => {
  const calls = readText('src/gate/hook/wire.ts').match(/\bconnect\([^)]*\)/g);
  expect(calls).toEqual(['connect(path: string, token: string | undefined)', 'connect({ path })']);
});

/** Checking a key takes longer than verifying a small ledger, and the keys are the same ones each time. */
const prepared = new Map<string, VerificationKey>();
const backend: SignatureBackend = {
  name: nodeBackend.name,
  importKey: (key) => {
    const text = formatPublicKey(key);
    const verification = prepared.get(text) ?? nodeBackend.importKey(key);
    prepared.set(text, verification);
    return verification;
  },
};

describe('one changed byte', () => {
  const [own, stranger] = [makeSigner(), makeSigner()];
  const optional = { signing: { events: 'optional', checkpoints: 'optional' } };
  const bytes = ledger(
    { event: genesis([keyOf(own)], optional), signers: [own] },
    { event: note(1), signers: [own], meta: { trace: 'abc' } },
    { event: note(2), signers: [own, stranger], meta: { trace: 'abc' } },
  );
  const text = bytes.toString('latin1');
  const lastLine = text.lastIndexOf('\n', text.length - 2) + 1;

  /** The part of the last line from `start` to the first `end` after it. */
  function spanOf(start: string, end: string): readonly [number, number] {
    const from = text.indexOf(start, lastLine);
    expect(from).toBeGreaterThan(lastLine);
    return [from, text.indexOf(end, from)];
  }

  const meta = spanOf('"meta":', ',"prev"');
  const strange = spanOf(`{"keyid":"${stranger.publicKey.keyid}`, '}]}');
  const ownId = spanOf(`"keyid":"${own.publicKey.keyid}`, ',"sig"');

  /** The offsets at which a change leaves the verdict ok. */
  async function findHidden(offsets: readonly number[]): Promise<number[]> {
    const hidden: number[] = [];
    for (const offset of offsets) {
      const changed = Buffer.from(bytes);
      changed[offset] = changed[offset] ^ 1;
      if ((await verify(changed, { backend })).verdict === 'ok') hidden.push(offset);
    }
    return hidden;
  }

  const isWithin =
    (...spans: (readonly [number, number])[]) =>
    (offset: number): boolean =>
      spans.some(([from, to]) => offset >= from && offset < to);

  it('verifies unchanged', async () => {
    expect((await verify(bytes)).verdict).toBe('ok');
  });

  it('before the last record is found', async () => {
    const offsets = Array.from({ length: lastLine }, (_, i) => i).filter((i) => i % 5 === 0);
    expect(await findHidden(offsets)).toEqual([]);
  });

  it('in the last record is found but for its meta and what names keys that are not known', async () => {
    const offsets = Array.from({ length: bytes.length - lastLine }, (_, i) => lastLine + i);
    const hidden = await findHidden(offsets);
    expect(hidden.filter((offset) => !isWithin(meta, strange, ownId)(offset))).toEqual([]);
    for (const span of [meta, strange, ownId])
      expect(hidden.filter(isWithin(span)).length).toBeGreaterThan(2);
  });

  it('where a signature is required, hides only in meta', async () => {
    const strict = ledger(
      { event: genesis([keyOf(own)]), signers: [own] },
      { event: note(2), signers: [own], meta: { trace: 'abc' } },
    );
    const from = strict.indexOf('\n') + 1;
    const metaAt = strict.indexOf('"meta":', from);
    const metaEnd = strict.indexOf(',"prev"', metaAt);
    for (let offset = from; offset < strict.length; offset += 1) {
      const changed = Buffer.from(strict);
      changed[offset] = changed[offset] ^ 1;
      const isHidden = (await verify(changed, { backend })).verdict === 'ok';
      if (isHidden) expect(isWithin([metaAt, metaEnd])(offset)).toBe(true);
    }
  });
});

describe('a record dropped, and the chain rebuilt over the rest', () => {
  const keeper = makeSigner();
  const roles: Key['roles'] = ['event', 'checkpoint', 'admin'];
  const first = { event: genesis([keyOf(keeper, { roles })]), signers: [keeper] };
  const record = (n: number) => ({ event: note(n), signers: [keeper] });
  const trust: TrustPolicy = {
    trust_version: '1',
    origins: ['example.com/test'],
    keys: [keyOf(keeper, { roles })],
    require: { event_signatures: 'required' },
  };
  const strict = { trust: { ...trust, require: { ...trust.require, checkpoints: 'required' as const } } };
  const seal = { event: checkpoint([keeper]), signers: [keeper] };
  const sealed = ledger(first, record(1), record(2), seal);
  const sealLine = JSON.parse(sealed.toString().split('\n')[3]) as { event: AnyEvent };

  it('is not found by signatures, and the report says so', async () => {
    const report = await verify(ledger(first, record(2)), { trust });
    expect([report.verdict, report.findings]).toEqual(['ok', []]);
    expect(report.not_checked.map(({ code }) => code)).toEqual(['TRUNCATION', 'CHECKPOINTS']);
  });

  it('is found by a checkpoint', async () => {
    expect((await verify(sealed, strict)).verdict).toBe('ok');
    const dropped = ledger(first, record(2), { event: sealLine.event, signers: [keeper] });
    expect((await verify(dropped, { trust })).findings.map(brief)).toEqual(['CHECKPOINT_SIZE_MISMATCH in 3']);
    const moved = ledger(first, record(2), record(1), { event: sealLine.event, signers: [keeper] });
    expect((await verify(moved, { trust })).findings.map(({ code }) => code)).toContain(
      'CHECKPOINT_ROOT_MISMATCH',
    );
    // Without the checkpoint too, the policy that demands one finds it.
    expect((await verify(ledger(first, record(2)), strict)).findings.map(brief)).toEqual([
      'CHECKPOINT_MISSING in 3',
    ]);
  });
});
