/** Reading and writing agree: the records of every good fixture are written again byte for byte. */

import { expect, test } from 'vitest';
import { validateEvent } from '../../src/format/event/validate.js';
import { canonicalText } from '../../src/base/json/canonicalize.js';
import { examineLine } from '../../src/format/record/examine-line.js';
import { formatRecord } from '../../src/format/record/record.js';
import { FILE_CASES, fixtureBytes } from '../fixtures/cases.js';
import { linesOf } from '../verify/support.js';

const good = FILE_CASES.filter(
  ({ ledger, records }) => ledger.startsWith('ledgers/') && records !== undefined,
);

test.each(good.map(({ ledger }) => ledger))('records of %s are written again byte by byte', (ledger) => {
  for (const line of linesOf(fixtureBytes(ledger))) {
    const examined = examineLine(line, undefined);
    const { eventId, faults, layout, prev, seq, signatures, span } = examined;
    const event = examined.json();
    expect({ faults, layout }).toEqual({ faults: [], layout: 'records' });
    const eventText = canonicalText(event);
    expect(line.toString('utf8', span?.start, span?.end)).toBe(eventText);
    expect(validateEvent(event as object)).toEqual([]);
    expect(event).toHaveProperty('event_id.b64', eventId);
    const { meta } = JSON.parse(line.toString()) as { meta?: Record<string, string> };
    const parts = { eventText, meta, prev: prev as string, seq: seq as number, signatures: signatures ?? [] };
    expect(formatRecord(parts).toString()).toBe(`${line.toString()}\n`);
  }
});
