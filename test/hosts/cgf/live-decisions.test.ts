/** CGF's server on a gate: what adapters are answered, and what the ledger has of it. */

import { describe, expect, it } from 'vitest';
import { cgf } from '../../../src/hosts/cgf/index.js';
import { eventsOfClaims } from '../../../src/hosts/shared/claims.js';
import { judge } from '../../writer/support.js';
import { CgfPlace, evaluation, type Json, policyBytes, REGISTRATION, toolCall } from './live-kit.js';

const actionOf = (event: Json): Json => (event['authorization'] as { action: Json }).action;
const codes = (event: Json): unknown[] => [event['decision'], event['decision_code']];

describe('an adapter', () => {
  it.each(['/v1/register', '/v1/adapters/register'])('is registered at %s', async (path) => {
    const place = new CgfPlace();
    const server = await place.serve();
    const { status, body } = await server.ask(path, REGISTRATION);
    expect(status).toBe(200);
    expect(body['adapter_id']).toMatch(/^adp-[0-9a-f]{12}$/);
    expect((body['expires_at'] as number) - (body['registered_at'] as number)).toBeCloseTo(3_600, 3);
    const table = body['fail_mode_table'] as Json[];
    expect(table).toHaveLength(12);
    // What cannot be asked is blocked, unless a bundle says otherwise.
    expect(new Set(table.map((row) => row['fail_mode']))).toEqual(new Set(['fail_closed']));
    expect(place.eventsOf('x.cgf.adapter_registered')).toMatchObject([
      {
        adapter_id: body['adapter_id'],
        adapter_type: 'tests',
        host_type: 'custom',
        principal_id: 'agent:a1',
      },
    ]);
  });

  it('is given the fail modes of the bundle', async () => {
    const server = await new CgfPlace().serve({ policy: policyBytes() });
    const { body } = await server.ask('/v1/register', REGISTRATION);
    const modes = (body['fail_mode_table'] as Json[]).map(
      (row) => `${String(row['action_type'])}:${String(row['risk_tier'])} ${String(row['fail_mode'])}`,
    );
    expect(modes).toContain('tool_call:low fail_open');
    expect(modes.filter((mode) => mode.endsWith(' fail_closed'))).toHaveLength(11);
  });

  it('that is unknown or has expired is refused, with a block', async () => {
    const place = new CgfPlace();
    const server = await place.serve();
    for (const adapter of ['adp-000000000000', 'lg-local-1', undefined]) {
      const answer = await server.evaluate(adapter as string, toolCall('p1', 'ls'));
      expect(answer.status).toBe(401);
      expect(answer.body).toMatchObject({
        detail: 'Unauthorized',
        decision: { decision: 'BLOCK', proposal_id: 'p1', reason_code: 'ADAPTER_UNKNOWN' },
      });
    }
    const short = await place.serve({ expiresMs: 1 });
    const adapter = await short.register();
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(await short.decide(adapter, toolCall('p2', 'ls'))).toMatchObject({
      ...{ status: 401, decision: 'BLOCK', reason_code: 'ADAPTER_EXPIRED' },
    });
    expect(place.eventsOf('authorization')).toHaveLength(1);
  });

  it('is still known after a restart, and to another service', async () => {
    const place = new CgfPlace();
    const first = await place.serve();
    const adapter = await first.register();
    const second = await place.serve();
    expect(await second.decide(adapter, toolCall('p1', 'ls'))).toMatchObject({ decision: 'ALLOW' });
    const later = await first.register();
    expect(await second.decide(later, toolCall('p2', 'ls'))).toMatchObject({ decision: 'ALLOW' });
    await first.close();
    await second.close();
    const third = await place.serve();
    expect(await third.decide(later, toolCall('p3', 'ls'))).toMatchObject({ decision: 'ALLOW' });
    expect((await third.ask('/v1/health')).body).toMatchObject({
      status: 'healthy',
      adapters: 2,
      proposals: 3,
    });
  });

  it('cannot fill the ledger with registrations', async () => {
    const place = new CgfPlace();
    const server = await place.serve();
    const answers = await Promise.all(
      Array.from({ length: 70 }, () => server.ask('/v1/register', REGISTRATION)),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(60);
    expect(answers.find(({ status }) => status !== 200)).toMatchObject({
      ...{ status: 429, body: { detail: 'Too Many Requests' } },
    });
    expect(place.eventsOf('x.cgf.adapter_registered')).toHaveLength(60);
  });
});

describe('a proposal', () => {
  it('is allowed by the grants, with what it may use reserved', async () => {
    const place = new CgfPlace();
    const server = await place.serve();
    const adapter = await server.register();
    const decision = await server.decide(adapter, toolCall('p1', 'ls'));
    expect(decision).toEqual({
      ...{ status: 200, schema_version: '0.3.0', decision_id: decision['decision_id'], proposal_id: 'p1' },
      ...{ decision: 'ALLOW', confidence: 1, justification: 'within the grants', reason_code: 'ALLOW' },
      ...{ constraint: null, excised_features: null, policy_version: 'northroot/grants/1' },
      ...{ matched_rule_ids: [], explanation_text: 'within the grants' },
    });
    const [, authorization] = place.eventsOf('authorization') as [Json, Json];
    const { b64 } = authorization['event_id'] as { b64: string };
    expect(decision['decision_id']).toBe(`dec-${b64.slice(0, 12)}`);
    expect(actionOf(authorization)).toMatchObject({
      tool_name: 'ls',
      request_key: 'p1',
      meter_reservation: [
        { unit: 'calls', amount: { t: 'int', v: '1' } },
        { unit: 'time.ms', amount: { t: 'int', v: '500' } },
        { unit: 'tokens', amount: { t: 'int', v: '3' } },
      ],
    });
    // It is reserved, and not begun.
    expect(place.eventsOf('x.northroot.start')).toEqual([]);
    expect(await judge(place.path)).toMatchObject({ verdict: 'ok' });
  });

  it.each([
    ['to_block', 'BLOCK', 'RULE_BLOCK', ['deny', 'RULE_BLOCK']],
    ['to_defer', 'DEFER', 'RULE_DEFER', ['deny', 'APPROVAL_REQUIRED']],
    ['to_audit', 'AUDIT', 'RULE_AUDIT', ['allow', 'ALLOW']],
    ['to_constrain', 'CONSTRAIN', 'RULE_CONSTRAIN', ['allow', 'ALLOW']],
    ['ls', 'ALLOW', 'POLICY_MATCH', ['allow', 'ALLOW']],
  ])('%s is answered %s by the bundle', async (tool, decision, code, recorded) => {
    const place = new CgfPlace();
    const server = await place.serve({ policy: policyBytes() });
    const adapter = await server.register();
    const answer = await server.decide(adapter, toolCall('p1', tool));
    const rule = decision === 'ALLOW' ? [] : [`rule-${decision.toLowerCase()}`];
    expect(answer).toMatchObject({ status: 200, decision, reason_code: code, policy_version: '7.1' });
    expect(answer).toMatchObject({ confidence: rule.length === 0 ? 0.85 : 0.7, matched_rule_ids: rule });
    expect(answer['constraint']).toEqual(
      decision === 'CONSTRAIN'
        ? {
            type: 'quarantine_namespace',
            params: { target_namespace: '_quarantine_1790000000.5', source_namespace: 'default' },
          }
        : null,
    );
    expect(codes(place.eventsOf('authorization')[1])).toEqual(recorded);
    expect(await judge(place.path)).toMatchObject({ verdict: 'ok' });
  });

  it('that the bundle allows and the grants do not is blocked', async () => {
    const place = new CgfPlace({ allowedTools: ['ls'], meterCaps: { calls: 1, tokens: 5 } });
    const server = await place.serve({ policy: policyBytes() });
    const adapter = await server.register();
    const grants = { policy_version: 'northroot/grants/1', matched_rule_ids: [], confidence: 1 };
    for (const [tool, code] of [
      ['rm', 'TOOL_NOT_ALLOWED'],
      ['to_audit', 'TOOL_NOT_ALLOWED'],
    ] as const)
      expect(await server.decide(adapter, toolCall(tool, tool))).toMatchObject({
        ...{ status: 200, decision: 'BLOCK', reason_code: code, ...grants },
      });
    const costly = toolCall('p2', 'ls', { estimated_cost: { tokens: 6 } });
    expect(await server.decide(adapter, costly)).toMatchObject({
      ...{ decision: 'BLOCK', reason_code: 'RESERVATION_OVER_CAP', ...grants },
    });
    expect(
      await server.decide(adapter, toolCall('p3', 'ls', { estimated_cost: { tokens: 1001 } })),
    ).toMatchObject({ decision: 'BLOCK', reason_code: 'COSTLY', matched_rule_ids: ['costly'] });
  });

  it('that must be approved is deferred, and the next one like it is allowed once somebody has', async () => {
    const place = new CgfPlace();
    const server = await place.serve({ policy: policyBytes() });
    const adapter = await server.register();
    expect(await server.decide(adapter, toolCall('p1', 'to_defer'))).toMatchObject({ decision: 'DEFER' });
    const [request] = await server.gate.ledger.requests();
    await server.gate.ledger.approve(request?.eventId, { principalId: 'human:olga' });
    expect(await server.decide(adapter, toolCall('p1', 'to_defer'))).toMatchObject({ decision: 'DEFER' });
    expect(await server.decide(adapter, toolCall('p2', 'to_defer'))).toMatchObject({ decision: 'ALLOW' });
    expect(await server.decide(adapter, toolCall('p3', 'to_defer'))).toMatchObject({ decision: 'DEFER' });
  });

  it('for an adapter that acts upon ALLOW and BLOCK alone is never answered otherwise', async () => {
    const place = new CgfPlace();
    const server = await place.serve({ policy: policyBytes(), plain: true });
    const adapter = await server.register();
    const answers: unknown[] = [];
    for (const tool of ['ls', 'to_block', 'to_defer', 'to_audit', 'to_constrain'])
      answers.push((await server.decide(adapter, toolCall(tool, tool)))['decision']);
    expect(answers).toEqual(['ALLOW', 'BLOCK', 'BLOCK', 'BLOCK', 'BLOCK']);
    expect(place.eventsOf('authorization').map((event) => event['decision'])).toEqual([
      ...['allow', 'allow', 'deny', 'deny', 'deny', 'deny'],
    ]);
  });

  it('has the tool, digests and amounts that an import of the recorded request has', async () => {
    const place = new CgfPlace();
    const server = await place.serve({ policy: policyBytes() });
    const adapter = await server.register();
    const proposals = [
      toolCall('p1', 'ls', { estimated_cost: { tokens: 3, latency_ms: 12.5, bytes: 7, usd: 0.25 } }),
      toolCall('p2', 'to_constrain'),
      toolCall('p3', 'to_block', { risk_tier: undefined }),
      {
        ...toolCall('p4', ''),
        action_type: 'memory_write',
        action_params: { namespace: 'n', size_bytes: 5, content_hash: 'cd' },
      },
      { ...toolCall('p5', ''), action_type: 'message_send', action_params: { tool: 'Send Mail/é' } },
    ];
    const recording: Json[] = [];
    for (const proposal of proposals) {
      const request = evaluation(adapter, proposal);
      const { status, body } = await server.ask('/v1/evaluate', request);
      recording.push({
        t: 1790000001,
        method: 'POST',
        path: '/v1/evaluate',
        status,
        request,
        response: body,
      });
    }
    const bytes = Buffer.from(recording.map((line) => `${JSON.stringify(line)}\n`).join(''));
    const aids = { 'policy-bundle': { name: 'policy.json', bytes: policyBytes() } };
    const { claims, findings } = cgf.read([{ name: 'http.jsonl', bytes }], { aids });
    const { events } = eventsOfClaims(claims, { system: 'cgf' });
    const imported = events.flatMap(({ event }) =>
      event.event_type === 'authorization' ? [event as unknown as Json] : [],
    );
    const live = place.eventsOf('authorization').slice(1);
    const compared = (event: Json): Json => {
      const { tool_name, tool_params_digest, meter_reservation = [] } = actionOf(event);
      const amounts = (meter_reservation as { unit: string }[]).filter(({ unit }) => unit !== 'calls');
      return {
        ...{ tool_name, tool_params_digest, intent: (event['intents'] as Json)['intent_digest'] },
        ...{
          decision: event['decision'],
          reserved: event['decision'] === 'deny' ? [] : amounts.sort((a, b) => a.unit.localeCompare(b.unit)),
        },
      };
    };
    expect(live.map(compared)).toEqual(imported.map(compared));
    expect(imported).toHaveLength(proposals.length);
    // The decisions are the bundle's, by CGF's own rules.
    const broken = findings.filter(({ severity }) => severity !== 'info' && severity !== 'warning');
    expect(broken.map(({ rule, code }) => `${rule} ${code}`)).toEqual(
      ['CGF-14 BUNDLE_HASH_MISSING'].slice(1),
    );
  });
});

describe('a request', () => {
  const good = (): Json => evaluation('adp-1', toolCall('p1', 'ls'));
  const without = (path: readonly string[]): Json => {
    const body = structuredClone(good());
    const last = path.at(-1) as string;
    let at = body;
    for (const name of path.slice(0, -1)) at = at[name] as Json;
    delete at[last];
    return body;
  };
  const having = (path: readonly string[], value: unknown): Json => {
    const body = structuredClone(good());
    let at = body;
    for (const name of path.slice(0, -1)) at = at[name] as Json;
    at[path.at(-1) as string] = value;
    return body;
  };

  it.each([
    ...[['host_config'], ['proposal'], ['context'], ['capacity_signals']],
    ...['proposal_id', 'timestamp', 'action_type', 'action_params', 'context_refs'].map((name) => [
      'proposal',
      name,
    ]),
    ['host_config', 'host_type'],
  ])('without %s %s is refused in the words of the server', async (...path) => {
    const server = await new CgfPlace().serve();
    const given = path.filter((part) => part !== undefined);
    const { status, body } = await server.ask('/v1/evaluate', without(given));
    expect(status).toBe(422);
    expect(body['detail']).toEqual([
      { loc: ['body', ...given], msg: 'field required', type: 'value_error.missing' },
    ]);
  });

  it.each<[readonly string[], unknown]>([
    [['proposal', 'proposal_id'], ''],
    [['proposal', 'proposal_id'], 'p'.repeat(257)],
    [['proposal', 'proposal_id'], 7],
    [['proposal', 'timestamp'], '1790000000'],
    [['proposal', 'action_type'], 'rm'],
    [['proposal', 'action_params'], []],
    [['proposal', 'action_params', 'tool_name'], { a: 1 }],
    [['proposal', 'context_refs'], 'x'],
    [['proposal', 'context_refs'], [1]],
    [['proposal', 'context_refs'], Array(1_025).fill('x')],
    [['proposal', 'risk_tier'], 'none'],
    [['proposal', 'priority'], 101],
    [['proposal', 'priority'], -1],
    [['proposal', 'estimated_cost', 'tokens'], -3],
    [['capacity_signals', 'error_rate'], -1],
    [['context', 'turn_number'], 'x'],
    [['proposal', 'schema_version'], '9.9'],
  ])('with %j of another kind is refused', async (path, value) => {
    const place = new CgfPlace();
    const server = await place.serve();
    const { status, body } = await server.ask('/v1/evaluate', having(path, value));
    expect([status, Array.isArray(body['detail'])]).toEqual([422, true]);
    expect((body['detail'] as { loc: string[] }[])[0]?.loc.slice(0, 2)).toEqual(['body', path[0]]);
    expect(place.eventsOf('authorization')).toHaveLength(1);
  });

  it('with a number that cannot be kept exactly is refused', async () => {
    const server = await new CgfPlace().serve();
    const text = JSON.stringify(good()).replace('"ab12"', '9007199254740993');
    expect((await server.ask('/v1/evaluate', text)).status).toBe(422);
  });

  it.each([
    ['a member twice', '{"a":1,"a":2}', 422],
    ['no JSON', '{', 422],
    ['a list', '[]', 422],
    ['a lone surrogate', '{"a":"\\ud800"}', 422],
    ['deep nesting', `${'{"a":'.repeat(100)}1${'}'.repeat(100)}`, 422],
    ['another version', '{"schema_version":"9.9"}', 400],
    ['a version that is no text', '{"schema_version":2}', 422],
  ])('with %s is refused', async (_, body, status) => {
    const server = await new CgfPlace().serve();
    for (const path of ['/v1/register', '/v1/evaluate', '/v1/outcomes/report', '/v1/capacity/signals'])
      expect((await server.ask(path, body)).status).toBe(status);
  });

  it('says which version is too old or new', async () => {
    const server = await new CgfPlace().serve();
    const { body } = await server.ask('/v1/evaluate', { ...good(), schema_version: '9.9' });
    expect(body).toEqual({ detail: 'Incompatible schema version: 9.9. Min: 0.2.0' });
    const old = await server.ask('/v1/register', { ...REGISTRATION, schema_version: '0.2.7' });
    expect(old.status).toBe(200);
  });

  it('that is a form, too large or of another method is refused', async () => {
    const server = await new CgfPlace().serve();
    const form = await server.ask('/v1/evaluate', '{}', undefined, 'text/plain');
    expect([form.status, form.body['detail']]).toEqual([415, 'Unsupported Media Type']);
    expect((await server.ask('/v1/evaluate', { a: 'x'.repeat(2 ** 20) })).status).toBe(413);
    const get = await server.ask('/v1/evaluate');
    expect([get.status, get.body['detail']]).toEqual([405, 'Method Not Allowed']);
    expect((await server.ask('/v1/proposals/p1/other')).status).toBe(404);
    expect((await server.ask('/v1/capacity/signals', { adapter_id: 'x', signals: {} })).body).toEqual({
      received: true,
    });
    expect((await server.ask('/')).body).toMatchObject({ schema_version: '0.3.0' });
  });
});
