/**
 * The files of CGF as statements: what one item of a file says about one proposal, whichever vocabulary or recording it stands in.
 * Rule CGF-11 (versions, vocabularies, required members) is checked against each item here, where its shape is at hand.
 */

import type { FindingDetails } from '../shared/findings.js';
import { type Code, finding } from './rules.js';
import {
  decodeSourceJson,
  SourceNumber,
  SourceObject,
  type SourceValue,
} from '../../base/json/source-json.js';
import type { HostFile, HostFinding, HostPlace, SourceItem } from '../shared/host.js';
import { MAX_ITEM_BYTES, type ReadingBuilder, splitLines } from '../shared/reading.js';
import {
  amountOf,
  listAt,
  numberAt,
  objectAt,
  textAt,
  timeOf,
  timeOfText,
  valueAt,
} from '../shared/values.js';
import { readFailModes } from './policy.js';
import {
  ACTION_TYPES,
  AUDIT_LEVELS,
  DECISIONS,
  hasType,
  isCompatible,
  isDecision,
  FAIL_MODES,
  type Kind,
  kindOf,
  missingFields,
  PARAM_VALUES,
  RISK_TIERS,
  type Vocabulary,
  vocabularyOf,
} from './vocabulary.js';

/** The most that is read about one proposal, over all files: each is checked against each. */
const MAX_STATEMENTS = 512;

/** Where a statement is from, in the order in which statements about the same thing take precedence. */
export const SOURCES = ['http', 'outcomes', 'pack', 'adapter', 'server'] as const;
/** One of them: a recorded request, a file of outcomes, a replay pack's own members, an adapter's log, the server's log. */
export type Source = (typeof SOURCES)[number];

/** What an item says about one proposal, or about an adapter. */
export interface Statement {
  readonly index: number;
  readonly item: Entry;
  readonly source: Source;
  /** The log in which order means something: a file and who wrote in it. */
  readonly stream: string;
  /** Of events; absent for requests and members of replay packs. */
  readonly vocabulary?: Vocabulary;
  readonly kind: Kind;
  readonly type: string;
  readonly adapterId: string | undefined;
  readonly proposalId?: string | undefined;
  readonly decisionId?: string | undefined;
  /** A Timestamp; undefined where neither the item nor one before it states a time. */
  readonly time: string | undefined;
  /** Whether the item itself states it. */
  readonly isTimeStated: boolean;
  readonly body: SourceObject;
  readonly at: HostPlace;
  readonly signals?: SourceObject | undefined;
  /** Whether a decision about the same proposal is in the same item or pack. */
  readonly isInline?: boolean;
}

/** One item of a file. What became of it is decided when all statements are known. */
export interface Entry {
  readonly at: HostPlace;
  readonly bytes: Uint8Array;
  readonly type: string;
  readonly statements: Statement[];
  dropped?: string;
}

/** Everything that files say. */
export type Statements = Pick<Reader, 'entries' | 'statements' | 'tables' | 'findings'>;

/** Reads files. What is not JSON is dropped by `builder`, with its finding. */
export function readStatements(files: readonly HostFile[], builder: ReadingBuilder): Statements {
  const reader = new Reader(builder);
  for (const file of files) reader.read(file);
  return reader;
}

/** Whether a file looks like one of this host's: by the first line that says something, or by the whole. */
export function looksLikeCgf(file: HostFile): boolean {
  let lines = 0;
  for (const { bytes } of splitLines(file)) {
    if (++lines > 20) return false;
    const decoded = bytes.length > MAX_ITEM_BYTES ? undefined : decodeSourceJson(bytes);
    if (decoded?.ok === true && shapeOf(decoded.value) !== undefined) return true;
    if (decoded?.ok !== true && lines === 1) {
      const whole = documentOf(file);
      const list: readonly SourceValue[] = Array.isArray(whole) ? whole.slice(0, 20) : [whole ?? null];
      if (whole !== undefined) return list.some((each) => shapeOf(each) !== undefined);
    }
  }
  return false;
}

function documentOf({ bytes }: HostFile): SourceValue | undefined {
  if (bytes.length > MAX_ITEM_BYTES) return undefined;
  const decoded = decodeSourceJson(bytes);
  return decoded.ok ? decoded.value : undefined;
}

