import { describe, expect, it } from 'vitest';
import type { ValueFault } from '../../src/base/fault.js';
import {
  checkEvent,
  checkKey,
  checkRecord,
  checkReport,
  checkTrustPolicy,
  isKnownEventType,
  type ShapeCode,
} from '../../src/format/schema/check.js';
import { MAX_FAULTS } from '../../src/format/schema/fault-list.js';
import { places, withPlace } from './mutate.js';
import * as samples from './samples.js';

type Check = (value: unknown) => ValueFault<ShapeCode>[];

const {
  grant,
  action,
  execution,
  adjustment,
  approval,
  revocation,
  genesis,
  checkpoint,
  attestation,
  keyEvent,
  extension,
} = samples;
const EVENTS = {
  grant,
  action,
  execution,
  adjustment,
  approval,
  revocation,
  genesis,
  checkpoint,
  attestation,
  keyEvent,
  extension,
};
const DOCUMENTS: [string, Check, unknown][] = [
  ...Object.entries(EVENTS).map(([name, event]): [string, Check, unknown] => [name, checkEvent, event]),
  ['record', checkRecord, samples.record],
  ['key', checkKey, samples.key],
  ['trust policy', checkTrustPolicy, samples.trustPolicy],
  ['report', checkReport, samples.report],
];

/** Members that may be absent, wherever they stand. */
const OPTIONAL = new Set(
  (
    'prev_event_id context_digest checks hygiene hygiene_digest intent_ref user_intent_digest size_bytes media_type code ' +
    'grant_event_id expires_at rate_limits concurrency_limit output_mode resources tool_params_digest started_at ended_at ' +
    'output_digest output_ref resources_touched model_id provider pricing_snapshot_digest name valid_from valid_until reason ' +
    'meta origins require event_signatures pointer expected actual related folded findings meter_reservation ' +
    'ledger_id source digest meter_basis action_caps not_before max_delegation_depth binding continues note ' +
    'execution_event_id evidence estimated open_starts approvals above max_age_s approval_event_ids request_key ' +
    'meter_limit request_event_id reason_digest in_flight'
  ).split(' '),
);
const isOptional = (pointer: string, document: unknown) => {
  const token = pointer.slice(pointer.lastIndexOf('/') + 1);
  // The names of these are not the schemas'.
  if (/\/(?:metrics|by_type|meta|anything\/.*)\/[^/]+$/.test(pointer) || /^\/anything/.test(pointer))
    return true;
  // Required in other places of the same name.
  if (
    /\/action\/tool_params_digest$|^\/tool\/name$|\/(?:findings\/0|not_checked\/0)\/code$|^\/open_starts\/0\/started_at$/.test(
      pointer,
    )
  )
    return false;
  // And of these names, only the ones in genesis's `continues`, and in a source.
  if (/\/continues\/ledger_id$|^\/note$|\/(?:intent_ref|output_ref|evidence)\/digest$/.test(pointer))
    return false;
  const isOnGrant = document === adjustment || document === approval || document === revocation;
  if (isOnGrant && /^\/(?:reason|grant_event_id|tool_params_digest)$/.test(pointer)) return false;
  if (document === revocation && pointer === '/in_flight') return false;
  if (/^\/approvals$|^\/(?:approvals|revocations)\/[01]\/grant_event_id$/.test(pointer)) return false;
  return OPTIONAL.has(token) || /\/approvals\/0\/count$/.test(pointer);
};
/** Objects that take any member. */
const isOpen = (pointer: string, document: unknown) =>
  /\/(?:metrics|by_type|meta)$|^\/anything/.test(pointer) ||
  (document === extension && pointer === '') ||
  (document === samples.record && pointer === '/event');

const brief = (faults: ValueFault<ShapeCode>[]) => faults.map(({ code, pointer }) => `${code} ${pointer}`);

describe.each(DOCUMENTS)('%s', (_, check, document) => {
  const all = places(document);

  it('is well-formed', () => {
    expect(check(document)).toEqual([]);
  });

  it('misses each required member by its own pointer, and no optional one', () => {
    for (const { pointer } of all) {
      if (pointer === '' || /\/[0-9]+$/.test(pointer)) continue;
      const faults = check(withPlace(document, pointer, undefined));
      if (isOptional(pointer, document)) {
        expect([pointer, faults]).toEqual([pointer, []]);
      } else {
        expect([pointer, brief(faults)]).toEqual([pointer, [`SCHEMA ${pointer}`]]);
        expect(faults[0].expected).toMatch(
          /^present \((?:string|object|array|integer|integer or null|string or null)\)$/,
        );
        expect(faults[0].actual).toBe('absent');
      }
    }
  });

  it.each(['zzz', '__proto__', 'constructor', 'toString', 'a/b~c', '', '0'])(
    'has no member %j anywhere',
    (name) => {
      const token = name.replaceAll('~', '~0').replaceAll('/', '~1');
      for (const { pointer, value } of all) {
        if (typeof value !== 'object' || value === null || Array.isArray(value)) continue;
        const place = `${pointer}/${token}`;
        const faults = check(withPlace(document, place, 'x'));
        if (isOpen(pointer, document)) {
          // Of these, the counts are the ones whose members are not texts.
          if (!/metrics$|by_type$/.test(pointer)) expect([place, faults]).toEqual([place, []]);
        } else {
          expect([place, faults]).toEqual([
            place,
            [{ code: 'SCHEMA', pointer: place, expected: 'no such member', actual: '"x"' }],
          ]);
        }
      }
    },
  );

  it('knows a value of the wrong type at every place', () => {
    for (const { pointer, value } of all) {
      if (/^\/anything/.test(pointer)) continue;
      for (const wrong of [true, [], {}, 'x', 1, null]) {
        const isSameType =
          typeof wrong === typeof value &&
          Array.isArray(wrong) === Array.isArray(value) &&
          (wrong === null) === (value === null);
        const isNullable =
          /\/(?:origin|root|tip_event_id|last_tree_size|seq|event_id|used_by)$/.test(pointer) &&
          document === samples.report;
        if (isSameType || isNullable) continue;
        const faults = check(withPlace(document, pointer, wrong));
        expect([pointer, wrong, brief(faults)]).toEqual([pointer, wrong, [`SCHEMA ${pointer}`]]);
      }
    }
  });
});

