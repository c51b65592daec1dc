/**
 * What verifying costs where records are not those that are measured elsewhere: CPU a record on one thread, of one kind of records after
 * the other, and its ratio to the usual ones.
 *
 *     node bench/shapes.js [--records 20000 --rounds 3 --only late,double --folder /tmp --json]
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Ledger, meters, verifyLedger } from '../dist/api/index.js';
import { actionDraft, executionDraft, grantDraft } from './ledger.js';

const BATCH = 500;

const { values } = parseArgs({
  options: {
    records: { type: 'string', default: '20000' },
    rounds: { type: 'string', default: '3' },
    only: { type: 'string' },
    folder: { type: 'string', default: tmpdir() },
    json: { type: 'boolean', default: false },
  },
});

const same = (draft) => draft;
const shift = (time, milliseconds) => new Date(Date.parse(time) + milliseconds).toISOString();
const withTimes = (draft, change) =>
  Object.fromEntries(
    Object.entries(draft).map(([name, value]) => [name, name.endsWith('_at') ? change(value) : value]),
  );
const withUsd = (draft, amount) => ({
  ...draft,
  meter_used: draft.meter_used.map((meter) => (meter.unit === 'usd' ? { ...meter, amount } : meter)),
});
const underNone = ({ authorization, ...draft }) => {
  const { kind, action } = authorization;
  return { ...draft, authorization: { kind, action } };
};
const nanoseconds = (time) => time.replace('Z', '123456Z');

/** What becomes of the drafts of `bench/ledger.js`; an execution comes after each action unless that is told otherwise. */
const SHAPES = {
  usual: {},
  'under no grant': { action: underNone },
  denied: { action: (draft) => ({ ...draft, decision: 'deny', decision_code: 'OVER_BUDGET' }), isLast: true },
  direct: { isDirect: true },
  failed: {
    execution: (draft) => {
      const failed = { ...draft, outcome: 'failure', error_code: 'TIMEOUT' };
      delete failed.output_digest;
      delete failed.output_ref;
      return failed;
    },
  },
  nanoseconds: {
    action: (draft) => withTimes(draft, nanoseconds),
    execution: (draft) => withTimes(draft, nanoseconds),
  },
  late: {
    action: (draft, index) => ({ ...draft, occurred_at: shift(draft.occurred_at, -(index % 7) * 100) }),
    execution: (draft, index) => ({ ...draft, occurred_at: shift(draft.occurred_at, -(index % 7) * 100) }),
  },
  rates: { limits: { rate_limits: meters({ 'calls.per_min': 10n ** 6n, 'usd.per_30d': 10n ** 9n }) } },
  concurrency: { limits: { concurrency_limit: { t: 'int', v: '1000000' } } },
  'over a cap': {
    limits: { meter_caps: meters({ calls: 10n, 'time.ms': 10n, usd: 1n, 'tokens.input': 10n }) },
  },
  fraction: { execution: (draft) => withUsd(draft, { t: 'rat', n: '1', d: '300' }) },
  double: { execution: (draft, index) => withUsd(draft, double(0.01 + index / 1e9)) },
};

function double(value) {
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleBE(value);
  return { t: 'f64', bits: bytes.toString('hex') };
}

/** Writes so many records of a kind. */
async function write(path, { action = same, execution = same, limits = {}, isLast, isDirect }, records) {
  const ledger = await Ledger.open(path, {
    create: { origin: 'example.com/bench' },
    now: () => '2026-01-01T00:00:00Z',
    index: false,
  });
  const grant = grantDraft();
  const bounds = { ...grant.authorization.bounds, ...limits };
  const granted = await ledger.append({ event: { ...grant, authorization: { kind: 'grant', bounds } } });
  const append = (drafts) => Promise.all(drafts.map((event) => ledger.append({ event })));
  for (let first = 1; ledger.size < records; first += 2 * BATCH) {
    const indices = Array.from({ length: BATCH }, (_, i) => first + i);
    const end = first + BATCH;
    if (isDirect) {
      const context = (index) => ({ context_digest: actionDraft(granted.eventId, index).context_digest });
      await append(indices.map((i) => ({ ...executionDraft(granted.eventId, i, i + 1), ...context(i) })));
      continue;
    }
    const actions = await append(indices.map((index) => action(actionDraft(granted.eventId, index), index)));
    if (isLast) continue;
    await append(indices.map((index, i) => execution(executionDraft(actions[i].eventId, index, end), index)));
  }
  const { size } = ledger;
  await ledger.close();
  return size;
}

/** Microseconds of CPU a record, and what was found. */
async function measure(path, records) {
  const begun = process.cpuUsage();
  const report = await verifyLedger(path, { threads: 1 });
  const { user, system } = process.cpuUsage(begun);
  return { micros: (user + system) / records, verdict: report.verdict };
}

const folder = mkdtempSync(join(values.folder, 'northroot-shapes-'));
try {
  const chosen = values.only?.split(',');
  const names = Object.keys(SHAPES).filter((name) => name === 'usual' || (chosen?.includes(name) ?? true));
  const ledgers = [];
  for (const name of names) {
    const path = join(folder, `${names.indexOf(name)}.jsonl`);
    ledgers.push({ name, path, records: await write(path, SHAPES[name], Number(values.records)) });
  }
  const best = new Map();
  for (let round = 0; round < Number(values.rounds); round += 1) {
    for (const { name, path, records } of ledgers) {
      const measured = await measure(path, records);
      if (!(best.get(name)?.micros <= measured.micros)) best.set(name, measured);
    }
  }
  const usual = best.get('usual').micros;
  const rows = [...best].map(([name, each]) => ({ name, ...each, ratio: each.micros / usual }));
  if (values.json) console.log(JSON.stringify(rows));
  else
    for (const { name, micros, ratio, verdict } of rows)
      console.log(
        `${name.padEnd(16)}${micros.toFixed(1).padStart(8)} µs a record ${ratio.toFixed(2).padStart(6)} × usual   ${verdict}`,
      );
} finally {
  rmSync(folder, { recursive: true });
}
