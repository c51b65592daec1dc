/** What the numbers of the activity report mean, one at a time. */

import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { withoutGroups } from '../../src/out/activity/limits.js';
import { MAX_GROUPS } from '../../src/out/activity/groups.js';
import { MAX_LONG_SUM_BYTES } from '../../src/out/activity/sums.js';
import { canonicalText } from '../../src/base/json/canonicalize.js';
import { renderActivity } from '../../src/out/text/activity-document.js';
import { reportActivity, type ActivityOptions } from '../../src/out/activity/report-activity.js';
import type { ActivityReport } from '../../src/format/schema/generated/types.js';
import type { AnyEvent } from '../../src/api/index.js';
import { action, anchorOf, execution, grant, unsigned, usd } from '../docs/grant-kit.js';
import { exportCsv } from '../../src/out/export/table/csv-tables.js';
import { MemorySink } from '../table/kit.js';
import { DIGEST, event, genesis, keyOf, ledger, makeSigner, note } from '../docs/ledger-kit.js';

const report = (events: readonly AnyEvent[], options: ActivityOptions = {}): Promise<ActivityReport> =>
  reportActivity(unsigned(...events), options);

const own = grant();
const basis = { meter_basis: 'estimated' };

function adjustment(direction: string, amount: number, members: object = {}): AnyEvent {
  return event('adjustment', {
    principal_id: 'service:billing',
    grant_event_id: own.event_id,
    direction,
    meters: usd(amount),
    reason: 'BILL',
    ...members,
  });
}

describe('what was spent', () => {
  it('is used, with what was added and taken off', async () => {
    const { totals } = await report([
      own,
      execution(own, 4, basis),
      adjustment('debit', 2),
      adjustment('credit', 1),
    ]);
    expect(totals.meters).toEqual([
      {
        unit: 'usd',
        spent: '5',
        used: '4',
        debited: '2',
        credited: '1',
        basis: { estimated: '4', unstated: '2' },
        reserved: '0',
      },
    ]);
  });

  it('has nothing of a credit that is refused', async () => {
    const { totals, adjustments } = await report([own, execution(own, 1), adjustment('credit', 2)]);
    expect(totals.meters[0]?.spent).toBe('1');
    expect(totals.adjustments).toEqual({ credits: 1, debits: 0, refused: 1 });
    expect(adjustments[0]?.amounts).toEqual([{ unit: 'usd', amount: '2', counted: false }]);
  });

  it('has units that no grant caps', async () => {
    const meters = [{ unit: 'tokens', amount: { t: 'rat', n: '1', d: '3' } }];
    const { totals } = await report([own, execution(own, 0, { meter_used: meters })]);
    expect(totals.meters.map(({ unit, spent }) => [unit, spent])).toEqual([['tokens', '1/3']]);
  });

  it('says that records which only the end shows to be invalid were counted before', async () => {
    const path = `../../fixtures/broken/key-not-valid-here-uncovered-two-revoked.jsonl`;
    const lines = readFileSync(new URL(path, import.meta.url));
    const { totals, limits } = await reportActivity(lines);
    expect(totals.verdicts.invalid).toBe(3);
    expect(limits.map(({ code }) => code)).toContain('LATE_VERDICTS');
    const sound = await report([own, execution(own, 1)]);
    expect(sound.limits.map(({ code }) => code)).not.toContain('LATE_VERDICTS');
  });

  it('has what nothing authorized, told apart', async () => {
    const denied = action(own, 1, { decision: 'deny' });
    const done = { tool_params_digest: DIGEST };
    const { totals, verdict, limits } = await report([
      own,
      denied,
      execution(denied, 3, done),
      execution(note(1), 2),
    ]);
    expect([totals.meters[0]?.spent, totals.meters[0]?.unauthorized]).toEqual(['5', '5']);
    expect(totals.executions.unauthorized).toBe(2);
    expect(verdict).toBe('invalid');
    expect(limits.map(({ code }) => code)).toContain('UNAUTHORIZED_COUNTED');
  });

  it('has an event that is repeated once', async () => {
    const once = execution(own, 4);
    const { totals } = await report([own, once, once]);
    expect([totals.meters[0]?.spent, totals.uncounted]).toEqual(['4', 1]);
  });
});

