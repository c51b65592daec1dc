/**
 * The ledgers of a small world, each once, as a tree of records: what the real programs make of one is asked once, and remembered. Ids,
 * digests and names of recorders are left out of a record's name, so that ledgers that differ in nothing else are one.
 */

import { NorthrootError } from '../../src/base/error.js';
import { hashToBase64url, leafHash } from '../../src/format/tree/compact-range.js';
import type { Report } from '../../src/rules/report/report.js';
import { makeKeyEntry } from '../../src/rules/trust/key-entry.js';
import { verifyChunks } from '../../src/rules/report/verify-chunks.js';
import { draftGrant } from '../../src/log/policy/draft-grant.js';
import type { GrantOptions } from '../../src/log/policy/draft-grant.js';
import type { TrustPolicy } from '../../src/format/schema/generated/types.js';
import type { LiveLedger, LiveLedgerOptions } from '../../src/log/agent/live-ledger.js';
import { type Account, type Accounts, accountsOf, type Line } from '../history.js';
import { signer } from '../writer/support.js';
import { HeldStore, type Lines } from './held-store.js';
import {
  AGENT,
  type Answer,
  type CallPlan,
  GRANTS,
  openLive,
  type Seen,
  type Step,
  SUB_AGENT,
  take,
  TIMES,
  untilQuiet,
} from './programs.js';

/** A record, and with those before it a ledger. */
export interface Node {
  /** Its place in the list of all. */
  readonly number: number;
  readonly before: Node | undefined;
  readonly size: number;
  /** With its `\n`. */
  readonly bytes: Uint8Array;
  readonly line: Line;
  /** `sha-256:…` */
  readonly id: string;
  readonly hash: string;
}

/** What a program did that was alone with a ledger. */
export interface Outcome {
  readonly number: number;
  /** The ledger that it saw. */
  readonly from: number;
  /** The records that it appends, in one group: each a ledger with those before. */
  readonly made: readonly number[];
  readonly answer: Answer;
  /** How often it was answered. */
  readonly settled: number;
}

/** What is known of a whole ledger. */
export interface Known {
  readonly lines: readonly Line[];
  readonly hashes: readonly string[];
  readonly report: Pick<Report, 'findings'>;
  readonly live: Accounts | undefined;
  readonly reported: Accounts;
}

export interface LedgerOptions {
  readonly calls: readonly CallPlan[];
  /** Of the first grant; the second is delegated from it, with one call less. */
  readonly grant: Partial<GrantOptions>;
  readonly subGrant: { readonly calls: number; readonly expires?: string };
  readonly policy?: LiveLedgerOptions['policy'];
  /** What is said to be left: to see that a wrong answer is found. */
  readonly budget?: (live: LiveLedger, grantId: string) => Promise<Account>;
  /** Default true. */
  readonly isStrict?: boolean;
  /** Whether nothing that is appended is ever answered. */
  readonly isMute?: boolean;
  /** Whether all is signed, and decided by a trust policy that pins the key, as an authority's too. */
  readonly isPinned?: boolean;
}

const ORIGIN = 'example.com/exploration';
const PINS: TrustPolicy = {
  trust_version: '1',
  keys: [makeKeyEntry(signer.publicKey, { roles: ['event', 'authority'], principals: ['*'] })],
};
/** In base64url, without its algorithm. */
export const A_DIGEST = /[A-Za-z0-9_-]{43}/g;

export class Ledgers {
  readonly nodes: Node[] = [];
  readonly outcomes: Outcome[] = [];
  /** How often real programs ran. */
  runs = 0;
  /** How often they were answered what. */
  readonly answers: Record<string, number> = {};
  readonly #options: LedgerOptions;
  readonly #children = new Map<string, Node>();
  readonly #outcomes = new Map<string, Outcome>();
  readonly #lines: (readonly Node[] | undefined)[] = [];
  readonly #known: (Known | undefined)[] = [];

  constructor(options: LedgerOptions) {
    this.#options = options;
  }

  /** The ledger with genesis and both grants. */
  async begin(): Promise<Node> {
    const lines: Lines = [];
    const create = { origin: ORIGIN, signing: { events: 'optional', checkpoints: 'optional' } } as const;
    const pinned = this.#options.isPinned === true ? { signer } : {};
    const live = await openLive(new HeldStore(lines), () => TIMES[0], { create, ...pinned });
    const { grant, subGrant } = this.#options;
    const options = { principalId: AGENT, allowedTools: ['*'], meterCaps: { calls: 2 }, ...grant };
    const { eventId } = await live.append({ event: draftGrant(options) });
    const { calls, expires } = subGrant;
    const own = { to: SUB_AGENT, parent: eventId, caps: { calls } };
    await live.delegate(expires === undefined ? own : { ...own, expires });
    await live.close();
    let node: Node | undefined;
    for (const line of lines) node = this.add(node, line);
    return node as Node;
  }

