/**
 * Interoperability with Go's own implementation, golang.org/x/mod/sumdb/note and …/tlog: each side reads, opens and verifies
 * what the other has made. It needs the Debian packages `golang-go` and `golang-golang-x-mod-dev`; without them nothing of
 * this is tested, and a line on standard output says so.
 */

import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildCheckpoint, buildEvent } from '../../src/format/event/build.js';
import { openLedgerSource } from '../../src/log/fs/source.js';
import { parsePrivateKey } from '../../src/format/key/private-key.js';
import { formatCheckpoint, parseCheckpoint } from '../../src/format/note/checkpoint.js';
import { verifyNoteSignatures } from '../../src/format/note/verify-note.js';
import {
  cosignNote,
  formatNoteKey,
  makeNoteKey,
  parseNoteKey,
  signNote,
} from '../../src/format/note/note-key.js';
import { formatNote, formatSignatureLine } from '../../src/format/note/signed-note.js';
import { createSigner, type Signer } from '../../src/format/signature/signer.js';
import { openTileTree } from '../../src/log/tile/tile-tree.js';
import { writeTiles } from '../../src/log/tile/tile-writer.js';
import {
  appendLeaf,
  emptyRange,
  hashToBase64,
  leafHash,
  rangeRoot,
  tryHashFromBase64,
} from '../../src/format/tree/compact-range.js';
import {
  RangeHasher,
  consistencyRanges,
  inclusionRanges,
  verifyConsistency,
  verifyInclusion,
  type LeafRange,
} from '../../src/format/tree/proof.js';
import { parseDigest } from '../../src/base/value/digest.js';
import { ed25519Key } from '../key/key-samples.js';
import { linesOf, makeLines, toLedger } from '../tile/support.js';
import { NOON, draft, openLedger } from '../writer/support.js';

const GOPATH = '/usr/share/gocode';
const isThere =
  spawnSync('go', ['version']).status === 0 && existsSync(join(GOPATH, 'src/golang.org/x/mod/sumdb/tlog'));
if (!isThere) {
  console.log(
    'skipped: interoperability with Go; it needs the packages golang-go and golang-golang-x-mod-dev (apt-get install)',
  );
}

const NAME = 'example.com/tests/go';
const signer = createSigner(ed25519Key(Buffer.alloc(32, 9)));
const key = makeNoteKey(NAME, signer.publicKey, 'ed25519');
const vkey = formatNoteKey(key);

interface RecordProof {
  index: number;
  leaf: string;
  proof: string[];
}
interface TreeProof {
  size: number;
  root: string;
  proof: string[];
}
/** What the peer answers; hashes in base64. */
interface Answer {
  readonly skey: string;
  readonly vkey: string;
  readonly note: string;
  readonly size: number;
  readonly root: string;
  readonly record?: readonly RecordProof[];
  readonly tree?: readonly TreeProof[];
}

const folder = mkdtempSync(join(tmpdir(), 'northroot-go-'));
const peer = join(folder, 'peer');
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** What Go does with a request: its answer, or what it says against it. */
function tryAsk(request: object): { readonly answer?: Answer; readonly error: string } {
  const { status, stdout, stderr } = spawnSync(peer, {
    input: JSON.stringify(request),
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  });
  return status === 0
    ? { answer: JSON.parse(stdout) as Answer, error: '' }
    : { error: stderr || 'it crashed' };
}

function ask(request: object): Answer {
  const { answer, error } = tryAsk(request);
  expect(error).toBe('');
  return answer!;
}

const hashes = (base64: readonly string[]): string[] => base64.map((text) => tryHashFromBase64(text)!);

function rootOf(leaves: readonly string[]): string {
  const range = emptyRange();
  for (const leaf of leaves) appendLeaf(range, leaf);
  return rangeRoot(range);
}

function rootsOf(leaves: readonly string[], ranges: readonly LeafRange[]): string[] {
  const hasher = new RangeHasher(ranges);
  for (const leaf of leaves) hasher.push(leaf);
  return hasher.roots();
}

function sign(text: string, by: Signer = signer): string {
  return formatNote({ text, signatures: [signNote(text, NAME, by)] });
}

function checkpointOf(leaves: readonly string[]): string {
  return formatCheckpoint({ origin: NAME, size: leaves.length, root: rootOf(leaves), extensions: [] });
}

/** Some places of a tree: all of a small one, the edges of a large one. */
function places(size: number): number[] {
  const edges = [0, 255, 256, size >> 1, size - 2, size - 1];
  const all =
    size > 10_000 ? edges : [...edges, 1, 2, 3, 4, 5, 6, 7, 254, 257, 511, 512].sort((a, b) => a - b);
  return [...new Set(all)].filter((n) => n >= 0 && n < size);
}

const SIZES = [1, 2, 3, 7, 8, 255, 256, 257, 513, 1_000, 65_537];

