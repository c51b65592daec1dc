/** Answers by passkeys at the service: who may answer by what, and what is recorded. */

import { describe, expect, it, onTestFinished } from 'vitest';
import { parsePasskey } from '../../src/format/key/passkey.js';
import { serveGate } from '../../src/gate/service/serve-gate.js';
import { makeToken, Tokens } from '../../src/gate/service/tokens.js';
import type { PasskeyRequest } from '../../src/log/policy/passkey.js';
import { type KeyEntryOptions, makeKeyEntry } from '../../src/rules/trust/key-entry.js';
import { filePlace } from '../agent/support.js';
import { Authenticator } from '../key/authenticator.js';
import { openGate } from './support.js';

const PEOPLE = ['olga', 'ben'] as const;
const ORIGIN = 'https://approve.example.com';

async function open() {
  const rule = { tools: ['fs.*'], approvers: ['human:*'], count: 2 };
  const place = filePlace();
  const { gate } = await openGate(place, { meterCaps: { calls: 9 }, approvals: [rule] }, { attach: true });
  const made = PEOPLE.map((name) =>
    makeToken({ name, principals: [`human:${name}`], may: ['approve', 'read'] }),
  );
  const tokens = Tokens.parse(Buffer.from(JSON.stringify({ tokens: made.map(({ entry }) => entry) })));
  const server = await serveGate({ gate, tokens, listen: { port: 0 } });
  onTestFinished(() => server.close());
  const { authorization } = await gate.decide({ ref: 'c1', tool: 'fs.write', params: {} });
  const send = async (who: (typeof PEOPLE)[number], verb: string, body: object, id = authorization) => {
    const response = await fetch(`${server.urls[0]}/v1/approvals/${encodeURIComponent(id)}/${verb}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${made[PEOPLE.indexOf(who)]?.token}`,
        'content-type': 'application/json',
      },
      body: JSON.stringify(body),
    });
    const { error, ...answer } = (await response.json()) as { error?: { code: string } };
    return { status: response.status, code: error?.code, answer: answer as never };
  };
  const add = async (who: string, authenticator: Authenticator, options: KeyEntryOptions = {}) => {
    const { publicKey, webauthn } = parsePasskey(authenticator.register());
    const key = makeKeyEntry(publicKey, { principals: [`human:${who}`], webauthn, ...options });
    await gate.ledger.append({ event: { event_type: 'key', action: 'add', key } });
    return key;
  };
  const approvals = () => place.events().filter(({ event_type: type }) => type === 'approval');
  return { gate, send, add, approvals, verdict: place.verdict, authorization };
}

/** What the page sends. */
function sign(authenticator: Authenticator, { event, publicKey: { challenge } }: PasskeyRequest) {
  return { passkey: { event, credential: authenticator.assert(challenge) } };
}

const refused = { status: 403, code: 'NOT_ALLOWED' };

describe('a token alone', () => {
  it('answers until its principal has a passkey', async () => {
    const { send, add, approvals } = await open();
    expect(await send('olga', 'passkey', { decision: 'approve', origin: ORIGIN })).toMatchObject({
      status: 200,
      answer: { event: null, publicKey: null },
    });
    await add('olga', new Authenticator());
    for (const verb of ['approve', 'reject']) expect(await send('olga', verb, {})).toMatchObject(refused);
    expect(approvals()).toEqual([]);
    expect((await send('ben', 'approve', {})).status).toBe(200);
  });

  it('is no way around a passkey that was revoked, or has expired', async () => {
    const { gate, send, add, approvals } = await open();
    const key = await add('olga', new Authenticator());
    await gate.ledger.append({ event: { event_type: 'key', action: 'revoke', key, reason: 'lost' } });
    await add('ben', new Authenticator(), { validUntil: '2026-01-01T00:00:00Z' });
    for (const who of PEOPLE) {
      for (const verb of ['approve', 'reject']) expect(await send(who, verb, {})).toMatchObject(refused);
      expect(await send(who, 'passkey', { decision: 'approve', origin: ORIGIN })).toMatchObject({
        code: 'KEY_UNKNOWN',
      });
    }
    expect(approvals()).toEqual([]);
  });
});

describe('an answer by a passkey', () => {
  it('is its own person’s, though two are asked at once', async () => {
    const { send, add, approvals, verdict } = await open();
    const [olga, ben] = [new Authenticator(), new Authenticator({ alg: 'EdDSA' })];
    await add('olga', olga);
    await add('ben', ben);
    const ask = { decision: 'approve', origin: ORIGIN };
    const [first, second] = await Promise.all([send('olga', 'passkey', ask), send('ben', 'passkey', ask)]);
    const wrong = { status: 422, code: 'SIGNATURE_INVALID' };
    expect(await send('ben', 'approve', sign(olga, first.answer))).toMatchObject(wrong);
    expect(await send('ben', 'approve', sign(ben, first.answer))).toMatchObject(wrong);
    expect(await send('ben', 'reject', sign(ben, second.answer))).toMatchObject(wrong);
    expect(
      await send('ben', 'approve', { principal: 'human:olga', ...sign(olga, first.answer) }),
    ).toMatchObject(refused);
    expect(approvals()).toEqual([]);
    const both = await Promise.all([
      send('olga', 'approve', sign(olga, first.answer)),
      send('ben', 'approve', sign(ben, second.answer)),
    ]);
    expect(both.map(({ status }) => status)).toEqual([200, 200]);
    expect(both.map(({ answer }) => answer['status'])).toContain('approved');
    expect(approvals()).toHaveLength(2);
    expect(await verdict()).toBe('ok');
  });

  it('is prepared for an approval or a rejection, and no other word', async () => {
    const { send, add } = await open();
    await add('olga', new Authenticator());
    for (const decision of [undefined, 'rejected', 'APPROVE'])
      expect(await send('olga', 'passkey', { decision, origin: ORIGIN })).toMatchObject({
        status: 400,
        code: 'USAGE',
      });
  });
});