type Shape = 'event' | 'http' | 'pack' | 'outcome';

const PATHS =
  /\/v1\/(?:adapters\/)?(register|evaluate|outcomes\/report|capacity\/signals|health|proposals\/[^/?#]{1,512}\/replay)\/?(?:[?#][^]*)?$/;

function shapeOf(value: SourceValue): Shape | undefined {
  if (!(value instanceof SourceObject)) return undefined;
  const type = textAt(value, 'event_type');
  if (type !== undefined) {
    const isEvent = value.has('timestamp') && (value.has('payload') || value.has('data'));
    return isEvent || kindOf(type) !== 'other' ? 'event' : undefined;
  }
  const path = textAt(value, 'path') ?? textAt(value, 'url');
  if (path !== undefined && (value.has('request') || value.has('response'))) return 'http';
  if (packOf(value) !== undefined) return 'pack';
  return typeof value.get('proposal_id') === 'string' && typeof value.get('executed') === 'boolean'
    ? 'outcome'
    : undefined;
}

/** A replay pack, or one in the envelope that the server answers with. */
function packOf(value: SourceObject): SourceObject | undefined {
  const pack = objectAt(value, 'replay') ?? value;
  const isPack = objectAt(pack, 'proposal') !== undefined && (pack.has('events') || pack.has('decision'));
  return isPack || (listAt(pack, 'events') !== undefined && pack.has('replay_id')) ? pack : undefined;
}

class Reader {
  readonly entries: Entry[] = [];
  readonly statements: Statement[] = [];
  /** Fail modes by `action_type:risk_tier`, by the adapter that was given them. */
  readonly tables = new Map<string, { modes: ReadonlyMap<string, string>; rows: SourceValue }>();
  readonly findings: HostFinding[] = [];
  readonly #builder: ReadingBuilder;
  /** Who wrote of a proposal last, and which adapter registered last, in the file that is being read. */
  #writers = new Map<string, 'adapter' | 'server'>();
  #adapterId: string | undefined;
  #vocabularies = new Set<Vocabulary>();
  #serverLines = 0;
  readonly #counts = new Map<string, number>();

  constructor(builder: ReadingBuilder) {
    this.#builder = builder;
  }

  read(file: HostFile): void {
    this.#writers = new Map();
    this.#adapterId = undefined;
    this.#vocabularies = new Set();
    this.#serverLines = 0;
    const [first] = splitLines(file);
    if (first === undefined) return;
    const isLines = first.bytes.length <= MAX_ITEM_BYTES && decodeSourceJson(first.bytes).ok;
    const whole = isLines ? undefined : documentOf(file);
    if (whole === undefined) {
      for (const item of this.#builder.lines(file)) this.#readItem(item);
    } else {
      const at = { file: file.name };
      const list = Array.isArray(whole) ? (whole as readonly SourceValue[]) : undefined;
      if (list === undefined) this.#readItem({ at, bytes: file.bytes, value: whole });
      else
        for (const [i, value] of list.entries())
          this.#readItem({ at: { ...at, pointer: `/${i}` }, bytes: file.bytes, value });
    }
  }

  #readItem(item: SourceItem): void {
    const { value } = item;
    const shape = shapeOf(value);
    if (shape === undefined || !(value instanceof SourceObject)) {
      const entry = this.#entry(item, 'unknown');
      entry.dropped = 'FORMAT_UNKNOWN';
      this.#find('FORMAT_UNKNOWN', item.at, { actual: describe(value) });
      return;
    }
    if (shape === 'event')
      this.#readEvent(this.#entry(item, textAt(value, 'event_type') ?? 'unknown'), value);
    else if (shape === 'http') this.#readHttp(item, value);
    else if (shape === 'pack') this.#readPack(item, packOf(value)!);
    else this.#readOutcome(this.#entry(item, 'outcome_report'), value, 'outcomes', item.at);
  }

  #entry({ at, bytes }: Pick<SourceItem, 'at' | 'bytes'>, type: string): Entry {
    const entry: Entry = { at, bytes, type: type.slice(0, 128), statements: [] };
    this.entries.push(entry);
    return entry;
  }

  #state(statement: Omit<Statement, 'index'>): void {
    const { proposalId = '', item, at } = statement;
    const count = (this.#counts.get(proposalId) ?? 0) + 1;
    this.#counts.set(proposalId, count);
    if (proposalId !== '' && count > MAX_STATEMENTS) {
      if (item.statements.length === 0) item.dropped = 'TOO_MANY_STATEMENTS';
      if (count === MAX_STATEMENTS + 1)
        this.findings.push(
          finding('TOO_MANY_STATEMENTS', at, {
            about: proposalId,
            expected: `at most ${MAX_STATEMENTS} about one proposal`,
          }),
        );
      return;
    }
    const full = { ...statement, index: this.statements.length };
    this.statements.push(full);
    statement.item.statements.push(full);
  }

  // Events

  #readEvent(item: Entry, event: SourceObject, at: HostPlace = item.at, packStream?: string): void {
    const type = textAt(event, 'event_type') ?? '';
    const vocabulary = vocabularyOf(event);
    const payload = objectAt(event, 'payload') ?? objectAt(event, 'data') ?? new SourceObject(new Map());
    const proposalId =
      textAt(event, 'proposal_id') ?? textAt(payload, 'proposal_id') ?? textAt(event, 'correlation_id');
    const decisionId = decisionIdIn(event) ?? decisionIdIn(payload);
    const kind = kindIn(type, payload);
    const writer = this.#writerOf(kind, vocabulary, payload, proposalId);
    const adapterId = textAt(event, 'adapter_id') ?? textAt(payload, 'adapter_id') ?? this.#adapterId;
    if (kind === 'registered') this.#adapterId = adapterId;
    this.#checkEvent({ event, type, vocabulary, payload, writer, at, proposalId });
    const stated = timeIn(event, 'timestamp');
    const isReadable = kind !== 'decision' || isDecision(decisionIn(payload));
    this.#state({
      item,
      source: writer,
      stream: packStream ?? `${item.at.file}\0${writer}`,
      vocabulary,
      kind: isReadable ? kind : 'other',
      type,
      adapterId,
      proposalId,
      decisionId,
      time: this.#builder.timeOf(stated, at, proposalId),
      isTimeStated: stated !== undefined,
      body: payload,
      at,
    });
  }

  /**
   * The server writes a form of its own: its payloads do not repeat the ids of the envelope, and its params hash is a decimal number. What it
   * writes about actions does not show who wrote it: that is who wrote of the proposal before.
   */
  #writerOf(
    kind: Kind,
    vocabulary: Vocabulary,
    payload: SourceObject,
    proposalId: string | undefined,
  ): 'adapter' | 'server' {
    if (vocabulary !== 'ratified') return 'adapter';
    const hasIds = payload.has('proposal_id') || payload.has('decision_id');
    let writer: 'adapter' | 'server' | undefined;
    if (kind === 'registered')
      writer = !payload.has('adapter_id') && payload.has('adapter_type') ? 'server' : 'adapter';
    else if (kind === 'proposal')
      writer =
        !hasIds && /^-?\d{1,16}$/.test(textAt(payload, 'action_params_hash') ?? '') ? 'server' : 'adapter';
    else if (kind === 'decision') writer = !hasIds && payload.has('decision_type') ? 'server' : 'adapter';
    else if (kind === 'outcome') writer = !hasIds && payload.has('committed') ? 'server' : 'adapter';
    const key = proposalId ?? '';
    if (writer === undefined) return this.#writers.get(key) ?? 'adapter';
    if (proposalId !== undefined) this.#writers.set(key, writer);
    return writer;
  }

  #checkEvent(of: {
    readonly event: SourceObject;
    readonly type: string;
    readonly vocabulary: Vocabulary;
    readonly payload: SourceObject;
    readonly writer: 'adapter' | 'server';
    readonly at: HostPlace;
    readonly proposalId: string | undefined;
  }): void {
    const { event, type, vocabulary, payload, writer, at, proposalId } = of;
    const [first] = this.#vocabularies;
    if (!this.#vocabularies.has(vocabulary)) {
      this.#vocabularies.add(vocabulary);
      if (first !== undefined)
        this.#find('VOCABULARY_MIXED', at, { about: proposalId, expected: first, actual: vocabulary });
    }
    const wrong = (code: Code, expected: string, actual: string): void =>
      this.#find(code, at, { about: proposalId, expected, actual });
    if (!hasType(vocabulary, type))
      wrong('EVENT_TYPE_UNKNOWN', `an event of the ${vocabulary} vocabulary`, type);
    if (vocabulary === 'ratified' || vocabulary === 'plugin') this.#checkVersion(event, at, proposalId, true);
    if (
      vocabulary === 'draft' &&
      event.has('event_type_enum') &&
      textAt(event, 'event_type_enum') !== type.toUpperCase()
    )
      wrong('EVENT_TYPE_MISMATCH', type.toUpperCase(), describe(event.get('event_type_enum')));
    if (writer === 'adapter') {
      const missing = missingFields(vocabulary, type, payload, event);
      if (missing.length > 0)
        wrong('REQUIRED_FIELD_MISSING', `${type} with ${missing.join(', ')}`, 'missing, or of another type');
    } else if (++this.#serverLines === 1) {
      this.findings.push(finding('SERVER_FORM', at));
    }
    const inner = textAt(payload, 'proposal_id');
    for (const name of ['proposal_id', 'correlation_id']) {
      const outer = textAt(event, name);
      if (inner !== undefined && outer !== undefined && inner !== outer) wrong('ID_MISMATCH', outer, inner);
    }
    const [outerDecision, innerDecision] = [textAt(event, 'decision_id'), textAt(payload, 'decision_id')];
    if (outerDecision !== undefined && innerDecision !== undefined && outerDecision !== innerDecision)
      wrong('ID_MISMATCH', outerDecision, innerDecision);
    this.#checkValues(payload, at, proposalId);
  }

  #checkValues(body: SourceObject, at: HostPlace, about: string | undefined): void {
    const wrong = (name: string, value: string): void =>
      this.#find('VALUE_UNKNOWN', at, { about, expected: `a known ${name}`, actual: value });
    const params = objectAt(body, 'action_params');
    const known: [string, string | undefined, readonly string[]][] = [
      ['decision', decisionIn(body), DECISIONS],
      ['action_type', textAt(body, 'action_type'), ACTION_TYPES],
      ['risk_tier', textAt(body, 'risk_tier'), RISK_TIERS],
      ['fail_mode', failModeIn(body), FAIL_MODES],
      ['audit_level', textAt(body, 'audit_level'), AUDIT_LEVELS],
    ];
    for (const [name, values] of Object.entries(PARAM_VALUES[textAt(body, 'action_type') ?? ''] ?? {}))
      known.push([name, textAt(params, name), values]);
    for (const [name, value, values] of known)
      if (value !== undefined && !values.includes(value)) wrong(name, value);
    this.#checkAmounts(body, at, about);
    const confidence = numberAt(body, 'confidence');
    if (confidence !== undefined && !(Number(confidence) >= 0 && Number(confidence) <= 1))
      this.#find('VALUE_OUT_OF_RANGE', at, { about, expected: 'confidence from 0 to 1', actual: confidence });
  }

  /** An amount that is none would silently not be counted. */
  #checkAmounts(body: SourceObject, at: HostPlace, about: string | undefined): void {
    const amounts: [string, SourceValue][] = [];
    for (const name of ['duration_ms', 'execution_time_ms']) amounts.push([name, body.get(name) ?? null]);
    for (const name of ['estimated_cost', 'actual_cost'])
      for (const [unit, value] of objectAt(body, name)?.entries() ?? [])
        amounts.push([`${name}.${unit}`, value]);
    for (const [name, value] of amounts) {
      if (value === null || (value instanceof SourceNumber && amountOf(value.text) !== undefined)) continue;
      this.#find('VALUE_OUT_OF_RANGE', at, { about, expected: `${name} from 0 on`, actual: describe(value) });
      return;
    }
  }

  #checkVersion(
    of: SourceValue | undefined,
    at: HostPlace,
    about: string | undefined,
    isRequired = false,
    isRefused = false,
  ): void {
    const version = valueAt(of, 'schema_version');
    if (typeof version === 'string' ? isCompatible(version) : version === undefined && !isRequired) return;
    const code = version === undefined ? 'REQUIRED_FIELD_MISSING' : 'SCHEMA_VERSION_INCOMPATIBLE';
    // What the server refuses for it breaks nothing.
    const weight = isRefused ? 'warning' : 'invalid';
    const expected = 'schema_version 0.2.x or 0.3.0';
    this.#find(code, at, { about, expected, actual: describe(version), weight });
  }

  // Requests

  #readHttp(item: SourceItem, value: SourceObject): void {
    const path = textAt(value, 'path') ?? textAt(value, 'url') ?? '';
    const call = PATHS.exec(path)?.[1];
    const [request, response] = [objectAt(value, 'request'), objectAt(value, 'response')];
    const status = numberAt(value, 'status');
    const isAnswered = status === undefined ? response !== undefined : /^2\d\d$/.test(status);
    const stated = timeIn(value, 't') ?? timeIn(value, 'timestamp');
    const entry = this.#entry(
      item,
      call === undefined ? 'unknown' : call.replace(/^proposals\/.*$/, 'replay'),
    );
    if (call === undefined) {
      entry.dropped = 'ENDPOINT_UNKNOWN';
      this.#find('ENDPOINT_UNKNOWN', item.at, { actual: path });
      return;
    }
    const about = textAt(request, 'proposal', 'proposal_id');
    this.#checkVersion(request, item.at, about, false, !isAnswered);
    const time = this.#builder.timeOf(stated, item.at);
    const base = {
      item: entry,
      source: 'http' as const,
      stream: `${item.at.file}\0http`,
      time,
      isTimeStated: stated !== undefined,
      adapterId: textAt(request, 'adapter_id') ?? textAt(response, 'adapter_id'),
      at: item.at,
    };
    if (call === 'evaluate') this.#readEvaluation(base, request, isAnswered ? response : undefined);
    else if (call === 'outcomes/report' && request !== undefined)
      this.#readOutcome(entry, request, 'http', item.at, { time, isStated: stated !== undefined });
    else if (call.endsWith('replay')) {
      const pack = isAnswered && response !== undefined ? packOf(response) : undefined;
      if (pack === undefined) entry.dropped = 'NO_CONTENT';
      else this.#readPackMembers(pack, `${item.at.file}\0${item.at.line ?? 0}`, () => entry, time);
    } else if (call === 'health') entry.dropped = 'NOT_ABOUT_ACTIONS';
    else {
      const rows = isAnswered && call === 'register' ? response?.get('fail_mode_table') : undefined;
      const modes = response === undefined || rows === undefined ? undefined : readFailModes(response);
      if (base.adapterId !== undefined && modes !== undefined && modes.size > 0)
        this.tables.set(base.adapterId, { modes, rows: rows! });
      const isRegistered = call === 'register' && isAnswered;
      this.#state({
        ...base,
        kind: isRegistered ? 'registered' : 'other',
        type: isRegistered ? 'adapter_registered' : call.replace('/', '_'),
        body: request ?? new SourceObject(new Map()),
      });
    }
  }

  #readEvaluation(
    base: Omit<Statement, 'index' | 'kind' | 'type' | 'body'>,
    request: SourceObject | undefined,
    response: SourceObject | undefined,
  ): void {
    const proposal = objectAt(request, 'proposal');
    const answer =
      objectAt(response, 'decision') ?? (textAt(response, 'decision') === undefined ? undefined : response);
    const proposalId = textAt(proposal, 'proposal_id') ?? textAt(answer, 'proposal_id');
    const wrong = (code: Code, expected: string, actual: string): void =>
      this.#find(code, base.at, { about: proposalId, expected, actual });
    if (proposal === undefined) wrong('REQUIRED_FIELD_MISSING', 'a proposal', 'none');
    else {
      const missing = ['proposal_id', 'action_type'].filter((name) => textAt(proposal, name) === undefined);
      if (objectAt(proposal, 'action_params') === undefined) missing.push('action_params');
      if (missing.length > 0)
        wrong(
          'REQUIRED_FIELD_MISSING',
          `a proposal with ${missing.join(', ')}`,
          'missing, or of another type',
        );
      this.#checkValues(proposal, base.at, proposalId);
    }
    const isInline = answer !== undefined && isDecision(decisionIn(answer));
    const adapterId = base.adapterId ?? textAt(proposal, 'adapter_id');
    if (proposal !== undefined)
      this.#state({
        ...base,
        adapterId,
        proposalId,
        kind: 'proposal',
        type: 'proposal',
        body: proposal,
        signals: objectAt(request, 'capacity_signals'),
        isInline,
      });
    if (answer !== undefined) this.#readDecision({ ...base, adapterId, proposalId }, answer);
    else if (proposal === undefined)
      this.#state({
        ...base,
        adapterId,
        proposalId,
        kind: 'other',
        type: 'evaluate',
        body: new SourceObject(new Map()),
      });
  }

  #readDecision(base: Omit<Statement, 'index' | 'kind' | 'type' | 'body'>, decision: SourceObject): void {
    const { at, proposalId } = base;
    const stated = textAt(decision, 'proposal_id');
    if (stated !== undefined && proposalId !== undefined && stated !== proposalId)
      this.#find('ID_MISMATCH', at, { about: proposalId, expected: proposalId, actual: stated });
    this.#checkValues(decision, at, proposalId);
    this.#checkVersion(decision, at, proposalId);
    if (textAt(decision, 'decision_id') === undefined || decisionIn(decision) === undefined)
      this.#find('REQUIRED_FIELD_MISSING', at, {
        about: proposalId,
        expected: 'a decision with decision_id, decision',
      });
    this.#state({
      ...base,
      decisionId: decisionIdIn(decision),
      kind: isDecision(decisionIn(decision)) ? 'decision' : 'other',
      type: 'decision',
      body: decision,
    });
  }

  #readOutcome(
    item: Entry,
    outcome: SourceObject,
    source: 'http' | 'outcomes' | 'pack',
    at: HostPlace,
    given?: { readonly time: string | undefined; readonly isStated: boolean },
    stream = `${item.at.file}\0${source}`,
  ): void {
    const proposalId = textAt(outcome, 'proposal_id');
    if (source !== 'pack') {
      const missing = ['proposal_id', 'decision_id'].filter((name) => textAt(outcome, name) === undefined);
      if (typeof outcome.get('executed') !== 'boolean') missing.push('executed');
      if (missing.length > 0)
        this.#find('REQUIRED_FIELD_MISSING', at, {
          about: proposalId,
          expected: `an outcome with ${missing.join(', ')}`,
        });
    }
    this.#checkAmounts(outcome, at, proposalId);
    const stated = timeIn(outcome, 'observed_at') ?? timeIn(outcome, 'executed_at');
    this.#state({
      item,
      source,
      stream,
      kind: 'outcome',
      type: 'outcome',
      adapterId: textAt(outcome, 'adapter_id'),
      proposalId,
      decisionId: decisionIdIn(outcome),
      time: given?.time ?? this.#builder.timeOf(stated, at, proposalId),
      isTimeStated: given?.isStated ?? stated !== undefined,
      body: outcome,
      at,
    });
  }

  // Replay packs

  #readPack(item: SourceItem, pack: SourceObject): void {
    const prefix = (item.value as SourceObject).has('replay') ? '/replay' : '';
    let entries = 0;
    this.#checkVersion(pack, item.at, textAt(pack, 'proposal', 'proposal_id'));
    this.#readPackMembers(
      pack,
      `${item.at.file}\0${item.at.line ?? 0}`,
      (pointer, type) => {
        entries++;
        const at = { ...item.at, pointer: `${item.at.pointer ?? ''}${prefix}${pointer}` };
        return this.#entry({ at, bytes: item.bytes }, type);
      },
      timeIn(pack, 'created_at'),
    );
    if (entries === 0) this.#entry(item, 'replay_pack').dropped = 'NO_CONTENT';
  }

  #readPackMembers(
    pack: SourceObject,
    stream: string,
    entryOf: (pointer: string, type: string) => Entry,
    created: string | undefined,
  ): void {
    const [proposal, decision, outcome] = ['proposal', 'decision', 'outcome'].map((name) =>
      objectAt(pack, name),
    );
    const events = (listAt(pack, 'events') ?? []).filter((event) => event instanceof SourceObject);
    const proposalId = textAt(proposal, 'proposal_id') ?? textAt(decision, 'proposal_id');
    const adapterId =
      textAt(proposal, 'adapter_id') ??
      textAt(outcome, 'adapter_id') ??
      events.map((event) => textAt(event, 'adapter_id')).find((id) => id !== undefined);
    const timeOfEvent = (type: string): string | undefined => {
      const event = events.find((each) => textAt(each, 'event_type') === type);
      return event === undefined ? undefined : timeIn(event, 'timestamp');
    };
    const base = (item: Entry, stated: string | undefined) => ({
      item,
      source: 'pack' as const,
      stream: `${stream}\0pack`,
      adapterId,
      proposalId,
      time: this.#builder.timeOf(stated, item.at, proposalId),
      isTimeStated: stated !== undefined,
      at: item.at,
    });
    if (proposal !== undefined) {
      const item = entryOf('/proposal', 'proposal');
      const stated =
        timeIn(proposal, 'timestamp') ??
        timeIn(proposal, 'proposed_at') ??
        timeOfEvent('proposal_received') ??
        created;
      this.#checkValues(proposal, item.at, proposalId);
      this.#state({
        ...base(item, stated),
        kind: 'proposal',
        type: 'proposal',
        body: proposal,
        signals: objectAt(pack, 'signals') ?? objectAt(pack, 'capacity_signals'),
        isInline: isDecision(decisionIn(decision)),
      });
    }
    if (decision !== undefined) {
      const stated = timeIn(decision, 'decided_at') ?? timeOfEvent('decision_made') ?? created;
      this.#readDecision(base(entryOf('/decision', 'decision'), stated), decision);
    }
    this.#adapterId ??= adapterId;
    for (const [i, event] of events.entries()) {
      const item = entryOf(`/events/${i}`, textAt(event, 'event_type') ?? 'unknown');
      this.#readEvent(item, event, item.at, `${stream}\0events`);
    }
    if (outcome !== undefined) {
      const item = entryOf('/outcome', 'outcome');
      const stated = timeIn(outcome, 'observed_at') ?? timeOfEvent('outcome_logged') ?? created;
      const time = this.#builder.timeOf(stated, item.at, proposalId);
      this.#readOutcome(
        item,
        outcome,
        'pack',
        item.at,
        { time, isStated: stated !== undefined },
        `${stream}\0pack`,
      );
    }
  }

  #find(code: Code, at: HostPlace, details: FindingDetails): void {
    this.findings.push(finding(code, at, details));
  }
}

