/** Questions of a second implementer that docs/spec/format.md and docs/spec/verification.md answer. */

import { describe, expect, it } from 'vitest';
import {
  canonicalText,
  parseTrustPolicy,
  type AnyEvent,
  type Key,
  type Signer,
  type TrustPolicy,
  type VerifyOptions,
} from '../../src/api/index.js';
import { formatCheckpoint } from '../../src/format/note/checkpoint.js';
import { parseNote } from '../../src/format/note/signed-note.js';
import { digestFromBase64url } from '../../src/base/value/digest.js';
import { signNote } from '../../src/format/note/note-key.js';
import { formatNote } from '../../src/format/note/signed-note.js';
import { action, anchorOf, execution, grant, int, unsigned } from './grant-kit.js';
import {
  DIGEST,
  attestation,
  brief,
  checkpoint,
  event,
  genesis,
  keyOf,
  ledger,
  makeSigner,
  note,
  verify,
  type Before,
} from './ledger-kit.js';

const [a, b, c] = [makeSigner(), makeSigner(), makeSigner()];
const all = (by: Signer, more: Partial<Key> = {}): Key =>
  keyOf(by, { roles: ['event', 'checkpoint', 'admin'], ...more });
const policy = (
  require: NonNullable<TrustPolicy['require']>,
  keys: readonly Key[] = [all(a)],
): TrustPolicy => ({
  trust_version: '1',
  keys: [...keys],
  require,
});

const first = { event: genesis([all(a)]), signers: [a] };
const two = { event: genesis([all(a), keyOf(b)]), signers: [a] };
const sealed = { event: checkpoint([a]), signers: [a] };
const signed = (i: number, by = a) => ({ event: note(i), signers: [by] });
const revoke = (key: Key) => ({ event: event('key', { action: 'revoke', key }), signers: [a] });

/** Of each finding its code, line and pointer, and how many it folds. */
async function found(bytes: Buffer, options?: VerifyOptions): Promise<string[]> {
  const { findings } = await verify(bytes, options);
  return findings.map((each) => {
    const folded = each.folded === undefined ? '' : ` +${each.folded}`;
    return `${brief(each)} ${each.at.pointer ?? 'none'}${folded}`;
  });
}

const release = (on: AnyEvent, members: object = {}): AnyEvent =>
  execution(on, 0, { outcome: 'failure', error_code: 'ABANDONED', ...members });
/** Without what follows from an id that does not fit the content. */
const ownOf = async (bytes: Buffer) =>
  (await found(bytes)).filter((each) => !/^(PAYLOAD_DIGEST|EVENT_ID)_MISMATCH/.test(each));