describe('what was not run', () => {
  const failed = { outcome: 'failure', tool_params_digest: DIGEST };

  it('is denied, blocked, released or open', async () => {
    const denied = action(own, 1, { decision: 'deny' });
    const released = action(own, 2);
    const { totals, blocked, open } = await report([
      own,
      denied,
      execution(denied, 0, { ...failed, error_code: 'DENIED' }),
      released,
      execution(released, 0, { ...failed, error_code: 'ABANDONED' }),
      action(own, 3),
    ]);
    expect(totals.actions).toEqual({ allowed: 2, denied: 1 });
    expect(totals.executions).toMatchObject({ success: 0, failure: 0, blocked: 1, released: 1 });
    expect(blocked).toHaveLength(1);
    expect(open[0]?.reserved).toEqual([{ unit: 'usd', amount: '3' }]);
    expect(totals.meters.map(({ spent, reserved }) => [spent, reserved])).toEqual([['0', '3']]);
  });
});

describe('a part of a ledger', () => {
  it('has the corrections of the grants of its principal, whoever made them', async () => {
    const selection = { principal: 'agent:a1' };
    const { totals, selection: told } = await report([own, execution(own, 4), adjustment('credit', 1)], {
      selection,
    });
    expect([totals.meters[0]?.spent, told.is_whole, told.records]).toEqual(['3', false, 3]);
  });

  it('says what is wrong outside of it', async () => {
    const { verdict, exit_status, problems, limits } = await report([own, execution(own, 11)], {
      selection: { until: '2026-01-01T12:00:00Z' },
    });
    expect([verdict, exit_status, problems]).toEqual(['violation', 3, []]);
    expect(limits.map(({ code }) => code)).toEqual(
      expect.arrayContaining(['SELECTION', 'ELSEWHERE', 'OPEN_AT_THE_END']),
    );
  });

  it('has the delegations that were denied under its grant', async () => {
    const refused = grant({}, own, { decision: 'deny', decision_code: 'NO' });
    const selection = { grantId: `sha-256:${own.event_id.b64}` };
    const { totals, denied } = await report([own, refused], { selection });
    expect([totals.grants, denied.map(({ decision_code: code }) => code)]).toEqual([
      { allowed: 1, denied: 1 },
      ['NO'],
    ]);
    const events = new MemorySink();
    const others = { meters: new MemorySink(), verification: new MemorySink() };
    const { selected } = await exportCsv(unsigned(own, refused), { events, ...others }, { selection });
    expect(selected).toBe(2);
  });

  it('leaves out the grants above the one that was asked for', async () => {
    const child = grant({ meter_caps: usd(5) }, own, { decision_code: 'CHILD' });
    const events = [own, child, execution(own, 1), execution(child, 2)];
    const { groups } = await report(events, {
      selection: { grantId: `sha-256:${child.event_id.b64}` },
      by: 'grant',
    });
    expect(groups?.map(({ totals }) => totals.meters[0]?.spent)).toEqual(['2']);
  });
});

describe('a grant', () => {
  it('has what was used under those delegated from it, of the whole ledger', async () => {
    const child = grant({ meter_caps: usd(5) }, own, { principal_id: 'agent:a2' });
    const { grants } = await report(
      [own, child, execution(own, 1), execution(child, 2, { principal_id: 'agent:a2' })],
      { selection: { principal: 'agent:a1' } },
    );
    expect(grants.map(({ meters }) => meters[0])).toMatchObject([{ used: '3', delegated: '2' }]);
  });

  it('has its action caps, and by how much they and its caps were exceeded', async () => {
    const bounded = grant({ action_caps: usd(2) });
    const { grants, problems } = await report([bounded, execution(bounded, 11)]);
    expect(grants[0]?.action_caps).toEqual([{ unit: 'usd', amount: '2' }]);
    const id = `sha-256:${bounded.event_id.b64}`;
    expect(Object.fromEntries(problems.map(({ code, first }) => [code, first[0]?.over]))).toEqual({
      ACTION_CAP_EXCEEDED: { unit: 'usd', amount: '9', grant_event_id: id },
      METER_CAP_EXCEEDED: { unit: 'usd', amount: '1', grant_event_id: id },
    });
  });

  it('is signed by a key whose owner is told, as a denial is', async () => {
    const signer = makeSigner();
    const keys = [keyOf(signer, { principals: ['agent:a1'] })];
    const denied = action(own, 1, { decision: 'deny' });
    const items = [genesis(keys), own, denied].map((each) => ({ event: each, signers: [signer] }));
    const told = await reportActivity(ledger(...items));
    const by = [{ keyid: signer.publicKey.keyid, owner: 'agent:a1', pinned: false }];
    expect([told.grants[0]?.signers, told.denied[0]?.signers]).toEqual([by, by]);
  });
});

