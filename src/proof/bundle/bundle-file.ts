/** The format of a bundle (docs/spec/bundle.md): records and their proof, as deterministic CBOR. `verify-bundle.ts` verifies it. */

import { equalBytes } from '../../base/bytes/compare.js';
import { concatBytes } from '../../base/bytes/concat.js';
import { sha256 } from '../../base/bytes/sha256.js';
import { decodeLatin1, encodeLatin1, encodeUtf8 } from '../../base/bytes/text.js';
import { decodeCbor, encodeCbor, parseCbor } from '../../base/cbor/codec.js';
import { MAX_CBOR_ITEMS } from '../../base/cbor/scan.js';
import {
  type CborFault,
  type CborKey,
  type CborMap,
  type CborValue,
  TaggedCbor,
} from '../../base/cbor/value.js';
import { defined } from '../../base/defined.js';
import { NorthrootError } from '../../base/error.js';
import { fail, type Fault, type Result, succeed } from '../../base/fault.js';
import { formatDigest, tryParseDigest } from '../../base/value/digest.js';
import { isPrincipalPattern } from '../../base/value/principal.js';
import { compareTimestamps, isTimestamp } from '../../base/value/timestamp.js';
import { isToolPattern } from '../../base/value/tool.js';
import {
  COSE_HEADER,
  COSE_SIGN1_TAG,
  type CoseSign1,
  decodeCoseValue,
  signCoseSign1,
} from '../../format/cose/sign1.js';
import { formatPublicKey, type PublicKey, tryParseWirePublicKey } from '../../format/key/public-key.js';
import { MAX_NOTE_BYTES } from '../../format/note/signed-note.js';
import { MAX_LINE_BYTES } from '../../format/record/line-splitter.js';
import type { Signer } from '../../format/signature/signer.js';
import type { PlacedLeaf } from '../../format/tree/multi-proof.js';
import type { RecordSelection } from '../../rules/selection.js';
import { MAX_TRUST_POLICY_BYTES } from '../../rules/trust/trust-policy.js';
import { BUNDLE_NAME, isBundle, SELF_DESCRIBED } from './bundle-start.js';

export const MAX_BUNDLE_BYTES = 268_435_456;
/** The most stretches in a bundle. */
export const MAX_STRETCHES = 1_000;

/** The longest report in a bundle, in characters. */
export const MAX_REPORT_CHARACTERS = 67_108_864;
/** The longest name and version of the tool that made a bundle, in characters each. */
export const MAX_TOOL_CHARACTERS = 128;

/** The content type under a bundle's signature. */
const BUNDLE_CONTENT_TYPE = 'application/vnd.northroot.bundle+cbor';

const VERSION = 1;

const HASH_BYTES = 32;
const NEWLINE = 0x0a;
const TAGS: ReadonlySet<number> = new Set([COSE_SIGN1_TAG]);

export interface BundledRecord {
  /** Its position in the ledger, from 0. */
  readonly seq: number;
  /** Its line without the newline. */
  readonly line: Uint8Array;
  /** Whether it was selected, rather than linked from a selected record. */
  readonly isSelected: boolean;
}

/** A range of positions in a ledger, both ends included. */
export interface Stretch {
  readonly from: number;
  readonly to: number;
}

/** The content of a bundle, as its exporter states it. */
export interface Bundle {
  readonly tool: { readonly name: string; readonly version: string };
  /** A timestamp of SPEC §2. */
  readonly createdAt?: string;
  /** The tree that holds the records; its root as a binary string. */
  readonly tree: { readonly size: number; readonly root: string };
  /** The signed checkpoint of that tree. */
  readonly note?: Uint8Array;
  /** Ascending by position. */
  readonly records: readonly BundledRecord[];
  /** Positions within stretches whose records are left out; ascending. */
  readonly leaves: readonly PlacedLeaf[];
  /** The other hashes of the proof, from left to right, see `format/tree/multi-proof.ts`. */
  readonly hashes: readonly string[];
  readonly selection: RecordSelection;
  /** Ranges whose every position is present, as a record or as a leaf hash; ascending. */
  readonly stretches: readonly Stretch[];
  /** How many selected records come after the tree, and are left out. */
  readonly beyond: number;
  /** The report of the whole ledger's verification when the bundle was made, as JSON. */
  readonly report: string;
  /** The trust policy of that verification, as JSON. */
  readonly policy?: string;
  readonly exporter?: PublicKey;
}

