/** Verification tables over an index: read on demand; changes are held until written. */

import { sha256Base64url } from '../../base/bytes/sha256.js';
import type { Grant } from '../../rules/bounds/grant.js';
import { isSavedNode, type SavedNode } from '../../rules/bounds/timeline-node.js';
import type { GrantTable } from '../../rules/verify/grant-table.js';
import { type GrantForm, restoreGrant, saveGrant } from '../../rules/verify/state-form.js';
import type { Table } from '../../rules/verify/table.js';
import { WatchedMap } from '../../rules/verify/watched-map.js';
import { decodeValue, encodeValue, type FileNames } from './codec.js';
import { type EntryChange, type EntryStore, IndexFault } from './entry-store.js';

export class Entries {
  readonly #store: EntryStore;
  readonly #view: string;
  readonly names: FileNames;

  /** @param view - The prefix of every key. */
  constructor(store: EntryStore, view: string, names: FileNames) {
    this.#store = store;
    this.#view = view;
    this.names = names;
  }

  get(key: string): unknown {
    const text = this.getText(key);
    return text === undefined ? undefined : decodeValue(text, this.names);
  }

  getText(key: string): string | undefined {
    return this.#store.get(this.#view + key);
  }

  async listMissing(keys: readonly string[]): Promise<string[]> {
    const isThere = await this.#store.has(keys.map((key) => this.#view + key));
    return keys.filter((_, index) => isThere[index] === false);
  }

