/**
 * A client of the C2SP witness protocol (https://c2sp.org/tlog-witness). Answers are untrusted: they are parsed strictly, in bounded time
 * and memory; {@link verifyCosignatures} verifies them.
 */

import { printable, withoutPasswords } from '../../base/bytes/printable.js';
import { startDeadline } from '../../base/deadline.js';
import { NorthrootError } from '../../base/error.js';
import { readBounded } from '../../base/http-answer.js';
import { parseCheckpoint } from '../../format/note/checkpoint.js';
import {
  canBeWitnessKey,
  isSignedBy,
  type NoteKey,
  verifyNoteSignature,
} from '../../format/note/note-key.js';
import { MAX_NOTE_SIGNATURES, type NoteSignature, readSignatureLine } from '../../format/note/signed-note.js';
import { formatConsistencyProof } from '../consistency-proof.js';
import { SIZE_CONTENT_TYPE } from './add-checkpoint.js';

export interface CollectOptions {
  /** The checkpoint, signed by its log. */
  readonly note: Uint8Array | string;
  /** The submission prefix of each witness, http or https. */
  readonly urls: readonly string[];
  /** The consistency proof from a size to the checkpoint's, as binary strings. Not called for 0 or the checkpoint's size. */
  readonly proofFor: (oldSize: number) => Promise<readonly string[]>;
  /** For each witness, from the first request to the last answer, in milliseconds. */
  readonly timeoutMs: number;
  /** The last cosigned size per witness URL. Default: 0, so the witness names it. */
  readonly oldSizes?: ReadonlyMap<string, number> | undefined;
  /** Called for each witness when it is done. */
  readonly onProgress?: ((result: Collected) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly fetch?: typeof fetch | undefined;
}

export interface Collected {
  readonly url: string;
  /** Its unverified signature lines; none after an error. */
  readonly lines: readonly NoteSignature[];
  /**
   * `WITNESS_URL_INVALID`, `WITNESS_UNREACHABLE` (or too slow), `WITNESS_REFUSED`, `WITNESS_AHEAD` (it has cosigned a larger
   * tree), `WITNESS_ANSWER_INVALID`, or the NorthrootError of `proofFor`.
   */
  readonly error?: NorthrootError;
}

interface ValidCosignature {
  readonly signature: NoteSignature;
  readonly key: NoteKey;
  /** Seconds since 1970. */
  readonly timestamp: number;
}

interface JudgedCosignatures {
  readonly valid: readonly ValidCosignature[];
  /** Invalid, by a known witness. */
  readonly invalid: readonly NoteSignature[];
  readonly unknown: readonly NoteSignature[];
}

const MAX_RESPONSE_BYTES = 256 * 1024;
/** With the remembered size, with the size that the witness names, and once more. */
const MAX_ATTEMPTS = 3;
const SHOWN_BYTES = 200;

/**
 * Asks all witnesses in parallel. Errors of a witness are in its result.
 *
 * @returns in the order of `urls`
 * @throws NorthrootError `NOTE_MALFORMED` if `note` is not a checkpoint; the reason of an aborted `signal`
 */
export async function collectCosignatures(options: CollectOptions): Promise<Collected[]> {
  const { checkpoint } = parseCheckpoint(Buffer.from(options.note));
  return Promise.all(
    options.urls.map(async (url) => {
      const { signal, clear } = startDeadline(options.timeoutMs, [options.signal]);
      const result = await collectFrom(url, checkpoint.size, options, signal)
        .then(
          (lines): Collected => ({ url, lines }),
          (error: unknown): Collected => {
            if (error instanceof NorthrootError) return { url, lines: [], error };
            throw error;
          },
        )
        .finally(clear);
      options.onProgress?.(result);
      return result;
    }),
  );
}

/**
 * Judges cosignatures of a checkpoint by the keys of known witnesses.
 *
 * @param text - The text of the checkpoint's note.
 * @param keys - Keys of type 0x04 and 0x06 count.
 */
export function verifyCosignatures(
  text: string,
  lines: readonly NoteSignature[],
  keys: readonly NoteKey[],
): JudgedCosignatures {
  const valid: ValidCosignature[] = [];
  const invalid: NoteSignature[] = [];
  const unknown: NoteSignature[] = [];
  for (const signature of lines) {
    const key = keys.find((each) => canBeWitnessKey(each) && isSignedBy(signature, each));
    const timestamp = key === undefined ? undefined : verifyNoteSignature(text, signature, key)?.timestamp;
    if (key === undefined) unknown.push(signature);
    // A cosignature of a tree must have a time; 0 means none.
    else if (!timestamp) invalid.push(signature);
    else valid.push({ signature, key, timestamp });
  }
  return { valid, invalid, unknown };
}

async function collectFrom(
  url: string,
  size: number,
  options: CollectOptions,
  signal: AbortSignal,
): Promise<NoteSignature[]> {
  const target = submissionUrl(url);
  let oldSize = options.oldSizes?.get(url) ?? 0;
  for (let attempt = 1; ; attempt += 1) {
    if (oldSize > size)
      throw new NorthrootError(
        'WITNESS_AHEAD',
        `${printable(url)} has cosigned a tree of ${oldSize} records; the checkpoint has ${size}`,
        { hint: 'if the ledger was not cut, the witness was shown another ledger of the same origin' },
      );
    const proof = oldSize === 0 || oldSize === size ? [] : await options.proofFor(oldSize);
    const body = formatConsistencyProof({ oldSize, hashes: proof, note: Buffer.from(options.note) });
    const response = await post(target, body, signal, options.fetch ?? fetch).catch((error: unknown) => {
      options.signal?.throwIfAborted();
      throw toUnreachable(error, url);
    });
    if (response.status === 200) return readSignatureLines(response.body);
    // A 409 without a size is about another tree of the same size.
    if (response.status !== 409 || response.contentType !== SIZE_CONTENT_TYPE) {
      const words = printable(response.body.subarray(0, SHOWN_BYTES).toString().trim());
      throw refused(url, `${response.status}${words === '' ? '' : `: ${words}`}`);
    }
    const named = readSize(response);
    if (named === oldSize || attempt === MAX_ATTEMPTS)
      throw refused(url, `409 again, now with the size ${named}`);
    oldSize = named;
  }
}

interface Answer {
  readonly status: number;
  readonly contentType: string;
  readonly body: Buffer;
}

async function post(
  target: string,
  body: Uint8Array,
  signal: AbortSignal,
  send: typeof fetch,
): Promise<Answer> {
  const response = await send(target, {
    method: 'POST',
    body,
    signal,
    redirect: 'manual',
    headers: { 'Content-Type': 'text/plain; charset=utf-8', 'Accept-Encoding': 'identity' },
  });
  const { bytes, isWhole } = await readBounded(response, MAX_RESPONSE_BYTES);
  if (!isWhole) throw invalid(`at most ${MAX_RESPONSE_BYTES} bytes`, 'more');
  const contentType = response.headers.get('Content-Type') ?? '';
  return { status: response.status, contentType, body: Buffer.from(bytes) };
}

function readSize({ body }: Answer): number {
  const [, digits = ''] = /^(0|[1-9]\d{0,15})\n$/.exec(body.toString('latin1')) ?? [];
  const size = Number(digits);
  if (digits === '' || !Number.isSafeInteger(size)) throw invalid('a size with status 409', 'other text');
  return size;
}

function readSignatureLines(body: Buffer): NoteSignature[] {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body);
  } catch {
    throw invalid('signature lines in UTF-8', 'other bytes');
  }
  const lines = text.split('\n');
  if (lines.pop() !== '' || lines.length === 0)
    throw invalid('signature lines that end in a newline', 'none');
  if (lines.length > MAX_NOTE_SIGNATURES)
    throw invalid(`at most ${MAX_NOTE_SIGNATURES} signature lines`, `${lines.length}`);
  if (new Set(lines).size < lines.length) throw invalid('each signature line once', 'one of them twice');
  return lines.map((line, index) => {
    const signature = readSignatureLine(line);
    if (signature === undefined) throw invalid('signature lines', `other text in line ${index + 1}`);
    return signature;
  });
}

