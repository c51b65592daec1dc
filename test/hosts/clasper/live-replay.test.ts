/** The recorded requests, asked of the live face: what it answers otherwise is the table of src/hosts/clasper/README.md. */

import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { stepHash } from '../../../src/hosts/clasper/steps.js';
import { encodeUtf8 } from '../../../src/base/bytes/text.js';
import { clasper, type Exchange, writeExchange } from '../../../src/hosts/clasper/index.js';
import { reconcileLedger } from '../../../src/hosts/shared/reconcile.js';
import { readSource } from '../../../src/hosts/shared/reconcile-sources.js';
import { verifyLedger } from '../../../src/log/read/verify-ledger.js';
import { ledgerOf } from './kit.js';
import { hasRecordings, recordedText } from '../recorded.js';
import { claimsOf, type Json, live, resign, source } from './live-kit.js';

interface Recorded {
  readonly n: number;
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly request: object | null;
  readonly status: number;
  readonly response: Json | null;
}

interface Step {
  prev_step_hash?: string | null;
  step_hash?: string;
}

/** What both have to say alike. */
const COMPARED = ['allowed', 'decision', 'code', 'status'];

function comparable(status: number, body: Json | null): string {
  const said = COMPARED.flatMap((name) => {
    const value: unknown = body?.[name];
    return typeof value === 'string' || typeof value === 'boolean' ? [String(value)] : [];
  });
  return [String(status), ...said].join(' ');
}

/** A request with other tokens and the time of the recording, hashed and signed again. */
function rewritten(request: object | null, jtis: ReadonlyMap<string, string>, isTampered: boolean): unknown {
  const before = JSON.stringify(request);
  // The recorded adapter's clock was months behind.
  let text = before.replaceAll('2026-02-06T14:12', '2026-11-21T20:07');
  for (const [theirs, ours] of jtis) text = text.replaceAll(theirs, ours);
  if (text === before) return request ?? undefined;
  const edited = JSON.parse(text) as { readonly payload?: { readonly trace?: { readonly steps?: Step[] } } };
  let last: string | null = null;
  for (const step of isTampered ? [] : (edited.payload?.trace?.steps ?? [])) {
    step.prev_step_hash = last;
    delete step.step_hash;
    step.step_hash = last = stepHash(source(step), true);
  }
  return edited.payload === undefined ? edited : resign(edited as unknown as Json);
}

/** `N: recorded -> answered` of each recorded request that is answered otherwise. */
async function differences(
  compatible: boolean,
  onExchange: (exchange: Exchange) => Promise<void> = () => Promise.resolve(),
): Promise<{ readonly found: string[]; readonly path: string }> {
  const lines = recordedText('clasper/run/http.jsonl').trimEnd().split('\n');
  expect(lines).toHaveLength(49);
  let ms = Date.parse('2026-11-21T20:07:19.800Z');
  const now = (): string => new Date((ms += 2)).toISOString();
  const { send, path: ledger } = await live(
    { signatures: 'warn', approveCapabilities: ['shell.exec'], compatible, onExchange },
    {
      allowedTools: ['clasper.execution', 'filesystem.read', 'shell.exec', 'browser'],
      meterCaps: { usd: '100' },
    },
    now,
  );
  const [jtis, ids, tokens] = [
    new Map<string, string>(),
    new Map<string, string>(),
    new Map<string, string>(),
  ];
  const found: string[] = [];
  for (const line of lines) {
    const { n, method, path, headers, request, status, response } = JSON.parse(line) as Recorded;
    const known = [...ids].find(([before]) => path.includes(before));
    const own = known === undefined ? path : path.replace(known[0], encodeURIComponent(known[1]));
    const { 'x-decision-token': given, 'x-adapter-token': adapter = '' } = headers;
    const [mine = ''] = tokens.values();
    const decision = given === undefined || tokens.has(given) ? mine : `${mine.slice(0, -4)}AAAA`;
    const reply = await send(method, own, rewritten(request, jtis, n === 44), {
      'x-adapter-token': adapter,
      ...(given === undefined ? {} : { 'x-decision-token': decision }),
    });
    const { decision_id: id, decision_token: token, tool_token: tool } = response ?? {};
    if (typeof id === 'string' && method === 'POST') ids.set(id, reply.body['decision_id']);
    if (typeof token === 'string') tokens.set(token, reply.body['decision_token']);
    if (typeof tool === 'string') jtis.set(claimsOf(tool)['jti'], claimsOf(reply.body['tool_token'])['jti']);
    const [theirs, ours] = [comparable(status, response), comparable(reply.status, reply.body)];
    if (theirs !== ours) found.push(`${n}: ${theirs} -> ${ours}`);
  }
  return { found, path: ledger };
}

/** The rows of the table: numbers, what was recorded, what is answered. */
function documented(): string[] {
  const page = readFileSync(new URL('../../../src/hosts/clasper/README.md', import.meta.url), 'utf8');
  const rows = page.matchAll(/^\| ([\d, ]+?) +\| `(\d[^`]*)` +\| `(\d[^`]*)` +\|/gm);
  return [...rows]
    .flatMap(([, numbers = '', before = '', after = '']) =>
      numbers.split(', ').map((n) => [Number(n), `${n}: ${before} -> ${after}`] as const),
    )
    .sort(([a], [b]) => a - b)
    .map(([, row]) => row);
}

describe.skipIf(!hasRecordings)('the recorded requests', () => {
  it('are answered as the server did, but for the documented differences', async () => {
    const rows = documented();
    expect(rows).not.toHaveLength(0);
    expect((await differences(false)).found).toEqual(rows);
  });

  it('are answered as duplicates where conflicts are to be', async () => {
    const rows = documented().filter((row) => !row.includes('200 duplicate -> 409'));
    expect((await differences(true)).found).toEqual(rows);
  });

  it('leave a ledger with the verdict of an import of their recording, and reconcile finds both alike', async () => {
    const lines: string[] = [];
    const { path } = await differences(false, async (exchange) => {
      lines.push(`${writeExchange(exchange)}\n`);
      return Promise.resolve();
    });
    const recording = [{ name: 'http.jsonl', bytes: encodeUtf8(lines.join('')) }];
    const reading = clasper.read(recording);
    expect(reading.findings.filter(({ severity }) => severity === 'error')).toEqual([]);
    const { verdict } = await verifyLedger(path);
    expect([verdict, (await ledgerOf(reading)).verdict]).toEqual(['ok', 'ok']);
    const report = await reconcileLedger(path, [readSource(clasper, recording)]);
    expect(report.verdict).toBe('ok');
    expect(report.by_code).toEqual({ NOT_IN_SOURCES: expect.any(Number) as number });
    // What a recording states as a grant: requests that were denied, that wait, or that reported nothing of themselves.
    const alone = report.listed.filter(({ state }) => state === 'ledger_only');
    expect(new Set(alone.map(({ tool }) => tool))).toEqual(new Set(['clasper.execution']));
    expect(report.listed.filter(({ state }) => state === 'corroborated').length).toBeGreaterThan(3);
  });
});
