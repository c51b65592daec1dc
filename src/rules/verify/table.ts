/**
 * Tables of a state. In memory a table is a Map; over an index its entries are read on request. A value that is changed MUST be set
 * again.
 */

/** The part of a Map that the rules use. */
export interface Table<K, V> {
  get(key: K): V | undefined;
  has(key: K): boolean;
  set(key: K, value: V): unknown;
  delete(key: K): boolean;
  /** In order of insertion; over an index in any order, and only after `load`. */
  values(): Iterable<V>;
  /** Reads the whole table into memory. */
  load?(): Promise<void>;
}
