/**
 * A verification state as bytes, to be saved after any line and resumed in another process. Saved states are trusted: load only your own. A
 * header names the version, and a digest that detects damage:
 *
 *     northroot-state 0.1.0 sha-256:<base64url>\n<structured clone><zeros><ids of events>
 *
 * The ids, 32 bytes each, are most of it: they are last, 4-byte aligned, and used in place.
 */

import { deserialize, serialize } from 'node:v8';
import { printable } from '../../base/bytes/printable.js';
import { sha256Base64url } from '../../base/bytes/sha256.js';
import { NorthrootError } from '../../base/error.js';
import { fromDigestText, toDigestText } from '../../base/value/digest.js';
import { VERSION } from '../../base/version.js';
import type { Finding } from '../../format/finding/finding.js';
import type { TrustPolicy } from '../../format/schema/generated/types.js';
import type { SignatureBackend } from '../../format/signature/backend.js';
import { nodeBackend } from '../../format/signature/node-backend.js';
import type { Approval } from '../../rules/bounds/approval.js';
import type { Grant } from '../../rules/bounds/grant.js';
import type { Revocation } from '../../rules/bounds/withdrawal.js';
import type { SavedNode } from '../../rules/bounds/timeline-node.js';
import { Keyring, type SavedKey } from '../../rules/trust/keyring.js';
import type { WitnessPolicy } from '../../rules/trust/witness-policy.js';
import { EventIndex, type EventIndexData } from '../../rules/verify/event-index.js';
import type { PendingLink } from '../../rules/verify/links.js';
import type { KnownCheckpoint, UnsealedRecords } from '../../rules/verify/seals.js';
import {
  type ActionForm,
  type GrantForm,
  type HeadForm,
  restoreAction,
  restoreGrant,
  restoreHead,
  saveAction,
  saveGrant,
  saveHead,
} from '../../rules/verify/state-form.js';
import { type SignerTally, startVerification, type VerifyState } from '../../rules/verify/state.js';
import type { Table } from '../../rules/verify/table.js';
import type { SavedVerification, VerifiedPrefix } from '../../rules/verify/verified-prefix.js';
import { readWholeFile } from '../fs/file-system.js';

const HEADER = /^northroot-state (\S{1,64}) sha-256:([A-Za-z0-9_-]{43})$/;
const MAX_HEADER_LENGTH = 160;
const NEWLINE = 0x0a;
/** Incremented for each change of the form within a version. */
const FORM = 12;
const DIGEST_LENGTH = 43;
const ID_BYTES = 32;
/** Ids are compared as 32-bit words. */
const ALIGNMENT = 4;

/** The links that are maps in memory. */
const TABLES = [
  'starts',
  'expiring',
  'requests',
  'slices',
  'approved',
  'rejects',
  'calls',
  'awaiting',
  'lost',
] as const;

interface SavedGrant {
  readonly form: GrantForm;
  /** Each limit's timeline nodes, by number. */
  readonly nodes: readonly ReadonlyMap<number, SavedNode>[];
}

type SavedTables = Readonly<Record<(typeof TABLES)[number], ReadonlyMap<string, unknown>>>;

interface Saved extends SavedTables {
  readonly form: typeof FORM;
  readonly policy: TrustPolicy | undefined;
  readonly witnessPolicy: WitnessPolicy | undefined;
  readonly head: HeadForm;
  readonly keys: readonly SavedKey[];
  readonly ids: number;
  readonly events: Omit<EventIndexData, 'ids'>;
  readonly grants: readonly SavedGrant[];
  readonly actions: readonly ActionForm[];
  readonly approvals: readonly Approval[];
  readonly revocations: readonly Revocation[];
  readonly pending: readonly PendingLink[];
  readonly checkpoints: readonly KnownCheckpoint[];
  readonly unsealed: ReadonlyMap<string, UnsealedRecords>;
  readonly signers: readonly SignerTally[];
  readonly foldRoots: ReadonlyMap<string, Finding>;
  readonly kept: readonly Finding[];
  readonly prefix: VerifiedPrefix | undefined;
}

/** Saves a verification after any line, with its findings. @throws TypeError for a state over an index */
export function saveVerification({ state, findings, prefix }: SavedVerification): Uint8Array {
  const { policy, witnessPolicy, keyring, events, links, seals, signers, foldRoots } = state;
  if (!(events instanceof EventIndex && foldRoots instanceof Map))
    throw new TypeError('expected a state that is in memory');
  const { ids, ...columns } = events.save();
  const saved: Saved = {
    ...(Object.fromEntries(
      TABLES.map((name) => [name, mapOf<unknown>(links[name])]),
    ) as unknown as SavedTables),
    form: FORM,
    policy,
    witnessPolicy,
    head: saveHead(state),
    keys: keyring.save(),
    ids: events.size,
    events: columns,
    grants: [...links.grants.values()].map(saveWholeGrant),
    actions: [...links.actions.values()].map(saveAction),
    approvals: [...links.approvals.values()],
    revocations: [...links.revocations],
    pending: [...links.pending.values()],
    checkpoints: [...seals.known.values()],
    unsealed: seals.unsealed,
    signers: [...signers.values()],
    foldRoots,
    kept: findings,
    prefix,
  };
  const clone = serialize(saved);
  const begin = headerOf('0'.repeat(DIGEST_LENGTH)).length;
  let at = Math.ceil((begin + clone.length) / ALIGNMENT) * ALIGNMENT;
  const bytes = Buffer.allocUnsafeSlow(at + events.size * ID_BYTES);
  bytes.set(clone, begin);
  bytes.fill(0, begin + clone.length, at);
  for (const part of ids) {
    bytes.set(new Uint8Array(part.buffer, part.byteOffset, part.byteLength), at);
    at += part.byteLength;
  }
  bytes.write(headerOf(sha256Base64url(bytes.subarray(begin))), 'latin1');
  return bytes;
}