const long = (length: number) => 'x'.repeat(length);
const times = <T>(count: number, make: (i: number) => T): T[] =>
  Array.from({ length: count }, (_, i) => make(i));
const int = (v: string) => ({ t: 'int', v });
const BOUNDS = '/authorization/bounds';
const B64 = samples.key.keyid;

/** [document, place, value to set (undefined: none), faults] */
type Row = [document: object, pointer: string, value: unknown, faults: string[]];

const at =
  (code: string) =>
  (row: [object, string, unknown]): Row => [...row, [`${code} ${row[1]}`]];

const SCHEMA_ROWS: [object, string, unknown][] = [
  // the envelope
  [extension, '/event_type', ''],
  [extension, '/event_type', ' x'],
  [extension, '/event_type', '-x'],
  [extension, '/event_type', long(129)],
  [extension, '/event_id/alg', 'sha-512'],
  [extension, '/event_id/b64', `${B64}A`],
  [extension, '/event_id/b64', B64.slice(0, -1)],
  [extension, '/event_id/b64', `${B64.slice(0, -1)}V`],
  [extension, '/payload_digest/b64', `${B64}=`],
  [extension, '/prev_event_id/alg', 'blake3'],
  [extension, '/context_digest/alg', 'BLAKE3'],
  [extension, '/context_digest/alg', ''],
  [extension, '/context_digest/alg', 'a'.repeat(33)],
  [extension, '/context_digest/b64', ''],
  [extension, '/context_digest/b64', 'A'],
  [extension, '/context_digest/b64', 'AB'],
  [extension, '/context_digest/b64', 'AAB'],
  [extension, '/context_digest/b64', 'A'.repeat(130)],
  [extension, '/principal_id', 'robot:x'],
  [extension, '/principal_id', 'agent:'],
  [extension, '/principal_id', 'agent:*'],
  [extension, '/principal_id', `agent:${long(256)}`],
  [extension, '/canonical_profile_id', 'short'],
  [extension, '/canonical_profile_id', 'northroot jcs v1 x'],
  [extension, '/canonical_profile_id', long(129)],
  // authorization
  [grant, '/policy_id', ''],
  [grant, '/policy_id', long(257)],
  [grant, '/decision', 'maybe'],
  [grant, '/decision', 'constructor'],
  [grant, '/decision_code', ''],
  [grant, '/decision_code', 'allow'],
  [grant, '/decision_code', 'A'.repeat(65)],
  [grant, '/checks/0/check', ''],
  [grant, '/checks/0/check', long(65)],
  [grant, '/checks/0/result', 'ok'],
  [grant, '/checks/0/code', 'no'],
  [grant, '/hygiene/status', 'ok'],
  [grant, '/hygiene/warnings/0', 'AB'],
  [grant, '/hygiene/warnings/1', 'NUMBER_COERCED'],
  [grant, '/hygiene/warnings/1', 'A_BC'],
  [grant, '/hygiene/metrics/NUMBER_COERCED', -1],
  [grant, '/hygiene/metrics/NUMBER_COERCED', 0.5],
  [grant, '/hygiene/profile_id', 'short'],
  [grant, '/intents/intent_ref/size_bytes', -1],
  [grant, '/intents/intent_ref/size_bytes', 2 ** 53],
  [grant, '/authorization/kind', 'bounds'],
  [grant, '/authorization/kind', 'constructor'],
  [grant, '/authorization/grant_event_id/alg', 'sha-512'],
  [grant, `${BOUNDS}/allowed_tools`, []],
  [grant, `${BOUNDS}/allowed_tools`, times(1025, (i) => `t${i}`)],
  [grant, `${BOUNDS}/allowed_tools/1`, '**'],
  [grant, `${BOUNDS}/meter_caps`, []],
  [grant, `${BOUNDS}/meter_caps`, times(65, (i) => ({ unit: `u${i}`, amount: int('1') }))],
  [grant, `${BOUNDS}/meter_caps/0/unit`, 'USD'],
  [grant, `${BOUNDS}/meter_caps/0/unit`, 'u'.repeat(65)],
  [grant, `${BOUNDS}/rate_limits`, times(17, (i) => ({ unit: `u${i}.per_sec`, amount: int('1') }))],
  [grant, `${BOUNDS}/rate_limits/0/unit`, 'calls'],
  [grant, `${BOUNDS}/rate_limits/0/unit`, 'calls.per_month'],
  [grant, `${BOUNDS}/rate_limits/0/unit`, '.per_sec'],
  [grant, `${BOUNDS}/rate_limits/0/unit`, 'usd.per_0h'],
  [grant, `${BOUNDS}/rate_limits/0/unit`, 'usd.per_10000s'],
  [grant, `${BOUNDS}/rate_limits/0/unit`, 'usd.per_05h'],
  [grant, `${BOUNDS}/rate_limits/0/unit`, 'usd.per_5w'],
  // Not a rate unit at all, so never one that stands twice, whatever its text.
  [grant, `${BOUNDS}/rate_limits/0/unit`, 'usd 18000000000000'],
  [grant, `${BOUNDS}/action_caps`, times(65, (i) => ({ unit: `u${i}`, amount: int('1') }))],
  [grant, `${BOUNDS}/action_caps/0/unit`, 'USD'],
  [grant, `${BOUNDS}/max_delegation_depth`, -1],
  [grant, `${BOUNDS}/max_delegation_depth`, 32],
  [grant, `${BOUNDS}/max_delegation_depth`, 0.5],
  [grant, '/ledger_id/alg', 'sha-512'],
  [grant, '/ledger_id/b64', B64.slice(0, -1)],
  [grant, '/source/system', ''],
  [grant, '/source/system', long(65)],
  [grant, '/source/id', ''],
  [grant, '/source/id', long(513)],
  [grant, '/source/digest/b64', ''],
  [grant, `${BOUNDS}/output_mode`, 'inline'],
  [grant, `${BOUNDS}/resources/0/kind`, ''],
  [grant, `${BOUNDS}/resources/0/kind`, long(257)],
  [grant, `${BOUNDS}/resources/0/reference`, ''],
  [grant, `${BOUNDS}/resources/0/reference`, long(1025)],
  [grant, `${BOUNDS}/concurrency_limit/t`, 7],
  [grant, `${BOUNDS}/concurrency_limit/v`, undefined],
  [grant, `${BOUNDS}/concurrency_limit/s`, 0],
  [action, '/authorization/action/tool_name', 'a*'],
  [action, '/authorization/action/tool_name', ''],
  [
    action,
    '/authorization/action/meter_reservation',
    times(65, (i) => ({ unit: `u${i}`, amount: int('1') })),
  ],
  // a quantity's shape
  [execution, '/meter_used/0/amount', '1'],
  [execution, '/meter_used/0/amount', 1],
  [execution, '/meter_used/0/amount/t', undefined],
  [execution, '/meter_used/0/amount/t', 1],
  [execution, '/meter_used/0/amount/v', 1],
  [execution, '/meter_used/0/amount/v', undefined],
  [execution, '/meter_used/1/amount/s', '2'],
  [execution, '/meter_used/1/amount/s', undefined],
  [execution, '/meter_used/1/amount/v', '2'],
  [execution, '/meter_used/3/amount/bits', null],
  // execution
  [execution, '/tool_name', 'a b'],
  [execution, '/outcome', 'partial'],
  [execution, '/meter_basis', 'guessed'],
  // approval
  [approval, '/decision', 'allow'],
  [approval, '/decision_code', 'ok'],
  [approval, '/tool_name', ''],
  [approval, '/grant_event_id/alg', 'blake3'],
  [approval, '/request_event_id/alg', 'blake3'],
  [approval, '/meter_limit', times(65, (i) => ({ unit: `u${i}`, amount: int('1') }))],
  // revocation
  [revocation, '/effect', 'stop'],
  [revocation, '/in_flight', 'abort'],
  [revocation, '/reason', 'because'],
  [revocation, '/grant_event_id/alg', 'blake3'],
  // adjustment
  [adjustment, '/direction', 'refund'],
  [adjustment, '/meters', []],
  [adjustment, '/meters', times(65, (i) => ({ unit: `u${i}`, amount: int('1') }))],
  [adjustment, '/meters/0/unit', 'USD'],
  [adjustment, '/reason', 'refund'],
  [adjustment, '/reason', 'A'.repeat(65)],
  [adjustment, '/meter_basis', 'invoice'],
  [adjustment, '/evidence/size_bytes', -1],
  [adjustment, '/grant_event_id/alg', 'blake3'],
  [adjustment, '/execution_event_id/alg', 'blake3'],
  [execution, '/error_code', 'failed'],
  [execution, '/auth_event_id/alg', 'md5'],
  // genesis and keys
  [genesis, '/origin', ''],
  [genesis, '/origin', 'https://example.com'],
  [genesis, '/origin', 'a b'],
  [genesis, '/origin', 'a+b'],
  [genesis, '/origin', 'a\u0000b'],
  [genesis, '/origin', 'a\u0085b'],
  [genesis, '/origin', 'a\u00a0b'],
  [genesis, '/origin', 'a\u2028b'],
  [genesis, '/origin', 'a\ufeffb'],
  [genesis, '/origin', long(256)],
  [genesis, '/ledger_version', '2'],
  [genesis, '/signing/events', 'no'],
  [genesis, '/signing/checkpoints', ''],
  [genesis, '/signing/binding', 'strict'],
  [genesis, '/ledger_id', { alg: 'sha-256', b64: B64 }],
  [genesis, '/continues/tree_size', -1],
  [genesis, '/continues/root/alg', 'blake3'],
  [genesis, '/continues/ledger_id/b64', ''],
  [genesis, '/keys/0/keyid', `${B64}A`],
  [genesis, '/keys/0/keyid', `${B64.slice(0, -1)}V`],
  [genesis, '/keys/0/public_key', B64],
  [genesis, '/keys/0/public_key', `p256:${B64}`],
  [genesis, '/keys/0/public_key', `ed25519:${'A'.repeat(87)}`],
  [genesis, '/keys/0/public_key', `ed25519:${B64.slice(0, -1)}V`],
  [genesis, '/keys/1/public_key', `ml-dsa-44:${B64}`],
  [genesis, '/keys/1/public_key', `ml-dsa-44:${'A'.repeat(1749)}B`],
  [genesis, '/keys/1/public_key', `ml-dsa-44:${'A'.repeat(1751)}`],
  [genesis, '/keys/1/public_key', `ml-dsa-65:${'A'.repeat(1750)}`],
  [genesis, '/keys/0/roles/0', 'root'],
  // An ml-dsa-44 key signs notes, and no records.
  [genesis, '/keys/1/roles/0', 'event'],
  [genesis, '/keys/1/roles/0', 'authority'],
  [genesis, '/keys/1/roles/1', 'admin'],
  [genesis, '/keys/0/principals/0', 'robot:*'],
  [keyEvent, '/action', 'remove'],
  [keyEvent, '/key/public_key', 'rsa:AAAA'],
  // checkpoint
  [checkpoint, '/tree_size', -1],
  [checkpoint, '/tree_size', 1.5],
  [checkpoint, '/root/alg', 'sha-512'],
  [attestation, '/checkpoint_event_id/b64', 'AA'],
];

