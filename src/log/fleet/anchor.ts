/**
 * Anchors: a parent ledger records the last checkpoint of a child, so that who watches the parent can tell whether the child was cut or
 * forked since. An anchor is an extension event of the parent, `x.northroot.anchor`.
 */

import { printable } from '../../base/bytes/printable.js';
import { encodeUtf8 } from '../../base/bytes/text.js';
import { defined } from '../../base/defined.js';
import { NorthrootError } from '../../base/error.js';
import { checkOptions, type OptionTypes } from '../../base/options.js';
import { fromDigestText, toDigestText, tryParseDigest } from '../../base/value/digest.js';
import { decodeCheckpoint } from '../../format/note/checkpoint.js';
import { hashToBase64url } from '../../format/tree/compact-range.js';
import type { TrustPolicy } from '../../format/schema/generated/types.js';
import { type ExaminedLine, examineLine } from '../../format/record/examine-line.js';
import { MAX_LINE_BYTES } from '../../format/record/line-splitter.js';
import type { LedgerSource } from '../../rules/source/ledger-source.js';
import { type OpenLedger, readLines } from '../../rules/source/read-lines.js';
import type { Anchor, EarlierAnchor } from '../../rules/verify/anchors.js';
import {
  runVerification,
  type VerifiedParent,
  type VerifyOptions,
  verifyParent,
} from '../../rules/verify/run-verification.js';
import { findCheckpoint } from '../read/find-checkpoint.js';
import type { Appended, Ledger } from '../writer/ledger.js';

export const ANCHOR_TYPE = 'x.northroot.anchor';

/** A longer note would not fit into a record. */
const MAX_NOTE_LENGTH = 32 * 1024;

