/**
 * Makes bundles (docs/spec/bundle.md): the selected records, what they link to, and their proof.
 *
 * The ledger is read several times: to verify it and collect links, to follow unknown links, and to read the wanted lines and hash the rest of
 * the tree. Memory holds the bundle and an index of ids.
 */

import type { ByteSink } from '../../base/bytes/byte-sink.js';
import { encodeUtf8 } from '../../base/bytes/text.js';
import { defined } from '../../base/defined.js';
import { NorthrootError } from '../../base/error.js';
import { canonicalText } from '../../base/json/canonicalize.js';
import { checkOptions, type OptionTypes } from '../../base/options.js';
import { isSha256Text, toDigestText } from '../../base/value/digest.js';
import { isTimestamp, orderTimestamps } from '../../base/value/timestamp.js';
import { VERSION } from '../../base/version.js';
import { decodeCheckpoint, parseCheckpoint, type SignedCheckpoint } from '../../format/note/checkpoint.js';
import { formatNote } from '../../format/note/signed-note.js';
import { type ExaminedLine, examineLine } from '../../format/record/examine-line.js';
import type { Signer } from '../../format/signature/signer.js';
import { appendLeaf, emptyRange, rangeRoot } from '../../format/tree/compact-range.js';
import { multiProofRanges, type PlacedLeaf } from '../../format/tree/multi-proof.js';
import { RangeHasher } from '../../format/tree/proof.js';
import { assertReaches, forked, mergeSignatures } from '../../log/read/find-checkpoint.js';
import { NamesAskedFor } from '../../log/read/subject.js';
import {
  type ExportOptions,
  type ExportPass,
  PROVEN_OPTIONS,
  writeRecords,
} from '../../log/read/write-records.js';
import { isSelected, isWhole, type RecordSelection } from '../../rules/selection.js';
import type { LedgerSource, Segment } from '../../rules/source/ledger-source.js';
import { hashLine, type OpenLedger, readLines } from '../../rules/source/read-lines.js';
import { IdIndex } from '../../rules/verify/id-index.js';
import { START_TYPE } from '../../rules/verify/starts.js';
import type { VerifyState } from '../../rules/verify/state.js';
import type { VerifiedRecord } from '../../rules/verify/verified-record.js';
import {
  type BundledRecord,
  formatBundle,
  MAX_BUNDLE_BYTES,
  MAX_STRETCHES,
  sortContents,
  type Stretch,
} from './bundle-file.js';
import { digestOf, listDigests } from './contents.js';
import { type EventLinks, idOf, linksOf } from './links.js';

export interface BundleOptions extends Omit<ExportOptions, 'checkpoints'> {
  /**
   * Ranges of which every position is included: selected records as lines, others as leaf hashes. Without a selection exactly their
   * records are selected.
   */
  readonly complete?: readonly Stretch[] | undefined;
  /** The note of the checkpoint to prove against. Default: the last one that seals the ledger. */
  readonly checkpoint?: Uint8Array | undefined;
  /** Signs the bundle. Default: it is not signed. */
  readonly signer?: Signer | undefined;
  /** The stated time of the export. Default: none. */
  readonly createdAt?: string | undefined;
  /**
   * Finds the content of a SHA-256 digest (`sha-256:…`) that a record of the bundle names, to attach it; undefined for none. Who has the
   * bundle can read it. Default: no contents.
   */
  readonly contents?: ((digest: string) => Promise<Uint8Array | undefined>) | undefined;
}

const OPTIONS: OptionTypes<BundleOptions> = {
  ...PROVEN_OPTIONS,
  complete: 'array',
  checkpoint: 'bytes',
  signer: 'object',
  createdAt: 'string',
  contents: 'function',
};

