/** The words of findings, with everything from a ledger made printable. The codes are the contract, the words are not. */

import { printable } from '../../base/bytes/printable.js';
import { CODE_PAGES } from './catalog.js';
import type { Finding, FindingContext } from './finding.js';

/** The finding in one line, without its place: lower case, no full stop. */
export function describeFinding(finding: Finding): string {
  const { code, at, expected, actual } = finding;
  const where = at.pointer === undefined || at.pointer === '' ? '' : ` at ${printable(at.pointer)}`;
  const [, keyid] = code === 'SIGNATURE_INVALID' ? (SIGNATURE_BY.exec(expected ?? '') ?? []) : [];
  const [related] = finding.related ?? [];
  const see = related === undefined ? '' : ` (see ${printable(related.file)}:${related.line})`;
  if (keyid !== undefined)
    return `the signature by ${printable(keyid)} does not match this content${where}${see}`;
  const [, seq] = code === 'KEY_NOT_VALID_HERE' ? (REVOKED_AT.exec(expected ?? '') ?? []) : [];
  const [, revoked] = REVOKED_KEY.exec(actual ?? '') ?? [];
  if (seq !== undefined && revoked !== undefined)
    return `${revoked} signed, which was revoked at seq ${seq}${where}${see}`;
  let message: string = CODE_PAGES[code].title + where;
  if (expected === 'no such member') return `${message}: unknown member${see}`;
  if (expected !== undefined) message += `: expected ${printable(expected)}`;
  if (actual !== undefined) message += `${expected === undefined ? ':' : ','} found ${printable(actual)}`;
  return message + see;
}

/** The claimed act of a finding's event: `agent:a1 ran shell.rm for 3 usd`. Undefined for other events and malformed ones. */
export function describeSubject(context: FindingContext): string | undefined {
  const { principalId, toolName, eventType, amounts } = context;
  if (eventType === undefined || principalId === undefined) return undefined;
  const who = printable(principalId);
  const sum = amounts === undefined ? '' : ` for ${printable(amounts)}`;
  if (toolName === undefined)
    return `a grant to ${who}${amounts === undefined ? '' : ` of ${printable(amounts)}`}`;
  return `${who} ${eventType === 'execution' ? 'ran' : 'asked to run'} ${printable(toolName)}${sum}`;
}

/** `expected` and `actual` of a signature after its key was revoked. */
const REVOKED_AT = /^a signature before the key was revoked at seq (\d+)$/;
const REVOKED_KEY = /^one by ([A-Za-z0-9_-]{43}) after it$/;

/** `expected` of an invalid signature by a known key. */
const SIGNATURE_BY = /^a signature by ([A-Za-z0-9_-]{43})$/;
