/** What the commands share that stand in the path of calls until they are stopped. */

import type { Command } from 'commander';
import { printable } from '../../base/bytes/printable.js';
import { defined } from '../../base/defined.js';
import { NorthrootError } from '../../base/error.js';
import { Gate, type GateOptions, type OverdueCall, type UnsettledCall } from '../../gate/gate.js';
import { isLoopback } from '../../gate/proxy/headers.js';
import { Tokens } from '../../gate/service/tokens.js';
import type { Signer } from '../../format/signature/signer.js';
import type { LiveLedgerOptions } from '../../log/agent/live-ledger.js';
import { readRecords } from '../../log/read/read-records.js';
import { openLedger } from '../../log/tile/tile-tree.js';
import { signingRuleOf } from '../../rules/trust/authority.js';
import { findEntitlementProblem, findRoleProblem, findValidityProblem } from '../../rules/trust/keyring.js';
import { judgingInstant } from '../../rules/trust/record-signing.js';
import type { VerifyState } from '../../rules/verify/state.js';
import type { Context } from '../context.js';
import { parseFile, readTrustPolicy } from '../input.js';
import { jsonText } from '../json-text.js';
import { spanOrNever } from '../options.js';
import { shellWord } from '../shell-word.js';
import type { Terminal } from '../terminal.js';
import { type AdviserChoice, advisersOf } from './advisers.js';
import { type DecidingChoice, decidingOptions, findSigner, keyPathOf } from './ledger-key.js';

/** Of a file of tokens. */
export const MAX_TOKENS_BYTES = 4 * 1024 * 1024;
const DEFAULT_SETTLE_AFTER_MS = 3_600_000;

export interface GateChoice extends DecidingChoice, AdviserChoice {
  readonly principal?: string;
  readonly ttl?: number;
  readonly attach?: boolean;
  readonly shadow?: boolean;
}

/** @param own - What the command itself says, before its options. @throws NorthrootError as `Gate.open` */
export async function openGate(
  { terminal }: Context,
  path: string,
  choice: GateChoice,
  own: LiveLedgerOptions & GateOptions,
): Promise<Gate> {
  const { principal: principalId, ttl: ttlMs, attach, shadow, honourImported } = choice;
  const trust = await readTrustPolicy(choice.trust);
  const signer = await findSigner(terminal, path, choice.key);
  const gate = await Gate.open(path, {
    ...(await decidingOptions(terminal, path, signer, choice)),
    advisers: await advisersOf(choice),
    ...defined({ trust, principalId, ttlMs, attach, shadow, honourImported }),
    ...own,
  });
  // What is wrong with the ledger, the first decision says.
  if (signer === undefined) await sayKeyless(terminal, path).catch(() => undefined);
  else {
    const refusal = await findSignerRefusal(path, gate, signer, principalId).catch(() => undefined);
    if (refusal !== undefined) {
      await gate.close();
      throw refusal;
    }
  }
  return gate;
}

/** Why this signer could sign no decision, which otherwise only the first call would say; undefined if it may. */
function findSignerRefusal(
  path: string,
  gate: Gate,
  { publicKey: { keyid } }: Signer,
  principal: string | undefined,
): Promise<NorthrootError | undefined> {
  const find = ({ keyring, signaturesRequired, clock }: VerifyState): NorthrootError | undefined => {
    const known = keyring.find(keyid);
    if (known === undefined) {
      if (!signaturesRequired) return undefined;
      const message = `no call can be decided: key ${keyid} is not one that the ledger declares`;
      return new NorthrootError('KEY_UNKNOWN', message, {
        hint: `give a key of the ledger: --key; northroot key list ${shellWord(path)} shows them`,
      });
    }
    const { hasAuthority } = keyring;
    const act = { type: 'authorization', principalId: principal ?? '', isAllow: false } as const;
    const rule = signingRuleOf(act, { hasAuthority });
    const instant = judgingInstant(clock, gate.ledger.now());
    const problem =
      principal === undefined
        ? (findRoleProblem(
            known,
            rule.anyOf.map(({ role }) => role),
          ) ?? findValidityProblem(known, instant))
        : findEntitlementProblem(known, rule, instant);
    if (problem === undefined) return undefined;
    const { code, expected, actual } = problem;
    const message = `no call can be decided: key ${keyid}: expected ${expected}, found ${actual}`;
    return new NorthrootError(code, printable(message, 400));
  };
  return gate.ledger.use((ledger) => ledger.inspect(find));
}