export interface AnchorOptions {
  /** Who anchors. Default: who made the parent. */
  readonly principalId?: string | undefined;
  /** The child is verified by it. Default: by its own keys. */
  readonly trust?: TrustPolicy | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface LedgerAnchor {
  /** The child, `sha-256:…`. */
  readonly childId: string;
  readonly origin: string;
  readonly treeSize: number;
  /** Over its first `treeSize` records, `sha-256:…`. */
  readonly root: string;
  /** The signed note of its checkpoint. */
  readonly note: string;
}

export interface RecordedAnchor extends Omit<LedgerAnchor, 'note'> {
  /** Of the furthest of each child. */
  readonly note: string | undefined;
  readonly seq: number;
  /** `sha-256:…` */
  readonly eventId: string;
}

const ANCHOR_OPTIONS: OptionTypes<AnchorOptions> = {
  principalId: 'string',
  trust: 'object',
  signal: 'signal',
};

/**
 * Records the last checkpoint of a child in a parent, once: an anchor of the same checkpoint is `exists`. The child is verified first.
 * @param parent - Open for decisions
 * @param openChild - Opens the child, which is read twice
 * @throws NorthrootError `LEDGER_INVALID` for a child that does not verify; `CHECKPOINT_MISSING` for one without a checkpoint that seals;
 *   `LEDGER_MISMATCH` for the parent itself; `LINE_TOO_LONG` for a note beyond 32 KiB; as the source does, and `Ledger.append`
 * @throws TypeError for a bad option
 */
export async function anchorLedger(
  parent: Ledger,
  openChild: OpenLedger,
  options: AnchorOptions = {},
): Promise<Appended & LedgerAnchor> {
  checkOptions('anchorLedger', options, ANCHOR_OPTIONS);
  const { principalId, signal } = options;
  const anchor = await describeAnchor(openChild, options);
  if (anchor.childId === parent.genesisId)
    throw new NorthrootError('LEDGER_MISMATCH', 'expected another ledger than the parent', {
      hint: 'a ledger does not anchor itself',
    });
  const { occurredAt, ...said } = anchor;
  // Dated by the checkpoint: the same anchor is the same event.
  const appended = await parent.append(
    {
      event: {
        event_type: ANCHOR_TYPE,
        occurred_at: occurredAt,
        principal_id: principalId ?? parent.principalId,
        anchored: {
          ledger_id: said.childId,
          origin: said.origin,
          tree_size: said.treeSize,
          root: said.root,
          note: said.note,
        },
      },
    },
    { signal },
  );
  return { ...appended, ...said };
}

/** The last checkpoint of a ledger that verifies. */
async function describeAnchor(
  open: OpenLedger,
  { trust, signal }: AnchorOptions,
): Promise<LedgerAnchor & { readonly occurredAt: string }> {
  const source = await open();
  const [name = ''] = source.paths;
  const { state, hasInvalid } = await runVerification(source, {
    ...defined({ trust, signal }),
    maxFindings: 1,
  });
  if (hasInvalid)
    throw new NorthrootError('LEDGER_INVALID', `${printable(name)} has broken or missing evidence`, {
      hint: 'verify it first: an anchor is of a ledger that verifies',
    });
  const { seals, ledgerId } = state;
  const found = ledgerId === undefined ? undefined : await findCheckpoint(await open(), { signal });
  const sealing = seals.signed;
  if (
    found === undefined ||
    sealing === undefined ||
    ledgerId === undefined ||
    found.seq !== sealing.place.seq
  )
    throw new NorthrootError('CHECKPOINT_MISSING', `${printable(name)} has no signed checkpoint to anchor`, {
      hint: 'seal it first',
    });
  if (found.note.length > MAX_NOTE_LENGTH)
    throw new NorthrootError('LINE_TOO_LONG', `the note of ${printable(name)} is too long to be anchored`, {
      hint: 'anchor a checkpoint with fewer signatures',
    });
  const { origin, size, root } = found.checkpoint;
  return {
    childId: toDigestText(ledgerId),
    origin,
    treeSize: size,
    root: toDigestText(hashToBase64url(root)),
    note: found.note,
    occurredAt: sealing.occurredAt,
  };
}

/** In canonical text; inside a string the quotes would be escaped. */
const MARK = Buffer.from(`"event_type":"${ANCHOR_TYPE}"`);

/**
 * The anchors of each child, by the child's id, the furthest last. Earlier ones count too: who forked a child may have had the fork
 * anchored as well.
 */
export type AnchorsByChild = ReadonlyMap<string, readonly RecordedAnchor[]>;

/**
 * The anchors in a ledger that was verified. What is no anchor, or names itself one and is malformed, is passed over.
 * @throws NorthrootError when the source cannot be read; the signal's reason
 */
export async function readLedgerAnchors(source: LedgerSource, signal?: AbortSignal): Promise<AnchorsByChild> {
  const list = new AnchorList();
  for await (const { line, takesPlace, ordinal } of readLines(source, { signal })) {
    if (!takesPlace || line.length > MAX_LINE_BYTES) continue;
    const { buffer, byteOffset, length } = line.bytes;
    if (Buffer.from(buffer, byteOffset, length).includes(MARK))
      list.take(examineLine(line.bytes, 'records'), ordinal);
  }
  return list.anchors;
}

/** A ledger that was verified as one that sets amounts aside, and anchors others. */
export interface AnchoringParent extends VerifiedParent {
  /** Empty where it is invalid: then they show nothing. */
  readonly anchors: AnchorsByChild;
}

/** `verifyParent`, with the anchors of other ledgers in it. @throws as `verifyParent` */
export async function verifyAnchoringParent(
  source: LedgerSource,
  options: Omit<VerifyOptions, 'onRecord'> = {},
): Promise<AnchoringParent> {
  const list = new AnchorList();
  const verified = await verifyParent(source, {
    ...options,
    onRecord: ({ examined, ordinal }) => {
      if (examined !== undefined) list.take(examined, ordinal);
      return undefined;
    },
  });
  return { ...verified, anchors: verified.result.hasInvalid ? new Map() : list.anchors };
}

export class AnchorList {
  readonly #children = new Map<string, AnchoredTrees>();

