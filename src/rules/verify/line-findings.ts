/** Collects the findings of one line, and folds those that repeat an earlier cause. */

import { toDigestText } from '../../base/value/digest.js';
import type { Meter, MeterVector } from '../../base/value/meter.js';
import { formatQuantity } from '../../base/value/quantity.js';
import { CODE_PAGES, type FindingCode, type Severity } from '../../format/finding/catalog.js';
import type { Finding, FindingContext, Place } from '../../format/finding/finding.js';
import type { RuleFinding } from '../../format/finding/rule-finding.js';
import type { ExaminedLine, LineFacts } from '../../format/record/examine-line.js';
import type { RawLine } from '../../format/record/line-splitter.js';
import { hashToBase64url } from '../../format/tree/compact-range.js';
import { chainIds, type Grant } from '../bounds/grant.js';
import { hashLine } from '../source/read-lines.js';
import type { Counted, FoldedFinding, SignatureOutcome } from './line-result.js';
import type { VerifyState } from './state.js';

/** The causes remembered, and the characters of one; findings of other causes are listed one by one. */
const MAX_FOLD_ROOTS = 4_096;
const MAX_CAUSE_LENGTH = 256;

/** The characters of `expected` and of `actual`: a hostile line must not be repeated whole in each of its findings. */
const MAX_DETAIL_LENGTH = 1_024;

/** The amounts named of an event, and the characters of one. */
const MAX_AMOUNTS = 4;
const MAX_AMOUNT_LENGTH = 30;

const NOTHING: readonly never[] = [];

export class LineFindings {
  invalid = false;
  violation = false;
  /** Whether the event is an attempt blocked by a deny. */
  denied = false;
  /** The event names one that has not come: reported when it comes, or at the end. */
  waiting: Finding | undefined;
  /** Whether the event is for another ledger, or lacks a required ledger id: it may be a replay. */
  isUnbound = false;
  /** The keyids of valid signatures by entitled keys. */
  signers: readonly string[] = NOTHING;
  /** The outcome of each signature, in order; empty where none could be read. */
  signatures: readonly SignatureOutcome[] = NOTHING;
  readonly #state: VerifyState;
  readonly #line: RawLine;
  readonly #file: string;
  #causes: Set<string> | undefined;
  #examined: ExaminedLine | undefined;
  #lineDigest: string | undefined;
  #eventText: string | undefined;
  #isDescribed = false;
  // Most lines have no findings: these are made with the first.
  #listed: Finding[] | undefined;
  #own: Finding[] | undefined;
  #folded: FoldedFinding[] | undefined;
  #context: FindingContext | undefined;
  #grant: { readonly nearest: Grant | undefined } | undefined;

  constructor(state: VerifyState, line: RawLine, file: string) {
    this.#state = state;
    this.#line = line;
    this.#file = file;
  }

  /** Findings name this record from now on. */
  setRecord(examined: ExaminedLine): void {
    this.#eventText = undefined;
    this.#examined = examined;
  }

