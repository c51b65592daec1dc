/** Clasper 1.0.0: no signatures, no tokens, no chain. Made for this, in the shape that it writes. */

import { describe, expect, it } from 'vitest';
import { encodeUtf8 } from '../../../src/base/bytes/text.js';
import { hashText } from '../../../src/hosts/shared/forms/stable.js';
import type { HostFile } from '../../../src/hosts/shared/host.js';
import { codesOf, errorsOf, file, http, ledgerCodes, ledgerOf, read } from './kit.js';

type Members = Record<string, unknown>;

let counter = 0;

function call(method: string, path: string, request: unknown, response: unknown, status = 200): string {
  counter += 1;
  return JSON.stringify({ n: counter, method, path, headers: {}, request, status, response });
}

const IDS = { tenant_id: 't', workspace_id: 'w', adapter_id: 'a' };
const TIME = '2026-03-01T10:00:00.000Z';

const registered = call(
  'POST',
  '/adapters/register',
  {},
  { ...IDS, capabilities: ['shell.exec'], version: '1', updated_at: TIME },
);

function requested(response: Members, request: Members = {}): string {
  const body = {
    ...IDS,
    execution_id: 'e',
    tool: 'exec',
    requested_capabilities: ['shell.exec'],
    ...request,
  };
  return call('POST', '/api/execution/request', body, {
    execution_id: 'e',
    matched_policies: ['p'],
    ...response,
  });
}

const SCOPE = {
  capabilities: ['shell.exec'],
  max_steps: 5,
  max_cost: 0,
  expires_at: '2026-03-01T10:15:00.000Z',
};
const ALLOWED = {
  allowed: true,
  decision: 'allow',
  granted_scope: SCOPE,
  policy_bundle_hash: 'sha256:00',
  risk_score: 10,
};

function step(type: string, data: Members, timestamp: string): Members {
  return { type, timestamp, durationMs: 20, data };
}

function trace(steps: Members[]): Members {
  return {
    ...{ id: 'tr', tenantId: 't', workspaceId: 'w', startedAt: '2026-03-01T10:00:01.000Z', adapter_id: 'a' },
    ...{ steps, usage: { inputTokens: 0, outputTokens: 0, totalCost: 0 }, integrity_status: 'unsigned' },
  };
}

const CALL = step(
  'tool_call',
  { toolCallId: 'c', toolName: 'exec', permitted: true, arguments: {} },
  '2026-03-01T10:00:01.000Z',
);
const RESULT = step(
  'tool_result',
  { toolCallId: 'c', toolName: 'exec', success: false, error: 'no' },
  '2026-03-01T10:00:02.000Z',
);

const ingested = call(
  'POST',
  '/api/ingest/trace',
  { ...IDS, execution_id: 'e', trace_id: 'tr', trace: trace([CALL, RESULT]) },
  { status: 'ok' },
);

