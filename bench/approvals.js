/**
 * What approvals cost a verifier, in time of a process with one thread beyond that of an empty ledger: ledgers of the same calls, without
 * rules of approval, with a rule for another tool, with one that asks above what the calls use, and with one approval for each call; and
 * approvals that nobody uses. An approved call is three records, any other two.
 *
 *     node bench/approvals.js [--calls 50000 --rounds 3 --signed]
 */

import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { createSigner, generatePrivateKey, Ledger, meters, sha256Digest } from '../dist/api/index.js';
import { actionDraft, executionDraft, grantDraft, idOf } from './ledger.js';

const { values } = parseArgs({
  options: {
    calls: { type: 'string', default: '50000' },
    rounds: { type: 'string', default: '3' },
    signed: { type: 'boolean', default: false },
  },
});
const calls = Number(values.calls);
const rounds = Number(values.rounds);
const BATCH = 1_000;
const NORTHROOT = fileURLToPath(new URL('../bin/northroot.js', import.meta.url));

const ruleFor = (tool, above) => [
  { tools: [tool], approvers: ['human:*'], ...(above && { above: meters({ usd: above }) }) },
];
const EMPTY = 'of no calls';
const KINDS = {
  [EMPTY]: { isEmpty: true },
  'without rules': {},
  'with a rule for another tool': { approvals: ruleFor('deploy') },
  'with a rule above what is used': { approvals: ruleFor('llm.chat', '1') },
  'each call approved': { approvals: ruleFor('llm.chat'), isApproved: true },
  'approvals that nobody uses': { approvals: ruleFor('llm.chat'), isUnused: true },
};

/** Each call has parameters of its own, as approvals are for one call. */
const paramsOf = (index) => ({ tool_params_digest: sha256Digest(Buffer.from(`call ${index}`)) });

function callDraft(grantId, index, given) {
  const draft = actionDraft(grantId, index);
  Object.assign(draft.authorization.action, paramsOf(index));
  if (given !== undefined) draft.authorization.action.approval_event_ids = [idOf(given.eventId)];
  return draft;
}

/** @param before - When all calls of the batch are still to come. */
function approvalDraft(grantId, index, before) {
  const { authorization } = callDraft(grantId, index);
  return {
    event_type: 'approval',
    principal_id: 'human:olga',
    occurred_at: actionDraft(grantId, before).occurred_at,
    context_digest: sha256Digest(Buffer.from(`approval ${index}`)),
    grant_event_id: idOf(grantId),
    decision: 'approve',
    decision_code: 'REVIEWED',
    tool_name: authorization.action.tool_name,
    tool_params_digest: authorization.action.tool_params_digest,
  };
}

async function write(path, { approvals, isApproved = false, isUnused = false, isEmpty = false }) {
  const ledger = await Ledger.open(path, {
    create: { origin: 'example.com/bench' },
    index: false,
    now: () => '2026-01-01T00:00:00Z',
    ...(values.signed && { signer: createSigner(generatePrivateKey()) }),
  });
  const grant = grantDraft();
  const bounds = { ...grant.authorization.bounds, ...(approvals && { approvals }) };
  const granted = await ledger.append({
    event: { ...grant, authorization: { ...grant.authorization, bounds } },
  });
  const { eventId: grantId } = granted;
  const appendAll = (drafts) => Promise.all(drafts.map((event) => ledger.append({ event })));
  for (let done = 0; done < calls && !isEmpty; done += BATCH) {
    const indices = Array.from({ length: Math.min(BATCH, calls - done) }, (_, i) => done + i);
    const given =
      isApproved || isUnused
        ? await appendAll(indices.map((index) => approvalDraft(grantId, index, done)))
        : [];
    if (isUnused) continue;
    const actions = await appendAll(indices.map((index, i) => callDraft(grantId, index, given[i])));
    await appendAll(
      actions.map(({ eventId }, i) => ({
        ...executionDraft(eventId, indices[i], done + BATCH),
        ...paramsOf(indices[i]),
      })),
    );
  }
  const { size } = ledger;
  await ledger.close();
  return size;
}

/** Wall time in milliseconds of a process with one thread; the verdict MUST be ok. */
function timeOf(path) {
  const from = performance.now();
  const { status, stderr } = spawnSync(
    process.execPath,
    [NORTHROOT, 'verify', path, '--threads', '1', '-q'],
    {
      encoding: 'utf8',
    },
  );
  if (status !== 0) throw new Error(`verifying ended with status ${status}: ${stderr}`);
  return performance.now() - from;
}

const folder = mkdtempSync(join(tmpdir(), 'northroot-bench-'));
try {
  const made = [];
  for (const [name, kind] of Object.entries(KINDS)) {
    const path = join(folder, `${made.length}.jsonl`);
    made.push({ name, path, size: await write(path, kind), best: Infinity });
  }
  for (let round = 0; round < rounds; round += 1)
    for (const each of made) each.best = Math.min(each.best, timeOf(each.path));
  const [{ best: start }, ...others] = made;
  const perCall = (each) => (each.best - start) / calls;
  for (const each of others)
    console.log(
      [
        each.name.padEnd(32),
        `${String(each.size).padStart(8)} records`,
        `${((1000 * (each.best - start)) / each.size).toFixed(1).padStart(6)} µs a record`,
        `a call ${(perCall(each) / perCall(others[0])).toFixed(2)}`,
      ].join('  '),
    );
} finally {
  rmSync(folder, { recursive: true, force: true });
}
