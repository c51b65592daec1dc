/** The flags of `northroot hook`, as they are typed and as they are used. It loads nothing of the command line: see hook-client.ts. */

import { isPrincipalId, isPrincipalPattern } from '../base/value/principal.js';
import { besidePath, placeName } from '../log/fs/place.js';
import type { HookOptions } from '../gate/hook/options.js';
import type { HookProfile } from '../gate/hook/profile.js';
import { shellWord } from './shell-word.js';

/** As typed, by the names of the flags in camelCase. */
export type HookFlags = Readonly<Partial<Record<keyof typeof FLAGS, string>>>;

/** Those that {@link readHookFlags} takes, each with a value. */
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

/** What a flag is where it is not given. */
export const USUAL = { onAllow: 'none', onAsk: 'deny', fail: 'closed', wait: '0', deadline: '25s' } as const;

/** A hook's options, and whom to ask. */
export interface HookChoice extends HookOptions {
  /** The ledger's path; undefined where only a service is asked. */
  readonly ledger: string | undefined;
  /** The service's socket; undefined for none. */
  readonly socket: string | undefined;
  readonly tokenFile: string | undefined;
}

/** No approval is waited for longer than a day. */
const MAX_SECONDS = 86_400;
const SPAN = /^(\d{1,6}(?:\.\d{1,3})?)(s|m|h)?$/;
const SECONDS = { s: 1, m: 60, h: 3_600 } as const;

/**
 * @param env - For `NORTHROOT_SOCKET`
 * @throws RangeError naming the malformed flag; NorthrootError `STORE_URL_INVALID`
 */
export function readHookFlags(
  profile: HookProfile,
  flags: HookFlags,
  env: Readonly<Record<string, string | undefined>>,
): HookChoice {
  const { principal = profile.principal, subagents, tokenFile } = flags;
  const ledger = flags.ledger === undefined ? undefined : placeName(flags.ledger);
  const { onAllow, onAsk, fail, wait, deadline } = { ...USUAL, ...flags };
  if (!isPrincipalId(principal)) throw new RangeError('--principal: expected a principal such as agent:a1');
  if (subagents !== undefined && !isPrincipalPattern(`${subagents}*`))
    throw new RangeError('--subagents: expected what principals begin with, such as agent:claude-code/');
  const named = flags.socket ?? (env['NORTHROOT_SOCKET'] || undefined);
  return {
    ledger,
    socket: named ?? (ledger === undefined ? undefined : besidePath(ledger, '.sock')),
    tokenFile,
    principal,
    subagents,
    onAllow: oneOf('--on-allow', onAllow, ['none', 'allow'] as const),
    onAsk: oneOf('--on-ask', onAsk, ['deny', 'ask'] as const),
    fail: oneOf('--fail', fail, ['closed', 'open'] as const),
    waitMs: span('--wait', wait),
    deadlineMs: span('--deadline', deadline),
    howToApprove: (authorization) => `northroot approve ${shellWord(ledger ?? 'LEDGER')} ${authorization}`,
  };
}

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
