/** What sources say of calls, by what a call of a ledger can be found under: ids, items, content. */

import { addTo } from './values.js';
import { printable } from '../../base/bytes/printable.js';
import { decodeLatin1 } from '../../base/bytes/text.js';
import { NorthrootError } from '../../base/error.js';
import { type Digest, formatDigest, sha256Digest } from '../../base/value/digest.js';
import { parseTimestamp } from '../../base/value/timestamp.js';
import type { Host, HostFile, HostPlace, HostReading, Observation } from './host.js';
import type { LedgerCall } from './ledger-calls.js';
import { sourceIdOf, toolOf } from './names.js';
import { type HostReadOptions, readHost } from './read-host.js';
import { separatorOf } from './reading.js';

/** What one system's files say, under a name of its own. */
export interface ReconcileSource {
  /** Names it in the report: the host's name, unless there are two of one host. */
  readonly name: string;
  /** {@link Host.name}: what `source.system` of imported events says. */
  readonly system: string;
  readonly files: readonly { readonly name: string; readonly bytes: number; readonly digest: string }[];
  readonly reading: HostReading;
}

/**
 * Reads files as a source.
 *
 * @param name - Default: the host's.
 * @throws TypeError, RangeError as {@link Host.read}
 */
export function readSource(
  host: Host,
  files: readonly HostFile[],
  options: HostReadOptions = {},
  name = host.name,
): ReconcileSource {
  return {
    name,
    system: host.name,
    files: files.map(({ name: file, bytes }) => ({
      name: file,
      bytes: bytes.length,
      digest: formatDigest(sha256Digest(bytes)),
    })),
    reading: readHost(host, files, options),
  };
}

/** What a record begins with, and what the line of a bare event has. */
const RECORD_START = '{"event":{';
const PROFILE = '"canonical_profile_id":"northroot-';
const LOOKED_AT = 4096;

/** Whether a file most likely is a ledger, which no host writes. */
export function looksLikeLedger({ bytes }: HostFile): boolean {
  const head = decodeLatin1(bytes, 0, Math.min(LOOKED_AT, bytes.length));
  return head.startsWith(RECORD_START) || (head.startsWith('{') && head.includes(PROFILE));
}

/**
 * The one host that claims a file.
 *
 * @throws NorthrootError `HOST_UNKNOWN` where none does, `HOST_AMBIGUOUS` where several do.
 */
export function recogniseHost(file: HostFile, hosts: readonly Host[]): Host {
  const claiming = hosts.filter((host) => host.recognises(file));
  const [host] = claiming;
  const name = printable(file.name);
  const hint = looksLikeLedger(file)
    ? 'it looks like a ledger: the ledger comes first, then the files of other systems'
    : separatorOf(file) !== undefined
      ? 'it looks like a table in CSV: hosts read the same export as JSON'
      : `say which it is: HOST=${name}`;
  if (host === undefined) {
    const known = hosts.map((each) => each.name).join(', ');
    throw new NorthrootError('HOST_UNKNOWN', `no host takes ${name} for its own; hosts are ${known}`, {
      hint,
    });
  }
  if (claiming.length > 1) {
    const names = claiming.map((each) => each.name).join(', ');
    throw new NorthrootError('HOST_AMBIGUOUS', `several hosts take ${name} for their own: ${names}`, {
      hint,
    });
  }
  return host;
}

export interface Seen {
  readonly index: number;
  readonly observation: Observation;
  readonly tool: string | undefined;
  /** Nanoseconds since 1970. */
  readonly instant: bigint | undefined;
}

/** How a call was found in a source: under an id, by the item that it was imported from, by its content. */
export type FoundBy = 'id' | 'meta' | 'item' | 'content';

/** Observations of one id that are looked at; more of them are not told apart. */
const MAX_CANDIDATES = 64;

export class IndexedSource {
  readonly source: ReconcileSource;
  readonly seen: readonly Seen[];
  readonly #byId = new Map<string, number[]>();
  readonly #byClaim = new Map<string, number[]>();
  readonly #byContent = new Map<string, number[]>();
  readonly #itemDigests = new Set<string>();
  /** By observation: the digests of the items there that an import keeps as evidence. */
  readonly #evidence = new Map<number, string[]>();