const ROWS: Row[] = [
  ...SCHEMA_ROWS.map(at('SCHEMA')),
  ...(
    [
      [extension, '/occurred_at', ''],
      [extension, '/occurred_at', '2026-03-01T00:00:00'],
      [extension, '/occurred_at', '2026-02-29T00:00:00Z'],
      [extension, '/occurred_at', '2026-03-01T00:00:60Z'],
      [extension, '/occurred_at', '2026-03-01T00:00:00.1234567890Z'],
      [grant, '/occurred_at', '2026-04-31T00:00:00Z'],
      [grant, `${BOUNDS}/expires_at`, '2026-04-31T00:00:00Z'],
      [grant, `${BOUNDS}/expires_at`, 'never'],
      [grant, `${BOUNDS}/not_before`, '2026-04-31T00:00:00Z'],
      [grant, `${BOUNDS}/not_before`, 'now'],
      [adjustment, '/occurred_at', '2026-04-31T00:00:00Z'],
      [approval, '/expires_at', '2026-02-30T00:00:00Z'],
      [execution, '/started_at', '2026-04-31T00:00:00Z'],
      [execution, '/ended_at', '2026-04-31T00:00:00Z'],
      [genesis, '/keys/0/valid_from', '2026-04-31T00:00:00Z'],
      [genesis, '/keys/0/valid_until', '2026'],
      [keyEvent, '/key/valid_from', '2026'],
      [keyEvent, '/key/valid_until', '2026-04-31T00:00:00Z'],
      [checkpoint, '/occurred_at', '2026-04-31T00:00:00Z'],
      [attestation, '/occurred_at', '2026-04-31T00:00:00Z'],
    ] as [object, string, unknown][]
  ).map(at('TIMESTAMP_INVALID')),
  ...(
    [
      [execution, '/meter_used/0/amount/t', 'float'],
      [execution, '/meter_used/0/amount/t', 'toString'],
      [execution, '/meter_used/0/amount/v', ''],
      [execution, '/meter_used/0/amount/v', '01'],
      [execution, '/meter_used/0/amount/v', '-0'],
      [execution, '/meter_used/0/amount/v', '+1'],
      [execution, '/meter_used/0/amount/v', '1'.repeat(40)],
      [execution, '/meter_used/1/amount/m', '1.5'],
      [execution, '/meter_used/1/amount/s', -1],
      [execution, '/meter_used/1/amount/s', 39],
      [execution, '/meter_used/1/amount/s', 1.5],
      [execution, '/meter_used/2/amount/n', 'x'],
      [execution, '/meter_used/2/amount/d', '0'],
      [execution, '/meter_used/2/amount/d', '-3'],
      [execution, '/meter_used/2/amount', { t: 'rat', n: '2', d: '4' }],
      [execution, '/meter_used/2/amount', { t: 'rat', n: '0', d: '4' }],
      [execution, '/meter_used/3/amount/bits', '3FB999999999999A'],
      [execution, '/meter_used/3/amount/bits', '3fb'],
      [execution, '/meter_used/3/amount', { t: 'f64', bits: '7ff0000000000000' }],
      [execution, '/meter_used/3/amount', { t: 'f64', bits: 'fff0000000000000' }],
      [execution, '/meter_used/3/amount', { t: 'f64', bits: '7ff8000000000000' }],
      [grant, `${BOUNDS}/meter_caps/2/amount`, { t: 'rat', n: '2', d: '4' }],
      [grant, `${BOUNDS}/rate_limits/0/amount`, { t: 'rat', n: '2', d: '4' }],
      [grant, `${BOUNDS}/action_caps/0/amount`, { t: 'rat', n: '2', d: '4' }],
      [adjustment, '/meters/0/amount', { t: 'rat', n: '2', d: '4' }],
      [grant, `${BOUNDS}/concurrency_limit/v`, '0'],
      [grant, `${BOUNDS}/concurrency_limit/v`, '-1'],
      [action, '/authorization/action/meter_reservation/2/amount', { t: 'rat', n: '2', d: '4' }],
    ] as [object, string, unknown][]
  ).map(at('QUANTITY_INVALID')),
  [
    grant,
    `${BOUNDS}/concurrency_limit`,
    { t: 'dec', m: '1', s: 0 },
    [`QUANTITY_INVALID ${BOUNDS}/concurrency_limit/t`],
  ],
  ...(
    [
      [execution, '/meter_used/0/amount', int('-1')],
      [execution, '/meter_used/0/amount', { t: 'dec', m: '-1', s: 38 }],
      [execution, '/meter_used/0/amount', { t: 'rat', n: '-1', d: '3' }],
      [execution, '/meter_used/0/amount', { t: 'f64', bits: '8000000000000001' }],
      [grant, `${BOUNDS}/meter_caps/0/amount`, int('-1')],
      [grant, `${BOUNDS}/rate_limits/1/amount`, int('-1')],
      [grant, `${BOUNDS}/action_caps/0/amount`, int('-1')],
      [adjustment, '/meters/0/amount', int('-1')],
      [approval, '/meter_limit/0/amount', int('-1')],
      [grant, '/authorization/bounds/approvals/0/above/0/amount', int('-1')],
      [action, '/authorization/action/meter_reservation/0/amount', int('-1')],
    ] as [object, string, unknown][]
  ).map(at('METER_NEGATIVE')),
  ...(
    [
      [execution, '/meter_used/3/unit', 'a'],
      [grant, `${BOUNDS}/meter_caps/1/unit`, 'a'],
      [grant, `${BOUNDS}/rate_limits/1/unit`, 'calls.per_min'],
      [grant, `${BOUNDS}/rate_limits/1/unit`, 'calls.per_1m'],
      [grant, `${BOUNDS}/rate_limits/1/unit`, 'calls.per_60s'],
      [grant, `${BOUNDS}/rate_limits/2/unit`, 'usd.per_300m'],
      [grant, `${BOUNDS}/action_caps/1/unit`, 'a'],
      [adjustment, '/meters/3/unit', 'c'],
      [approval, '/meter_limit/3/unit', 'c'],
      [grant, '/authorization/bounds/approvals/0/above/3/unit', 'c'],
      [action, '/authorization/action/meter_reservation/2/unit', 'b'],
    ] as [object, string, unknown][]
  ).map(at('METER_UNIT_DUPLICATE')),
  // A long vector is searched in another way.
  [
    execution,
    '/meter_used',
    times(64, (i) => ({ unit: `u${i % 62}`, amount: int('1') })),
    ['METER_UNIT_DUPLICATE /meter_used/62/unit', 'METER_UNIT_DUPLICATE /meter_used/63/unit'],
  ],
  // Windows are compared by their length; another unit, or another length, is another limit.
  [
    grant,
    `${BOUNDS}/rate_limits`,
    [
      ...['usd.per_60m', 'calls.per_hour', 'usd.per_2h', 'usd.per_7d', 'usd.per_day', 'usd.per_min'],
      ...['u1.per_sec', 'u2.per_sec', 'usd.per_hour', 'usd.per_week', 'usd.per_24h', 'usd.per_1440m'],
    ].map((unit) => ({ unit, amount: int('1') })),
    [8, 9, 10, 11].map((i) => `METER_UNIT_DUPLICATE ${BOUNDS}/rate_limits/${i}/unit`),
  ],
  [grant, `${BOUNDS}/rate_limits`, times(16, (i) => ({ unit: `usd.per_${i + 1}h`, amount: int('1') })), []],
  [extension, '/canonical_profile_id', 'northroot-jcs-v2', ['PROFILE_UNKNOWN /canonical_profile_id']],
  [extension, '/canonical_profile_id', '____________________', ['PROFILE_UNKNOWN /canonical_profile_id']],
  [extension, '/event_version', '2', ['EVENT_VERSION_UNKNOWN /event_version']],
  [extension, '/event_version', '', ['EVENT_VERSION_UNKNOWN /event_version']],
  [grant, '/event_version', '1.0', ['EVENT_VERSION_UNKNOWN /event_version']],
  // A deny needs no bounds; an allow does, and an allowed action needs a reservation where it names no grant.
  [grant, BOUNDS, undefined, [`SCHEMA ${BOUNDS}`]],
  [grant, BOUNDS, {}, [`SCHEMA ${BOUNDS}/allowed_tools`, `SCHEMA ${BOUNDS}/meter_caps`]],
  [{ ...grant, decision: 'deny' }, BOUNDS, undefined, []],
  [{ ...grant, decision: 'deny' }, BOUNDS, {}, []],
  [{ ...grant, decision: 'deny' }, `${BOUNDS}/meter_caps`, [], []],
  [{ ...grant, decision: 'deny' }, '/authorization/action', {}, ['SCHEMA /authorization/action']],
  [action, '/authorization/action/meter_reservation', undefined, []],
  [action, '/authorization/action/meter_reservation', [], []],
  [action, '/authorization/grant_event_id', undefined, []],
  [
    withPlace(action, '/authorization/grant_event_id', undefined) as object,
    '/authorization/action/meter_reservation',
    undefined,
    ['SCHEMA /authorization/action/meter_reservation'],
  ],
  [
    withPlace(action, '/authorization/grant_event_id', undefined) as object,
    '/authorization/action/meter_reservation',
    [],
    ['SCHEMA /authorization/action/meter_reservation'],
  ],
  [
    withPlace({ ...action, decision: 'deny' }, '/authorization/grant_event_id', undefined) as object,
    '/authorization/action/meter_reservation',
    undefined,
    [],
  ],
  [action, '/authorization/bounds', {}, ['SCHEMA /authorization/bounds']],
  [execution, '/error_code', undefined, ['SCHEMA /error_code']],
  [{ ...execution, outcome: 'success' }, '/error_code', undefined, []],
  [{ ...execution, outcome: 'success' }, '/error_code', 'E', []],
  [execution, '/meter_used', [], []],
  // Nobody recorded how it ended: there is no error to name.
  [{ ...execution, outcome: 'unknown' }, '/error_code', undefined, []],
  [execution, '/meter_used/1/amount/s', 38, []],
  [grant, `${BOUNDS}/max_delegation_depth`, 0, []],
  [grant, `${BOUNDS}/max_delegation_depth`, 31, []],
  [grant, `${BOUNDS}/action_caps`, [], []],
  [grant, '/source/id', '😀'.repeat(512), []],
  [extension, '/ledger_id', undefined, []],
  [extension, '/ledger_id', 'x', ['SCHEMA /ledger_id']],
  [genesis, '/signing/binding', undefined, []],
  [genesis, '/keys/1/roles', [], []],
  [execution, '/tool_name', '~/@scope/pkg+x=1#run', []],
  // What is allowed at the very edge.
  [grant, '/policy_id', '😀'.repeat(256), []],
  [grant, '/policy_id', '😀'.repeat(257), ['SCHEMA /policy_id']],
  [grant, `${BOUNDS}/allowed_tools`, times(1024, (i) => `t${i}`), []],
  [grant, `${BOUNDS}/rate_limits/0/unit`, `${'u'.repeat(64)}.per_hour`, []],
  [grant, `${BOUNDS}/concurrency_limit/v`, '9'.repeat(39), []],
  [genesis, '/origin', long(255), []],
  [genesis, '/keys', [], []],
  [genesis, '/keys/0/public_key', `p256:${'A'.repeat(87)}`, []],
  [execution, '/meter_used/0/amount', { t: 'f64', bits: '8000000000000000' }, []],
  [extension, '/event_type', 'x'.repeat(128), []],
  [extension, '/context_digest', { alg: 'sha-512', b64: 'A'.repeat(128) }, []],
];

