/** OpenTelemetry: spans of tools, of which none can be stopped. */

import { context, SpanStatusCode } from '@opentelemetry/api';
import { AlwaysOnSampler, BasicTracerProvider } from '@opentelemetry/sdk-trace-base';
import { openLedger, tell } from './ledger.js';
import { Gate } from 'northroot/gate';
import { EvidenceProcessor } from 'northroot/otel';

void context;
const ledger = await openLedger(2);
const denied = [];
const processor = new EvidenceProcessor(new Gate(ledger), { onDenied: ({ code }) => denied.push(code) });
const provider = new BasicTracerProvider({ sampler: new AlwaysOnSampler(), spanProcessors: [processor] });
const tracer = provider.getTracer('live');
for (const path of ['c1', 'bad', 'c3']) {
  const span = tracer.startSpan('execute_tool read', {
    attributes: {
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': 'read',
      'gen_ai.tool.call.arguments': JSON.stringify({ path }),
    },
  });
  if (path === 'bad') span.setStatus({ code: SpanStatusCode.ERROR }).setAttribute('error.type', 'timeout');
  else span.setAttribute('gen_ai.tool.call.result', path);
  span.end();
}
tracer.startSpan('chat m-1').end();
await provider.forceFlush();
await provider.shutdown();
await tell(ledger, { denied });