  constructor(source: ReconcileSource) {
    this.source = source;
    const { observations, claims } = source.reading;
    const byPlace = new Map<string, number[]>();
    this.seen = observations.map((observation, index): Seen => {
      const tool = observation.tool === undefined ? undefined : toolOf(observation.tool);
      for (const id of new Set(observation.callIds)) if (id !== '') addTo(this.#byId, id, index);
      addTo(byPlace, placeKey(observation.at), index);
      if (tool !== undefined && observation.paramsDigest !== undefined)
        addTo(this.#byContent, contentKey(tool, observation.paramsDigest), index);
      const { occurredAt } = observation;
      return {
        index,
        observation,
        tool,
        instant: occurredAt === undefined ? undefined : parseTimestamp(occurredAt),
      };
    });
    const digests = new Map<Uint8Array, string>();
    for (const { id, at, bytes, kind } of claims) {
      const digest = digests.get(bytes) ?? formatDigest(sha256Digest(bytes));
      digests.set(bytes, digest);
      this.#itemDigests.add(digest);
      const there = byPlace.get(placeKey(at));
      if (there === undefined) continue;
      if (kind === 'evidence') for (const index of there) addTo(this.#evidence, index, digest);
      else this.#byClaim.set(sourceIdOf(id), there);
    }
  }

  /** Whether an entry was made from an item of these very files. */
  isMadeFrom({ source }: LedgerCall['entries'][number]): boolean {
    return (
      source?.digest !== undefined &&
      source.system === this.source.system &&
      this.#itemDigests.has(source.digest)
    );
  }

  /** The digests of the items that an observation was made from, as far as an import keeps them as evidence. */
  evidenceOf({ index }: Seen): readonly string[] {
    return this.#evidence.get(index) ?? [];
  }

  /**
   * Where a call is found by what names it: `rank` is 0 for the best of names, and `isMany` where there are too many to tell apart.
   */
  find(call: LedgerCall):
    | {
        readonly by: FoundBy;
        readonly rank: number;
        readonly at: readonly number[];
        readonly isMany: boolean;
      }
    | undefined {
    const { system } = this.source;
    const ids = call.entries.flatMap(({ source }) => (source === undefined ? [] : idsIn(source.id)));
    const own = call.entries.flatMap(({ source }) => (source?.system === system ? [source.id] : []));
    const tiers = [
      ['id', this.#byId, ids],
      ['id', this.#byId, call.entries.flatMap(({ requestKey }) => namesIn(requestKey))],
      ['meta', this.#byId, call.entries.flatMap(({ metaIds }) => metaIds)],
      ['id', this.#byId, call.entries.flatMap(({ requestKey }) => refsIn(requestKey))],
      ['item', this.#byClaim, own],
      [
        'id',
        this.#byId,
        call.entries.flatMap(({ source }) => (source === undefined ? [] : lastPartOf(source.id))),
      ],
    ] as const;
    for (const [rank, [by, index, names]] of tiers.entries()) {
      const found = new Set<number>();
      for (const name of names) {
        const list = index.get(name) ?? [];
        if (list.length > MAX_CANDIDATES) return { by, rank, at: [], isMany: true };
        for (const each of list) found.add(each);
      }
      if (found.size > 0) return { by, rank, at: [...found].sort((a, b) => a - b), isMany: false };
    }
    return undefined;
  }

  /**
   * Observations of the same tool and parameters as a call. None of a call that was taken over from this system: it has ids here, and is
   * not found under them.
   */
  alike(call: LedgerCall): readonly number[] {
    if (call.paramsDigest === undefined) return [];
    if (call.entries.some(({ source }) => source?.system === this.source.system)) return [];
    return this.#byContent.get(contentKey(call.tool, call.paramsDigest)) ?? [];
  }
}

/** Tool and parameters as one text. */
export function contentKey(tool: string, digest: Digest): string {
  return `${tool} ${formatDigest(digest)}`;
}

/** The id of a claim names what it is, then the host's id: `decision:dec-206a`. */
function idsIn(id: string): string[] {
  const colon = id.indexOf(':');
  return colon < 0 ? [id] : [id, id.slice(colon + 1)];
}

/** What a gate puts behind a call's key: the number of a further try, or that it ran with other parameters. */
const KEY_SUFFIX = /\/(?:\d{1,2}|ran)$/;

/** The names that a request key is; a host may name a call `SESSION/CALL`. */
function namesIn(requestKey = ''): string[] {
  const key = requestKey.replace(KEY_SUFFIX, '');
  const [, session, call] = /^([^:/]+):([^:/]+)$/.exec(key) ?? [];
  if (session === undefined) return key === '' ? [] : [key];
  return session === 'ref' || session === 'nth' ? [] : [key, `${session}/${call}`];
}

/** The call's own id in a request key, after that of its session. */
function refsIn(requestKey = ''): string[] {
  return requestKey === '' ? [] : idsIn(requestKey.replace(KEY_SUFFIX, ''));
}

/** Of several ids with `/` between them the last, which is the call's. */
function lastPartOf(id: string): string[] {
  const parts = id.slice(id.indexOf(':') + 1).split('/');
  const last = parts.at(-1) ?? '';
  return parts.length < 2 || last === '' ? [] : [last.replace(/%2F/g, '/').replace(/%25/g, '%')];
}

function placeKey({ file, line, pointer }: HostPlace): string {
  return `${line ?? ''} ${pointer ?? ''} ${file}`;
}
