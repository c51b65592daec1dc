/**
 * Verifies many ledgers together: each by itself, then the slices that it spends against the ledgers that set them aside (SPEC §8 rule 17),
 * and what it is against its anchors in others. One process, a few facts kept of each ledger.
 *
 * A ledger that sets amounts aside is verified before those that spend them: the ledgers are taken by the time of their first record. Where
 * that is wrong, who spends is verified again.
 */

import { printable, withoutPasswords } from '../../base/bytes/printable.js';
import { NorthrootError } from '../../base/error.js';
import { checkOptions, describeValue, type OptionTypes } from '../../base/options.js';
import { fromDigestText, toDigestText } from '../../base/value/digest.js';
import { orderTimestamps } from '../../base/value/timestamp.js';
import { VERSION } from '../../base/version.js';
import type {
  FleetAnchor,
  FleetLedger,
  FleetReport,
  FleetSlice,
  NotChecked,
  ReportJson,
  TrustPolicy,
} from '../../format/schema/generated/types.js';
import { hashToBase64url, rangeRoot } from '../../format/tree/compact-range.js';
import { EXIT_STATUS } from '../../rules/report/exit-status.js';
import { listNotChecked } from '../../rules/report/not-checked.js';
import { toFindingJson } from '../../rules/report/report.js';
import type { AnchorOutcome } from '../../rules/verify/anchors.js';
import { ParentLedger, ParentLedgers, type Parents } from '../../rules/verify/parents.js';
import { type VerificationResult, verifyParent } from '../../rules/verify/run-verification.js';
import { placeName } from '../fs/place.js';
import { openLedger } from '../tile/tile-tree.js';
import { ANCHOR_TYPE } from './anchor-event.js';
import { anchorsToCheckpoints, nameOfAnchor, readLedgerAnchors, type RecordedAnchor } from './anchor.js';
import {
  type FleetPart,
  joinSlices,
  listSetAside,
  listSpent,
  type SetAside,
  type SpentSlice,
} from './fleet-slices.js';
import { assertNoPipe, type FleetHead, MAX_FLEET, readHead } from './list-fleet.js';