  async *list(
    prefix: string,
    from?: string,
    limit?: number,
  ): AsyncGenerator<readonly [key: string, value: unknown]> {
    const range = {
      prefix: this.#view + prefix,
      ...(from === undefined ? {} : { from: this.#view + from }),
      ...(limit === undefined ? {} : { limit }),
    };
    for await (const [key, text] of this.#store.list(range))
      yield [key.slice(this.#view.length), decodeValue(text, this.names)];
  }

  /** All entries as stored, in key order. */
  async *listTexts(): AsyncGenerator<readonly [key: string, text: string]> {
    for await (const [key, text] of this.#store.list({ prefix: this.#view }))
      yield [key.slice(this.#view.length), text];
  }

  change(key: string, value: unknown): EntryChange {
    return this.changeText(key, value === undefined ? undefined : encodeValue(value, this.names));
  }

  /** @param text - As {@link encodeValue} writes it, or several of these that the reader can split. */
  changeText(key: string, text: string | undefined): EntryChange {
    return { key: this.#view + key, value: text };
  }
}

/** A number as part of a key, so that key order is numeric order. */
export function keyNumber(n: number): string {
  return String(n).padStart(16, '0');
}

/** Entries cached before unreferenced ones are dropped. */
const MAX_CACHED = 20_000;

export class EntryTable<V extends object> implements Table<string, V> {
  readonly #entries: Entries;
  readonly #prefix: string;
  readonly #decode: (form: unknown, key: string) => V;
  readonly #toKey: (name: string) => string;
  readonly #known = new Map<string, V | undefined>();
  readonly #changed = new Set<string>();
  #isLoaded = false;

  /** @param toKey - The key of a name that may be any text. Default: the name itself. */
  constructor(
    entries: Entries,
    prefix: string,
    decode: (form: unknown, key: string) => V,
    toKey = (name: string): string => name,
  ) {
    this.#entries = entries;
    this.#prefix = prefix;
    this.#decode = decode;
    this.#toKey = toKey;
  }

  get(name: string): V | undefined {
    const key = this.#toKey(name);
    const known = this.#known.get(key);
    if (known !== undefined || this.#isLoaded || this.#known.has(key)) return known;
    const form = this.#entries.get(this.#prefix + key);
    const value = form === undefined ? undefined : this.#decode(form, key);
    // Cached too if absent: a new event's id is looked up more than once.
    this.#known.set(key, value);
    return value;
  }

  has(name: string): boolean {
    return this.get(name) !== undefined;
  }

  set(name: string, value: V): void {
    const key = this.#toKey(name);
    this.#known.set(key, value);
    this.#changed.add(key);
  }

  delete(name: string): boolean {
    const was = this.has(name);
    if (was) {
      const key = this.#toKey(name);
      this.#known.set(key, undefined);
      this.#changed.add(key);
    }
    return was;
  }

  *values(): Generator<V, void, void> {
    if (!this.#isLoaded) throw new TypeError('the table is not loaded');
    for (const value of this.#known.values()) if (value !== undefined) yield value;
  }

  /** Reads all entries, in this order, else in key order; changed ones come last. */
  async load(inOrder?: (a: V, b: V) => number): Promise<void> {
    if (this.#isLoaded) return;
    const since = [...this.#known];
    this.#known.clear();
    const before = new Map(since);
    const stored: [key: string, value: V][] = [];
    for await (const [key, form] of this.#entries.list(this.#prefix)) {
      const own = key.slice(this.#prefix.length);
      stored.push([own, this.#decode(form, own)]);
    }
    if (inOrder !== undefined) stored.sort(([, a], [, b]) => inOrder(a, b));
    for (const [key, value] of stored) this.#known.set(key, before.has(key) ? before.get(key) : value);
    for (const [key, value] of since) this.#known.set(key, value);
    this.#isLoaded = true;
  }

  takeChanges(): EntryChange[] {
    const changes = [...this.#changed].map((key) =>
      this.#entries.change(this.#prefix + key, this.#known.get(key)),
    );
    this.#changed.clear();
    return changes;
  }

  /** Drops the cache if it is large. All changes MUST be written. */
  trim(): void {
    if (!this.#isLoaded && this.#known.size > MAX_CACHED) this.#known.clear();
  }
}

/** A table that knows its size, since it is mostly empty. */
export class CountedTable<V extends object> extends EntryTable<V> {
  #size: number;

  constructor(
    size: number,
    ...table: [
      entries: Entries,
      prefix: string,
      decode: (form: unknown) => V,
      toKey?: (name: string) => string,
    ]
  ) {
    super(...table);
    this.#size = size;
  }

  get size(): number {
    return this.#size;
  }

  override get(key: string): V | undefined {
    return this.#size === 0 ? undefined : super.get(key);
  }

  override set(key: string, value: V): void {
    if (!this.has(key)) this.#size += 1;
    super.set(key, value);
  }

  override delete(key: string): boolean {
    const was = super.delete(key);
    if (was) this.#size -= 1;
    return was;
  }
}

/** A small Map, read whole, that tracks its changes. */
export class TrackedMap<V> extends WatchedMap<V> {
  readonly #changed = new Set<string>();

  override set(key: string, value: V): this {
    this.#changed.add(key);
    return super.set(key, value);
  }

  override delete(key: string): boolean {
    this.#changed.add(key);
    return super.delete(key);
  }

  takeChanged(): string[] {
    const changed = [...this.#changed];
    this.#changed.clear();
    return changed;
  }
}

/** A {@link TrackedMap} that numbers its keys in order of arrival, removed ones included. */
export class NumberedMap<V> extends TrackedMap<V> {
  readonly #numbers = new Map<string, number>();
  #gone: number[] = [];
  #count: number;

  constructor(count: number) {
    super();
    this.#count = count;
  }

  get count(): number {
    return this.#count;
  }

  numberOf(key: string): number {
    return this.#numbers.get(key) as number;
  }

  /** The numbers of keys removed since the last call. */
  takeGone(): number[] {
    const gone = this.#gone;
    this.#gone = [];
    return gone;
  }

  restore(key: string, number: number, value: V): void {
    this.#numbers.set(key, number);
    super.set(key, value);
  }

  override set(key: string, value: V): this {
    if (!this.has(key)) {
      this.#numbers.set(key, this.#count);
      this.#count += 1;
    }
    return super.set(key, value);
  }

  override delete(key: string): boolean {
    const number = this.#numbers.get(key);
    if (number !== undefined) this.#gone.push(number);
    this.#numbers.delete(key);
    return super.delete(key);
  }
}

/** Grants by number, id and principal. */
export class IndexedGrants implements GrantTable {
  readonly #entries: Entries;
  readonly #known = new Map<number, Grant>();
  readonly #numbers = new Map<string, number>();
  readonly #changed = new Set<Grant>();
  readonly #added: { readonly id: string; readonly grant: Grant }[] = [];
  /** The written grants of principals, as far as they were read: every decision asks for them. */
  readonly #written = new Map<string, { readonly count: number; readonly indexes: number[] }>();
  #size: number;

  constructor(entries: Entries, size: number) {
    this.#entries = entries;
    this.#size = size;
  }

  get size(): number {
    return this.#size;
  }

  get(id: string): Grant | undefined {
    const number = this.#numbers.get(id) ?? this.#entries.get(`G:${id}`);
    if (typeof number !== 'number') return undefined;
    // Looked up for each event under it.
    this.#numbers.set(id, number);
    return this.at(number);
  }

  at(index: number): Grant | undefined {
    const known = this.#known.get(index);
    if (known !== undefined || index < 0 || index >= this.#size) return known;
    const form = this.#entries.get(`g:${keyNumber(index)}`) as GrantForm | undefined;
    if (form?.index !== index || !(form.accounts instanceof Map) || !Array.isArray(form.rates))
      throw new IndexFault('the entry of a grant is missing or malformed');
    const grant = restoreGrant(
      form,
      (number) => this.at(number),
      (limit, id) => readNode(this.#entries, index, limit, id),
    );
    this.#known.set(index, grant);
    return grant;
  }

  add(id: string, grant: Grant): void {
    this.#known.set(grant.index, grant);
    this.#numbers.set(id, grant.index);
    this.#added.push({ id, grant });
    this.#changed.add(grant);
    this.#size += 1;
  }

  touch(grant: Grant): void {
    this.#changed.add(grant);
  }

  *allowedTo(principalId: string): Generator<Grant, void, void> {
    const { count, indexes } = this.#writtenOf(principalId);
    for (let n = 0; n < count; n += 1) {
      const index = indexes[n] ?? this.#entries.get(ofPrincipal(principalId, n));
      const grant = typeof index === 'number' ? this.at(index) : undefined;
      if (grant === undefined) throw new IndexFault('the list of a principal is malformed');
      indexes[n] = grant.index;
      yield grant;
    }
    for (const { grant } of this.#added)
      if (grant.decision === 'allow' && grant.principalId === principalId) yield grant;
  }

  *values(): Generator<Grant, void, void> {
    for (let index = 0; index < this.#size; index += 1) {
      const grant = this.at(index);
      if (grant !== undefined) yield grant;
    }
  }

  takeChanges(): EntryChange[] {
    const changes: EntryChange[] = [];
    const counts = new Map<string, number>();
    for (const { id, grant } of this.#added) {
      changes.push(this.#entries.change(`G:${id}`, grant.index));
      if (grant.decision !== 'allow') continue;
      const { principalId } = grant;
      const count = counts.get(principalId) ?? this.#writtenOf(principalId).count;
      changes.push(this.#entries.change(ofPrincipal(principalId, count), grant.index));
      counts.set(principalId, count + 1);
    }
    for (const [principalId, count] of counts) {
      changes.push(this.#entries.change(ofPrincipal(principalId), count));
      this.#written.delete(principalId);
    }
    for (const grant of this.#changed) {
      const form = saveGrant(grant, 'changes', (limit, node) => {
        changes.push(this.#entries.change(nodeKey(grant.index, limit, node.id), node));
      });
      changes.push(this.#entries.change(`g:${keyNumber(grant.index)}`, form));
    }
    this.#added.length = 0;
    this.#changed.clear();
    return changes;
  }

  #writtenOf(principalId: string): { readonly count: number; readonly indexes: number[] } {
    const known = this.#written.get(principalId);
    if (known !== undefined) return known;
    const count = this.#entries.get(ofPrincipal(principalId));
    const read = { count: typeof count === 'number' ? count : 0, indexes: [] };
    if (this.#written.size >= MAX_CACHED) this.#written.clear();
    this.#written.set(principalId, read);
    return read;
  }
}

function ofPrincipal(principalId: string, n?: number): string {
  const key = `p:${sha256Base64url(Buffer.from(principalId))}`;
  return n === undefined ? key : `${key}:${keyNumber(n)}`;
}

function nodeKey(grant: number, limit: number, id: number): string {
  return `t:${keyNumber(grant)}:${limit}:${keyNumber(id)}`;
}

/** A node of a grant's timeline. @throws IndexFault */
export function readNode(entries: Entries, grant: number, limit: number, id: number): SavedNode {
  const node = entries.get(nodeKey(grant, limit, id));
  if (!isSavedNode(node) || node.id !== id)
    throw new IndexFault('the entry of a timeline is missing or malformed');
  return node;
}

export function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
