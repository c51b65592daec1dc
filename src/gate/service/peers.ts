/**
 * Several services for one ledger: one leads, the others forward to it, or take over when it is gone. Who leads is a matter of cost alone:
 * whoever decides does it under the ledger's write lock, upon all earlier records, and its record is appended only if nothing came between.
 * So there are no leases and no votes, and two that lead at once are both exact; the later one stays. A service asks its peers by the URLs
 * that it was given, and forwards requests as clients sent them, with their own tokens: it can speak for nobody.
 */

import { randomBytes } from 'node:crypto';
import { joinSignals } from '../../base/deadline.js';
import { NorthrootError } from '../../base/error.js';
import { isJsonObject } from '../../base/json/value.js';
import type { HttpRequest, HttpResponse } from '../../base/platform/serve-http.js';
import { requestJson } from '../json-client.js';
import { makeSharedAbort } from '../shared-abort.js';
import { FORWARDED, type Forwarded, Relay } from './relay.js';

export interface Standing {
  readonly role: 'leader' | 'follower';
  /** Which service it is, new with each start. */
  readonly id: string;
  /** The id of the ledger's genesis event, `sha-256:…`. */
  readonly ledger_id: string;
  /** How many records there were when it began to lead. */
  readonly since?: number | undefined;
}

export interface PeersOwner {
  readonly ledgerId: () => string;
  /** Records that it knows. */
  readonly size: () => number;
  /** Whether it could decide. */
  readonly isUsable: () => boolean;
  /** Reads all records under the lock. */
  readonly catchUp: () => Promise<void>;
  /** Reads others' records without the lock. */
  readonly readOn: () => Promise<void>;
  readonly onRole: (change: RoleChange) => void;
}

/** A service began to lead, or to follow. */
export interface RoleChange {
  readonly role: 'leader' | 'follower';
  /** The leader's URL, for a follower. */
  readonly leader?: string | undefined;
  /** Why nobody is followed. */
  readonly code?: 'LEDGER_MISMATCH' | 'LEDGER_ROLLED_BACK' | undefined;
  /** The ledger's name, where a service has several. */
  readonly ledger?: string | undefined;
}

/** How often peers are asked. */
const ROUND_MS = 500;
/** How long a peer may take to say how it is. */
const ANSWER_MS = 1_000;
/** A leader that is late so often is gone. */
const MAX_LATE = 2;
const MAX_HEALTH_BYTES = 64 * 1024;
/** How long a forwarded request is tried again while there is no leader. */
const RETRY_MS = 8_000;
/** Rounds between two readings of a follower. */
const READ_EVERY = 4;

interface Peer {
  readonly url: URL;
  readonly relay: Relay;
  /** Aborts when it is gone, so that nobody waits for its answers. */
  gone: AbortController;
  late: number;
}

interface Said {
  readonly peer: Peer;
  readonly standing: Standing | undefined;
  readonly isRolledBack: boolean;
  /** It may still come back to answer. */
  readonly isLate: boolean;
}

export class Peers {
  /** Tells this service apart from its peers, and from itself after a restart. */
  readonly id = randomBytes(12).toString('base64url');
  readonly #owner: PeersOwner;
  readonly #peers: readonly Peer[];
  /** Set while it leads: how many records there were when it began. */
  #since: number | undefined;
  #leader: Peer | undefined;
  /** A peer said that acknowledged records are gone: nobody goes on upon what is left. */
  #isRolledBack = false;
  #told = '';
  #round: Promise<void> | undefined;
  #rounds = 0;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  /** @param urls - Of the peers; its own may be among them */
  constructor(urls: readonly URL[], owner: PeersOwner) {
    this.#owner = owner;
    this.#peers = urls.map((url) => ({ url, relay: new Relay(url), gone: makeSharedAbort(), late: 0 }));
    this.#next(0);
  }