it('a correction names the grant and the execution by where they stand', async () => {
  const used = execution(own, 4);
  const credit = adjustment('credit', 1, { execution_event_id: used.event_id });
  const { adjustments } = await report([own, used, credit]);
  expect(adjustments[0]).toMatchObject({ grant_seq: 1, execution_seq: 2 });
});

it('a report without its groups is the report that has none', async () => {
  const events = [own, execution(own, 4), adjustment('credit', 1)];
  for (const selection of [{}, { principal: 'agent:*' }, { tool: 'fs.*' }]) {
    const plain = await report(events, { selection });
    for (const by of ['principal', 'grant', 'tool'] as const) {
      expect(withoutGroups(await report(events, { selection, by }))).toEqual(plain);
    }
  }
});

describe('whether anything is missing', () => {
  const events = [own, execution(own, 1), execution(own, 2)];
  const bytes = unsigned(...events);
  const cut = Buffer.from(bytes.toString().split('\n').slice(0, 3).join('\n') + '\n');
  const answer = (of: ActivityReport): string =>
    renderActivity(of).split('Is anything missing?\n')[1]?.trimStart().split(/[:. ]/)[0] ?? '';

  it('is told by the checkpoint that is held, of a part as of the whole', async () => {
    const checkpoints = [anchorOf(bytes, makeSigner())];
    for (const selection of [{}, { principal: 'agent:nobody' }]) {
      const whole = await reportActivity(bytes, { checkpoints, selection });
      expect([whole.ledger.anchors[0]?.relation, answer(whole)]).toEqual(['extends', 'NO']);
      const short = await reportActivity(cut, { checkpoints, selection });
      expect(short.ledger.anchors).toEqual([
        { path: 'kept.checkpoint', tree_size: 4, relation: 'truncated' },
      ]);
      expect(short.problems.map(({ code, of_ledger: isOfLedger }) => [code, isOfLedger])).toEqual([
        ['TRUNCATED', true],
      ]);
      const other = await reportActivity(unsigned(own, execution(own, 3), execution(own, 2)), {
        checkpoints,
        selection,
      });
      expect(other.problems.map(({ code }) => code)).toEqual(['FORKED']);
      for (const wrong of [short, other]) {
        expect(answer(wrong)).toMatch(/^YES/);
        expect(renderActivity(wrong)).not.toContain('All of it was allowed');
        expect(renderActivity(wrong)).not.toContain('the ledger extends the checkpoint');
      }
    }
  });

  it('is told up to where the checkpoint reaches, and not of what came after it', async () => {
    const partly = await reportActivity(bytes, { checkpoints: [anchorOf(bytes, makeSigner(), 3)] });
    expect(answer(partly)).toBe('NO,');
    const [open] = partly.not_checked.filter(({ code }) => code === 'TRUNCATION');
    expect(open?.shown_before_seq).toBe(3);
    expect(renderActivity(partly)).toContain('NO, up to seq 2:');
    const empty = await reportActivity(bytes, { checkpoints: [anchorOf(bytes, makeSigner(), 0)] });
    expect(answer(empty)).toBe('That');
  });

  it('is told by the chain, and of a torn line', async () => {
    const [first = '', second = '', ...rest] = bytes.toString().split('\n');
    const gap = await reportActivity(Buffer.from([first, ...rest].join('\n')));
    expect([gap.ledger.seq_gaps, gap.ledger.chain_breaks, answer(gap)]).toEqual([1, 1, 'YES']);
    const torn = await reportActivity(Buffer.from(`${first}\n${second}`), {
      selection: { principal: 'agent:*' },
    });
    expect(torn.problems.map(({ code }) => code)).toEqual(['LINE_TORN']);
    expect(answer(torn)).toBe('YES');
    expect(renderActivity(torn)).not.toContain('All of it was allowed');
  });

  it('is not known without a checkpoint', async () => {
    expect(answer(await reportActivity(bytes))).toBe('That');
  });
});

it('groups beyond the bound are summed together', async () => {
  const tools = Array.from({ length: MAX_GROUPS + 5 }, (_, i) =>
    event('execution', {
      intents: { intent_digest: DIGEST },
      auth_event_id: DIGEST,
      principal_id: `agent:a${i}`,
      tool_name: `t${i}`,
      meter_used: usd(1),
      outcome: 'success',
    }),
  );
  const { groups, others, totals, limits } = await report(tools, { by: 'tool' });
  expect(groups).toHaveLength(MAX_GROUPS);
  // The genesis record has no tool, and so a group of its own.
  expect(others?.meters[0]?.spent).toBe('6');
  expect(totals.meters[0]?.spent).toBe(String(MAX_GROUPS + 5));
  expect(limits.map(({ code }) => code)).toEqual(
    expect.arrayContaining(['GROUPS_BEYOND', 'PRINCIPALS_BEYOND']),
  );
});

