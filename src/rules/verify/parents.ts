/**
 * Ledgers that set amounts aside for the one that is verified (SPEC §8 rule 17, "where the parent is given"). A parent is verified first, as a
 * ledger of its own; what it says of its slices is then held against the grants that name them, the first time where such a grant stands,
 * and again at the checkpoint up to which the slice was settled.
 */

import { printable } from '../../base/bytes/printable.js';
import { sha256Base64url } from '../../base/bytes/sha256.js';
import { encodeUtf8 } from '../../base/bytes/text.js';
import { NorthrootError } from '../../base/error.js';
import { fromDigestText, toDigestText } from '../../base/value/digest.js';
import type { FindingCode } from '../../format/finding/catalog.js';
import type { Finding } from '../../format/finding/finding.js';
import type { RuleFinding } from '../../format/finding/rule-finding.js';
import type { ExaminedLine } from '../../format/record/examine-line.js';
import type { ExecutionEvent } from '../../format/schema/generated/types.js';
import {
  type Action,
  amountsOf,
  digestKey,
  type EventPlace,
  type Grant,
  grantChain,
  type SliceName,
} from '../bounds/grant.js';
import {
  judgeSettlement,
  judgeSlice,
  type Settlement,
  type Slice,
  SLICE_POINTER,
  sliceParamsDigest,
  type SliceUse,
} from '../bounds/slice.js';
import { SLICE_TOOL } from '../bounds/tool-set.js';
import type { EventVerdict } from './line-result.js';
import type { Links } from './links.js';
import { sliceKey, sliceUseOf } from './slice-use.js';

/** A slice of a parent, as that ledger's verification found it. */
interface FoundSlice extends Slice {
  /** Whether its record has no finding of class invalid or violation. */
  isSound: boolean;
  /** Whether a start of it counted. */
  isBegun: boolean;
  /** The ordinal of the last record that it rests on: its action's, or its first start's. */
  last: number;
  settlement: Settlement | undefined;
}

/**
 * Notes the slices of a ledger while it is verified. Plain actions cost it nothing: the fast path has none of a slice's records. It is not
 * saved with a state.
 */
export class SliceWatch {
  /** By the id of their actions, base64url. */
  readonly #slices = new Map<string, FoundSlice>();

  /** An allowed action, once its record has its verdict. @param ordinal - Of its record. */
  allow(action: Action, verdict: EventVerdict, ordinal: number): void {
    if (action.toolName !== SLICE_TOOL) return;
    const { eventId } = action.place;
    this.#slices.set(fromDigestText(eventId), {
      eventId,
      principalId: action.principalId,
      params: action.params,
      reservation: new Map(action.reservation),
      cappedUnits: new Set(grantChain(action.grant).flatMap(({ accounts }) => [...accounts.keys()])),
      expiresAt: action.expiresAt,
      isSound: verdict === 'ok',
      isBegun: false,
      last: ordinal,
      settlement: undefined,
    });
  }

  /** A start that counts. @param id - Of its authorization, base64url. @param ordinal - Of its record. */
  begin(id: string, ordinal: number): void {
    const slice = this.#slices.get(id);
    if (slice === undefined || slice.isBegun) return;
    slice.isBegun = true;
    slice.last = ordinal;
  }

  /** An execution that is no release. */
  settle(event: ExecutionEvent): void {
    const slice = this.#slices.get(event.auth_event_id.b64);
    if (slice === undefined || slice.settlement !== undefined) return;
    slice.settlement = {
      eventId: toDigestText(event.event_id.b64),
      used: amountsOf(event.meter_used),
      note: event.output_digest && digestKey(event.output_digest),
    };
  }

  get slices(): ReadonlyMap<string, FoundSlice> {
    return this.#slices;
  }
}

/** A ledger that sets amounts aside for others, verified: from `verifyParent`. It serves for any number of these. */
export class ParentLedger {
  readonly name: string;
  /** base64url; undefined where its first record has none. */
  readonly ledgerId: string | undefined;
  /** Whether its evidence is broken: it then shows nothing, though its slices are compared. */
  readonly isInvalid: boolean;
  /** The size of the largest tree of it that a checkpoint seals. */
  readonly sealedSize: number;
  /** Whether only some of its records are there: what the others say is not known. */
  readonly isPart: boolean;
  readonly #slices: ReadonlyMap<string, FoundSlice>;