export interface VerifyFleetOptions {
  /** Every ledger is verified by it. Default: each by its own keys. */
  readonly trust?: TrustPolicy | undefined;
  /** The time of verification. Default: the present. */
  readonly now?: string | undefined;
  /** How many findings the report lists of each ledger, the worst ones. Default 10. */
  readonly maxFindings?: number | undefined;
  /** Called after each ledger, with how many were verified. */
  readonly onProgress?: ((done: number, of: number) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

const OPTIONS: OptionTypes<VerifyFleetOptions> = {
  trust: 'object',
  now: 'string',
  maxFindings: 'number',
  onProgress: 'function',
  signal: 'signal',
};

const DEFAULT_FINDINGS = 10;
/** Up to this size a ledger is examined in one thread: further ones take longer to start. */
const ONE_THREAD_BYTES = 32 * 1024 * 1024;

interface Facts {
  readonly ledger: FleetLedger;
  readonly bytes: number;
  readonly notChecked: readonly NotChecked[];
  readonly setAside: SetAside;
  /** What it spends. */
  readonly spent: readonly SpentSlice[];
  readonly anchors: readonly AnchorOutcome[];
  readonly parents: Pick<Parents, 'missing' | 'unsealed' | 'invalid'>;
}

interface Member extends Omit<FleetHead, 'ledgerId'> {
  /** As its first record claims, `sha-256:…`; of a tile tree known once it is verified. */
  ledgerId: string | undefined;
  facts: Facts | undefined;
  /** What other ledgers anchored of it, and they. */
  readonly anchored: Anchored[];
  /** Whether a ledger that it needs was verified after it. */
  isStale: boolean;
}

/** What a ledger anchored of another, the furthest last. */
interface Anchored {
  readonly anchors: readonly RecordedAnchor[];
  readonly by: Member;
}

/**
 * Verifies ledgers together. Problems of ledgers are in the report, never thrown; a ledger that cannot be read is undecided.
 * @param paths - Files, folders of segments, tile trees; each ledger once
 * @throws RangeError for no path, or more than 100,000; TypeError for a bad option; the signal's reason
 * @example
 * const report = await verifyFleet(await listFleet('ledgers'));
 */
export async function verifyFleet(
  paths: readonly string[],
  options: VerifyFleetOptions = {},
): Promise<FleetReport> {
  checkOptions('verifyFleet', options, OPTIONS);
  if (!Array.isArray(paths) || !paths.every((path) => typeof path === 'string'))
    throw new TypeError(`verifyFleet: expected a list of paths, found ${describeValue(paths)}`);
  if (paths.length === 0 || paths.length > MAX_FLEET)
    throw new RangeError(`verifyFleet: expected 1 to ${MAX_FLEET} ledgers, found ${paths.length}`);
  const fleet = new Fleet(options);
  await fleet.add(paths);
  await fleet.verify();
  return fleet.report();
}

class Fleet {
  readonly #options: VerifyFleetOptions;
  /** In the order given. */
  readonly #members: Member[] = [];
  /** By its id, `sha-256:…`: the first of those that have it. */
  readonly #byId = new Map<string, Member>();
  /** Ledgers that set amounts aside. */
  readonly #parents = new ParentLedgers();
  /** Those verified so far that spend slices of a ledger, by its id, `sha-256:…`. */
  readonly #spenders = new Map<string, Member[]>();
  /** Anchors of ledgers that are not among those given, by the ledger's id. */
  readonly #missingAnchors = new Map<string, Anchored[]>();

  constructor(options: VerifyFleetOptions) {
    this.#options = options;
  }

  async add(paths: readonly string[]): Promise<void> {
    for (const path of paths) {
      this.#options.signal?.throwIfAborted();
      const member = await memberOf(path);
      this.#members.push(member);
      this.#name(member);
    }
  }

  /** Notes its id; of two that have it, the second counts for nothing. */
  #name(member: Member): void {
    const { ledgerId } = member;
    if (ledgerId === undefined) return;
    const other = this.#byId.get(ledgerId);
    if (other === undefined) this.#byId.set(ledgerId, member);
    else member.facts = repeated(member, other);
    for (const seen of this.#missingAnchors.get(ledgerId) ?? []) {
      member.anchored.push(seen);
      member.isStale = true;
    }
    this.#missingAnchors.delete(ledgerId);
  }

  async verify(): Promise<void> {
    const { onProgress } = this.#options;
    const inOrder = this.#members.filter(({ facts }) => facts === undefined).sort(byTime);
    let done = this.#members.length - inOrder.length;
    for (const member of inOrder) {
      await this.#verify(member, true);
      onProgress?.((done += 1), this.#members.length);
    }
    // What a ledger sets aside and anchors does not depend on others: once is enough.
    const bare = inOrder.map((member) => this.#bareParents(member));
    for (const parent of bare.flat())
      if (parent.ledgerId !== undefined && !this.#parents.has(parent.ledgerId)) this.#parents.add(parent);
    for (const [index, member] of inOrder.entries())
      if (member.isStale || bare[index]?.length !== 0) await this.#verify(member, false);
  }

  /** Ledgers that a verified member spends slices of, and that set none aside: perhaps they were put back to before they did. */
  #bareParents({ facts }: Member): ParentLedger[] {
    const ids = new Set(facts?.spent.map(({ ledgerId }) => ledgerId));
    return [...ids].flatMap((id) => {
      const { path, facts: own } = this.#byId.get(id) ?? {};
      const ledgerId = fromDigestText(id);
      if (path === undefined || own === undefined || own.ledger.error !== undefined) return [];
      if (this.#parents.has(ledgerId)) return [];
      const isInvalid = own.ledger.verdict === 'invalid';
      return [new ParentLedger({ name: path, ledgerId, isInvalid, sealedSize: 0 }, new Map())];
    });
  }

  async #verify(member: Member, isFirst: boolean): Promise<void> {
    const { path } = member;
    const { trust, now, maxFindings = DEFAULT_FINDINGS, signal } = this.#options;
    signal?.throwIfAborted();
    member.isStale = false;
    try {
      await assertNoPipe(path);
      const source = await openLedger(path);
      const held = member.anchored.map(({ anchors, by }) => anchorsToCheckpoints(anchors, by.path));
      const options = {
        trust,
        now,
        maxFindings,
        signal,
        checkpoints: held.flatMap(({ checkpoints }) => checkpoints),
        earlierCheckpoints: held.flatMap(({ earlierCheckpoints }) => earlierCheckpoints),
        ...((source.size ?? Infinity) > ONE_THREAD_BYTES ? {} : { threads: 1 }),
      };
      const { result, parent } = await verifyParent(source, options, this.#parents);
      member.facts = factsOf(path, result);
      if (member.ledgerId === undefined && member.facts.ledger.ledger_id !== null) {
        member.ledgerId = member.facts.ledger.ledger_id;
        this.#name(member);
      }
      if (isFirst) await this.#learn(member, result, parent);
    } catch (error) {
      signal?.throwIfAborted();
      if (!(error instanceof NorthrootError)) throw error;
      member.facts = failed(member, error);
    }
  }

  /** What others need to know of it. */
  async #learn(
    member: Member,
    { state, hasInvalid }: VerificationResult,
    parent: ParentLedger,
  ): Promise<void> {
    const { ledgerId } = parent;
    const { setAside, spent } = member.facts as Facts;
    for (const id of new Set(spent.map((each) => each.ledgerId))) {
      const spenders = this.#spenders.get(id);
      if (spenders === undefined) this.#spenders.set(id, [member]);
      else spenders.push(member);
    }
    const isOwn = ledgerId !== undefined && this.#byId.get(toDigestText(ledgerId)) === member;
    if (isOwn && setAside.slices.length > 0) {
      this.#parents.add(parent);
      for (const other of this.#spenders.get(toDigestText(ledgerId)) ?? []) other.isStale = true;
    }
    if (hasInvalid || !state.countsByType.has(ANCHOR_TYPE)) return;
    const byChild = await readLedgerAnchors(await openLedger(member.path), this.#options.signal);
    for (const [childId, anchors] of byChild) {
      const child = this.#byId.get(childId);
      const seen = { anchors, by: member };
      if (child === undefined) {
        const others = this.#missingAnchors.get(childId);
        if (others === undefined) this.#missingAnchors.set(childId, [seen]);
        else others.push(seen);
      } else {
        child.anchored.push(seen);
        if (child.facts !== undefined) child.isStale = true;
      }
    }
  }

  report(): FleetReport {
    const all = this.#members.map((member) => member.facts as Facts);
    const parts = all.flatMap(({ ledger, setAside, spent }): FleetPart[] =>
      ledger.ledger_id === null || ledger.error !== undefined
        ? []
        : [{ path: ledger.path, ledgerId: ledger.ledger_id, setAside, spent }],
    );
    const { caps, slices } = joinSlices(parts);
    const cut = ungranted(slices);
    const ledgers = all.map(({ ledger }) => withoutGrant(ledger, cut.get(ledger.path)));
    const byVerdict = { ok: 0, violation: 0, invalid: 0, undecided: 0 };
    for (const { verdict } of ledgers) byVerdict[verdict] += 1;
    const verdict = worstOf(byVerdict);
    const notChecked = new Map<string, NotChecked>();
    for (const each of all.flatMap((facts) => facts.notChecked))
      // What one ledger cannot know of another is known here.
      if (each.code !== 'SLICES' && !notChecked.has(each.code)) notChecked.set(each.code, each);
    for (const gap of sliceGaps(all, slices)) notChecked.set(gap.code, gap);
    return {
      fleet_report_version: '1',
      tool: { name: 'northroot', version: VERSION },
      verdict,
      exit_status: EXIT_STATUS[verdict],
      counts: {
        ledgers: ledgers.length,
        records: ledgers.reduce((sum, { records }) => sum + records, 0),
        bytes: all.reduce((sum, { bytes }) => sum + bytes, 0),
        by_verdict: byVerdict,
      },
      ledgers,
      caps,
      slices,
      anchors: this.#anchors(),
      not_checked: [...notChecked.values()],
    };
  }

  #anchors(): FleetAnchor[] {
    const found = this.#members.flatMap(({ anchored, facts, path }) => {
      const relations = new Map(facts?.anchors.map(({ name, relation }) => [name, relation]));
      return anchored.flatMap(({ anchors, by }) =>
        anchors.flatMap((anchor): FleetAnchor[] => {
          const relation = relations.get(nameOfAnchor(anchor, by.path));
          // Of the earlier ones, those that the ledger does not extend.
          if (relation === undefined && anchor !== anchors.at(-1)) return [];
          return [anchorJson(anchor, by, path, relation ?? 'missing')];
        }),
      );
    });
    const missing = [...this.#missingAnchors.values()].flat();
    return [
      ...found,
      ...missing.map(({ anchors, by }) => anchorJson(anchors.at(-1) as RecordedAnchor, by, null, 'missing')),
    ];
  }
}

function byTime(a: Member, b: Member): number {
  if (a.occurredAt === undefined || b.occurredAt === undefined)
    return a.occurredAt === b.occurredAt ? 0 : a.occurredAt === undefined ? 1 : -1;
  return orderTimestamps(a.occurredAt, b.occurredAt);
}

function anchorJson(
  { eventId, seq, childId, treeSize }: RecordedAnchor,
  { path, ledgerId = '' }: Member,
  childPath: string | null,
  relation: FleetAnchor['relation'],
): FleetAnchor {
  return {
    path,
    ledger_id: ledgerId,
    event_id: eventId,
    seq,
    child_ledger_id: childId,
    child_path: childPath,
    tree_size: treeSize,
    relation,
  };
}

/** The worst verdict of some ledger. */
function worstOf(byVerdict: Readonly<Record<ReportJson['verdict'], number>>): ReportJson['verdict'] {
  const order = ['invalid', 'violation', 'undecided'] as const;
  return order.find((verdict) => byVerdict[verdict] > 0) ?? 'ok';
}

function factsOf(path: string, result: VerificationResult): Facts {
  const { state, ending, hasInvalid, hasViolation, findings, total } = result;
  const verdict = hasInvalid
    ? 'invalid'
    : hasViolation
      ? 'violation'
      : state.records === 0
        ? 'undecided'
        : 'ok';
  const notChecked = listNotChecked(result);
  return {
    ledger: {
      path,
      ledger_id:
        state.genesis === undefined || state.ledgerId === undefined ? null : toDigestText(state.ledgerId),
      origin: state.origin ?? null,
      records: state.records,
      root: toDigestText(hashToBase64url(rangeRoot(state.tree))),
      verdict,
      not_checked: notChecked.map(({ code }) => code),
      findings_total: total,
      findings: findings.map(toFindingJson),
    },
    bytes: state.bytes,
    notChecked,
    setAside: listSetAside(state),
    spent: listSpent(state),
    anchors: ending.anchors,
    parents: {
      missing: state.parents?.missing ?? 0,
      unsealed: state.parents?.unsealed ?? 0,
      invalid: state.parents?.invalid ?? new Set(),
    },
  };
}

/** What is not known of slices, since a ledger is not among those given, or does not show it. */
function sliceGaps(all: readonly Facts[], slices: readonly FleetSlice[]): NotChecked[] {
  const missing = all.reduce((sum, { parents }) => sum + parents.missing, 0);
  const unsealed = all.reduce((sum, { parents }) => sum + parents.unsealed, 0);
  const invalid = new Set(all.flatMap(({ parents }) => [...parents.invalid]));
  const childless = slices.filter(({ child, state }) => child === null && state !== 'released').length;
  const gaps = [
    ...(missing === 0 ? [] : [`grants that spend slices of ledgers that were not given: ${missing}`]),
    ...(childless === 0
      ? []
      : [
          `slices whose ledgers were not given, so that what they used is what their parents say, or all: ${childless}`,
        ]),
    ...[...invalid].map((name) => `${printable(name)}, from which slices are spent, is itself invalid`),
    ...(unsealed === 0
      ? []
      : [
          `slices that no checkpoint of their ledger seals, so that they could have been added to a copy: ${unsealed}`,
        ]),
  ];
  return gaps.length === 0 ? [] : [{ code: 'SLICES', message: gaps.join('; ') }];
}

/**
 * Of each ledger, by its path, a slice that was settled for it and that it has no grant of. What is settled was granted before: this is a
 * copy from before that, or one that was cut.
 */
function ungranted(slices: readonly FleetSlice[]): Map<string, FleetSlice> {
  return new Map(
    slices.flatMap((slice) =>
      slice.state === 'settled' && slice.child !== null && slice.child.grant_event_id === null
        ? [[slice.child.path, slice]]
        : [],
    ),
  );
}

/** A ledger of which it is not known what it spent of a slice that was settled. */
function withoutGrant(ledger: FleetLedger, slice: FleetSlice | undefined): FleetLedger {
  if (slice === undefined || ledger.verdict !== 'ok') return ledger;
  const message = `it has no grant of the slice ${slice.event_id}, which ${slice.path} settled for it: it was cut, or is an old copy`;
  return { ...ledger, verdict: 'undecided', error: { code: 'SLICE_MISMATCH', message } };
}

/** The code of a ledger that was given twice. */
const REPEATED = 'LEDGER_REPEATED';

/** A URL is named as it may be shown. */
async function memberOf(place: string): Promise<Member> {
  const of = async (path: string): Promise<Member> => {
    return { ...(await readHead(path)), facts: undefined, anchored: [], isStale: false };
  };
  try {
    return await of(placeName(place));
  } catch (error) {
    if (!(error instanceof NorthrootError)) throw error;
    const member = await of(withoutPasswords(place));
    return { ...member, facts: failed(member, error) };
  }
}

function repeated(member: Member, other: Member): Facts {
  return failed(
    member,
    new NorthrootError(
      REPEATED,
      `it has the id of ${other.path}: of two copies both may have been spent from`,
    ),
  );
}

function failed({ path, ledgerId }: Member, { code, message }: NorthrootError): Facts {
  return {
    ledger: {
      path,
      ledger_id: ledgerId ?? null,
      origin: null,
      records: 0,
      root: null,
      verdict: 'undecided',
      error: { code, message },
      not_checked: [],
      findings_total: 0,
      findings: [],
    },
    bytes: 0,
    notChecked: [],
    setAside: { slices: [], grants: new Map() },
    spent: [],
    anchors: [],
    parents: { missing: 0, unsealed: 0, invalid: new Set() },
  };
}
