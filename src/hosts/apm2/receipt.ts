/** What apm2 keeps of an execution as artifacts: the signed ToolExecutionReceipt, and ToolLogIndexV1 over an episode's receipts. */

import { concatBytes } from '../../base/bytes/concat.js';
import { encodeHex, tryDecodeHex } from '../../base/bytes/encoding.js';
import { printable } from '../../base/bytes/printable.js';
import { encodeUtf8 } from '../../base/bytes/text.js';
import { fail, type Fault, type Result, succeed, type ValueFault } from '../../base/fault.js';
import { SourceNumber, SourceObject, type SourceValue } from '../../base/json/source-json.js';
import { makePublicKey } from '../../format/key/public-key.js';
import { defaultBackend } from '../../format/signature/default-backend.js';
import { blake3Hex, compareCodePoints } from '../shared/forms/cac.js';
import { Checked, type ProfileCode } from './checked.js';

export const RECEIPT_SCHEMA = 'apm2.tool_execution_receipt.v1';
export const INDEX_SCHEMA = 'apm2.tool_log_index.v1';
/** The prefix of the bytes that a receipt's signature is over. */
const RECEIPT_DOMAIN = 'TOOL_EXECUTION_RECEIPT:';

export const ARTIFACT_VERSION = '1.0.0';
const MAX_EPISODE_ID = 128;
const MAX_REQUEST_ID = 256;
const MAX_CAPABILITY_ID = 128;
const MAX_TOOL_CLASS = 64;
/** The most receipts of one chunk of an index. */
export const MAX_RECEIPT_HASHES = 10_000;
const MAX_CONTINUATION_HASHES = 256;