  /** The ledger with one more line, whatever that is. */
  add(before: Node | undefined, bytes: Uint8Array): Node {
    const line = JSON.parse(Buffer.from(bytes).toString()) as Line;
    const name = `${before?.number ?? ''}|${this.#nameOf(before, line)}`;
    const known = this.#children.get(name);
    if (known !== undefined) return known;
    const node: Node = {
      number: this.nodes.length,
      before,
      size: (before?.size ?? 0) + 1,
      bytes,
      line,
      id: `sha-256:${line.event.event_id.b64}`,
      hash: hashToBase64url(leafHash(bytes.subarray(0, -1))),
    };
    this.nodes.push(node);
    this.#children.set(name, node);
    return node;
  }

  /** Its records, in order. */
  recordsOf(number: number): readonly Node[] {
    const known = this.#lines[number];
    if (known !== undefined) return known;
    const node = this.nodes[number];
    const records = node.before === undefined ? [node] : [...this.recordsOf(node.before.number), node];
    this.#lines[number] = records;
    return records;
  }

  linesOf(number: number): Lines {
    return this.recordsOf(number).map(({ bytes }) => bytes);
  }

  seenOf(number: number): Seen {
    const records = this.recordsOf(number);
    return {
      calls: this.#options.calls,
      idAt: (seq) => records[seq]?.id ?? '',
      startedAt: (seq) => records[seq]?.line.event.started_at ?? '',
    };
  }

