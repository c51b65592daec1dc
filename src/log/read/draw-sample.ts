/**
 * Draws executions for an audit by lot. The lot of an execution is a hash over the root of a checkpoint and the execution's id, so that
 * whoever has the ledger draws the same ones again, and who wrote the records could not foresee them. docs/spec/proofs.md has the rule.
 */

import { encodeBase64url, tryDecodeBase64url } from '../../base/bytes/encoding.js';
import { encodeUtf8 } from '../../base/bytes/text.js';
import { sha256Latin1 } from '../../base/bytes/sha256.js';
import { defined } from '../../base/defined.js';
import { NorthrootError } from '../../base/error.js';
import { checkOptions, type OptionTypes } from '../../base/options.js';
import { toDigestText } from '../../base/value/digest.js';
import { type Checkpoint, parseCheckpoint } from '../../format/note/checkpoint.js';
import { hashToBase64url } from '../../format/tree/compact-range.js';
import { matchesSelection, type RecordSelection } from '../../rules/selection.js';
import { runVerification, type VerificationResult } from '../../rules/verify/run-verification.js';
import type { VerifiedRecord } from '../../rules/verify/verified-record.js';
import { isFirstOfItsId } from './counted.js';
import { assertReaches, forked } from './find-checkpoint.js';
import { Subjects } from './subject.js';
import { type LedgerInput, openVerifiable } from './verify-ledger.js';
import { type CommonOptions, COMMON_OPTIONS } from './write-records.js';

export interface SampleOptions extends CommonOptions {
  /** How many executions, 1 to 10,000. */
  readonly count: number;
  /** The note of the checkpoint to draw by. Default: the last one that seals the ledger. */
  readonly checkpoint?: Uint8Array | undefined;
  /**
   * What the auditor adds, chosen after the checkpoint was made: 1 to 128 characters of printable ASCII. Without one, who makes checkpoints can make several and
   * publish the one whose sample they like.
   */
  readonly nonce?: string | undefined;
  /** Only of these. Default: of all. */
  readonly selection?: RecordSelection | undefined;
}

export interface Sample {
  readonly treeSize: number;
  /** `sha-256:…` */
  readonly root: string;
  readonly nonce?: string;
  /** How many executions it was drawn of. */
  readonly of: number;
  /** In ledger order. */
  readonly executions: readonly SampledExecution[];
}

export interface SampledExecution {
  readonly seq: number;
  /** `sha-256:…` */
  readonly eventId: string;
}

export const MAX_SAMPLE = 10_000;
/** Printable ASCII. */
export const SAMPLE_NONCE = /^[ -~]{1,128}$/;
const ID_BYTES = 32;
const DOMAIN = encodeUtf8('northroot:sample:v1\0');

const OPTIONS: OptionTypes<SampleOptions> = {
  ...COMMON_OPTIONS,
  count: 'number',
  checkpoint: 'bytes',
  nonce: 'string',
  selection: 'object',
};

/**
 * Draws executions that a checkpoint covers; all of them, if there are fewer. Verifies the ledger, and holds 40 bytes an execution.
 *
 * @example
 * ```ts
 * const { executions } = await drawSample('ledger.jsonl', { count: 25, nonce: 'audit 2026, Q1' });
 * const eventIds = new Set(executions.map(({ eventId }) => eventId));
 * await exportBundle(() => openLedger('ledger.jsonl'), sink, { selection: { eventIds } });
 * ```
 * @throws RangeError for a count or nonce out of bounds; NorthrootError `CHECKPOINT_MISSING` when none seals the ledger; `NOTE_MALFORMED`,
 *   `ORIGIN_MISMATCH`, `TRUNCATED` and `FORKED` when the given checkpoint is none, or none of this ledger; and as `verifyLedger`
 */
export async function drawSample(ledger: LedgerInput, options: SampleOptions): Promise<Sample> {
  checkOptions('drawSample', options, OPTIONS);
  const { count, checkpoint: note, nonce, selection = {}, ...verify } = options;
  if (!(Number.isInteger(count) && count >= 1 && count <= MAX_SAMPLE))
    throw new RangeError(`count must be an integer from 1 to ${MAX_SAMPLE}`);
  if (nonce !== undefined && !SAMPLE_NONCE.test(nonce))
    throw new RangeError('nonce must have 1 to 128 characters of printable ASCII');
  const given = note === undefined ? undefined : parseCheckpoint(note).checkpoint;
  const seen = new Executions(selection);
  const roots = new Map<string, string>();
  const result = await runVerification(await openVerifiable('drawSample', ledger), {
    ...verify,
    checkpoints: note === undefined ? [] : [{ name: 'the checkpoint', note }],
    onRecord: (record) => {
      seen.take(record);
      const { examined, state } = record;
      if (examined?.type !== 'checkpoint' || state.seals.known.get(examined.eventId)?.matchesTree !== true)
        return undefined;
      roots.set(toDigestText(examined.eventId), examined.event().root.b64);
      return undefined;
    },
  });
  if (given !== undefined) assertIsOf(result, given);
  const tree =
    given === undefined ? sealOf(result, roots) : { size: given.size, root: hashToBase64url(given.root) };
  const root = toDigestText(tree.root);
  return { treeSize: tree.size, root, ...defined({ nonce }), ...seen.draw(tree, count, nonce) };
}

