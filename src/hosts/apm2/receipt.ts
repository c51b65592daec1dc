/** What apm2 keeps of an execution as artifacts: the signed ToolExecutionReceipt, and ToolLogIndexV1 over an episode's receipts. */

import { concatBytes } from '../../base/bytes/concat.js';
import { encodeHex, tryDecodeHex } from '../../base/bytes/encoding.js';
import { printable } from '../../base/bytes/printable.js';
import { encodeUtf8 } from '../../base/bytes/text.js';
import { fail, type Fault, type Result, succeed } from '../../base/fault.js';
import { SourceNumber, SourceObject, type SourceValue } from '../../base/json/source-json.js';
import { makePublicKey } from '../../format/key/public-key.js';
import { defaultBackend } from '../../format/signature/default-backend.js';
import { blake3Hex } from '../shared/forms/cac.js';
import { serdeBytes, type SerdeStruct } from '../shared/forms/serde.js';

export const RECEIPT_SCHEMA = 'apm2.tool_execution_receipt.v1';
export const INDEX_SCHEMA = 'apm2.tool_log_index.v1';
/** The prefix of the bytes that a receipt's signature is over. */
const RECEIPT_DOMAIN = 'TOOL_EXECUTION_RECEIPT:';

const VERSION = '1.0.0';
const MAX_EPISODE_ID = 128;
const MAX_REQUEST_ID = 256;
const MAX_CAPABILITY_ID = 128;
const MAX_TOOL_CLASS = 64;
const MAX_RECEIPT_HASHES = 10_000;
const MAX_CONTINUATION_HASHES = 256;

const RECEIPT_FIELDS = [
  ...['schema', 'schema_version', 'episode_id', 'policy_hash', 'request_id', 'capability_id', 'tool_class'],
  ...['args_hash', 'result_hash', 'time_envelope_ref', 'started_at_ns', 'duration_ns', 'signer_identity'],
  'signature',
];
const COUNT_FIELDS = [
  'total_executions',
  'successful_executions',
  'failed_executions',
  'total_tokens',
  'total_bytes_io',
  'total_wall_ms',
];
const INDEX_FIELDS: SerdeStruct = [
  'schema',
  'schema_version',
  'episode_id',
  'tool_execution_receipt_hashes',
  ['counts', COUNT_FIELDS],
  'first_sequence',
  'continuation_hashes',
  'is_final_chunk',
];

/** Why a value is not a receipt or an index. */
export type ArtifactCode =
  'MEMBER_MISSING' | 'MEMBER_UNKNOWN' | 'TYPE_MISMATCH' | 'VALUE_UNKNOWN' | 'EMPTY' | 'TOO_LONG' | 'TOO_MANY';

/** A receipt. Hashes are 64 hexadecimal digits. */
export interface ToolReceipt {
  /** BLAKE3 of what serde writes of it: its name in the content-addressed store. */
  readonly hash: string;
  readonly schemaVersion: string;
  readonly episodeId: string;
  readonly policyHash: string;
  readonly requestId: string;
  readonly capabilityId: string;
  readonly toolClass: string;
  readonly argsHash: string;
  readonly resultHash: string;
  readonly timeEnvelopeRef: string;
  readonly startedAtNs: bigint;
  readonly durationNs: bigint;
  readonly signerIdentity: string;
  readonly signature: Uint8Array;
}

/** An index, or one chunk of it. */
export interface ToolLogIndex {
  readonly hash: string;
  readonly episodeId: string;
  readonly receiptHashes: readonly string[];
  readonly counts: Readonly<
    Record<'executions' | 'successful' | 'failed' | 'tokens' | 'bytesIo' | 'wallMs', bigint>
  >;
  readonly firstSequence: bigint;
  readonly continuationHashes: readonly string[];
  readonly isFinalChunk: boolean;
}

/** Reads a receipt, in whatever order its members stand. */
export function readToolReceipt(value: SourceObject): Result<ToolReceipt, Fault<ArtifactCode>> {
  const reader = new Reader(value, RECEIPT_FIELDS, []);
  const receipt = {
    schemaVersion: (reader.schema(RECEIPT_SCHEMA), reader.text('schema_version', MAX_CAPABILITY_ID)),
    episodeId: reader.text('episode_id', MAX_EPISODE_ID),
    policyHash: encodeHex(reader.bytes('policy_hash', 32)),
    requestId: reader.text('request_id', MAX_REQUEST_ID),
    capabilityId: reader.text('capability_id', MAX_CAPABILITY_ID),
    toolClass: reader.text('tool_class', MAX_TOOL_CLASS),
    argsHash: encodeHex(reader.bytes('args_hash', 32)),
    resultHash: encodeHex(reader.bytes('result_hash', 32)),
    timeEnvelopeRef: encodeHex(reader.bytes('time_envelope_ref', 32)),
    startedAtNs: reader.count('started_at_ns'),
    durationNs: reader.count('duration_ns'),
    signerIdentity: reader.text('signer_identity', MAX_REQUEST_ID),
    signature: reader.bytes('signature', 64),
  };
  if (reader.fault !== undefined) return fail(reader.fault);
  // What serde reads as arrays of bytes it writes as arrays of numbers.
  const written = new SourceObject(
    new Map(
      RECEIPT_FIELDS.map((name) => {
        const member = value.get(name)!;
        const asBytes = typeof member === 'string' ? hexOrUndefined(name, member) : undefined;
        return [name, asBytes ?? member] as const;
      }),
    ),
  );
  return succeed({ ...receipt, hash: blake3Hex(serdeBytes(written, RECEIPT_FIELDS)) });
}

