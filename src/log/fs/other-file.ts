/**
 * Recognises files that are commonly mistaken for a ledger. A report would quote them, and they may be secrets, so they are refused by
 * kind, without any of their text.
 */

import { concatBytes } from '../../base/bytes/concat.js';
import { printable } from '../../base/bytes/printable.js';
import { decodeLatin1 } from '../../base/bytes/text.js';
import { NorthrootError } from '../../base/error.js';

/** Keys, notes and proofs are shorter. */
const HEAD_BYTES = 4096;

const RECORD_START = '{"event":{';

const OPENING_BRACE = 0x7b;
const NEWLINE = 0x0a;

const SECRET = 'nothing of it is shown here; a ledger is beside its key, without .key';
const PUBLIC = 'give the ledger; a key belongs in a trust policy, or beside a proof';
const NOTE = 'give the ledger, and the note as a checkpoint that is held against it';
const PROOF = 'a proof is verified by itself, without a ledger';
const POLICY = 'give the ledger, and the policy beside it';
const BUNDLE = 'it holds one signed statement: give the ledger';
const VERIFIED = 'it is verified by itself, without a ledger: give the ledger';
const CHECK = 'check the path';

/** The first match counts; patterns see the head as latin1. */
const KINDS = [
  [/^\s*-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----/, 'a private key', SECRET],
  [/^PRIVATE\+KEY\+/, 'a private key', SECRET],
  [/^\s*\{(?=[^{}]{0,4000}"kty"\s*:)[^{}]{0,4000}"d"\s*:/, 'a private key', SECRET],
  [/^\s*\{[^{}]{0,4000}"kty"\s*:/, 'a public key', PUBLIC],
  [/^\s*-----BEGIN [A-Z0-9 ]{0,40}(?:PUBLIC KEY|CERTIFICATE)-----/, 'a public key', PUBLIC],
  [/^(?:ssh-ed25519|ecdsa-sha2-nistp256) AAAA|^did:key:z/, 'a public key', PUBLIC],
  [/^[^\s+]{1,255}\+[0-9a-f]{8}\+[A-Za-z0-9+/]{43,4000}={0,2}\s*$/, 'a public key', PUBLIC],
  [/^(?:[0-9a-fA-F]{64}|[A-Za-z0-9+/_-]{43}=?|[A-Za-z0-9+/_-]{86}(?:==)?)\s*$/, 'a key', SECRET],
  [/^\xd9\xd9\xf7\x86\x70northroot-bundle/, 'a northroot bundle', VERIFIED],
  [/^NRJ1/, 'a Northroot journal', 'its events are to be appended to a ledger'],
  [/^(?:\xd2\x84|\x84[\x40-\x5b])/, 'a COSE message', VERIFIED],
  [/^PAR1/, 'a Parquet file', 'give the ledger that it was made of'],
  [/^c2sp\.org\/tlog-proof@v1\n/, 'a proof', PROOF],
  [/^old \d{1,16}\n/, 'a consistency proof', PROOF],
  [/^[^\n]{1,1000}\n\d{1,16}\n[A-Za-z0-9+/]{43}=\n/, 'a checkpoint', NOTE],
  [/^[^{][^\0]{0,4000}\n\n\xe2\x80\x94 [^\s+]+ [A-Za-z0-9+/]+=*\n/, 'a signed note', NOTE],
  [/^\s*\{[^{}[\]]{0,200}"trust_version"\s*:/, 'a trust policy', POLICY],
  [/^\s*\{\s*"(?:origins|keys|require)"\s*:[^]{0,4000}"trust_version"\s*:/, 'a trust policy', POLICY],
  // Blank lines match in one way only: backtracking would double with each.
  [/^(?:\s*#[^\n]*\n)*\s*(?:log|witness|group|quorum) [^\s{]/, 'a witness policy', POLICY],
  [
    /^\s*\{[^]{0,4000}"mediaType"\s*:\s*"application\/vnd\.dev\.sigstore\.bundle/,
    'a Sigstore bundle',
    BUNDLE,
  ],
  [/^\s*\{\s*"(?:payloadType|payload|signatures)"\s*:/, 'a DSSE envelope', BUNDLE],
  [/^\s*\{\s*"activity_version"\s*:/, 'an activity report', 'give the ledger that it is on'],
  [/^\s*\{\s*"report_version"\s*:/, 'a report of a verification', 'give the ledger that it is on'],
  [/^\s*\[\s*[{\]]/, 'a JSON array', 'its events are to be appended to a ledger'],
  [/^northroot-state /, 'a saved state', 'give the ledger, and go on from the state'],
  [/^\s*<(?:!doctype html|html|\?xml)/i, 'a web page or XML', CHECK],
  [/^\x1f\x8b/, 'a gzip archive', 'unpack it first'],
  [/^(?![^]*\{")[^\0]*\0/, 'a binary file', CHECK],
] as const satisfies readonly (readonly [start: RegExp, kind: string, hint: string])[];

/**
 * Most likely no ledger, though possibly one with a broken beginning, which verification calls invalid (SPEC §8). Used where files are
 * given without their purpose.
 */
const LIKELY_KINDS = [
  // The beginning of an event means a ledger, however broken. Of a long line only the beginning is known.
  [/^(?![^]*"event)\s*\{(?:[^\n]*\n|[^]{0,4000}$)/, 'JSON of another kind', CHECK],
  [
    /^(?![^]*"event)(?:\xef\xbb\xbf)?(?:"[^"\n]*"|[^\n",;{}[\]]+)(?:[,;](?:"[^"\n]*"|(?! )[^\n",;{}[\]]+))+\r?\n/,
    'a table in CSV',
    'give the ledger that it was made of',
  ],
  [/^(?![^]*[{}\0])[^]*[A-Za-z]{2}/, 'a text', CHECK],
] as const satisfies readonly (readonly [start: RegExp, kind: string, hint: string])[];

/** A file of another kind was given as a ledger (`NOT_A_LEDGER`). */
export class OtherFileError extends NorthrootError {
  /** The kind, with its article. */
  readonly looksLike: (typeof KINDS | typeof LIKELY_KINDS)[number][1];

  constructor(name: string, looksLike: OtherFileError['looksLike'], hint: string) {
    super('NOT_A_LEDGER', `${printable(name)} is not a ledger: it looks like ${looksLike}`, { hint });
    this.name = 'OtherFileError';
    this.looksLike = looksLike;
  }
}

/**
 * Passes `chunks` through unless they begin like another kind of file. Chunks may be reused.
 * @param options - `likely`: also refuse what is most likely no ledger
 */
export async function* refuseOtherFiles(
  chunks: AsyncIterable<Uint8Array>,
  name: string,
  { likely = false }: { readonly likely?: boolean } = {},
): AsyncGenerator<Uint8Array, void, void> {
  let head: Uint8Array | undefined = new Uint8Array();
  for await (const chunk of chunks) {
    if (head === undefined) {
      yield chunk;
      continue;
    }
    const begun: Uint8Array = head.length === 0 ? chunk : concatBytes([head, chunk]);
    head = undefined;
    if (begun.length < HEAD_BYTES && !isDecided(begun)) {
      head = Uint8Array.from(begun);
      continue;
    }
    assertNoOtherFile(begun, name, likely);
    yield begun;
  }
  if (head === undefined) return;
  assertNoOtherFile(head, name, likely);
  yield head;
}

/** One line decides JSON, so that followed events are not held back. */
function isDecided(head: Uint8Array): boolean {
  return isRecordStart(head) || (head[0] === OPENING_BRACE && head.includes(NEWLINE));
}

function isRecordStart(head: Uint8Array): boolean {
  return startOf(head, RECORD_START.length) === RECORD_START;
}

/** @throws OtherFileError */
function assertNoOtherFile(head: Uint8Array, name: string, likely: boolean): void {
  const found = findKind(head) ?? (likely ? findLikelyKind(head) : undefined);
  if (found === undefined) return;
  const [, looksLike, hint] = found;
  throw new OtherFileError(name, looksLike, hint);
}

function findKind(head: Uint8Array): (typeof KINDS)[number] | undefined {
  if (isRecordStart(head)) return undefined;
  const text = startOf(head, HEAD_BYTES);
  return KINDS.find(([start]) => start.test(text));
}

/** The likely kind of a file that begins with `head` (at most 4,096 bytes), with its article; undefined for a ledger, however broken. */
export function recogniseOtherFile(head: Uint8Array): OtherFileError['looksLike'] | undefined {
  return (findKind(head) ?? findLikelyKind(head))?.[1];
}

function findLikelyKind(head: Uint8Array): (typeof LIKELY_KINDS)[number] | undefined {
  if (isRecordStart(head)) return undefined;
  const text = startOf(head, HEAD_BYTES);
  // A torn first record.
  if (RECORD_START.startsWith(text)) return undefined;
  return LIKELY_KINDS.find(([start]) => start.test(text));
}

function startOf(head: Uint8Array, length: number): string {
  return decodeLatin1(head, 0, Math.min(length, head.length));
}
