/**
 * Clasper's evidence bundles (CLA-10): the digests of their files, and the signature. Two forms: of a77f132, with a chain, keys and
 * perhaps a signature, and of 1.0.0, which says itself that nobody else vouches for it.
 */

import { decodeUtf8 } from '../../base/bytes/text.js';
import {
  decodeSourceJson,
  SourceNumber,
  SourceObject,
  type SourceValue,
} from '../../base/json/source-json.js';
import type { PublicKey } from '../../format/key/public-key.js';
import { hashText, stableBytes } from '../shared/forms/stable.js';
import type { HostFile, HostFindingClass, HostPlace } from '../shared/host.js';
import { listAt, numberAt, objectAt, textAt, valueAt } from '../shared/values.js';
import { tryReadJwk, verifiesText } from './keys.js';

/** One thing found about a bundle. */
export interface BundleFault {
  readonly code:
    | 'INTEGRITY_MISSING'
    | 'INTEGRITY_MALFORMED'
    | 'INTEGRITY_HASH_MISMATCH'
    | 'VERIFY_FILE_MISSING'
    | 'FILE_MISSING'
    | 'FILE_HASH_MISMATCH'
    | 'FILE_NOT_LISTED'
    | 'PATH_UNSAFE'
    | 'COUNT_MISMATCH'
    | 'BUNDLE_UNSIGNED'
    | 'SIGNATURE_MISSING'
    | 'SIGNATURE_INVALID'
    | 'SIGNATURE_KEY_NOT_PINNED'
    | 'SIGNATURE_KEY_MISMATCH'
    | 'SIGNED_WITHOUT_KEY_ID'
    | 'SIGNED_WITH_KEY_ID';
  readonly severity: 'error' | 'warning' | 'info';
  readonly class: HostFindingClass;
  readonly at: HostPlace;
  readonly expected?: string | undefined;
  readonly actual?: string | undefined;
}

/** A bundle's files by their names within it: `traces.jsonl`. */
export type BundleFiles = ReadonlyMap<string, HostFile>;

/** Every name that a bundle's file has. */
export const BUNDLE_NAMES: readonly string[] = [
  ...['metadata.json', 'integrity.json', 'verify.sha256', 'adapters.json', 'public_keys.json'],
  ...['audit_chain.jsonl', 'audits.jsonl', 'traces.jsonl'],
];

/** What `metadata.json` counts, and in which file. */
const COUNTED = { traces: 'traces.jsonl', audits: 'audits.jsonl', audit_chain_entries: 'audit_chain.jsonl' };
const MAX_LISTED = 1024;

/** Checks what a bundle says of its own files. A bundle that says nothing about a file says nothing that protects it. */
export function checkBundle(files: BundleFiles, pinned?: PublicKey): readonly BundleFault[] {
  return new BundleChecker(files, pinned).run();
}

class BundleChecker {
  readonly #files: BundleFiles;
  readonly #pinned: PublicKey | undefined;
  readonly #faults: BundleFault[] = [];

  constructor(files: BundleFiles, pinned: PublicKey | undefined) {
    this.#files = files;
    this.#pinned = pinned;
  }

  run(): readonly BundleFault[] {
    const file = this.#files.get('integrity.json');
    if (file === undefined) {
      const [first] = this.#files.values();
      this.#invalid('INTEGRITY_MISSING', { file: first?.name ?? '' }, 'integrity.json', 'none');
      this.#counts();
      return this.#faults;
    }
    const decoded = decodeSourceJson(file.bytes, { loneSurrogates: true });
    const at = { file: file.name };
    if (!decoded.ok || !(decoded.value instanceof SourceObject))
      this.#invalid('INTEGRITY_MALFORMED', at, 'a JSON object', 'something else');
    else {
      this.#listed(decoded.value, at);
      this.#verifyFile(decoded.value, file, at);
      this.#signature(decoded.value, at);
    }
    this.#counts();
    return this.#faults;
  }