/** Without its key a gate can decide nothing: one that follows another would be found out when it is needed. */
async function sayKeyless(terminal: Terminal, path: string): Promise<void> {
  for await (const { event } of readRecords(await openLedger(path))) {
    const { signing } = event as { readonly signing?: { readonly events?: unknown } };
    if (signing?.events === 'required')
      terminal.say(
        `warning: no call can be decided: the ledger requires signatures, and there is no key ${printable(keyPathOf(path))} (--key, NORTHROOT_KEY)`,
      );
    return;
  }
}

/** What becomes of calls that killed processes began. */
export interface SettleAfterChoice {
  readonly settleAfter?: number;
}

export interface SettlingChoice extends SettleAfterChoice {
  readonly log: boolean;
}

/** Adds the option of {@link SettleAfterChoice}. */
export function withSettleAfter(command: Command): Command {
  return command.option(
    '--settle-after <span>',
    'when calls that killed processes began are settled as unknown: so long after their end, or never (default: 1h)',
    spanOrNever,
  );
}

/** Adds the options of {@link SettlingChoice}. */
export function withSettling(command: Command): Command {
  return withSettleAfter(command).option('--no-log', 'write no line per request');
}

type Settling = Pick<GateOptions, 'settleAfterMs' | 'onOverdue' | 'onUnsettled'>;

/** For `Gate.open`. */
export function settleAfterOptions(
  { settleAfter = DEFAULT_SETTLE_AFTER_MS }: SettleAfterChoice,
  onOverdue: Settling['onOverdue'],
): Settling {
  return { settleAfterMs: settleAfter, onOverdue };
}

/** Likewise, with a line of the log for each. */
export function settlingOptions(terminal: Terminal, choice: SettlingChoice): Settling {
  const log = (call: OverdueCall): void => logEvent(terminal, overdueEvent(call));
  if (!choice.log) return settleAfterOptions(choice, undefined);
  const onUnsettled = (call: UnsettledCall): void => logEvent(terminal, unsettledEvent(call));
  return { ...settleAfterOptions(choice, log), onUnsettled };
}

function unsettledEvent({ principal, authorization, error }: UnsettledCall): object {
  const code = error instanceof NorthrootError ? error.code : 'ERROR';
  const why = error instanceof Error ? error.message : String(error);
  return { unsettled: code, principal, authorization, error: printable(why, 400) };
}

function overdueEvent({ recorded, principal, tool, authorization, expires }: OverdueCall): object {
  return {
    settled: 'unknown',
    ...defined({ expires }),
    tool: printable(tool, 128),
    principal,
    authorization,
    execution: recorded.eventId,
  };
}

/** Warns where what is forwarded, keys included, can be read on the way. */
export function sayClearText(terminal: Terminal, upstream: string): void {
  const { protocol, hostname, host } = new URL(upstream);
  if (protocol !== 'http:' || isLoopback(hostname.replace(/^\[|\]$/g, ''))) return;
  terminal.say(
    `keys and contents go to ${printable(host)} unencrypted: use https unless the network is your own`,
  );
}

/** A line of JSON on standard error. */
export function logEvent(terminal: Terminal, event: object): void {
  terminal.say(jsonText({ time: new Date().toISOString(), ...event }));
}

/** @throws NorthrootError `TOKENS_INVALID`; `FILE_UNREADABLE` */
export async function readTokens(file: string | undefined): Promise<Tokens | undefined> {
  return file === undefined ? undefined : parseFile(file, MAX_TOKENS_BYTES, (bytes) => Tokens.parse(bytes));
}

/** Resolves when the signal aborts. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