/** The ids of what was drawn, for a selection. */
export function idsOf({ executions }: Sample): ReadonlySet<string> {
  return new Set(executions.map(({ eventId }) => eventId));
}

interface Tree {
  readonly size: number;
  /** base64url */
  readonly root: string;
}

/** @throws NorthrootError `ORIGIN_MISMATCH`, `TRUNCATED`, `FORKED` */
function assertIsOf({ state, ending }: VerificationResult, checkpoint: Checkpoint): void {
  assertReaches(state, checkpoint);
  if (ending.anchors.some(({ relation }) => relation !== 'extends')) throw forked(checkpoint.size);
}

/** The tree of the last checkpoint that seals; else of the last by a known key. */
function sealOf({ state: { seals } }: VerificationResult, roots: ReadonlyMap<string, string>): Tree {
  const { treeSize: size, place } = seals.sealing ?? seals.signed ?? {};
  const root = place && roots.get(place.eventId);
  if (size !== undefined && root !== undefined) return { size, root };
  throw new NorthrootError(
    'CHECKPOINT_MISSING',
    'no checkpoint seals the ledger, so nothing can be drawn by one',
    {
      hint: 'make a checkpoint, or give one that you hold',
    },
  );
}

class Executions {
  readonly #subjects = new Subjects();
  readonly #selection: RecordSelection;
  /** Their ids, one after the other. */
  #ids = new Uint8Array(ID_BYTES * 1024);
  readonly #ordinals: number[] = [];
  /** Where the record states another number than its place. */
  readonly #seqs = new Map<number, number>();

  constructor(selection: RecordSelection) {
    this.#selection = selection;
  }

  take(record: VerifiedRecord): void {
    const subject = this.#subjects.take(record);
    const { examined, ordinal } = record;
    if (examined?.wellFormed !== true || examined.type !== 'execution' || !isFirstOfItsId(record)) return;
    if (!matchesSelection(subject, this.#selection)) return;
    const at = this.#ordinals.push(ordinal) * ID_BYTES - ID_BYTES;
    if (at === this.#ids.length) {
      const grown = new Uint8Array(at * 2);
      grown.set(this.#ids);
      this.#ids = grown;
    }
    this.#ids.set(idBytes(examined.eventId), at);
    if (examined.seq !== undefined && examined.seq !== ordinal) this.#seqs.set(ordinal, examined.seq);
  }

  /** The executions with the lowest lots. */
  draw({ size, root }: Tree, count: number, nonce = ''): Pick<Sample, 'of' | 'executions'> {
    const end = encodeUtf8(nonce);
    const idAt = DOMAIN.length + ID_BYTES;
    const text = new Uint8Array(idAt + ID_BYTES + end.length);
    text.set(DOMAIN);
    text.set(idBytes(root), DOMAIN.length);
    text.set(end, idAt + ID_BYTES);
    const lowest: { readonly at: number; readonly lot: string }[] = [];
    let covered = 0;
    for (; (this.#ordinals[covered] ?? Infinity) < size; covered += 1) {
      text.set(this.#idAt(covered), idAt);
      const lot = sha256Latin1(text);
      if (lowest.length === count && lot > (lowest.at(-1)?.lot ?? '')) continue;
      lowest.splice(placeOf(lot, lowest), 0, { at: covered, lot });
      if (lowest.length > count) lowest.pop();
    }
    const drawn = lowest.map(({ at }) => at).sort((a, b) => a - b);
    return { of: covered, executions: drawn.map((at) => this.#describe(at)) };
  }

  #idAt(at: number): Uint8Array {
    return this.#ids.subarray(at * ID_BYTES, (at + 1) * ID_BYTES);
  }

  #describe(at: number): SampledExecution {
    const ordinal = this.#ordinals[at] as number;
    return {
      seq: this.#seqs.get(ordinal) ?? ordinal,
      eventId: toDigestText(encodeBase64url(this.#idAt(at))),
    };
  }
}

function placeOf(lot: string, sorted: readonly { readonly lot: string }[]): number {
  let [from, to] = [0, sorted.length];
  while (from < to) {
    const middle = (from + to) >>> 1;
    if ((sorted[middle]?.lot ?? '') < lot) from = middle + 1;
    else to = middle;
  }
  return from;
}

function idBytes(b64: string): Uint8Array {
  const bytes = tryDecodeBase64url(b64);
  if (bytes === undefined) throw new TypeError('a digest is not base64url');
  return bytes;
}
