/** Tool uses as all files together show them: who proposed them, what was decided, how they ended. */

import type { Digest } from '../../value/digest.js';
import { toDigestText } from '../../value/digest.js';
import type { MeterVector } from '../../value/meter.js';
import type { HostPlace } from '../host.js';

/** Where something was said. */
export type Speaker = 'hook' | 'transcript';

/** That a tool is to run. */
export interface Proposal {
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
  /** The id of its claim. */
  readonly id: string;
  readonly tool: string;
  readonly paramsDigest: Digest | undefined;
  /** What the model is told of it; kept nowhere. */
  readonly reason?: string | undefined;
  readonly at: HostPlace;
}

/** That it ran. */
export interface Ending {
  readonly from: Speaker;
  readonly outcome: 'success' | 'failure';
  readonly paramsDigest: Digest | undefined;
  readonly outputDigest: Digest | undefined;
  readonly meters: MeterVector;
  readonly at: HostPlace;
  readonly occurredAt: string;
}

/** One tool use. */
export interface Call {
  readonly id: string;
  readonly session: string;
  readonly proposals: Proposal[];
  readonly decisions: Decision[];
  ending: Ending | undefined;
  /** Whether its result says that no tool was called. */
  isNotCalled: boolean;
  /** Whether the files name it: a permission request that follows no PreToolUse does not. */
  readonly isNamed: boolean;
}

/** The tool uses of all files, by their ids. */
export class Calls {
  readonly #calls = new Map<string, Call>();
  /** The last that was proposed of a session, a tool and its parameters: permission requests name no id. */
  readonly #latest = new Map<string, Call>();

  get(id: string): Call | undefined {
    return this.#calls.get(id);
  }

  /** The tool use of that id, new where it is not known. */
  of(id: string, session: string, isNamed = true): Call {
    let call = this.#calls.get(id);
    if (call === undefined) {
      call = { id, session, proposals: [], decisions: [], ending: undefined, isNotCalled: false, isNamed };
      this.#calls.set(id, call);
    }
    return call;
  }

  propose(call: Call, proposal: Proposal): void {
    call.proposals.push(proposal);
    if (proposal.paramsDigest !== undefined)
      this.#latest.set(keyOf(call.session, proposal.tool, proposal.paramsDigest), call);
  }

  /** The last of these that has not ended. */
  open(session: string, tool: string, paramsDigest: Digest | undefined): Call | undefined {
    if (paramsDigest === undefined) return undefined;
    const call = this.#latest.get(keyOf(session, tool, paramsDigest));
    return call?.ending === undefined ? call : undefined;
  }

  /** What was decided of a tool use before anything named it, by its session, tool and parameters. */
  adopt(call: Call, tool: string, paramsDigest: Digest | undefined): void {
    const unnamed = this.open(call.session, tool, paramsDigest);
    if (unnamed === undefined || unnamed.isNamed || call.decisions.length > 0) return;
    call.decisions.push(...unnamed.decisions);
    this.#calls.delete(unnamed.id);
    this.#latest.set(keyOf(call.session, tool, paramsDigest!), call);
  }

  all(): Iterable<Call> {
    return this.#calls.values();
  }
}

function keyOf(session: string, tool: string, params: Digest): string {
  return JSON.stringify([session, tool, toDigestText(params.b64)]);
}

/** The proposal that counts: a hook is told what is to run, a transcript what the model asked for. */
export function proposalOf({ proposals }: Call): Proposal | undefined {
  return proposals.find(({ from }) => from === 'hook') ?? proposals[0];
}

/** The decision that counts: a denial is final, and of several that allow the last. */
export function decisionOf({ decisions }: Call): Decision | undefined {
  return decisions.find(({ decision }) => decision === 'deny') ?? decisions.at(-1);
}

/** Whether both are known, and they differ. */
export function differs(one: Digest | undefined, other: Digest | undefined): boolean {
  return one !== undefined && other !== undefined && one.b64 !== other.b64;
}