describe.skipIf(!isThere)('Go', () => {
  beforeAll(() => {
    const sources = fileURLToPath(new URL('go/', import.meta.url));
    const env = { ...process.env, GO111MODULE: 'off', GOPATH, GOFLAGS: '', GOCACHE: join(folder, 'cache') };
    const { status, stderr } = spawnSync('go', ['build', '-o', peer, join(sources, 'peer.go')], {
      env,
      encoding: 'utf8',
    });
    expect(stderr).toBe('');
    expect(status).toBe(0);
  });

  describe('notes', () => {
    const leaves = makeLines(5).map(leafHash);
    const text = checkpointOf(leaves);

    test('Go opens what we sign', () => {
      expect(ask({ op: 'open', note: sign(text), vkey })).toMatchObject({
        size: 5,
        root: hashToBase64(rootOf(leaves)),
      });
    });

    test('with cosignatures of witnesses, extensions, and names beyond ASCII beside it', () => {
      const extended = `${text}extension of ours\n`;
      const signatures = [
        cosignNote(extended, 'witness.example/w1', signer, 1_700_000_000),
        signNote(extended, NAME, signer),
        cosignNote(extended, 'witness.example/ŵ2', signer, 0),
      ];
      expect(ask({ op: 'open', note: formatNote({ text: extended, signatures }), vkey }).size).toBe(5);
    });

    test('Go refuses what we refuse', () => {
      const other = createSigner(ed25519Key(Buffer.alloc(32, 10)));
      expect(tryAsk({ op: 'open', note: sign(text, other), vkey }).error).toContain(
        'no verifiable signatures',
      );
      const changed = sign(text).replace('\n5\n', '\n6\n');
      expect(tryAsk({ op: 'open', note: changed, vkey }).error).toContain('invalid signature');
      expect(verifyNoteSignatures(parseCheckpoint(Buffer.from(changed)), [key]).invalid).toHaveLength(1);
    });

    test('keys that Go makes are read, and sign what Go opens', () => {
      const made = ask({ op: 'generate', name: NAME });
      const own = createSigner(parsePrivateKey(made.skey));
      expect(formatNoteKey(makeNoteKey(NAME, own.publicKey, 'ed25519'))).toBe(made.vkey);
      expect(ask({ op: 'open', note: sign(text, own), vkey: made.vkey }).size).toBe(5);
    });
  });

  describe('what we make, Go verifies:', () => {
    test.each(SIZES)('proofs in trees of %d lines', (size) => {
      const leaves = makeLines(size).map(leafHash);
      const record = places(size).map((index) => ({
        index,
        leaf: hashToBase64(leaves[index]),
        proof: rootsOf(leaves, inclusionRanges(index, size)).map(hashToBase64),
      }));
      const tree = places(size).map((at) => ({
        size: at + 1,
        root: hashToBase64(rootOf(leaves.slice(0, at + 1))),
        proof: rootsOf(leaves, consistencyRanges(at + 1, size)).map(hashToBase64),
      }));
      const request = { op: 'check', note: sign(checkpointOf(leaves)), vkey, record, tree };
      expect(ask(request)).toMatchObject({ size, root: hashToBase64(rootOf(leaves)) });

      const wrong = hashToBase64(leafHash(Buffer.from('other')));
      const [first] = record;
      expect(tryAsk({ ...request, record: [{ ...first, leaf: wrong }] }).error).toContain('record 0');
      if (size > 1)
        expect(tryAsk({ ...request, tree: [{ ...tree[0], root: wrong }] }).error).toContain('tree 1');
    });

    test.each(SIZES)('the tile tree of %d lines, and proves from it', async (size) => {
      const lines = makeLines(size);
      const leaves = lines.map(leafHash);
      const [path, dir] = [join(folder, `${size}.jsonl`), join(folder, `ours-${size}`)];
      writeFileSync(path, toLedger(lines));
      // Brought up to date once on the way.
      for (const step of new Set([Math.ceil(size / 2), size])) {
        const note = Buffer.from(sign(checkpointOf(leaves.slice(0, step))));
        await writeTiles(() => openLedgerSource(path), dir, { note });
      }
      const old = places(size).map((at) => at + 1);
      const answer = ask({ op: 'read', dir, vkey, index: places(size), old });
      expect(answer).toMatchObject({ size, root: hashToBase64(rootOf(leaves)) });
      expectProofs(answer, leaves);
    });

    test("a ledger's own checkpoint, its attestations and its tiles", async () => {
      const path = join(folder, 'ledger.jsonl');
      const ledger = await openLedger(path, { create: { origin: NAME, binding: 'optional' } });
      for (let n = 1; n < 300; n += 1) await ledger.append({ event: draft(n) });
      const lines = linesOf(readFileSync(path));
      const leaves = lines.map(leafHash);
      const text = checkpointOf(leaves);
      const tip = (JSON.parse(lines.at(-1)!.toString()) as { event: { event_id: never } }).event.event_id;
      const checkpoint = buildCheckpoint(
        {
          tree_size: 300,
          root: parseDigest(`sha-256:${Buffer.from(rootOf(leaves), 'latin1').toString('base64url')}`),
          chain_tip_event_id: tip,
          note: sign(text),
        },
        { occurredAt: NOON, principalId: 'agent:a1' },
      );
      await ledger.append({ event: checkpoint });
      const witness = cosignNote(text, 'witness.example/w1', signer, 1_700_000_000);
      const note = formatNote({ text, signatures: [witness] });
      const attestation = { event_type: 'attestation', checkpoint_event_id: checkpoint.event_id, note };
      await ledger.append({
        event: buildEvent(attestation, { occurredAt: NOON, principalId: 'agent:a1' }),
      });
      await ledger.close();

      const dir = join(folder, 'ledger-tiles');
      await writeTiles(() => openLedgerSource(path), dir);
      expect(readFileSync(join(dir, 'checkpoint'), 'utf8')).toBe(
        `${sign(text)}${formatSignatureLine(witness)}\n`,
      );
      expect(ask({ op: 'read', dir, vkey, index: [0, 299], old: [1, 256] }).size).toBe(300);
    });
  });

  describe('what Go makes, we verify:', () => {
    const made = (): Answer => ask({ op: 'generate', name: NAME });

    test.each(SIZES)('the note, the tree and proofs of %d lines', async (size) => {
      const lines = makeLines(size);
      const leaves = lines.map(leafHash);
      const [path, dir] = [join(folder, `${size}.lines`), join(folder, `theirs-${size}`)];
      writeFileSync(path, toLedger(lines));
      const { skey, vkey: theirs } = made();
      const old = places(size).map((at) => at + 1);
      const answer = ask({ op: 'make', lines: path, dir, skey, name: NAME, index: places(size), old });
      expectProofs(answer, leaves);

      const tree = await openTileTree(dir);
      expect(Buffer.from(tree.note).toString()).toBe(answer.note);
      const { valid, invalid, unknown } = verifyNoteSignatures(tree.checkpoint, [parseNoteKey(theirs)]);
      expect([valid.length, invalid.length, unknown.length]).toEqual([1, 0, 0]);
      expect(tree.checkpoint.checkpoint).toEqual({
        origin: NAME,
        size,
        root: rootOf(leaves),
        extensions: [],
      });
      const chunks: Buffer[] = [];
      for await (const segment of tree.source.segments) {
        for await (const chunk of segment.chunks) chunks.push(Buffer.from(chunk));
      }
      expect(Buffer.concat(chunks).equals(toLedger(lines))).toBe(true);
      // Go leaves partial tiles of all sizes on the way: they belong there, and are checked.
      expect(await tree.finish()).toEqual({ faults: [], total: 0 });
    });

    test('a tree of theirs is brought up to date', async () => {
      const lines = makeLines(600);
      const leaves = lines.map(leafHash);
      const [path, dir] = [join(folder, 'grown.jsonl'), join(folder, 'grown')];
      const { skey, vkey: theirs } = made();
      writeFileSync(path, toLedger(lines.slice(0, 300)));
      ask({ op: 'make', lines: path, dir, skey, name: NAME });
      writeFileSync(path, toLedger(lines));
      const own = createSigner(parsePrivateKey(skey));
      const note = Buffer.from(sign(checkpointOf(leaves), own));
      const { tiles, bundles } = await writeTiles(() => openLedgerSource(path), dir, { note });
      expect([tiles.kept, bundles.kept]).toEqual([1, 1]);
      expect(ask({ op: 'read', dir, vkey: theirs, index: [0, 299, 599], old: [300] }).size).toBe(600);
    });
  });
});