  get anchors(): AnchorsByChild {
    const bySize = ({ trees }: AnchoredTrees): RecordedAnchor[] =>
      [...trees.values()].sort((a, b) => a.treeSize - b.treeSize || a.seq - b.seq);
    return new Map([...this.#children].map(([childId, child]) => [childId, bySize(child)]));
  }

  /** @param ordinal - Of the record */
  take(examined: ExaminedLine, ordinal: number): void {
    const anchor = examined.eventType === ANCHOR_TYPE ? anchorOf(examined, ordinal) : undefined;
    if (anchor === undefined) return;
    const child = this.#children.get(anchor.childId) ?? {
      first: anchor,
      furthest: undefined,
      trees: new Map(),
    };
    const { first, furthest, trees } = child;
    this.#children.set(first.childId, child);
    // A text that was cut out of a note keeps all of it in memory.
    const origin = anchor.origin === first.origin ? first.origin : anchor.origin;
    const own = { ...anchor, childId: first.childId, origin };
    const isFurther = furthest === undefined || own.treeSize >= furthest.treeSize;
    trees.set(nameOfTree(own), isFurther ? own : withoutNote(own));
    if (!isFurther) return;
    child.furthest = own;
    if (furthest !== undefined && nameOfTree(furthest) !== nameOfTree(own))
      trees.set(nameOfTree(furthest), withoutNote(furthest));
  }
}

interface AnchoredTrees {
  readonly first: RecordedAnchor;
  furthest: RecordedAnchor | undefined;
  /** Each tree once, by what the note says of it. */
  readonly trees: Map<string, RecordedAnchor>;
}

function nameOfTree({ origin, treeSize, root }: RecordedAnchor): string {
  return `${treeSize} ${root} ${origin}`;
}

/** Notes are long, and anchors many: one note a child is kept. */
function withoutNote(anchor: RecordedAnchor): RecordedAnchor {
  return { ...anchor, note: undefined };
}

function anchorOf(examined: ExaminedLine, seq: number): RecordedAnchor | undefined {
  const event = examined.json();
  const { eventId } = examined;
  if (event === undefined || eventId === undefined || event['event_type'] !== ANCHOR_TYPE) return undefined;
  const { ledger_id: childId, note } = (event['anchored'] ?? {}) as Record<string, unknown>;
  if (typeof childId !== 'string' || tryParseDigest(childId) === undefined) return undefined;
  if (typeof note !== 'string' || note.length > MAX_NOTE_LENGTH) return undefined;
  const decoded = decodeCheckpoint(encodeUtf8(note));
  if (!decoded.ok) return undefined;
  // The note is what was signed: what the event says beside it is for readers.
  const { origin, size, root } = decoded.value.checkpoint;
  return {
    childId,
    origin,
    treeSize: size,
    root: toDigestText(hashToBase64url(root)),
    note,
    seq,
    eventId: toDigestText(eventId),
  };
}

/** What a verification of a child is given of its anchors in parents. */
export interface HeldAnchors {
  readonly checkpoints: readonly Anchor[];
  readonly earlierCheckpoints: readonly EarlierAnchor[];
}

/** Anchors of a child as checkpoints that the user holds, for its verification. @param parent - The parent's name */
export function anchorsToCheckpoints(anchors: readonly RecordedAnchor[], parent: string): HeldAnchors {
  const checkpoints: Anchor[] = [];
  const earlierCheckpoints: EarlierAnchor[] = [];
  for (const anchor of anchors) {
    const name = nameOfAnchor(anchor, parent);
    const { origin, treeSize: size, note } = anchor;
    if (note !== undefined) checkpoints.push({ name, note: encodeUtf8(note) });
    else {
      const root = Buffer.from(fromDigestText(anchor.root), 'base64url').toString('latin1');
      earlierCheckpoints.push({ name, checkpoint: { origin, size, root, extensions: [] } });
    }
  }
  return { checkpoints, earlierCheckpoints };
}

/** What an anchor is called as a checkpoint. */
export function nameOfAnchor({ seq }: RecordedAnchor, parent: string): string {
  return `${parent} (anchor, seq ${seq})`;
}