/** The parts of a bundle's file. */
export interface BundleFile {
  readonly bundle: Bundle;
  /** The signed bytes. */
  readonly content: Uint8Array;
  /** The stated SHA-256 of the content. */
  readonly digest: Uint8Array;
  /** The exporter's, over the content. */
  readonly signature: CoseSign1 | undefined;
  /** Contents that digests in the records name, ascending by digest. */
  readonly attachments: readonly Uint8Array[];
}

/**
 * The file of a bundle, signed if a signer is given. Deterministic except for P-256 signatures.
 * @param attachments - As {@link sortContents} gives them
 * @throws NorthrootError `BUNDLE_TOO_LARGE`
 */
export function formatBundle(
  bundle: Omit<Bundle, 'exporter'>,
  signer?: Signer,
  attachments: readonly Uint8Array[] = [],
): Uint8Array {
  if (bundle.report.length > MAX_REPORT_CHARACTERS)
    throw new NorthrootError(
      'BUNDLE_TOO_LARGE',
      `the report of the whole ledger has ${bundle.report.length} characters, and a bundle takes at most ${MAX_REPORT_CHARACTERS}`,
    );
  if (countItems(bundle) > MAX_CBOR_ITEMS) {
    const { records, leaves } = bundle;
    throw new NorthrootError(
      'BUNDLE_TOO_LARGE',
      `the bundle would have ${records.length} records and ${leaves.length} hashes for others, more than can be read again`,
      { hint: 'select fewer records, or shorter stretches' },
    );
  }
  const exporter = signer?.publicKey;
  const content = encodeCbor(toCbor(exporter === undefined ? bundle : { ...bundle, exporter }));
  return joinParts(content, signer === undefined ? null : signContent(content, signer), attachments);
}

/** The same bundle with other contents attached. */
export function replaceAttachments(bytes: Uint8Array, attachments: readonly Uint8Array[]): Uint8Array {
  const parts = decodeParts(bytes);
  if (!parts.ok) throw new TypeError('expected the bytes of a bundle');
  return joinParts(parts.value.content, parts.value.signature, attachments);
}

/** Attached contents in order of their digests, each once. */
export function sortContents(contents: readonly Uint8Array[]): Uint8Array[] {
  const byDigest = new Map(contents.map((content) => [decodeLatin1(sha256(content)), content]));
  return [...byDigest].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, content]) => content);
}

type BundleFault = Fault<'BUNDLE_MALFORMED'>;

export type BundleDecoded = Result<BundleFile, BundleFault>;

/** Decodes a bundle of at most {@link MAX_BUNDLE_BYTES}: only its form is checked. */
export function decodeBundle(bytes: Uint8Array): BundleDecoded {
  const parts = decodeParts(bytes);
  if (!parts.ok) return parts;
  const { content, digest, attachments } = parts.value;
  const decoded = decodeCbor(content);
  if (!decoded.ok) return malformedAt(decoded.fault, content.byteOffset - bytes.byteOffset);
  return catchMismatch(() => {
    const bundle = fromCbor(decoded.value);
    const signature = parts.value.signature === null ? undefined : signatureOf(parts.value.signature);
    if ((signature === undefined) !== (bundle.exporter === undefined))
      throw new Mismatch('a signature where the bundle names its exporter', 'one of the two');
    assertOrdered(attachments);
    return { bundle, content, digest, signature, attachments };
  });
}