  /** What a program does that takes this step alone. */
  async outcomeOf(number: number, time: number, step: Step): Promise<Outcome> {
    return this.#once(`${number} ${time} ${JSON.stringify(step)}`, number, time, async (live) => {
      const answer = await take(live, step, this.seenOf(number), () => TIMES[time]);
      const { code = '', error = '', isRepeated = false } = answer;
      const words = [step.kind, code, error, isRepeated ? 'again' : '']
        .filter((word) => word !== '')
        .join(' ');
      this.answers[words] = (this.answers[words] ?? 0) + 1;
      return answer;
    });
  }

  /** What is appended by a program that has decided by another ledger, and looks at this one no more. */
  async appendedTo(number: number, outcome: Outcome): Promise<Outcome> {
    return this.#once(`${number} stale ${outcome.number}`, number, 0, async (live) => {
      const told: number[] = [];
      for (const made of outcome.made) {
        const { line } = this.nodes[made];
        const {
          event_id: id,
          payload_digest: digest,
          ...event
        } = line.event as typeof line.event & {
          payload_digest: unknown;
        };
        void [id, digest];
        told.push((await live.append({ event, isAnew: true })).seq);
      }
      return { ...shifted(outcome, this.sizeOf(number) - this.sizeOf(outcome.from)), told };
    });
  }

  /** What a program appends that releases, besides, what it has just settled. */
  async releasedToo(outcome: Outcome, time: number): Promise<Outcome> {
    const [settled = 0] = outcome.made;
    const name = `${settled} released`;
    const made = await this.#once(name, settled, time, async (live) => {
      const { event } = this.nodes[settled].line;
      const {
        event_id: id,
        payload_digest: digest,
        ...rest
      } = event as typeof event & { payload_digest: unknown };
      void [id, digest];
      const release = { ...rest, outcome: 'failure', error_code: 'ABANDONED', meter_used: [] };
      await live.append({ event: release });
      return outcome.answer;
    });
    return this.#keep(`${name} too`, { ...outcome, made: [...outcome.made, ...made.made] });
  }

  sizeOf(number: number): number {
    return this.nodes[number].size;
  }

  /** The same answer of a program whose records have come elsewhere. */
  moved(number: number, outcome: Outcome): Outcome {
    const name = `${number} moved ${outcome.number}`;
    const known = this.#outcomes.get(name);
    if (known !== undefined) return known;
    let node = this.nodes[number];
    const made = outcome.made.map((each) => (node = this.add(node, this.nodes[each].bytes)).number);
    const answer = shifted(outcome, this.sizeOf(number) - this.sizeOf(outcome.from));
    return this.#keep(name, { from: number, made, answer, settled: 1 });
  }

  /** What the verifier says of it, and who decides. */
  async knownOf(number: number): Promise<Known> {
    const known = this.#known[number];
    if (known !== undefined) return known;
    const lines = this.linesOf(number);
    const trust = this.#options.isPinned === true ? { trust: PINS } : {};
    const report = await verifyChunks(Buffer.concat(lines), { threads: 1, now: TIMES[0], ...trust });
    const grantIds = GRANTS.map((seq) => this.recordsOf(number)[seq]?.id ?? '');
    const reported = new Map(report.grants.flatMap((grant) => [...accountsOf(grant.event_id, grant.meters)]));
    const { findings } = report;
    const records = this.recordsOf(number);
    const found = {
      lines: records.map(({ line }) => line),
      hashes: records.map(({ hash }) => hash),
      report: { findings },
      live: await this.#budgetOf(lines, grantIds),
      reported,
    };
    this.#known[number] = found;
    return found;
  }

  async #budgetOf(lines: Lines, grantIds: readonly string[]): Promise<Accounts | undefined> {
    const pinned = this.#options.isPinned === true ? { signer, trust: PINS } : {};
    const live = await openLive(new HeldStore([...lines]), () => TIMES[0], pinned).catch((error: unknown) => {
      // Nothing can be decided on what is broken.
      if (error instanceof NorthrootError) return undefined;
      throw error;
    });
    if (live === undefined) return undefined;
    const { budget = budgetOf } = this.#options;
    const accounts = new Map<string, Account>();
    for (const grantId of grantIds) accounts.set(grantId, await budget(live, grantId));
    await live.close();
    return accounts;
  }

  async #once(
    name: string,
    number: number,
    time: number,
    run: (live: LiveLedger) => Promise<Answer>,
  ): Promise<Outcome> {
    const known = this.#outcomes.get(name);
    if (known !== undefined) return known;
    this.runs += 1;
    const lines = this.linesOf(number);
    const { length } = lines;
    const { policy, isMute = false, isPinned = false } = this.#options;
    const forever = (): Promise<void> => new Promise(() => undefined);
    const store = new HeldStore(lines, isMute ? forever : undefined);
    const live = await openLive(store, () => TIMES[time], {
      policy,
      strict: this.#options.isStrict ?? true,
      ...(isPinned ? { signer, trust: PINS } : {}),
    });
    const answer = await untilQuiet(run(live));
    if (!isMute) await live.close();
    let node = this.nodes[number];
    const made = lines.slice(length).map((line) => (node = this.add(node, line)).number);
    const settled = answer === undefined ? 0 : 1;
    return this.#keep(name, { from: number, made, answer: answer ?? { told: [] }, settled });
  }

  #keep(name: string, outcome: Omit<Outcome, 'number'>): Outcome {
    const known = this.#outcomes.get(name);
    if (known !== undefined) return known;
    const kept = { ...outcome, number: this.outcomes.length };
    this.outcomes.push(kept);
    this.#outcomes.set(name, kept);
    return kept;
  }

  /** A record without what is drawn, or follows from the rest. */
  #nameOf(before: Node | undefined, { seq, event }: Line): string {
    const {
      event_id: id,
      payload_digest: digest,
      recorder,
      ...rest
    } = event as Line['event'] & {
      payload_digest: unknown;
      recorder?: unknown;
    };
    void [id, digest, recorder];
    const records = before === undefined ? [] : this.recordsOf(before.number);
    const text = JSON.stringify({ seq, ...rest });
    return text.replace(A_DIGEST, (b64) => {
      const at = records.findIndex(({ line }) => line.event.event_id.b64 === b64);
      return at === -1 ? b64 : `#${at}`;
    });
  }
}

export async function budgetOf(live: LiveLedger, grantId: string): Promise<Account> {
  const { balances } = await live.budget(grantId);
  return accountsOf(grantId, balances).get(grantId) as Account;
}

/** Records that an answer names have come elsewhere. */
function shifted({ answer }: Outcome, by: number): Answer {
  const move = (seq: number): number => seq + by;
  return {
    ...answer,
    ...(answer.auth === undefined || answer.isRepeated === true ? {} : { auth: move(answer.auth) }),
    ...(answer.start === undefined ? {} : { start: move(answer.start) }),
    told: answer.told.map(move),
  };
}