const HASHES = new Set(['policy_hash', 'args_hash', 'result_hash', 'time_envelope_ref', 'signature']);

function hexOrUndefined(name: string, text: string): SourceValue | undefined {
  const bytes = HASHES.has(name) ? tryDecodeHex(text) : undefined;
  return bytes && [...bytes].map((byte) => new SourceNumber(String(byte)));
}

/** The bytes that a receipt's signature is over. */
export function receiptSigningBytes(receipt: ToolReceipt): Uint8Array {
  const numbers = new Uint8Array(16);
  const view = new DataView(numbers.buffer);
  view.setBigUint64(0, receipt.startedAtNs);
  view.setBigUint64(8, receipt.durationNs);
  return concatBytes([
    encodeUtf8(RECEIPT_DOMAIN),
    ...prefixed(RECEIPT_SCHEMA),
    ...prefixed(receipt.schemaVersion),
    ...prefixed(receipt.episodeId),
    tryDecodeHex(receipt.policyHash)!,
    ...prefixed(receipt.requestId),
    ...prefixed(receipt.capabilityId),
    ...prefixed(receipt.toolClass),
    tryDecodeHex(receipt.argsHash)!,
    tryDecodeHex(receipt.resultHash)!,
    tryDecodeHex(receipt.timeEnvelopeRef)!,
    numbers,
    ...prefixed(receipt.signerIdentity),
  ]);
}

function prefixed(text: string): [Uint8Array, Uint8Array] {
  const bytes = encodeUtf8(text);
  const length = new Uint8Array(4);
  new DataView(length.buffer).setUint32(0, bytes.length);
  return [length, bytes];
}

/** Whether a receipt is signed by the key that it names. Who holds that key it does not say. */
export function verifyToolReceipt(receipt: ToolReceipt): 'ok' | 'key_invalid' | 'signature_invalid' {
  if (!isKeyText(receipt.signerIdentity)) return 'key_invalid';
  const verdict = verifyEd25519(receipt.signerIdentity, receiptSigningBytes(receipt), receipt.signature);
  if (verdict === undefined) return 'key_invalid';
  return verdict ? 'ok' : 'signature_invalid';
}

/** Whether a text is an Ed25519 key as apm2 writes them. */
export function isKeyText(text: string): boolean {
  return /^[0-9a-f]{64}$/.test(text);
}

/** Whether a signature verifies; undefined where the key is none that makes valid signatures. @param key 64 hexadecimal digits. */
export function verifyEd25519(key: string, message: Uint8Array, signature: Uint8Array): boolean | undefined {
  const bytes = tryDecodeHex(key);
  if (bytes?.length !== 32) return undefined;
  const imported = defaultBackend.importKey(makePublicKey('ed25519', bytes));
  return imported.usable ? imported.verify(message, signature) : undefined;
}

/** Reads an index. */
export function readToolLogIndex(value: SourceObject): Result<ToolLogIndex, Fault<ArtifactCode>> {
  const names = INDEX_FIELDS.map((field) => (typeof field === 'string' ? field : field[0]));
  const reader = new Reader(value, names, ['continuation_hashes']);
  reader.schema(INDEX_SCHEMA);
  reader.text('schema_version', MAX_CAPABILITY_ID);
  const counts = reader.child('counts', COUNT_FIELDS);
  const count = (name: string): bigint => counts.count(name);
  const index = {
    episodeId: reader.text('episode_id', MAX_EPISODE_ID),
    receiptHashes: reader.hashes('tool_execution_receipt_hashes', MAX_RECEIPT_HASHES),
    counts: {
      executions: count('total_executions'),
      successful: count('successful_executions'),
      failed: count('failed_executions'),
      tokens: count('total_tokens'),
      bytesIo: count('total_bytes_io'),
      wallMs: count('total_wall_ms'),
    },
    firstSequence: reader.count('first_sequence'),
    continuationHashes: value.has('continuation_hashes')
      ? reader.hashes('continuation_hashes', MAX_CONTINUATION_HASHES)
      : [],
    isFinalChunk: reader.flag('is_final_chunk'),
  };
  const fault = reader.fault ?? counts.fault;
  if (fault !== undefined) return fail(fault);
  // serde leaves it out where it is empty.
  const written = index.continuationHashes.length === 0 ? value.without('continuation_hashes') : value;
  return succeed({ ...index, hash: blake3Hex(serdeBytes(written, INDEX_FIELDS)) });
}

