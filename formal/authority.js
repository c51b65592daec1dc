// Who may authorize (SPEC §7): every ledger of a beginning and N records that somebody without the authority key can make, signed by each
// set of the keys that he has, verified under a policy that pins the authority key; held against a small oracle of the rules, and
// against the claim itself: in a ledger that is ok, each allowed event goes back to a grant that the authority key signed.
// node formal/authority.js N [admin]
import { createHash } from 'node:crypto';
import {
  canonicalBytes,
  createSigner,
  eventId,
  generatePrivateKey,
  signEvent,
  verifyChunks,
} from '../dist/api/index.js';
import { identifyEvent } from '../dist/api/internals.js';
const [, , n = '2', mode = ''] = process.argv;
const N = Number(n),
  D = (b64) => ({ alg: 'sha-256', b64 }),
  Z = D('A'.repeat(43));
const raw = (d) => (typeof d === 'string' ? d.replace('sha-256:', '') : d.b64);
const K = {};
for (const [name, roles, principals] of [
  ['auth', ['authority'], ['*']],
  ['evA', ['event'], ['agent:a']],
  ['evB', ['event'], ['agent:b']],
  ['cp', ['checkpoint'], ['*']],
  ['wit', ['witness'], ['*']],
  ['adm', ['admin'], ['*']],
  ['unk', ['authority', 'event'], ['*']],
]) {
  const signer = createSigner(generatePrivateKey()),
    pk = signer.publicKey;
  K[name] = {
    name,
    signer,
    entry: {
      keyid: pk.keyid,
      public_key: 'ed25519:' + Buffer.from(pk.bytes).toString('base64url'),
      roles,
      principals,
      ...(name === 'wit' ? { name: 'w.example' } : {}),
    },
    roles,
    principals,
  };
}
const pins = ['auth', 'evA', 'evB', 'cp', 'wit', ...(mode === 'admin' ? ['adm'] : [])];
const SETS = [
  [],
  ['evA'],
  ['evB'],
  ['cp'],
  ['wit'],
  ['unk'],
  ['evA', 'evB'],
  ['evB', 'unk'],
  ...(mode === 'admin' ? [['adm']] : []),
];
const covers = (k, p) =>
  k.principals.some((x) =>
    x === '*' ? true : x.endsWith('*') ? p.startsWith(x.slice(0, -1)) && p.length >= x.length : x === p,
  );
let clock = 0;
const base = (type, p, lid) => ({
  event_type: type,
  event_version: '1',
  occurred_at: `2026-01-01T00:00:${String(clock % 60).padStart(2, '0')}Z`,
  principal_id: p,
  canonical_profile_id: 'northroot-jcs-v1',
  ...(lid ? { ledger_id: D(lid) } : {}),
});
const complete = (e) => ({
  ...e,
  payload_digest: D(identifyEvent(e).payloadDigest),
  event_id: D(raw(eventId(e))),
});
const cap = [{ unit: 'calls', amount: { t: 'int', v: '9' } }],
  one = [{ unit: 'calls', amount: { t: 'int', v: '1' } }];
const authz = (p, lid, decision, authorization) => ({
  ...base('authorization', p, lid),
  intents: { intent_digest: Z },
  policy_id: 'p',
  policy_digest: Z,
  decision,
  decision_code: decision === 'allow' ? 'ALLOW' : 'NO',
  authorization,
});
const grant = (p, lid, parent) =>
  authz(p, lid, 'allow', {
    kind: 'grant',
    ...(parent ? { grant_event_id: D(parent) } : {}),
    bounds: { allowed_tools: ['*'], meter_caps: cap },
  });
const action = (p, lid, parent) =>
  authz(p, lid, 'allow', {
    kind: 'action',
    ...(parent ? { grant_event_id: D(parent) } : {}),
    action: { tool_name: 't', tool_params_digest: Z, meter_reservation: one },
  });
