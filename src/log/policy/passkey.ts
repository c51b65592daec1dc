/**
 * Approvals by passkeys (docs/spec/passkeys.md), in two steps: the event and what a browser is asked for; then the assertion that comes back.
 * Between them nothing is kept: the assertion is of the whole event.
 */

import { encodeBase64url, tryDecodeBase64url } from '../../base/bytes/encoding.js';
import { printable } from '../../base/bytes/printable.js';
import { NorthrootError } from '../../base/error.js';
import { canonicalBytes } from '../../base/json/canonicalize.js';
import { isJsonObject, type JsonValue, membersOf } from '../../base/json/value.js';
import { isSha256Text } from '../../base/value/digest.js';
import { compareTimestamps, isTimestamp } from '../../base/value/timestamp.js';
import { buildEvent } from '../../format/event/build.js';
import type { ApprovalEvent, Webauthn } from '../../format/schema/generated/types.js';
import { tryDecodeEcdsaDer } from '../../format/signature/ecdsa-der.js';
import { eventMessage } from '../../format/signature/event-signature.js';
import {
  challengeOf,
  MAX_AUTHENTICATOR_DATA_BYTES,
  MAX_CLIENT_DATA_BYTES,
  packAssertion,
} from '../../format/signature/passkey.js';
import { signingRuleOf } from '../../rules/trust/authority.js';
import { findEntitlementProblem, listRolesUsed, type RingKey } from '../../rules/trust/keyring.js';
import { judgingInstant } from '../../rules/trust/record-signing.js';
import type { VerifyState } from '../../rules/verify/state.js';
import type { Entry } from '../writer/options.js';
import { type ApprovalOptions, draftApproval } from './approve.js';

/** What a browser is asked for, as JSON: `navigator.credentials.get({ publicKey })`, with its base64url as bytes. */
export interface PasskeyOptions {
  /** base64url of 32 bytes. */
  readonly challenge: string;
  readonly rpId: string;
  /** Empty: the browser lets its user choose. `id` is base64url. */
  readonly allowCredentials: readonly { readonly type: 'public-key'; readonly id: string }[];
  readonly userVerification: 'required' | 'preferred';
  /** Milliseconds. */
  readonly timeout: number;
}

/** The first step of an approval by a passkey. */
export interface PasskeyRequest {
  /** The event to sign, whole. It comes back with the assertion. */
  readonly event: ApprovalEvent;
  readonly publicKey: PasskeyOptions;
}

/** The second step: the event of the first, and `toJSON()` of the credential that the browser gave. */
export interface PasskeyAnswer {
  readonly event: object;
  readonly credential: object;
}

/** The options of {@link ApprovalOptions}, and the page that asks. */
export interface PasskeyApprovalOptions extends ApprovalOptions {
  /** Such as `https://approve.example.com`. */
  readonly origin: string;
}

const TIMEOUT_MS = 300_000;
/** For how long an event that was prepared may be signed, in milliseconds. */
const MAX_AGE_MS = 600_000;

/**
 * Drafts an approval, or a rejection, for a passkey of its principal.
 *
 * @throws NorthrootError `KEY_UNKNOWN` if the principal has no passkey for this origin; as `draftApproval`
 */
export function preparePasskeyApproval(
  state: VerifyState,
  request: string,
  { origin, ...options }: PasskeyApprovalOptions,
): PasskeyRequest {
  const { ledgerId } = state;
  const draft = draftApproval(state, request, options);
  const event = buildEvent(draft, ledgerId === undefined ? {} : { ledgerId }) as object as ApprovalEvent;
  const usable = listPasskeys(state, event.principal_id, event.occurred_at).filter(({ origins }) =>
    origins.includes(origin),
  );
  const [first] = usable;
  if (first === undefined)
    throw new NorthrootError(
      'KEY_UNKNOWN',
      `${printable(event.principal_id)} has no passkey for ${printable(origin)}`,
      { hint: 'an admin adds its key, made there, to the ledger' },
    );
  const { rp_id: rpId } = first;
  const same = usable.filter((each) => each.rp_id === rpId);
  const ids = same.flatMap(({ credential_id: id }) => (id === undefined ? [] : [id]));
  const isOptional = same.every(({ user_verification: demand }) => demand === 'optional');
  return {
    event,
    publicKey: {
      challenge: challengeOf(eventMessage(canonicalBytes(event))),
      rpId,
      allowCredentials: ids.length < same.length ? [] : ids.map((id) => ({ type: 'public-key', id })),
      userVerification: isOptional ? 'preferred' : 'required',
      timeout: TIMEOUT_MS,
    },
  };
}

/**
 * The entry of an event that a passkey signed, for `Ledger.decide`.
 *
 * @param said - Who answers, and what; `now` is a timestamp of SPEC §2
 * @throws NorthrootError `SIGNATURE_INVALID` for another event, or no assertion of it by a passkey of its principal; as `draftApproval`
 */
