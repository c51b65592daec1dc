/** FOCUS cost rows: what the specification demands of every dataset, and what the rows mean. */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import {
  buildEvent,
  exportCsv,
  exportFocus,
  reportActivity,
  type FocusOptions,
  type LedgerInput,
} from '../../src/api/index.js';
import { execution, unsigned, usd } from '../docs/grant-kit.js';
import { HOSTILE_STRINGS } from '../hostile-strings.js';
import {
  aboutOf,
  adjustment,
  costlyLedger,
  csvObjects,
  MemorySink,
  parseCsv,
  pick,
  root,
  thirdsLedger,
} from './kit.js';

async function focus(ledger: LedgerInput, options: FocusOptions = {}) {
  const sinks = { costs: new MemorySink(), verification: new MemorySink() };
  const pass = await exportFocus(ledger, sinks, options);
  return {
    pass,
    rows: csvObjects(sinks.costs.text),
    names: parseCsv(sinks.costs.text)[0] ?? [],
    about: aboutOf(sinks.verification.text),
  };
}

const columns = fileURLToPath(new URL('../../../shared/specs/focus/specification/columns', import.meta.url));

interface ColumnSpec {
  readonly id: string;
  readonly isMandatory: boolean;
  readonly isNullable: boolean;
  readonly type: string;
  readonly allowed: readonly string[];
}

function readSpecs(): ColumnSpec[] {
  return readdirSync(columns).map((file) => {
    const text = readFileSync(`${columns}/${file}`, 'utf8');
    const constraint = (name: string): string =>
      new RegExp(`^\\|\\s*${name}\\s*\\|\\s*([^|]*?)\\s*\\|`, 'm').exec(text)?.[1] ?? '';
    const [, table = ''] = /Allowed values:\s*\n\n\|[^\n]*\n\|[^\n]*\n((?:\|[^\n]*\n)*)/.exec(text) ?? [];
    return {
      id: /## Column ID\s+(\w+)/.exec(text)?.[1] ?? '',
      isMandatory: constraint('Feature level') === 'Mandatory',
      isNullable: constraint('Allows nulls') === 'True',
      type: constraint('Data type'),
      allowed: table
        .split('\n')
        .map((line) => line.split('|')[1]?.trim() ?? '')
        .filter((value) => value !== ''),
    };
  });
}

describe.skipIf(!existsSync(columns))('the columns of FOCUS', () => {
  const specs = existsSync(columns) ? readSpecs() : [];

  it('are all there that every dataset must have, and come before all others', async () => {
    const { names } = await focus(costlyLedger);
    const known = specs.map(({ id }) => id);
    const mandatory = specs.filter(({ isMandatory }) => isMandatory).map(({ id }) => id);
    expect(mandatory.length).toBeGreaterThan(15);
    expect(mandatory.filter((id) => !names.includes(id))).toEqual([]);
    const own = names.findIndex((name) => name.startsWith('x_'));
    expect(names.slice(0, own).filter((name) => !known.includes(name))).toEqual([]);
    expect(names.slice(own).every((name) => name.startsWith('x_'))).toBe(true);
  });

  it('have values of their type, allowed ones, and none that is missing where it may not', async () => {
    const { rows } = await focus(costlyLedger);
    expect(rows.length).toBeGreaterThan(4);
    for (const row of rows) {
      for (const { id, isNullable, type, allowed } of specs) {
        const value = row[id];
        if (value === undefined) continue;
        if (value === '') expect([id, isNullable]).toEqual([id, true]);
        else if (type === 'Decimal') expect(value).toMatch(/^-?\d+(?:\.\d+)?$/);
        else if (type === 'Date/Time') expect(value).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
        if (value !== '' && allowed.length > 0) expect(allowed).toContain(value);
      }
    }
  });
});