describe('the end', () => {
  it('has no demands on an empty ledger', async () => {
    const trust = policy({ checkpoints: 'required', event_signatures: 'required' });
    const report = await verify(Buffer.alloc(0), { trust });
    expect([report.verdict, report.findings]).toEqual(['undecided', []]);
  });

  it('is the line after the last; tail and age are reported at the checkpoint', async () => {
    const whole = ledger(first, sealed, signed(1), signed(2));
    expect(await found(whole)).toEqual(['TAIL_UNSEALED info in 2 none']);
    const old = { trust: policy({ checkpoint_max_age_seconds: 60 }), now: '2026-06-01T00:00:00Z' };
    expect(await found(whole, old)).toEqual(['CHECKPOINT_MISSING in 2 none', 'TAIL_UNSEALED info in 2 none']);
    const promised = { signing: { events: 'required', checkpoints: 'required' } };
    const without = ledger({ event: genesis([all(a)], promised), signers: [a] }, signed(1));
    expect(await found(without)).toEqual(['CHECKPOINT_MISSING in 3 none']);
  });

  it('a held checkpoint meets policies, but has no date', async () => {
    const whole = ledger(first, signed(1));
    const checkpoints = [anchorOf(whole, a, 2)];
    const demanding = policy({ checkpoints: 'required', max_unsealed_records: 0 });
    expect(await found(whole, { trust: demanding, checkpoints })).toEqual([]);
    const dated = policy({ checkpoint_max_age_seconds: 60 });
    expect(await found(whole, { trust: dated, checkpoints, now: '2026-01-02T00:00:00Z' })).toEqual([
      'CHECKPOINT_MISSING in 3 none',
    ]);
  });

  it('a held checkpoint covers its part of the records of a revoked key; invalid ones need no cover', async () => {
    const whole = ledger(two, signed(1, b), signed(2, b), signed(3, b), revoke(keyOf(b)));
    expect(await found(whole)).toEqual(['KEY_NOT_VALID_HERE in 2 /signatures/0 +2']);
    expect((await found(whole, { checkpoints: [anchorOf(whole, a, 3)] }))[0]).toBe(
      'KEY_NOT_VALID_HERE in 4 /signatures/0',
    );
    const broken = { event: { ...note(1), payload_digest: DIGEST } as AnyEvent, signers: [b] };
    expect(await found(ledger(two, broken, signed(2, b), revoke(keyOf(b))))).toEqual([
      'PAYLOAD_DIGEST_MISMATCH in 2 /event/payload_digest',
      'KEY_NOT_VALID_HERE in 3 /signatures/0',
    ]);
  });

  it('a finding at a record makes its event invalid', async () => {
    const witness = keyOf(b, { roles: ['witness'], name: 'w.example' });
    const trust = policy({ witness_threshold: 1 }, [all(a), witness]);
    const report = await verify(ledger(first, sealed), { trust });
    expect(report.findings.map(brief)).toEqual(['WITNESS_QUORUM in 2']);
    expect(report.counts.by_verdict).toMatchObject({ ok: 1, invalid: 1 });
  });

  it('is the start of the torn line in a torn file', async () => {
    const whole = ledger(first, signed(1));
    const { findings } = await verify(whole.subarray(0, -9), { trust: policy({ checkpoints: 'required' }) });
    const [torn, missing] = ['LINE_TORN', 'CHECKPOINT_MISSING'].map((code) =>
      findings.find((each) => each.code === code),
    );
    expect(missing?.at).toEqual({ ...torn?.at, byte_length: 0 });
  });

  it('a finding at a checkpoint without a usable seq has seq null', async () => {
    const [head = '', line = ''] = ledger(first, sealed).toString().split('\n');
    const record = JSON.parse(line) as object;
    const whole = Buffer.from(`${head}\n${canonicalText({ ...record, seq: 'x' })}\n${'{}'}\n`);
    const { findings } = await verify(whole);
    const tail = findings.find(({ code }) => code === 'TAIL_UNSEALED');
    expect(tail).toMatchObject({ seq: null, at: { line: 2 } });
  });

  it('a ledger without origin accepts notes of any origin', async () => {
    const whole = ledger({ event: note(1) }, { event: note(2) });
    const checkpoints = [anchorOf(whole, a, 2, 'other.example/log')];
    expect(await found(whole, { trust: policy({}), checkpoints })).toEqual([
      'GENESIS_MISSING in 1 /event/event_type',
    ]);
  });
});

