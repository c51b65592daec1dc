/** Entries put together: episodes with what they are attributed to, and what each request of them went through. */

import { addTo } from '../shared/values.js';
import { finding } from './rules.js';
import type { Fault } from '../../base/fault.js';
import type { HostFile, HostOptions } from '../shared/host.js';
import type { Fields } from './events.js';
import { type AdapterProfile, type ProfileReading, readAdapterProfile } from './profile.js';
import type { Entries, Entry } from './reader.js';
import type { ToolLogIndex, ToolReceipt } from './receipt.js';
import {
  deriveNonce,
  parseToolIntent,
  parseToolResponse,
  type ToolIntent,
  type ToolLineCode,
  type ToolResponse,
} from './tool-intent.js';
import type { ReadingBuilder } from '../shared/reading.js';

/** An entry with what it says. */
export interface Of<T> {
  readonly entry: Entry;
  readonly index: number;
  readonly value: T;
}

/** One request of an episode. */
export interface Case {
  readonly episode: string;
  readonly request: string;
  /** What names it in ids, where no episode is known: the session, or the nonce. */
  scope: string;
  readonly requested: Of<Fields>[];
  readonly intents: Of<ToolIntent>[];
  readonly decided: Of<Fields>[];
  readonly executed: Of<Fields>[];
  readonly receipts: Of<ToolReceipt>[];
  readonly responses: Of<ToolResponse>[];
  readonly actuations: Of<Fields>[];
}

/** One episode. `''`: requests of which no episode is stated. */
export interface Episode {
  readonly id: string;
  readonly cases: Case[];
  readonly attributions: Of<Fields>[];
  readonly indexes: Of<ToolLogIndex>[];
  readonly spawns: Of<Fields>[];
  budget: Of<ReadonlyMap<string, string>> | undefined;
  /** The profile whose hash the attribution states. */
  profile: AdapterProfile | undefined;
  readonly logs: Set<string>;
  hasResponses: boolean;
}
interface BadLine {
  readonly entry: Entry;
  readonly index: number;
  readonly fault: Fault<ToolLineCode>;
}

/** Everything that the files say, put together. */
export type Cases = Pick<
  Maker,
  'episodes' | 'profiles' | 'caseOf' | 'episodeOf' | 'lines' | 'badLines' | 'unverified' | 'actuations'
>;

/** Puts entries together. `aids.profile` is a profile like those in the files. */
export function casesOf({ entries }: Entries, options: HostOptions, builder: ReadingBuilder): Cases {
  const maker = new Maker();
  const given = options.aids?.['profile'];
  if (given !== undefined) maker.addGiven(given, builder);
  for (const [index, entry] of entries.entries()) if (entry.said.kind !== 'line') maker.add(entry, index);
  maker.selectProfiles();
  maker.addLogs(entries);
  return maker;
}

/** Nonces of episodes, as the files state them or as they follow. */
interface KnownNonces {
  readonly byNonce: ReadonlyMap<string, string>;
  readonly first: string | undefined;
  /** Whether some episode has none. */
  readonly isOpen: boolean;
}

/** Prefixes of nonces that are tried for an episode without its own: each takes a hash for each start of an episode. */
const MAX_PREFIXES = 64;

class Maker {
  readonly episodes = new Map<string, Episode>();
  readonly profiles: Of<ProfileReading>[] = [];
  readonly caseOf = new Map<Entry, Case>();
  readonly episodeOf = new Map<Entry, string>();
  readonly lines = new Map<Entry, ToolIntent | ToolResponse>();
  readonly badLines: BadLine[] = [];
  /** Logs whose nonce nothing in the files confirms, with their first frame. */
  readonly unverified: Entry[] = [];
  readonly actuations: Of<Fields>[] = [];
  readonly #cases = new Map<string, Case>();
  readonly #episodeOfSession = new Map<string, string>();
  readonly #episodeOfRequest = new Map<string, string>();
  readonly #given: AdapterProfile[] = [];
  #named = 0;
  #firstNamed: string | undefined;

  addGiven(file: HostFile, builder: ReadingBuilder): void {
    const { profile, faults } = readAdapterProfile(file.bytes);
    if (profile !== undefined) this.#given.push(profile);
    for (const { code, pointer, expected, actual } of profile === undefined ? faults : [])
      builder.find(
        finding('PROFILE_INVALID', { file: file.name, pointer }, { about: code, expected, actual }),
      );
  }

