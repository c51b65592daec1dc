/** What the tests of tile trees share: lines, notes, trees by the words of the specification, and looks at folders. */

import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { onTestFinished } from 'vitest';
import { bytesSource } from '../bytes-source.js';
import type { LedgerSource } from '../../src/rules/source/ledger-source.js';
import { formatCheckpoint } from '../../src/format/note/checkpoint.js';
import { verifyNoteSignatures } from '../../src/format/note/verify-note.js';
import { makeNoteKey, signNote } from '../../src/format/note/note-key.js';
import { formatNote } from '../../src/format/note/signed-note.js';
import { createSigner } from '../../src/format/signature/signer.js';
import type { FileFault } from '../../src/base/fault.js';
import { openTileTree } from '../../src/log/tile/tile-tree.js';
import { writeTiles, type WriteTilesOptions, type WrittenTiles } from '../../src/log/tile/tile-writer.js';
import { ed25519Key } from '../key/key-samples.js';
import { soundFileSystem } from '../writer/file-systems.js';

export const ORIGIN = 'example.com/tests/tiles';
export const signer = createSigner(ed25519Key(Buffer.alloc(32, 7)));
export const noteKey = makeNoteKey(ORIGIN, signer.publicKey, 'ed25519');

/** A folder of the test's own. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'northroot-tiles-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Different lines, of different lengths. */
export function makeLines(count: number): Buffer[] {
  return Array.from({ length: count }, (_, n) => Buffer.from(`{"n":${n}${' '.repeat(n % 3)}}`));
}

export function toLedger(lines: readonly Buffer[]): Buffer {
  return Buffer.concat(lines.flatMap((line) => [line, Buffer.from('\n')]));
}

const sha256 = (...parts: (Buffer | string)[]): Buffer => {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest();
};

/** MTH of RFC 6962 §2.1, word for word. */
export function merkleTreeHash(lines: readonly Buffer[]): Buffer {
  if (lines.length === 0) return sha256('');
  if (lines.length === 1) return sha256(Buffer.of(0), lines[0]);
  let k = 1;
  while (k * 2 < lines.length) k *= 2;
  return sha256(Buffer.of(1), merkleTreeHash(lines.slice(0, k)), merkleTreeHash(lines.slice(k)));
}

/** A note that states the tree over the first `size` lines. */
export function noteOf(lines: readonly Buffer[], size = lines.length, origin = ORIGIN): Buffer {
  const root = merkleTreeHash(lines.slice(0, size)).toString('latin1');
  return signedNote(formatCheckpoint({ origin, size, root, extensions: [] }));
}

export function signedNote(text: string): Buffer {
  return Buffer.from(formatNote({ text, signatures: [signNote(text, ORIGIN, signer)] }));
}

/** The files of a tile tree after the specification's own formula: path from the prefix to content. */
export function naiveTree(lines: readonly Buffer[]): Map<string, Buffer> {
  const files = new Map<string, Buffer>([['checkpoint', noteOf(lines)]]);
  const nameOf = (level: number | string, index: number, width: number): string => {
    const last = String(index % 1000).padStart(3, '0');
    const name = index < 1000 ? last : `x${String(Math.floor(index / 1000)).padStart(3, '0')}/${last}`;
    return `tile/${level}/${name}${width < 256 ? `.p/${width}` : ''}`;
  };
  for (let level = 0; 256 ** level <= lines.length; level += 1) {
    const span = 256 ** level;
    const hashes = Array.from({ length: Math.floor(lines.length / span) }, (_, i) =>
      merkleTreeHash(lines.slice(i * span, (i + 1) * span)),
    );
    for (let at = 0; at < hashes.length; at += 256) {
      const tile = hashes.slice(at, at + 256);
      files.set(nameOf(level, at / 256, tile.length), Buffer.concat(tile));
    }
  }
  for (let at = 0; at < lines.length; at += 256) {
    const bundle = lines.slice(at, at + 256);
    const parts = bundle.flatMap((line) => [Buffer.of(line.length >> 8, line.length & 0xff), line]);
    files.set(nameOf('entries', at / 256, bundle.length), Buffer.concat(parts));
  }
  return files;
}

/** The files below a folder, sorted by path. */
export function readTree(folder: string): Map<string, Buffer> {
  const names = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1));
  return new Map(names.sort().map((name) => [name, readFileSync(join(folder, name))]));
}

/** Writes files into a folder. */
export function plantTree(folder: string, files: ReadonlyMap<string, Uint8Array>): void {
  for (const [name, bytes] of files) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), bytes);
  }
}

/** `writeTiles` of lines in memory, with the note over them all unless another is given. */
export function publish(
  lines: readonly Buffer[],
  folder: string,
  options: WriteTilesOptions = {},
): Promise<WrittenTiles> {
  const bytes = toLedger(lines);
  const open = (): Promise<LedgerSource> => Promise.resolve(bytesSource(bytes, 'ledger.jsonl'));
  return writeTiles(open, folder, { note: noteOf(lines), fileSystem: soundFileSystem, ...options });
}

/** Everything that a tree says. */
export interface TreeReading {
  /** Its entries as a ledger. */
  readonly ledger: Buffer;
  readonly files: readonly string[];
  readonly faults: readonly FileFault[];
  readonly total: number;
  /** Whether the entries are as many as the checkpoint says and have its root. */
  readonly isComplete: boolean;
  readonly isSigned: boolean;
}

export async function readTiles(folder: string): Promise<TreeReading> {
  const tree = await openTileTree(folder);
  const chunks: Buffer[] = [];
  const files: string[] = [];
  for await (const segment of tree.source.segments) {
    files.push(segment.file);
    for await (const chunk of segment.chunks) chunks.push(Buffer.from(chunk));
  }
  const ledger = Buffer.concat(chunks);
  const lines = linesOf(ledger);
  const { size, root } = tree.checkpoint.checkpoint;
  const isComplete = lines.length === size && merkleTreeHash(lines).toString('latin1') === root;
  const { valid, invalid } = verifyNoteSignatures(tree.checkpoint, [noteKey]);
  return {
    ledger,
    files,
    ...(await tree.finish()),
    isComplete,
    isSigned: valid.length === 1 && invalid.length === 0,
  };
}

export function linesOf(ledger: Buffer): Buffer[] {
  const lines: Buffer[] = [];
  for (let start = 0; start < ledger.length;) {
    const end = ledger.indexOf(0x0a, start);
    lines.push(ledger.subarray(start, end));
    start = end + 1;
  }
  return lines;
}

/** Whether anything at all speaks against a tree. */
export async function isDoubted(folder: string): Promise<boolean> {
  try {
    const { total, isComplete, isSigned } = await readTiles(folder);
    return total > 0 || !isComplete || !isSigned;
  } catch {
    return true;
  }
}