describe('bounds', () => {
  const limited = grant({ concurrency_limit: int(1) });

  it('reports missing evidence once, for the nearest grant', async () => {
    const under = grant({ concurrency_limit: int(1) }, limited);
    expect(await found(unsigned(limited, under, execution(under, 1)))).toEqual([
      'EVIDENCE_MISSING in 4 /event/started_at',
    ]);
  });

  it('a reservation of 0 exceeds no cap', async () => {
    const given = grant();
    const over = [given, execution(given, 11)];
    expect(await found(unsigned(...over, action(given, 0)))).toHaveLength(1);
    expect(await found(unsigned(...over, action(given, 1)))).toHaveLength(2);
  });

  it('an empty list of resources allows none to executions, and bounds no delegated grant', async () => {
    const none = grant({ resources: [] });
    const resource = { kind: 'file', reference: 'x' };
    const touching = execution(none, 1, { resources_touched: [resource] });
    expect(await found(unsigned(none, grant({ resources: [resource] }, none), touching))).toEqual([
      'RESOURCE_NOT_GRANTED warning in 4 /event/resources_touched/0',
    ]);
  });

  it('a release may be late; only the first execution of an action is one', async () => {
    const given = grant({ expires_at: '2026-01-03T00:00:00Z' });
    const act = action(given, 1);
    const late = { occurred_at: '2026-02-01T00:00:00Z' };
    expect(await found(unsigned(given, act, release(act, late)))).toEqual([]);
    expect(await found(unsigned(given, act, release(act, { tool_name: 'other' })))).toEqual([
      'TOOL_MISMATCH in 4 /event/tool_name',
    ]);
    expect(await found(unsigned(given, release(given, late)))).toEqual([
      'GRANT_EXPIRED in 3 /event/occurred_at',
    ]);
    expect(await found(unsigned(given, act, execution(act, 1), release(act, late)))).toEqual([
      'AUTHORIZATION_REUSED in 5 /event/auth_event_id',
      'GRANT_EXPIRED in 5 /event/occurred_at',
    ]);
  });

  it('a second execution of an action is not compared with it', async () => {
    const given = grant();
    const act = action(given, 1);
    const another = execution(act, 1, { principal_id: 'agent:z', tool_name: 'z' });
    expect(await found(unsigned(given, act, execution(act, 1), another))).toEqual([
      'AUTHORIZATION_REUSED in 5 /event/auth_event_id',
    ]);
  });

  it('reports a late authorization after the findings of its own line', async () => {
    const late = grant({}, grant({ max_delegation_depth: 3 }));
    expect(await found(unsigned(execution(late, 1), late))).toEqual([
      'GRANT_NOT_FOUND in 3 /event/authorization/grant_event_id',
      'AUTH_AFTER_EXECUTION in 2 /event/auth_event_id',
    ]);
  });

  it('bounds the sums of a rate per window, at the instant of the execution', async () => {
    const given = grant({ rate_limits: [{ unit: 'tokens.per_sec', amount: int(100) }] });
    const at = (second: number, i: number) => {
      const amount = { t: 'rat', n: '1', d: String(10n ** 38n + BigInt(2 * i + 1)) };
      const times = { started_at: `2026-01-02T00:00:${second}Z`, occurred_at: '2026-01-03T00:00:00Z' };
      return execution(given, 0, { meter_used: [{ unit: 'tokens', amount }], ...times });
    };
    const twelve = Array.from({ length: 12 }, (_, i) => i);
    const apart = await found(unsigned(given, ...twelve.map((i) => at(10 + 2 * i, i))));
    expect(apart.filter((each) => !each.startsWith('METER_UNCAPPED'))).toEqual([]);
    const together = await found(unsigned(given, ...twelve.map((i) => at(10, i))));
    expect(together[0]).toBe('QUANTITY_INVALID in 13 /event/started_at');
  });
});