describe('calls', () => {
  it('of a tool that the request names are within the grant', async () => {
    const reading = read([http([registered, requested(ALLOWED), ingested])]);
    expect(codesOf(reading)).toEqual(['CLA-1 TELEMETRY_UNSIGNED', 'CLA-8 STEP_HASHES_MISSING']);
    expect(reading.claims.find(({ kind }) => kind === 'execution')).toMatchObject({
      ...{ outcome: 'failure', tool: 'exec', startedAt: '2026-03-01T10:00:01Z' },
      meters: [
        { unit: 'calls', amount: { t: 'int', v: '1' } },
        { unit: 'time.ms', amount: { t: 'int', v: '20' } },
      ],
    });
    expect((await ledgerOf(reading)).verdict).toBe('ok');
  });

  it('whose approval was simulated stay visible', async () => {
    const simulated = {
      ...ALLOWED,
      requires_approval: true,
      approval_mode: 'simulate',
      auto_allowed_in_core: true,
    };
    const reading = read([http([registered, requested(simulated)])]);
    expect(errorsOf(reading)).toEqual(['CLA-12 AUTO_ALLOWED']);
    expect(reading.claims).toContainEqual(
      expect.objectContaining({ decision: 'allow', decisionCode: 'AUTO_ALLOWED_IN_CORE' }),
    );
    expect(ledgerCodes(await ledgerOf(reading))).toEqual(['ALLOW_WITH_FAILED_CHECK']);
  });

  it('under an approval that is used again, for more', () => {
    const pending = {
      allowed: false,
      decision: 'pending',
      requires_approval: true,
      decision_id: 'd',
      granted_scope: SCOPE,
    };
    const approved = call('GET', '/api/decisions/d', null, {
      ...{ decision_id: 'd', status: 'approved', required_role: 'operator', granted_scope: SCOPE },
      resolution: { action: 'approve', role: 'operator', resolved_at: '2026-03-01T10:01:00.000Z' },
    });
    const more = requested(
      { ...ALLOWED, granted_scope: { ...SCOPE, capabilities: ['shell.exec', 'db.drop'] } },
      { requested_capabilities: ['shell.exec', 'db.drop'] },
    );
    const lines = [registered, requested(pending), approved, requested(ALLOWED)];
    expect(errorsOf(read([http(lines)]))).toEqual([]);
    const again = requested({ ...ALLOWED, decision_id: 'd' });
    expect(errorsOf(read([http([...lines, again])]))).toEqual(['CLA-5 APPROVAL_REUSED']);
    expect(errorsOf(read([http([...lines, more])]))).toEqual([
      'CLA-11 SCOPE_ESCALATED',
      'CLA-5 APPROVAL_REUSED',
    ]);
  });

  it('that contradict themselves are denied', () => {
    const reading = read([http([registered, requested({ ...ALLOWED, allowed: false })])]);
    expect(errorsOf(reading)).toEqual(['CLA-3 DECISION_CONTRADICTS']);
    expect(reading.claims.filter(({ kind }) => kind === 'grant')).toMatchObject([{ decision: 'deny' }]);
  });
});

describe('a bundle', () => {
  function bundle(edit: (texts: Map<string, string>) => void = () => undefined): HostFile[] {
    const row = (id: number, eventType: string, eventData: Members): string =>
      JSON.stringify({
        id,
        tenantId: 't',
        traceId: 'tr',
        eventType,
        eventData,
        createdAt: `2026-03-01T10:00:0${id}.000Z`,
      });
    const texts = new Map([
      [
        'metadata.json',
        JSON.stringify({
          scope: { tenantId: 't' },
          generated_at: TIME,
          self_attested: true,
          counts: { traces: 1, audits: 2 },
        }),
      ],
      ['traces.jsonl', `${JSON.stringify(trace([CALL, RESULT]))}\n`],
      [
        'audits.jsonl',
        `${row(5, 'adapter_cost_ingested', { adapter_id: 'a', execution_id: 'e', cost_usd: 0.25, recorded_at: TIME })}\n${row(4, 'adapter_trace_ingested', { adapter_id: 'a', execution_id: 'e' })}\n`,
      ],
    ]);
    const files = [...texts].map(([path, text]) => ({ path, sha256: hashText(encodeUtf8(text)) }));
    texts.set('integrity.json', JSON.stringify({ generated_at: TIME, files }));
    edit(texts);
    return [...texts].map(([name, text]) => file(`b/${name}`, text));
  }

  it('is taken by its audit log', () => {
    const reading = read(bundle());
    expect(errorsOf(reading)).toEqual([]);
    expect(reading.claims.filter(({ kind }) => kind === 'execution').map(({ id }) => id)).toEqual([
      'cost:t/e',
      'call:t/tr/c',
    ]);
  });

  it('of which a file was edited', () => {
    expect(
      errorsOf(
        read(bundle((texts) => texts.set('audits.jsonl', texts.get('audits.jsonl')!.replace('0.25', '0.2')))),
      ),
    ).toEqual(['CLA-10 FILE_HASH_MISMATCH']);
  });
});
