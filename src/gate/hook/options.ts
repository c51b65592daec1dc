/** The options of a hook, as they are typed and as they are used. */

import { isPrincipalId, isPrincipalPattern } from '../../base/value/principal.js';
import type { HookProfile } from './profile.js';

export interface HookOptions {
  /** The ledger's path; undefined where only a service is asked. */
  readonly ledger: string | undefined;
  /** The service's socket; undefined for none. */
  readonly socket: string | undefined;
  readonly tokenFile: string | undefined;
  readonly principal: string;
  /** What the principals of subagents begin with. */
  readonly subagents: string | undefined;
  readonly onAllow: 'none' | 'allow';
  readonly onAsk: 'deny' | 'ask';
  /** What happens to a call where nobody can be asked. */
  readonly fail: 'closed' | 'open';
  /** How long to wait for approvals, in milliseconds. */
  readonly waitMs: number;
  /** How long the rest may take, in milliseconds. */
  readonly deadlineMs: number;
}

/** As typed, by the names of the flags in camelCase. */
export type HookFlags = Readonly<Partial<Record<keyof typeof FLAGS, string>>>;

/** The flags that {@link hookOptions} takes, each with a value. */
export const FLAGS = {
  ledger: '--ledger',
  socket: '--socket',
  tokenFile: '--token-file',
  principal: '--principal',
  subagents: '--subagents',
  onAllow: '--on-allow',
  onAsk: '--on-ask',
  fail: '--fail',
  wait: '--wait',
  deadline: '--deadline',
} as const;

/** Hosts give a hook 60 seconds unless told otherwise; the shortest, 30. */
const DEADLINE_SECONDS = 25;
/** A day: no approval is waited for longer. */
const MAX_SECONDS = 86_400;
const SPAN = /^(\d{1,6}(?:\.\d{1,3})?)(s|m|h)?$/;
const SECONDS = { s: 1, m: 60, h: 3_600 } as const;

/**
 * @param env - For `NORTHROOT_SOCKET`
 * @throws RangeError naming the malformed flag
 */
export function hookOptions(
  profile: HookProfile,
  flags: HookFlags,
  env: Readonly<Record<string, string | undefined>>,
): HookOptions {
  const { ledger, principal = profile.principal, subagents, tokenFile } = flags;
  if (!isPrincipalId(principal)) throw new RangeError('--principal: expected a principal such as agent:a1');
  if (subagents !== undefined && !isPrincipalPattern(`${subagents}*`))
    throw new RangeError('--subagents: expected what principals begin with, such as agent:claude-code/');
  const named = flags.socket ?? (env['NORTHROOT_SOCKET'] || undefined);
  return {
    ledger,
    socket: named ?? (ledger === undefined ? undefined : socketOf(ledger)),
    tokenFile,
    principal,
    subagents,
    onAllow: oneOf('--on-allow', flags.onAllow ?? 'none', ['none', 'allow']),
    onAsk: oneOf('--on-ask', flags.onAsk ?? 'deny', ['deny', 'ask']),
    fail: oneOf('--fail', flags.fail ?? 'closed', ['closed', 'open']),
    waitMs: span('--wait', flags.wait ?? '0'),
    deadlineMs: span('--deadline', flags.deadline ?? String(DEADLINE_SECONDS)),
  };
}

/** Where the service of a ledger listens: beside it, out of a folder of segments. */
export function socketOf(ledger: string): string {
  return `${ledger.replace(/\/+$/, '')}.sock`;
}

/** How long a host must wait for a hook with these options, in seconds. */
export function hostTimeout({ waitMs, deadlineMs }: HookOptions): number {
  return Math.ceil((waitMs + deadlineMs) / 1000) + GRACE_SECONDS;
}

/** For a process to begin and to end on a busy machine. */
const GRACE_SECONDS = 35;

function oneOf<T extends string>(flag: string, value: string, choices: readonly T[]): T {
  const found = choices.find((choice) => choice === value);
  if (found === undefined) throw new RangeError(`${flag}: expected ${choices.join(' or ')}`);
  return found;
}

function span(flag: string, text: string): number {
  const [, amount, unit = 's'] = SPAN.exec(text) ?? [];
  const seconds = Number(amount) * SECONDS[unit as keyof typeof SECONDS];
  if (!(seconds <= MAX_SECONDS))
    throw new RangeError(`${flag}: expected a time such as 30s, 10m or 2h, at most 24h`);
  return Math.round(seconds * 1000);
}
