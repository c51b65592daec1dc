/** The recorded run of OpenClaw 2026.3.13: what becomes of it. */

import { describe, expect, it } from 'vitest';
import { openclaw } from '../../../src/hosts/openclaw/index.js';
import type { ActionClaim, ExecutionClaim } from '../../../src/hosts/shared/host.js';
import { jcsDigest } from '../../../src/hosts/shared/values.js';
import { formatQuantity, fromRational, toRational } from '../../../src/base/value/quantity.js';
import { addRationals, ZERO, type Rational } from '../../../src/base/value/rational.js';
import { SourceObject } from '../../../src/base/json/source-json.js';
import { hasRecordings } from '../recorded.js';
import {
  cli,
  cliText,
  countsOf,
  fileOf,
  hooks,
  hooksText,
  imported,
  RUN_ID,
  transcript,
  transcriptText,
} from './kit.js';

const digestOfCommand = (command: string) => jcsDigest(new SourceObject(new Map([['command', command]])));

describe.skipIf(!hasRecordings)('the recorded run', () => {
  it('from its hooks alone', async () => {
    const { plan, account, report } = await imported([hooks(hooksText())]);
    expect(account.total).toEqual({ items: 73, mapped: 18, evidence: 20, repeated: 35, dropped: 0 });
    expect(Object.fromEntries(account.byReason)).toEqual({ SAME_EVENT: 17, SAME_CALL: 18 });
    expect(Object.fromEntries(plan.byType)).toEqual({
      authorization: 6,
      execution: 12,
      'x.openclaw.hook': 8,
      'x.openclaw.agent_event': 11,
      'x.openclaw.block_reason': 1,
      'x.openclaw.block_held': 1,
    });
    expect(countsOf(plan.findings)).toEqual({ 'OC-11 MODEL_CALL_NOT_DECIDED': 7, 'OC-11 NO_DECISION': 4 });
    expect(plan.unfit + plan.conflicting).toBe(0);
    // The seven model calls have no authorization, and nothing else is wrong.
    expect(report.verdict).toBe('invalid');
    expect(report.findings.filter(({ severity }) => severity !== 'info').map(({ code }) => code)).toEqual([
      'AUTH_NOT_FOUND',
    ]);
  });

  it('says of each call what was decided and what ran', () => {
    const { claims } = openclaw.read([hooks(hooksText())]);
    const decisions = claims.filter((claim): claim is ActionClaim => claim.kind === 'action');
    expect(decisions.map(({ id, decisionCode }) => [id.slice(-6), decisionCode])).toEqual([
      ['call_0', 'OPENCLAW_NO_DECISION'],
      ['call_1', 'OPENCLAW_NO_DECISION'],
      ['call_2', 'OPENCLAW_HOOK_BLOCKED'],
      ['call_3', 'OPENCLAW_PARAMS_REWRITTEN'],
      ['call_4', 'OPENCLAW_NO_DECISION'],
      ['call_5', 'OPENCLAW_NO_DECISION'],
    ]);
    expect(decisions[0]?.checks).toEqual([
      { check: 'openclaw.decision', result: 'pass', code: 'NO_DECISION' },
    ]);
    expect(decisions[3]?.paramsDigest).toEqual(digestOfCommand('echo rewritten'));
    const runs = claims.filter(
      (claim): claim is ExecutionClaim => claim.kind === 'execution' && claim.id.startsWith('run:'),
    );
    expect(runs.map(({ id, outcome, errorCode }) => [id.slice(-6), outcome, errorCode])).toEqual([
      ['call_0', 'success', undefined],
      ['call_1', 'success', undefined],
      ['call_3', 'success', undefined],
      ['call_4', 'failure', 'TOOL_ERROR'],
      ['call_5', 'failure', 'EXIT_3'],
    ]);
    expect(runs[2]?.paramsDigest).toEqual(digestOfCommand('echo rewritten'));
    expect(runs[0]?.meters).toContainEqual({ unit: 'time.ms', amount: { t: 'int', v: '43' } });
    expect(runs[0]).toMatchObject({ authorization: `decision:${RUN_ID}/call_0`, meterBasis: 'measured' });
  });

  it('keeps amounts as they were written', () => {
    const { claims } = openclaw.read([hooks(hooksText())]);
    const models = claims.filter(
      (claim): claim is ExecutionClaim => claim.kind === 'execution' && claim.id.startsWith('llm:'),
    );
    const usd = models.map(({ meters }) => meters.find(({ unit }) => unit === 'usd')?.amount);
    expect(usd).toHaveLength(7);
    // 0.00014199999999999998
    expect(usd[2]).toEqual({ t: 'dec', m: '14199999999999998', s: 20 });
    expect(models[0]).toMatchObject({ tool: 'llm.fake/fake-1', meterBasis: 'reported', outcome: 'success' });
  });

  it('adds up by unit to what the documentation says', () => {
    const sums = new Map<string, Rational>();
    for (const claim of openclaw.read([hooks(hooksText())]).claims) {
      if (claim.kind !== 'execution') continue;
      for (const { unit, amount } of claim.meters)
        sums.set(unit, addRationals(sums.get(unit) ?? ZERO, toRational(amount)));
    }
    expect(
      Object.fromEntries([...sums].map(([unit, sum]) => [unit, formatQuantity(fromRational(sum))])),
    ).toEqual({
      calls: '12',
      'time.ms': '134',
      'tokens.input': '721',
      'tokens.input.cache_creation': '0',
      'tokens.input.cache_read': '0',
      'tokens.output': '140',
      usd: '0.00100099999999999996',
    });
  });

  it('counts the tokens of the cache among those of the input, as other hosts do', () => {
    const text = hooksText().replaceAll('"cacheRead":0,"cacheWrite":0', '"cacheRead":1000,"cacheWrite":200');
    const call = openclaw.read([hooks(text)]).claims.find(({ id }) => id.startsWith('llm:'));
    expect(call?.kind === 'execution' ? call.meters : []).toMatchObject([
      { unit: 'calls', amount: { v: '1' } },
      { unit: 'tokens.input', amount: { v: '1300' } },
      { unit: 'tokens.output', amount: { v: '20' } },
      { unit: 'tokens.input.cache_read', amount: { v: '1000' } },
      { unit: 'tokens.input.cache_creation', amount: { v: '200' } },
      { unit: 'usd' },
    ]);
  });

  it('takes an exit status for success where the profile says so', () => {
    const profile = fileOf('profile.json', '{"nonzero_exit":"success"}');
    const { claims } = openclaw.read([hooks(hooksText())], { aids: { profile } });
    expect(claims.find(({ id }) => id === `run:${RUN_ID}/call_5`)).toMatchObject({ outcome: 'success' });
  });

  it('from its transcript alone, which shows no decision and no success', async () => {
    const { plan, account, report } = await imported([transcript(transcriptText())]);
    expect(account.total).toEqual({ items: 18, mapped: 11, evidence: 7, repeated: 0, dropped: 0 });
    expect(Object.fromEntries(plan.byType)).toEqual({
      execution: 11,
      'x.openclaw.transcript': 5,
      'x.openclaw.tool_result': 2,
    });
    expect(countsOf(plan.findings)).toEqual({
      'OC-11 MODEL_CALL_NOT_DECIDED': 7,
      'OC-11 DECISION_NOT_RECORDED': 6,
    });
    const runs = plan.reading.claims.filter(({ id }) => id.startsWith('transcript-run:'));
    expect(runs.map((claim) => [claim.id.slice(-6), (claim as ExecutionClaim).outcome])).toEqual([
      ['call_0', 'unknown'],
      ['call_1', 'unknown'],
      ['call_3', 'unknown'],
      ['call_5', 'unknown'],
    ]);
    expect(report.verdict).toBe('invalid');
  });

  it('counts every action once where all sources are given', async () => {
    const all = [hooks(hooksText()), transcript(transcriptText()), cli(cliText())];
    const { plan, account } = await imported(all);
    expect(account.total).toEqual({ items: 92, mapped: 18, evidence: 25, repeated: 49, dropped: 0 });
    expect(Object.fromEntries(account.byReason)).toEqual({
      SAME_EVENT: 17,
      SAME_CALL: 24,
      SAME_MODEL_CALL: 7,
      SAME_RUN: 1,
    });
    expect([plan.byType.get('authorization'), plan.byType.get('execution')]).toEqual([6, 12]);
    expect(countsOf(plan.findings)).toEqual({ 'OC-11 MODEL_CALL_NOT_DECIDED': 7, 'OC-11 NO_DECISION': 4 });
    const alone = openclaw.read([hooks(hooksText())]).claims.map(({ id }) => id);
    const ids = new Set(plan.reading.claims.map(({ id }) => id));
    expect(alone.filter((id) => !ids.has(id))).toEqual([]);
  });

  it('gives the same events of the beginning of a recording as of all of it', async () => {
    const text = hooksText();
    const { plan } = await imported([hooks(text)]);
    const whole = new Map(plan.events.map(({ sourceId, event }) => [sourceId, JSON.stringify(event)]));
    const lines = text.split('\n');
    for (let count = 1; count < lines.length; count += 7) {
      const { plan: part } = await imported([hooks(`${lines.slice(0, count).join('\n')}\n`)]);
      for (const { sourceId, event } of part.events)
        expect(JSON.stringify(event), `line ${count}`).toBe(whole.get(sourceId));
    }
  });

  it('finds its files by what is in them', () => {
    expect(
      [hooks(hooksText()), transcript(transcriptText()), cli(cliText())].map((file) =>
        openclaw.recognises(file),
      ),
    ).toEqual([true, true, true]);
    expect(openclaw.recognises(fileOf('x', '{"event_type":"decision_made"}\n'))).toBe(false);
  });
});
