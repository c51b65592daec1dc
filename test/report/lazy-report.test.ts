/** A report that holds no list of grants and open authorizations tells what one tells that does. */

import { describe, expect, it, test } from 'vitest';
import {
  buildReport,
  renderGithub,
  renderGitlab,
  renderJunit,
  renderMarkdown,
  renderReport,
  runVerification,
  writeSarif,
  type ByteSink,
  type LazyReport,
  type VerificationResult,
} from '../../src/api/index.js';
import { writeJson } from '../../src/base/json/write-json.js';
import { renderBrief } from '../../src/out/ci/brief.js';
import { buildLazyReport } from '../../src/rules/report/report.js';
import { bytesSource } from '../bytes-source.js';
import { FILE_CASES, fixtureBytes, optionsOf, type LedgerCase } from '../fixtures/cases.js';
import { sample } from '../slow.js';

const WITH_DENIED = 'ledgers/pipeline-1000.jsonl';
const NOT_PLAIN = 'broken/reservation-over-cap.jsonl';

const verify = (fixture: LedgerCase): Promise<VerificationResult> =>
  runVerification(bytesSource(fixtureBytes(fixture.ledger), 'ledger'), {
    ...optionsOf(fixture),
    now: fixture.now ?? '2026-11-22T00:00:00Z',
  });

const find = (ledger: string): LedgerCase => FILE_CASES.find((each) => each.ledger === ledger) as LedgerCase;

async function textOf(write: (sink: ByteSink) => Promise<void>): Promise<string> {
  let text = '';
  await write({
    write: (piece) => {
      text += String(piece);
      return undefined;
    },
  });
  return text;
}

describe('a lazy report', () => {
  test.each([find(WITH_DENIED), find(NOT_PLAIN), ...sample(FILE_CASES, 40)])(
    'is the plain one when it is written: $ledger',
    async (fixture) => {
      const result = await verify(fixture);
      const [lazy, plain] = [buildLazyReport(result), buildReport(result)];
      expect(JSON.stringify(lazy)).toBe(JSON.stringify(plain));
      for (const indent of [0, 2]) {
        expect(await textOf((sink) => writeJson(sink, lazy, indent))).toBe(
          JSON.stringify(plain, undefined, indent),
        );
      }
      // As whole actions say it.
      const open = [...result.state.links.actions.values()].filter(({ decision }) => decision === 'allow');
      expect(plain.open_authorizations).toEqual(
        open.map(({ place: { eventId, seq }, toolName }) => ({
          event_id: eventId,
          seq,
          tool_name: toolName,
        })),
      );
      expect(lazy.open_authorizations.length).toBe(open.length);
    },
  );

  test('is rendered alike in every form', async () => {
    const result = await verify(find(WITH_DENIED));
    const [lazy, plain] = [buildLazyReport(result), buildReport(result)];
    const forms: ((report: LazyReport) => unknown)[] = [
      (report) => renderReport(report),
      ...[renderBrief, renderMarkdown, renderGithub, renderGitlab, renderJunit].map(
        (render) => (report: LazyReport) => render(report),
      ),
      (report) => textOf((sink) => writeSarif(sink, report)),
    ];
    for (const form of forms) expect(await form(lazy)).toEqual(await form(plain));
    expect(renderReport(lazy)).toContain('3 authorizations open');
  });

  it('lists what lies in rows, what does not, and nothing that was denied, in the order of the ledger', async () => {
    for (const [ledger, open, all] of [
      [WITH_DENIED, 3, 32],
      [NOT_PLAIN, 2, 2],
    ] as const) {
      const result = await verify(find(ledger));
      expect([...result.state.links.actions.values()]).toHaveLength(all);
      const { open_authorizations: list } = buildLazyReport(result);
      const seqs = Array.from(list, ({ seq }) => seq);
      expect(seqs).toHaveLength(open);
      expect(seqs).toEqual(seqs.toSorted((a, b) => a - b));
      // It is read anew each time.
      expect(Array.from(list, ({ seq }) => seq)).toEqual(seqs);
    }
  });
});