  add(entry: Entry, index: number): void {
    const { said } = entry;
    if (said.kind === 'receipt') {
      const { episodeId, requestId } = said.receipt;
      this.#case(episodeId, requestId, entry).receipts.push({ entry, index, value: said.receipt });
    } else if (said.kind === 'index')
      this.#episode(said.index.episodeId, entry).indexes.push({ entry, index, value: said.index });
    else if (said.kind === 'profile') this.profiles.push({ entry, index, value: said.profile });
    else if (said.kind === 'budget') {
      const id = said.episode ?? this.#onlyEpisode() ?? '';
      this.#episode(id, entry).budget ??= { entry, index, value: said.caps };
    } else if (said.kind === 'event') this.#addEvent(entry, index);
  }

  #addEvent(entry: Entry, index: number): void {
    if (entry.said.kind !== 'event') return;
    const { kind, fields } = entry.said.event;
    const of = { entry, index, value: fields };
    const session = fields.text('session_id');
    const stated = fields.text('episode_id');
    if (kind === 'attributed') {
      if (stated !== undefined && session !== undefined && !this.#episodeOfSession.has(session))
        this.#episodeOfSession.set(session, stated);
      this.#episode(stated ?? '', entry).attributions.push(of);
      return;
    }
    const ofSession = session === undefined ? undefined : this.#episodeOfSession.get(session);
    const known = stated ?? ofSession;
    if (kind === 'spawned') {
      this.#episode(known ?? '', entry).spawns.push(of);
      return;
    }
    const request = fields.text('request_id');
    if (kind === 'actuation') this.actuations.push(of);
    const isOfRequest =
      kind === 'requested' || kind === 'decided' || kind === 'executed' || kind === 'actuation';
    if (!isOfRequest || request === undefined) {
      if (known !== undefined) this.episodeOf.set(entry, known);
      return;
    }
    const episode = known ?? this.#episodeOfRequest.get(request) ?? '';
    const scope = session === undefined ? undefined : `session-${session}`;
    const found = this.#case(episode, request, entry, scope);
    found[kind === 'actuation' ? 'actuations' : kind].push(of);
  }