/** A receipt's members, in the order of their declaration. */
export const RECEIPT_FIELDS = [
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
/** An index's members, likewise. */
export const INDEX_FIELDS: SerdeStruct = [
  'schema',
  'schema_version',
  'episode_id',
  'tool_execution_receipt_hashes',
  ['counts', COUNT_FIELDS],
  'first_sequence',
  'continuation_hashes',
  'is_final_chunk',
];

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
export function readToolReceipt(value: SourceObject): Result<ToolReceipt, Fault<ProfileCode>> {
  const whole = new Checked(value).object(RECEIPT_FIELDS)!;
  const text = (name: string, most: number): string => whole.get(name).text(most, true) ?? '';
  const hash = (name: string): string => encodeHex(bytesIn(whole.get(name), 32));
  const receipt = {
    schemaVersion: versionIn(whole, RECEIPT_SCHEMA),
    episodeId: text('episode_id', MAX_EPISODE_ID),
    policyHash: hash('policy_hash'),
    requestId: text('request_id', MAX_REQUEST_ID),
    capabilityId: text('capability_id', MAX_CAPABILITY_ID),
    toolClass: text('tool_class', MAX_TOOL_CLASS),
    argsHash: hash('args_hash'),
    resultHash: hash('result_hash'),
    timeEnvelopeRef: hash('time_envelope_ref'),
    startedAtNs: whole.get('started_at_ns').count() ?? 0n,
    durationNs: whole.get('duration_ns').count() ?? 0n,
    signerIdentity: text('signer_identity', MAX_REQUEST_ID),
    signature: bytesIn(whole.get('signature'), 64),
  };
  const [fault] = whole.faults;
  if (fault !== undefined) return fail(placed(fault));
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
export function readToolLogIndex(value: SourceObject): Result<ToolLogIndex, Fault<ProfileCode>> {
  const names = INDEX_FIELDS.map((field) => (typeof field === 'string' ? field : field[0]));
  const required = names.filter((name) => name !== 'continuation_hashes');
  const whole = new Checked(value).object(required, ['continuation_hashes'])!;
  versionIn(whole, INDEX_SCHEMA);
  const counts = whole.get('counts').object(COUNT_FIELDS);
  const count = (name: string): bigint => counts?.get(name).count() ?? 0n;
  const index = {
    episodeId: whole.get('episode_id').text(MAX_EPISODE_ID, true) ?? '',
    receiptHashes: hashesIn(whole.get('tool_execution_receipt_hashes'), MAX_RECEIPT_HASHES),
    counts: {
      executions: count('total_executions'),
      successful: count('successful_executions'),
      failed: count('failed_executions'),
      tokens: count('total_tokens'),
      bytesIo: count('total_bytes_io'),
      wallMs: count('total_wall_ms'),
    },
    firstSequence: whole.get('first_sequence').count() ?? 0n,
    continuationHashes: hashesIn(whole.get('continuation_hashes'), MAX_CONTINUATION_HASHES),
    isFinalChunk: whole.get('is_final_chunk').bool() ?? false,
  };
  const [fault] = whole.faults;
  if (fault !== undefined) return fail(placed(fault));
  // serde leaves it out where it is empty.
  const written = index.continuationHashes.length === 0 ? value.without('continuation_hashes') : value;
  return succeed({ ...index, hash: blake3Hex(serdeBytes(written, INDEX_FIELDS)) });
}

/** The version of a schema that is the expected one. */
function versionIn(whole: Checked, schema: string): string {
  const [name, version] = ['schema', 'schema_version'].map((each) => whole.get(each));
  if (name?.text(MAX_CAPABILITY_ID, true) !== schema) name?.fault('VALUE_UNKNOWN', schema);
  const stated = version?.text(MAX_CAPABILITY_ID, true) ?? '';
  if (!stated.startsWith('1.')) version?.fault('VALUE_UNKNOWN', ARTIFACT_VERSION);
  return stated;
}

/** Bytes as an array of numbers, as serde_json writes them, or in hexadecimal. */
function bytesIn(member: Checked, length: number): Uint8Array {
  const bytes = bytesOf(member.value);
  if (bytes?.length === length) return bytes;
  member.fault('TYPE_MISMATCH', `${length} bytes`, bytes && `${bytes.length} bytes`);
  return new Uint8Array(length);
}

function hashesIn(member: Checked, most: number): string[] {
  return member.list(most).flatMap((element) => {
    if (typeof element.value === 'string' && /^[0-9a-fA-F]{64}$/.test(element.value))
      return element.value.toLowerCase();
    return element.fault('TYPE_MISMATCH', '64 hexadecimal digits') ?? [];
  });
}
function placed({ code, pointer, expected, actual }: ValueFault<ProfileCode>): Fault<ProfileCode> {
  return { code, expected: `${printable(pointer, 80)}: ${expected}`, actual };
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

/** A struct's fields in the order of their declaration; those that are structs themselves with their own. */
export type SerdeStruct = readonly (string | readonly [name: string, struct: SerdeStruct])[];

/**
 * The bytes that serde_json writes of `value`: of members that the struct does not have, nothing; of those that are absent, nothing.
 * Numbers are written as their source text, which is serde's own for whole numbers without sign.
 */
export function serdeBytes(value: SourceObject, struct: SerdeStruct): Uint8Array {
  const parts: string[] = [];
  writeStruct(value, struct, parts);
  return encodeUtf8(parts.join(''));
}

function writeStruct(value: SourceObject, struct: SerdeStruct, parts: string[]): void {
  parts.push('{');
  let isFirst = true;
  for (const field of struct) {
    const [name, inner] = typeof field === 'string' ? [field, undefined] : field;
    const member = value.get(name);
    if (member === undefined) continue;
    parts.push(isFirst ? '' : ',', JSON.stringify(name), ':');
    isFirst = false;
    if (inner !== undefined && member instanceof SourceObject) writeStruct(member, inner, parts);
    else writeValue(member, parts);
  }
  parts.push('}');
}

/** At most as deep as the parser went. */
function writeValue(value: SourceValue, parts: string[]): void {
  if (value === null || typeof value !== 'object') parts.push(JSON.stringify(value));
  else if (value instanceof SourceNumber) parts.push(value.text);
  else if (value instanceof SourceObject) {
    const members = value.entries().sort(([a], [b]) => compareCodePoints(a, b));
    parts.push('{');
    for (const [i, [name, member]] of members.entries()) {
      parts.push(i > 0 ? ',' : '', JSON.stringify(name), ':');
      writeValue(member, parts);
    }
    parts.push('}');
  } else {
    parts.push('[');
    for (const [i, element] of value.entries()) {
      if (i > 0) parts.push(',');
      writeValue(element, parts);
    }
    parts.push(']');
  }
}
