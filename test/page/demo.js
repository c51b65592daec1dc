/**
 * A ledger to look at in the page: a week in which a person lets three agents write a newsletter. Always the same bytes.
 * `node test/page/demo.js FILE` writes it, and its last checkpoint to FILE.checkpoint.
 */

import { writeFileSync } from 'node:fs';
import { argv } from 'node:process';
import { pathToFileURL } from 'node:url';
import {
  action,
  adjustment,
  dec,
  execution,
  genesis,
  grant,
  int,
  meters,
} from '../../fixtures/make/events.js';
import { ed25519Key } from '../../fixtures/make/keys.js';
import { FixtureLedger, keyEntry, treeRoot } from '../../fixtures/make/ledger.js';
import { checkpointText, logLine, noteOf } from '../../fixtures/make/notes.js';

const ORIGIN = 'example.com/agents/newsletter';
const RESEARCH = 'agent:research';
const SUMMARY = 'agent:summary';
const PUBLISHER = 'agent:publisher';

const leadKey = ed25519Key('demo lead');
const gatewayKey = ed25519Key('demo gateway');
const researchKey = ed25519Key('demo research');
const billingKey = ed25519Key('demo billing');
const logKey = ed25519Key('demo log');

/** The ledger's bytes and the note of its last checkpoint. */
export function makeDemo() {
  const ledger = new FixtureLedger([gatewayKey]);
  const random = makeRandom();
  let minutes = 0;
  const at = (more = 0) =>
    new Date(Date.UTC(2026, 2, 2, 8, 0) + (minutes += more) * 60_000).toISOString().replace('.000Z', 'Z');
  const skipTo = (day, hour) => (minutes = Math.max(minutes, (day - 2) * 1_440 + (hour - 8) * 60));
  let note = '';

  const seal = () => {
    const text = checkpointText(ORIGIN, ledger.lines.length, treeRoot(ledger.lines));
    note = noteOf(text, [logLine(logKey, text)]);
    ledger.append(
      {
        chain_tip_event_id: ledger.lastId,
        event_type: 'checkpoint',
        note,
        occurred_at: at(1),
        principal_id: 'service:ledger',
        root: { alg: 'sha-256', b64: treeRoot(ledger.lines).toString('base64url') },
        tree_size: ledger.lines.length,
      },
      { by: [logKey] },
    );
  };

  ledger.append(
    genesis(ORIGIN, at(), [
      keyEntry(leadKey, { name: 'Mira (lead)', roles: ['authority', 'admin'] }),
      keyEntry(gatewayKey, { name: 'gateway', roles: ['event'] }),
      keyEntry(researchKey, { name: 'research agent', roles: ['event'], principals: [RESEARCH] }),
      keyEntry(billingKey, {
        name: 'billing',
        roles: ['authority'],
        principals: ['service:billing', 'agent:*'],
      }),
      keyEntry(logKey, { name: 'log', roles: ['checkpoint', 'event'] }),
    ]),
    { by: [leadKey] },
  );
  const research = 'find news on tides and harbours, and write a newsletter';
  const researchGrant = ledger.append(
    grant({
      principal: RESEARCH,
      at: at(4),
      intent: research,
      bounds: {
        allowed_tools: ['fs.read', 'llm.chat', 'web.*'],
        expires_at: '2026-03-07T18:00:00Z',
        max_delegation_depth: 1,
        meter_caps: meters({ usd: dec('20.00'), calls: int(160), 'tokens.input': int(1_500_000) }),
        not_before: '2026-03-02T08:00:00Z',
      },
    }),
    { by: [leadKey] },
  );
  const publisherGrant = ledger.append(
    grant({
      principal: PUBLISHER,
      at: at(2),
      intent: 'publish the newsletter',
      bounds: {
        allowed_tools: ['cms.publish', 'mail.send'],
        expires_at: '2026-03-07T18:00:00Z',
        meter_caps: meters({ usd: dec('3.00'), calls: int(30) }),
      },
    }),
    { by: [leadKey] },
  );
  const summaryGrant = ledger.append(
    grant({
      principal: SUMMARY,
      at: at(20),
      intent: 'summarise what was found',
      user: research,
      parent: researchGrant,
      bounds: {
        allowed_tools: ['llm.chat', 'fs.read'],
        expires_at: '2026-03-07T12:00:00Z',
        max_delegation_depth: 0,
        meter_caps: meters({ usd: dec('9.00'), calls: int(50), 'tokens.input': int(600_000) }),
        not_before: '2026-03-02T08:00:00Z',
      },
    }),
    { by: [researchKey] },
  );

  const cents = (n) => dec((n / 100).toFixed(2));
  /** An action, and its execution unless it stays open. */
  const act = (principal, parent, tool, cost, tokens, more = {}) => {
    const { user, params = `${tool} ${ledger.lines.length}`, open = false, over = 1, ...rest } = more;
    const intent =
      principal === RESEARCH
        ? research
        : principal === SUMMARY
          ? 'summarise what was found'
          : 'publish the newsletter';
    const base = {
      principal,
      intent,
      user: user ?? (principal === SUMMARY ? research : intent),
      tool,
      params,
    };
    const reserve = {
      usd: cents(cost + 4),
      calls: int(1),
      ...(tokens > 0 ? { 'tokens.input': int(tokens + 2_000) } : {}),
    };
    const auth = ledger.append(action({ ...base, at: at(1 + Math.floor(random() * 4)), reserve, parent }));
    if (open) return auth;
    const started = at(0);
    const used = {
      usd: cents(cost * over),
      calls: int(1),
      ...(tokens > 0 ? { 'tokens.input': int(tokens) } : {}),
    };
    return ledger.append(
      execution({
        ...base,
        at: at(1),
        auth,
        used,
        started_at: started,
        ended_at: at(0),
        meter_basis: 'reported',
        ...rest,
      }),
    );
  };
  const refuse = (principal, parent, tool, code) =>
    ledger.append(
      action({
        principal,
        at: at(2),
        intent: research,
        user: research,
        tool,
        params: `${tool} ${ledger.lines.length}`,
        reserve: { calls: int(1) },
        parent,
        decision: 'deny',
        decision_code: code,
      }),
    );

  let refunded;
  for (const day of [2, 3, 4, 5, 6]) {
    skipTo(day, 9);
    for (let i = 0; i < 14; i++) {
      const tool = ['web.search', 'web.fetch', 'llm.chat', 'fs.read'][Math.floor(random() * 4)];
      const isModel = tool === 'llm.chat';
      const done = act(
        RESEARCH,
        researchGrant,
        tool,
        isModel ? 18 + Math.floor(random() * 60) : 1 + Math.floor(random() * 6),
        isModel ? 9_000 + Math.floor(random() * 30_000) : 0,
        {
          ...(isModel ? { model_id: 'example-large', provider: 'example' } : {}),
          ...(random() < 0.06 ? { outcome: 'failure', error_code: 'TIMEOUT' } : {}),
        },
      );
      if (day === 3 && i === 5) refunded = done;
      minutes += Math.floor(random() * 9);
      if (day === 3 && i === 8) refuse(RESEARCH, researchGrant, 'mail.send', 'TOOL_NOT_ALLOWED');
      if (day === 4 && i === 3) refuse(RESEARCH, researchGrant, 'shell.run', 'TOOL_NOT_ALLOWED');
    }
    for (let i = 0; i < 6; i++) {
      act(
        SUMMARY,
        summaryGrant,
        'llm.chat',
        12 + Math.floor(random() * 22),
        6_000 + Math.floor(random() * 20_000),
        {
          meter_basis: day === 5 ? 'estimated' : 'reported',
        },
      );
    }
    if (day === 4) {
      const denied = refuse(SUMMARY, summaryGrant, 'web.fetch', 'TOOL_NOT_ALLOWED');
      ledger.append(
        execution({
          principal: SUMMARY,
          at: at(1),
          intent: research,
          auth: denied,
          tool: 'web.fetch',
          params: `web.fetch ${ledger.lines.length - 1}`,
          outcome: 'failure',
          error_code: 'BLOCKED',
        }),
      );
      ledger.append(
        adjustment({
          at: at(30),
          grant: researchGrant,
          direction: 'credit',
          amounts: { usd: dec('0.42') },
          of: refunded,
          reason: 'REFUND',
          meter_basis: 'billed',
        }),
        { by: [billingKey] },
      );
    }
    if (day < 6) {
      act(PUBLISHER, publisherGrant, 'cms.publish', 20, 0);
      act(PUBLISHER, publisherGrant, 'mail.send', 34, 0);
    }
    if (day === 5) {
      refuse(PUBLISHER, publisherGrant, 'mail.send', 'BUDGET_EXCEEDED');
      // Sent all the same, straight under the grant: more than is left.
      ledger.append(
        execution({
          principal: PUBLISHER,
          at: at(3),
          intent: 'publish the newsletter',
          auth: publisherGrant,
          tool: 'mail.send',
          used: { usd: dec('1.10'), calls: int(1) },
          meter_basis: 'reported',
        }),
      );
      // And with a tool that nobody granted.
      ledger.append(
        execution({
          principal: PUBLISHER,
          at: at(6),
          intent: 'publish the newsletter',
          auth: publisherGrant,
          tool: 'social.post',
          used: { calls: int(1) },
          meter_basis: 'reported',
        }),
      );
    }
    skipTo(day, 18);
    if (day < 6) seal();
  }
  act(RESEARCH, researchGrant, 'web.search', 3, 0, { open: true });
  act(SUMMARY, summaryGrant, 'llm.chat', 21, 12_000, { open: true });
  return { bytes: ledger.bytes, note: Buffer.from(note) };
}

/** Numbers from 0 to 1 that are the same in every run. */
function makeRandom() {
  let state = 20_260_302;
  return () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return state / 2 ** 32;
  };
}

if (argv[1] !== undefined && import.meta.url === pathToFileURL(argv[1]).href) {
  const [, , path = 'newsletter.jsonl'] = argv;
  const { bytes, note } = makeDemo();
  writeFileSync(path, bytes);
  writeFileSync(`${path}.checkpoint`, note);
}
