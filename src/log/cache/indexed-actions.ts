/**
 * Open and denied actions, over an index. Recent ones are in the in-memory table of verification. Open ones have their own prefix, since
 * they are few. Keys are in ledger order, so new entries come after what LevelDB has sorted.
 */

import { toDigestText } from '../../base/value/digest.js';
import type { Rational } from '../../base/value/rational.js';
import type { Action } from '../../rules/bounds/grant.js';
import { ActionTable, type OpenAction } from '../../rules/verify/action-table.js';
import type { IndexedEvent } from '../../rules/verify/event-index.js';
import { type ActionForm, restoreAction } from '../../rules/verify/state-form.js';
import { encodeRational, encodeText, type FileNames, tryDecodeRational } from './codec.js';
import { type EntryChange, IndexFault } from './entry-store.js';
import type { IndexedEvents } from './indexed-events.js';
import { type Entries, type IndexedGrants, isCount, keyNumber } from './tables.js';

const OPEN = 'a:';
const DENIED = 'd:';
const ID_IN_KEY = keyOf(OPEN, 0, '').length;

function keyOf(prefix: string, seq: number, id: string): string {
  return `${prefix}${keyNumber(seq)}:${id}`;
}

/** Actions over an index; see the head of this file. */
export class IndexedActions extends ActionTable {
  readonly #entries: Entries;
  readonly #grants: IndexedGrants;
  readonly #events: IndexedEvents;
  /** Changes since the last write; `#gone` maps ids to their former keys. */
  readonly #changed = new Set<string>();
  readonly #gone = new Map<string, string>();
  #isLoaded = false;

  constructor(entries: Entries, grants: IndexedGrants, events: IndexedEvents) {
    super(grants);
    this.#entries = entries;
    this.#grants = grants;
    this.#events = events;
  }

