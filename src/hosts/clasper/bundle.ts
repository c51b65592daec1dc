/**
 * Clasper's evidence bundles (CLA-10): the digests of their files, and the signature. Two forms: of a77f132, with a chain, keys and
 * perhaps a signature, and of 1.0.0, which says itself that nobody else vouches for it.
 */

import { decodeUtf8 } from '../../base/bytes/text.js';
import { SourceNumber, SourceObject, type SourceValue } from '../../base/json/source-json.js';
import type { PublicKey } from '../../format/key/public-key.js';
import { hashText, stableBytes } from '../shared/forms/stable.js';
import type { HostFile, HostFinding, HostPlace } from '../shared/host.js';
import { listAt, numberAt, objectAt, textAt, valueAt } from '../shared/values.js';
import { tryReadJwk, verifiesText } from './keys.js';
import { type Code, finding } from './rules.js';
import type { FindingDetails } from '../shared/findings.js';
import { jsonIn } from '../shared/reading.js';

/** A bundle's files by their names within it: `traces.jsonl`. */
type BundleFiles = ReadonlyMap<string, HostFile>;

/** Every name that a bundle's file has. */
export const BUNDLE_NAMES: readonly string[] = [
  ...['metadata.json', 'integrity.json', 'verify.sha256', 'adapters.json', 'public_keys.json'],
  ...['audit_chain.jsonl', 'audits.jsonl', 'traces.jsonl'],
];

/** What `metadata.json` counts, in which file, and how. */
const COUNTED: Readonly<Record<string, readonly [file: string, count: (bytes: Uint8Array) => number]>> = {
  traces: ['traces.jsonl', countLines],
  audits: ['audits.jsonl', countLines],
  audit_chain_entries: ['audit_chain.jsonl', countLines],
  adapters: ['adapters.json', countElements],
};
const MAX_LISTED = 1024;

/** Checks what a bundle says of its own files. A bundle that says nothing about a file says nothing that protects it. */
export function checkBundle(files: BundleFiles, pinned?: PublicKey): readonly HostFinding[] {
  return new BundleChecker(files, pinned).run();
}

class BundleChecker {
  readonly #files: BundleFiles;
  readonly #pinned: PublicKey | undefined;
  readonly #found: HostFinding[] = [];

  constructor(files: BundleFiles, pinned: PublicKey | undefined) {
    this.#files = files;
    this.#pinned = pinned;
  }

  run(): readonly HostFinding[] {
    const file = this.#files.get('integrity.json');
    if (file === undefined) {
      const [first] = this.#files.values();
      this.#find('INTEGRITY_MISSING', { file: first?.name ?? '' });
    } else this.#integrity(file);
    this.#counts();
    return this.#found;
  }

