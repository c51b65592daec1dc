/** Verifies the envelope of a statement offline. Pure: no files, no clock. */

import { tryDecodeBase64url } from '../../base/bytes/encoding.js';
import { decodeLatin1 } from '../../base/bytes/text.js';
import { excerptText } from '../../base/json/excerpt.js';
import { ingestJson } from '../../base/json/ingest.js';
import { isJsonObject, type JsonObject, type JsonValue } from '../../base/json/value.js';
import { checkOptions } from '../../base/options.js';
import type { PublicKey } from '../../format/key/public-key.js';
import type { SignatureBackend } from '../../format/signature/backend.js';
import { defaultBackend } from '../../format/signature/default-backend.js';
import { preAuthEncoding } from '../../format/signature/dsse.js';
import { tryDecodeEcdsaDer } from '../../format/signature/ecdsa-der.js';
import type { ProofProblem } from '../proof-keys.js';
import { type ProofGap, type ProofOutcome, verdictOf } from '../verify-proof.js';
import { STATEMENT_PAYLOAD_TYPE, STATEMENT_TYPE, VSA_TYPE } from './statement.js';

/** The largest envelope, in bytes. */
const MAX_STATEMENT_BYTES = 1024 * 1024;
const MAX_SIGNATURES = 16;

export interface VerifyStatementOptions {
  /** Trusted keys. The result is `ok` only if one of them signed. */
  readonly keys: readonly PublicKey[];
  /** The SHA-256 of the ledger that the statement must be about, in lower-case hexadecimal (`hashLedger`). */
  readonly sha256?: string | undefined;
  /** Whether to require PASSED, as SLSA does. Default: false, the verdict is about the envelope only. */
  readonly requirePassed?: boolean | undefined;
  /** Default: the platform's. */
  readonly backend?: SignatureBackend | undefined;
}

/** The result in its wire form. */
export interface StatementResult extends ProofOutcome {
  readonly kind: 'in-toto-statement';
  /** The statement, verbatim; null if unreadable. Proven only if the verdict is `ok`. */
  readonly statement: JsonObject | null;
  /** Keyids of the given keys that signed. */
  readonly signers: readonly string[];
}

const LEDGER: ProofGap = {
  code: 'LEDGER',
  message: 'the ledger was not verified here: that it passed or failed is the word of who signed',
};

const SUBJECT: ProofGap = {
  code: 'SUBJECT',
  message: 'no ledger was given: that the statement is about one that you hold is not checked',
};

