/** Which amounts count: what the rows of exports call counted must come to what the accounts hold. */

import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { exportCsv } from '../../src/out/export/table/csv-tables.js';
import { reportActivity } from '../../src/out/activity/report-activity.js';
import { addRationals, reduceRational, ZERO, type Rational } from '../../src/base/value/rational.js';
import { formatExactly } from '../../src/base/value/format-rational.js';
import { csvObjects, MemorySink } from '../table/kit.js';

const ledger = readFileSync(
  new URL('../../fixtures/broken/quantity-invalid-sum-too-fine.jsonl', import.meta.url),
);

describe('an amount that would make a sum too fine', () => {
  it('is counted in no row, as it is in no account', async () => {
    const { grants } = await reportActivity(ledger);
    const meters = new MemorySink();
    await exportCsv(ledger, { events: new MemorySink(), meters, verification: new MemorySink() });
    const used = csvObjects(meters.text).filter(({ role }) => role === 'used');
    const counted = used.filter((row) => row['counted'] === 'true');
    const sum = counted.map(({ amount = '' }) => toRational(amount)).reduce(addRationals, ZERO);
    expect(grants.flatMap((grant) => grant.meters.map((meter) => meter.used))).toEqual([formatExactly(sum)]);
    expect(counted).toHaveLength(used.length - 1);
  });

  it('is in no sum of the report, however it is grouped or selected, and is told of', async () => {
    for (const by of [undefined, 'day', 'tool'] as const) {
      const { totals, grants, limits } = await reportActivity(ledger, { by });
      expect(totals.meters.map(({ spent }) => spent)).toEqual(grants[0]?.meters.map(({ used }) => used));
      expect(limits.map(({ code }) => code)).toContain('AMOUNTS_LEFT_OUT');
    }
    const whole = await reportActivity(ledger);
    const last = whole.problems.find(({ code }) => code === 'QUANTITY_INVALID')?.first[0]?.event_id ?? '';
    const alone = await reportActivity(ledger, { selection: { eventIds: new Set([last]) } });
    expect(alone.totals).toMatchObject({ meters: [], amounts_left_out: 1 });
  });
});

function toRational(text: string): Rational {
  const [n = '', d = '1'] = text.split('/');
  const [whole = '', fraction = ''] = n.split('.');
  return reduceRational(BigInt(whole + fraction), BigInt(d) * 10n ** BigInt(fraction.length));
}