describe('notes', () => {
  it('reports revocation before role, and one finding per key', async () => {
    const byB = { event: checkpoint([b]), signers: [a] };
    expect(await found(ledger(two, byB))).toEqual(['KEY_NOT_FOR_ROLE in 2 /event/note']);
    expect(await found(ledger(two, revoke(keyOf(b)), byB))).toEqual(['KEY_NOT_VALID_HERE in 3 /event/note']);
    for (const roles of [['event'], ['event', 'admin']] as const) {
      const begun = { event: genesis([all(a), keyOf(b), keyOf(c, { roles: [...roles] })]), signers: [a] };
      expect(await found(ledger(begun, { event: checkpoint([b, c]), signers: [a] }))).toEqual([
        'KEY_NOT_FOR_ROLE in 2 /event/note',
        'KEY_NOT_FOR_ROLE in 2 /event/note',
      ]);
    }
  });

  it('may have characters from U+007F, and none below U+0020', async () => {
    const extended = (line: string) => {
      const make = ({ size, root, tip }: Before): AnyEvent => {
        const tree = formatCheckpoint({ origin: 'example.com/test', size, root, extensions: ['x'] });
        const text = tree.replace(/x\n$/, `${line}\n`);
        const signatures = [
          signNote(tree, 'example.com/test', a),
          signNote(text, 'example.com/test', a),
        ].slice(1);
        return event('checkpoint', {
          tree_size: size,
          root: { alg: 'sha-256', b64: Buffer.from(root, 'latin1').toString('base64url') },
          chain_tip_event_id: tip.event_id,
          note: `${text}\n${formatNote({ text: tree, signatures }).slice(tree.length + 1)}`,
        });
      };
      return found(ledger(first, { event: make, signers: [a] }));
    };
    for (const each of ['\u007f', '\u0085', '\u2028']) expect(await extended(`a${each}b`)).toEqual([]);
    for (const each of ['\t', '\u0001'])
      expect(await extended(`a${each}b`)).toEqual(['CHECKPOINT_NOTE_MALFORMED in 2 /event/note']);
  });

  it('of attestations are judged without a checkpoint too, and report no unknown key', async () => {
    const lines = (by: Signer, suffix: string) =>
      attestation((text) => [signNote(`${text}${suffix}`, 'example.com/test', by)]);
    const unknown = { event: lines(c, ''), signers: [a] };
    expect(await found(ledger(first, sealed, unknown))).toEqual(['TAIL_UNSEALED info in 2 none']);
    const lost = (before: Before) => {
      const { note: text } = lines(a, 'x\n')(before) as unknown as { note: string };
      return event('attestation', { checkpoint_event_id: DIGEST, note: text });
    };
    expect((await found(ledger(first, sealed, { event: lost, signers: [a] }))).slice(0, 2)).toEqual([
      'CHECKPOINT_MISSING in 3 /event/checkpoint_event_id',
      'CHECKPOINT_SIGNATURE_INVALID warning in 3 /event/note',
    ]);
  });
});