/** An upper bound of the CBOR items in a bundle. */
function countItems({ records, leaves, hashes, stretches, selection }: Omit<Bundle, 'exporter'>): number {
  const { size: events = 0 } = selection.eventIds ?? {};
  return 4 * records.length + 3 * (leaves.length + stretches.length) + hashes.length + events + ITEMS_BESIDE;
}

/** More than the members of a bundle that are no lists. */
const ITEMS_BESIDE = 100;

interface Parts {
  readonly content: Uint8Array;
  readonly digest: Uint8Array;
  readonly signature: CborValue;
  readonly attachments: readonly Uint8Array[];
}

function joinParts(
  content: Uint8Array,
  signature: CborValue,
  attachments: readonly Uint8Array[],
): Uint8Array {
  const parts = [BUNDLE_NAME, VERSION, sha256(content), content, signature, attachments];
  return concatBytes([SELF_DESCRIBED, encodeCbor(parts)]);
}

function decodeParts(bytes: Uint8Array): Result<Parts, BundleFault> {
  if (bytes.length > MAX_BUNDLE_BYTES)
    return malformed(`at most ${MAX_BUNDLE_BYTES} bytes`, `${bytes.length}`);
  if (!isBundle(bytes)) return malformed('the beginning of a bundle', 'other bytes');
  const decoded = decodeCbor(bytes.subarray(SELF_DESCRIBED.length), TAGS);
  if (!decoded.ok) return malformedAt(decoded.fault, SELF_DESCRIBED.length);
  return catchMismatch(() => {
    const [, version, digest, content, signature = null, attachments] = arrayOf(decoded.value, 'the file');
    if (version !== VERSION) throw new Mismatch(`version ${VERSION} of the form`, nameOf(version));
    return {
      digest: hashBytesOf(digest, 'the digest of the content'),
      content: bytesOf(content, 'the content'),
      signature,
      attachments: arrayOf(attachments, 'the attached contents').map((each) =>
        bytesOf(each, 'an attached content'),
      ),
    };
  });
}

function malformed(expected: string, actual: string): { readonly ok: false; readonly fault: BundleFault } {
  return fail({ code: 'BUNDLE_MALFORMED', expected, actual });
}

/** @param start - The offset of the CBOR in the file. */
function malformedAt(
  { expected, actual, offset }: CborFault,
  start: number,
): { readonly ok: false; readonly fault: BundleFault } {
  return malformed(expected, `${actual} at byte ${start + offset}`);
}

function catchMismatch<T>(decode: () => T): Result<T, BundleFault> {
  try {
    return succeed(decode());
  } catch (error) {
    if (error instanceof Mismatch) return malformed(error.expected, error.actual);
    throw error;
  }
}

function signContent(content: Uint8Array, signer: Signer): CborValue {
  const protectedHeaders = new Map<CborKey, CborValue>([
    [COSE_HEADER.contentType, BUNDLE_CONTENT_TYPE],
    [COSE_HEADER.kid, encodeUtf8(signer.publicKey.keyid)],
  ]);
  return parseCbor(signCoseSign1(content, signer, { protectedHeaders, detached: true }), TAGS);
}

/** All headers of the signature MUST be protected. */
function signatureOf(value: CborValue): CoseSign1 {
  if (!(value instanceof TaggedCbor))
    throw new Mismatch(`a signature with the tag ${COSE_SIGN1_TAG}, or null`, nameOf(value));
  const decoded = decodeCoseValue(value);
  if (!decoded.ok) throw new Mismatch(`${decoded.fault.expected} in the signature`, decoded.fault.actual);
  const signature = decoded.value;
  const { protectedHeaders, unprotectedHeaders, payload } = signature;
  if (unprotectedHeaders.size > 0 || payload !== undefined)
    throw new Mismatch('a signature without unprotected headers and payload', 'another');
  if (protectedHeaders.size !== 3 || protectedHeaders.get(COSE_HEADER.contentType) !== BUNDLE_CONTENT_TYPE)
    throw new Mismatch(`a signature of ${BUNDLE_CONTENT_TYPE} that names its key`, 'another');
  return signature;
}