export interface BundleExport extends ExportPass {
  /** Records included because selected ones link to them. */
  readonly linked: number;
  /** Positions included as leaf hashes only. */
  readonly hashesOnly: number;
  /** Selected records after the tree, left out because nothing proves them. */
  readonly beyond: number;
  readonly treeSize: number;
  /** Whether the tree has a signed checkpoint. */
  readonly hasCheckpoint: boolean;
  /** How many contents are attached. */
  readonly contents: number;
  readonly bytes: number;
}

/**
 * Writes a bundle.
 *
 * @param open - Opens the ledger; it is read up to four times.
 * @throws TypeError, RangeError and NorthrootError as `verifyLedger`; `NOT_A_LEDGER` for bare events; `NOTE_MALFORMED`, `TRUNCATED`,
 *   `FORKED` and `ORIGIN_MISMATCH` when the given checkpoint is none, or none of this ledger; `CHECKPOINT_MISSING` when no checkpoint
 *   covers a stretch, or an event that is asked for by its id; `BUNDLE_TOO_LARGE`; what `sink` and `contents` reject with
 */
export async function exportBundle(
  open: OpenLedger,
  sink: ByteSink,
  options: BundleOptions = {},
): Promise<BundleExport> {
  checkOptions('exportBundle', options, OPTIONS);
  const { complete = [], checkpoint, signer, createdAt, contents, selection = {}, ...verify } = options;
  const asked = sortStretches(complete);
  if (createdAt !== undefined && !isTimestamp(createdAt))
    throw new RangeError('createdAt must be a timestamp');
  const given = checkpoint === undefined ? undefined : parseCheckpoint(checkpoint);
  const survey = new Survey(selection, asked);
  const names = new NamesAskedFor(selection);
  const pass = await writeRecords('exportBundle', withoutFolders(await open()), verify, (record, subject) => {
    survey.take(record);
    names.take(subject);
    return undefined;
  });
  const { state } = pass.result;
  if (state.layout === 'bare')
    throw new NorthrootError('NOT_A_LEDGER', 'bare events have no records around them to prove');
  const note = given ?? survey.findNote(state);
  const tree =
    note === undefined
      ? { size: state.records, root: rangeRoot(state.tree) }
      : { size: note.checkpoint.size, root: note.checkpoint.root };
  if (given !== undefined) assertReaches(state, given.checkpoint);
  const stretches = stretchesOf(selection, asked, tree.size);
  const beyond = survey.countBeyond(tree.size);
  const { signal } = verify;
  const places = await findPlaces(open, survey, tree.size, signal);
  const lines = await readPlaces(open, places, stretches, tree, signal);
  const records: BundledRecord[] = lines.records.map(({ seq, line }) => ({
    seq,
    line,
    isSelected: survey.isSelected(seq),
  }));
  const { report } = pass;
  const attachments = contents === undefined ? [] : await findContents(records, contents, signal);
  const bytes = formatBundle(
    {
      tool: { name: 'northroot', version: VERSION },
      ...defined({
        createdAt,
        note: note && encodeUtf8(formatNote(note)),
        policy: verify.trust && canonicalText(verify.trust),
      }),
      tree,
      records,
      leaves: lines.leaves,
      hashes: lines.hashes,
      selection,
      stretches,
      beyond,
      report: canonicalText(report),
    },
    signer,
    attachments,
  );
  if (bytes.length > MAX_BUNDLE_BYTES) throw tooLarge();
  await sink.write(bytes);
  return {
    ...pass,
    selected: records.filter((record) => record.isSelected).length,
    unmatched: names.list(),
    linked: records.filter((record) => !record.isSelected).length,
    hashesOnly: lines.leaves.length,
    beyond,
    treeSize: tree.size,
    hasCheckpoint: note !== undefined,
    contents: attachments.length,
    bytes: bytes.length,
  };
}

