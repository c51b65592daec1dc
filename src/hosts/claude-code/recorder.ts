/** What hooks and transcripts say of tool uses, as claims: each decision and each execution once, whichever source says it. */

import type { Digest } from '../../base/value/digest.js';
import type { FindingDetails } from '../shared/findings.js';
import type { HostPlace, SourceItem } from '../shared/host.js';
import { principalOf } from '../shared/names.js';
import type { ReadingBuilder } from '../shared/reading.js';
import {
  type Actor,
  type Call,
  type Calls,
  type Decision,
  differs,
  type Ending,
  proposalOf,
} from './calls.js';
import { type Code, finding } from './rules.js';

/** A host whose tool uses are reported by hooks and by a log of its sessions. */
export interface HookedHost {
  readonly name: string;
  /** What its rules begin with: `CC`. Those of one number say the same for each. */
  readonly rules: string;
  /** Whether a hook is told how a tool ended, and not only that it did. */
  readonly hooksKnowOutcomes: boolean;
}

const CLAUDE_CODE: HookedHost = { name: 'claude-code', rules: 'CC', hooksKnowOutcomes: true };

/** What the two readers share. */
export class Recorder {
  readonly reading: ReadingBuilder;
  readonly calls: Calls;
  readonly host: HookedHost;

  constructor(reading: ReadingBuilder, calls: Calls, host: HookedHost = CLAUDE_CODE) {
    this.reading = reading;
    this.calls = calls;
    this.host = host;
  }

  /** The agent of a session, or a subagent below it. */
  agentOf({ session, agent }: Actor): string {
    return principalOf('agent', this.host.name, session, ...(agent === undefined ? [] : [agent]));
  }

  find(code: Code, at: HostPlace, details: FindingDetails): void {
    const found = finding(code, at, details);
    this.reading.find({ ...found, rule: found.rule.replace(/^CC/, this.host.rules) });
  }

  /** The time of a line; without any it is dropped. */
  timeOf(item: SourceItem, type: string, stated: string | undefined, about?: string): string | undefined {
    const time = this.reading.timeOf(stated, item.at, about);
    if (time === undefined) this.reading.drop(item.at, type, 'TIME_NOT_STATED');
    return time;
  }

  /** Whether it is new: the same decision by the same speaker is recorded once, and so is a denial of what is denied. */
  decide(
    call: Call,
    { at, bytes }: SourceItem,
    said: Omit<Decision, 'at' | 'id'> & {
      readonly occurredAt: string;
    },
  ): boolean {
    const { decision, code, paramsDigest, name, tool, reason, occurredAt } = said;
    const before = call.decisions.first(decision, code);
    if (before !== undefined && !differs(before.paramsDigest, paramsDigest)) return false;
    const nth = call.decisions.countOf(name);
    const id = `${name}:${call.id}${nth === 0 ? '' : `:${nth + 1}`}`;
    call.decisions.add({ decision, code, id, name, tool, paramsDigest, reason, at });
    this.reading.claim({
      kind: 'action',
      id,
      at,
      bytes,
      occurredAt,
      principalId: this.agentOf(call),
      decision,
      decisionCode: code,
      tool,
      paramsDigest,
    });
    if (decision === 'deny' && call.ending !== undefined) this.#findDenied(call, call.ending);
    return true;
  }

  end(
    call: Call,
    { at, bytes }: SourceItem,
    {
      tool,
      errorCode,
      ...ending
    }: Omit<Ending, 'at'> & { readonly tool: string; readonly errorCode?: string | undefined },
  ): boolean {
    const before = call.ending;
    if (before !== undefined) {
      this.#compareEndings(call, before, { ...ending, at });
      return false;
    }
    call.ending = { ...ending, at };
    const decision = call.decisions.final;
    const { paramsDigest, outputDigest, outcome, meters, occurredAt } = ending;
    this.reading.claim({
      kind: 'execution',
      id: `execution:${call.id}`,
      at,
      bytes,
      occurredAt,
      principalId: this.agentOf(call),
      authorization: decision?.id,
      tool,
      paramsDigest,
      meters,
      outcome,
      errorCode,
      outputDigest,
    });
    if (decision === undefined) this.find('DECISION_NOT_STATED', at, { about: call.id });
    else if (decision.decision === 'deny') this.#findDenied(call, call.ending);
    else this.#checkAllowed(call, decision, tool, paramsDigest);
    return true;
  }

  /** Whether a denial and an execution are of one tool use, in whichever order they were read. */
  #findDenied(call: Call, { at }: Ending): void {
    const denial = call.decisions.final;
    this.find('RAN_AFTER_DENIAL', at, {
      about: call.id,
      expected: `no result, since it was denied: ${denial?.code ?? ''}`,
      ...(denial === undefined ? {} : { related: [denial.at] }),
    });
  }

  /** As a ledger has it: contradictory evidence, since it is unknown what was allowed. */
  #checkAllowed(call: Call, allowed: Decision, tool: string, ran: Digest | undefined): void {
    if (call.ending === undefined) return;
    const related = [allowed.at];
    if (allowed.tool !== tool) {
      const details = { about: call.id, expected: allowed.tool, actual: tool, related };
      this.find('TOOL_CHANGED', call.ending.at, details);
    }
    if (!differs(allowed.paramsDigest, ran)) return;
    this.find('PARAMS_CHANGED', call.ending.at, {
      about: call.id,
      expected: `parameters ${allowed.paramsDigest?.b64 ?? ''}`,
      actual: ran?.b64,
      related,
    });
  }

  #compareEndings(call: Call, before: Ending, now: Ending): void {
    const isSameSpeaker = before.from === now.from;
    const isSame =
      (before.outcome === now.outcome || before.outcome === 'unknown' || now.outcome === 'unknown') &&
      !(isSameSpeaker && differs(before.outputDigest, now.outputDigest)) &&
      !(isSameSpeaker && differs(before.paramsDigest, now.paramsDigest));
    if (isSame) return;
    const code = isSameSpeaker ? 'TWO_RESULTS' : 'OUTCOME_DISAGREES';
    this.find(code, now.at, {
      about: call.id,
      expected: isSameSpeaker ? 'the result as it was before' : before.outcome,
      actual: isSameSpeaker ? 'another' : now.outcome,
      related: [before.at],
    });
  }

  /** What only all lines together show: what has no end, and each tool use as it is compared with a ledger. */
  finish(): void {
    for (const call of this.calls.all()) {
      const proposal = proposalOf(call);
      const decision = call.decisions.final;
      const { ending } = call;
      const isOpen = ending === undefined && decision?.decision !== 'deny' && !call.isNotCalled;
      if (call.isNamed && proposal !== undefined && isOpen)
        this.find('RESULT_MISSING', proposal.at, { about: call.id });
      const at = ending?.at ?? decision?.at ?? proposal?.at;
      if (at === undefined) continue;
      this.reading.observe({
        at,
        callIds: call.isNamed ? [...new Set([call.callId, call.id])] : [],
        tool: proposal?.tool,
        paramsDigest: ending?.paramsDigest ?? decision?.paramsDigest ?? proposal?.paramsDigest,
        decision: decision?.decision,
        outcome: ending?.outcome,
        meters: ending?.meters ?? [],
        occurredAt: ending?.occurredAt ?? proposal?.occurredAt,
      });
    }
  }
}