/** Whether a signature's headers name this key. */
export function namesKey({ protectedHeaders }: CoseSign1, { keyid }: PublicKey): boolean {
  const kid = protectedHeaders.get(COSE_HEADER.kid);
  return kid instanceof Uint8Array && equalBytes(kid, encodeUtf8(keyid));
}

function toCbor(bundle: Bundle): CborValue {
  const { tool, createdAt, tree, note, records, leaves, hashes, stretches, beyond, policy, exporter } =
    bundle;
  return mapOf({
    tool: [tool.name, tool.version],
    created_at: createdAt,
    tree: [tree.size, encodeLatin1(tree.root)],
    note,
    records: records.map(({ seq, line, isSelected }) => [seq, isSelected, line]),
    leaves: leaves.map(({ index, leafHash }) => [index, encodeLatin1(leafHash)]),
    hashes: hashes.map(encodeLatin1),
    selection: selectionToCbor(bundle.selection),
    stretches: stretches.map(({ from, to }) => [from, to]),
    beyond,
    report: bundle.report,
    policy,
    exporter: exporter && formatPublicKey(exporter),
  });
}

function selectionToCbor({ since, until, principal, tool, grantId, eventIds }: RecordSelection): CborMap {
  return mapOf({
    since,
    until,
    principal,
    tool,
    grant: grantId,
    events: eventIds === undefined ? undefined : [...eventIds].sort(),
  });
}

function mapOf(members: Readonly<Record<string, CborValue | undefined>>): CborMap {
  return new Map(
    Object.entries(members).filter((entry): entry is [string, CborValue] => entry[1] !== undefined),
  );
}

class Mismatch extends Error {
  readonly expected: string;
  readonly actual: string;

  constructor(expected: string, actual: string) {
    super('not the form of a bundle');
    this.expected = expected;
    this.actual = actual;
  }
}

function fromCbor(value: CborValue): Bundle {
  const members = membersOf(value, 'the content', MEMBERS, OPTIONAL);
  const size = countOf(members.tree, 0, 'the tree');
  const createdAt = optional(members.created_at, (each) => timestampOf(each, 'created_at'));
  const note = optional(members.note, (each) => bytesOf(each, 'the note'));
  const policy = optional(members.policy, (each) => textOf(each, 'the policy', MAX_TRUST_POLICY_BYTES));
  const exporter = optional(members.exporter, keyOf);
  if (note !== undefined && note.length > MAX_NOTE_BYTES)
    throw new Mismatch(`a note of at most ${MAX_NOTE_BYTES} bytes`, `${note.length} bytes`);
  const records = arrayOf(members.records, 'the records').map(recordOf);
  const leaves = arrayOf(members.leaves, 'the leaves').map((each) => ({
    index: countOf(each, 0, 'a leaf'),
    leafHash: hashOf(partOf(each, 1, 2, 'a leaf'), 'a leaf hash'),
  }));
  assertPlaces([...records.map(({ seq }) => seq), size], 'records in the order of their places, in the tree');
  assertPlaces(
    [...leaves.map(({ index }) => index), size],
    'leaves in the order of their places, in the tree',
  );
  const held = new Set(records.map(({ seq }) => seq));
  if (leaves.some(({ index }) => held.has(index)))
    throw new Mismatch('each place as a record or as a leaf hash', 'one as both');
  const stretches = arrayOf(members.stretches, 'the stretches').map((each) => ({
    from: countOf(each, 0, 'a stretch'),
    to: countOf(each, 1, 'a stretch'),
  }));
  if (stretches.length > MAX_STRETCHES)
    throw new Mismatch(`at most ${MAX_STRETCHES} stretches`, `${stretches.length}`);
  assertPlaces(
    [...stretches.flatMap(({ from, to }) => (from === to ? [from] : [from, to])), size],
    'stretches that ascend and do not overlap, in the tree',
  );
  return {
    tool: {
      name: textOf(partOf(members.tool, 0, 2, 'the tool'), 'the name of the tool', MAX_TOOL_CHARACTERS),
      version: textOf(partOf(members.tool, 1, 2, 'the tool'), 'the version of the tool', MAX_TOOL_CHARACTERS),
    },
    ...defined({ createdAt }),
    tree: { size, root: hashOf(partOf(members.tree, 1, 2, 'the tree'), 'the root') },
    ...defined({ note }),
    records,
    leaves,
    hashes: arrayOf(members.hashes, 'the hashes').map((each) => hashOf(each, 'a hash')),
    selection: selectionOf(members.selection),
    stretches,
    beyond: wholeOf(members.beyond, 'beyond'),
    report: textOf(members.report, 'the report', MAX_REPORT_CHARACTERS),
    ...defined({ policy, exporter }),
  };
}

