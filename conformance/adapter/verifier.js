/** The class verifier, by what `northroot/verify` and `northroot/proof` export. */

import {
  canonicalBytes,
  eventId,
  formatDigest,
  NorthrootError,
  parseCheckpoint,
  parseNoteKey,
  parseProofKey,
  parsePublicKey,
  parseTrustPolicy,
  parseWitnessPolicy,
  runVerification,
  buildReport,
  sha256Digest,
  verifyBundle,
  verifyNoteSignatures,
  verifyProof,
  verifyReceipt,
} from '../../dist/api/verify.js';
import { buildEvent } from '../../dist/api/format.js';

const PAYLOAD_TYPE = 'application/vnd.northroot.event+json';
const MAX_FINDINGS = 1_000_000;
const SEGMENT = /^(\d{20})\.jsonl$/;

const bytesOf = (text) => Buffer.from(text, 'base64');
const base64 = (bytes) => Buffer.from(bytes).toString('base64');

export const VERIFIER = {
  canonicalize: ({ json }) => ({ canonical: base64(canonicalBytes(JSON.parse(bytesOf(json).toString()))) }),

  identity({ event }) {
    const { event_id: id, payload_digest: digest, ...payload } = JSON.parse(bytesOf(event).toString());
    void [id, digest];
    const own = { event_id: eventId(payload), payload_digest: sha256Digest(canonicalBytes(payload)) };
    const whole = canonicalBytes({ ...payload, ...own });
    return {
      payload: base64(canonicalBytes(payload)),
      payload_digest: formatDigest(own.payload_digest),
      event_id: formatDigest(own.event_id),
      pae: base64(
        Buffer.concat([Buffer.from(`DSSEv1 ${PAYLOAD_TYPE.length} ${PAYLOAD_TYPE} ${whole.length} `), whole]),
      ),
    };
  },

  /** By a record of the event, under a policy that knows the key alone. */
  async signature({ key, event, signature }) {
    let trust;
    try {
      const { keyid } = parsePublicKey(key);
      const entry = { keyid, principals: ['*'], public_key: key, roles: ['admin', 'checkpoint', 'event'] };
      trust = parseTrustPolicy(Buffer.from(JSON.stringify({ trust_version: '1', keys: [entry] })));
    } catch (error) {
      if (error instanceof NorthrootError) return { valid: false };
      throw error;
    }
    const [{ keyid }] = trust.keys;
    const sig = bytesOf(signature).toString('base64url');
    const prev = formatDigestOf('');
    const text = `{"event":${bytesOf(event)},"prev":${prev},"seq":0,"signatures":[{"keyid":"${keyid}","sig":"${sig}"}]}\n`;
    let outcome;
    const onRecord = ({ signatures }) => void (outcome = signatures[0]?.outcome);
    await runVerification(sourceOf({ name: '-', bytes: base64(Buffer.from(text)) }), { trust, onRecord });
    return { valid: outcome === 'valid' };
  },

  note({ note, keys }) {
    const known = keys.map((key) => parseNoteKey(key));
    const signed = parseCheckpoint(bytesOf(note));
    const { origin, size, root } = signed.checkpoint;
    const { valid, invalid } = verifyNoteSignatures(signed, known);
    const indexes = (found) => [...new Set(found.map(({ key }) => known.indexOf(key)))].sort((a, b) => a - b);
    return {
      origin,
      tree_size: size,
      root: `sha-256:${Buffer.from(root, 'latin1').toString('base64url')}`,
      valid: indexes(valid),
      invalid: indexes(invalid),
    };
  },

  /** The root over any lines, records or not, is in the report. */
  async tree({ lines }) {
    const rootOf = async (some) => {
      const bytes = Buffer.concat(some.flatMap((line) => [bytesOf(line), Buffer.from('\n')]));
      const result = await runVerification(sourceOf({ name: '-', bytes: base64(bytes) }));
      return buildReport(result).ledger.root;
    };
    const leaves = [];
    const roots = [await rootOf([])];
    for (const [index, line] of lines.entries()) {
      leaves.push(await rootOf([line]));
      roots.push(await rootOf(lines.slice(0, index + 1)));
    }
    return { leaves, roots };
  },

  policy({ policy }) {
    try {
      parseTrustPolicy(bytesOf(policy));
      return { valid: true };
    } catch (error) {
      if (error instanceof NorthrootError) return { valid: false };
      throw error;
    }
  },

  windows,

  async verify(input) {
    const { verdict, exit_status: exitStatus, findings } = await reportOf(input);
    return { verdict, exit_status: exitStatus, findings };
  },

  report: async (input) => ({ report: await reportOf(input) }),

  steps,

  proof: ({ proof, keys, line }) => ({
    verdict: verifyProof(
      bytesOf(proof),
      { keys: keys.map((key) => parseProofKey(key)) },
      line === undefined ? {} : { entry: bytesOf(line) },
    ).verdict,
  }),

  receipt: ({ receipt, line, keys }) => ({
    verdict: verifyReceipt(
      bytesOf(receipt),
      { keys: keys.map((key) => parseProofKey(key)) },
      { entry: bytesOf(line) },
    ).verdict,
  }),

  async bundle({ bundle, trust }) {
    const options = trust === undefined ? {} : { trust: parseTrustPolicy(bytesOf(trust)) };
    const { verdict, exit_status: exitStatus } = await verifyBundle(bytesOf(bundle), options);
    return { verdict, exit_status: exitStatus };
  },
};

function formatDigestOf(text) {
  return JSON.stringify(sha256Digest(Buffer.from(text)));
}

async function* only(items) {
  yield* items;
}

