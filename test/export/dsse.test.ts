/** Records as DSSE envelopes, whatever the ledger holds. */

import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { exportDsse } from '../../src/out/export/dsse.js';
import { MemorySink } from '../table/kit.js';

describe('exportDsse', () => {
  it('leaves out a signature that is not base64url, and writes its event', async () => {
    const ledger = readFileSync(
      new URL('../../fixtures/broken/signature-invalid-second-spelling.jsonl', import.meta.url),
    );
    const sink = new MemorySink();
    const { report, signaturesLeftOut, skipped } = await exportDsse(ledger, sink);
    expect([report.verdict, signaturesLeftOut, skipped]).toEqual(['invalid', 1, 0]);
    const lines = sink.text.trimEnd().split('\n');
    expect(lines).toHaveLength(report.ledger.records);
    expect(lines.filter((line) => line.includes('"signatures":[]'))).toHaveLength(1);
  });
});