const MEMBERS = [
  ...['tool', 'tree', 'records', 'leaves', 'hashes', 'selection', 'stretches', 'beyond', 'report'],
] as const;
const OPTIONAL = ['created_at', 'note', 'policy', 'exporter'] as const;

const CRITERIA = ['since', 'until', 'principal', 'tool', 'grant', 'events'] as const;

function selectionOf(value: CborValue | undefined): RecordSelection {
  const members = membersOf(value, 'the selection', [], CRITERIA);
  const since = optional(members.since, (each) => timestampOf(each, 'since'));
  const until = optional(members.until, (each) => timestampOf(each, 'until'));
  const principal = optional(members.principal, (each) =>
    matching(each, isPrincipalPattern, 'a principal pattern'),
  );
  const tool = optional(members.tool, (each) => matching(each, isToolPattern, 'a tool pattern'));
  const grantId = optional(members.grant, idOf);
  const events = optional(members.events, (each) => arrayOf(each, 'the events').map(idOf));
  const isSorted = events?.every((id, index) => index === 0 || (events[index - 1] as string) < id) ?? true;
  if (!isSorted) throw new Mismatch('the ids of events in order, each once', 'another order');
  if (since !== undefined && until !== undefined && compareTimestamps(since, until) > 0)
    throw new Mismatch('a selection whose end is after its beginning', `${since} to ${until}`);
  return {
    ...defined({ since, until, principal, tool, grantId }),
    ...(events === undefined ? {} : { eventIds: new Set(events) }),
  };
}

function recordOf(value: CborValue): BundledRecord {
  const isSelected = partOf(value, 1, 3, 'a record');
  const line = bytesOf(partOf(value, 2, 3, 'a record'), 'a line');
  if (typeof isSelected !== 'boolean') throw new Mismatch('whether a record is selected', nameOf(isSelected));
  if (line.length === 0 || line.length > MAX_LINE_BYTES)
    throw new Mismatch(`a line of 1 to ${MAX_LINE_BYTES} bytes`, `${line.length}`);
  // Each line is one leaf of the tree.
  if (line.includes(NEWLINE)) throw new Mismatch('a line', 'more than one');
  return { seq: wholeOf(partOf(value, 0, 3, 'a record'), 'the place of a record'), line, isSelected };
}

/** Checks that places ascend. */
function assertPlaces(places: readonly number[], expected: string): void {
  const isAscending = places.every((place, index) => index === 0 || (places[index - 1] as number) < place);
  if (!isAscending) throw new Mismatch(expected, 'other places');
}

/** Checks that contents ascend by digest. */
function assertOrdered(attachments: readonly Uint8Array[]): void {
  const digests = attachments.map((each) => decodeLatin1(sha256(each)));
  const isAscending = digests.every(
    (digest, index) => index === 0 || (digests[index - 1] as string) < digest,
  );
  if (!isAscending) throw new Mismatch('attached contents in the order of their digests', 'another order');
}

