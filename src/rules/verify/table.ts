/**
 * What verification remembers of many things, by their ids. In memory a table is a Map; over an index its entries are read when they
 * are asked for. Whoever changes a value that a table holds sets it again, so that the table knows.
 */

/** The part of a Map that the rules use. */
export interface Table<K, V> {
  get(key: K): V | undefined;
  has(key: K): boolean;
  set(key: K, value: V): unknown;
  delete(key: K): boolean;
  /** In the order in which they came, but over an index; there only once `load` has ended. */
  values(): Iterable<V>;
  /** Reads all of it, where it is not in memory. */
  load?(): Promise<void>;
}