/** The bytes of a request as a source of verification. */
function sourceOf({ name, bytes, segments }) {
  const parts = (segments ?? [{ name, bytes }]).map((part) => ({
    file: part.name,
    firstSeq: segments === undefined ? undefined : Number(SEGMENT.exec(part.name)?.[1]),
    chunks: only([bytesOf(part.bytes)]),
  }));
  return { paths: [name], size: undefined, segments: only(parts) };
}

function optionsOf({ trust, witness_policy: witnesses, checkpoints, predecessor, parents, now }) {
  return {
    maxFindings: MAX_FINDINGS,
    ...(trust === undefined ? {} : { trust: parseTrustPolicy(bytesOf(trust)) }),
    ...(witnesses === undefined ? {} : { witnessPolicy: parseWitnessPolicy(bytesOf(witnesses)) }),
    ...(checkpoints === undefined
      ? {}
      : { checkpoints: checkpoints.map(({ name, bytes }) => ({ name, note: bytesOf(bytes) })) }),
    ...(predecessor === undefined ? {} : { predecessor: sourceOf(predecessor) }),
    ...(parents === undefined ? {} : { parents: parents.map((each) => sourceOf(each)) }),
    ...(now === undefined ? {} : { now }),
  };
}

async function reportOf(input) {
  const report = buildReport(await runVerification(sourceOf(input.ledger), optionsOf(input)));
  return JSON.parse(JSON.stringify(report));
}

/**
 * What a prefix of the ledger reports, record by record: each goes on from the one before it, where the ledger has no parents, whose
 * slices no saved verification keeps.
 */
async function steps(input) {
  const made = [];
  const lines = [];
  let clock = null;
  await runVerification(sourceOf(input.ledger), {
    ...optionsOf(input),
    onRecord({ ordinal, bytes, verdict, signatures, state }) {
      lines.push(Buffer.from(bytes ?? []));
      const outcomes = signatures.map(({ keyid, outcome }) => ({ keyid, outcome }));
      made.push({ seq: ordinal, clock, verdict, signatures: outcomes });
      clock =
        state.clock === undefined ? null : state.clock.replace(/(\.\d*?)0+Z$/, '$1Z').replace('.Z', 'Z');
      return undefined;
    },
  });
  const known = new Map();
  const used = new Set();
  const { checkpoints, now, ...rest } = input;
  void [checkpoints, now];
  let from;
  for (const [index, step] of made.entries()) {
    const bytes = Buffer.concat(lines.slice(0, index + 1).flatMap((line) => [line, Buffer.from('\n')]));
    const result = await runVerification(sourceOf({ name: '-', bytes: base64(bytes) }), {
      ...optionsOf(rest),
      from,
    });
    const report = buildReport(result);
    from = rest.parents === undefined ? { state: result.state, findings: result.kept } : undefined;
    step.root = report.ledger.root;
    step.accounts = changedAccounts(report.grants, known);
    step.approvals = report.approvals
      .filter(({ event_id: id, used_by: by }) => by !== null && !used.has(id))
      .map(({ event_id: id }) => id);
    for (const id of step.approvals) used.add(id);
  }
  return { steps: made };
}

function changedAccounts(grants, known) {
  const changed = [];
  for (const { event_id: grant, meters } of grants) {
    for (const { unit, used, reserved, estimated = { t: 'int', v: '0' } } of meters) {
      const entry = {
        grant,
        unit,
        used: fraction(used),
        reserved: fraction(reserved),
        estimated: fraction(estimated),
      };
      const text = JSON.stringify(entry);
      if (known.get(`${grant} ${unit}`) === text) continue;
      known.set(`${grant} ${unit}`, text);
      changed.push(entry);
    }
  }
  return changed;
}

function fraction({ t, v, m, s, n, d }) {
  const [top, bottom] =
    t === 'int' ? [BigInt(v), 1n] : t === 'dec' ? [BigInt(m), 10n ** BigInt(s)] : [BigInt(n), BigInt(d)];
  let [a, b] = [top < 0n ? -top : top, bottom];
  while (b !== 0n) [a, b] = [b, a % b];
  return bottom / a === 1n ? String(top / a) : `${top / a}/${bottom / a}`;
}

/** By bare events: a grant with the limit, and executions under it. */
async function windows({ limit, executions }) {
  const intents = { intent_digest: sha256Digest(Buffer.from('windows')) };
  const principal = { principal_id: 'agent:a' };
  const unit = limit.unit.slice(0, limit.unit.lastIndexOf('.per_'));
  const cap = { amount: { t: 'int', v: '9'.repeat(39) }, unit };
  const grant = buildEvent({
    ...principal,
    authorization: {
      kind: 'grant',
      bounds: { allowed_tools: ['*'], meter_caps: [cap], rate_limits: [limit] },
    },
    decision: 'allow',
    decision_code: 'ALLOWED',
    event_type: 'authorization',
    intents,
    occurred_at: '0001-01-01T00:00:00Z',
    policy_digest: sha256Digest(Buffer.from('policy')),
    policy_id: 'policy',
  });
  const done = executions.map(({ at, amount }, index) =>
    buildEvent({
      ...principal,
      auth_event_id: grant.event_id,
      context_digest: sha256Digest(Buffer.from(String(index))),
      event_type: 'execution',
      intents,
      meter_used: amount === undefined ? [] : [{ amount, unit }],
      occurred_at: at,
      outcome: 'success',
      started_at: at,
      tool_name: 't',
    }),
  );
  const text = [grant, ...done].map((event) => `${Buffer.from(canonicalBytes(event))}\n`).join('');
  const { findings } = await reportOf({ ledger: { name: '-', bytes: base64(Buffer.from(text)) } });
  const over = new Set(
    findings.filter(({ code }) => code === 'RATE_LIMIT_EXCEEDED').map(({ at }) => at.line),
  );
  return { exceeded: executions.map((_, index) => over.has(index + 2)) };
}
