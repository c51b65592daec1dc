// All ledgers of a header (grants) and N further events of the alphabet: accounts-spec.js against verifyChunks. Bare events.
// node formal/accounts.js N full|small [HEADER NUMBER|all]
import { canonicalBytes, eventId, verifyChunks } from '../dist/api/verify.js';
import { identifyEvent } from '../dist/api/internals.js';
import { clone, empty, invariants, step } from './accounts-spec.js';
const [, , n, size = 'full', only] = process.argv;
const N = Number(n),
  A = 'agent:a',
  B = 'agent:b',
  O = 'org:o';
const HEADERS = [
  [{ k: 'grant', caps: { u: 2, v: 1 }, who: A }],
  [
    { k: 'grant', caps: { u: 2 }, who: A },
    { k: 'grant', parent: 0, caps: { u: 1 }, who: B },
  ],
  [
    { k: 'grant', caps: { u: 2, v: 2 }, who: A },
    { k: 'grant', parent: 0, caps: { u: 2, v: 1 }, who: B },
  ],
  [
    { k: 'grant', caps: { u: 1 }, who: A },
    { k: 'grant', caps: { u: 1, v: 1 }, who: A },
  ],
  [
    { k: 'grant', caps: { u: 1 }, who: A },
    { k: 'grant', parent: 0, caps: { u: 2 }, who: B },
  ],
  [
    { k: 'grant', caps: { u: 2 }, who: A },
    { k: 'grant', parent: 0, caps: { v: 1 }, who: B },
  ],
];
const VECTORS =
  size === 'full' ? [{}, { u: 0 }, { u: 1 }, { u: 2 }, { v: 1 }, { u: 1, v: 1 }] : [{}, { u: 1 }, { u: 2 }];
const SOME = size === 'full' ? [{ u: 1 }, { u: 2 }, { v: 1 }, { u: 1, v: 1 }] : [{ u: 1 }];
function alphabet(s) {
  const ops = [];
  s.grants.forEach((g, i) => {
    for (const reserve of VECTORS) ops.push({ k: 'action', g: i, reserve });
    if (size === 'full') ops.push({ k: 'action', g: i, reserve: { u: 1 }, deny: true });
    for (const used of SOME) ops.push({ k: 'direct', g: i, used });
    for (const meters of SOME) ops.push({ k: 'debit', g: i, meters }, { k: 'credit', g: i, meters, who: O });
    if (size === 'full')
      ops.push(
        { k: 'credit', g: i, meters: { u: 1 }, who: A },
        { k: 'credit', g: i, meters: { u: 1, x: 1 }, who: O },
      );
  });
  s.actions.forEach((a, i) => {
    for (const used of VECTORS) ops.push({ k: 'run', a: i, used });
    ops.push({ k: 'release', a: i }, { k: 'start', a: i });
    if (a.start !== undefined) ops.push({ k: 'start', a: i, takes: a.start });
    if (size === 'full') ops.push({ k: 'run', a: i, used: { u: 1 }, failed: true });
  });
  return ops;
}
const D = (b64) => ({ alg: 'sha-256', b64 }),
  Z = D('A'.repeat(43));
const int = (v) => ({ t: 'int', v: String(v) });
const vec = (m) => Object.entries(m).map(([unit, v]) => ({ unit, amount: int(v) }));
const at = (i) => `2026-01-01T00:00:${String(i).padStart(2, '0')}Z`;
function make(s, op, i, ids) {
  const base = { event_version: '1', occurred_at: at(i), canonical_profile_id: 'northroot-jcs-v1' };
  const auth = {
    event_type: 'authorization',
    ...base,
    intents: { intent_digest: Z },
    policy_id: 'p',
    policy_digest: Z,
    decision: op.deny ? 'deny' : 'allow',
    decision_code: op.deny ? 'NO' : 'ALLOW',
  };
  const g = op.g === undefined ? undefined : s.grants[op.g];
  const gid = op.g === undefined ? undefined : D(ids.grants[op.g]);
  switch (op.k) {
    case 'grant':
      return {
        ...auth,
        principal_id: op.who,
        authorization: {
          kind: 'grant',
          ...(op.parent === undefined ? {} : { grant_event_id: D(ids.grants[op.parent]) }),
          bounds: { allowed_tools: ['*'], meter_caps: vec(op.caps) },
        },
      };
    case 'action':
      return {
        ...auth,
        principal_id: g.who,
        authorization: {
          kind: 'action',
          grant_event_id: gid,
          action: { tool_name: 't', tool_params_digest: Z, meter_reservation: vec(op.reserve) },
        },
      };
    case 'direct':
      return {
        event_type: 'execution',
        ...base,
        principal_id: g.who,
        intents: { intent_digest: Z },
        auth_event_id: gid,
        tool_name: 't',
        meter_used: vec(op.used),
        outcome: 'success',
      };
    case 'run':
    case 'release': {
      const used = op.k === 'release' ? {} : op.used,
        bad = op.k === 'release' ? 'ABANDONED' : op.failed ? 'E' : undefined;
      return {
        event_type: 'execution',
        ...base,
        principal_id: s.grants[s.actions[op.a].g].who,
        intents: { intent_digest: Z },
        auth_event_id: D(ids.actions[op.a]),
        tool_name: 't',
        tool_params_digest: Z,
        meter_used: vec(used),
        outcome: bad ? 'failure' : 'success',
        ...(bad ? { error_code: bad } : {}),
      };
    }
    case 'start': {
      const a = s.actions[op.a];
      const takes = op.takes === undefined ? {} : { prev_event_id: D(ids.starts[op.takes]) };
      return {
        event_type: 'x.northroot.start',
        ...base,
        ...takes,
        principal_id: s.grants[a.g].who,
        intents: { intent_digest: Z },
        auth_event_id: D(ids.actions[op.a]),
        tool_name: 't',
        tool_params_digest: Z,
        started_at: at(i),
        meter_known: vec(a.reserve),
        recorder: 'recorder-number-1',
      };
    }
    default:
      return {
        event_type: 'adjustment',
        ...base,
        principal_id: op.who ?? O,
        grant_event_id: gid,
        direction: op.k,
        meters: vec(op.meters),
        reason: 'R',
      };
  }
}
const HARMLESS = ['METER_UNCAPPED', 'METER_UNREPORTED', 'RELEASE_OF_STARTED'];
const NL = Buffer.from('\n');
const b64 = (d) => (typeof d === 'string' ? d.replace('sha-256:', '') : d.b64);
function line(e) {
  const p = identifyEvent(e).payloadDigest,
    id = b64(eventId(e));
  return { id, bytes: Buffer.concat([canonicalBytes({ ...e, payload_digest: D(p), event_id: D(id) }), NL]) };
}
let ledgers = 0,
  events = 0,
  diffs = 0;