/** Reads members; keeps the first fault, and gives something of the right type after it. */
class Reader {
  fault: Fault<ArtifactCode> | undefined;
  readonly #value: SourceObject;
  readonly #path: string;

  constructor(value: SourceObject, required: readonly string[], optional: readonly string[], path = '') {
    this.#value = value;
    this.#path = path;
    for (const name of required)
      if (!value.has(name) && !optional.includes(name))
        this.#found('MEMBER_MISSING', name, 'a value', 'absent');
    for (const name of value.keys())
      if (!required.includes(name)) this.#found('MEMBER_UNKNOWN', name, 'no such member', 'one');
  }

  child(name: string, required: readonly string[]): Reader {
    const value = this.#value.get(name);
    if (value instanceof SourceObject) return new Reader(value, required, [], `${this.#path}/${name}`);
    this.#found('TYPE_MISMATCH', name, 'an object', 'something else');
    return new Reader(new SourceObject(new Map()), [], []);
  }

  schema(expected: string): void {
    const schema = this.text('schema', MAX_CAPABILITY_ID);
    if (schema !== expected) this.#found('VALUE_UNKNOWN', 'schema', expected, printable(schema, 40));
    const version = this.text('schema_version', MAX_CAPABILITY_ID);
    if (!version.startsWith('1.'))
      this.#found('VALUE_UNKNOWN', 'schema_version', VERSION, printable(version, 40));
  }

  text(name: string, most: number): string {
    const value = this.#value.get(name);
    if (typeof value !== 'string') {
      this.#found('TYPE_MISMATCH', name, 'a text', 'something else');
      return '';
    }
    const size = encodeUtf8(value).length;
    if (size > most) this.#found('TOO_LONG', name, `at most ${most} bytes`, `${size} bytes`);
    if (size === 0) this.#found('EMPTY', name, 'at least one character', 'none');
    return value;
  }

  /** Bytes as an array of numbers, as serde_json writes them, or in hexadecimal. */
  bytes(name: string, length: number): Uint8Array {
    const value = this.#value.get(name);
    const bytes = bytesOf(value);
    if (bytes?.length === length) return bytes;
    this.#found(
      'TYPE_MISMATCH',
      name,
      `${length} bytes`,
      bytes === undefined ? 'something else' : `${bytes.length} bytes`,
    );
    return new Uint8Array(length);
  }

  count(name: string): bigint {
    const value = this.#value.get(name);
    const isCount = value instanceof SourceNumber && /^(?:0|[1-9]\d{0,19})$/.test(value.text);
    if (isCount && BigInt(value.text) < 2n ** 64n) return BigInt(value.text);
    this.#found('TYPE_MISMATCH', name, 'a whole number of 64 bits', 'something else');
    return 0n;
  }

  flag(name: string): boolean {
    const value = this.#value.get(name);
    if (typeof value === 'boolean') return value;
    this.#found('TYPE_MISMATCH', name, 'true or false', 'something else');
    return false;
  }

  hashes(name: string, most: number): string[] {
    const value = this.#value.get(name);
    if (!Array.isArray(value)) {
      this.#found('TYPE_MISMATCH', name, 'an array', 'something else');
      return [];
    }
    const list = value as readonly SourceValue[];
    if (list.length > most) this.#found('TOO_MANY', name, `at most ${most}`, String(list.length));
    const hashes: string[] = [];
    for (const element of list.slice(0, most)) {
      if (typeof element === 'string' && /^[0-9a-fA-F]{64}$/.test(element))
        hashes.push(element.toLowerCase());
      else this.#found('TYPE_MISMATCH', name, '64 hexadecimal digits', 'something else');
    }
    return hashes;
  }

  #found(code: ArtifactCode, name: string, expected: string, actual: string): void {
    const pointer = `${this.#path}/${printable(name, 80)}`;
    this.fault ??= { code, pointer, expected: `${pointer}: ${expected}`, actual };
  }
}

const MAX_BYTES_LENGTH = 16 * 1024 * 1024;

/** Bytes as apm2's JSON has them: an array of numbers, or a text in hexadecimal. */
export function bytesOf(value: SourceValue | undefined): Uint8Array | undefined {
  if (typeof value === 'string') return value === '' ? undefined : tryDecodeHex(value);
  if (!Array.isArray(value) || value.length > MAX_BYTES_LENGTH) return undefined;
  const list = value as readonly SourceValue[];
  const bytes = new Uint8Array(list.length);
  for (const [i, element] of list.entries()) {
    if (!(element instanceof SourceNumber) || !/^\d{1,3}$/.test(element.text) || Number(element.text) > 255)
      return undefined;
    bytes[i] = Number(element.text);
  }
  return bytes;
}