  #episode(id: string, entry: Entry): Episode {
    this.episodeOf.set(entry, id);
    let episode = this.episodes.get(id);
    if (episode === undefined) {
      episode = {
        id,
        cases: [],
        attributions: [],
        indexes: [],
        spawns: [],
        budget: undefined,
        profile: undefined,
        logs: new Set(),
        hasResponses: false,
      };
      this.episodes.set(id, episode);
      if (id !== '') {
        this.#named += 1;
        this.#firstNamed ??= id;
      }
    }
    return episode;
  }

  #case(episodeId: string, request: string, entry: Entry, scope?: string): Case {
    const key = `${episodeId}\0${request}`;
    let found = this.#cases.get(key);
    const episode = this.#episode(episodeId, entry);
    if (found === undefined) {
      found = {
        episode: episodeId,
        request,
        scope: episodeId,
        requested: [],
        intents: [],
        decided: [],
        executed: [],
        receipts: [],
        responses: [],
        actuations: [],
      };
      this.#cases.set(key, found);
      episode.cases.push(found);
    }
    if (found.scope === '' && scope !== undefined) found.scope = scope;
    this.caseOf.set(entry, found);
    if (episodeId !== '') this.#episodeOfRequest.set(request, episodeId);
    return found;
  }

  #onlyEpisode(): string | undefined {
    return this.#named === 1 ? this.#firstNamed : undefined;
  }

  /** By the hash that the attribution states, and by nothing else. */
  selectProfiles(): void {
    const byHash = new Map<string | undefined, AdapterProfile>();
    for (const profile of this.#usable()) if (!byHash.has(profile.hash)) byHash.set(profile.hash, profile);
    for (const episode of this.episodes.values())
      episode.profile = byHash.get(episode.attributions[0]?.value.hash('adapter_profile_hash'));
  }

  #usable(): AdapterProfile[] {
    return [...this.#given, ...this.profiles.flatMap(({ value }) => value.profile ?? [])];
  }

  addLogs(entries: readonly Entry[]): void {
    const logs = new Map<string, { entry: Entry; index: number }[]>();
    for (const [index, entry] of entries.entries()) {
      if (entry.said.kind !== 'line') continue;
      addTo(logs, entry.at.file, { entry, index });
    }
    const byNonce = this.#nonces();
    // A log may be that of an episode of which nothing says what its nonce is.
    const known = new Set(byNonce.values());
    const isOpen = [...this.episodes.keys()].some((id) => id !== '' && !known.has(id));
    const [first] = byNonce.keys();
    for (const log of logs.values()) this.#addLog(log, { byNonce, first, isOpen });
  }

  /** The episode of each nonce that the files state, or that follows from when they say that an episode began. */
  #nonces(): Map<string, string> {
    const nonces = new Map<string, string>();
    const prefixes = [...new Set(this.#usable().flatMap(({ noncePrefix }) => noncePrefix ?? []))];
    const tried = prefixes.length > MAX_PREFIXES ? [] : prefixes;
    for (const episode of this.episodes.values()) {
      for (const { value } of episode.spawns) {
        const nonce = value.text('nonce');
        const time = value.count('spawn_time_ns');
        if (nonce !== undefined) nonces.set(nonce, episode.id);
        if (time === undefined || BigInt(time) >= 2n ** 64n) continue;
        const own = value.text('nonce_prefix') ?? episode.profile?.noncePrefix;
        // Without the episode's own prefix any that the files have may be it; where they have none, or too many, the nonce does not follow.
        const candidates = own === undefined ? tried : [own];
        for (const prefix of candidates)
          nonces.set(deriveNonce(prefix, episode.id, BigInt(time)), episode.id);
      }
    }
    return nonces;
  }

  #addLog(
    log: readonly { entry: Entry; index: number }[],
    { byNonce: nonces, first, isOpen }: KnownNonces,
  ): void {
    const seen = log.map(({ entry }) => nonceOf(entry));
    const isConfirmed =
      nonces.size > 0 && (!isOpen || seen.some((nonce) => nonce !== undefined && nonces.has(nonce)));
    const kernels = log.findIndex(({ entry }) => entry.said.kind === 'line' && entry.said.tag === 'TR1');
    const taken = seen[kernels < 0 ? seen.findIndex((nonce) => nonce !== undefined) : kernels];
    if (!isConfirmed) this.unverified.push(log[0]!.entry);
    for (const [i, { entry, index }] of log.entries()) {
      if (entry.said.kind !== 'line') continue;
      const nonce = isConfirmed && seen[i] !== undefined && nonces.has(seen[i]) ? seen[i] : undefined;
      const expected = isConfirmed ? (nonce ?? first) : taken;
      const ofNonce = expected === undefined ? undefined : nonces.get(expected);
      const episodeId = ofNonce ?? this.#onlyEpisode();
      const profile = episodeId === undefined ? undefined : this.episodes.get(episodeId)?.profile;
      const lineOptions = { nonce: expected, maxArgsSize: profile?.maxArgsSize };
      const { tag, text } = entry.said;
      const line = tag === 'TI1' ? parseToolIntent(text, lineOptions) : parseToolResponse(text, lineOptions);
      if (!line.ok) {
        this.badLines.push({ entry, index, fault: line.fault });
        continue;
      }
      const { value } = line;
      const found = this.#lineCase(entry, episodeId, value.requestId, value.nonce);
      this.lines.set(entry, value);
      if ('toolName' in value) found.intents.push({ entry, index, value });
      else {
        found.responses.push({ entry, index, value });
        this.episodes.get(found.episode)!.hasResponses = true;
      }
    }
  }

  #lineCase(entry: Entry, episode: string | undefined, request: string, nonce: string): Case {
    const id = episode ?? this.#episodeOfRequest.get(request) ?? '';
    const found = this.#case(id, request, entry, `nonce-${nonce}`);
    this.episodes.get(id)!.logs.add(entry.at.file);
    return found;
  }
}

function nonceOf({ said }: Entry): string | undefined {
  return said.kind === 'line' ? /^\s*\u27E6T[IR]1 ([^\u27E7]*)\u27E7/u.exec(said.text)?.[1] : undefined;
}