const codesSeen = new Map();
const INV = new Set();
async function compare(s, trail) {
  ledgers += 1;
  const report = await verifyChunks(Buffer.concat(trail.map(({ bytes }) => bytes)), { maxFindings: 1000 });
  const got = trail.map(() => []);
  for (const f of report.findings) if (f.at && f.at.line) got[f.at.line - 1].push(f.code);
  let why;
  const reused = new Set();
  trail.forEach(({ codes: all, op }, i) => {
    // Further uses of one action fold under the first finding.
    const codes = all.filter((c) => c !== 'AUTHORIZATION_REUSED' || !reused.has(op.a));
    if (codes.includes('AUTHORIZATION_REUSED')) reused.add(op.a);
    const [w, h] = [[...new Set(codes)].sort().join(), [...new Set(got[i])].sort().join()];
    if (w !== h) why ??= `event ${i}: spec ${w || '-'} northroot ${h || '-'}`;
  });
  report.grants.forEach((g, i) => {
    for (const m of g.meters) {
      const own = s.grants[i];
      const want = `${own.caps[m.unit]} ${own.used[m.unit]} ${own.held[m.unit]} ${own.caps[m.unit] - own.used[m.unit] - own.held[m.unit]}`;
      const have = `${m.cap.v} ${m.used.v} ${m.reserved.v} ${m.left.v}`;
      if (want !== have) why ??= `grant ${i} ${m.unit}: spec ${want} northroot ${have}`;
    }
  });
  if (report.grants.length !== s.grants.length) why ??= `grants ${report.grants.length}`;
  const open = s.actions.filter((a) => !a.deny && !a.spent).length;
  if (report.open_authorizations.length !== open)
    why ??= `open: spec ${open} northroot ${report.open_authorizations.length}`;
  const bad = trail.some(({ codes }) => codes.some((c) => !HARMLESS.includes(c)));
  const verdict = bad ? 'violation' : 'ok';
  if (report.verdict !== verdict) why ??= `verdict: spec ${verdict} northroot ${report.verdict}`;
  const of = { ok: 0, denied: 0, violation: 0 };
  trail.forEach(({ codes, op }) => {
    const isDenied =
      op.deny || (!['action', 'start'].includes(op.k) && op.a !== undefined && s.actions[op.a].deny);
    of[codes.some((c) => !HARMLESS.includes(c)) ? 'violation' : isDenied ? 'denied' : 'ok'] += 1;
  });
  for (const [k, v] of Object.entries(of))
    if (report.counts.by_verdict[k] !== v) why ??= `${k}: spec ${v} northroot ${report.counts.by_verdict[k]}`;
  if (why === undefined) return;
  diffs += 1;
  if (diffs <= 10) console.log('DIFF', why, JSON.stringify(trail.map(({ op }) => op)));
}
async function walk(s, trail, ids, depth, header) {
  if (depth === N) return compare(s, trail);
  for (const op of alphabet(s))
    await push(s, trail, ids, op, (next, t, i) => walk(next, t, i, depth + 1, header));
}
async function push(s, trail, ids, op, then) {
  const { id, bytes } = line(make(s, op, trail.length, ids));
  const next = clone(s),
    codes = step(next, op);
  events += 1;
  for (const c of codes) codesSeen.set(c, (codesSeen.get(c) ?? 0) + 1);
  for (const b of invariants(next)) {
    if (!INV.has(b)) {
      INV.add(b);
      console.log('INVARIANT', b, JSON.stringify([...trail.map((t) => t.op), op]));
    }
  }
  const own = {
    starts: next.starts > s.starts ? [...ids.starts, id] : ids.starts,
    grants: op.k === 'grant' ? [...ids.grants, id] : ids.grants,
    actions: op.k === 'action' ? [...ids.actions, id] : ids.actions,
  };
  return then(next, [...trail, { op, codes, bytes }], own);
}
for (const [h, header] of HEADERS.entries()) {
  if (only !== undefined && only !== 'all' && Number(only) !== h) continue;
  const before = ledgers,
    go = async (s, trail, ids) =>
      trail.length === header.length
        ? walk(s, trail, ids, 0, h)
        : push(s, trail, ids, header[trail.length], go);
  await go(empty(), [], { grants: [], actions: [], starts: [] });
  console.log(`header ${h}: ${ledgers - before} ledgers`);
}
console.log({ N, size, ledgers, events, diffs, codes: Object.fromEntries(codesSeen) });
process.exitCode = diffs === 0 && INV.size === 0 ? 0 : 1;