/** An event with what the oracle has to know of it. */
const T = (e, f) => ({ e: complete(e), ...f });
function templates(s) {
  const { lid, grants } = s,
    out = [];
  for (const p of ['agent:a', 'agent:b']) {
    out.push(
      T(grant(p, lid), { kind: 'root', p, allow: true }),
      T(action(p, lid), { kind: 'act0', p, allow: true }),
    );
    out.push(
      T(authz(p, lid, 'deny', { kind: 'action', action: { tool_name: 't', tool_params_digest: Z } }), {
        kind: 'deny',
        p,
      }),
    );
    out.push(T({ ...base('x.test', p, lid), n: clock }, { kind: 'x', p }));
    out.push(T({ ...base('key', p, lid), action: 'add', key: K.unk.entry }, { kind: 'key', p }));
    for (const g of grants) {
      out.push(
        T(grant(p, lid, g.id), { kind: 'deleg', p, g, allow: true }),
        T(action(p, lid, g.id), { kind: 'act', p, g, allow: true }),
      );
      out.push(
        T(
          {
            ...base('adjustment', p, lid),
            grant_event_id: D(g.id),
            direction: 'debit',
            meters: one,
            reason: 'R',
          },
          { kind: 'debit', p, g },
        ),
      );
      out.push(
        T(
          {
            ...base('execution', p, lid),
            intents: { intent_digest: Z },
            auth_event_id: D(g.id),
            tool_name: 't',
            meter_used: one,
            outcome: 'success',
          },
          { kind: 'exec', p, g },
        ),
      );
    }
  }
  for (const g of grants)
    out.push(
      T(
        {
          ...base('adjustment', 'org:o', lid),
          grant_event_id: D(g.id),
          direction: 'credit',
          meters: one,
          reason: 'R',
        },
        { kind: 'credit', p: 'org:o', g },
      ),
    );
  return out;
}
/** SPEC §7: whether the record is sound, given who signed (all signatures are right). */
function sound(t, set, s) {
  const known = set.map((k) => (pins.includes(k) || s.added.has(k) ? K[k] : undefined));
  const by =
    (role, ...ps) =>
    (k) =>
      k !== undefined && k.roles.includes(role) && ps.every((p) => covers(k, p));
  const any = (...tests) => known.some((k) => tests.some((test) => test(k)));
  const { kind, p, g } = t;
  let good,
    must = s.required;
  switch (kind) {
    case 'root':
    case 'act0':
      good = any(by('authority', p));
      must = true;
      break;
    case 'deleg':
      good = any(by('authority', p, g.p), by('event', g.p));
      must = true;
      break;
    case 'credit':
      good = any(by('authority', p, g.p));
      must = true;
      break;
    case 'act':
    case 'deny':
    case 'debit':
      good = any(by('event', p), by('authority', p));
      break;
    case 'key':
      good = any(by('admin', p));
      must = true;
      break;
    default:
      good = any(by('event', p));
  }
  if (kind === 'key' && s.added.has('unk')) return false; // each key once
  if (good) return true;
  if (must) return false;
  return set.length === 0 || known.every((k) => k === undefined); // not signed, or by unknown keys only: a warning where optional
}
/** Rules of §8 that these events can break. */
function broken(t, s) {
  const { kind, p, g } = t;
  if ((kind === 'act' || kind === 'exec') && p !== g.p) return true;
  if (kind === 'credit') return s.used(g) < 1;
  return false;
}
function toLine(t, set, s) {
  const bytes = canonicalBytes(t.e),
    signatures = set.map((k) => signEvent(bytes, K[k].signer));
  const line = Buffer.from(canonicalBytes({ event: t.e, prev: D(s.prev), seq: s.seq, signatures }));
  return {
    line: Buffer.concat([line, Buffer.from('\n')]),
    prev: createHash('sha256')
      .update(Buffer.concat([Buffer.from([0]), line]))
      .digest('base64url'),
  };
}
function push(s, t, set) {
  const { line, prev } = toLine(t, set, s);
  const ok = sound(t, set, s),
    made = t.kind === 'root' || t.kind === 'deleg';
  const id = t.e.event_id.b64,
    uses = t.kind === 'exec' || t.kind === 'debit' ? [t.g.id] : t.kind === 'credit' ? [] : [];
  const next = {
    ...s,
    seq: s.seq + 1,
    prev,
    lines: [...s.lines, line],
    ok: s.ok && ok && !broken(t, s),
    names: [
      ...s.names,
      `${t.kind}(${t.p}${t.g ? ' under ' + t.g.name : ''}) by ${set.join('+') || 'nobody'}`,
    ],
  };
  if (made)
    next.grants = [
      ...s.grants,
      {
        id,
        p: t.p,
        name: `${t.kind}${s.seq}`,
        rooted: t.kind === 'root' ? set.includes('auth') : t.g.rooted,
        up: t.g,
      },
    ];
  if (t.kind === 'key' && ok) next.added = new Set([...s.added, 'unk']);
  const spent = [...(s.spent ?? [])];
  if (uses.length > 0) for (let x = t.g; x; x = x.up) spent.push([x.id, 1]);
  next.spent = spent;
  next.used = (g) => spent.filter(([i]) => i === g.id).reduce((a, [, v]) => a + v, 0);
  if (t.allow) next.allows = [...s.allows, { t, set, rooted: t.g ? t.g.rooted : set.includes('auth') }];
  return next;
}
function begin(how) {
  clock = 0;
  const { events, binding, by, honest, unbound } = how;
  const e = complete({
    ...base('genesis', 'agent:a'),
    origin: 'example.com/x',
    ledger_version: '1',
    signing: { events, checkpoints: 'optional', binding },
    keys: [K.unk.entry],
  });
  const s0 = {
    seq: 0,
    prev: createHash('sha256').update('').digest('base64url'),
    lines: [],
    ok: true,
    names: [],
    grants: [],
    added: new Set(),
    allows: [],
    required: false,
    spent: [],
    used: () => 0,
  };
  const lid = e.event_id.b64;
  const gk = by
    .map((k) => K[k])
    .some(
      (k) =>
        pins.includes(k.name) &&
        k.roles.some((r) => ['admin', 'checkpoint', 'event'].includes(r)) &&
        covers(k, 'agent:a'),
    );
  const required = how.policyRequires || events === 'required';
  const { line, prev } = toLine({ e }, by, s0);
  let s = {
    ...s0,
    seq: 1,
    prev,
    lines: [line],
    ok: gk || (!required && by.every((k) => !pins.includes(k))),
    lid,
    required,
    names: [`genesis by ${by.join() || 'nobody'}`],
  };
  clock = 1;
  if (honest)
    s = push(s, T(grant('agent:a', unbound ? undefined : lid), { kind: 'root', p: 'agent:a', allow: true }), [
      'auth',
    ]);
  return s;
}
const BEGINNINGS = [
  { name: 'honest, all signed', events: 'required', binding: 'required', by: ['cp'], honest: true },
  { name: 'honest, signatures optional', events: 'optional', binding: 'required', by: ['cp'], honest: true },
  { name: 'own genesis by evA', events: 'optional', binding: 'optional', by: ['evA'], honest: false },
  { name: 'own genesis by nobody', events: 'optional', binding: 'optional', by: [], honest: false },
  {
    name: 'own genesis by unk, policy requires signatures',
    events: 'optional',
    binding: 'optional',
    by: ['unk'],
    honest: false,
    policyRequires: true,
  },
  {
    name: 'own genesis by nobody, an unbound grant replayed',
    events: 'optional',
    binding: 'optional',
    by: [],
    honest: true,
    unbound: true,
  },
];
let ledgers = 0,
  okLedgers = 0,
  diffs = 0,
  claims = 0;