  #listed(integrity: SourceObject, at: HostPlace): void {
    const listed = listOf(integrity);
    if (listed === undefined) {
      this.#invalid(
        'INTEGRITY_MALFORMED',
        { ...at, pointer: '/files' },
        'the digest of each file',
        'something else',
      );
      return;
    }
    for (const [name, stated] of listed.slice(0, MAX_LISTED)) {
      const file = this.#files.get(name);
      const place = { ...at, pointer: '/files' };
      if (/(?:^|[/\\])\.\.(?:[/\\]|$)|^[/\\]|^[A-Za-z]:/.test(name))
        this.#invalid('PATH_UNSAFE', place, 'a name within the bundle', name);
      else if (file === undefined) this.#invalid('FILE_MISSING', place, name, 'none');
      else {
        const actual = hashText(file.bytes);
        if (actual !== (stated.startsWith('sha256:') ? stated : `sha256:${stated}`))
          this.#invalid('FILE_HASH_MISMATCH', { file: file.name }, stated, actual);
      }
    }
    const names = new Set(listed.map(([name]) => name));
    for (const [name, file] of this.#files) {
      if (names.has(name) || name === 'integrity.json' || name === 'verify.sha256') continue;
      // A file that bundles have and that is not listed is one whose digest was taken away; another is just beside them.
      const place = { file: file.name };
      if (BUNDLE_NAMES.includes(name))
        this.#invalid('FILE_NOT_LISTED', place, 'its digest in integrity.json', 'none');
      else this.#warn('FILE_NOT_LISTED', place, 'its digest in integrity.json', 'none');
    }
  }

  #verifyFile(integrity: SourceObject, file: HostFile, at: HostPlace): void {
    const verify = this.#files.get('verify.sha256');
    if (verify === undefined) {
      // The form of 1.0.0 has none.
      if (!Array.isArray(valueAt(integrity, 'files')))
        this.#warn('VERIFY_FILE_MISSING', at, 'verify.sha256', 'none');
      return;
    }
    const [stated = ''] = decodeUtf8(verify.bytes.subarray(0, 1024)).trim().split(/\s+/);
    const actual = hashText(file.bytes);
    if (stated !== actual) this.#invalid('INTEGRITY_HASH_MISMATCH', { file: verify.name }, stated, actual);
  }

  #signature(integrity: SourceObject, at: HostPlace): void {
    const signature = textAt(integrity, 'signature');
    if (signature === undefined) {
      if (this.#pinned !== undefined)
        this.#invalid('SIGNATURE_MISSING', at, `one by ${this.#pinned.keyid}`, 'none');
      else this.#warn('BUNDLE_UNSIGNED', at, 'a signature', 'none');
      return;
    }
    const jwk = objectAt(integrity, 'public_key');
    const carried = jwk === undefined ? undefined : tryReadJwk(jwk);
    const pinned = this.#pinned;
    if (pinned === undefined)
      this.#warn('SIGNATURE_KEY_NOT_PINNED', at, 'a pinned key', 'the key that the bundle carries');
    else if (carried !== undefined && carried.keyid !== pinned.keyid)
      this.#invalid('SIGNATURE_KEY_MISMATCH', { ...at, pointer: '/public_key' }, pinned.keyid, carried.keyid);
    const key = pinned ?? carried;
    const holds = (...without: string[]): boolean =>
      key !== undefined &&
      verifiesText(key, stableBytes(integrity.without('signature', ...without)), signature);
    // The host adds key_id after it has signed, and verifies with it: its own verifier refuses its own bundles.
    if (holds('public_key', 'key_id'))
      this.#info('SIGNED_WITHOUT_KEY_ID', at, 'signed before key_id was added');
    else if (holds('public_key')) this.#info('SIGNED_WITH_KEY_ID', at, 'signed with key_id in it');
    else
      this.#invalid('SIGNATURE_INVALID', at, `one by ${key?.keyid ?? 'a key that can be read'}`, 'another');
  }

  #counts(): void {
    const file = this.#files.get('metadata.json');
    if (file === undefined) return;
    const decoded = decodeSourceJson(file.bytes, { loneSurrogates: true });
    if (!decoded.ok) return;
    for (const [member, name] of Object.entries(COUNTED)) {
      const stated = numberAt(decoded.value, 'counts', member);
      if (stated === undefined) continue;
      const actual = countLines(this.#files.get(name)?.bytes ?? new Uint8Array());
      if (Number(stated) !== actual)
        this.#invalid(
          'COUNT_MISMATCH',
          { file: file.name, pointer: `/counts/${member}` },
          stated,
          String(actual),
        );
    }
    const adapters = this.#files.get('adapters.json');
    const stated = numberAt(decoded.value, 'counts', 'adapters');
    const listed =
      adapters === undefined ? undefined : decodeSourceJson(adapters.bytes, { loneSurrogates: true });
    const actual = listed?.ok && Array.isArray(listed.value) ? listed.value.length : 0;
    if (stated !== undefined && Number(stated) !== actual)
      this.#invalid(
        'COUNT_MISMATCH',
        { file: file.name, pointer: '/counts/adapters' },
        stated,
        String(actual),
      );
  }

  #invalid(code: BundleFault['code'], at: HostPlace, expected: string, actual: string): void {
    this.#faults.push({ code, severity: 'error', class: 'invalid', at, expected, actual });
  }

  #warn(code: BundleFault['code'], at: HostPlace, expected: string, actual: string): void {
    this.#faults.push({ code, severity: 'warning', class: 'none', at, expected, actual });
  }

  #info(code: BundleFault['code'], at: HostPlace, actual: string): void {
    this.#faults.push({ code, severity: 'info', class: 'none', at, actual });
  }
}

/** `{name: digest}` of a77f132, `[{path, sha256}]` of 1.0.0. */
function listOf(integrity: SourceObject): [string, string][] | undefined {
  const files = valueAt(integrity, 'files');
  if (files instanceof SourceObject) {
    return files.entries().map(([name, digest]) => [name, textOf(digest)]);
  }
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
