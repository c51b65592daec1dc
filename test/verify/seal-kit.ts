/** What the tests of checkpoints, anchors and key events share: a ledger that is written record by record. */

import type { AnyEvent } from '../../src/format/event/build.js';
import { canonicalBytes } from '../../src/base/json/canonicalize.js';
import { formatRecord } from '../../src/format/record/record.js';
import { formatCheckpoint } from '../../src/format/note/checkpoint.js';
import { cosignNote, signNote } from '../../src/format/note/note-key.js';
import { formatNote, parseNote, type NoteSignature } from '../../src/format/note/signed-note.js';
import type { Key } from '../../src/format/schema/generated/types.js';
import { signEvent, type Signer } from '../../src/format/signature/signer.js';
import {
  appendLeaf,
  emptyRange,
  hashToBase64url,
  leafHash,
  rangeRoot,
} from '../../src/format/tree/compact-range.js';
import type { Anchor } from '../../src/rules/verify/anchors.js';
import { boundIfKey, event } from '../docs/ledger-kit.js';
import { ledgerOf, linesOf } from './support.js';

export const ORIGIN = 'example.com/test';

/** Writes what is right, unless it is told otherwise. */
export class LedgerMaker {
  readonly lines: Buffer[] = [];
  readonly events: AnyEvent[] = [];
  readonly #tree = emptyRange();
  #prev = hashToBase64url(rangeRoot(this.#tree));

  /** Key events are bound to the ledger. */
  append(given: AnyEvent, ...signers: readonly Signer[]): AnyEvent {
    const draft = boundIfKey(this.events[0], given);
    const bytes = canonicalBytes(draft);
    const record = formatRecord({
      eventText: Buffer.from(bytes).toString(),
      prev: this.#prev,
      seq: this.lines.length,
      signatures: signers.map((signer) => signEvent(bytes, signer)),
    });
    const line = Buffer.from(record.subarray(0, -1));
    const leaf = leafHash(line);
    appendLeaf(this.#tree, leaf);
    this.#prev = hashToBase64url(leaf);
    this.lines.push(line);
    this.events.push(draft);
    return draft;
  }

  /** The text of a checkpoint of the ledger as it stands. */
  text(origin = ORIGIN): string {
    return formatCheckpoint({
      origin,
      size: this.lines.length,
      root: rangeRoot(this.#tree),
      extensions: [],
    });
  }

  /** The event of a checkpoint of the ledger as it stands. */
  checkpoint(note: string | readonly NoteSignature[], members: object = {}): AnyEvent {
    return event('checkpoint', {
      tree_size: this.lines.length,
      root: { alg: 'sha-256', b64: hashToBase64url(rangeRoot(this.#tree)) },
      chain_tip_event_id: this.events.at(-1)?.event_id,
      note: typeof note === 'string' ? note : formatNote({ text: this.text(), signatures: note }),
      ...members,
    });
  }

  /** Appends a checkpoint whose note these signed, in a record that the first of them signed. */
  seal(...signers: readonly Signer[]): AnyEvent {
    const text = this.text();
    const lines = signers.map((signer) => signNote(text, ORIGIN, signer));
    return this.append(this.checkpoint(lines), ...signers.slice(0, 1));
  }

  /** A checkpoint of the ledger as it stands, as its user keeps it. */
  anchor(signer: Signer, origin?: string): Anchor {
    return anchorOf(this.text(origin), signer);
  }

  get bytes(): Buffer {
    return ledgerOf(this.lines);
  }
}

export function anchorOf(text: string, signer: Signer, name = 'kept.checkpoint'): Anchor {
  const origin = text.slice(0, text.indexOf('\n'));
  return { name, note: Buffer.from(formatNote({ text, signatures: [signNote(text, origin, signer)] })) };
}

/** A checkpoint of so many records of a ledger, with the root of another tree. */
export function anchorAt(ledger: Buffer, signer: Signer, size: number): Anchor {
  const { event } = JSON.parse(linesOf(ledger)[0]?.toString() ?? '') as { event: { origin: string } };
  return anchorOf(`${event.origin}\n${size}\n${Buffer.alloc(32).toString('base64')}\n`, signer);
}

/** An attestation of a checkpoint. */
export function attestationOf(
  checkpoint: AnyEvent,
  lines: (text: string) => readonly NoteSignature[],
  members: object = {},
): AnyEvent {
  const { text } = parseNote(Buffer.from(checkpoint['note'] as string));
  return event('attestation', {
    checkpoint_event_id: checkpoint.event_id,
    note: formatNote({ text, signatures: lines(text) }),
    ...members,
  });
}

export function keyEvent(action: 'add' | 'revoke', key: Key, members: object = {}): AnyEvent {
  return event('key', { action, key, ...members });
}

export const logLine =
  (...signers: readonly Signer[]) =>
  (text: string): NoteSignature[] =>
    signers.map((signer) => signNote(text, ORIGIN, signer));

export const witnessLine =
  (name: string, ...signers: readonly Signer[]) =>
  (text: string): NoteSignature[] =>
    signers.map((signer) => cosignNote(text, name, signer, 1_767_268_800));
