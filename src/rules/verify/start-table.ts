/**
 * The open starts of a state, by the id of their authorization, packed: about 150 bytes each, for there may be a hundred thousand. What is
 * read equals what was set, but may be another object. It tells listeners which ids change, as `WatchedMap`.
 */

import { fromDigestText, toDigestText } from '../../base/value/digest.js';
import type { MeterVector } from '../../base/value/meter.js';
import type { OpenStart } from '../bounds/started.js';
import { type Packing, PackedTable } from './packed-table.js';
import { readPlace, writePlace } from './packing.js';

/** The open starts of one authorization, by their own ids. */
export type OpenStarts = Map<string, OpenStart>;

/** Only a grant has more than one; they are not packed again for each of them. */
const MAX_PACKED = 1;

const STARTS: Packing<OpenStarts> = {
  // Any text may be asked for.
  writeKey: (writer, id) => {
    writer.digest(toDigestText(id));
  },
  readKey: (reader) => fromDigestText(reader.digest() as string),
  write: (writer, open) => {
    if (open.size > MAX_PACKED) return false;
    writer.number(open.size);
    for (const { place, toolName, params, startedAt, recorder, isStopped, meters } of open.values()) {
      writer.id(fromDigestText(place.eventId));
      writePlace(writer, place);
      writer.name(toolName);
      writer.digest(params);
      writer.time(startedAt);
      writer.name(recorder);
      writer.number(isStopped ? 1 : 0);
      writer.name(JSON.stringify(meters));
    }
    return true;
  },
  read: (reader) => {
    const open: OpenStarts = new Map();
    for (let rest = reader.number(); rest > 0; rest -= 1) {
      const id = reader.id();
      open.set(id, {
        place: readPlace(reader, toDigestText(id)),
        toolName: reader.name(),
        params: reader.digest(),
        startedAt: reader.time() as string,
        recorder: reader.name(),
        isStopped: reader.number() === 1,
        meters: JSON.parse(reader.name()) as MeterVector,
      });
    }
    return open;
  },
};

/** Open starts; see the head of this file. */
export class StartTable extends PackedTable<OpenStarts> {
  readonly #listeners = new Set<(id: string) => void>();

  constructor() {
    super(STARTS);
  }

  /** As `WatchedMap.watch`. */
  watch(listener: (id: string) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  override set(id: string, open: OpenStarts): void {
    super.set(id, open);
    for (const listener of this.#listeners) listener(id);
  }

  override delete(id: string): boolean {
    const was = super.delete(id);
    if (was) for (const listener of this.#listeners) listener(id);
    return was;
  }
}
