import { it } from 'vitest';
import { apm2 } from '../../../src/hosts/apm2/index.js';
import { eventsOfClaims } from '../../../src/hosts/claims.js';
import { accountFor, verdictOf } from '../../../src/hosts/account.js';
import { canonicalText } from '../../../src/json/canonicalize.js';
import { verifyLedger } from '../../../src/report/verify-ledger.js';
import { recordedFile } from '../recorded.js';
it('x', async () => {
  const r = apm2.read([recordedFile('apm2/derived-receipt-and-ledger.json')]);
  console.log(JSON.stringify(r.items, null, 0), verdictOf(r), accountFor(r.items).total);
  for (const f of r.findings) console.log(f.rule, f.code, f.severity, JSON.stringify(f.at), f.expected, '|', f.actual);
  const { events, unfit } = eventsOfClaims(r.claims, { system: 'apm2' });
  console.log(unfit.map((u) => u.error.message));
  for (const e of events) console.log(canonicalText(e.event).slice(0, 900));
  const rep = await verifyLedger(Buffer.from(events.map(({ event }) => canonicalText(event) + '\n').join('')));
  console.log(rep.verdict, rep.counts, rep.findings.map((f) => [f.code, f.severity]));
});
