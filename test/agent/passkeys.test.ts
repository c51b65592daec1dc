/** Answers to requests by passkeys: prepared, signed elsewhere, and appended. */

import { describe, expect, it } from 'vitest';
import { canonicalBytes } from '../../src/base/json/canonicalize.js';
import { parsePasskey } from '../../src/format/key/passkey.js';
import { buildEvent } from '../../src/format/event/build.js';
import { challengeOf } from '../../src/format/signature/passkey.js';
import { eventMessage } from '../../src/format/signature/event-signature.js';
import { verifyLedger } from '../../src/log/read/verify-ledger.js';
import type { ApprovalEvent } from '../../src/format/schema/generated/types.js';
import type { PasskeyRequest } from '../../src/log/policy/passkey.js';
import { makeKeyEntry } from '../../src/rules/trust/key-entry.js';
import { Authenticator, type AssertionOptions } from '../key/authenticator.js';
import { filePlace, grant, openLive, request } from './support.js';

const OLGA = 'human:olga';
const OPTIONS = { principalId: OLGA, origin: 'https://approve.example.com' };

async function begin(authenticator = new Authenticator()) {
  const ledger = await openLive(filePlace());
  const approvals = [{ tools: ['fs.*'], approvers: ['human:*'] }];
  const grantId = await grant(ledger, { meterCaps: { calls: 9 }, approvals });
  const { publicKey, webauthn } = parsePasskey(authenticator.register());
  const key = makeKeyEntry(publicKey, { principals: [OLGA], webauthn });
  await ledger.append({ event: { event_type: 'key', action: 'add', key } });
  const { eventId } = (await ledger.authorize({ ...request(1), grantId })).recorded;
  const sign = ({ event, publicKey: { challenge } }: PasskeyRequest, options?: AssertionOptions) => ({
    event,
    credential: authenticator.assert(challenge, options),
  });
  const answer = (given: { event: object; credential: object }, decision: 'approve' | 'reject' = 'approve') =>
    ledger.answerByPasskey(eventId, given, { decision, principalId: OLGA });
  return { ledger, eventId, key, sign, answer, grantId };
}

/** The event with other members, and their ids; with a malformed time as it is. */
function remake(event: ApprovalEvent, other: object): ApprovalEvent {
  const changed: Record<string, unknown> = { ...event, ...other };
  if (changed['occurred_at'] === '2099') return changed as never;
  delete changed['event_id'];
  delete changed['payload_digest'];
  return buildEvent(changed) as never;
}

const invalid = { code: 'SIGNATURE_INVALID' };

describe('an answer by a passkey', () => {
  it.each(['ES256', 'EdDSA'] as const)('of %s lets the call through, and verifies', async (alg) => {
    const { ledger, eventId, key, sign, answer, grantId } = await begin(new Authenticator({ alg }));
    expect(await ledger.passkeysOf(OLGA)).toEqual([key.webauthn]);
    const asked = await ledger.askPasskey(eventId, { ...OPTIONS, limit: { calls: 1 } });
    expect(asked.publicKey).toEqual({
      challenge: challengeOf(eventMessage(canonicalBytes(asked.event))),
      rpId: 'example.com',
      allowCredentials: [{ type: 'public-key', id: key.webauthn?.credential_id }],
      userVerification: 'required',
      timeout: 300_000,
    });
    const { status } = await answer(sign(asked));
    expect(status).toBe('appended');
    expect((await ledger.authorize({ ...request(1), grantId })).decision).toBe('allow');
    const report = await verifyLedger(ledger.path);
    expect(report.findings).toEqual([]);
    expect(report.approvals).toMatchObject([{ principal_id: OLGA, signers: [key.keyid] }]);
  });

  it('is asked for under no other origin, and of nobody else', async () => {
    const { ledger, eventId } = await begin();
    const unknown = { code: 'KEY_UNKNOWN' };
    await expect(
      ledger.askPasskey(eventId, { ...OPTIONS, origin: 'https://evil.example' }),
    ).rejects.toMatchObject(unknown);
    await expect(ledger.askPasskey(eventId, { ...OPTIONS, principalId: 'human:ada' })).rejects.toMatchObject(
      unknown,
    );
    expect(await ledger.passkeysOf('human:ada')).toEqual([]);
  });

  it('is refused where the assertion is not of it, and nothing is appended', async () => {
    const { ledger, eventId, sign, answer } = await begin();
    const asked = await ledger.askPasskey(eventId, OPTIONS);
    const size = ledger.size;
    const other = await ledger.askPasskey(eventId, { ...OPTIONS, code: 'OTHER' });
    for (const wrong of [
      { ...sign(asked), event: other.event },
      sign(asked, { origin: 'https://evil.example' }),
      sign(asked, { flags: 0x01 }),
      sign(asked, { clientData: { type: 'webauthn.create' } }),
      { event: asked.event, credential: new Authenticator().assert(asked.publicKey.challenge) },
      { event: asked.event, credential: {} },
      { event: asked.event, credential: { response: { signature: 'AA' } } },
      { event: {}, credential: sign(asked).credential },
    ])
      await expect(answer(wrong)).rejects.toMatchObject(invalid);
    await expect(answer(sign(asked), 'reject')).rejects.toMatchObject(invalid);
    expect(ledger.size).toBe(size);
  });

  it('is refused for another request', async () => {
    const { ledger, eventId, sign, grantId } = await begin();
    const asked = await ledger.askPasskey(eventId, OPTIONS);
    const { eventId: second } = (await ledger.authorize({ ...request(2), grantId })).recorded;
    const said = { decision: 'approve', principalId: OLGA } as const;
    await expect(ledger.answerByPasskey(second, sign(asked), said)).rejects.toMatchObject(invalid);
  });

  const zeros = { alg: 'sha-256', b64: 'A'.repeat(43) };
  it.each<[string, object]>([
    ['of another tool', { tool_name: 'fs.remove' }],
    ['of other parameters', { tool_params_digest: zeros }],
    ['under another grant', { grant_event_id: zeros }],
    ['by somebody else', { principal_id: 'human:ada' }],
    ['of another system', { source: { system: 'clasper', id: '1' } }],
    ['of long ago', { occurred_at: '2020-01-01T00:00:00Z' }],
    ['of a time to come', { occurred_at: '2099-01-01T00:00:00Z' }],
    ['of no time', { occurred_at: '2099' }],
  ])('is refused of an event %s, though the passkey signed it', async (_, other) => {
    const { ledger, eventId, sign, answer } = await begin();
    const asked = await ledger.askPasskey(eventId, OPTIONS);
    const event = remake(asked.event, other);
    const challenge = challengeOf(eventMessage(canonicalBytes(event)));
    const size = ledger.size;
    const signed = sign({ event, publicKey: { ...asked.publicKey, challenge } });
    await expect(answer(signed)).rejects.toMatchObject(invalid);
    expect(ledger.size).toBe(size);
  });

  it('is written once, however often it is sent', async () => {
    const { ledger, eventId, sign, answer } = await begin();
    const given = sign(await ledger.askPasskey(eventId, OPTIONS));
    const first = await answer(given);
    const again = await answer(given);
    expect(again).toMatchObject({ seq: first.seq, status: 'exists' });
  });

  it('is refused of a plain signer with the key of a passkey', async () => {
    const { ledger, key } = await begin();
    const event = { event_type: 'x.note', principal_id: OLGA };
    const sig = 'A'.repeat(86);
    await expect(ledger.append({ event, signatures: [{ keyid: key.keyid, sig }] })).rejects.toMatchObject(
      invalid,
    );
  });
});
