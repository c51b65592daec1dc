/**
 * Open and denied actions, over an index. Recent ones are in the in-memory table of verification. Open ones have their own prefix, since
 * they are few. Keys are in ledger order, so new entries come after what LevelDB has sorted.
 */

import type { Action } from '../../rules/bounds/grant.js';
import { ActionTable, type OpenAction } from '../../rules/verify/action-table.js';
import type { IndexedEvent } from '../../rules/verify/event-index.js';
import { type ActionForm, restoreAction } from '../../rules/verify/state-form.js';
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
    for (const { place, toolName } of this.values()) {
      yield { eventId: place.eventId, seq: place.seq, toolName };
    }
  }

  /** Loads the open actions. */
  async load(): Promise<void> {
    if (this.#isLoaded) return;
    for await (const [key, form] of this.#entries.list(OPEN)) {
      const id = key.slice(ID_IN_KEY);
      if (super.get(id) === undefined && !this.#gone.has(id)) super.set(id, this.#restore(form));
    }
    this.#isLoaded = true;
  }

  takeChanges(): EntryChange[] {
    const changes: EntryChange[] = [];
    for (const id of this.#changed) {
      const action = super.get(id) as Action;
      const key = keyOf(prefixOf(action), action.place.seq, id);
      changes.push(this.#entries.change(key, toForm(action)));
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
    return form === undefined ? undefined : this.#restore(form);
  }

  #restore(form: unknown): Action {
    return restoreAction(toActionForm(form), (index) => this.#grants.at(index));
  }
}

function prefixOf({ decision }: Action): string {
  return decision === 'allow' ? OPEN : DENIED;
}

/** Its members in one order: that of an action depends on the path that made it. */
function toForm({ place, grant, expiresAt, system, ...action }: Action): ActionForm {
  const { decision, principalId, occurredAt, intent, userIntent, toolName, params, reservation } = action;
  return {
    place: { file: place.file, line: place.line, seq: place.seq, eventId: place.eventId },
    ...{ decision, principalId, occurredAt, intent, userIntent, toolName, params, reservation },
    expiresAt,
    system,
    grant: grant?.index,
  };
}

/** @throws IndexFault when malformed */
function toActionForm(form: unknown): ActionForm {
  const { place, principalId, toolName, reservation } = (form ?? {}) as Partial<ActionForm>;
  const isWhole = isCount(place?.seq) && typeof principalId === 'string' && typeof toolName === 'string';
  if (isWhole && reservation instanceof Map) return form as ActionForm;
  throw new IndexFault('the entry of an action is malformed');
}
