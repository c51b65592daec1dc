/** What is said of a line is plain data, and enough for the verification that goes in order: events are read again only where asked for. */

import { expect, test, vi } from 'vitest';
import { buildEvent } from '../../src/format/event/build.js';
import { canonicalText } from '../../src/base/json/canonicalize.js';
import { examineLine, withEvent, type Layout, type LineFacts } from '../../src/format/record/examine-line.js';
import { MAX_LINE_BYTES } from '../../src/format/record/line-splitter.js';
import { readLines } from '../../src/rules/source/read-lines.js';
import { nodeBackend } from '../../src/format/signature/node-backend.js';
import { startVerification } from '../../src/rules/verify/state.js';
import { verifyLine } from '../../src/rules/verify/verify-line.js';
import type { LineResult } from '../../src/rules/verify/line-result.js';
import { bytesSource } from '../bytes-source.js';
import { FILE_CASES, fixtureBytes } from '../fixtures/cases.js';

const NOW = '2026-01-01T00:00:00Z';

/** As another thread would send them. */
const cloned = (line: Uint8Array, layout?: Layout): LineFacts => structuredClone(examineLine(line, layout));

/** Every fourth: each kind of rule is among them. */
const fixtures = [...new Set(FILE_CASES.map(({ ledger }) => ledger))].filter(
  (ledger, n) => n % 4 === 0 && ledger !== 'ledgers/pipeline-1000.jsonl',
);

test.each(fixtures)('%s gives the same from facts that were cloned', async (ledger) => {
  const whole = startVerification(undefined, nodeBackend);
  const fromFacts = startVerification(undefined, nodeBackend);
  const shown = ({ findings, verdict, signatures, examined }: LineResult): unknown => {
    return { findings, verdict, signatures, event: examined?.json() };
  };
  for await (const { line, segment, takesPlace } of readLines(bytesSource(fixtureBytes(ledger), ledger))) {
    const isReadable = takesPlace && line.length <= MAX_LINE_BYTES;
    const facts = isReadable ? cloned(line.bytes, fromFacts.layout) : undefined;
    const result = verifyLine(fromFacts, line, segment, facts);
    expect(shown(result)).toEqual(shown(verifyLine(whole, line, segment)));
  }
});

test('of an event of no type of its own nothing is parsed again', () => {
  const events = [0, 1].map((n) =>
    buildEvent({ event_type: 'x.test', n }, { principalId: 'agent:a', occurredAt: NOW }),
  );
  const lines = events.map((event) => Buffer.from(canonicalText(event)));
  const facts = lines.map((line) => cloned(line));
  const state = startVerification(undefined, nodeBackend);
  const parse = vi.spyOn(JSON, 'parse');
  for (const [n, bytes] of lines.entries()) {
    const line = {
      bytes,
      length: bytes.length,
      offset: 0,
      number: n + 1,
      terminated: true,
      longLeafHash: undefined,
    };
    expect(verifyLine(state, line, { file: '-', firstSeq: undefined }, facts[n]).verdict).toBe('ok');
  }
  expect(parse).not.toHaveBeenCalled();
  parse.mockRestore();
});

test('the event is that of the line, and is not among the facts', () => {
  for (const line of fixtureBytes('ledgers/agent-run.jsonl').toString().trimEnd().split('\n')) {
    const bytes = Buffer.from(line);
    const { event } = JSON.parse(line) as { event: { event_type: string } };
    const facts = cloned(bytes);
    expect(facts).not.toHaveProperty('event');
    expect({ ...facts }).toEqual({ ...examineLine(bytes, undefined) });
    expect(facts.eventType).toBe(event.event_type);
    expect(facts.type).toBe(event.event_type.startsWith('x.') ? 'other' : event.event_type);
    expect(withEvent(facts, bytes).json()).toEqual(event);
    expect(examineLine(bytes, undefined).json()).toEqual(event);
  }
});

test('a line that holds no event has none', () => {
  for (const text of ['[]', '{"a":1}', '{']) {
    const bytes = Buffer.from(text);
    const facts = cloned(bytes);
    expect({ wellFormed: facts.wellFormed, type: facts.type }).toEqual({
      wellFormed: false,
      type: undefined,
    });
    expect(withEvent(facts, bytes).json()).toBeUndefined();
  }
});