  #integrity(file: HostFile): void {
    const at = { file: file.name };
    const integrity = jsonIn(file.bytes, { loneSurrogates: true });
    if (!(integrity instanceof SourceObject))
      return this.#find('INTEGRITY_MALFORMED', at, { expected: 'a JSON object' });
    this.#listed(integrity, at);
    this.#verifyFile(integrity, file, at);
    this.#signature(integrity, at);
  }

  #listed(integrity: SourceObject, at: HostPlace): void {
    const listed = listOf(integrity);
    const place = { ...at, pointer: '/files' };
    if (listed === undefined)
      return this.#find('INTEGRITY_MALFORMED', place, { expected: 'the digest of each file' });
    for (const [name, stated] of listed.slice(0, MAX_LISTED)) {
      const file = this.#files.get(name);
      if (/(?:^|[/\\])\.\.(?:[/\\]|$)|^[/\\]|^[A-Za-z]:/.test(name))
        this.#find('PATH_UNSAFE', place, { actual: name });
      else if (file === undefined) this.#find('FILE_MISSING', place, { expected: name });
      else {
        const actual = hashText(file.bytes);
        if (actual !== (stated.startsWith('sha256:') ? stated : `sha256:${stated}`))
          this.#find('FILE_HASH_MISMATCH', { file: file.name }, { expected: stated, actual });
      }
    }
    const names = new Set(['integrity.json', 'verify.sha256', ...listed.map(([name]) => name)]);
    // A file that bundles have and that is not listed is one whose digest was taken away; another is just beside them.
    for (const [name, file] of this.#files)
      if (!names.has(name))
        this.#find(
          'FILE_NOT_LISTED',
          { file: file.name },
          { weight: BUNDLE_NAMES.includes(name) ? 'invalid' : 'warning' },
        );
  }

  #verifyFile(integrity: SourceObject, file: HostFile, at: HostPlace): void {
    const verify = this.#files.get('verify.sha256');
    if (verify === undefined) {
      // The form of 1.0.0 has none.
      if (!Array.isArray(valueAt(integrity, 'files'))) this.#find('VERIFY_FILE_MISSING', at);
      return;
    }
    const [stated = ''] = decodeUtf8(verify.bytes.subarray(0, 1024)).trim().split(/\s+/);
    const actual = hashText(file.bytes);
    if (stated !== actual)
      this.#find('INTEGRITY_HASH_MISMATCH', { file: verify.name }, { expected: stated, actual });
  }

  #signature(integrity: SourceObject, at: HostPlace): void {
    const signature = textAt(integrity, 'signature');
    if (signature === undefined) {
      if (this.#pinned === undefined) this.#find('BUNDLE_UNSIGNED', at);
      else this.#find('SIGNATURE_MISSING', at, { expected: `one by ${this.#pinned.keyid}` });
      return;
    }
    const jwk = objectAt(integrity, 'public_key');
    const carried = jwk === undefined ? undefined : tryReadJwk(jwk);
    const pinned = this.#pinned;
    if (pinned === undefined) this.#find('SIGNATURE_KEY_NOT_PINNED', at);
    else if (carried !== undefined && carried.keyid !== pinned.keyid) {
      const details = { expected: pinned.keyid, actual: carried.keyid };
      this.#find('SIGNATURE_KEY_MISMATCH', { ...at, pointer: '/public_key' }, details);
    }
    const key = pinned ?? carried;
    const holds = (...without: string[]): boolean =>
      key !== undefined &&
      verifiesText(key, stableBytes(integrity.without('signature', ...without)), signature);
    // The host adds key_id after it has signed, and verifies with it: its own verifier refuses its own bundles.
    if (holds('public_key', 'key_id')) this.#find('SIGNED_WITHOUT_KEY_ID', at);
    else if (holds('public_key')) this.#find('SIGNED_WITH_KEY_ID', at);
    else
      this.#find('SIGNATURE_INVALID', at, { expected: `one by ${key?.keyid ?? 'a key that can be read'}` });
  }

  #counts(): void {
    const file = this.#files.get('metadata.json');
    const metadata = file === undefined ? undefined : jsonIn(file.bytes, { loneSurrogates: true });
    if (file === undefined || metadata === undefined) return;
    for (const [member, [name, count]] of Object.entries(COUNTED)) {
      const expected = numberAt(metadata, 'counts', member);
      const actual = count(this.#files.get(name)?.bytes ?? new Uint8Array());
      if (expected === undefined || Number(expected) === actual) continue;
      const at = { file: file.name, pointer: `/counts/${member}` };
      this.#find('COUNT_MISMATCH', at, { expected, actual: String(actual) });
    }
  }

  #find(code: Code, at: HostPlace, details?: FindingDetails): void {
    this.#found.push(finding(code, at, details));
  }
}

/** `{name: digest}` of a77f132, `[{path, sha256}]` of 1.0.0. */
function listOf(integrity: SourceObject): [string, string][] | undefined {
  const files = valueAt(integrity, 'files');
  if (files instanceof SourceObject) return files.entries().map(([name, digest]) => [name, textOf(digest)]);
  return listAt(integrity, 'files')?.map((entry) => [
    textAt(entry, 'path') ?? '',
    textAt(entry, 'sha256') ?? '',
  ]);
}

function textOf(value: SourceValue): string {
  return typeof value === 'string' ? value : value instanceof SourceNumber ? value.text : '';
}

function countLines(bytes: Uint8Array): number {
  let lines = 0;
  let isBlank = true;
  for (const byte of bytes) {
    if (byte === 0x0a) {
      if (!isBlank) lines++;
      isBlank = true;
    } else if (byte !== 0x20 && byte !== 0x09 && byte !== 0x0d) isBlank = false;
  }
  return isBlank ? lines : lines + 1;
}

function countElements(bytes: Uint8Array): number {
  const list = jsonIn(bytes, { loneSurrogates: true });
  return Array.isArray(list) ? list.length : 0;
}