/** The contents that records name by their digests, and that are found. */
async function findContents(
  records: readonly BundledRecord[],
  find: (digest: string) => Promise<Uint8Array | undefined>,
  signal: AbortSignal | undefined,
): Promise<Uint8Array[]> {
  const named = new Set<string>();
  for (const { line } of records)
    for (const { digest } of listDigests(examineLine(line, 'records').json() ?? null)) named.add(digest);
  const found: Uint8Array[] = [];
  let held = 0;
  for (const digest of named) {
    signal?.throwIfAborted();
    const content = await find(digest);
    if (content === undefined) continue;
    if (digestOf(content) !== digest)
      throw new TypeError(`contents: expected the content of ${digest}, found another`);
    held += content.length;
    if (held > MAX_BUNDLE_BYTES) throw tooLarge();
    found.push(content);
  }
  return sortContents(found);
}

/** Types whose links are noted as they are read, since others often lead to them. */
const DECIDING: ReadonlySet<string | undefined> = new Set([
  'authorization',
  'adjustment',
  'approval',
  'revocation',
]);

/** Where more starts of an authorization are open, a bundle does not show why a further one does not count. */
const MAX_RIVALS = 16;

/** Collected in the verified pass: which records are selected, and their links. */
class Survey {
  readonly #selection: RecordSelection;
  readonly #stretches: readonly Stretch[];
  readonly #selected = new Set<number>();
  readonly #ids = new IdIndex();
  /** The positions of the ids, in the order of adding. */
  readonly #places: number[] = [];
  readonly #links = new Map<number, EventLinks>();
  readonly #keys: number[] = [];
  /** Places that come with another, which does not name them. */
  readonly #followers = new Map<number, number[]>();
  /** By principal and call: the approvals since the last reject, and that reject. */
  readonly #calls = new Map<string, number[]>();
  /** The last allowed action that named an approval. */
  readonly #users = new Map<string, number>();
  /** The places of starts, with those of their authorizations. */
  readonly #starts = new Map<number, number>();
  /** By the place of a start: the execution that it served, or the start that took it over. */
  readonly #enders = new Map<number, number>();
  /** By the place of a start that did not count: those that were open. */
  readonly #rivals = new Map<number, readonly number[]>();
  /** The clock (SPEC §7), and the record that set it. */
  #clock: string | undefined;
  #clockPlace = 0;
  readonly #notes = new Map<string, SignedCheckpoint>();
  #lastNote: string | undefined;

  constructor(selection: RecordSelection, stretches: readonly Stretch[]) {
    this.#selection = selection;
    this.#stretches = stretches;
  }