/** A time: seconds since 1970 as a number, or a date and time as text. */
export function timeIn(value: SourceValue | undefined, name: string): string | undefined {
  return timeOf(numberAt(value, name), 's') ?? timeOfText(textAt(value, name));
}

/** The id of a decision; adapters write `unknown` where they were given none. */
function decisionIdIn(body: SourceObject): string | undefined {
  const id = textAt(body, 'decision_id');
  return id === 'unknown' || id === '' ? undefined : id;
}

/** What an event says. The SDK's says of each action whether it was executed, also of one that is called blocked or deferred. */
function kindIn(type: string, payload: SourceObject): Kind {
  const kind = kindOf(type);
  const isStop = kind === 'blocked' || kind === 'deferred';
  return isStop && payload.get('executed') === true ? 'executing' : kind;
}

/** The decision that a payload or a decision object states. */
export function decisionIn(body: SourceObject | undefined): string | undefined {
  return textAt(body, 'decision_type') ?? textAt(body, 'decision');
}

/** The fail mode that an event states: each vocabulary has its own name for it, the plugin only whether it allowed. */
export function failModeIn(body: SourceObject): string | undefined {
  return (
    textAt(body, 'fail_mode') ??
    textAt(body, 'fail_mode_applied') ??
    textAt(body, 'applied_fail_mode') ??
    textAt(body, 'proceeding_with_fail')
  );
}

function describe(value: SourceValue | undefined): string {
  if (value === undefined) return 'none';
  if (value === null || typeof value === 'boolean') return String(value);
  if (typeof value === 'string') return value;
  if (value instanceof SourceNumber) return value.text;
  return value instanceof SourceObject ? `an object with ${value.keys().slice(0, 8).join(', ')}` : 'an array';
}