describe('events', () => {
  it.each(ROWS.map((row, i) => [i, row[1], row] as const))(
    '%i: %s',
    (_, __, [document, pointer, value, faults]) => {
      expect(brief(checkEvent(withPlace(document, pointer, value)))).toEqual(faults);
    },
  );

  it('of unknown types have an envelope and anything else', () => {
    expect(checkEvent({ ...extension, event_type: 'genesis2', meter_used: 'x', started_at: 'y' })).toEqual(
      [],
    );
    expect(checkEvent({ ...extension, event_type: 'constructor' })).toEqual([]);
    expect(checkEvent({ ...extension, event_type: '__proto__' })).toEqual(
      checkEvent({ ...extension, event_type: 'x.y' }),
    );
    for (const name of [
      'authorization',
      'execution',
      'adjustment',
      'genesis',
      'checkpoint',
      'attestation',
      'key',
    ]) {
      expect(isKnownEventType(name)).toBe(true);
    }
    for (const name of ['', 'x.build', 'constructor', '__proto__', 'Key', 'event']) {
      expect(isKnownEventType(name)).toBe(false);
    }
  });

  it('of unknown versions are not checked as their type', () => {
    const later = { ...grant, event_version: '2', zzz: 1, authorization: 7 };
    expect(brief(checkEvent(later))).toEqual(['EVENT_VERSION_UNKNOWN /event_version']);
    expect(brief(checkEvent({ ...later, occurred_at: '2026-02-30T00:00:00Z' }))).toEqual([
      'EVENT_VERSION_UNKNOWN /event_version',
      'TIMESTAMP_INVALID /occurred_at',
    ]);
    expect(brief(checkEvent({ ...grant, event_version: 1, zzz: 1 }))).toEqual(['SCHEMA /event_version']);
  });
});

