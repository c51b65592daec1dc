/** The keys of a ledger, from where on they count, and where they were revoked (SPEC §7): as verification knows them. */

import { printable } from '../bytes/printable.js';
import type { LedgerSource } from '../fs/source.js';
import { LineSplitter } from '../ledger/line-splitter.js';
import type { ExaminedLine } from '../ledger/examine-line.js';
import type { Key, KeyEvent, TrustPolicy } from '../schema/generated/types.js';
import { nodeVerifier } from '../signature/node-verifier.js';
import { startVerification, type VerifyState } from '../verify/state.js';
import { verifyLine } from '../verify/verify-line.js';

/** A record, for whoever looks it up. */
export interface KeyRecord {
  readonly seq: number;
  /** `sha-256:…` */
  readonly eventId: string;
}

/** A key, and what became of it. */
export interface ListedKey {
  readonly key: Key;
  /** The record that brought it; undefined where the trust policy pins it. */
  readonly since: KeyRecord | undefined;
  /** Keyids of those who signed for it; empty for a key of genesis or of the policy. */
  readonly addedBy: readonly string[];
  /** The record that revoked it, and why, where it says so. */
  readonly revoked: (KeyRecord & { readonly reason: string | undefined }) | undefined;
}

/** The keys of a ledger. */
export interface KeyList {
  readonly origin: string | undefined;
  /** In the order in which they came. */
  readonly keys: readonly ListedKey[];
  /** Whether verification found broken evidence on the way: then the ledger says less than it seems to. */
  readonly hasInvalid: boolean;
}

/** How {@link listKeys} reads. */
export interface KeyListOptions {
  /** The keys that it pins are listed first, and the ledger's own count only as far as they follow from these. */
  readonly trust?: TrustPolicy;
  /** Aborting ends the reading with its reason. */
  readonly signal?: AbortSignal;
}

/**
 * The keys of a ledger, those among them that were revoked, and since when. A key event that no admin signed changes nothing and is
 * not listed.
 *
 * @throws NorthrootError when the source cannot be read.
 */
export async function listKeys(source: LedgerSource, options: KeyListOptions = {}): Promise<KeyList> {
  const state = startVerification(options.trust, nodeVerifier);
  const since = new Map<string, KeyRecord>();
  const reasons = new Map<string, string>();
  for await (const segment of source.segments) {
    const splitter = new LineSplitter();
    for await (const chunk of segment.chunks) {
      options.signal?.throwIfAborted();
      for (const line of splitter.push(chunk)) {
        const { examined } = verifyLine(state, line, segment);
        if (examined !== undefined) noteChange(state, examined, since, reasons);
      }
    }
    const torn = splitter.finish();
    if (torn !== undefined) verifyLine(state, torn, segment);
  }
  const keys = state.keyring.save().map(({ key, addedBy = [], revokedBy }): ListedKey => {
    const revoked = revokedBy && {
      seq: revokedBy.seq,
      eventId: revokedBy.eventId,
      reason: reasons.get(key.keyid),
    };
    return { key, since: since.get(key.keyid), addedBy, revoked };
  });
  return { origin: state.origin, keys, hasInvalid: state.hasInvalid };
}

/** Takes down where the keyring changed; whether it did is verification's to say. */
function noteChange(
  { keyring, policy }: VerifyState,
  { event, eventId, seq = 0 }: ExaminedLine,
  since: Map<string, KeyRecord>,
  reasons: Map<string, string>,
): void {
  const type = event?.['event_type'];
  if ((type !== 'genesis' && type !== 'key') || eventId === undefined) return;
  const record = { seq, eventId: `sha-256:${eventId}` };
  if (type === 'genesis') {
    const isFirst = since.size === 0 && policy === undefined;
    if (isFirst) for (const { key } of keyring.save()) since.set(key.keyid, record);
    return;
  }
  const { action, key, reason } = event as unknown as Partial<KeyEvent>;
  const ringKey = typeof key?.keyid === 'string' ? keyring.find(key.keyid) : undefined;
  if (ringKey === undefined) return;
  const { keyid } = ringKey.key;
  if (action === 'add' && ringKey.addedBy !== undefined && !since.has(keyid)) since.set(keyid, record);
  const isRevokedHere = ringKey.revokedBy?.eventId === record.eventId;
  if (isRevokedHere && typeof reason === 'string') reasons.set(keyid, reason);
}

/** The list for people. */
export function renderKeyList({ keys }: KeyList): string {
  if (keys.length === 0) return 'no keys: the ledger declares none\n';
  return keys.map(renderKey).join('\n');
}

function renderKey({ key, since, addedBy, revoked }: ListedKey): string {
  const { keyid, roles, principals, name, valid_from: from, valid_until: until } = key;
  const origin = since === undefined ? 'pinned by the trust policy' : `since seq ${since.seq}`;
  const by = addedBy.length === 0 ? '' : `, added by ${addedBy.map((each) => printable(each)).join(', ')}`;
  const rows: (readonly [string, string] | undefined)[] = [
    ['roles', roles.join(', ')],
    ['signs for', principals.map((pattern) => printable(pattern)).join(', ')],
    name === undefined ? undefined : ['name', printable(name)],
    from === undefined ? undefined : ['not before', from],
    until === undefined ? undefined : ['until', until],
    revoked && ['revoked', `at seq ${revoked.seq}${why(revoked.reason)}`],
  ];
  const lines = rows
    .filter((row) => row !== undefined)
    .map(([label, text]) => `  ${label.padEnd(11)}${text}`);
  return `${[`${printable(keyid)}  ${origin}${by}`, ...lines].join('\n')}\n`;
}

function why(reason: string | undefined): string {
  return reason === undefined ? '' : `: ${printable(reason)}`;
}