  override get(id: string): Action | undefined {
    const known = super.get(id);
    if (known !== undefined || this.#gone.has(id)) return known;
    const event = this.#events.find(id);
    if (event === undefined) return undefined;
    const action =
      (this.#isLoaded ? undefined : this.#read(OPEN, event.seq, id)) ?? this.#read(DENIED, event.seq, id);
    if (action !== undefined) super.set(id, action);
    return action;
  }

  override has(id: string): boolean {
    return this.get(id) !== undefined;
  }

  override set(id: string, action: Action): void {
    super.set(id, action);
    this.#note(id);
  }

  override delete(id: string): boolean {
    const action = this.get(id);
    if (action === undefined) return false;
    super.delete(id);
    this.#drop(id, keyOf(prefixOf(action), action.place.seq, id));
    return true;
  }

  override place(number: number, row: number): void {
    super.place(number, row);
    this.#note(this.#events.idOf(number));
  }

  override remove(number: number): boolean {
    const was = super.remove(number);
    if (!was) return false;
    const id = this.#events.idOf(number);
    // An action in a row is allowed, and its event is in memory.
    this.#drop(id, keyOf(OPEN, (this.#events.find(id) as IndexedEvent).seq, id));
    return true;
  }

  /** The open actions in ledger order; call `load` first. */
  override *values(): Generator<Action, void, void> {
    if (!this.#isLoaded) throw new TypeError('the table is not loaded');
    const open = [...super.values()].filter(({ decision }) => decision === 'allow');
    yield* open.sort((a, b) => a.place.seq - b.place.seq);
  }

  override countOpen(): number {
    return [...this.values()].length;
  }

  override *open(): Generator<OpenAction, void, void> {
    for (const { place, toolName } of this.values())
      yield { eventId: place.eventId, seq: place.seq, toolName };
  }

  async load(): Promise<void> {
    if (this.#isLoaded) return;
    for await (const [key, form] of this.#entries.list(OPEN)) {
      const id = key.slice(ID_IN_KEY);
      if (super.get(id) === undefined && !this.#gone.has(id)) super.set(id, this.#restore(id, form));
    }
    this.#isLoaded = true;
  }

  takeChanges(): EntryChange[] {
    const changes: EntryChange[] = [];
    for (const id of this.#changed) {
      const action = super.get(id) as Action;
      const key = keyOf(prefixOf(action), action.place.seq, id);
      changes.push(this.#entries.changeText(key, encodeAction(id, action, this.#entries.names)));
    }
    for (const key of this.#gone.values()) changes.push(this.#entries.changeText(key, undefined));
    this.#changed.clear();
    this.#gone.clear();
    return changes;
  }

  /** Drops the in-memory table. All changes MUST be written. */
  override clear(): void {
    super.clear();
    this.#isLoaded = false;
  }

  #note(id: string): void {
    this.#changed.add(id);
    this.#gone.delete(id);
  }

  #drop(id: string, key: string): void {
    this.#changed.delete(id);
    this.#gone.set(id, key);
  }

  #read(prefix: string, seq: number, id: string): Action | undefined {
    const form = this.#entries.get(keyOf(prefix, seq, id));
    return form === undefined ? undefined : this.#restore(id, form);
  }

  #restore(id: string, form: unknown): Action {
    return restoreAction(decodeAction(id, form, this.#entries.names), (index) => this.#grants.at(index));
  }
}

function prefixOf({ decision }: Action): string {
  return decision === 'allow' ? OPEN : DENIED;
}

/** The list's length before the amounts, which are pairs of unit and amount. */
const MEMBERS = 14;

/** @param id - base64url */
function encodeAction(id: string, action: Action, names: FileNames): string {
  const { place, decision, principalId, occurredAt, intent, userIntent, grant, toolName, params } = action;
  const isOwn = place.eventId === toDigestText(id);
  let text = `[${encodeText(names.toIndex(place.file))},${place.line},${place.seq},${isOwn ? '0' : encodeText(place.eventId)}`;
  text += `,${decision === 'allow' ? 1 : 0},${grant === undefined ? -1 : grant.index}`;
  text += `,${encodeText(principalId)},${encodeText(toolName)},${encodeText(occurredAt)}`;
  text += `,${encodeText(intent)},${userIntent === undefined ? '0' : encodeText(userIntent)},${encodeText(params)}`;
  for (const each of [action.expiresAt, action.system])
    text += `,${each === undefined ? '0' : encodeText(each)}`;
  for (const [unit, amount] of action.reservation) text += `,${encodeText(unit)},"${encodeRational(amount)}"`;
  return `${text}]`;
}

/** @throws IndexFault when malformed */
function decodeAction(id: string, form: unknown, names: FileNames): ActionForm {
  if (!Array.isArray(form) || form.length < MEMBERS || form.length % 2 !== 0) throw malformed();
  const list = form as readonly unknown[];
  const [file, line, seq, eventId, allows, grant, ...texts] = list.slice(0, MEMBERS);
  const [principalId, toolName, occurredAt, intent, userIntent, params, expiresAt, system] = texts.map(
    (each, index) => (each === 0 && OPTIONAL.has(index) ? undefined : textOf(each)),
  ) as [string, string, string, string, string | undefined, string, string | undefined, string | undefined];
  if (!isCount(line) || !isCount(seq) || !Number.isSafeInteger(grant)) throw malformed();
  const reservation = new Map<string, Rational>();
  for (let at = MEMBERS; at < list.length; at += 2)
    reservation.set(textOf(list[at]), amountOf(textOf(list[at + 1])));
  return {
    place: {
      file: names.fromIndex(textOf(file)),
      line,
      seq,
      eventId: eventId === 0 ? toDigestText(id) : textOf(eventId),
    },
    decision: allows === 1 ? 'allow' : 'deny',
    principalId,
    occurredAt,
    intent,
    userIntent,
    toolName,
    params,
    reservation,
    expiresAt,
    system,
    grant: grant === -1 ? undefined : (grant as number),
  };
}

/** The user's intent, expiry and system, by their place among the texts. */
const OPTIONAL: ReadonlySet<number> = new Set([4, 6, 7]);

function amountOf(text: string): Rational {
  const amount = tryDecodeRational(text);
  if (amount === undefined) throw malformed();
  return amount;
}

function textOf(value: unknown): string {
  if (typeof value !== 'string') throw malformed();
  return value;
}

function malformed(): IndexFault {
  return new IndexFault('the entry of an action is malformed');
}