describe('exportFocus', () => {
  it('has a cost row for each amount of money, and the other units of the execution without cost', async () => {
    const { rows, pass } = await focus(costlyLedger);
    expect(pass.rows).toBe(rows.length);
    expect(
      rows.map((row) =>
        pick(row, 'x_Seq', 'ChargeCategory', 'BilledCost', 'ConsumedQuantity', 'ConsumedUnit', 'x_Estimated'),
      ),
    ).toEqual([
      ['5', 'Usage', '2', '1', 'Calls', 'false'],
      ['6', 'Usage', '2.5', '1', 'Calls', 'true'],
      ['6', 'Usage', '0', '1200', 'tokens.input', 'true'],
      ['6', 'Usage', '0', '80', 'tokens.output', 'true'],
      ['8', 'Adjustment', '1', '', '', ''],
      ['9', 'Credit', '-0.75', '', '', ''],
    ]);
    expect(pick(rows[1], 'ServiceName', 'ServiceCategory', 'ProviderName', 'x_ProviderStated')).toEqual([
      'claude-opus',
      'AI and Machine Learning',
      'anthropic',
      'true',
    ]);
    expect(pick(rows[0], 'ProviderName', 'x_ProviderStated')).toEqual(['example.com/test', 'false']);
  });

  it('has a correction where the execution is that it corrects, as the report and the amounts have it', async () => {
    const llm = {
      principal_id: 'agent:a2',
      tool_name: 'llm.complete',
      model_id: 'm1',
      provider: 'acme',
    };
    const own = execution(root, 3, llm);
    const credit = adjustment('credit', usd(1), { execution_event_id: own.event_id });
    const ledger = unsigned(root, own, credit, adjustment('debit', usd(2)));
    const party = ['SubAccountId', 'ProviderName', 'x_ToolName', 'ServiceName', 'BilledCost'];
    const { rows } = await focus(ledger);
    expect(rows.map((row) => pick(row, ...party))).toEqual([
      ['agent:a2', 'acme', 'llm.complete', 'm1', '3'],
      ['agent:a2', 'acme', 'llm.complete', 'm1', '-1'],
      ['agent:a1', 'example.com/test', '', 'Adjustment', '2'],
    ]);
    const part = await focus(ledger, { selection: { principal: 'agent:a2' } });
    expect(part.rows.map((row) => row['BilledCost'])).toEqual(['3', '-1']);
    for (const [by, wanted] of [
      ['principal', { 'agent:a1': '2', 'agent:a2': '2' }],
      ['tool', { null: '2', 'llm.complete': '2' }],
    ] as const) {
      const { groups = [] } = await reportActivity(ledger, { by });
      const spent = groups.flatMap(({ key, totals: { meters } }) => meters.map((m) => [key, m.spent]));
      expect(Object.fromEntries(spent)).toEqual(wanted);
    }
    const meters = new MemorySink();
    await exportCsv(ledger, { meters, events: new MemorySink(), verification: new MemorySink() });
    expect(
      csvObjects(meters.text).flatMap((row) =>
        row['role'] === 'cap' ? [] : [pick(row, 'role', 'principal_id', 'tool_name')],
      ),
    ).toEqual([
      ['used', 'agent:a2', 'llm.complete'],
      ['credit', 'agent:a2', 'llm.complete'],
      ['debit', 'agent:a1', ''],
    ]);
  });

  it('has periods of whole seconds around what was recorded, and months for billing', async () => {
    const { rows } = await focus(costlyLedger);
    expect(pick(rows[1], 'ChargePeriodStart', 'ChargePeriodEnd', 'x_EndedAt')).toEqual([
      '2026-01-02T00:00:00Z',
      '2026-01-02T00:00:03Z',
      '2026-01-02T00:00:02.5Z',
    ]);
    expect(pick(rows[0], 'ChargePeriodEnd', 'BillingPeriodStart', 'BillingPeriodEnd')).toEqual([
      '2026-01-02T00:00:01Z',
      '2026-01-01T00:00:00Z',
      '2026-02-01T00:00:00Z',
    ]);
    for (const [time, start, end] of [
      ['2026-12-31T23:59:59.5Z', '2026-12-01T00:00:00Z', '2027-01-01T00:00:00Z'],
      ['1969-12-31T23:59:59.5Z', '1969-12-01T00:00:00Z', '1970-01-01T00:00:00Z'],
      ['9999-12-31T23:59:59.5Z', '9999-12-01T00:00:00Z', '9999-12-31T23:59:59Z'],
    ] as const) {
      const late = await focus(unsigned(root, execution(root, 1, { occurred_at: time })));
      expect(pick(late.rows[0], 'BillingPeriodStart', 'BillingPeriodEnd')).toEqual([start, end]);
    }
  });

  it('takes for money what it is told is money', async () => {
    const credits = execution(root, 0, { meter_used: [{ unit: 'llm.credits', amount: usd(3)[0]?.amount }] });
    const ledger = unsigned(root, credits);
    const untold = await focus(ledger);
    expect([untold.rows.length, untold.pass.withoutCost]).toEqual([0, 1]);
    expect(untold.about.get('executions_without_cost')).toBe('1');
    const told = await focus(ledger, { currencyUnits: { 'llm.credits': 'EUR' } });
    expect(pick(told.rows[0], 'BilledCost', 'BillingCurrency', 'x_MeterUnit')).toEqual([
      '3',
      'EUR',
      'llm.credits',
    ]);
    const both = unsigned(root, credits, execution(root, 2));
    const costs = await focus(both, { currencyUnits: { 'llm.credits': 'EUR' } });
    expect(costs.rows.map((row) => row['BillingCurrency'])).toEqual(['EUR', 'USD']);
    await expect(focus(ledger, { currencyUnits: { usd: 'ZZZ' } })).rejects.toThrow(RangeError);
  });

  it('says which amounts it cut, and what they are', async () => {
    const { rows, about } = await focus(thirdsLedger);
    expect(pick(rows[0], 'BilledCost', 'x_ExactAmount', 'x_Rounded')).toEqual([
      '0.333333333333333333',
      '1/3',
      'true',
    ]);
    expect(about.get('rounded_amounts')).toBe('1');
  });

  it('has no row for an event again, nor for a credit that is refused, and says what nothing allowed', async () => {
    const used = execution(root, 3);
    const stray = execution(buildEvent({ ...used, tool_name: 'fs.write' }), 1);
    const { rows, about } = await focus(unsigned(root, used, used, adjustment('credit', usd(9)), stray));
    expect(rows.map((row) => pick(row, 'BilledCost', 'x_Counted', 'x_RecordVerdict'))).toEqual([
      ['3', 'true', 'ok'],
      ['1', 'false', 'invalid'],
    ]);
    expect(about.get('verdict')).toBe('invalid');
  });

  it('lets outside text be text', async () => {
    const names = HOSTILE_STRINGS.map((text) => text.slice(0, 200).replace(/\p{Cs}/gu, '?')).filter(
      (text) => text !== '',
    );
    const events = names.map((name) => execution(root, 1, { provider: name, model_id: name }));
    const { rows } = await focus(unsigned(root, ...events));
    expect(new Set(rows.map(({ BilledCost }) => BilledCost))).toEqual(new Set(['1']));
    for (const row of rows) {
      expect(row['ProviderName']).not.toMatch(/^\s*[=+@]|^\s*-(?!\d+$)|\p{C}/u);
    }
  });
});
