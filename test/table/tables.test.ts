/** A ledger as tables: what is in the rows, in CSV and, read by DuckDB, in Parquet. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DuckDBInstance, type DuckDBConnection } from '@duckdb/node-api';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  buildEvent,
  exportCsv,
  exportParquet,
  verifyLedger,
  type ExportOptions,
  type LedgerInput,
} from '../../src/api/index.js';
import { writeFolderThrough } from '../../src/log/fs/file-sink.js';
import { MAX_GROUP_ROWS } from '../../src/out/export/table/parquet-tables.js';
import { DECIMAL_PRECISION, DECIMAL_SCALE, decimalText, toDecimal } from '../../src/out/export/table/rows.js';
import { execution, grant, unsigned, usd } from '../docs/grant-kit.js';
import { bare, event, genesis, note } from '../docs/ledger-kit.js';
import { HOSTILE_STRINGS } from '../hostile-strings.js';
import { aboutOf, costlyLedger, csvObjects, MemorySink, pick, root, thirdsLedger } from './kit.js';

async function csv(ledger: LedgerInput, options: ExportOptions = {}) {
  const sinks = { events: new MemorySink(), meters: new MemorySink(), verification: new MemorySink() };
  const pass = await exportCsv(ledger, sinks, options);
  return {
    pass,
    texts: [sinks.events.text, sinks.meters.text, sinks.verification.text],
    events: csvObjects(sinks.events.text),
    meters: csvObjects(sinks.meters.text),
    about: aboutOf(sinks.verification.text),
  };
}

describe('exportCsv', () => {
  it('has a row for each record, in order, with what became of it', async () => {
    const { events } = await csv(costlyLedger);
    expect(events.map((row) => pick(row, 'seq', 'event_type', 'verdict', 'kind', 'decision'))).toEqual([
      ['0', 'genesis', 'ok', '', ''],
      ['1', 'authorization', 'ok', 'grant', 'allow'],
      ['2', 'authorization', 'ok', 'grant', 'allow'],
      ['3', 'authorization', 'ok', 'action', 'allow'],
      ['4', 'authorization', 'denied', 'action', 'deny'],
      ['5', 'execution', 'ok', '', ''],
      ['6', 'execution', 'ok', '', ''],
      ['7', 'execution', 'denied', '', ''],
      ['8', 'adjustment', 'ok', '', ''],
      ['9', 'adjustment', 'ok', '', ''],
      ['10', 'adjustment', 'violation', '', ''],
    ]);
    expect(events[10]?.['findings']).toBe('ADJUSTMENT_EXCEEDED');
    expect(pick(events[6], 'model_id', 'provider', 'started_at', 'meter_basis')).toEqual([
      'claude-opus',
      'anthropic',
      '2026-01-02T00:00:00.123456789Z',
      'estimated',
    ]);
    expect(events[5]?.['grants_above']?.split(' ')).toHaveLength(2);
  });

  it('has a row for each amount, with its role and whether it counts', async () => {
    const { meters, pass } = await csv(costlyLedger);
    expect(pass.meterRows).toBe(meters.length);
    expect(meters.map((row) => pick(row, 'seq', 'role', 'unit', 'amount', 'estimated', 'counted'))).toEqual([
      ['1', 'cap', 'usd', '10', '', ''],
      ['2', 'cap', 'usd', '6', '', ''],
      ['2', 'rate', 'calls.per_min', '9', '', ''],
      ['3', 'reserved', 'usd', '2', '', ''],
      ['4', 'reserved', 'usd', '1', '', ''],
      ['5', 'used', 'usd', '2', 'false', 'true'],
      ['6', 'used', 'usd', '2.5', 'true', 'true'],
      ['6', 'used', 'tokens.input', '1200', 'true', 'true'],
      ['6', 'used', 'tokens.output', '80', 'true', 'true'],
      ['8', 'debit', 'usd', '1', '', 'true'],
      ['9', 'credit', 'usd', '0.75', '', 'true'],
      ['10', 'credit', 'usd', '9', '', 'false'],
    ]);
  });

  it('counts no amount twice, and none that nothing allowed', async () => {
    const used = execution(root, 3);
    const { meters } = await csv(unsigned(root, used, used, execution(event('x.other'), 1)));
    expect(meters.filter(({ role }) => role === 'used').map(({ counted }) => counted)).toEqual([
      'true',
      'false',
      'false',
    ]);
  });

  it('leaves out of the decimal what it cannot hold, and has it as text', async () => {
    const { meters } = await csv(thirdsLedger);
    expect(pick(meters[1], 'amount', 'amount_decimal')).toEqual(['1/3', '']);
  });

  it('says what was verified, what was not, and of which part it is', async () => {
    const whole = await csv(costlyLedger);
    const report = await verifyLedger(costlyLedger);
    expect(Object.fromEntries(whole.about)).toMatchObject({
      verdict: 'violation',
      root: report.ledger.root,
      tree_size: '11',
      is_selection: 'false',
      not_checked: report.not_checked.map(({ code }) => code).join(' '),
    });
    const part = await csv(costlyLedger, { selection: { principal: 'agent:a2' } });
    expect(part.events.map(({ seq }) => seq)).toEqual(['2', '3', '5']);
    expect(part.about.get('is_selection')).toBe('true');
    expect(part.about.get('selected_principal')).toBe('agent:a2');
    expect(part.about.get('tree_size')).toBe('11');
  });

  it('has a row for a line that is no event, and what it claims of one that is not well-formed', async () => {
    const broken = JSON.stringify({ event: { event_type: 'execution', principal_id: '=1+1' } });
    const { events, about } = await csv(Buffer.concat([costlyLedger, Buffer.from(`{}x\n${broken}\n`)]));
    expect(events.slice(-2).map((row) => pick(row, 'place', 'verdict', 'principal_id'))).toEqual([
      ['11', 'invalid', ''],
      ['12', 'invalid', "'=1+1"],
    ]);
    expect(about.get('verdict')).toBe('invalid');
  });

  it('is the same each time', async () => {
    expect((await csv(costlyLedger)).texts).toEqual((await csv(costlyLedger)).texts);
  });
});

const hostileNames = HOSTILE_STRINGS.map((text) => text.slice(0, 250).replace(/\p{Cs}/gu, '\ufffd')).filter(
  (text) => text !== '',
);
const hostileLedger = unsigned(
  ...hostileNames.map((policy, n) =>
    buildEvent({
      ...grant({ meter_caps: usd(n + 1) }),
      policy_id: policy,
      source: { system: 's', id: policy },
    }),
  ),
);

describe('outside text', () => {
  it('is no formula, no control and no further field in CSV', async () => {
    const { events, texts } = await csv(hostileLedger);
    expect(events).toHaveLength(hostileNames.length + 1);
    for (const row of events.slice(1)) {
      expect(row['policy_id']).not.toMatch(/^\s*[=+@\uff1d]|^\s*-(?!\d+$)/);
      expect(row['event_type']).toBe('authorization');
    }
    expect(texts[0]).not.toMatch(/[^\r\n\P{C}]|[\p{Zl}\p{Zp}]/u);
  });
});

describe('toDecimal', () => {
  it('is exact or nothing', () => {
    expect(toDecimal({ n: 5n, d: 4n })).toBe(1_250_000_000_000_000_000n);
    expect(toDecimal({ n: 1n, d: 3n })).toBeUndefined();
    expect(toDecimal({ n: 1n, d: 10n ** BigInt(DECIMAL_SCALE) })).toBe(1n);
    expect(toDecimal({ n: 1n, d: 10n ** BigInt(DECIMAL_SCALE + 1) })).toBeUndefined();
    const most = 10n ** BigInt(DECIMAL_PRECISION - DECIMAL_SCALE);
    expect(toDecimal({ n: most - 1n, d: 1n })).toBeDefined();
    expect(toDecimal({ n: most, d: 1n })).toBeUndefined();
    expect(decimalText(-1_250_000_000_000_000_000n)).toBe('-1.25');
  });
});

describe('exportParquet, read by DuckDB', () => {
  const folder = mkdtempSync(join(tmpdir(), 'northroot-parquet-'));
  let connection: DuckDBConnection;

  beforeAll(async () => {
    connection = await (await DuckDBInstance.create(':memory:')).connect();
  });
  afterAll(() => {
    connection.closeSync();
    rmSync(folder, { recursive: true });
  });

  async function write(ledger: LedgerInput, options?: ExportOptions): Promise<void> {
    await writeFolderThrough(folder, ['events.parquet', 'meters.parquet'], (sinks) =>
      exportParquet(ledger, { events: sinks['events.parquet'], meters: sinks['meters.parquet'] }, options),
    );
  }

  async function ask(sql: string): Promise<unknown[][]> {
    const reader = await connection.runAndReadAll(
      sql.replace(/\b(events|meters)\b/g, (name) => `'${join(folder, name)}.parquet'`),
    );
    return reader.getRowsJson();
  }

  it('sums a meter to the number that the account has', async () => {
    await write(costlyLedger);
    const [account] = (await verifyLedger(costlyLedger)).grants;
    expect(account?.meters[0]?.used).toEqual({ t: 'dec', m: '475', s: 2 });
    const sum = `sum(case role when 'credit' then -amount_decimal else amount_decimal end)`;
    const id = `sha-256:${root.event_id.b64}`;
    const from = `from meters where counted and unit = 'usd'`;
    const under = `and list_contains(string_split(grants_above, ' '), '${id}')`;
    expect(await ask(`select ${sum}, typeof(${sum}) ${from} ${under}`)).toEqual([
      ['4.750000000000000000', 'DECIMAL(38,18)'],
    ]);
  });

  it('has the rows of the CSV, each value beside its exact text', async () => {
    await write(costlyLedger);
    const { events, meters } = await csv(costlyLedger);
    expect(await ask("select seq::varchar, event_type, verdict, coalesce(findings, '') from events")).toEqual(
      events.map((row) => pick(row, 'seq', 'event_type', 'verdict', 'findings')),
    );
    expect(await ask('select role, unit, amount from meters')).toEqual(
      meters.map((row) => pick(row, 'role', 'unit', 'amount')),
    );
    const times = "occurred_at, occurred_at_utc at time zone 'UTC', started_at, started_at_utc";
    expect(await ask(`select ${times} from events where seq = 6`)).toEqual([
      ['2026-01-02T00:00:05.25Z', '2026-01-02 00:00:05.25', '2026-01-02T00:00:00.123456789Z', null],
    ]);
  });

  it('says in its metadata what was verified', async () => {
    await write(costlyLedger, { selection: { tool: 'fs.*' } });
    const { root: treeRoot } = (await verifyLedger(costlyLedger)).ledger;
    for (const table of ['events', 'meters']) {
      const rows = await ask(`select key::varchar, value::varchar from parquet_kv_metadata(${table})`);
      expect(Object.fromEntries(rows)).toMatchObject({
        'northroot.verdict': 'violation',
        'northroot.root': treeRoot,
        'northroot.is_selection': 'true',
        'northroot.selected_tool': 'fs.*',
      });
    }
  });

  it('keeps outside text as it is', async () => {
    await write(hostileLedger);
    expect(await ask('select policy_id from events where kind is not null')).toEqual(
      hostileNames.map((name) => [name]),
    );
  });

  it('is written in groups of rows, and with none', async () => {
    const lines = MAX_GROUP_ROWS + 10;
    const same = note('again and again');
    await write(bare(...Array.from({ length: lines }, () => same)));
    expect(
      await ask('select count(*)::int, count(distinct place)::int, max(place)::int from events'),
    ).toEqual([[lines, lines, lines - 1]]);
    const groups = 'select count(distinct row_group_id)::int from parquet_metadata(events)';
    expect(await ask(groups)).toEqual([[2]]);
    expect(await ask('select count(*)::int from meters')).toEqual([[0]]);
    await write(unsigned(genesis()), { selection: { tool: 'none' } });
    expect(await ask('select count(*)::int from events')).toEqual([[0]]);
  });
});