  get standing(): Standing {
    const ledgerId = this.#owner.ledgerId();
    const isLeader = this.#since !== undefined;
    return { role: isLeader ? 'leader' : 'follower', id: this.id, ledger_id: ledgerId, since: this.#since };
  }

  get leads(): boolean {
    return this.#since !== undefined;
  }

  /**
   * Has a request answered by the leader.
   * @param isRepeatable - Whether it may be asked again although it may have been done: its answer is the same then
   * @returns Undefined where this service is to answer
   * @throws NorthrootError `LEADER_GONE`: it may have been done all the same; `LEDGER_ROLLED_BACK`; the signal's reason
   */
  async forward(request: HttpRequest, isRepeatable: boolean): Promise<HttpResponse | undefined> {
    const end = performance.now() + RETRY_MS;
    for (;;) {
      if (this.#leader === undefined && !this.leads) await this.round();
      if (this.#isRolledBack) throw rolledBack();
      const leader = this.#leader;
      if (leader === undefined) return undefined;
      const either = joinSignals([request.signal, leader.gone.signal]);
      let forwarded: Forwarded;
      try {
        forwarded = await leader.relay.send(request, this.id, either.signal);
      } finally {
        either.clear();
      }
      if (typeof forwarded !== 'string') return forwarded;
      request.signal.throwIfAborted();
      const mayAgain = forwarded === 'refused' || isRepeatable;
      if (!mayAgain || performance.now() > end) throw leaderGone();
      // A round that began before may not know yet.
      await this.#round;
      await this.round();
    }
  }

  /** It cannot decide for now, and leaves it to others. */
  stepDown(): void {
    this.#since = undefined;
  }

  /** Asks all peers how they are. Rounds do not overlap. */
  round(): Promise<void> {
    return (this.#round ??= this.#ask().finally(() => (this.#round = undefined)));
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    for (const { relay, gone } of this.#peers) {
      gone.abort(new Error('closed'));
      relay.close();
    }
  }

  #next(ms: number): void {
    if (this.#isClosed) return;
    this.#timer = setTimeout(() => void this.round().finally(() => this.#next(ROUND_MS)), ms);
    this.#timer.unref();
  }

  async #ask(): Promise<void> {
    const said = await Promise.all(this.#peers.map((peer) => this.#hear(peer)));
    if (this.#isClosed) return;
    if (said.some(({ isRolledBack }) => isRolledBack)) this.#isRolledBack = true;
    const others = said.flatMap(({ peer, standing }) =>
      standing?.role === 'leader' && standing.ledger_id === this.#owner.ledgerId() && standing.id !== this.id
        ? [{ peer, standing }]
        : [],
    );
    const best = others.reduce<(typeof others)[number] | undefined>(
      (most, each) => (most !== undefined && isLater(most.standing, each.standing) ? most : each),
      undefined,
    );
    const isStranger = said.some(
      ({ standing }) => standing !== undefined && standing.ledger_id !== this.#owner.ledgerId(),
    );
    if (best !== undefined && (!this.leads || isLater(best.standing, this.standing))) this.#follow(best.peer);
    else if (!this.leads) this.#takeOver(said);
    this.#tell(isStranger);
    this.#rounds += 1;
    if (!this.leads && this.#owner.isUsable() && this.#rounds % READ_EVERY === 0)
      void this.#owner.readOn().catch(() => undefined);
  }

  #follow(peer: Peer): void {
    if (this.#leader !== peer) this.#leave();
    this.#since = undefined;
    this.#leader = peer;
  }

  /** Nobody leads, as far as is known. */
  #takeOver(said: readonly Said[]): void {
    // A busy machine answers late; whoever is gone is refused, or is late again.
    if (said.some(({ peer, isLate }) => peer === this.#leader && isLate && peer.late < MAX_LATE)) return;
    this.#leave();
    if (!this.#owner.isUsable() || this.#isRolledBack) return;
    const since = (this.#since = this.#owner.size());
    // What it decides rests on all records in any case. Who took over last is known by how many there were.
    const settle = (): void => {
      if (this.#since === since) this.#since = this.#owner.size();
    };
    this.#owner.catchUp().then(settle, () => undefined);
  }

  #leave(): void {
    this.#leader?.gone.abort(new Error('the leader is gone'));
    if (this.#leader !== undefined) this.#leader.gone = makeSharedAbort();
    this.#leader = undefined;
  }

  #tell(isStranger: boolean): void {
    const code = this.#isRolledBack ? 'LEDGER_ROLLED_BACK' : isStranger ? 'LEDGER_MISMATCH' : undefined;
    const change: RoleChange = {
      role: this.leads ? 'leader' : 'follower',
      leader: this.#leader?.url.href,
      code,
    };
    const text = JSON.stringify(change);
    if (text === this.#told) return;
    this.#told = text;
    this.#owner.onRole(change);
  }

  async #hear(peer: Peer): Promise<Said> {
    const silent = { peer, standing: undefined, isRolledBack: false };
    try {
      const url = new URL('healthz', peer.url);
      const { bytes } = await requestJson({
        url,
        method: 'GET',
        headers: { [FORWARDED]: this.id },
        timeoutMs: ANSWER_MS,
        maxBytes: MAX_HEALTH_BYTES,
      });
      peer.late = 0;
      const said: unknown = JSON.parse(Buffer.from(bytes).toString('utf8'));
      const standing = standingOf(said);
      const code = isJsonObject(said) ? said['code'] : undefined;
      const isRolledBack = code === 'LEDGER_ROLLED_BACK' && standing?.ledger_id === this.#owner.ledgerId();
      return { peer, standing, isRolledBack, isLate: false };
    } catch (error) {
      const isLate = error instanceof NorthrootError && error.code === 'PEER_TIMEOUT';
      peer.late = isLate ? peer.late + 1 : 0;
      return { ...silent, isLate };
    }
  }
}

/** Whether one began to lead later than another; of two that cannot be told apart by that, one by its id. */
function isLater(one: Standing, other: Standing): boolean {
  const [a, b] = [one.since ?? -1, other.since ?? -1];
  return a === b ? one.id > other.id : a > b;
}

function standingOf(said: unknown): Standing | undefined {
  if (!isJsonObject(said)) return undefined;
  const { role, id, ledger_id: ledgerId, since } = said;
  if (role !== 'leader' && role !== 'follower') return undefined;
  if (typeof id !== 'string' || typeof ledgerId !== 'string') return undefined;
  return {
    role,
    id,
    ledger_id: ledgerId,
    since: Number.isSafeInteger(since) ? (since as number) : undefined,
  };
}

function leaderGone(): NorthrootError {
  return new NorthrootError('LEADER_GONE', 'the service that decides went away before it answered', {
    hint: 'ask again, with the same id of the call',
  });
}

function rolledBack(): NorthrootError {
  return new NorthrootError(
    'LEDGER_ROLLED_BACK',
    'another service of this ledger found that acknowledged records are gone',
    { hint: 'restore them from where they still are, and start all services anew' },
  );
}