  constructor(
    about: Pick<ParentLedger, 'name' | 'ledgerId' | 'isInvalid' | 'sealedSize'> & {
      readonly isPart?: boolean;
    },
    slices: ReadonlyMap<string, FoundSlice>,
  ) {
    this.name = about.name;
    this.ledgerId = about.ledgerId;
    this.isInvalid = about.isInvalid;
    this.sealedSize = about.sealedSize;
    this.isPart = about.isPart ?? false;
    this.#slices = slices;
  }

  /** A slice by the id of its action, base64url: allowed, begun, and without a fault. */
  find(id: string): (Slice & Pick<FoundSlice, 'last' | 'settlement'>) | undefined {
    const slice = this.#slices.get(id);
    return slice?.isSound === true && slice.isBegun ? slice : undefined;
  }

  /** The ids of settled slices, which ledger each is for, and the digest of the note up to which each is, as text. */
  *settled(): Generator<
    { readonly id: string; readonly params: string; readonly note: string | undefined },
    void,
    void
  > {
    for (const [id, { params, settlement }] of this.#slices)
      if (settlement !== undefined) yield { id, params, note: settlement.note };
  }
}

/** Parents by their id, for any number of verifications: one costs nothing for those that its ledger does not name. */
export class ParentLedgers {
  readonly #byLedger = new Map<string, ParentLedger>();
  /** Settled slices by the digest of the note up to which they are, as text. */
  readonly #settled = new Map<string, SliceName[]>();
  /** Settled slices by the parameters that say which ledger they are for. */
  readonly #settledFor = new Map<string, SliceName[]>();

  /** @throws NorthrootError `PARENT_REPEATED` for two that are the same ledger */
  constructor(parents: readonly ParentLedger[] = []) {
    for (const parent of parents) this.add(parent);
  }

  /** @throws NorthrootError `PARENT_REPEATED` for a second one that is the same ledger */
  add(parent: ParentLedger): void {
    const { ledgerId, name } = parent;
    if (ledgerId === undefined) return;
    const other = this.#byLedger.get(ledgerId);
    if (other !== undefined)
      throw new NorthrootError(
        'PARENT_REPEATED',
        `${printable(other.name)} and ${printable(name)} are the same ledger`,
        {
          hint: 'give each ledger once, in its newest copy',
        },
      );
    this.#byLedger.set(ledgerId, parent);
    for (const { id, params, note } of parent.settled()) {
      const slice = { ledgerId, eventId: id };
      if (note !== undefined) add(this.#settled, note, slice);
      add(this.#settledFor, params, slice);
    }
  }

  has(ledgerId: string): boolean {
    return this.#byLedger.has(ledgerId);
  }

  get(ledgerId: string): ParentLedger | undefined {
    return this.#byLedger.get(ledgerId);
  }

  /** The slices that are settled up to the note with this digest. */
  settledUpTo(note: string): readonly SliceName[] {
    return this.#settled.get(note) ?? [];
  }

  /** The slices that are settled, for a ledger. @param ledgerId - base64url */
  settledFor(ledgerId: string): readonly SliceName[] {
    return this.#settledFor.get(sliceParamsDigest(toDigestText(ledgerId))) ?? [];
  }
}

function add(lists: Map<string, SliceName[]>, key: string, slice: SliceName): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [slice]);
  else list.push(slice);
}

/** The parts of a state that slices are held against. */
interface SpendingLedger {
  readonly links: Links;
  readonly ledgerId: string | undefined;
}

/** The findings of a grant's line. */
interface GrantFindings {
  readonly eventRoot: string;
  addToEvent(finding: RuleFinding): void;
  make(code: FindingCode, detail: Omit<RuleFinding, 'code'>, pointer: string): Finding;
}

/** A grant that names a slice of a given parent. */
interface Spending {
  readonly grant: Grant;
  readonly key: string;
  readonly settlement: Settlement;
  /** A finding at the grant's record, without its words. */
  readonly template: Finding;
}

/** A checkpoint up to which a slice was settled, and how the slice's grant stood there. */
interface Settled {
  readonly place: EventPlace;
  readonly use: SliceUse;
}

const UNUSED: SliceUse = { isStopped: false, openActions: 0, openStarts: 0, used: new Map() };

/** The given parents of the ledger that is verified. It is not saved with a state. */
export class Parents {
  readonly #parents: ParentLedgers;
  /** The first grant of each settled slice, by its key. */
  readonly #spending = new Map<string, Spending>();
  /** All grants of each slice of a given parent, by its key. */
  readonly #grants = new Map<string, Grant[]>();
  readonly #settled = new Map<string, Settled>();
  /** The slices of given parents that a grant names, by their keys. */
  readonly #named = new Set<string>();
  #missing = 0;
  #unsealed = 0;
  readonly #invalid = new Set<string>();
  readonly #parts = new Set<string>();

