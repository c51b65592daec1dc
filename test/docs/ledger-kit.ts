/** Ledgers line by line, right or wrong as a test wants them. */

import { createHash } from 'node:crypto';
import {
  buildEvent,
  canonicalBytes,
  createSigner,
  formatPublicKey,
  formatRecord,
  generatePrivateKey,
  signEvent,
  verifyLedger,
  type AnyEvent,
  type EventSignature,
  type FindingJson,
  type Key,
  type NoteSignature,
  type Report,
  type Signer,
  type VerifyOptions,
} from '../../src/api/index.js';
import { formatCheckpoint } from '../../src/format/note/checkpoint.js';
import { parseNote } from '../../src/format/note/signed-note.js';
import { digestFromBase64url } from '../../src/base/value/digest.js';
import { signNote } from '../../src/format/note/note-key.js';
import { formatNote } from '../../src/format/note/signed-note.js';
import { appendLeaf, emptyRange, leafHash, rangeRoot } from '../../src/format/tree/compact-range.js';

/** What stands before a line. */
export interface Before {
  readonly size: number;
  /** The root as a binary string. */
  readonly root: string;
  readonly tip: AnyEvent;
}

/** What becomes a line. `prev` and `seq` are those of its place unless given. */
export interface Item {
  readonly event: AnyEvent | ((before: Before) => AnyEvent);
  readonly signers?: readonly Signer[];
  readonly signatures?: readonly EventSignature[];
  readonly meta?: Readonly<Record<string, string>>;
  readonly seq?: number;
}

export const DIGEST = digestFromBase64url('A'.repeat(43));

export function makeSigner(alg: 'ed25519' | 'p256' = 'ed25519'): Signer {
  return createSigner(generatePrivateKey(alg));
}

export function keyOf({ publicKey }: Signer, more: Partial<Key> = {}): Key {
  return {
    keyid: publicKey.keyid,
    public_key: formatPublicKey(publicKey),
    roles: ['event'],
    principals: ['*'],
    ...more,
  };
}

export function genesis(keys: readonly Key[] = [], more: object = {}): AnyEvent {
  return event('genesis', {
    principal_id: 'service:ledger',
    occurred_at: '2026-01-01T00:00:00Z',
    origin: 'example.com/test',
    ledger_version: '1',
    signing: { events: keys.length > 0 ? 'required' : 'optional', checkpoints: 'optional' },
    keys,
    ...more,
  });
}

export function event(eventType: string, members: object = {}): AnyEvent {
  return buildEvent({
    event_type: eventType,
    principal_id: 'agent:a1',
    occurred_at: '2026-01-02T00:00:00Z',
    ...members,
  });
}

/** The same event for the ledger that begins with `first`. */
export function boundTo(first: AnyEvent, whole: AnyEvent): AnyEvent {
  return buildEvent({ ...whole, ledger_id: first.event_id });
}

/** A key event as it must be in the ledger that begins with `first`; other events, and those bound already, as they are. */
export function boundIfKey(first: AnyEvent | undefined, whole: AnyEvent): AnyEvent {
  if (first === undefined || whole.event_type !== 'key' || 'ledger_id' in whole) return whole;
  return boundTo(first, whole);
}

/** An extension event of its own. */
export function note(text: string | number, members: object = {}): AnyEvent {
  return event('x.note', { text: String(text), ...members });
}

export function bare(...events: readonly AnyEvent[]): Buffer {
  return Buffer.concat(events.flatMap((each) => [canonicalBytes(each), Buffer.from('\n')]));
}

/** Chains items, or lines that stand as they are, to a ledger. Key events are bound to it. */
export function ledger(...items: readonly (Item | string)[]): Buffer {
  let prev = createHash('sha256').digest('base64url');
  let tip: AnyEvent | undefined;
  let first: AnyEvent | undefined;
  const tree = emptyRange();
  return Buffer.concat(
    items.map((item, seq) => {
      let line: Uint8Array;
      if (typeof item === 'string') {
        line = Buffer.from(`${item}\n`);
      } else {
        const { event: given } = item;
        const before = { size: tree.size, root: rangeRoot(tree), tip: tip as AnyEvent };
        tip = boundIfKey(first, typeof given === 'function' ? given(before) : given);
        first ??= tip;
        line = makeLine(item, tip, prev, seq);
      }
      appendLeaf(tree, leafHash(line.subarray(0, -1)));
      prev = createHash('sha256').update(Uint8Array.of(0)).update(line.subarray(0, -1)).digest('base64url');
      return line;
    }),
  );
}

/** A checkpoint of what stands before it, its note signed by these. */
export function checkpoint(
  by: readonly Signer[],
  members: object = {},
  origin = 'example.com/test',
): (before: Before) => AnyEvent {
  return ({ size, root, tip }) => {
    const text = formatCheckpoint({ origin, size, root, extensions: [] });
    return event('checkpoint', {
      tree_size: size,
      root: { alg: 'sha-256', b64: Buffer.from(root, 'latin1').toString('base64url') },
      chain_tip_event_id: tip.event_id,
      ...(by.length > 0 && {
        note: formatNote({ text, signatures: by.map((signer) => signNote(text, origin, signer)) }),
      }),
      ...members,
    });
  };
}

/** The signature lines of an attestation of the checkpoint right before it. */
export function attestation(lines: (text: string) => readonly NoteSignature[]): (before: Before) => AnyEvent {
  return ({ tip }) => {
    const { text } = parseNote(Buffer.from(tip['note'] as string));
    return event('attestation', {
      checkpoint_event_id: tip.event_id,
      note: formatNote({ text, signatures: lines(text) }),
    });
  };
}

function makeLine(
  { signers = [], signatures = [], meta, seq: given }: Item,
  whole: AnyEvent,
  prev: string,
  seq: number,
): Uint8Array {
  const bytes = canonicalBytes(whole);
  return formatRecord({
    eventText: Buffer.from(bytes).toString(),
    prev,
    seq: given ?? seq,
    meta,
    signatures: [...signers.map((signer) => signEvent(bytes, signer)), ...signatures],
  });
}

export async function verify(bytes: Uint8Array, options: VerifyOptions = {}): Promise<Report> {
  return verifyLedger(bytes, options);
}

/** Each finding as `CODE` or `CODE severity`, with its line. */
export async function codes(bytes: Uint8Array, options: VerifyOptions = {}): Promise<string[]> {
  return (await verify(bytes, options)).findings.map(brief);
}

export function brief({ code, severity, at }: FindingJson): string {
  return `${code}${severity === 'error' ? '' : ` ${severity}`} in ${at.line}`;
}
