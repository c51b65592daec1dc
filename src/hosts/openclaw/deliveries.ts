/** Messages that were sent and agents that were started, as hooks show them: a decision, and what was done. */

import { addTo, jcsDigest, textAt, valueAt } from '../shared/values.js';
import { SourceObject, type SourceValue } from '../../base/json/source-json.js';
import type { ExecutionClaim, HostPlace } from '../shared/host.js';
import { codeOf } from '../shared/names.js';
import { type Context, type HookCall, hookText, shortDigest } from './context.js';
import type { Digest } from '../../base/value/digest.js';
import { ONE_CALL } from '../shared/usage.js';

export const SEND = 'openclaw.message.send';
export const SPAWN = 'openclaw.subagent.spawn';

interface Delivery {
  readonly id: string;
  readonly key: string;
  readonly at: HostPlace;
  readonly isAllowed: boolean;
}

export class Deliveries {
  readonly #context: Context;
  /** Those that nobody said were sent yet: by the digest of what was to be sent, in order. */
  readonly #waiting = new Map<string, Delivery[]>();
  readonly #spawns = new Map<string, Delivery>();

  constructor(context: Context) {
    this.#context = context;
  }

  sending(hook: HookCall): void {
    const context = this.#context;
    const { entry, base, returned, scope } = hook;
    const content = textAt(returned, 'content');
    const params = messageOf(hook, content);
    const isCancelled = valueAt(returned, 'cancel') === true;
    const key = context.uniqueId(`${scope}/${shortDigest(messageOf(hook), entry.bytes)}`);
    const id = `decision:message:${key}`;
    if (returned === undefined) {
      context.find('DECISION_NOT_RECORDED', entry.at, {
        about: key,
        expected: 'what the hook returned',
        weight: 'warning',
      });
      context.evidence(entry, base, `message:${key}`, 'hook', { hook: 'message_sending' });
      return;
    }
    const isUndecided = !isCancelled && content === undefined;
    context.builder.claim({
      ...base,
      kind: 'action',
      id,
      tool: SEND,
      decision: isCancelled ? 'deny' : 'allow',
      decisionCode: isCancelled
        ? 'OPENCLAW_MESSAGE_CANCELLED'
        : isUndecided
          ? 'OPENCLAW_NO_DECISION'
          : 'OPENCLAW_MESSAGE_REWRITTEN',
      paramsDigest: jcsDigest(params),
      checks: isUndecided ? [{ check: 'openclaw.decision', result: 'pass', code: 'NO_DECISION' }] : [],
    });
    context.fate(entry, 'mapped');
    if (isUndecided) context.find('NO_DECISION', entry.at, { about: key });
    const waitingKey = shortDigest(params, entry.bytes);
    const delivery: Delivery = { id, key, at: entry.at, isAllowed: !isCancelled };
    addTo(this.#waiting, waitingKey, delivery);
  }

  sent(hook: HookCall): void {
    const context = this.#context;
    const { entry, base, event, scope } = hook;
    const params = messageOf(hook);
    const delivery = this.#waiting.get(shortDigest(params, entry.bytes))?.shift();
    const key = delivery?.key ?? context.uniqueId(`${scope}/~${shortDigest(params, entry.bytes)}`);
    const success = valueAt(event, 'success');
    const outcome = success === true ? 'success' : success === false ? 'failure' : 'unknown';
    if (delivery === undefined) this.#missing(entry.at, key, 'a message_sending of the same content');
    else if (!delivery.isAllowed) {
      // An attempt that failed is what a cancelled message looks like.
      if (outcome === 'failure') {
        context.evidence(entry, base, `held:message:${key}`, 'block_held', { decision: delivery.id });
        return;
      }
      this.#afterBlock(entry.at, key, delivery.at);
    }
    context.builder.claim({
      ...base,
      kind: 'execution',
      id: `send:${key}`,
      authorization: delivery?.id,
      tool: SEND,
      paramsDigest: jcsDigest(params),
      meters: [ONE_CALL],
      outcome,
      errorCode: outcome === 'failure' ? 'SEND_FAILED' : undefined,
    });
    context.builder.observe({
      at: entry.at,
      callIds: [textAt(event, 'messageId') ?? key],
      tool: SEND,
      paramsDigest: jcsDigest(params),
      decision: delivery === undefined ? undefined : delivery.isAllowed ? 'allow' : 'deny',
      outcome,
      meters: [ONE_CALL],
      occurredAt: base.occurredAt,
    });
    context.fate(entry, 'mapped');
  }

  spawning(hook: HookCall): void {
    const context = this.#context;
    const { entry, base, event, returned } = hook;
    const child = hookText(hook, 'childSessionKey');
    const status = textAt(returned, 'status');
    const isRefused = status === 'error';
    const key = context.uniqueId(child ?? `~${shortDigest(event, entry.bytes)}`);
    const id = `decision:subagent:${key}`;
    context.builder.claim({
      ...base,
      kind: 'action',
      id,
      tool: SPAWN,
      decision: isRefused ? 'deny' : 'allow',
      decisionCode: isRefused
        ? 'OPENCLAW_SUBAGENT_REFUSED'
        : status === undefined
          ? 'OPENCLAW_NO_DECISION'
          : codeOf(`OPENCLAW_SUBAGENT_${status}`),
      paramsDigest: paramsOfChild(child),
      checks:
        isRefused || status !== undefined
          ? []
          : [{ check: 'openclaw.decision', result: 'pass', code: 'NO_DECISION' }],
    });
    context.fate(entry, 'mapped');
    if (!isRefused && status === undefined) context.find('NO_DECISION', entry.at, { about: key });
    if (child !== undefined) this.#spawns.set(child, { id, key, at: entry.at, isAllowed: !isRefused });
  }

  spawned(hook: HookCall): void {
    const context = this.#context;
    const { entry, base, event } = hook;
    const child = hookText(hook, 'childSessionKey');
    const delivery = child === undefined ? undefined : this.#spawns.get(child);
    if (child !== undefined) this.#spawns.delete(child);
    const key = delivery?.key ?? context.uniqueId(`~${child ?? shortDigest(event, entry.bytes)}`);
    if (delivery === undefined) {
      // Versions without subagent_spawning have no hook that could decide.
      const details = { about: key, expected: 'a subagent_spawning', actual: 'none' };
      context.find('DECISION_NOT_RECORDED', entry.at, details);
    } else if (!delivery.isAllowed) this.#afterBlock(entry.at, key, delivery.at);
    const outcome: ExecutionClaim['outcome'] = 'success';
    context.builder.claim({
      ...base,
      kind: 'execution',
      id: `spawn:${key}`,
      authorization: delivery?.id,
      tool: SPAWN,
      paramsDigest: paramsOfChild(child),
      meters: [ONE_CALL],
      outcome,
    });
    context.fate(entry, 'mapped');
  }

  #missing(at: HostPlace, about: string, expected: string): void {
    this.#context.find('BEFORE_MISSING', at, { about, expected, actual: 'none before it' });
  }

  #afterBlock(at: HostPlace, about: string, block: HostPlace): void {
    this.#context.find('EXECUTED_AFTER_BLOCK', at, { about, related: [block] });
  }
}

/** What a message is authorized by: where it goes and what it says. */
function messageOf({ event, ctx }: HookCall, content?: string): SourceObject {
  return new SourceObject(
    new Map<string, SourceValue>([
      ['channel', textAt(ctx, 'channelId') ?? null],
      ['content', content ?? valueAt(event, 'content') ?? null],
      ['to', valueAt(event, 'to') ?? null],
    ]),
  );
}

function paramsOfChild(child: string | undefined): Digest | undefined {
  return child === undefined ? undefined : jcsDigest(new SourceObject(new Map([['childSessionKey', child]])));
}
