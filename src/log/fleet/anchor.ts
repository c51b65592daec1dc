/**
 * Anchors: a parent ledger records the last checkpoint of a child, so that who watches the parent can tell whether the child was cut or
 * forked since.
 */

import { printable } from '../../base/bytes/printable.js';
import { encodeUtf8 } from '../../base/bytes/text.js';
import { defined } from '../../base/defined.js';
import { NorthrootError } from '../../base/error.js';
import type { JsonObject } from '../../base/json/value.js';
import { checkOptions, type OptionTypes } from '../../base/options.js';
import { fromDigestText, toDigestText } from '../../base/value/digest.js';
import { hashToBase64url } from '../../format/tree/compact-range.js';
import type { TrustPolicy } from '../../format/schema/generated/types.js';
import { type ExaminedLine, examineLine } from '../../format/record/examine-line.js';
import { MAX_LINE_BYTES } from '../../format/record/line-splitter.js';
import type { LedgerSource } from '../../rules/source/ledger-source.js';
import { type OpenLedger, readLines } from '../../rules/source/read-lines.js';
import type { Anchor, AnchorOutcome, EarlierAnchor } from '../../rules/verify/anchors.js';
import {
  runVerification,
  type VerifiedParent,
  type VerifyOptions,
  verifyParent,
} from '../../rules/verify/run-verification.js';
import { findCheckpoint } from '../read/find-checkpoint.js';
import { LedgerView } from '../read/ledger-view.js';
import type { Appended, Ledger } from '../writer/ledger.js';
import { ANCHOR_TYPE, type LedgerAnchor, MAX_NOTE_LENGTH, readAnchor } from './anchor-event.js';
import { readLedgerId } from './list-fleet.js';

export interface AnchorOptions {
  /** Who anchors. Default: who made the parent. */
  readonly principalId?: string | undefined;
  /** The child is verified by it. Default: by its own keys. */
  readonly trust?: TrustPolicy | undefined;
  /** Of the parent, as for {@link LedgerView}: without one the parent is read. */
  readonly index?: string | boolean | undefined;
  readonly signal?: AbortSignal | undefined;
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
  index: ['string', 'boolean'],
  signal: 'signal',
};

/**
 * Records the last checkpoint of a child in a parent, once: an anchor of the same checkpoint is `exists`. The child is verified first, and
 * held against the furthest anchor of it that the parent has.
 * @param parent - Open for decisions
 * @param openChild - Opens the child, which is read three times
 * @throws NorthrootError `TRUNCATED`, `FORKED` or `ORIGIN_MISMATCH` for a child that does not extend what the parent has anchored of it;
 *   `LEDGER_INVALID` for a child that does not verify, and for such a parent; `CHECKPOINT_MISSING` for a child without a checkpoint that
 *   seals; `LEDGER_MISMATCH` for the parent itself; `LINE_TOO_LONG` for a note beyond 32 KiB; as the source does, and `Ledger.decide`
 * @throws TypeError for a bad option
 */
export async function anchorLedger(
  parent: Ledger,
  openChild: OpenLedger,
  options: AnchorOptions = {},
): Promise<Appended & LedgerAnchor> {
  checkOptions('anchorLedger', options, ANCHOR_OPTIONS);
  for (;;) {
    const childId = await readLedgerId(await openChild(), options.signal);
    let isHeld = true;
    const stop = parent.onOther(({ event }) => {
      if (readAnchor(event)?.childId === childId) isHeld = false;
    });
    try {
      const last = childId === undefined ? undefined : await findAnchor(parent, childId, options);
      const anchor = await describeAnchor(openChild, anchorsToCheckpoints(last ?? [], parent.path), options);
      if (anchor.childId === parent.genesisId)
        throw new NorthrootError('LEDGER_MISMATCH', 'expected another ledger than the parent', {
          hint: 'a ledger does not anchor itself',
        });
      if (anchor.childId !== childId)
        throw new NorthrootError('FILE_CHANGED', 'the child was replaced while it was read', {
          hint: 'anchor it again',
        });
      const recorded = await record(parent, anchor, () => isHeld, options);
      if (recorded !== undefined) return recorded;
    } finally {
      stop();
    }
  }
}

/** The furthest anchor of a child in a parent; none or one. */
async function findAnchor(
  parent: Ledger,
  childId: string,
  { index, signal }: AnchorOptions,
): Promise<readonly RecordedAnchor[]> {
  const view = new LedgerView(parent.path, { ...defined({ index, signal }), open: () => parent.source() });
  return view.askRecords(
    async ({ records }) => {
      const record = await records.findAnchor(childId);
      const anchor = record && readAnchor(record.event);
      return record === undefined || anchor === undefined
        ? []
        : [{ ...anchor, seq: record.seq, eventId: record.eventId }];
    },
    async (open) => (await readLedgerAnchors(await open(), signal)).get(childId)?.slice(-1) ?? [],
  );
}

/** Undefined if there is a later anchor by now than the one that the child was held against. */
async function record(
  parent: Ledger,
  { occurredAt, ...said }: DatedAnchor,
  isHeld: () => boolean,
  { principalId = parent.principalId, signal }: AnchorOptions,
): Promise<(Appended & LedgerAnchor) | undefined> {
  const { childId, origin, treeSize, root, note } = said;
  const behind = new Error('there is another anchor by now');
  const make = (): { readonly event: JsonObject } => {
    if (!isHeld()) throw behind;
    return {
      event: {
        event_type: ANCHOR_TYPE,
        // Dated by the checkpoint: the same anchor is the same event.
        occurred_at: occurredAt,
        principal_id: principalId,
        anchored: { ledger_id: childId, origin, tree_size: treeSize, root, note },
      },
    };
  };
  try {
    const { seq, eventId, status, findings, verdict } = await parent.decide(make, { signal });
    return { seq, eventId, status, findings, verdict, ...said };
  } catch (error) {
    if (error === behind) return undefined;
    throw error;
  }
}

type DatedAnchor = LedgerAnchor & { readonly occurredAt: string };

/** The last checkpoint of a ledger that verifies. */
async function describeAnchor(
  open: OpenLedger,
  held: HeldAnchors,
  { trust, signal }: AnchorOptions,
): Promise<DatedAnchor> {
  const source = await open();
  const [name = ''] = source.paths;
  const { state, ending, hasInvalid } = await runVerification(source, {
    ...defined({ trust, signal }),
    ...held,
    maxFindings: 1,
  });
  assertExtends(name, ending.anchors);
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

const CODE_OF_RELATION = {
  truncated: 'TRUNCATED',
  forked: 'FORKED',
  'other-origin': 'ORIGIN_MISMATCH',
} as const;

/** @throws NorthrootError for a ledger that does not extend what was anchored of it */
function assertExtends(ledger: string, outcomes: readonly AnchorOutcome[]): void {
  for (const { isPublished, relation, name, note } of outcomes) {
    if (isPublished || relation === 'extends') continue;
    const { size } = note.checkpoint;
    throw new NorthrootError(
      CODE_OF_RELATION[relation],
      `${printable(ledger)} does not extend its first ${size} records as they were anchored: ${printable(name)}`,
      { hint: 'records were cut off or changed since, or this is an older copy; nothing was recorded' },
    );
  }
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
  if (event === undefined || eventId === undefined) return undefined;
  const anchor = readAnchor(event);
  return anchor && { ...anchor, seq, eventId: toDigestText(eventId) };
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
