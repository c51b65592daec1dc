/** A ledger of a live test: an agent that may call tools so many times, and models at will. */

import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSigner, draftGrant, generatePrivateKey, LiveLedger, verifyLedger } from 'northroot';

export const AGENT = 'agent:a1';
const TOOLS = ['read', 'tail', 'mcp.files.*', 'Bash'];

export async function openLedger(calls = 2) {
  const path = join(mkdtempSync(join(tmpdir(), 'northroot-sdk-')), 'ledger.jsonl');
  const ledger = await LiveLedger.open(path, {
    signer: createSigner(generatePrivateKey()),
    principalId: AGENT,
    create: { origin: 'example.com/live' },
  });
  const allow = (allowedTools, meterCaps) =>
    ledger.append({ event: draftGrant({ principalId: AGENT, allowedTools, meterCaps }) });
  await allow(TOOLS, { calls });
  await allow(['llm.*'], { usd: '100' });
  return ledger;
}

/** Closes it and prints, as JSON, what it says and what else was found. */
export async function tell(ledger, found) {
  await ledger.close();
  const events = readFileSync(ledger.path, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line).event)
    .flatMap((event) => {
      if (event.event_type === 'execution') {
        const { tool_name: tool, outcome, error_code: code, output_digest: output } = event;
        const used = event.meter_used.map(({ unit }) => unit).filter((unit) => unit !== 'time.ms');
        return [[tool, outcome, code ?? '', used.join(' '), output === undefined ? '' : 'digest'].join('|')];
      }
      if (event.decision === 'deny')
        return [`${event.authorization.action.tool_name}|deny|${event.decision_code}`];
      return [];
    });
  const { verdict } = await verifyLedger(ledger.path);
  console.log(JSON.stringify({ verdict, events, ...found }));
}
