/** The recorded requests, asked of the live face: what it answers otherwise is the list of docs/hosts/clasper.md. */

import { createPrivateKey, sign } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { stepHash } from '../../../src/hosts/clasper/steps.js';
import { envelopeSigningInput } from '../../../src/hosts/clasper/envelope.js';
import { stableHash } from '../../../src/hosts/shared/forms/stable.js';
import { hasRecordings, recordedText } from '../recorded.js';
import { claimsOf, type Reply, live, resign, source } from './live-kit.js';

interface Recorded {
  readonly n: number;
  readonly method: string;
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly request: any;
  readonly status: number;
  readonly response: any;
}

/** What both have to say alike. */
const COMPARED = ['allowed', 'decision', 'code', 'status', 'error'];

function comparable(status: number, body: Record<string, unknown> | null): string {
  const said = COMPARED.flatMap((name) => {
    const value = body?.[name];
    return typeof value === 'string' || typeof value === 'boolean' ? [`${name}=${value}`] : [];
  });
  return [String(status), ...said].join(' ');
}

/** A trace with other tokens, its steps and its envelope hashed and signed again. */
function withTokens(request: any, jtis: ReadonlyMap<string, string>, keepsHashes: boolean): any {
  let text = JSON.stringify(request);
  for (const [before, after] of jtis) text = text.replaceAll(before, after);
  const edited = JSON.parse(text);
  let before: string | null = null;
  for (const step of keepsHashes ? [] : (edited.payload.trace.steps ?? [])) {
    step.prev_step_hash = before;
    delete step.step_hash;
    step.step_hash = before = stepHash(source(step), true);
  }
  return resign(edited);
}

describe.skipIf(!hasRecordings)('the recorded requests', () => {
  it('are answered as the server did, but for the listed differences', async () => {
    const lines = recordedText('clasper/run/http.jsonl').trimEnd().split('\n');
    const recorded = lines.map((line) => JSON.parse(line) as Recorded);
    expect(recorded).toHaveLength(49);
    let ms = Date.parse('2026-11-21T20:07:19.800Z');
    const now = (): string => new Date((ms += 2)).toISOString();
    const { send } = await live(
      { signatures: 'warn', approveCapabilities: ['shell.exec'] },
      {
        allowedTools: ['clasper.execution', 'filesystem.read', 'shell.exec', 'browser'],
        meterCaps: { usd: '100' },
      },
      now,
    );
    const jtis = new Map<string, string>();
    const ids = new Map<string, string>();
    const tokens = new Map<string, string>();
    const differences = new Map<number, string>();
    for (const { n, method, path, headers, request, status, response } of recorded) {
      const known = [...ids].find(([before]) => path.includes(before));
      const own = known === undefined ? path : path.replace(known[0], encodeURIComponent(known[1]));
      const decisionToken = headers['x-decision-token'];
      const sent: Record<string, string> = { 'x-adapter-token': headers['x-adapter-token'] ?? '' };
      if (decisionToken !== undefined) {
        const mine = [...tokens.values()][0];
        sent['x-decision-token'] = tokens.has(decisionToken) ? mine : `${mine?.slice(0, -3)}AAA`;
      }
      const isTrace = path === '/api/ingest/trace';
      const body = isTrace ? withTokens(request, jtis, n === 44) : (request ?? undefined);
      const reply: Reply = await send(method, own, body, sent);
      if (typeof response?.decision_id === 'string' && method === 'POST')
        ids.set(response.decision_id, reply.body['decision_id'] as string);
      if (typeof response?.decision_token === 'string')
        tokens.set(response.decision_token, reply.body['decision_token'] as string);
      if (typeof response?.tool_token === 'string')
        jtis.set(claimsOf(response.tool_token).jti, claimsOf(reply.body['tool_token']).jti);
      const [theirs, ours] = [comparable(status, response), comparable(reply.status, reply.body)];
      if (theirs !== ours) differences.set(n, `${theirs} -> ${ours}`);
    }
    console.log([...differences]);
  });
});