export function completePasskeyApproval(
  state: VerifyState,
  request: string,
  { event, credential }: PasskeyAnswer,
  said: { readonly decision: ApprovalEvent['decision']; readonly principalId: string; readonly now: string },
): Entry {
  const { decision, principalId, now: occurredAt } = said;
  // An answer that is there already may be given again.
  const isNew = decision === 'approve' && !isRecorded(state, event);
  const drafted = draftApproval(state, request, { occurredAt, decision: isNew ? 'approve' : 'reject' });
  const asked = { ...drafted, decision, principal_id: principalId };
  assertAnswers(event, asked, said.now);
  const message = eventMessage(canonicalBytes(event));
  const { authenticatorData, clientData, signature } = readCredential(credential);
  const keys = findPasskeys(state, said.principalId, said.now);
  let problem: NorthrootError | undefined;
  for (const { key, publicKey, passkey } of keys) {
    const raw = publicKey.alg === 'p256' ? tryDecodeEcdsaDer(signature) : signature;
    if (raw?.length !== SIGNATURE_BYTES) continue;
    const packed = packAssertion({ signature: raw, authenticatorData, clientData });
    const fault = passkey?.explain(message, packed);
    if (fault === undefined)
      return { event, signatures: [{ keyid: key.keyid, sig: encodeBase64url(packed) }] };
    problem = refuse(fault.expected, fault.actual);
  }
  throw problem ?? refuse(`an assertion by a passkey of ${said.principalId}`, 'another');
}

function isRecorded({ events }: VerifyState, event: object): boolean {
  const { b64 } = membersOf(membersOf(event as never)['event_id']);
  return typeof b64 === 'string' && isSha256Text(b64) && events.find(b64) !== undefined;
}

const SIGNATURE_BYTES = 64;

/** The members that say which answer to which call it is. Limit, expiry and code are the signer's to choose. */
const SAID = [
  'event_type',
  'principal_id',
  'decision',
  'request_event_id',
  'grant_event_id',
  'tool_name',
  'tool_params_digest',
  'source',
] as const;

/** @throws NorthrootError `SIGNATURE_INVALID` for another answer than the one that was asked for, or of another time */
function assertAnswers(
  event: object,
  asked: { readonly decision: string; readonly principal_id: string },
  now: string,
): void {
  const [members, expected] = [membersOf(event as never), membersOf(asked)];
  const other = SAID.find((name) => textOf(members[name]) !== textOf(expected[name]));
  if (other !== undefined)
    throw refuse(
      `the ${asked.decision} of this request by ${asked.principal_id}`,
      `an event with another ${other}`,
    );
  const at = members['occurred_at'];
  const [oldest, latest] = [-MAX_AGE_MS, MAX_AGE_MS].map((ms) =>
    new Date(Date.parse(now) + ms).toISOString(),
  ) as [string, string];
  const isTime = typeof at === 'string' && isTimestamp(at);
  if (!isTime || compareTimestamps(at, oldest) < 0 || compareTimestamps(at, latest) > 0)
    throw refuse(`an event prepared between ${oldest} and ${latest}`, typeof at === 'string' ? at : 'none');
}

/** Of a text, or a digest. */
function textOf(value: JsonValue | undefined): JsonValue | undefined {
  return isJsonObject(value) ? JSON.stringify([value['alg'], value['b64']]) : value;
}

function readCredential(credential: object): {
  readonly authenticatorData: Uint8Array;
  readonly clientData: Uint8Array;
  readonly signature: Uint8Array;
} {
  const response = membersOf(membersOf(credential as never)['response']);
  const read = (name: string, max: number): Uint8Array => {
    const text = response[name];
    const bytes = typeof text === 'string' && text.length <= 2 * max ? tryDecodeBase64url(text) : undefined;
    if (bytes !== undefined && bytes.length <= max) return bytes;
    throw refuse(`a credential with response.${name}, at most ${max} bytes in base64url`, 'another');
  };
  return {
    authenticatorData: read('authenticatorData', MAX_AUTHENTICATOR_DATA_BYTES),
    clientData: read('clientDataJSON', MAX_CLIENT_DATA_BYTES),
    signature: read('signature', MAX_DER_BYTES),
  };
}

const MAX_DER_BYTES = 72;

/** The passkeys by which a principal may answer. @param at - A timestamp of SPEC §2 */
export function listPasskeys(state: VerifyState, principalId: string, at: string): Webauthn[] {
  return findPasskeys(state, principalId, at).flatMap(({ key: { webauthn } }) => webauthn ?? []);
}

/** Whether a principal has, or had, a passkey. One that is revoked or expired is not to be replaced by something weaker. */
export function hasHadPasskey({ keyring }: VerifyState, principalId: string): boolean {
  const { hasAuthority } = keyring;
  const rule = signingRuleOf({ type: 'approval', principalId }, { hasAuthority });
  return keyring.passkeys().some((keyid) => {
    const known = keyring.find(keyid);
    return known !== undefined && listRolesUsed(known, rule).length > 0;
  });
}

function findPasskeys({ keyring, clock }: VerifyState, principalId: string, at: string): RingKey[] {
  const { hasAuthority } = keyring;
  const rule = signingRuleOf({ type: 'approval', principalId }, { hasAuthority });
  const instant = judgingInstant(clock, at);
  return keyring.passkeys().flatMap((keyid) => {
    const known = keyring.find(keyid);
    return known === undefined || findEntitlementProblem(known, rule, instant) !== undefined ? [] : [known];
  });
}

function refuse(expected: string, found: string): NorthrootError {
  return new NorthrootError(
    'SIGNATURE_INVALID',
    `expected ${printable(expected)}, found ${printable(found)}`,
    { hint: 'ask again, and sign what is then shown' },
  );
}