  constructor(parents: ParentLedgers) {
    this.#parents = parents;
  }

  /** How many grants spend slices of ledgers that were not given. */
  get missing(): number {
    return this.#missing;
  }

  /** How many grants spend slices that no checkpoint of their ledger seals. */
  get unsealed(): number {
    return this.#unsealed;
  }

  /**
   * How many slices were settled for the ledger, by what it is told, that no grant of it names: what is settled was granted before, so that
   * this one was cut, or is an old copy.
   */
  countUngranted({ ledgerId }: Pick<SpendingLedger, 'ledgerId'>): number {
    if (ledgerId === undefined) return 0;
    return this.#parents.settledFor(ledgerId).filter((slice) => !this.#named.has(sliceKey(slice))).length;
  }

  /** The names of the parents of which only some records are there, of those that are spent from. */
  get parts(): ReadonlySet<string> {
    return this.#parts;
  }

  /** The names of the parents that are invalid, of those that are spent from. */
  get invalid(): ReadonlySet<string> {
    return this.#invalid;
  }

  /** Holds an allowed root grant against the slice that it names. @param isFirst - Whether no earlier grant names it. */
  take(state: SpendingLedger, grant: Grant, isFirst: boolean, findings: GrantFindings): void {
    const { slice: name } = grant;
    if (name === undefined) return;
    const parent = this.#parents.get(name.ledgerId);
    if (parent === undefined) {
      this.#missing += 1;
      return;
    }
    this.#named.add(sliceKey(name));
    if (parent.isInvalid) this.#invalid.add(parent.name);
    if (parent.isPart) this.#parts.add(parent.name);
    const slice = parent.find(name.eventId);
    if (slice === undefined) {
      findings.addToEvent({
        code: 'SLICE_NOT_FOUND',
        pointer: SLICE_POINTER,
        expected: `an action that ${parent.name} allowed, without a fault, and that was begun there`,
        actual: toDigestText(name.eventId),
      });
      return;
    }
    if (slice.last >= parent.sealedSize) this.#unsealed += 1;
    for (const finding of judgeSlice(grant, slice, state.ledgerId)) findings.addToEvent(finding);
    if (slice.settlement === undefined) return;
    const key = sliceKey(name);
    if (isFirst) {
      const template = findings.make('SLICE_MISMATCH', {}, `${findings.eventRoot}${SLICE_POINTER}`);
      this.#spending.set(key, { grant, key, settlement: slice.settlement, template });
    }
    const all = this.#grants.get(key);
    if (all === undefined) this.#grants.set(key, [grant]);
    else all.push(grant);
    const settled = this.#settled.get(key);
    if (settled !== undefined) settle(state, grant, settled.place);
  }

  /** A checkpoint that is not invalid, after its line: slices may be settled up to it. */
  observe(state: SpendingLedger, line: ExaminedLine, place: EventPlace): void {
    if (line.type !== 'checkpoint') return;
    const note = toDigestText(sha256Base64url(encodeUtf8(line.event().note)));
    for (const slice of this.#parents.settledUpTo(note)) {
      const key = sliceKey(slice);
      // The same note is right once.
      if (this.#settled.has(key)) continue;
      const spending = this.#spending.get(key);
      const use = spending === undefined ? UNUSED : sliceUseOf(state, spending.grant);
      this.#settled.set(key, { place, use });
      for (const grant of this.#grants.get(key) ?? []) settle(state, grant, place);
    }
  }

  /** The findings at grants whose slices were settled otherwise than this ledger says. MUST be called at the end. */
  judge(): { readonly grant: Grant; readonly findings: readonly Finding[] }[] {
    return [...this.#spending.values()].map(({ grant, key, settlement, template }) => ({
      grant,
      findings: judgeSettlement(settlement, this.#settled.get(key)?.use).map(
        ({ expected = '', actual = '' }) => ({
          ...template,
          expected,
          actual,
        }),
      ),
    }));
  }
}

/** From its place on, nothing more is done under the grant. */
function settle({ links: { grants } }: SpendingLedger, grant: Grant, place: EventPlace): void {
  grant.settled = place;
  grants.touch(grant);
}