describe('records, keys, trust policies, reports', () => {
  const { record, key, trustPolicy, report } = samples;
  const rows: [Check, object, string, unknown, string[]][] = [
    [checkRecord, record, '/seq', -1, ['SCHEMA /seq']],
    [checkRecord, record, '/seq', 2 ** 53, ['SCHEMA /seq']],
    [checkRecord, record, '/seq', 0.5, ['SCHEMA /seq']],
    [checkRecord, record, '/seq', 2 ** 53 - 1, []],
    [checkRecord, record, '/prev/alg', 'blake3', ['SCHEMA /prev/alg']],
    [checkRecord, record, '/meta/trace', 1, ['SCHEMA /meta/trace']],
    [checkRecord, record, '/meta/a~1b~0c', null, ['SCHEMA /meta/a~1b~0c']],
    [checkRecord, record, '/meta', {}, []],
    [checkRecord, record, '/signatures', [], []],
    [checkRecord, record, '/signatures', times(16, () => record.signatures[0]), []],
    [checkRecord, record, '/signatures', times(17, () => record.signatures[0]), ['SCHEMA /signatures']],
    [checkRecord, record, '/signatures/0/keyid', 'k', ['SCHEMA /signatures/0/keyid']],
    [checkRecord, record, '/signatures/0/sig', '', ['SCHEMA /signatures/0/sig']],
    [checkRecord, record, '/signatures/0/sig', 'AA==', ['SCHEMA /signatures/0/sig']],
    [checkRecord, record, '/signatures/0/sig', 'A'.repeat(3_502), []],
    [checkRecord, record, '/signatures/0/sig', 'A'.repeat(3_503), ['SCHEMA /signatures/0/sig']],
    [checkRecord, record, '/event', { event_type: 7, anything: [null] }, []],
    [checkKey, key, '/keyid', 'k', ['SCHEMA /keyid']],
    [checkKey, key, '/roles', [], []],
    [checkKey, samples.noteKey, '/roles', ['event', 'checkpoint'], ['SCHEMA /roles/0']],
    [checkKey, key, '/roles', ['authority'], []],
    [checkReport, report, '/grants/0/signers', [], []],
    [checkReport, report, '/grants/0/decimals', { USD: {} }, ['SCHEMA /grants/0/decimals/USD']],
    [checkReport, report, '/grants/0/signers/0', 'k', ['SCHEMA /grants/0/signers/0']],
    [
      checkReport,
      report,
      '/grants/0/meters/0/estimated',
      { t: 'rat', n: '2', d: '2' },
      ['QUANTITY_INVALID /grants/0/meters/0/estimated'],
    ],
    [checkKey, key, '/valid_until', '2026-02-30T00:00:00Z', ['TIMESTAMP_INVALID /valid_until']],
    [checkTrustPolicy, trustPolicy, '/trust_version', '2', ['SCHEMA /trust_version']],
    [checkTrustPolicy, trustPolicy, '/origins', [], ['SCHEMA /origins']],
    [checkTrustPolicy, trustPolicy, '/origins/0', 'https://x', ['SCHEMA /origins/0']],
    [
      checkTrustPolicy,
      trustPolicy,
      '/require/event_signatures',
      'maybe',
      ['SCHEMA /require/event_signatures'],
    ],
    [
      checkTrustPolicy,
      trustPolicy,
      '/keys/0/valid_from',
      '2026-02-30T00:00:00Z',
      ['TIMESTAMP_INVALID /keys/0/valid_from'],
    ],
    [checkReport, report, '/exit_status', 4, ['SCHEMA /exit_status']],
    [checkReport, report, '/verdict', 'denied', ['SCHEMA /verdict']],
    [checkReport, report, '/ledger/root', null, []],
    [checkReport, report, '/ledger/root', B64, ['SCHEMA /ledger/root']],
    [checkReport, report, '/trust/mode', 'all', ['SCHEMA /trust/mode']],
    [checkReport, report, '/counts/by_type/genesis', -1, ['SCHEMA /counts/by_type/genesis']],
    [
      checkReport,
      report,
      '/grants/0/expires_at',
      '2026-02-30T00:00:00Z',
      ['TIMESTAMP_INVALID /grants/0/expires_at'],
    ],
    [
      checkReport,
      report,
      '/grants/0/meters/0/cap',
      { t: 'rat', n: '2', d: '2' },
      ['QUANTITY_INVALID /grants/0/meters/0/cap'],
    ],
    [checkReport, report, '/findings/0/severity', 'fatal', ['SCHEMA /findings/0/severity']],
    [checkReport, report, '/findings/0/class', 'bad', ['SCHEMA /findings/0/class']],
    [checkReport, report, '/findings/0/at/line', 0, ['SCHEMA /findings/0/at/line']],
    [checkReport, report, '/findings/0/folded', 0, ['SCHEMA /findings/0/folded']],
    [checkReport, report, '/findings/0/related/0/event_id', 'x', ['SCHEMA /findings/0/related/0/event_id']],
  ];
  it.each(rows.map((row, i) => [i, row[2], row] as const))(
    '%i: %s',
    (_, __, [check, document, pointer, value, faults]) => {
      expect(brief(check(withPlace(document, pointer, value)))).toEqual(faults);
    },
  );
});

