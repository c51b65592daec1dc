/**
 * A verification's state as bytes: it can be saved after any line and taken up again, in another process, with the rest of the
 * ledger. What is saved is the verifier's own and is believed: read only states that you saved yourself. A line of text says
 * which northroot saved it, and has the digest of what follows, so that damage is noticed:
 *
 *     northroot-state 0.1.0 sha-256:<base64url>\n<structured clone>
 */

import { deserialize, serialize } from 'node:v8';
import type { Grant } from '../bounds/grant.js';
import type { OpenStart } from '../bounds/started.js';
import type { SavedNode } from '../bounds/timeline.js';
import { printable } from '../bytes/printable.js';
import { sha256Base64url } from '../bytes/sha256.js';
import { NorthrootError } from '../error.js';
import type { Finding } from '../finding/finding.js';
import type { TrustPolicy } from '../schema/generated/types.js';
import { nodeBackend } from '../signature/node-backend.js';
import type { SignatureBackend } from '../signature/backend.js';
import { Keyring, type SavedKey } from '../trust/keyring.js';
import type { WitnessPolicy } from '../trust/witness-policy.js';
import { fromDigestText, toDigestText } from '../value/digest.js';
import { VERSION } from '../version.js';
import { EventIndex, type EventIndexData } from './event-index.js';
import type { PendingLink } from './links.js';
import type { KnownCheckpoint, UnsealedRecords } from './seals.js';
import {
  restoreAction,
  restoreGrant,
  restoreHead,
  saveAction,
  saveGrant,
  saveHead,
  type ActionForm,
  type GrantForm,
  type HeadForm,
} from './state-form.js';
import { startVerification, type SignerTally, type VerifyState } from './state.js';
import type { VerifiedPrefix } from './verified-prefix.js';

const HEADER = /^northroot-state (\S{1,64}) sha-256:([A-Za-z0-9_-]{43})$/;
const MAX_HEADER_LENGTH = 160;
const NEWLINE = 0x0a;
/** Raised when what is saved takes another form within one version. */
const FORM = 4;

interface SavedGrant {
  readonly form: GrantForm;
  /** The nodes of each limit's timeline, by their numbers. */
  readonly nodes: readonly ReadonlyMap<number, SavedNode>[];
}

interface Saved {
  readonly form: typeof FORM;
  readonly policy: TrustPolicy | undefined;
  readonly witnessPolicy: WitnessPolicy | undefined;
  readonly head: HeadForm;
  readonly keys: readonly SavedKey[];
  readonly events: EventIndexData;
  readonly grants: readonly SavedGrant[];
  readonly actions: readonly ActionForm[];
  readonly starts: ReadonlyMap<string, Map<string, OpenStart>>;
  readonly pending: readonly PendingLink[];
  readonly checkpoints: readonly KnownCheckpoint[];
  readonly unsealed: ReadonlyMap<string, UnsealedRecords>;
  readonly signers: readonly SignerTally[];
  readonly foldRoots: ReadonlyMap<string, Finding>;
  readonly kept: readonly Finding[];
  readonly prefix: VerifiedPrefix | undefined;
}

/** A verification that can be gone on with. */
export interface SavedVerification {
  readonly state: VerifyState;
  /** The findings so far that do not depend on where the ledger ends. */
  readonly findings: readonly Finding[];
  /** What was read, as a whole (`VerificationResult.prefix`): without it each line of that is hashed when it is gone on with. */
  readonly prefix?: VerifiedPrefix | undefined;
}

/**
 * A verification as bytes: the state after any line, and the findings up to it.
 *
 * @throws TypeError for a state that is not in memory
 */
export function saveVerification({ state, findings, prefix }: SavedVerification): Uint8Array {
  const { policy, witnessPolicy, keyring, events, links, seals, signers, foldRoots } = state;
  if (!(events instanceof EventIndex && foldRoots instanceof Map))
    throw new TypeError('expected a state that is in memory');
  const saved: Saved = {
    form: FORM,
    policy,
    witnessPolicy,
    head: saveHead(state),
    keys: keyring.save(),
    events: events.save(),
    grants: [...links.grants.values()].map(saveWholeGrant),
    actions: [...links.actions.values()].map(saveAction),
    starts: links.starts,
    pending: [...links.pending.values()],
    checkpoints: [...seals.known.values()],
    unsealed: seals.unsealed,
    signers: [...signers.values()],
    foldRoots,
    kept: findings,
    prefix,
  };
  const body = serialize(saved);
  const header = `northroot-state ${VERSION} ${toDigestText(sha256Base64url(body))}\n`;
  return Buffer.concat([Buffer.from(header, 'latin1'), body]);
}

/**
 * The verification that {@link saveVerification} saved.
 *
 * @throws NorthrootError `STATE_INVALID` when the bytes are no such state, or a damaged one; `STATE_OUTDATED` when another
 *   version of northroot saved it: what was found by its rules is not what this one would find.
 */
export function restoreVerification(
  bytes: Uint8Array,
  backend: SignatureBackend = nodeBackend,
): SavedVerification {
  const end = bytes.subarray(0, MAX_HEADER_LENGTH).indexOf(NEWLINE);
  const header = HEADER.exec(Buffer.from(bytes.subarray(0, Math.max(end, 0))).toString('latin1'));
  const body = bytes.subarray(end + 1);
  if (header === null || header[2] !== sha256Base64url(body)) throw invalid(undefined);
  const [, version = ''] = header;
  if (version !== VERSION) throw outdated(`is of northroot ${printable(version)}`);
  const saved = read(body);
  if (saved.form !== FORM) throw outdated('has the form of an earlier build of northroot');
  try {
    return revive(saved, backend);
  } catch (cause) {
    throw invalid(cause);
  }
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

function revive(saved: Saved, backend: SignatureBackend): SavedVerification {
  const { policy, witnessPolicy, head, keys, events, kept, prefix } = saved;
  const keyring = new Keyring(backend);
  keyring.restore(keys);
  const state: VerifyState = {
    ...startVerification(policy, backend, witnessPolicy),
    keyring,
    events: new EventIndex(events),
    foldRoots: new Map(saved.foldRoots),
  };
  const { grants, actions, starts, pending } = state.links;
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
  for (const [id, open] of saved.starts) starts.set(id, open);
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