  take(record: VerifiedRecord): void {
    const { ordinal, examined } = record;
    if (this.#isAsked(record)) this.#selected.add(ordinal);
    if (examined === undefined) return;
    const { eventId, eventType } = examined;
    if (eventId !== undefined && this.#ids.find(eventId) === -1) {
      this.#ids.add(eventId);
      this.#places.push(ordinal);
      // A copy of an event decides nothing.
      this.#takeDecision(ordinal, examined);
      this.#takeStart(record, examined);
    }
    if (record.state.clock !== this.#clock) {
      this.#clock = record.state.clock;
      this.#clockPlace = ordinal;
    }
    if (eventType === 'key') this.#keys.push(ordinal);
    if (this.#selected.has(ordinal) || DECIDING.has(eventType)) this.noteLinks(ordinal, examined);
    this.#takeNote(record.state, examined);
  }

  #isAsked(record: VerifiedRecord): boolean {
    if (!isWhole(this.#selection) || this.#stretches.length === 0) return isSelected(record, this.#selection);
    return isWithin(this.#stretches, record.ordinal);
  }

  /** Notes of what earlier records a record decides, or what decided on it before. */
  #takeDecision(place: number, line: ExaminedLine): void {
    if (line.type === 'adjustment' || line.type === 'revocation') {
      const grant = this.#placeOf(line.event().grant_event_id.b64);
      if (grant !== undefined) addTo(this.#followers, grant, place);
    } else if (line.type === 'approval') {
      const { decision, principal_id: by, grant_event_id: grant, tool_name: tool, ...event } = line.event();
      const call = [by, grant.b64, tool, event.tool_params_digest.b64].join(' ');
      if (decision === 'reject') {
        for (const earlier of this.#calls.get(call) ?? []) addTo(this.#followers, earlier, place);
        this.#calls.delete(call);
      }
      addTo(this.#calls, call, place);
    } else if (line.type === 'authorization') {
      const outline = line.outline();
      if (outline.kind !== 'action' || outline.decision !== 'allow') return;
      const isLate = this.#clock !== undefined && orderTimestamps(this.#clock, outline.occurredAt) > 0;
      if (isLate && outline.approvalIds.length > 0) addTo(this.#followers, place, this.#clockPlace);
      for (const id of outline.approvalIds) {
        const earlier = this.#users.get(id);
        if (earlier !== undefined) addTo(this.#followers, place, earlier);
        this.#users.set(id, place);
      }
    }
  }

  /** Notes what ended a start, or kept it from counting, for an execution that names it in vain. */
  #takeStart({ ordinal: place, state, findings }: VerifiedRecord, line: ExaminedLine): void {
    if (line.type === 'execution') {
      const { authorizationId, previousId } = line.outline();
      const authorization = this.#placeOf(authorizationId);
      const start = previousId === undefined ? undefined : this.#placeOf(previousId);
      if (start === undefined || authorization === undefined) return;
      if (this.#starts.get(start) !== authorization) return;
      const ender = this.#enders.get(start);
      if (findings.some(({ code }) => code === 'GRANT_REVOKED'))
        for (const each of ender === undefined ? (this.#rivals.get(start) ?? []) : [ender])
          addTo(this.#followers, place, each);
      if (ender === undefined) this.#enders.set(start, place);
    } else if (line.type === 'other' && line.eventType === START_TYPE) {
      const [authorization, previous] = [line.json()?.['auth_event_id'], line.json()?.['prev_event_id']].map(
        (each) => idOf(each ?? null),
      );
      const known = authorization === undefined ? undefined : this.#placeOf(authorization);
      if (authorization === undefined || known === undefined) return;
      this.#starts.set(place, known);
      const open = state.links.starts.get(authorization);
      if (open?.has(line.eventId) === true) {
        const taken = previous === undefined ? undefined : this.#placeOf(previous);
        if (taken !== undefined && this.#starts.has(taken) && !this.#enders.has(taken))
          this.#enders.set(taken, place);
      } else if (open !== undefined && open.size <= MAX_RIVALS) {
        this.#rivals.set(
          place,
          [...open.keys()].flatMap((id) => this.#placeOf(id) ?? []),
        );
      }
    }
  }

  noteLinks(place: number, examined: ExaminedLine): void {
    const event = examined.json();
    this.#links.set(place, event === undefined ? { needed: [], before: [] } : linksOf(event));
  }

  /** Collects checkpoints that match the tree, with the cosignatures that attestations add. */
  #takeNote({ seals }: VerifyState, line: ExaminedLine): void {
    if (line.type === 'checkpoint' && seals.known.get(line.eventId)?.matchesTree === true) {
      const note = decodeCheckpoint(encodeUtf8(line.event().note));
      if (!note.ok) return;
      this.#lastNote = toDigestText(line.eventId);
      this.#notes.set(this.#lastNote, note.value);
    }
    if (line.type !== 'attestation') return;
    const id = toDigestText(line.event().checkpoint_event_id.b64);
    const known = this.#notes.get(id);
    const note = decodeCheckpoint(encodeUtf8(line.event().note));
    if (known !== undefined && note.ok && note.value.text === known.text)
      this.#notes.set(id, mergeSignatures(known, note.value));
  }

  /** The last checkpoint that seals; else the last by a known key; else the last that matches the tree. */
  findNote({ seals }: VerifyState): SignedCheckpoint | undefined {
    const id = seals.sealing?.place.eventId ?? seals.signed?.place.eventId ?? this.#lastNote;
    return id === undefined ? undefined : this.#notes.get(id);
  }

  isSelected(place: number): boolean {
    return this.#selected.has(place);
  }

  countBeyond(size: number): number {
    const beyond = [...this.#selected].filter((place) => place >= size).length;
    if (beyond > 0 && this.#selection.eventIds !== undefined)
      throw uncovered(`an event that is asked for comes after the checkpoint of ${size} records`);
    return beyond;
  }

  /** Genesis, key events and the selected records. */
  roots(size: number): number[] {
    return [...(size > 0 ? [0] : []), ...this.#keys, ...this.#selected].filter((place) => place < size);
  }

  /** The positions that a record links to; undefined if not known yet. */
  linkedBy(place: number): readonly number[] | undefined {
    const links = this.#links.get(place);
    if (links === undefined) return undefined;
    const ids = this.#selected.has(place) ? [...links.needed, ...links.before] : links.needed;
    return ids.flatMap((id) => this.#placeOf(id) ?? []);
  }

  /**
   * What a record is judged by without naming it: adjustments and revocations of a grant, rejects of an approval; for an action the one
   * before it that names the same approval, and the checkpoint that set the clock, where that is later; for an execution what ended the
   * start that it names.
   */
  followersOf(place: number): readonly number[] {
    return this.#followers.get(place) ?? [];
  }

  #placeOf(id: string): number | undefined {
    const index = isSha256Text(id) ? this.#ids.find(id) : -1;
    return index === -1 ? undefined : this.#places[index];
  }
}

function addTo<K>(map: Map<K, number[]>, key: K, place: number): void {
  const places = map.get(key);
  if (places === undefined) map.set(key, [place]);
  else places.push(place);
}

/** The positions of all records of the bundle: roots, and what they link to. */
async function findPlaces(
  open: OpenLedger,
  survey: Survey,
  size: number,
  signal: AbortSignal | undefined,
): Promise<ReadonlySet<number>> {
  const held = new Set<number>();
  const next = survey.roots(size);
  for (;;) {
    const unknown = new Set<number>();
    while (next.length > 0) {
      const place = next.pop() as number;
      if (place >= size) continue;
      if (!held.has(place)) for (const each of survey.followersOf(place)) next.push(each);
      held.add(place);
      const linked = survey.linkedBy(place);
      if (linked === undefined) unknown.add(place);
      else next.push(...linked.filter((each) => !held.has(each)));
    }
    if (unknown.size === 0) return held;
    for await (const { line, ordinal, takesPlace } of readLines(await open(), { signal })) {
      if (!takesPlace || !unknown.delete(ordinal)) continue;
      survey.noteLinks(ordinal, examineLine(line.bytes, 'records'));
      next.push(ordinal);
      if (unknown.size === 0) break;
    }
    if (unknown.size > 0) throw changed();
  }
}

/** Reads the lines at these positions, and hashes the rest of the tree. */
async function readPlaces(
  open: OpenLedger,
  places: ReadonlySet<number>,
  stretches: readonly Stretch[],
  { size, root }: { readonly size: number; readonly root: string },
  signal: AbortSignal | undefined,
): Promise<{
  readonly records: { readonly seq: number; readonly line: Uint8Array }[];
  readonly leaves: PlacedLeaf[];
  readonly hashes: string[];
}> {
  const wanted = new Set(places);
  for (const { from, to } of stretches) for (let place = from; place <= to; place += 1) wanted.add(place);
  const hasher = new RangeHasher(
    multiProofRanges(
      [...wanted].sort((a, b) => a - b),
      size,
    ),
  );
  const records: { readonly seq: number; readonly line: Uint8Array }[] = [];
  const leaves: PlacedLeaf[] = [];
  const tree = emptyRange();
  let held = 0;
  if (size > 0) {
    for await (const { line, ordinal, takesPlace } of readLines(await open(), { signal })) {
      if (!takesPlace) continue;
      const leafHash = hashLine(line);
      hasher.push(leafHash);
      appendLeaf(tree, leafHash);
      // Of an overlong line only the hash is available.
      if (places.has(ordinal) && line.longLeafHash === undefined) {
        held += line.length;
        if (held > MAX_BUNDLE_BYTES) throw tooLarge();
        records.push({ seq: ordinal, line: Uint8Array.from(line.bytes) });
      } else if (wanted.has(ordinal)) {
        leaves.push({ index: ordinal, leafHash });
      }
      if (tree.size === size) break;
    }
  }
  if (tree.size === size && rangeRoot(tree) === root) return { records, leaves, hashes: hasher.roots() };
  throw tree.size < size ? changed() : forked(size);
}

/** The stretches of a bundle; a whole ledger is one stretch. */
function stretchesOf(
  selection: RecordSelection,
  asked: readonly Stretch[],
  size: number,
): readonly Stretch[] {
  const last = asked.at(-1);
  if (last !== undefined && last.to >= size)
    throw uncovered(`the records up to seq ${last.to} are not covered by the checkpoint of ${size} records`);
  if (asked.length > 0) return asked;
  return isWhole(selection) && size > 0 ? [{ from: 0, to: size - 1 }] : [];
}

function sortStretches(stretches: readonly Stretch[]): readonly Stretch[] {
  if (stretches.length > MAX_STRETCHES) throw new RangeError(`expected at most ${MAX_STRETCHES} stretches`);
  const sorted = [...stretches].sort((a, b) => a.from - b.from);
  for (const [index, { from, to }] of sorted.entries()) {
    const isRight = Number.isSafeInteger(from) && Number.isSafeInteger(to) && from >= 0 && from <= to;
    if (!isRight || (index > 0 && (sorted[index - 1] as Stretch).to >= from))
      throw new RangeError('expected stretches from a seq to the same or a later one, which do not overlap');
  }
  return sorted;
}

function isWithin(stretches: readonly Stretch[], place: number): boolean {
  return stretches.some(({ from, to }) => place >= from && place <= to);
}

/** A bundle names files, but not the folders that they are in. */
function withoutFolders(source: LedgerSource): LedgerSource {
  const { findFaults, findGrowth, published } = source;
  return {
    paths: source.paths.map(baseName),
    size: source.size,
    segments: renamed(source.segments),
    ...defined({
      published: published && { ...published, name: baseName(published.name) },
      findGrowth:
        findGrowth &&
        (async () => {
          const growth = await findGrowth();
          return growth && { ...growth, file: baseName(growth.file) };
        }),
      findFaults:
        findFaults &&
        (async () => {
          const { faults, total } = await findFaults();
          return { faults: faults.map((each) => ({ ...each, file: baseName(each.file) })), total };
        }),
    }),
  };
}

async function* renamed(segments: AsyncIterable<Segment>): AsyncGenerator<Segment, void, void> {
  for await (const segment of segments) yield { ...segment, file: baseName(segment.file) };
}

function baseName(path: string): string {
  return /[^/\\]+(?=[/\\]*$)/.exec(path)?.[0] ?? path;
}

function uncovered(message: string): NorthrootError {
  return new NorthrootError('CHECKPOINT_MISSING', message, {
    hint: 'nothing proves what comes after a checkpoint: seal the ledger first',
  });
}

function changed(): NorthrootError {
  return new NorthrootError('FILE_CHANGED', 'the ledger was changed while it was read');
}

function tooLarge(): NorthrootError {
  return new NorthrootError('BUNDLE_TOO_LARGE', `the bundle would have more than ${MAX_BUNDLE_BYTES} bytes`, {
    hint: 'select fewer records, or attach no contents',
  });
}
