/** Each rule against a recording that keeps it, and against the same one, edited as little as it takes, that breaks it. */

import { beforeAll, describe, expect, it } from 'vitest';
import type { HostFile, HostOptions } from '../../../src/hosts/shared/host.js';
import { clasper } from '../../../src/hosts/clasper/index.js';
import { stepHash } from '../../../src/hosts/clasper/steps.js';
import { hasRecordings } from '../recorded.js';
import {
  calls,
  claimsOf,
  codesOf,
  edited,
  file,
  forged,
  http,
  httpLines,
  ledgerCodes,
  ledgerOf,
  parse,
  PUBLIC_JWK,
  read,
  resigned,
  sign,
  token,
  without,
} from './kit.js';
import { stableBytes, stableHash } from '../../../src/hosts/shared/forms/stable.js';

function dataOf(step: Record<string, unknown>): Record<string, unknown> {
  return step['data'] as Record<string, unknown>;
}

/** Register, key, pending, approved, consumed, tool token, trace, cost, metrics. */
const FLOW = [1, 2, 12, 16, 20, 25, 27, 30, 32];

describe.skipIf(!hasRecordings)('a rule', () => {
  let flow: string[];
  beforeAll(() => {
    flow = calls(...FLOW);
  });

  /** The recorded flow with the line of that number edited. */
  function flowWith(number: number, edit: (line: string) => string | string[]): string[] {
    return flow.flatMap((line, i) => (FLOW[i] === number ? edit(line) : line));
  }

  function found(lines: readonly string[], options?: HostOptions): string[] {
    return codesOf(read([http(lines)], options));
  }

  it('that is kept gives nothing, and the ledger is only dated before its decisions', async () => {
    const reading = read([http(flow)]);
    expect(codesOf(reading)).toEqual([]);
    const report = await ledgerOf(reading);
    expect(ledgerCodes(report)).toEqual(['EXECUTION_BEFORE_AUTHORIZATION']);
  });

  it('nothing at all is found where the adapter’s clock is right', async () => {
    const lines = flow.map((line) =>
      line.includes('"payload_type"')
        ? resigned(line, (payload) => {
            Object.assign(
              payload,
              JSON.parse(JSON.stringify(payload).replaceAll('2026-02-06T14:12:3', '2026-11-21T20:07:3')),
            );
            const trace = payload['trace'] as { steps: Record<string, unknown>[] } | undefined;
            for (const step of trace?.steps ?? []) delete step['step_hash'];
          })
        : line,
    );
    const reading = read([http(lines)]);
    expect(codesOf(reading)).toEqual(['CLA-8 STEP_HASHES_MISSING']);
    const report = await ledgerOf(reading);
    expect(report.verdict).toBe('ok');
    const [grant] = report.grants;
    expect(grant?.executions).toBe(3);
    expect(grant?.meters).toMatchObject([
      { unit: 'clasper.steps', used: { t: 'int', v: '3' } },
      { unit: 'usd', used: { t: 'dec', m: '31', s: 4 } },
    ]);
  });

  describe('CLA-1', () => {
    it.each([
      [
        'a payload that was edited',
        ['CLA-1 PAYLOAD_HASH_MISMATCH', 'CLA-4 COST_DISAGREES'],
        '"cost_usd":0.0031',
        '"cost_usd":0.0032',
      ],
      ['a signature of something else', ['CLA-1 INVALID_SIGNATURE'], '"signature":"q', '"signature":"A'],
      [
        'a member that no signature covers',
        ['CLA-1 MEMBER_NOT_SIGNED'],
        '"cost_usd":',
        '"__proto__":{"cost_usd":9},"cost_usd":',
      ],
      [
        'a time that is none',
        ['CLA-1 TIMESTAMP_SKEW'],
        '"issued_at":"2026-11-21T20:07:19.921Z"',
        '"issued_at":"yesterday"',
      ],
    ])('%s', (_, codes, from, to) => {
      expect(found(flowWith(30, (line) => line.replace(from, to)))).toEqual(codes);
    });

    it('an envelope for another endpoint that was taken, and one that was refused', () => {
      const [refused] = calls(40);
      const accepted = refused.replace('"status":500', '"status":200');
      expect(
        read([http([...calls(1, 2), accepted])]).findings.find(
          ({ code }) => code === 'PAYLOAD_TYPE_MISMATCH',
        ),
      ).toMatchObject({
        severity: 'error',
        class: 'invalid',
      });
      expect(
        read([http([...calls(1, 2), refused])]).findings.find(({ code }) => code === 'PAYLOAD_TYPE_MISMATCH'),
      ).toMatchObject({
        severity: 'warning',
        class: 'none',
      });
    });

    it('a key that was revoked before, and one that was revoked after', () => {
      const revokedAt = (time: string) =>
        flowWith(2, (line) =>
          line.replace('"telemetry_key_revoked_at":null', `"telemetry_key_revoked_at":"${time}"`),
        );
      expect(found(revokedAt('2026-11-21T20:07:19.925Z'))).toEqual(['CLA-1 KEY_REVOKED']);
      expect(found(revokedAt('2026-11-21T21:00:00Z'))).toEqual([]);
    });

    it('a key that nobody pinned, where keys are pinned', () => {
      const keys = `[{"adapter_id":"openclaw","adapter_version":"0.4.1","alg":"ed25519","key_id":"k2","public_jwk":${PUBLIC_JWK.replace('11qY', '21qY')},"revoked_at":null}]`;
      const codes = found(flow, { aids: { 'adapter-keys': file('keys.json', keys) } });
      expect(new Set(codes)).toEqual(new Set(['CLA-1 UNSUPPORTED_ALGORITHM']));
      const right = file('keys.json', keys.replace('21qY', '11qY'));
      expect(found(flow, { aids: { 'adapter-keys': right } })).toEqual([]);
    });

    it('a report without an envelope', () => {
      expect(found(calls(1, 2, 6, 36))).toEqual(['CLA-1 TELEMETRY_UNSIGNED']);
    });
  });

  it.each([
    ['execution_id', 'exec_other'],
    ['trace_id', 'trace_other'],
  ])('CLA-2: another %s in the envelope', (name, value) => {
    expect(found(flowWith(30, (line) => resigned(line, (_, envelope) => (envelope[name] = value))))).toEqual([
      'CLA-2 ID_MISMATCH',
    ]);
  });

  it.each(['tenantId', 'workspaceId', 'adapter_id'])('CLA-2: another %s in the trace', (name) => {
    const lines = flowWith(27, (line) =>
      resigned(line, (payload) => ((payload['trace'] as Record<string, unknown>)[name] = 'other')),
    );
    expect(found(lines)).toEqual(['CLA-2 ID_MISMATCH']);
  });

  it('CLA-2: another workspace than that of the token, signed or not', () => {
    const other = (line: string) => resigned(line, (payload) => (payload['workspace_id'] = 'other'));
    expect(found(flowWith(30, other))).toEqual(['CLA-2 ID_MISMATCH']);
    const bare = (line: string) =>
      edited(other(line), (call) => (call.request = call.request['payload'] as Record<string, unknown>));
    expect(found(flowWith(30, bare))).toEqual(['CLA-1 TELEMETRY_UNSIGNED', 'CLA-2 ID_MISMATCH']);
  });

  describe('CLA-3', () => {
    it.each([
      ['pending', [1, 2, 12, 30], 'CLA-3 EXECUTED_WHILE_PENDING', 'EXECUTION_UNDER_DENY'],
      ['denied', [1, 2, 7, 43], 'CLA-3 EXECUTED_AFTER_DENY', 'EXECUTION_UNDER_DENY'],
      ['denied by somebody', [1, 2, 22, 23, 30], 'CLA-3 EXECUTED_AFTER_DENY', 'EXECUTION_UNDER_DENY'],
      ['never requested', [1, 2, 6, 42], 'CLA-3 EXECUTION_NOT_REQUESTED', 'AUTH_NOT_FOUND'],
    ])('an execution that is %s', async (_, numbers, code, inLedger) => {
      const lines = calls(...numbers).map((line) =>
        numbers.includes(22) ? line.replaceAll('exec_pend2', 'exec_abc123') : line,
      );
      const reading = read([http(lines)]);
      expect(codesOf(reading).filter((each) => !each.startsWith('INPUT'))).toEqual([code]);
      expect(ledgerCodes(await ledgerOf(reading))).toContain(inLedger);
    });

    it('another adapter’s report', () => {
      const lines = flowWith(30, (line) =>
        resigned(line, (payload, envelope) => {
          payload['adapter_id'] = 'other';
          envelope['adapter_id'] = 'other';
        }),
      );
      expect(found(lines)).toEqual(['CLA-2 ID_MISMATCH', 'CLA-3 ADAPTER_NOT_GRANTED']);
    });

    it('a result of another tool than was called', () => {
      const other = (line: string) =>
        resigned(line, (payload) => {
          const { steps } = payload['trace'] as { steps: Record<string, unknown>[] };
          dataOf(steps.find(({ type }) => type === 'tool_result')!)['toolName'] = 'fs.rm';
          delete dataOf(steps.find(({ type }) => type === 'tool_call')!)['tool_token_jti'];
          for (const step of steps) delete step['step_hash'];
        });
      expect(found(flowWith(27, other))).toEqual([
        'CLA-6 TOOL_TOKEN_NOT_STATED',
        'CLA-8 RESULT_OF_OTHER_TOOL',
        'CLA-8 STEP_HASHES_MISSING',
      ]);
    });

    it('amounts that are none, and a cost that is null', () => {
      const odd = (line: string) =>
        resigned(line, (payload) => {
          const trace = payload['trace'] as {
            steps: Record<string, unknown>[];
            usage: Record<string, unknown>;
          };
          trace.usage['totalCost'] = '0.0031';
          trace.steps[0]['durationMs'] = -1;
          for (const step of trace.steps) delete step['step_hash'];
        });
      expect(found(flowWith(27, odd))).toEqual([
        'CLA-8 STEP_HASHES_MISSING',
        'INPUT AMOUNT_INVALID',
        'INPUT AMOUNT_INVALID',
      ]);
      const none = (line: string) => resigned(line, (payload) => (payload['cost_usd'] = null));
      expect(found(flowWith(30, none))).toEqual(['CLA-4 COST_NOT_REPORTED', 'INPUT MEMBER_MISSING']);
    });

    it('a denial without a reason has no other reason', () => {
      const line = calls(7)[0].replace('"blocked_reason":"policy_denied",', '');
      expect(read([http([...calls(1, 2), line])]).claims.at(-1)).toMatchObject({
        decision: 'deny',
        decisionCode: 'DENIED',
      });
    });

    it('a result that stands before its call is one call', () => {
      const swapped = (line: string) =>
        resigned(line, (payload) => {
          const trace = payload['trace'] as { steps: Record<string, unknown>[] };
          const at = trace.steps.findIndex(({ type }) => type === 'tool_call');
          const [call, result] = trace.steps.splice(at, 2);
          trace.steps.splice(at, 0, result, call);
          for (const step of trace.steps) delete step['step_hash'];
        });
      const reading = read([http(flowWith(27, swapped))]);
      expect(codesOf(reading)).toEqual(['CLA-8 RESULT_WITHOUT_CALL', 'CLA-8 STEP_HASHES_MISSING']);
      expect(reading.claims.filter(({ id }) => id.startsWith('call:'))).toMatchObject([
        { outcome: 'success' },
      ]);
    });

    it('a tool for an execution that is pending', () => {
      expect(found(calls(1, 2, 12, 25))).toEqual(['CLA-3 TOOL_ALLOWED_WITHOUT_GRANT']);
    });

    it('a tool for an execution that nobody requested', () => {
      expect(found(calls(1, 2, 6, 25))).toEqual(['CLA-3 EXECUTION_NOT_REQUESTED']);
    });

    it('a result of a call that was not permitted; a blocked call is no execution', () => {
      const blocked = (line: string) =>
        resigned(line, (payload) => {
          const { steps } = payload['trace'] as { steps: { data: Record<string, unknown> }[] };
          steps[1].data['permitted'] = false;
          for (const step of steps as unknown as Record<string, unknown>[]) delete step['step_hash'];
        });
      expect(found(flowWith(27, blocked))).toEqual([
        'CLA-3 RAN_THOUGH_NOT_PERMITTED',
        'CLA-8 STEP_HASHES_MISSING',
      ]);
      const reading = read([
        http(
          flowWith(27, (line) =>
            resigned(blocked(line), (payload) => {
              (payload['trace'] as { steps: unknown[] }).steps.pop();
            }),
          ),
        ),
      ]);
      expect(codesOf(reading)).toEqual(['CLA-8 STEP_HASHES_MISSING']);
      expect(reading.claims.filter(({ id }) => id.startsWith('call:'))).toEqual([]);
    });
  });

  describe('CLA-4', () => {
    it.each([
      ['cost', 30, 'cost_usd', 1.51, ['CLA-4 COST_DISAGREES', 'CLA-4 COST_EXCEEDED'], 'METER_CAP_EXCEEDED'],
      ['steps', 32, 'step_count', 101, ['CLA-4 STEPS_EXCEEDED'], 'METER_CAP_EXCEEDED'],
    ])('%s beyond the scope', async (_, number, name, value, codes, inLedger) => {
      const reading = read([
        http(flowWith(number, (line) => resigned(line, (payload) => (payload[name] = value)))),
      ]);
      expect(codesOf(reading)).toEqual(codes);
      expect(ledgerCodes(await ledgerOf(reading))).toContain(inLedger);
    });

    it('a cost equal to the scope, and any cost where no budget is set', async () => {
      const cost = (value: number) => (line: string) =>
        resigned(line, (payload) => (payload['cost_usd'] = value));
      expect(found(flowWith(30, cost(1.5)))).toEqual(['CLA-4 COST_DISAGREES']);
      const lines = flowWith(30, cost(99)).map((line) =>
        line.includes('"payload_type"') ? line : line.replaceAll('"max_cost":1.5', '"max_cost":0'),
      );
      const reading = read([http(lines)]);
      expect(codesOf(reading)).toEqual(['CLA-4 COST_DISAGREES']);
      expect(ledgerCodes(await ledgerOf(reading))).not.toContain('METER_CAP_EXCEEDED');
    });

    it('a capability that was not granted', async () => {
      const lines = calls(1, 2, 6, 44).map((line) =>
        line.includes('trace_tam')
          ? resigned(line, (payload) => {
              const { steps } = payload['trace'] as { steps: Record<string, unknown>[] };
              delete (steps[1]['data'] as Record<string, unknown>)['tool_token_jti'];
              for (const step of steps) delete step['step_hash'];
            })
          : line,
      );
      // Nothing in these lines knows shell.exec as a capability but the adapter token.
      const reading = read([http(lines)]);
      expect(codesOf(reading)).toEqual([
        'CLA-4 CAPABILITY_NOT_GRANTED',
        'CLA-4 COST_NOT_REPORTED',
        'CLA-8 STEP_HASHES_MISSING',
      ]);
      expect(ledgerCodes(await ledgerOf(reading))).toContain('TOOL_NOT_ALLOWED');
    });

    it('a tool of which nothing says which capability it needs is no violation, and becomes none', async () => {
      const lines = flow.map((line) =>
        line.replaceAll('"tool":"shell.exec"', '"tool":"run"').replace(/"tool_token":"[^"]*"/, () => {
          const [allowed] = calls(25);
          const claims = claimsOf(
            (JSON.parse(allowed) as { response: { tool_token: string } }).response.tool_token,
          );
          return `"tool_token":"${token({ ...claims, tool: 'run' })}"`;
        }),
      );
      const traced = lines.map((line) =>
        line.includes('"trace":{')
          ? resigned(line, (payload) => {
              const { steps } = payload['trace'] as { steps: Record<string, unknown>[] };
              for (const step of steps) {
                delete step['step_hash'];
                const data = step['data'] as Record<string, unknown>;
                if (data['toolName'] !== undefined) data['toolName'] = 'run';
              }
            })
          : line,
      );
      const reading = read([http(traced)]);
      expect(codesOf(reading)).toEqual(['CLA-4 CAPABILITY_NOT_STATED', 'CLA-8 STEP_HASHES_MISSING']);
      expect(ledgerCodes(await ledgerOf(reading))).toEqual(['EXECUTION_BEFORE_AUTHORIZATION']);
      const aids = { 'tool-capabilities': file('tools.json', '{"run":["shell.exec"]}') };
      const told = read([http(traced)], { aids });
      expect(codesOf(told)).toEqual(['CLA-8 STEP_HASHES_MISSING']);
      expect(ledgerCodes(await ledgerOf(told))).toEqual(['EXECUTION_BEFORE_AUTHORIZATION']);
    });

    it('a call after the end', async () => {
      const lines = flow.map((line) =>
        line.replaceAll('"expires_at":"2026-11-21T20:22:19.860Z"', '"expires_at":"2026-02-06T14:12:31Z"'),
      );
      const reading = read([http(lines)]);
      expect(codesOf(reading)).toEqual(['CLA-4 GRANT_EXPIRED']);
      expect(ledgerCodes(await ledgerOf(reading))).toContain('GRANT_EXPIRED');
    });

    it('a scope that the adapter states otherwise', () => {
      const lines = flowWith(27, (line) =>
        resigned(line, (payload) => {
          (payload['trace'] as { granted_scope: Record<string, unknown> }).granted_scope['max_steps'] = 1000;
        }),
      );
      expect(found(lines)).toEqual(['CLA-4 SCOPE_MISSTATED']);
    });
  });

  describe('CLA-5', () => {
    it('a token that is consumed twice', () => {
      expect(found(flowWith(20, (line) => [line, line.replace('"n":20', '"n":99')]))).toEqual([
        'CLA-5 DECISION_TOKEN_REUSED',
      ]);
    });

    it('a token that is consumed before the approval', () => {
      expect(found(calls(1, 2, 12, 20))).toEqual(['CLA-5 CONSUMED_WITHOUT_APPROVAL']);
    });

    it.each(['tenant_id', 'workspace_id', 'adapter_id', 'execution_id', 'decision_id'])(
      'a token for another %s',
      (name) => {
        const lines = flow.map((line) =>
          edited(line, (call) => {
            const headers = call['headers'] as Record<string, unknown>;
            const text = headers['x-decision-token'];
            if (text !== undefined)
              headers['x-decision-token'] = token({ ...claimsOf(text), [name]: 'other' });
          }),
        );
        expect(found(lines)).toEqual(['CLA-5 DECISION_TOKEN_MISMATCH']);
      },
    );

    it('a token for a larger scope', () => {
      const lines = flow.map((line) =>
        edited(line, (call) => {
          const headers = call['headers'] as Record<string, unknown>;
          const text = headers['x-decision-token'];
          if (text === undefined) return;
          const claims = claimsOf(text);
          const scope = { ...(claims['granted_scope'] as object), max_steps: 101 };
          headers['x-decision-token'] = token({ ...claims, granted_scope: scope });
        }),
      );
      expect(found(lines)).toEqual(['CLA-5 DECISION_TOKEN_MISMATCH']);
    });

    it('a token that was never issued, and one that has expired', () => {
      const with_ = (claims: object) =>
        flow.map((line) =>
          edited(line, (call) => {
            const headers = call['headers'] as Record<string, unknown>;
            const text = headers['x-decision-token'];
            if (text !== undefined) headers['x-decision-token'] = token({ ...claimsOf(text), ...claims });
          }),
        );
      expect(found(with_({ jti: 'other' }))).toEqual(['CLA-5 DECISION_TOKEN_UNKNOWN']);
      expect(found(with_({ exp: 1795291639 }))).toEqual(['CLA-5 DECISION_TOKEN_EXPIRED']);
    });

    it('work without the token being consumed', () => {
      expect(found(flowWith(20, () => []))).toEqual(['CLA-5 DECISION_TOKEN_NOT_CONSUMED']);
    });

    it('a poll that says otherwise', () => {
      const lines = [
        ...flow,
        calls(18)[0]
          .replace('"status":"approved"', '"status":"denied"')
          .replace('"action":"approve"', '"action":"deny"'),
      ];
      expect(found(lines)).toEqual(['CLA-5 DECISION_CONTRADICTS']);
    });

    it('an approval that is answered again and again', () => {
      const again = (n: number) =>
        edited(
          calls(6)[0].replaceAll('exec_allow_1', 'exec_abc123').replaceAll('filesystem.read', 'shell.exec'),
          (call) => {
            call['n'] = n;
          },
        );
      expect(found([...flow, again(90)])).toEqual([]);
      expect(found([...flow, again(90), again(91)])).toEqual(['CLA-5 APPROVAL_REUSED']);
    });
  });

  describe('CLA-6', () => {
    it('a token that is used twice', async () => {
      const lines = flowWith(27, (line) =>
        resigned(line, (payload) => {
          const trace = payload['trace'] as { steps: Record<string, unknown>[] };
          const [, call, result] = trace.steps;
          const again = (step: Record<string, unknown>) => ({
            ...step,
            data: { ...(step['data'] as object), toolCallId: 'tc2' },
          });
          trace.steps.push(again(call), again(result));
          for (const step of trace.steps) delete step['step_hash'];
        }),
      );
      const reading = read([http(lines)]);
      expect(codesOf(reading)).toEqual(['CLA-6 TOOL_TOKEN_REUSED', 'CLA-8 STEP_HASHES_MISSING']);
      expect(ledgerCodes(await ledgerOf(reading))).toContain('AUTHORIZATION_REUSED');
    });

    it.each([
      ['tool', 'toolName', 'fs.rm', 'CLA-6 TOOL_TOKEN_OTHER_TOOL', 'TOOL_MISMATCH'],
      [
        'scope',
        'tool_token_scope_hash',
        `sha256:${'0'.repeat(64)}`,
        'CLA-6 TOOL_TOKEN_OTHER_SCOPE',
        'TOOL_PARAMS_MISMATCH',
      ],
    ])('a token for another %s', async (_, name, value, code, inLedger) => {
      const lines = flowWith(27, (line) =>
        resigned(line, (payload) => {
          const { steps } = payload['trace'] as { steps: Record<string, unknown>[] };
          (steps[1]['data'] as Record<string, unknown>)[name] = value;
          for (const step of steps) delete step['step_hash'];
        }),
      );
      const reading = read([http(lines)]);
      expect(codesOf(reading)).toEqual([code, 'CLA-8 STEP_HASHES_MISSING']);
      expect(ledgerCodes(await ledgerOf(reading))).toContain(inLedger);
    });

    it('a token of another execution', () => {
      const reading = read([http([...calls(1, 2, 6, 12, 16, 20, 25), ...calls(44)])]);
      expect(codesOf(reading)).toContain('CLA-6 TOOL_TOKEN_OTHER_EXECUTION');
    });

    it('a token that has expired', () => {
      const lines = flow.map((line) =>
        line.replace('"expires_at":"2026-11-21T20:07:49.000Z"', '"expires_at":"2026-02-06T14:12:31Z"'),
      );
      expect(found(lines)).toEqual(['CLA-6 TOOL_TOKEN_EXPIRED']);
    });

    it('a token that nobody issued', () => {
      expect(
        found(
          flowWith(25, (line) =>
            line.replace('exec_abc123', 'exec_other').replace(/"tool_token":"[^"]*"/, '"tool_token":null'),
          ),
        ),
      ).toContain('CLA-6 TOOL_TOKEN_UNKNOWN');
    });

    it('a token for something else than was asked', () => {
      expect(found(flowWith(25, (line) => line.replaceAll('"cwd":"/w"', '"cwd":"/"')))).toEqual([
        'CLA-6 TOOL_TOKEN_MISMATCH',
      ]);
    });

    it('a token whose id was issued for something else before', () => {
      const again = (line: string) => [
        line,
        edited(line, (call) => {
          const scope = { cmd: 'other' };
          const hash = stableHash(parse(JSON.stringify(scope)));
          call.request['requested_scope'] = scope;
          call.response['granted_scope'] = scope;
          const claims = claimsOf(call.response['tool_token']);
          call.response['tool_token'] = token({ ...claims, scope, scope_hash: hash });
        }),
      ];
      expect(found(flowWith(25, again))).toEqual(['CLA-6 TOOL_TOKEN_MISMATCH']);
    });

    it('a tool that was refused', async () => {
      const refused = calls(26)[0].replaceAll('"tool":"fs.rm"', '"tool":"shell.exec"');
      const traced = (line: string) =>
        resigned(line, (payload) => {
          const { steps } = payload['trace'] as { steps: Record<string, unknown>[] };
          delete (steps[1]['data'] as Record<string, unknown>)['tool_token_jti'];
          for (const step of steps) delete step['step_hash'];
        });
      const lines = flow.flatMap((line, i) =>
        FLOW[i] === 25 ? refused : FLOW[i] === 27 ? traced(line) : line,
      );
      const reading = read([http(lines)]);
      expect(codesOf(reading)).toEqual(['CLA-6 TOOL_RAN_AFTER_DENY', 'CLA-8 STEP_HASHES_MISSING']);
      expect(ledgerCodes(await ledgerOf(reading))).toContain('EXECUTION_UNDER_DENY');
    });
  });

  describe('CLA-7', () => {
    it('the same content again is a repetition, other content is a conflict', () => {
      const same = read([http([...flow, ...calls(28)])]);
      expect(codesOf(same)).toEqual([]);
      expect(same.items.at(-1)).toMatchObject({ fate: 'repeated', reason: 'DUPLICATE' });
      for (const number of [29, 31]) {
        const other = read([http([...flow, ...calls(number)])]);
        expect(codesOf(other)).toEqual(['CLA-7 IDEMPOTENCY_CONFLICT']);
        expect(other.items.at(-1)).toMatchObject({ fate: 'evidence' });
      }
    });

    it('a corrected retry that the host passed over is taken', () => {
      const reading = read([http(calls(1, 2, 6, 45, 46))]);
      expect(codesOf(reading)).toContain('CLA-7 RETRY_LOST');
      expect(reading.claims.map(({ id }) => id)).toContain('call:dev-tenant/trace_l1/tc1');
    });
  });

  describe('CLA-8', () => {
    function traced(edit: (steps: Record<string, unknown>[]) => void): string[] {
      return flowWith(27, (line) =>
        resigned(line, (payload) => edit((payload['trace'] as { steps: Record<string, unknown>[] }).steps)),
      );
    }

    it.each<[string, (steps: Record<string, unknown>[]) => void, string[]]>([
      ['a step that was edited', (steps) => (steps[1]['durationMs'] = 1), ['CLA-8 STEP_HASH_MISMATCH']],
      ['a step that was cut out', (steps) => steps.splice(0, 1), ['CLA-8 STEP_PREV_HASH_MISMATCH']],
      ['a hash that was cut out', (steps) => delete steps[2]['step_hash'], ['CLA-8 STEP_HASH_MISSING']],
      ['data that the host drops, not hashed', (steps) => (dataOf(steps[2])['extra'] = 1), []],
      [
        'data that the host drops, hashed',
        (steps) => {
          dataOf(steps[2])['extra'] = 1;
          steps[2]['step_hash'] = stepHash(parse(JSON.stringify(steps[2])), false);
        },
        ['CLA-8 STEP_DATA_STRIPPED'],
      ],
      ['no steps at all', (steps) => steps.splice(0), ['CLA-8 NO_STEPS']],
    ])('%s', (_, edit, codes) => {
      expect(found(traced(edit))).toEqual(codes);
    });
  });

  describe('CLA-9', () => {
    const bundle = (edit: (texts: Map<string, string>) => void, options?: HostOptions): string[] => {
      const known = codesOf(read(forged(() => undefined)));
      const left = codesOf(read(forged(edit), options));
      for (const code of known) if (left.includes(code)) left.splice(left.indexOf(code), 1);
      return left;
    };
    const chainWith = (edit: (text: string) => string) => (texts: Map<string, string>) => {
      texts.set('audit_chain.jsonl', edit(texts.get('audit_chain.jsonl')!));
    };

    it('an entry that was edited', () => {
      const edit = chainWith((text) => text.replace('"cost_usd":0.0031', '"cost_usd":0.0030'));
      // The row of the log and the chain then differ, whichever was edited.
      expect(bundle(edit)).toEqual([
        ...[
          'CLA-10 CHAIN_STATUS_WRONG',
          'CLA-4 COST_DISAGREES',
          'CLA-9 AUDIT_NOT_IN_CHAIN',
          'CLA-9 AUDIT_ROW_MISSING',
        ],
        'CLA-9 EVENT_HASH_MISMATCH',
      ]);
    });

    it('an entry that was cut out', () => {
      const codes = bundle((texts) => {
        texts.set('audit_chain.jsonl', without(texts.get('audit_chain.jsonl')!, 15));
        texts.set('audits.jsonl', texts.get('audits.jsonl')!.replace(/^\{"id":15.*\n/m, ''));
      });
      expect(codes).toEqual(['CLA-10 CHAIN_STATUS_WRONG', 'CLA-9 SEQ_GAP']);
    });

    it('an entry that names another before it', () => {
      const codes = bundle(chainWith((text) => text.replace(/("seq":15,"prevEventHash":"sha256:)3/, '$14')));
      expect(codes).toEqual([
        'CLA-10 CHAIN_STATUS_WRONG',
        'CLA-9 EVENT_HASH_MISMATCH',
        'CLA-9 PREV_HASH_MISMATCH',
      ]);
    });

    it('a beginning that was cut off', () => {
      const codes = bundle((texts) => {
        texts.set('audit_chain.jsonl', without(texts.get('audit_chain.jsonl')!, 1));
        texts.set('audits.jsonl', without(texts.get('audits.jsonl')!, 23));
      });
      expect(codes).toEqual(['CLA-10 CHAIN_STATUS_WRONG', 'CLA-9 CHAIN_START_MISSING']);
    });

    it('an end that was cut off, against the head that somebody kept', () => {
      const last = JSON.parse(httpLines()[46]) as {
        response: { chain: { seq: number; eventHash: string }[] };
      };
      const { seq, eventHash } = last.response.chain.at(-1)!;
      const head = (hash: string) => ({
        'chain-head': file('head.json', JSON.stringify({ seq, event_hash: hash })),
      });
      const cut = (texts: Map<string, string>): void => {
        texts.set('audit_chain.jsonl', without(texts.get('audit_chain.jsonl')!, 23));
        texts.set('audits.jsonl', without(texts.get('audits.jsonl')!, 1));
        texts.set('traces.jsonl', without(texts.get('traces.jsonl')!, 2));
      };
      expect(bundle(cut)).toEqual([]);
      expect(bundle(cut, { aids: head(eventHash) })).toEqual(['CLA-9 CHAIN_TRUNCATED']);
      expect(bundle(() => undefined, { aids: head(eventHash) })).toEqual([]);
      expect(bundle(() => undefined, { aids: head(`sha256:${'0'.repeat(64)}`) })).toEqual([
        'CLA-9 CHAIN_FORKED',
      ]);
    });

    it('an end that was cut off, against another copy of the chain', () => {
      const cut = forged((texts) => {
        texts.set('audit_chain.jsonl', without(texts.get('audit_chain.jsonl')!, 23));
        texts.set('audits.jsonl', without(texts.get('audits.jsonl')!, 1));
        texts.set('traces.jsonl', without(texts.get('traces.jsonl')!, 2));
      });
      expect(codesOf(read([http(calls(47)), ...cut]))).toContain('CLA-9 CHAIN_TRUNCATED');
    });
  });

  describe('CLA-10', () => {
    function bundleCodes(files: readonly HostFile[], options?: HostOptions): string[] {
      return codesOf(read(files, options)).filter((code) => code.startsWith('CLA-10'));
    }

    it('the forged bundle that the host’s own verifier passes is caught, each thing by its rule', () => {
      const reading = read(
        forged((texts) => {
          texts.set('audit_chain.jsonl', without(texts.get('audit_chain.jsonl')!, 18, 19, 20, 21, 22, 23));
          texts.set('audits.jsonl', `${texts.get('audits.jsonl')!.split('\n').slice(-3, -1).join('\n')}\n`);
          texts.set(
            'traces.jsonl',
            texts.get('traces.jsonl')!.replace('npm install left-pad', 'npm install right-pad'),
          );
        }),
      );
      const of = (rule: string) => codesOf(reading).filter((code) => code.startsWith(rule));
      expect(of('CLA-8')).toEqual(['CLA-8 STEP_HASH_MISMATCH', 'CLA-8 STEP_HASH_MISMATCH']);
      expect(of('CLA-9')).toEqual(['CLA-9 AUDIT_ROW_MISSING', 'CLA-9 TRACE_NOT_IN_CHAIN']);
      expect(of('CLA-10')).toEqual(['CLA-10 TRACE_STATUS_WRONG']);
      const pinned = { aids: { 'pinned-key': file('key.jwk', PUBLIC_JWK) } };
      expect(
        bundleCodes(
          forged(() => undefined),
          pinned,
        ),
      ).toEqual(['CLA-10 SIGNATURE_MISSING']);
    });

    it('a trace that was taken out is missing, though the digests and counts were made anew', () => {
      const reading = read(
        forged((texts) => texts.set('traces.jsonl', without(texts.get('traces.jsonl')!, 1))),
      );
      expect(codesOf(reading).filter((code) => /^CLA-(?:9|10) /.test(code))).toEqual(['CLA-9 TRACE_MISSING']);
    });

    it('a trace whose steps were all hashed anew differs from what was ingested', () => {
      const files = forged((texts) => {
        texts.set('traces.jsonl', texts.get('traces.jsonl')!.replaceAll(/,"step_hash":"[^"]*"/g, ''));
      });
      const codes = codesOf(read([http(calls(1, 2, 12, 16, 20, 25, 27)), ...files]));
      expect(codes).not.toContain('CLA-10 TRACE_EDITED');
      const edited = forged((texts) => {
        texts.set(
          'traces.jsonl',
          texts.get('traces.jsonl')!.replace('left-pad"},"permitted', 'right-pad"},"permitted'),
        );
      });
      expect(codesOf(read([http(calls(1, 2, 12, 16, 20, 25, 27)), ...edited]))).toContain(
        'CLA-10 TRACE_EDITED',
      );
    });

    it.each<[string, (files: Map<string, string>) => void, string[]]>([
      [
        'a file that is missing',
        (files) => files.delete('adapters.json'),
        ['CLA-10 COUNT_MISMATCH', 'CLA-10 FILE_MISSING'],
      ],
      [
        'a file that was edited',
        (files) => files.set('adapters.json', files.get('adapters.json')!.replace('"low"', '"lax"')),
        ['CLA-10 FILE_HASH_MISMATCH'],
      ],
      ['no integrity file', (files) => files.delete('integrity.json'), ['CLA-10 INTEGRITY_MISSING']],
      [
        'no digest of the integrity file',
        (files) => files.delete('verify.sha256'),
        ['CLA-10 VERIFY_FILE_MISSING'],
      ],
      [
        'another digest of it',
        (files) => files.set('verify.sha256', files.get('verify.sha256')!.replace('4', '5')),
        ['CLA-10 INTEGRITY_HASH_MISMATCH'],
      ],
    ])('%s', (_, edit, codes) => {
      const files = new Map(
        forged(() => undefined).map((each) => [each.name.slice(7), new TextDecoder().decode(each.bytes)]),
      );
      edit(files);
      expect(bundleCodes([...files].map(([name, text]) => file(`bundle/${name}`, text)))).toEqual(codes);
    });

    it('a digest that was taken out of the list, a path that leads out of the bundle, a count', () => {
      const listed = (edit: (files: Record<string, unknown>) => void) =>
        bundleCodes(
          forged(
            () => undefined,
            (value) => edit(value['files'] as Record<string, unknown>),
          ),
        );
      expect(listed((files) => delete files['traces.jsonl'])).toEqual(['CLA-10 FILE_NOT_LISTED']);
      expect(listed((files) => (files['../../etc/passwd'] = 'sha256:0'))).toEqual(['CLA-10 PATH_UNSAFE']);
    });

    it('a signature: by the pinned key or not, over the documented input or the verifier’s own', () => {
      const signed = (withKeyId: boolean) =>
        forged(
          () => undefined,
          (value) => {
            const input = withKeyId ? { ...value, key_id: 'export-1' } : value;
            const signature = sign(stableBytes(parse(JSON.stringify(input))));
            Object.assign(value, {
              signature,
              public_key: JSON.parse(PUBLIC_JWK) as unknown,
              key_id: 'export-1',
            });
          },
        );
      const pinned = (jwk: string) => ({ aids: { 'pinned-key': file('key.jwk', jwk) } });
      expect(bundleCodes(signed(false), pinned(PUBLIC_JWK))).toEqual(['CLA-10 SIGNED_WITHOUT_KEY_ID']);
      expect(bundleCodes(signed(true), pinned(PUBLIC_JWK))).toEqual(['CLA-10 SIGNED_WITH_KEY_ID']);
      expect(bundleCodes(signed(false))).toEqual([
        'CLA-10 SIGNATURE_KEY_NOT_PINNED',
        'CLA-10 SIGNED_WITHOUT_KEY_ID',
      ]);
      const other = '{"crv":"Ed25519","kty":"OKP","x":"PUAXw-hDiVqStwqnTRt-vJyYLM8uxJaMwM1V8Sr0Zgw"}';
      expect(bundleCodes(signed(false), pinned(other))).toEqual([
        'CLA-10 SIGNATURE_INVALID',
        'CLA-10 SIGNATURE_KEY_MISMATCH',
      ]);
    });
  });

  describe('CLA-11', () => {
    const again = (
      edit: (response: { granted_scope: Record<string, unknown> }, request: Record<string, unknown>) => void,
    ) => [
      ...calls(1, 2, 6),
      edited(calls(6)[0], (call) => {
        call['n'] = 90;
        edit(call.response as { granted_scope: Record<string, unknown> }, call.request);
      }),
    ];

    it('the same again is none', () => {
      expect(found(again(() => undefined))).toEqual([]);
    });

    it.each<[string, unknown]>([
      ['capabilities', ['filesystem.read', 'db.drop']],
      ['max_steps', 11],
      ['max_cost', 0.51],
    ])('more %s', (name, value) => {
      expect(found(again((response) => (response.granted_scope[name] = value)))).toEqual([
        'CLA-11 SCOPE_ESCALATED',
      ]);
    });

    it('more than was asked for, where the answer does not say what is granted', () => {
      const lines = again((response, request) => {
        delete (response as Partial<typeof response>).granted_scope;
        request['requested_capabilities'] = ['filesystem.read', 'db.drop'];
      });
      expect(found(lines)).toEqual(['CLA-11 SCOPE_ESCALATED', 'CLA-4 SCOPE_NOT_STATED']);
    });
  });

  describe('CLA-12', () => {
    const by = (role: string) => flowWith(16, (line) => line.replace('"role":"admin"', `"role":"${role}"`));

    it.each(['viewer', 'operator', 'somebody'])('an approval by a %s', async (role) => {
      const reading = read([http(by(role))]);
      expect(codesOf(reading)).toEqual(['CLA-12 APPROVER_ROLE']);
      expect(ledgerCodes(await ledgerOf(reading))).toContain('ALLOW_WITH_FAILED_CHECK');
    });

    it('an approval by the role that is required', () => {
      expect(found(by('release_manager'))).toEqual([]);
    });

    it('an approval that nobody gave', async () => {
      const line = calls(6)[0].replace(
        '"allowed":true',
        '"allowed":true,"requires_approval":true,"auto_allowed_in_core":true',
      );
      const reading = read([http([...calls(1, 2), line])]);
      expect(codesOf(reading)).toEqual(['CLA-12 AUTO_ALLOWED']);
      expect(ledgerCodes(await ledgerOf(reading))).toContain('ALLOW_WITH_FAILED_CHECK');
    });
  });

  it('is decided, each of them', () => {
    expect(clasper.rules.map(({ id }) => id)).toEqual(Array.from({ length: 12 }, (_, i) => `CLA-${i + 1}`));
    expect(clasper.rules.every(({ undecidable }) => undecidable === undefined)).toBe(true);
  });
});
