/** The recorded requests, asked of the live face: what it answers otherwise is the table of docs/hosts/clasper.md. */

import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { stepHash } from '../../../src/hosts/clasper/steps.js';
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

/** A trace with other tokens, its steps and its envelope hashed and signed again. */
function withTokens(request: object | null, jtis: ReadonlyMap<string, string>, isTampered: boolean): object {
  let text = JSON.stringify(request);
  for (const [before, after] of jtis) text = text.replaceAll(before, after);
  const edited = JSON.parse(text) as { readonly payload: { readonly trace: { readonly steps?: Step[] } } };
  let before: string | null = null;
  for (const step of isTampered ? [] : (edited.payload.trace.steps ?? [])) {
    step.prev_step_hash = before;
    delete step.step_hash;
    step.step_hash = before = stepHash(source(step), true);
  }
  return resign(edited as unknown as Json);
}

/** `N: recorded -> answered` of each recorded request that is answered otherwise. */
async function differences(compatible: boolean): Promise<string[]> {
  const lines = recordedText('clasper/run/http.jsonl').trimEnd().split('\n');
  expect(lines).toHaveLength(49);
  let ms = Date.parse('2026-11-21T20:07:19.800Z');
  const now = (): string => new Date((ms += 2)).toISOString();
  const { send } = await live(
    { signatures: 'warn', approveCapabilities: ['shell.exec'], compatible },
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
    const isTrace = path === '/api/ingest/trace';
    const body = isTrace ? withTokens(request, jtis, n === 44) : (request ?? undefined);
    const reply = await send(method, own, body, {
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
  return found;
}

/** The rows of the table: numbers, what was recorded, what is answered. */
function documented(): string[] {
  const page = readFileSync(new URL('../../../docs/hosts/clasper.md', import.meta.url), 'utf8');
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
    expect(await differences(false)).toEqual(rows);
  });

  it('are answered as duplicates where conflicts are to be', async () => {
    const rows = documented().filter((row) => !row.includes('200 duplicate -> 409'));
    expect(await differences(true)).toEqual(rows);
  });
});