describe('findings', () => {
  const tail = (found: readonly string[]) => found.filter((each) => !/^TAIL_UNSEALED/.test(each));

  it('INTENT_UNLINKED folds by the grant', async () => {
    const [one, two] = [grant(), grant({ allowed_tools: ['fs.*'] })];
    const acts = [action(one, 1), action(one, 2), action(two, 1), grant({}, one)];
    const unlinked = (await found(unsigned(one, two, ...acts))).filter((each) => each.startsWith('INTENT'));
    expect(unlinked.map((each) => each.replace(/ \/.*?( |$)/, ' '))).toEqual([]);
    const other = { intents: { intent_digest: digestFromBase64url('B'.repeat(42) + 'A') } };
    const unlike = [action(one, 1, other), action(one, 2, other), action(two, 1, other)];
    const told = (await found(unsigned(one, two, ...unlike))).filter((each) => each.startsWith('INTENT'));
    expect(told.map((each) => each.replace(/\/\S+/, ''))).toEqual([
      'INTENT_UNLINKED warning in 4  +1',
      'INTENT_UNLINKED warning in 6 ',
    ]);
  });

  it('ORIGIN_MISMATCH of genesis comes before SCHEMA of its keys', async () => {
    const twice = ledger({ event: genesis([all(a), all(a)]), signers: [a] });
    expect(await found(twice, { trust: { ...policy({}), origins: ['other.example/log'] } })).toEqual([
      'ORIGIN_MISMATCH in 1 /event/origin',
      'SCHEMA in 1 /event/keys/1/keyid',
    ]);
  });

  it('DELEGATION_EXCEEDED points at the member of bounds, of tools at the pattern', async () => {
    const resource = (reference: string) => ({ kind: 'file', reference });
    const above = grant({
      allowed_tools: ['fs.*'],
      action_caps: [{ unit: 'usd', amount: int(1) }],
      rate_limits: [{ unit: 'usd.per_hour', amount: int(1) }],
      concurrency_limit: int(1),
      output_mode: 'digest_only',
      not_before: '2026-01-01T00:00:00Z',
      expires_at: '2026-03-01T00:00:00Z',
      resources: [resource('x')],
    });
    const bounds = {
      allowed_tools: ['fs.read', '*'],
      meter_caps: [{ unit: 'usd', amount: int(11) }],
      resources: [resource('x'), resource('y')],
    };
    const at = (member: string) => `/event/authorization/bounds/${member}`;
    expect(await found(unsigned(above, grant(bounds, above)))).toEqual([
      ...[
        ...['allowed_tools/1', 'meter_caps', 'action_caps', 'not_before', 'expires_at'],
        ...['rate_limits', 'concurrency_limit', 'output_mode'],
      ].map((member) => `DELEGATION_EXCEEDED in 3 ${at(member)}`),
      `RESOURCE_NOT_GRANTED warning in 3 ${at('resources')}`,
    ]);
  });

  it('reports a held note of another origin in the note, after its signatures, and names its signers', async () => {
    const whole = ledger(first, signed(1));
    const right = anchorOf(whole, a, 2, 'example.com/other');
    const report = await verify(whole, { checkpoints: [right] });
    expect(report.findings).toMatchObject([
      { code: 'ORIGIN_MISMATCH', at: { file: right.name, line: 1 }, seq: null },
    ]);
    expect(report.checkpoints.anchors).toMatchObject([
      { relation: 'other-origin', signed_by: [a.publicKey.keyid] },
    ]);
    const { text, signatures } = parseNote(Buffer.from(right.note));
    const wrong = signatures.map((each) => ({ ...each, signature: each.signature.toReversed() }));
    const forged = { name: 'n', note: Buffer.from(formatNote({ text, signatures: wrong })) };
    expect(await found(whole, { checkpoints: [forged] })).toEqual([
      'CHECKPOINT_SIGNATURE_INVALID in 1 none',
      'ORIGIN_MISMATCH in 1 none',
    ]);
  });

  it('a held note that meets the policies warns of a last checkpoint that does not', async () => {
    const both = { event: genesis([all(a), all(b)]), signers: [a] };
    const whole = ledger(both, signed(1), sealed, signed(2));
    const byBoth = (size: number) => {
      const { name, note } = anchorOf(whole, a, size);
      const { text, signatures } = parseNote(Buffer.from(note));
      const more = [...signatures, signNote(text, 'example.com/test', b)];
      return { name, note: Buffer.from(formatNote({ text, signatures: more })) };
    };
    const trust = policy({ checkpoint_quorum: 2 }, [all(a), all(b)]);
    const held = async (size: number) => tail(await found(whole, { trust, checkpoints: [byBoth(size)] }));
    expect(tail(await found(whole, { trust }))).toEqual(['CHECKPOINT_MISSING in 3 none']);
    for (const size of [1, 2]) expect(await held(size)).toEqual(['CHECKPOINT_MISSING warning in 3 none']);
    expect(await held(4)).toEqual([]);
  });

  it('a malformed event needs no cover', async () => {
    const malformed = { ...note(1), event_type: 5 } as unknown as AnyEvent;
    const whole = ledger(two, { event: malformed, signers: [b] }, revoke(keyOf(b)));
    const report = await verify(whole);
    expect(report.findings.map(({ code }) => code)).not.toContain('KEY_NOT_VALID_HERE');
    const [revoked] = report.trust.revoked ?? [];
    expect([revoked?.records, revoked?.rests_on]).toEqual([1, undefined]);
  });

  it('reports an overdue checkpoint at a record without event, not at a line that is no record', async () => {
    const trust = policy({ checkpoint_max_records: 1 });
    const overdue = (await found(ledger(first, '{"seq":1}', 'x'), { trust })).filter((each) =>
      each.startsWith('CHECKPOINT_MISSING'),
    );
    expect(overdue).toEqual(['CHECKPOINT_MISSING in 2 none']);
  });

  it('folds findings by a cause of up to 256 characters', async () => {
    const unknown = async (length: number) => {
      const signatures = [{ keyid: 'k'.repeat(length), sig: 'AAAA' }];
      const [one, other] = [1, 2].map((n) => ({ event: note(n), signatures }));
      return (await found(ledger(first, one, other))).filter((each) => each.startsWith('KEY_UNKNOWN'));
    };
    expect(await unknown(256)).toEqual(['KEY_UNKNOWN in 2 /signatures/0 +1']);
    expect(await unknown(257)).toHaveLength(2);
  });

  it('an attestation that makes a checkpoint seal moves the clock to the time of the checkpoint', async () => {
    const until = all(b, { valid_until: '2026-01-10T00:00:00Z' });
    const begun = { event: genesis([all(a), until]), signers: [a] };
    const late = { event: checkpoint([c], { occurred_at: '2026-02-01T00:00:00Z' }), signers: [a] };
    const attested = {
      event: attestation((text) => [signNote(text, 'example.com/test', a)]),
      signers: [a],
    };
    const expired = (found: readonly string[]) => found.filter((each) => each.startsWith('KEY_NOT_VALID'));
    expect(expired(await found(ledger(begun, late, signed(1, b))))).toEqual([]);
    expect(expired(await found(ledger(begun, late, attested, signed(1, b))))).toEqual([
      'KEY_NOT_VALID_HERE in 4 /signatures/0',
    ]);
  });
});

