/** Spans of tools are evidence: they are recorded, and stop nothing. */

import { describe, expect, it } from 'vitest';
import { Gate } from '../../../src/gate/gate.js';
import { type EndedSpan, EvidenceProcessor } from '../../../src/gate/sdk/otel.js';
import { endsOf, executionsOf, openFor } from './kit.js';

let count = 0;

/** A span as the SDK has it when it ends. */
function span(name: string, attributes: Record<string, unknown> = {}, code = 0): EndedSpan {
  const spanId = String((count += 1)).padStart(16, '0');
  return {
    name,
    attributes,
    status: { code },
    duration: [0, 2_500_000],
    spanContext: () => ({ traceId: 'a'.repeat(32), spanId }),
  };
}

const TOOL = { 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': 'read' };

describe('spans', () => {
  it('of tools are recorded, by name or by attributes, and no others', async () => {
    const { place, ledger } = await openFor('read', { calls: 9 });
    const processor = new EvidenceProcessor(new Gate(ledger));
    for (const each of [
      span('execute_tool read'),
      span('tool', TOOL),
      span('chat m-1', { 'gen_ai.operation.name': 'chat' }),
      span('GET /'),
    ]) {
      processor.onStart(each);
      processor.onEnd(each);
    }
    await processor.forceFlush();
    expect(endsOf(place)).toEqual(['success', 'success']);
    expect(JSON.stringify(place.events())).toContain('"check":"coverage","code":"SDK"');
    expect(await place.verdict()).toBe('ok');
  });

  it('that end with an error are failures, with the type of the error where it is a code', async () => {
    const { place, ledger } = await openFor('read', { calls: 9 });
    const processor = new EvidenceProcessor(new Gate(ledger));
    for (const type of [{ 'error.type': 'timeout' }, { 'error.type': 'java.io.IOException' }, {}]) {
      const each = span('execute_tool read', type, 2);
      processor.onStart(each);
      processor.onEnd(each);
    }
    await processor.shutdown();
    expect(endsOf(place)).toEqual(['failure TIMEOUT', 'failure ERROR', 'failure ERROR']);
    expect(await place.verdict()).toBe('ok');
  });

  it('leave digests of arguments and result alone', async () => {
    const { place, ledger } = await openFor('read', { calls: 9 });
    const processor = new EvidenceProcessor(new Gate(ledger));
    const each = span('execute_tool read', {
      'gen_ai.tool.call.arguments': '{"path":"secret"}',
      'gen_ai.tool.call.result': 'secret',
    });
    processor.onStart(each);
    processor.onEnd(each);
    await processor.forceFlush();
    expect(executionsOf(place)[0]).toHaveProperty('output_digest');
    expect(JSON.stringify(place.events())).not.toContain('secret');
  });

  it('that the grants deny are told, as the tool runs all the same', async () => {
    const { place, ledger } = await openFor('read', { calls: 1 });
    const denied: string[] = [];
    const onDenied = ({ code }: { code: string }, tool: string): void => void denied.push(`${tool} ${code}`);
    const processor = new EvidenceProcessor(new Gate(ledger), { onDenied });
    const both = [span('execute_tool read'), span('execute_tool read')];
    for (const each of both) processor.onStart(each);
    for (const each of both) processor.onEnd(each);
    await processor.forceFlush();
    expect(denied).toEqual(['read RESERVATION_OVER_CAP']);
    expect(endsOf(place).sort()).toEqual(['deny', 'success']);
    expect(await place.verdict()).toBe('ok');
  });

  it('that cannot be recorded are told, and nothing is thrown', async () => {
    const { ledger } = await openFor('read', { calls: 1 });
    const told: string[] = [];
    const onUnrecorded = (text: string): void => void told.push(text);
    const processor = new EvidenceProcessor(new Gate(ledger), { onUnrecorded });
    await ledger.close();
    const each = span('execute_tool read');
    processor.onStart(each);
    processor.onEnd(each);
    await processor.forceFlush();
    expect(told).toEqual([expect.stringContaining('closed')]);
    expect(() => new EvidenceProcessor({} as never)).toThrow(TypeError);
  });
});