describe('sums of doubles, which may have a thousand digits', () => {
  const units = Array.from({ length: 64 }, (_, n) => `u${n}`);
  const amounts = ['7fe0000000000001', '0000000000001001'].map((bits) => ({ t: 'f64', bits }));
  const runs = Array.from({ length: 160 }, (_, i) =>
    amounts.map((amount, n) =>
      event('execution', {
        intents: { intent_digest: DIGEST },
        auth_event_id: DIGEST,
        principal_id: 'agent:a1',
        tool_name: `t${i}`,
        occurred_at: `2026-03-01T12:0${n}:00Z`,
        meter_used: units.map((unit) => ({ unit: `${unit}.${i}`, amount })),
        outcome: 'success',
      }),
    ),
  ).flat();

  it('are bounded together, and the others are told of', async () => {
    const { groups = [], totals, limits } = await report(runs, { by: 'tool' });
    const alone = await report(runs);
    expect(totals).toEqual(alone.totals);
    expect(alone.limits.map(({ code }) => code)).toContain('AMOUNTS_LEFT_OUT');
    expect(limits.map(({ code }) => code)).toEqual(
      expect.arrayContaining(['AMOUNTS_LEFT_OUT', 'GROUP_AMOUNTS_LEFT_OUT']),
    );
    expect(totals.meters).toHaveLength(64 * 160);
    const characters = totals.meters.reduce((all, { spent }) => all + spent.length, 0);
    // A byte is at most 2.5 digits of a denominator, and the fraction has more digits than that.
    expect(characters).toBeGreaterThan(MAX_LONG_SUM_BYTES);
    expect(characters).toBeLessThan(4 * MAX_LONG_SUM_BYTES);
    const leftOut = groups.reduce((all, group) => all + (group.totals.amounts_left_out ?? 0), 0);
    expect([leftOut, leftOut > 0]).toEqual([totals.amounts_left_out, true]);
  });

  it('are all there where they are few', async () => {
    const few = await report(runs.slice(0, 40), { by: 'tool' });
    expect(few.totals).not.toHaveProperty('amounts_left_out');
    expect(few.limits.map(({ code }) => code)).not.toContain('GROUP_AMOUNTS_LEFT_OUT');
  });
});

it('amounts that make only the sum under delegated grants too fine are told of', async () => {
  const children = [1, 2].map((n) => grant({}, own, { policy_id: `p${n}` }));
  const using = (on: AnyEvent, n: bigint, d: bigint): AnyEvent =>
    execution(on, 0, { meter_used: [{ unit: 'usd', amount: { t: 'rat', n: String(n), d: String(d) } }] });
  // Each pair is one in the account above, whose sum so stays short.
  const runs = children.flatMap((child, n) =>
    Array.from({ length: 6 }, (_, i) => {
      const d = 10n ** 37n + BigInt(2 * (6 * n + i) + 1);
      return [using(own, 1n, d), using(child, d - 1n, d)];
    }).flat(),
  );
  const { grants, totals, limits } = await report([own, ...children, ...runs], { by: 'grant' });
  expect([totals.meters[0]?.spent, grants[0]?.meters[0]?.used]).toEqual(['12', '12']);
  const codes = limits.map(({ code }) => code);
  expect(codes).toEqual(expect.arrayContaining(['DELEGATED_LEFT_OUT', 'GROUP_AMOUNTS_LEFT_OUT']));
  expect(codes).not.toContain('AMOUNTS_LEFT_OUT');
});

it('a grant of the part is listed, however many grants came before', async () => {
  const before = Array.from({ length: MAX_GROUPS }, (_, i) => grant({}, undefined, { policy_id: `p${i}` }));
  const last = grant({}, undefined, { principal_id: 'agent:last' });
  const { grants, grants_total: total } = await report([...before, last], {
    selection: { principal: 'agent:last' },
  });
  expect([total, grants.map(({ event_id: id }) => id)]).toEqual([1, [`sha-256:${last.event_id.b64}`]]);
});

it('the words of a report of bare events claim no checkpoint', async () => {
  const bare = Buffer.from(`${canonicalText(own as never)}\n`);
  const end = 'the ledger extends the checkpoint that you hold';
  expect(renderActivity(await reportActivity(bare))).not.toContain(end);
});

it('refuses what it does not know', async () => {
  await expect(report([], { by: 'moon' as 'day' })).rejects.toThrow(RangeError);
  await expect(report([], { selected: {} } as never)).rejects.toThrow(TypeError);
});