/** Whether bytes begin like a DSSE envelope of any payload type. */
export function isStatement(bytes: Uint8Array): boolean {
  return /^\s*\{\s*"(?:payloadType|payload|signatures)"\s*:/.test(
    decodeLatin1(bytes.subarray(0, HEAD_BYTES)),
  );
}

const HEAD_BYTES = 256;

/**
 * Verifies a DSSE envelope with an in-toto statement of SLSA's Verification Summary, by any tool. One valid signature by a given key is
 * enough, as in DSSE; an invalid one that names a given key makes the result invalid.
 *
 * @returns problems with the codes `STATEMENT_MALFORMED`, `SIGNATURE_INVALID`, `SUBJECT_MISMATCH`, `KEY_UNKNOWN` (undecided), and
 *   `NOT_PASSED`, which is checked only if a given key signed
 * @throws TypeError for an option that is not known or of the wrong type; RangeError for a `sha256` that is none
 */
export function verifyStatement(bytes: Uint8Array, options: VerifyStatementOptions): StatementResult {
  checkOptions('verifyStatement', options, {
    keys: 'array',
    sha256: 'string',
    requirePassed: 'boolean',
    backend: 'object',
  });
  const { keys, sha256, requirePassed = false, backend = defaultBackend } = options;
  if (sha256 !== undefined && !SHA256_HEX.test(sha256))
    throw new RangeError('verifyStatement: expected sha256 as 64 lower-case hexadecimal digits');
  const malformed = (expected: string): StatementResult =>
    conclude([problem('STATEMENT_MALFORMED', expected)], { statement: null, signers: [], not_checked: [] });
  if (bytes.length > MAX_STATEMENT_BYTES) return malformed(`at most ${MAX_STATEMENT_BYTES} bytes`);
  const envelope = readObject(bytes);
  if (envelope === undefined) return malformed('a DSSE envelope in JSON, no member twice');
  const { payloadType, signatures } = envelope;
  const payload = readBase64(envelope['payload']);
  if (payload === undefined) return malformed('a payload in base64');
  if (typeof payloadType !== 'string' || !PAYLOAD_TYPE.test(payloadType))
    return malformed(`the payload type ${STATEMENT_PAYLOAD_TYPE}`);
  if (!Array.isArray(signatures) || signatures.length === 0 || signatures.length > MAX_SIGNATURES)
    return malformed(`1 to ${MAX_SIGNATURES} signatures`);
  const statement = readObject(payload);
  if (statement?.['_type'] !== STATEMENT_TYPE || statement['predicateType'] !== VSA_TYPE)
    return malformed(`a statement ${STATEMENT_TYPE} with the predicate ${VSA_TYPE}`);
  const problems: ProofProblem[] = [];
  const signers = new Set<string>();
  const message = preAuthEncoding(payloadType, payload);
  const known = keys.map((key) => backend.importKey(key));
  for (const each of signatures) {
    const { keyid, sig } = isJsonObject(each) ? each : {};
    const signature = readBase64(sig);
    if (signature === undefined) return malformed('signatures in base64');
    // The keyid is only a hint: other tools compute it differently.
    const signer = known.find((key) => {
      const raw = key.publicKey.alg === 'p256' ? tryDecodeEcdsaDer(signature) : signature;
      return raw !== undefined && key.verify(message, raw);
    });
    if (signer !== undefined) signers.add(signer.publicKey.keyid);
    else if (known.some(({ publicKey }) => publicKey.keyid === keyid))
      problems.push(problem('SIGNATURE_INVALID', `a signature by ${excerptText(keyid as string)}`));
  }
  if (sha256 !== undefined && !namesSubject(statement, sha256))
    problems.push(problem('SUBJECT_MISMATCH', `a subject with the sha256 ${sha256}`));
  if (signers.size === 0 && problems.length === 0)
    problems.push({ ...problem('KEY_UNKNOWN', 'a signature by a given key'), kind: 'undecided' });
  const said = requirePassed && signers.size > 0 ? resultOf(statement) : 'PASSED';
  if (said !== 'PASSED') {
    const actual = typeof said === 'string' ? excerptText(said) : 'none';
    problems.push({ ...problem('NOT_PASSED', 'the verificationResult PASSED'), actual });
  }
  const not_checked = sha256 === undefined ? [LEDGER, SUBJECT] : [LEDGER];
  return conclude(problems, { statement, signers: [...signers], not_checked });
}

const SHA256_HEX = /^[0-9a-f]{64}$/;

/** in-toto allows the predicate's name in the type. */
const PAYLOAD_TYPE = /^application\/vnd\.in-toto(?:\.vsa)?\+json$/;

function namesSubject({ subject }: JsonObject, sha256: string): boolean {
  if (!Array.isArray(subject)) return false;
  return subject.some(
    (each) => isJsonObject(each) && isJsonObject(each['digest']) && each['digest']['sha256'] === sha256,
  );
}

function resultOf({ predicate }: JsonObject): JsonValue | undefined {
  return isJsonObject(predicate) ? predicate['verificationResult'] : undefined;
}

function conclude(
  problems: readonly ProofProblem[],
  found: Pick<StatementResult, 'statement' | 'signers' | 'not_checked'>,
): StatementResult {
  return { kind: 'in-toto-statement', ...verdictOf(problems), problems, ...found };
}

function problem(code: string, expected: string): ProofProblem {
  return { code, kind: 'invalid', expected, actual: 'another' };
}

function readObject(bytes: Uint8Array): JsonObject | undefined {
  const { value, report } = ingestJson(bytes, { numbers: 'double' });
  const isClean = report.status === 'Ok' || report.status === 'Lossy';
  return isClean && isJsonObject(value) ? value : undefined;
}

/** Either alphabet, padded or not, as in DSSE. */
function readBase64(text: JsonValue | undefined): Uint8Array | undefined {
  if (typeof text !== 'string') return undefined;
  return tryDecodeBase64url(
    text
      .replace(/={1,2}$/, '')
      .replaceAll('+', '-')
      .replaceAll('/', '_'),
  );
}