const examples = new Map();
async function judge(s, trust, name) {
  ledgers += 1;
  const r = await verifyChunks(Buffer.concat(s.lines), { trust });
  const isOk = r.verdict === 'ok';
  if (isOk !== s.ok && (diffs += 1) <= 8)
    console.log(
      'DIFF',
      name,
      'oracle',
      s.ok,
      'northroot',
      r.verdict,
      r.findings
        .filter((f) => f.severity === 'error')
        .map((f) => `${f.seq}:${f.code}`)
        .join(),
      s.names.join(' | '),
    );
  if (!isOk) return;
  okLedgers += 1;
  for (const a of s.allows) {
    if (
      a.rooted &&
      (a.t.e.authorization.kind === 'grant' ||
        a.set.includes('auth') ||
        a.set.some((k) => K[k].roles.includes('event') && covers(K[k], a.t.p)))
    )
      continue;
    claims += 1;
    const key = `${name}: ${a.rooted ? 'rooted, but the action is signed by nobody entitled' : 'NOT ROOTED in the authority key'}: ${a.t.kind}`;
    if (!examples.has(key)) examples.set(key, s.names.join(' | '));
  }
}
async function walk(s, depth, trust, name) {
  await judge(s, trust, name);
  if (depth === N) return;
  clock = 2 + depth;
  for (const t of templates(s))
    for (const set of SETS) {
      clock = 2 + depth;
      await walk(push(s, t, set), depth + 1, trust, name);
    }
}
for (const how of BEGINNINGS) {
  const before = ledgers;
  const trust = {
    trust_version: '1',
    origins: ['example.com/x'],
    keys: pins.map((k) => K[k].entry),
    ...(how.policyRequires ? { require: { event_signatures: 'required' } } : {}),
  };
  await walk(begin(how), 0, trust, how.name);
  console.log(`${how.name}: ${ledgers - before} ledgers`);
}
console.log({ N, mode, ledgers, okLedgers, diffs, exceptions: claims });
for (const [k, v] of examples) console.log('EXCEPTION', k, '\n   e.g.', v);
const unrooted = [...examples.keys()].filter((key) => / NOT ROOTED .*: root$/.test(key));
process.exitCode = diffs === 0 && unrooted.length === 0 ? 0 : 1;
