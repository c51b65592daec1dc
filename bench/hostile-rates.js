/**
 * Writes a ledger of bare events that costs as much as it can for its size: a chain of grants with many limits of rates, and short
 * executions at its end, each of which counts against all of them.
 *
 *     node bench/hostile-rates.js --bytes 500000 --amounts rational --order mixed --limit 0 > hostile.jsonl
 *
 * - `--depth`, `--limits`: grants in the chain (32), limits of each (16)
 * - `--amounts`: one, whole (39 digits), decimal (38 places), rational (39 digits, ten denominators in turn), fresh (a denominator for
 *   each execution), double
 * - `--order`: of the executions' times: forth, back, mixed, same
 * - `--limit`: of each rate; 0 breaks all of them with each execution
 * - `--spread`: seconds between two executions
 * - `--windows`: same (in each grant of the chain), each (its own in each grant)
 * - `--units`: how many units the limits are of, and each execution uses
 * - `--apart`: every fourth execution is under another grant of the chain
 * - `--concurrency`: the limit of what goes on at once, instead of rates
 */

import { parseArgs } from 'node:util';
import { buildEvent, canonicalText } from '../dist/api/index.js';

const { values } = parseArgs({
  options: {
    bytes: { type: 'string', default: '500000' },
    depth: { type: 'string', default: '32' },
    limits: { type: 'string', default: '16' },
    amounts: { type: 'string', default: 'one' },
    order: { type: 'string', default: 'mixed' },
    limit: { type: 'string', default: '1000000' },
    spread: { type: 'string', default: '61' },
    windows: { type: 'string', default: 'same' },
    apart: { type: 'boolean', default: false },
    units: { type: 'string', default: '1' },
    concurrency: { type: 'string' },
  },
});
const [bytes, depth, limits, spread, units] = ['bytes', 'depth', 'limits', 'spread', 'units'].map((name) =>
  Number(values[name]),
);

const DIGEST = { alg: 'sha-256', b64: 'A'.repeat(43) };
const intents = { intent_digest: DIGEST };
const START = Date.parse('2026-01-01T00:00:00Z');
const at = (seconds) => new Date(START + seconds * 1000).toISOString().replace('.000', '');

const AMOUNTS = {
  one: () => ({ t: 'int', v: '1' }),
  whole: (n) => ({ t: 'int', v: String(10n ** 38n + BigInt(n)) }),
  decimal: (n) => ({ t: 'dec', m: String(10n ** 38n + BigInt(2 * n + 1)), s: 38 }),
  rational: (n) => ({ t: 'rat', n: String(2n ** 126n), d: String(10n ** 38n + BigInt(2 * (n % 10) + 1)) }),
  fresh: (n) => ({ t: 'rat', n: '1', d: String(10n ** 38n + BigInt(2 * n + 1)) }),
  double: (n) => ({
    t: 'f64',
    bits: n % 2 === 0 ? '7fe0000000000001' : `000000000000${(4097 + (n % 999) * 2).toString(16)}`,
  }),
};

const PERIODS = ['s', 'm', 'h', 'd'];
function ratesOf(grant) {
  return Array.from({ length: limits }, (_, n) => {
    const number = Math.floor(n / units) + (values.windows === 'each' ? grant * limits : 0);
    const window = `${1 + Math.floor(number / 4) * 7}${PERIODS[number % 4]}`;
    const meter = values.amounts === 'one' ? 'calls' : `u${n % units}`;
    return { unit: `${meter}.per_${window}`, amount: { t: 'int', v: values.limit } };
  }).sort((a, b) => (a.unit < b.unit ? -1 : 1));
}

const chain = [];
let written = 0;
function write(draft) {
  const event = buildEvent(draft);
  const line = `${canonicalText(event)}\n`;
  written += line.length;
  process.stdout.write(line);
  return event;
}
for (let n = 0; n < depth; n += 1) {
  const bounds = {
    allowed_tools: ['*'],
    meter_caps: [{ unit: 'a', amount: { t: 'int', v: '1' } }],
    ...(values.concurrency === undefined
      ? { rate_limits: ratesOf(n) }
      : { concurrency_limit: { t: 'int', v: values.concurrency } }),
  };
  const parent = chain.at(-1);
  chain.push(
    write({
      event_type: 'authorization',
      occurred_at: at(0),
      principal_id: 'org:a',
      intents,
      policy_id: 'p',
      policy_digest: DIGEST,
      decision: 'allow',
      decision_code: 'A',
      authorization: { kind: 'grant', bounds, ...(parent && { grant_event_id: parent.event_id }) },
    }),
  );
}
const count = Math.max(1, Math.floor((bytes - written) / (values.amounts === 'one' ? 440 : 500)));
const ORDERS = { forth: (n) => n, back: (n) => count - n, mixed: (n) => (n * 7919) % count, same: () => 1 };
for (let n = 0; written < bytes; n += 1) {
  const second = ORDERS[values.order](n) * spread;
  const grant = values.apart && n % 4 === 3 ? chain[Math.floor(n / 4) % depth] : chain.at(-1);
  write({
    event_type: 'execution',
    occurred_at: at(second).replace(/(\.\d+)?Z/, `.${String(n).padStart(9, '0')}Z`),
    principal_id: 'org:a',
    intents,
    auth_event_id: grant.event_id,
    tool_name: 't',
    meter_used:
      values.amounts === 'one'
        ? []
        : Array.from({ length: units }, (_, u) => ({
            unit: `u${u}`,
            amount: AMOUNTS[values.amounts](n),
          })).sort((a, b) => (a.unit < b.unit ? -1 : 1)),
    outcome: 'success',
    ...(values.concurrency !== undefined && { started_at: at(second), ended_at: at(second + 10 + n) }),
  });
}