describe('not_checked', () => {
  const codesOf = async (bytes: Buffer, options?: VerifyOptions) =>
    (await verify(bytes, options)).not_checked.map(({ code }) => code);
  const whole = ledger(first, signed(1));

  it('has ANCHOR_UNVERIFIED once per held note, and does not count its lines', async () => {
    const checkpoints = [anchorOf(whole, c, 1), anchorOf(whole, c, 2)];
    const open = await codesOf(whole, { checkpoints });
    expect(open.filter((code) => code === 'ANCHOR_UNVERIFIED')).toHaveLength(2);
    expect(open).not.toContain('NOTE_SIGNATURES_UNVERIFIED');
    const inside = ledger(first, { event: checkpoint([a, c]), signers: [a] });
    expect(await codesOf(inside)).toContain('NOTE_SIGNATURES_UNVERIFIED');
  });

  it('has SIGNATURES_MISSING if only records under authority are unsigned', async () => {
    const optional = { signing: { events: 'optional', checkpoints: 'optional' } };
    const begun = genesis([all(a), keyOf(b, { roles: ['authority'] })], optional);
    const report = await verify(ledger({ event: begun, signers: [a] }, { event: grant() }));
    expect(report.findings.map(brief)).toEqual(['SIGNATURE_MISSING in 2']);
    expect(report.not_checked.map(({ code }) => code)).toContain('SIGNATURES_MISSING');
  });

  it('omits CHECKPOINTS for a held note of this ledger, not for the empty tree or another log', async () => {
    const held = (size: number, origin?: string) =>
      codesOf(whole, { checkpoints: [anchorOf(whole, c, size, origin)] });
    expect(await codesOf(whole)).toContain('CHECKPOINTS');
    expect(await held(1)).not.toContain('CHECKPOINTS');
    expect(await held(0)).toContain('CHECKPOINTS');
    expect(await held(1, 'example.com/other')).toContain('CHECKPOINTS');
  });

  it('counts malformed checkpoints, and names a revocation by its claimed seq', async () => {
    const malformed = { ...note(1), event_type: 'checkpoint' } as unknown as AnyEvent;
    const { checkpoints } = await verify(ledger(first, { event: malformed, signers: [a] }));
    expect(checkpoints).toMatchObject({ count: 1, last_tree_size: null });
    const { trust } = await verify(ledger(two, { ...revoke(keyOf(b)), seq: 7 }));
    expect(trust.revoked).toMatchObject([{ keyid: b.publicKey.keyid, revoked_at_seq: 7 }]);
  });

  it('a key added by several admins rests on revoked keys only if all of them are revoked', async () => {
    const admins = { event: genesis([all(a), all(b)]), signers: [a] };
    const added = (signers: readonly Signer[]) => ({
      event: event('key', { action: 'add', key: all(c) }),
      signers,
    });
    const restsOn = async (signers: readonly Signer[]) => {
      const byC = { event: checkpoint([c]), signers: [c] };
      const gone = { event: event('key', { action: 'revoke', key: all(a) }), signers: [c] };
      const { trust } = await verify(ledger(admins, added(signers), signed(3), byC, gone));
      return trust.revoked?.map(({ rests_on: basis }) => basis);
    };
    expect(await restsOn([a])).toEqual(['own_checkpoints']);
    expect(await restsOn([a, b])).toEqual(['checkpoints_by_others']);
  });

  it('has SIGNATURES under a policy without keys', async () => {
    const report = await verify(ledger(first, signed(1)), { trust: policy({}, []) });
    const codes = report.not_checked.map(({ code }) => code);
    expect(codes).toContain('SIGNATURES');
    expect(codes).not.toContain('SIGNATURES_UNVERIFIED');
    expect(report.trust).toMatchObject({ mode: 'policy', signatures: { unverified: 2 } });
  });
});