describe('faults', () => {
  it('say what was expected and what is there', () => {
    const told = (document: object, pointer: string, value: unknown) => {
      const [{ expected, actual }] = checkEvent(withPlace(document, pointer, value));
      return [expected, actual];
    };
    expect(told(grant, '/decision', 'x')).toEqual(['one of allow, deny', '"x"']);
    expect(told(grant, '/authorization/kind', 'x')).toEqual(['one of grant, action', '"x"']);
    expect(told(grant, '/authorization/kind', 1)).toEqual(['a string', '1']);
    expect(told(execution, '/meter_used/0/amount/t', 'x')).toEqual(['one of int, dec, rat, f64', '"x"']);
    expect(told(grant, '/occurred_at', 'x')).toEqual(['a timestamp YYYY-MM-DDThh:mm:ss[.fffffffff]Z', '"x"']);
    expect(told(grant, '/policy_id', '')).toEqual(['1 to 256 characters', '0 characters']);
    expect(told(grant, `${BOUNDS}/allowed_tools`, [])).toEqual(['1 to 1024 items', '0 items']);
    expect(told(grant, `${BOUNDS}/meter_caps`, [])).toEqual(['at least 1 item', '0 items']);
    expect(told(genesis, '/keys', {})).toEqual(['an array', '{}']);
    expect(told(genesis, '/ledger_version', '2')).toEqual(['"1"', '"2"']);
    expect(told(checkpoint, '/tree_size', '4')).toEqual(['an integer', '"4"']);
    expect(told(checkpoint, '/tree_size', undefined)).toEqual(['present (integer)', 'absent']);
  });

  it('show what is there in at most 60 printable characters', () => {
    const excerpt = (value: unknown) => checkEvent(withPlace(genesis, '/origin', value))[0].actual;
    let deep: unknown = 'bottom';
    for (let i = 0; i < 100_000; i++) deep = [deep];
    const odd: unknown[] = [
      `${'a'.repeat(300)} b`,
      `a b${'😀'.repeat(100)}`,
      'a \u0000\u001b[31m\u007f\u0085',
      'a \u202e\u2066\u200b\u00ad\ufeff',
      'a \ud800',
      { ['\u202e']: 1, '"': [true, null, -0, 1e21] },
      [[], {}, [[{}]]],
      Array.from({ length: 100_000 }, () => 0),
      deep,
      () => 1,
      10n,
      NaN,
    ];
    for (const value of odd) {
      const actual = excerpt(value);
      expect(actual.length).toBeLessThanOrEqual(60);
      expect(actual).not.toMatch(/[\p{C}\p{Zl}\p{Zp}]/u);
      expect(actual).not.toBe('');
    }
    expect(excerpt([1, 'a', { b: null }])).toBe('[1,"a",{"b":null}]');
    expect(excerpt(`x ${'a'.repeat(57)}`)).toBe(`"x ${'a'.repeat(56)}…`);
    expect(excerpt(`x ${'a'.repeat(56)}`)).toBe(`"x ${'a'.repeat(56)}"`);
  });

  it('are one a place, in the order of the canonical document, whatever the order of members', () => {
    const broken = {
      ...execution,
      zzz: 1,
      10: 1,
      9: 1,
      outcome: 'x',
      intents: {},
      meter_used: times(12, (i) => ({
        unit: i === 10 || i === 2 ? 'X' : `u${i}`,
        amount: int(i === 9 ? '' : '1'),
      })),
      occurred_at: 7,
    };
    const expected = [
      'SCHEMA /10',
      'SCHEMA /9',
      'SCHEMA /intents/intent_digest',
      'SCHEMA /meter_used/2/unit',
      'QUANTITY_INVALID /meter_used/9/amount/v',
      'SCHEMA /meter_used/10/unit',
      'SCHEMA /occurred_at',
      'SCHEMA /outcome',
      'SCHEMA /zzz',
    ];
    expect(brief(checkEvent(broken))).toEqual(expected);
    expect(brief(checkEvent(Object.fromEntries(Object.entries(broken).reverse())))).toEqual(expected);
  });

  it('are at most sixteen, the first ones', () => {
    const many = checkEvent({ ...genesis, keys: times(400, () => 0) });
    expect(brief(many)).toEqual(times(MAX_FAULTS, (i) => `SCHEMA /keys/${i}`));
    const members = Object.fromEntries(times(400, (i) => [`m${999 - i}`, 0]));
    expect(brief(checkEvent({ ...genesis, ...members }))).toEqual(
      times(MAX_FAULTS, (i) => `SCHEMA /m${600 + i}`),
    );
  });

  it('are found by looking at junk a number of times linear in its size', () => {
    const looksAt = (count: number): number => {
      let looks = 0;
      const junk = new Proxy(
        times(count, () => ({ unit: 7, amount: { t: 'int', v: 0 } })),
        { get: (target, key) => ((looks += 1), Reflect.get(target, key) as unknown) },
      );
      expect(checkEvent({ ...execution, meter_used: junk })).toHaveLength(MAX_FAULTS);
      return looks;
    };
    const looks = looksAt(5_000);
    expect(looks).toBeGreaterThanOrEqual(5_000);
    expect(looksAt(40_000)).toBeLessThanOrEqual(9 * looks);
  });

  it('are found in whatever is no object at all', () => {
    for (const check of [checkEvent, checkRecord, checkKey, checkTrustPolicy, checkReport]) {
      for (const value of [null, undefined, true, 0, NaN, 1n, 'x', [], [[]], () => 1, Symbol.iterator]) {
        expect(brief(check(value))).toEqual(['SCHEMA ']);
      }
      expect(check({}).length).toBeGreaterThan(0);
      expect(check(Object.create(null)).length).toBeGreaterThan(0);
    }
  });
});
