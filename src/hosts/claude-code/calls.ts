/** Tool uses as all files together show them: who proposed them, what was decided, how they ended. */

import { type Digest, toDigestText } from '../../base/value/digest.js';
import type { MeterVector } from '../../base/value/meter.js';
import type { HostPlace } from '../shared/host.js';

/** Where something was said. */
type Speaker = 'hook' | 'transcript';

interface Proposal {
  readonly from: Speaker;
  readonly tool: string;
  readonly paramsDigest: Digest | undefined;
  readonly at: HostPlace;
  readonly occurredAt: string;
}

/** That it may, or may not. */
export interface Decision {
  readonly decision: 'allow' | 'deny';
  readonly code: string;
  readonly id: string;
  /** What its id begins with. */
  readonly name: string;
  readonly tool: string;
  readonly paramsDigest: Digest | undefined;
  /** What the model is told of it; kept nowhere. */
  readonly reason?: string | undefined;
  readonly at: HostPlace;
}

/** What was decided of one tool use. A file may say as much of one as of all: none of it is looked through. */
export class Decisions implements Iterable<Decision> {
  readonly #all: Decision[] = [];
  #denial: Decision | undefined;
  readonly #allowedBy = new Map<string, Decision>();
  readonly #counts = new Map<string, number>();
  /** The reasons of denials, as results that are errors say them. */
  readonly reasons = new Set<string>();

  get length(): number {
    return this.#all.length;
  }

  add(each: Decision): void {
    const { decision, code, name, reason = '' } = each;
    this.#all.push(each);
    this.#counts.set(name, this.countOf(name) + 1);
    if (decision === 'deny') {
      this.#denial ??= each;
      if (reason !== '') this.reasons.add(reason.trim());
    } else if (!this.#allowedBy.has(code)) this.#allowedBy.set(code, each);
  }

  /** The first denial, or the first of that code that allows. */
  first(decision: Decision['decision'], code: string): Decision | undefined {
    return decision === 'deny' ? this.#denial : this.#allowedBy.get(code);
  }

  /** How many have ids that begin with this name. */
  countOf(name: string): number {
    return this.#counts.get(name) ?? 0;
  }

  /** The one that counts: a denial is final, and of several that allow the last. */
  get final(): Decision | undefined {
    return this.#denial ?? this.#all.at(-1);
  }

  [Symbol.iterator](): Iterator<Decision> {
    return this.#all.values();
  }
}

export interface Ending {
  readonly from: Speaker;
  readonly outcome: 'success' | 'failure' | 'unknown';
  readonly paramsDigest: Digest | undefined;
  readonly outputDigest: Digest | undefined;
  readonly meters: MeterVector;
  readonly at: HostPlace;
  readonly occurredAt: string;
}

export type Actor = Pick<Call, 'session' | 'agent'>;

export interface Call {
  /** What names it among all of its host. */
  readonly id: string;
  readonly callId: string;
  readonly session: string;
  /** The subagent whose tool use it is; undefined where it is the session's own agent. */
  readonly agent: string | undefined;
  readonly proposals: Proposal[];
  readonly decisions: Decisions;
  ending: Ending | undefined;
  /** Whether a permission request was taken for its own. */
  wasRequested: boolean;
  /** Whether its result says that no tool was called. */
  isNotCalled: boolean;
  /** Whether the files name it: a permission request that follows no PreToolUse does not. */
  readonly isNamed: boolean;
}

/** Tool uses of one tool and parameters that are open at once, of which permission requests are told apart. */
const MAX_OPEN = 64;

/** The tool uses of all files, by their ids. */
export class Calls {
  readonly #calls = new Map<string, Call>();
  /** Those of a session, a tool and its parameters that may be open, in order: permission requests name no id. */
  readonly #alike = new Map<string, Call[]>();
  readonly #nameOf: (id: string, actor: Actor) => string;

  /** @param nameOf - What names a tool use among all of its host, where its id does not. */
  constructor(nameOf: (id: string, actor: Actor) => string = (id) => id) {
    this.#nameOf = nameOf;
  }

  get(id: string): Call | undefined {
    return this.#calls.get(id);
  }

  find(callId: string, actor: Actor): Call | undefined {
    return this.#calls.get(this.#nameOf(callId, actor));
  }

  /** The tool use of that id, new where it is not known. */
  of(callId: string, actor: Actor, isNamed = true): Call {
    const { session, agent } = actor;
    const id = this.#nameOf(callId, actor);
    let call = this.#calls.get(id);
    if (call === undefined) {
      call = {
        id,
        callId,
        session,
        agent,
        proposals: [],
        decisions: new Decisions(),
        ending: undefined,
        wasRequested: !isNamed,
        isNotCalled: false,
        isNamed,
      };
      this.#calls.set(id, call);
    }
    return call;
  }

  propose(call: Call, proposal: Proposal): void {
    call.proposals.push(proposal);
    if (proposal.paramsDigest !== undefined)
      this.#add(keyOf(call.session, proposal.tool, proposal.paramsDigest), call);
  }

  #add(key: string, call: Call): void {
    const alike = this.#alike.get(key) ?? [];
    if (!alike.includes(call)) this.#alike.set(key, [...alike.filter(isOpen).slice(1 - MAX_OPEN), call]);
  }

  #openOnes(session: string, tool: string, paramsDigest: Digest | undefined): readonly Call[] {
    if (paramsDigest === undefined) return [];
    return this.#alike.get(keyOf(session, tool, paramsDigest))?.filter(isOpen) ?? [];
  }

  /** The last of these that has not ended. */
  open(session: string, tool: string, paramsDigest: Digest | undefined): Call | undefined {
    return this.#openOnes(session, tool, paramsDigest).at(-1);
  }

  /**
   * The one that a permission request is of: the first that has not ended and was not requested yet, else the last; undefined for one that
   * nothing named before.
   */
  request(session: string, tool: string, paramsDigest: Digest | undefined): Call | undefined {
    const open = this.#openOnes(session, tool, paramsDigest);
    const call = open.find(({ wasRequested }) => !wasRequested) ?? open.findLast(({ isNamed }) => isNamed);
    if (call !== undefined) call.wasRequested = true;
    return call;
  }

  /** What was decided of a tool use before anything named it, by its session, tool and parameters. */
  adopt(call: Call, tool: string, paramsDigest: Digest | undefined): void {
    const unnamed = this.#openOnes(call.session, tool, paramsDigest).find(({ isNamed }) => !isNamed);
    if (unnamed === undefined || call.decisions.length > 0) return;
    for (const decision of unnamed.decisions) call.decisions.add(decision);
    this.#calls.delete(unnamed.id);
    const key = keyOf(call.session, tool, paramsDigest!);
    this.#alike.set(
      key,
      (this.#alike.get(key) ?? []).filter((each) => each !== unnamed),
    );
    this.#add(key, call);
  }

  all(): Iterable<Call> {
    return this.#calls.values();
  }
}

function isOpen({ ending }: Call): boolean {
  return ending === undefined;
}

function keyOf(session: string, tool: string, params: Digest): string {
  return JSON.stringify([session, tool, toDigestText(params.b64)]);
}

/** The proposal that counts: a hook is told what is to run, a transcript what the model requested. */
export function proposalOf({ proposals }: Call): Proposal | undefined {
  return proposals.find(({ from }) => from === 'hook') ?? proposals[0];
}

/** Whether both are known, and they differ. */
export function differs(one: Digest | undefined, other: Digest | undefined): boolean {
  return one !== undefined && other !== undefined && one.b64 !== other.b64;
}