describe('keys', () => {
  it('a revocation uses only the keyid, and one of an unknown key never folds', async () => {
    const other = keyOf(b, { public_key: keyOf(c).public_key });
    expect(await found(ledger(two, revoke(other), signed(1, b)))).toEqual([
      'KEY_NOT_VALID_HERE in 3 /signatures/0',
    ]);
    const again = event('key', { action: 'revoke', key: keyOf(c), reason: 'again' });
    expect(await found(ledger(first, revoke(keyOf(c)), { event: again, signers: [a] }))).toEqual([
      'KEY_UNKNOWN warning in 2 /event/key/keyid',
      'KEY_UNKNOWN warning in 3 /event/key/keyid',
    ]);
  });

  it('adding a pinned key gives no finding', async () => {
    const add = { event: event('key', { action: 'add', key: keyOf(b) }), signers: [a] };
    expect(await found(ledger(first, add), { trust: policy({}, [all(a), keyOf(b)]) })).toEqual([]);
    expect(await found(ledger(two, add))).toEqual(['SCHEMA in 2 /event/key/keyid']);
  });

  it('a key twice in genesis is a fault under every policy', async () => {
    const twice = ledger({ event: genesis([all(a), all(a)]), signers: [a] });
    for (const trust of [undefined, policy({})])
      expect(await found(twice, trust && { trust })).toEqual(['SCHEMA in 1 /event/keys/1/keyid']);
  });

  it('refuses a quorum above the number of pinned keys', () => {
    const text = (quorum: number) => Buffer.from(JSON.stringify(policy({ checkpoint_quorum: quorum })));
    expect(() => parseTrustPolicy(text(2))).toThrow(
      expect.objectContaining({ code: 'TRUST_POLICY_INVALID' }),
    );
    expect(parseTrustPolicy(text(1)).require?.checkpoint_quorum).toBe(1);
  });
});