/**
 * The `add-checkpoint` URL of a witness.
 *
 * @throws NorthrootError `WITNESS_URL_INVALID` when `prefix` is no submission prefix
 */
export function submissionUrl(prefix: string): string {
  const url = URL.canParse(prefix) ? new URL(prefix) : undefined;
  const isWeb = url?.protocol === 'http:' || url?.protocol === 'https:';
  if (url === undefined || !isWeb || /[?#]/.test(prefix) || url.username !== '' || url.password !== '')
    throw new NorthrootError(
      'WITNESS_URL_INVALID',
      `expected the http or https URL of a witness, without user, query and fragment, found ${printable(withoutPasswords(prefix))}`,
    );
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}/add-checkpoint`;
}

function toUnreachable(error: unknown, url: string): NorthrootError {
  if (error instanceof NorthrootError) return error;
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const isLate = error instanceof Error && error.name === 'TimeoutError';
  const why = isLate ? 'no answer in time' : cause instanceof Error ? cause.message : String(cause);
  return new NorthrootError('WITNESS_UNREACHABLE', `cannot ask ${printable(url)}: ${printable(why)}`, {
    cause: error,
  });
}

function refused(url: string, answer: string): NorthrootError {
  return new NorthrootError('WITNESS_REFUSED', `${printable(url)} answered ${answer}`);
}

function invalid(expected: string, found: string): NorthrootError {
  return new NorthrootError(
    'WITNESS_ANSWER_INVALID',
    `the witness's answer is not valid: expected ${expected}, found ${found}`,
  );
}
