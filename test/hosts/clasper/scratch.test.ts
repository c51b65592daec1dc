import { it } from 'vitest';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { clasper } from '../../../src/hosts/clasper/index.js';
import { accountFor, verdictOf } from '../../../src/hosts/account.js';
import { eventsOfClaims } from '../../../src/hosts/claims.js';
import { verifyLedger } from '../../../src/report/verify-ledger.js';
import { canonicalBytes } from '../../../src/json/canonicalize.js';
const R='/work/shared/traffic/clasper/run/';
const f=(n:string)=>({name:n,bytes:new Uint8Array(readFileSync(R+n))});
const folder=readdirSync(R+'bundle-unsigned').map(n=>f('bundle-unsigned/'+n));
async function show(title:string, files:any[]) {
  let out='=== '+title+'\n';
  const r=clasper.read(files);
  const a=accountFor(r.items);
  out+=JSON.stringify(a.total)+' '+JSON.stringify([...a.byReason])+' '+verdictOf(r)+'\n';
  for(const i of r.items) out+=`  item ${i.at.file}:${i.at.line??''}${i.at.pointer??''} ${i.type} ${i.fate} ${i.reason??''}\n`;
  for(const c of r.claims) out+=`  claim ${c.kind} ${c.id} ${c.occurredAt} ${c.principalId} ${(c as any).decision??''} ${(c as any).decisionCode??''} ${(c as any).authorization??(c as any).grant??''} ${JSON.stringify((c as any).meters??(c as any).bounds??'')} ${c.kind==='evidence'?JSON.stringify(c.facts):''}\n`;
  for(const x of r.findings) out+=`  finding ${x.rule} ${x.code} ${x.severity}/${x.class} ${x.at.file}:${x.at.line??''}${x.at.pointer??''} about=${x.about} exp=${x.expected} act=${x.actual}\n`;
  const {events,unfit}=eventsOfClaims(r.claims,{system:'clasper'});
  for (const u of unfit) out+=`  UNFIT ${u.id} ${u.error.message}\n`;
  const bytes=Buffer.concat(events.map(e=>Buffer.concat([Buffer.from(canonicalBytes(e.event as any)),Buffer.from('\n')])));
  const rep=await verifyLedger(new Uint8Array(bytes));
  out+=`  ledger ${rep.verdict} ${JSON.stringify(rep.counts)}\n`;
  for(const x of rep.findings) out+=`    ${x.code} ${x.severity} seq ${x.seq} ${events[x.seq as number]?.sourceId} ${x.message}\n`;
  for(const g of rep.grants) out+=`    grant ${JSON.stringify(g)}\n`;
  return out;
}
it('scratch', async () => {
  let o='';
  o+=await show('http',[f('http.jsonl')]);
  o+=await show('tar',[f('export-unsigned.tar.gz')]);
  o+=await show('folder',folder);
  o+=await show('both',[f('http.jsonl'),f('export-unsigned.tar.gz')]);
  writeFileSync('/tmp/hc/out.txt',o);
});