describe('a malformed record', () => {
  const [head = '', line = ''] = ledger(first, signed(1)).toString().split('\n');
  const record = JSON.parse(line) as { prev: object; signatures: readonly object[] };
  const changed = (members: object) => Buffer.from(`${head}\n${canonicalText({ ...record, ...members })}\n`);

  it('its digest with a further member is usable', async () => {
    expect(await found(changed({ prev: { ...record.prev, x: '1' } }))).toEqual(['SCHEMA in 2 /prev/x']);
  });

  it('a malformed keyid is unknown, and of 17 signatures none is judged', async () => {
    const odd = [{ keyid: 'nobody', sig: 'AAAA' }];
    expect(await found(changed({ signatures: odd }))).toEqual([
      'SCHEMA in 2 /signatures/0/keyid',
      'KEY_UNKNOWN in 2 /signatures/0',
    ]);
    const copies = (n: number) => changed({ signatures: Array<unknown>(n).fill(record.signatures[0]) });
    expect(await found(copies(17))).toEqual(['SCHEMA in 2 /signatures']);
    expect((await verify(copies(16))).trust.signatures).toMatchObject({ valid: 2, invalid: 0 });
  });

  it('checks only the envelope of an event without version, or of another', async () => {
    const given = grant();
    const wrong = { ...execution(given, 1), outcome: 'never' };
    const without: Record<string, unknown> = { ...wrong };
    delete without['event_version'];
    expect(await ownOf(unsigned(given, without))).toEqual(['SCHEMA in 3 /event/event_version']);
    expect(await ownOf(unsigned(given, { ...wrong, event_version: '2' }))).toEqual([
      'EVENT_VERSION_UNKNOWN in 3 /event/event_version',
    ]);
    expect(await ownOf(unsigned(given, wrong))).toEqual(['SCHEMA in 3 /event/outcome']);
  });

  it('a first event without type is no missing genesis, and counts under no type', async () => {
    const typed = (type: unknown) =>
      ledger({ event: { ...note(1), event_type: type } as unknown as AnyEvent });
    expect(await ownOf(typed(5))).toEqual(['SCHEMA in 1 /event/event_type']);
    expect((await verify(typed(5))).counts.by_type).toEqual({});
    expect(await ownOf(typed('x.other'))).toEqual(['GENESIS_MISSING in 1 /event/event_type']);
  });

  it('each hygiene warning out of order is one fault', async () => {
    const hygiene = (warnings: readonly string[]) => {
      const report = { status: 'Lossy', warnings, metrics: {}, profile_id: 'northroot-jcs-v1' };
      return { ...grant(), hygiene: report };
    };
    const faults = async (...warnings: readonly string[]) =>
      (await ownOf(unsigned(hygiene(warnings)))).filter((each) => each.startsWith('SCHEMA'));
    expect(await faults('C_3', 'A_1', 'B_2')).toEqual(['SCHEMA in 2 /event/hygiene/warnings/1']);
    expect(await faults('C_3', 'B_2', 'A_1')).toHaveLength(2);
  });

  it.each([
    [{ t: 'dec', m: '1', s: 0 }, 't'],
    [{ t: 'int', v: '0' }, 'v'],
    [{ t: 'int', v: 'one' }, 'v'],
  ])('a concurrency_limit of %j is wrong at its %s', async (limit, member) => {
    const whole = grant({ concurrency_limit: int(1) });
    const wrong = JSON.parse(
      JSON.stringify(whole).replace(JSON.stringify(int(1)), JSON.stringify(limit)),
    ) as object;
    expect(await ownOf(unsigned(wrong))).toEqual([
      `QUANTITY_INVALID in 2 /event/authorization/bounds/concurrency_limit/${member}`,
    ]);
  });

  it('cuts a long name in a pointer', async () => {
    const long = { ...grant(), ['y'.repeat(300)]: 1 };
    expect(await ownOf(unsigned(long))).toEqual([`SCHEMA in 2 /event/${'y'.repeat(256)}…`]);
  });
});