/** @param table - One in memory, which lists its entries. */
function mapOf<V>(table: Table<string, V>): ReadonlyMap<string, V> {
  return new Map(table as unknown as Iterable<[string, V]>);
}

function headerOf(digest: string): string {
  return `northroot-state ${VERSION} ${toDigestText(digest)}\n`;
}

/**
 * Loads what {@link saveVerification} saved. Of another kind of file only the header is read.
 * @throws NorthrootError as {@link restoreVerification}, or as files give it
 */
export async function loadVerification(path: string, backend?: SignatureBackend): Promise<SavedVerification> {
  const bytes = await readWholeFile(path, (head) => readHeader(head) !== undefined);
  if (bytes === undefined) throw invalid(undefined);
  return restoreVerification(bytes, backend);
}

/**
 * Restores what {@link saveVerification} saved. The result keeps `bytes`, which MUST NOT change afterwards.
 * @throws NorthrootError `STATE_INVALID` for damaged or foreign bytes; `STATE_OUTDATED` for another version's state, whose findings this
 *   one might not make
 */
export function restoreVerification(
  bytes: Uint8Array,
  backend: SignatureBackend = nodeBackend,
): SavedVerification {
  const header = readHeader(bytes);
  const body = bytes.subarray(header?.length);
  if (header === undefined || header.digest !== sha256Base64url(body)) throw invalid(undefined);
  const { version } = header;
  if (version !== VERSION) throw outdated(`is of northroot ${printable(version)}`);
  const saved = read(body);
  if (saved.form !== FORM) throw outdated('has the form of an earlier build of northroot');
  try {
    return revive(saved, idsAtEnd(body, saved.ids), backend);
  } catch (cause) {
    throw invalid(cause);
  }
}

interface Header {
  readonly version: string;
  readonly digest: string;
  /** In bytes, with its `\n`. */
  readonly length: number;
}

function readHeader(bytes: Uint8Array): Header | undefined {
  const end = bytes.subarray(0, MAX_HEADER_LENGTH).indexOf(NEWLINE);
  const text = Buffer.from(bytes.subarray(0, Math.max(end, 0))).toString('latin1');
  const [, version, digest] = HEADER.exec(text) ?? [];
  return version === undefined || digest === undefined ? undefined : { version, digest, length: end + 1 };
}

function read(body: Uint8Array): Saved {
  let saved: unknown;
  try {
    saved = deserialize(body);
  } catch (cause) {
    throw invalid(cause);
  }
  if (typeof saved !== 'object' || saved === null) throw invalid(undefined);
  return saved as Saved;
}

function idsAtEnd(body: Uint8Array, count: number): Uint32Array {
  const from = body.length - count * ID_BYTES;
  if (!(Number.isSafeInteger(count) && count >= 0 && from >= 0)) throw new RangeError('ids are missing');
  const bytes = body.subarray(from);
  // It may be a part of a larger buffer.
  const { buffer, byteOffset } = bytes.byteOffset % ALIGNMENT === 0 ? bytes : new Uint8Array(bytes);
  return new Uint32Array(buffer, byteOffset, bytes.length / ALIGNMENT);
}

function outdated(how: string): NorthrootError {
  return new NorthrootError('STATE_OUTDATED', `the saved state ${how}`, {
    hint: 'verify from the beginning',
  });
}

function saveWholeGrant(grant: Grant): SavedGrant {
  const nodes = [...grant.rates, grant.concurrency].map(() => new Map<number, SavedNode>());
  const form = saveGrant(grant, 'all', (limit, node) => nodes[limit]?.set(node.id, node));
  return { form, nodes };
}

function revive(saved: Saved, ids: Uint32Array, backend: SignatureBackend): SavedVerification {
  const { policy, witnessPolicy, head, keys, events, kept, prefix } = saved;
  const keyring = new Keyring(backend);
  keyring.restore(keys);
  const state: VerifyState = {
    ...startVerification(policy, backend, witnessPolicy),
    keyring,
    events: new EventIndex({ ...events, ids: [ids] }),
    foldRoots: new Map(saved.foldRoots),
  };
  const { grants, actions, pending, approvals, revocations } = state.links;
  const idOf = ({ place }: { readonly place: { readonly eventId: string } }): string =>
    fromDigestText(place.eventId);
  for (const { form, nodes } of saved.grants) {
    const loadNode = (limit: number, id: number): SavedNode => nodes[limit]?.get(id) as SavedNode;
    grants.add(
      idOf(form),
      restoreGrant(form, (index) => grants.at(index), loadNode),
    );
  }
  for (const form of saved.actions)
    actions.set(
      idOf(form),
      restoreAction(form, (index) => grants.at(index)),
    );
  for (const name of TABLES) {
    const table = state.links[name] as Pick<Map<string, unknown>, 'set'>;
    for (const [key, value] of saved[name]) table.set(key, value);
  }
  for (const approval of saved.approvals) approvals.set(idOf(approval), approval);
  for (const revocation of saved.revocations) revocations.push(revocation);
  for (const link of saved.pending) pending.set(link.id, link);
  for (const checkpoint of saved.checkpoints) state.seals.known.set(idOf(checkpoint), checkpoint);
  for (const [name, group] of saved.unsealed) state.seals.unsealed.set(name, group);
  for (const tally of saved.signers) state.signers.set(tally.keyid, tally);
  restoreHead(state, head);
  return { state, findings: kept, prefix };
}

function invalid(cause: unknown): NorthrootError {
  return new NorthrootError('STATE_INVALID', 'the saved state is none, or is damaged', {
    cause,
    hint: 'remove it, and verify from the beginning',
  });
}
