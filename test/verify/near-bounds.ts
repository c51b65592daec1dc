/** Ledgers whose events come in order and use up what their grants allow, in amounts of every size and scale, and a little more. */

import { createHash } from 'node:crypto';
import { meters, type AnyEvent } from '../../src/api/index.js';
import type { Signer } from '../../src/api/format.js';
import { event, genesis, keyOf, ledger, makeSigner, type Item } from '../docs/ledger-kit.js';

const digest = (text: string, alg: 'sha-256' | 'sha-512' = 'sha-256'): object => ({
  alg,
  b64: createHash(alg.replace('-', '')).update(text).digest('base64url'),
});

/** Signs nothing, and yet it alone may authorize. */
const AUTHORITY = keyOf(makeSigner(), { roles: ['authority'] });

/** Beyond 2^53 in their own multiples, or not, or just so. */
const CAPS = [
  '10',
  '0.9',
  '12.345678901234567',
  '9007199254740991',
  '9007199254740.993',
  '90071992547409930',
  '3e-9',
];
const USUAL_CAPS = ['25', '0.9', '1000000', '400.00'];
const UNITS = ['usd', 'calls', 'tokens.input', 'time.ms', 'gpu.s', 'bytes', 'requests'];

export function ledgerNearBounds(random: () => number, signer: Signer | undefined, length: number): Buffer {
  const below = (end: number): number => Math.floor(random() * end);
  const pick = <T>(list: readonly T[]): T => list[below(list.length)];
  let second = 0;
  const at = (): string => {
    second += random() < 0.05 ? -below(4) : below(4);
    const text = new Date(Date.UTC(2026, 0, 2) + second * 1000).toISOString();
    return random() < 0.7
      ? `${text.slice(0, 19)}Z`
      : random() < 0.5
        ? text
        : `${text.slice(0, 19)}.${below(1e9) || 1}Z`;
  };
  const items: Item[] = [];
  const signing = random() < 0.5 ? 'required' : 'optional';
  const put = (made: AnyEvent): AnyEvent => {
    const isUnsigned = signer === undefined || (signing === 'optional' && random() < 0.2);
    items.push({ event: made, signers: isUnsigned ? [] : [signer] });
    return made;
  };
  put(
    genesis(
      signer === undefined
        ? []
        : [
            keyOf(signer, {
              ...(random() < 0.5 && { valid_from: '2026-01-01T00:00:00Z' }),
              ...(random() < 0.4 && { roles: ['event', 'authority'] }),
            }),
            ...(random() < 0.3 ? [AUTHORITY] : []),
          ],
      { signing: { events: signer === undefined ? 'optional' : signing, checkpoints: 'optional' } },
    ),
  );
  const units = UNITS.slice(0, 1 + below(random() < 0.1 ? UNITS.length : 4));
  const caps = Object.fromEntries(
    units.map((unit, index) => [unit, fromText(index === 0 ? pick(CAPS) : pick(USUAL_CAPS))]),
  );
  // Of units without a cap the first of each is found; the others only add to it.
  const uncapped = random() < 0.2 ? UNITS.filter((unit) => !units.includes(unit)).slice(0, 2) : [];
  const alg = random() < 0.1 ? 'sha-512' : 'sha-256';
  const intents = { intent_digest: digest('intent', alg) };
  const grants: AnyEvent[] = [];
  const allow = {
    decision: 'allow',
    decision_code: 'OK',
    policy_id: 'policy/1',
    policy_digest: digest('policy'),
  };
  const makeRule = (): object => ({
    tools: [pick(['fs.*', 'shell'])],
    approvers: ['human:*'],
    ...(random() < 0.9 && {
      above: meters(
        Object.fromEntries(
          pick([units.slice(0, 1), units]).map((unit, index) => [
            unit,
            fromText(pick(index === 0 ? CAPS : USUAL_CAPS)),
          ]),
        ),
      ),
    }),
  });
  for (let depth = 0; depth < 1 + below(3); depth += 1) {
    const parent = grants.at(-1)?.event_id;
    const bounds = {
      allowed_tools: random() < 0.7 ? ['*'] : ['fs.*', 'net.get'],
      meter_caps: meters(caps),
      ...(random() < 0.15 && { action_caps: meters({ [units[0]]: fromText(pick(CAPS)) }) }),
      ...(random() < 0.2 && { rate_limits: meters({ 'calls.per_min': 5 }) }),
      ...(random() < 0.2 && { concurrency_limit: { t: 'int', v: '2' } }),
      ...(random() < 0.3 && { expires_at: '2026-01-02T00:01:00.5Z' }),
      ...(random() < 0.2 && { not_before: '2026-01-02T00:00:01Z' }),
      ...(random() < 0.2 && { output_mode: 'digest_only' }),
      ...(random() < 0.3 && { approvals: [makeRule()] }),
    };
    const authorization = { kind: 'grant', bounds, ...(parent && { grant_event_id: parent }) };
    grants.push(put(event('authorization', { ...allow, intents, authorization, occurred_at: at() })));
  }
  const amounts = (share: number): unknown =>
    meters({
      ...Object.fromEntries(
        uncapped
          .filter(() => random() < 0.5)
          .map((unit) => [unit, decimal(BigInt(below(4)), below(3))] as const),
      ),
      ...Object.fromEntries(
        units
          .filter((_, index) => index === 0 || random() < 0.8)
          .map((unit) => {
            const cap = Number(
              (caps[unit] as { v?: string; m?: string }).v ?? (caps[unit] as { m: string }).m,
            );
            const scale = Number((caps[unit] as { s?: number }).s ?? 0);
            const finer = random() < 0.2 ? below(3) : 0;
            const multiple = Math.floor((cap / share) * random() * 2) * 10 ** finer + below(10 ** finer);
            return [unit, decimal(BigInt(multiple), scale + finer)];
          }),
      ),
    });
  const basesOf = (used: unknown): object => {
    const own = (used as readonly { readonly unit: string }[]).filter(() => random() < 0.4);
    if (own.length === 0) return {};
    const bases = own.map(({ unit }) => [unit, pick(['measured', 'estimated', 'billed'])] as const);
    return { meter_basis_by_unit: Object.fromEntries(bases) };
  };
  const open: AnyEvent[] = [];
  const started = new Map<AnyEvent, unknown>();
  while (items.length < length) {
    const kind = random();
    const share = length * (0.3 + random());
    const grant = pick(grants);
    const common = {
      intents,
      occurred_at: at(),
      ...(random() < 0.1 && { prev_event_id: pick(items).event }),
    };
    const { prev_event_id: before, ...rest } = common as { prev_event_id?: AnyEvent };
    const members = { ...rest, ...(before && { prev_event_id: before.event_id }) };
    const tool = {
      tool_name: random() < 0.95 ? 'fs.read' : 'shell',
      tool_params_digest: digest('params', random() < 0.99 ? alg : 'sha-512'),
    };
    if (kind < 0.45) {
      const action = {
        ...tool,
        meter_reservation: amounts(share),
        ...(random() < 0.04 && { expires_at: pick(['2026-01-02T00:00:30Z', '2026-01-03T00:00:00Z']) }),
        ...(random() < 0.04 && { request_key: `job/${below(4)}` }),
      };
      const made = event('authorization', {
        ...members,
        ...allow,
        ...(random() < 0.15 && {
          decision: 'deny',
          checks: [{ check: 'spend', result: random() < 0.5 ? 'fail' : 'pass' }],
          ...(random() < 0.5 && { decision_code: 'APPROVAL_REQUIRED' }),
        }),
        ...(random() < 0.05 && { principal_id: 'agent:other' }),
        ...(random() < 0.2 && { intents: { ...intents, user_intent_digest: digest('intent', alg) } }),
        authorization: {
          kind: 'action',
          action,
          ...(random() < 0.85 && { grant_event_id: grant.event_id }),
        },
      });
      open.push(put(made));
    } else if (kind < 0.9) {
      const isUnder = open.length > 0 && random() < 0.8;
      const index = below(open.length);
      const under = isUnder ? open[index] : grant;
      const begun = started.get(under);
      const sort = random();
      if (isUnder && random() < 0.95) open.splice(index, 1);
      const occurredAt = (members as { occurred_at: string }).occurred_at;
      const reserved = (under['authorization'] as { action?: { meter_reservation: unknown } }).action
        ?.meter_reservation;
      const used = isUnder && random() < 0.5 ? reserved : amounts(share);
      put(
        event('execution', {
          ...members,
          ...tool,
          auth_event_id: under.event_id,
          meter_used: used,
          ...(sort > 0.05 && sort < 0.9 && basesOf(used)),
          outcome: 'success',
          ...(random() < 0.8 && { started_at: occurredAt, ...(random() < 0.8 && { ended_at: occurredAt }) }),
          ...(random() < 0.2 && { meter_basis: 'estimated' }),
          ...(sort < 0.05 && { outcome: 'failure', error_code: 'ABANDONED', meter_used: [] }),
          ...(sort > 0.95 && { outcome: pick(['success', 'unknown']), meter_used: [] }),
          ...(sort > 0.9 &&
            sort < 0.93 && {
              meter_basis_by_unit: { [units[0]]: pick(['estimated', 'billed']) },
              meter_used: [{ unit: units[0], amount: fromText('3e-9') }],
            }),
          ...(begun !== undefined && random() < 0.7 && { prev_event_id: begun }),
        }),
      );
    } else if (kind < 0.915) {
      const under = open.at(-1 - below(3)) ?? grant;
      const earlier = started.get(under);
      const start = event('x.northroot.start', {
        ...members,
        ...tool,
        auth_event_id: under.event_id,
        started_at: (members as { occurred_at: string }).occurred_at,
        meter_known: random() < 0.5 ? [] : amounts(share),
        recorder: 'a-recorder-of-its-own',
        ...(earlier !== undefined && random() < 0.7 && { prev_event_id: earlier }),
      });
      started.set(under, put(start).event_id);
    } else if (kind < 0.93) {
      const credit = {
        direction: random() < 0.5 ? 'credit' : 'debit',
        reason: 'REFUND',
        meters: amounts(share),
      };
      put(event('adjustment', { occurred_at: at(), grant_event_id: grant.event_id, ...credit }));
    } else put(event('x.note', { text: String(items.length), occurred_at: at() }));
  }
  return ledger(...items);
}

type Amount = { t: 'int'; v: string } | { t: 'dec'; m: string; s: number };

function fromText(text: string): Amount {
  const value = text === '3e-9' ? '0.000000003' : text;
  const [whole = '', fraction = ''] = value.split('.');
  return decimal(BigInt(`${whole}${fraction}`), fraction.length);
}

function decimal(m: bigint, s: number): Amount {
  return s === 0 ? { t: 'int', v: String(m) } : { t: 'dec', m: String(m), s };
}