  /** The grant of the event, for all findings of the line. */
  setGrant(nearest: Grant | undefined): void {
    this.#grant = { nearest };
    if (this.#context !== undefined) this.#context.grantIds = chainIds(nearest);
  }

  /** The findings to list, in the order of the rules. */
  get listed(): readonly Finding[] {
    return this.#listed ?? NOTHING;
  }

  /** The findings that only add to the count of an earlier one. */
  get folded(): readonly FoldedFinding[] {
    return this.#folded ?? NOTHING;
  }

  /** Both, each cause once. */
  get own(): readonly Finding[] {
    return this.#own ?? NOTHING;
  }

  /** Shared by the findings of the line. */
  get context(): FindingContext {
    if (this.#context === undefined) {
      this.#context = this.#examined === undefined ? {} : contextOf(this.#examined);
      if (this.#grant !== undefined) this.#context.grantIds = chainIds(this.#grant.nearest);
    }
    return this.#context;
  }

  /** Lists findings of other lines. */
  list(findings: readonly Finding[]): void {
    if (findings.length > 0) (this.#listed ??= []).push(...findings);
  }

  addFolded(finding: FoldedFinding): void {
    (this.#folded ??= []).push(finding);
  }

  /** Adds a finding of a rule, whose pointers are from the event's root. */
  addToEvent(finding: RuleFinding): void {
    const { code, pointer } = finding;
    this.add(code, finding, pointer === undefined ? undefined : `${this.eventRoot}${pointer}`);
  }

  /** Warns of the first amount of a vector that is a double. */
  warnDouble(vector: MeterVector | undefined, pointer: string): void {
    this.warnDoubleAt(vector?.findIndex(({ amount }) => amount.t === 'f64') ?? -1, pointer);
  }

  /** @param index - The first amount of a vector that is a double; -1 for none. */
  warnDoubleAt(index: number, pointer: string): void {
    if (index === -1) return;
    const at = `${pointer}/${index}/amount`;
    this.addToEvent({ code: 'QUANTITY_LOSSY', pointer: at, expected: 'int, dec or rat', actual: 'f64' });
  }

  /** The pointer of the event in its line. */
  get eventRoot(): '' | '/event' {
    return this.#examined?.layout === 'bare' ? '' : '/event';
  }

  /** @param pointer - From the line's root; that of the detail unless given. */
  add(code: FindingCode, detail: Omit<RuleFinding, 'code'> = {}, pointer = detail.pointer): void {
    if (this.#state.isExplained?.(code, pointer) === true) return;
    const finding = this.make(code, detail, pointer);
    if (finding.class === 'invalid') this.invalid = true;
    if (finding.class === 'violation') this.violation = true;
    if (finding.severity === 'warning') this.#state.warnings += 1;
    const folds = detail.cause !== undefined && detail.cause.length <= MAX_CAUSE_LENGTH;
    const cause = folds ? foldCause(code, finding.severity, detail.cause) : undefined;
    if (cause === undefined || this.#causes?.has(cause) !== true) (this.#own ??= []).push(finding);
    if (cause !== undefined) (this.#causes ??= new Set()).add(cause);
    const root = cause === undefined ? undefined : foldOne(this.#state, cause);
    if (root !== undefined) {
      this.addFolded({ finding, root });
      return;
    }
    if (cause !== undefined && this.#state.foldRoots.size < MAX_FOLD_ROOTS)
      this.#state.foldRoots.set(cause, finding);
    (this.#listed ??= []).push(finding);
  }

  /** A finding at this line, not added to it. */
  make(code: FindingCode, detail: Omit<RuleFinding, 'code'>, pointer = detail.pointer): Finding {
    // Only now: of most lines nothing is found.
    if (this.#examined !== undefined && !this.#isDescribed)
      Object.assign(this.context, actOf(this.#examined));
    this.#isDescribed = this.#examined !== undefined;
    const { offset, length } = this.#line;
    const id = this.#examined?.eventId;
    const isSound = this.#examined?.wellFormed === true && this.#examined.faults.length === 0;
    return makeFinding(
      code,
      detail,
      {
        file: this.#file,
        line: this.#line.number,
        byteOffset: offset + (detail.offset ?? 0),
        byteLength: detail.offset === undefined ? length : Math.min(1, length - detail.offset),
        seq: this.#examined?.seq,
        eventId: id === undefined ? undefined : (this.#eventText ??= toDigestText(id)),
      },
      this.context,
      pointer,
      isSound ? undefined : this.#digestLine(),
    );
  }

  /** Once a line. */
  #digestLine(): string {
    return (this.#lineDigest ??= toDigestText(hashToBase64url(hashLine(this.#line))));
  }
}

const NOTHING_COUNTED: Counted = { own: NOTHING, folded: NOTHING };

/** Findings of an event that are counted already, as {@link LineFindings} would have them. */
export function describeCounted(
  state: VerifyState,
  { line, file, examined }: { line: RawLine; file: string; examined: ExaminedLine },
  grant: Grant | undefined,
  found: readonly RuleFinding[],
): Counted {
  if (found.length === 0) return NOTHING_COUNTED;
  const findings = new LineFindings(state, line, file);
  findings.setRecord(examined);
  findings.setGrant(grant);
  const own = found.map((each) => findings.make(each.code, each, `${findings.eventRoot}${each.pointer}`));
  const folded = own.map((finding, index) => {
    const cause = foldCause(finding.code, finding.severity, (found[index] as RuleFinding).cause as string);
    return { finding, root: state.foldRoots.get(cause) as Finding };
  });
  return { own, folded };
}

/** The key of a fold: findings of the same code, severity and cause. */
export function foldCause(code: FindingCode, severity: Severity, cause: string): string {
  return `${code} ${severity} ${cause}`;
}

/** Counts one more under the finding of this cause. @returns That finding; undefined where there is none. */
export function foldOne({ foldRoots }: Pick<VerifyState, 'foldRoots'>, cause: string): Finding | undefined {
  const root = foldRoots.get(cause);
  if (root === undefined) return undefined;
  root.folded = (root.folded ?? 0) + 1;
  foldRoots.set(cause, root);
  return root;
}

/** The context of an event's findings, as the event claims it. */
export function contextOf({ principalId, occurredAt, toolName }: LineFacts): FindingContext {
  return {
    ...(principalId === undefined ? {} : { principalId }),
    ...(occurredAt === undefined ? {} : { occurredAt }),
    ...(toolName === undefined ? {} : { toolName }),
  };
}

/** The amounts that an event used, reserves or caps. */
export function actOf(examined: ExaminedLine): FindingContext {
  if (!examined.wellFormed) return {};
  if (examined.type === 'execution') {
    return { eventType: 'execution', ...amountsOf(examined.event().meter_used) };
  }
  if (examined.type !== 'authorization') return {};
  const { authorization } = examined.event();
  const meters =
    authorization.kind === 'grant'
      ? authorization.bounds?.meter_caps
      : authorization.action?.meter_reservation;
  return { eventType: 'authorization', ...amountsOf(meters) };
}

function amountsOf(meters: readonly Meter[] = []): Pick<FindingContext, 'amounts'> {
  if (meters.length === 0) return {};
  const texts = meters.slice(0, MAX_AMOUNTS).map(({ unit, amount }) => {
    const text = formatQuantity(amount);
    return `${text.length > MAX_AMOUNT_LENGTH ? `${text.slice(0, MAX_AMOUNT_LENGTH - 1)}…` : text} ${unit}`;
  });
  const rest = meters.length - texts.length;
  return { amounts: `${texts.join(', ')}${rest > 0 ? ` and ${rest} more` : ''}` };
}

/** The place of a finding: a line and, if any, its record. */
export interface FindingPlace extends Omit<Place, 'pointer'> {
  readonly seq?: number | undefined;
  readonly eventId?: string | undefined;
}

/** A finding at a place. Its words are made when it is read: of very many, most are not. */
export function makeFinding(
  code: FindingCode,
  detail: Omit<RuleFinding, 'code'>,
  { seq, eventId, file, line, byteOffset, byteLength }: FindingPlace,
  context: FindingContext = {},
  pointer = detail.pointer,
  lineDigest?: string,
): Finding {
  const page = CODE_PAGES[code];
  const severity = detail.severity ?? page.severity;
  // Member by member: copying objects would dominate where every record breaks several limits.
  const at: { -readonly [K in keyof Place]: Place[K] } = { file, line, byteOffset, byteLength };
  if (pointer !== undefined) at.pointer = pointer;
  const kind = severity === 'error' ? page.class : 'none';
  const id = eventId === '' ? undefined : eventId;
  if (detail.isWordedLate === true) {
    const late: Finding = {
      code,
      severity,
      class: kind,
      at,
      seq,
      eventId: id,
      context,
      get expected() {
        return cutDetail(detail.expected ?? '');
      },
      get actual() {
        return cutDetail(detail.actual ?? '');
      },
      related: detail.related ?? [],
    };
    return lineDigest === undefined ? late : { ...late, lineDigest };
  }
  const finding: { -readonly [K in keyof Finding]: Finding[K] } = {
    code,
    severity,
    class: kind,
    at,
    seq,
    eventId: id,
    context,
  };
  if (detail.expected !== undefined) finding.expected = cutDetail(detail.expected);
  if (detail.actual !== undefined) finding.actual = cutDetail(detail.actual);
  if (detail.related !== undefined) finding.related = detail.related;
  if (lineDigest !== undefined) finding.lineDigest = lineDigest;
  return finding;
}

/** The beginning of what a finding tells of, not cut within a surrogate pair: at most 1,024 characters. */
export function cutDetail(text: string): string {
  if (text.length <= MAX_DETAIL_LENGTH) return text;
  return `${text.slice(0, MAX_DETAIL_LENGTH - 1).replace(/[\ud800-\udbff]$/, '')}…`;
}