/** Asserts that every proof that Go gave is the one that we make, and holds. */
function expectProofs({ size, root, record = [], tree = [] }: Answer, leaves: readonly string[]): void {
  const whole = tryHashFromBase64(root)!;
  expect(whole).toBe(rootOf(leaves));
  expect(record.length).toBe(places(size).length);
  expect(tree.length).toBe(places(size).length);
  for (const { index, leaf, proof } of record) {
    expect(hashes(proof)).toEqual(rootsOf(leaves, inclusionRanges(index, size)));
    const claim = { index, size, leafHash: tryHashFromBase64(leaf)!, root: whole, proof: hashes(proof) };
    expect(claim.leafHash).toBe(leaves[index]);
    expect(verifyInclusion(claim)).toBe(true);
    if (size > 1) expect(verifyInclusion({ ...claim, index: index === 0 ? 1 : index - 1 })).toBe(false);
  }
  for (const each of tree) {
    const proof = hashes(each.proof);
    expect(proof).toEqual(rootsOf(leaves, consistencyRanges(each.size, size)));
    const claim = {
      size1: each.size,
      root1: tryHashFromBase64(each.root)!,
      size2: size,
      root2: whole,
      proof,
    };
    expect(verifyConsistency(claim)).toBe(true);
    expect(verifyConsistency({ ...claim, root1: leafHash(Buffer.of()) })).toBe(false);
  }
}