function membersOf<R extends string, O extends string>(
  value: CborValue | undefined,
  name: string,
  required: readonly R[],
  allowed: readonly O[],
): { readonly [K in R]: CborValue } & { readonly [K in O]?: CborValue } {
  if (!(value instanceof Map)) throw new Mismatch(`${name} as a map`, nameOf(value));
  const map = value as CborMap;
  const known = new Set<CborKey>([...required, ...allowed]);
  for (const key of map.keys())
    if (!known.has(key)) throw new Mismatch(`no member of that name in ${name}`, `${key}`.slice(0, 80));
  for (const key of required) if (!map.has(key)) throw new Mismatch(`${key} in ${name}`, 'none');
  return Object.fromEntries(map) as { readonly [K in R]: CborValue } & { readonly [K in O]?: CborValue };
}

function optional<T>(value: CborValue | undefined, read: (value: CborValue) => T): T | undefined {
  return value === undefined ? undefined : read(value);
}

function arrayOf(value: CborValue | undefined, name: string): readonly CborValue[] {
  if (!Array.isArray(value)) throw new Mismatch(`${name} as an array`, nameOf(value));
  return value as readonly CborValue[];
}

/** One part of an array of fixed length. */
function partOf(value: CborValue | undefined, index: number, length: number, name: string): CborValue {
  const parts = arrayOf(value, name);
  if (parts.length !== length) throw new Mismatch(`${name} of ${length} parts`, `${parts.length}`);
  return parts[index] as CborValue;
}

/** One number of a pair. */
function countOf(value: CborValue | undefined, index: number, name: string): number {
  return wholeOf(partOf(value, index, 2, name), name);
}

function wholeOf(value: CborValue | undefined, name: string): number {
  if (typeof value !== 'number' || value < 0) throw new Mismatch(`${name} as a number`, nameOf(value));
  return value;
}

function bytesOf(value: CborValue | undefined, name: string): Uint8Array {
  if (!(value instanceof Uint8Array)) throw new Mismatch(`${name} as bytes`, nameOf(value));
  return value;
}

function hashBytesOf(value: CborValue | undefined, name: string): Uint8Array {
  const bytes = bytesOf(value, name);
  if (bytes.length !== HASH_BYTES) throw new Mismatch(`${name} of 32 bytes`, `${bytes.length}`);
  return bytes;
}

/** As a binary string. */
function hashOf(value: CborValue | undefined, name: string): string {
  return decodeLatin1(hashBytesOf(value, name));
}

function textOf(value: CborValue | undefined, name: string, most: number): string {
  if (typeof value !== 'string') throw new Mismatch(`${name} as text`, nameOf(value));
  if (value.length > most) throw new Mismatch(`${name} of at most ${most} characters`, `${value.length}`);
  return value;
}

function timestampOf(value: CborValue, name: string): string {
  return matching(value, isTimestamp, `${name} as a timestamp`);
}

function matching(value: CborValue, test: (text: string) => boolean, expected: string): string {
  if (typeof value !== 'string' || !test(value)) throw new Mismatch(expected, nameOf(value));
  return value;
}

/** The canonical text of an event id. */
function idOf(value: CborValue): string {
  const digest = typeof value === 'string' ? tryParseDigest(value) : undefined;
  if (digest === undefined || formatDigest(digest) !== value || digest.alg !== 'sha-256')
    throw new Mismatch('the id of an event, sha-256:…', nameOf(value));
  return value;
}

function keyOf(value: CborValue): PublicKey {
  const key = typeof value === 'string' ? tryParseWirePublicKey(value) : undefined;
  if (key === undefined || key.alg === 'ml-dsa-44' || formatPublicKey(key) !== value)
    throw new Mismatch('an ed25519 or p256 key', nameOf(value));
  return key;
}

function nameOf(value: CborValue | undefined): string {
  if (value === undefined) return 'nothing';
  if (value === null || typeof value === 'boolean') return String(value);
  if (typeof value === 'number') return `${value}`;
  if (typeof value === 'string') return value.slice(0, 80);
  if (value instanceof Uint8Array) return 'bytes';
  return Array.isArray(value) ? 'an array' : 'another item';
}
