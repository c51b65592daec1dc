/** Verifies a ledger and signs what was found, as a DSSE envelope. */

import { encodeBase64, encodeHex } from '../../base/bytes/encoding.js';
import { createSha256 } from '../../base/bytes/sha256.js';
import { encodeLatin1 } from '../../base/bytes/text.js';
import { NorthrootError } from '../../base/error.js';
import { canonicalBytes, canonicalText } from '../../base/json/canonicalize.js';
import { checkOptions, type OptionTypes } from '../../base/options.js';
import { isTimestamp } from '../../base/value/timestamp.js';
import { preAuthEncoding } from '../../format/signature/dsse.js';
import { tryEncodeEcdsaDer } from '../../format/signature/ecdsa-der.js';
import type { Signer } from '../../format/signature/signer.js';
import { type LedgerInput, openVerifiable } from '../../log/read/verify-ledger.js';
import { PASS_OPTIONS } from '../../log/read/write-records.js';
import { buildReport, type Report } from '../../rules/report/report.js';
import type { LedgerSource, Segment } from '../../rules/source/ledger-source.js';
import { runVerification, type VerifyOptions } from '../../rules/verify/run-verification.js';
import { buildStatement, type LedgerStatement, STATEMENT_PAYLOAD_TYPE } from './statement.js';

/** How a ledger is verified for a statement, and what that says beside. */
export interface StatementOptions extends Pick<
  VerifyOptions,
  'trust' | 'witnessPolicy' | 'checkpoints' | 'now' | 'onProgress' | 'signal'
> {
  /** Signs the envelope: ed25519 or p256. */
  readonly signer: Signer;
  /** The subject's name. Default: the last part of the ledger's path. */
  readonly name?: string | undefined;
  /** Who verified, as a URI. Default: northroot's own. */
  readonly verifierId?: string | undefined;
  /** What was verified, as a URI. Default: an `ni:` URI of the bytes' SHA-256 (RFC 6920). */
  readonly resourceUri?: string | undefined;
  /** When it was verified, as a timestamp. Default: the statement does not say, and is the same whenever it is made. */
  readonly timeVerified?: string | undefined;
}

const OPTIONS: OptionTypes<StatementOptions> = {
  ...PASS_OPTIONS,
  signer: 'object',
  name: 'string',
  verifierId: 'string',
  resourceUri: 'string',
  timeVerified: 'string',
};

export interface MadeStatement {
  /** The DSSE envelope: one line of JSON and a newline. */
  readonly bytes: Uint8Array;
  readonly statement: LedgerStatement;
  readonly report: Report;
}

/**
 * Verifies the whole ledger and makes an in-toto statement of what was found (SLSA's Verification Summary v1), signed in a DSSE
 * envelope. A ledger that does not verify gets one too, which says FAILED.
 *
 * @throws TypeError without a signer, and as `verifyLedger`; RangeError for a `timeVerified` that is no timestamp and a URI that is
 *   none; NorthrootError `KEY_UNSUPPORTED` for an ml-dsa-44 key, and as `verifyLedger`.
 */
export async function makeStatement(ledger: LedgerInput, options: StatementOptions): Promise<MadeStatement> {
  checkOptions('makeStatement', options, OPTIONS);
  const { signer, name, verifierId, resourceUri, timeVerified, ...verifying } = options;
  if ((signer as Signer | undefined) === undefined) throw new TypeError('makeStatement: expected a signer');
  const { alg, keyid } = signer.publicKey;
  if (alg === 'ml-dsa-44')
    throw new NorthrootError(
      'KEY_UNSUPPORTED',
      'expected an ed25519 or p256 key to sign a statement, found ml-dsa-44',
    );
  for (const [what, uri] of Object.entries({ verifierId, resourceUri }))
    if (uri !== undefined && !URI.test(uri))
      throw new RangeError(`makeStatement: expected ${what} to be a URI`);
  if (timeVerified !== undefined && !isTimestamp(timeVerified))
    throw new RangeError('makeStatement: expected timeVerified to be a timestamp');
  const source = await openVerifiable('makeStatement', ledger);
  const hasher = createSha256();
  const hashed: LedgerSource = { ...source, segments: tee(source.segments, (bytes) => hasher.update(bytes)) };
  const report = buildReport(await runVerification(hashed, verifying));
  const statement = buildStatement(report, {
    name: name ?? lastPart(source.paths[0] ?? ''),
    hash: hasher.digestLatin1(),
    trust: options.trust,
    checkpoints: (options.checkpoints ?? []).map((each) => ({ ...each, name: lastPart(each.name) })),
    verifierId,
    resourceUri,
    timeVerified,
  });
  const payload = canonicalBytes(statement);
  const signature = signer.sign(preAuthEncoding(STATEMENT_PAYLOAD_TYPE, payload));
  const sig = encodeBase64((alg === 'p256' ? tryEncodeEcdsaDer(signature) : undefined) ?? signature);
  const envelope = {
    payload: encodeBase64(payload),
    payloadType: STATEMENT_PAYLOAD_TYPE,
    signatures: [{ keyid, sig }],
  };
  return { bytes: encodeLatin1(`${canonicalText(envelope)}\n`), statement, report };
}

/** The SHA-256 of a ledger's bytes, in lower-case hexadecimal: what a statement about it has as its subject. */
export async function hashLedger(ledger: LedgerInput): Promise<string> {
  const hasher = createSha256();
  const { segments } = await openVerifiable('hashLedger', ledger);
  for await (const { chunks } of segments) for await (const chunk of chunks) hasher.update(chunk);
  return encodeHex(encodeLatin1(hasher.digestLatin1()));
}

/** RFC 3986, as far as a tool that compares URIs needs it. */
const URI = /^[A-Za-z][A-Za-z0-9+.-]*:[\w.~!$&'()*+,;=:@/?#[\]%-]{1,2048}$/;

async function* tee(
  segments: AsyncIterable<Segment>,
  take: (bytes: Uint8Array) => void,
): AsyncGenerator<Segment, void, void> {
  async function* chunksOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, void> {
    for await (const chunk of chunks) {
      take(chunk);
      yield chunk;
    }
  }
  for await (const segment of segments) yield { ...segment, chunks: chunksOf(segment.chunks) };
}

/** What a file is called: where it lies is nobody else's affair. A folder's path may end in a slash. */
function lastPart(path: string): string {
  return path.split(/[/\\]/).findLast((part) => part !== '') ?? '_';
}
