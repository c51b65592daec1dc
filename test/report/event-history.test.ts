/** What `why` tells of one event: each signature's own outcome, who signed what lets somebody act, what was given back. */

import { expect, test } from 'vitest';
import { bytesSource } from '../bytes-source.js';
import { signEvent, type AnyEvent, type Signer, type EventHistory } from '../../src/api/index.js';
import { explainEvent } from '../../src/log/read/event-history.js';
import { renderEventHistory } from '../../src/out/text/event-history.js';
import { plainPaint } from '../../src/out/text/guide.js';
import { canonicalBytes } from '../../src/base/json/canonicalize.js';
import { boundTo, DIGEST, event, genesis, keyOf, ledger, makeSigner, note } from '../docs/ledger-kit.js';

const chief = makeSigner();
const agent = makeSigner();
const stranger = makeSigner();
const first = genesis([
  keyOf(chief, { roles: ['authority', 'event', 'admin'], name: 'the chief' }),
  keyOf(agent, { principals: ['agent:a1'] }),
]);

const decided = {
  intents: { intent_digest: DIGEST },
  policy_id: 'example/1',
  policy_digest: DIGEST,
  decision: 'allow',
  decision_code: 'ALLOW',
};
const amount = (v: string): object => ({ unit: 'usd', amount: { t: 'int', v } });

function grantOf(bounds: object = {}): AnyEvent {
  return event('authorization', {
    ...decided,
    source: { system: 'ticketing', id: 'T-17' },
    authorization: {
      kind: 'grant',
      bounds: { allowed_tools: ['fs.*'], meter_caps: [amount('10')], ...bounds },
    },
  });
}

async function tell(bytes: Buffer, of: AnyEvent): Promise<{ history: EventHistory; text: string }> {
  const open = () => Promise.resolve(bytesSource(bytes, '-'));
  const history = await explainEvent(open, { eventId: `sha-256:${of.event_id.b64}` });
  return { history, text: renderEventHistory(history, plainPaint) };
}

test('each signature has its own outcome', async () => {
  const grant = grantOf();
  const bytes = canonicalBytes(grant);
  const wrong = { ...signEvent(canonicalBytes(note(1)), chief), keyid: chief.publicKey.keyid };
  const right = signEvent(bytes, chief);
  const signatures = [right, signEvent(bytes, agent), wrong, signEvent(bytes, stranger), right];
  const { history, text } = await tell(
    ledger({ event: first, signers: [chief] }, { event: grant, signatures }),
    grant,
  );
  const name = 'the chief';
  expect(history.signatures).toEqual([
    { keyid: chief.publicKey.keyid, name, outcome: 'valid', roles: ['authority'] },
    { keyid: agent.publicKey.keyid, outcome: 'invalid', code: 'KEY_NOT_FOR_ROLE' },
    { keyid: chief.publicKey.keyid, name, outcome: 'invalid', code: 'SIGNATURE_INVALID' },
    { keyid: stranger.publicKey.keyid, outcome: 'unverified', code: 'KEY_UNKNOWN' },
    { keyid: chief.publicKey.keyid, name, outcome: 'copy', copy_of: 0 },
  ]);
  expect(text).toContain(`${chief.publicKey.keyid} (the chief): valid, as authority`);
  expect(text).toContain('unverified');
});

test('of an event that nobody entitled signed no signature is valid', async () => {
  const grant = grantOf();
  const { history } = await tell(
    ledger({ event: first, signers: [chief] }, { event: grant, signers: [agent] }),
    grant,
  );
  expect(history.signatures).toEqual([
    { keyid: agent.publicKey.keyid, outcome: 'invalid', code: 'KEY_NOT_FOR_ROLE' },
  ]);
  expect(history.verdict).toBe('invalid');
});

test('what names an execution as its authorization is under no grant', async () => {
  const grant = grantOf();
  const execution = (authorization: AnyEvent): AnyEvent =>
    event('execution', {
      intents: decided.intents,
      auth_event_id: authorization.event_id,
      tool_name: 'fs.read',
      meter_used: [amount('1')],
      outcome: 'success',
    });
  const done = execution(grant);
  const named = execution(done);
  const bytes = ledger(
    { event: first, signers: [chief] },
    ...[grant, done, named].map((each) => ({ event: each, signers: [chief] })),
  );
  expect((await tell(bytes, done)).history.grants).toHaveLength(1);
  expect((await tell(bytes, named)).history.grants).toEqual([]);
});

test('a grant names what bounds it, who adjusted it, and to which ledger it belongs', async () => {
  const bounds = {
    not_before: '2026-01-02T00:00:00Z',
    action_caps: [amount('3')],
    max_delegation_depth: 2,
  };
  const grant = boundTo(first, grantOf(bounds));
  const adjust = (direction: string, v: string, more: object = {}): AnyEvent =>
    event('adjustment', {
      principal_id: 'service:billing',
      grant_event_id: grant.event_id,
      direction,
      meters: [amount(v)],
      reason: 'BILL',
      ...more,
    });
  const bill = adjust('debit', '4', { meter_basis: 'billed', source: { system: 'bank', id: 'B-1' } });
  const refund = adjust('credit', '1');
  const bytes = ledger(
    { event: first, signers: [chief] },
    { event: grant, signers: [chief] },
    { event: bill, signers: [chief] },
    { event: refund, signers: [agent] },
  );
  const { history, text } = await tell(bytes, grant);
  expect(history.adjustments.map(({ seq, verdict, signers }) => ({ seq, verdict, signers }))).toEqual([
    { seq: 2, verdict: 'ok', signers: [{ keyid: chief.publicKey.keyid, name: 'the chief' }] },
    { seq: 3, verdict: 'invalid', signers: [] },
  ]);
  expect(history.adjustments_total).toBe(2);
  for (const part of ['2026-01-02T00:00:00Z', 'usd=3', '2 deep', 'ticketing T-17', 'bank B-1', 'billed'])
    expect(text).toContain(part);
  expect(text).toContain(`sha-256:${first.event_id.b64}`);
  expect(text).toMatch(/debit seq 2 .* ok\n/);
});

test('a grant above an event names who signed it', async () => {
  const grant = grantOf();
  const run = event('execution', {
    intents: decided.intents,
    auth_event_id: grant.event_id,
    tool_name: 'fs.read',
    meter_used: [],
    meter_basis: 'measured',
    outcome: 'success',
  });
  const told = (...by: Signer[]) =>
    tell(
      ledger(
        { event: first, signers: [chief] },
        { event: grant, signers: by },
        { event: run, signers: [agent] },
      ),
      run,
    );
  const known = await told(chief);
  expect(known.history.grants[0]?.signers).toEqual([{ keyid: chief.publicKey.keyid, name: 'the chief' }]);
  expect(known.history.signatures).toEqual([
    { keyid: agent.publicKey.keyid, outcome: 'valid', roles: ['event'] },
  ]);
  expect(known.text).toContain('measured');
  const unknown = await told(agent);
  expect(unknown.history.grants[0]?.signers).toEqual([]);
  expect(unknown.text).toContain('no known and entitled key');
});
