/**
 * What approvals cost a verifier per event, in time of a process with one thread: unsigned ledgers of the same calls, without rules of approval, with a rule
 * for another tool, and with one approval for each call; and approvals that nobody uses.
 *
 *     node bench/approvals.js [--calls 50000 --rounds 3]
 */

import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Ledger, sha256Digest } from '../dist/api/index.js';
import { actionDraft, executionDraft, grantDraft, idOf } from './ledger.js';

const { values } = parseArgs({
  options: { calls: { type: 'string', default: '50000' }, rounds: { type: 'string', default: '3' } },
});
const calls = Number(values.calls);
const rounds = Number(values.rounds);
const BATCH = 1_000;
const NORTHROOT = fileURLToPath(new URL('../bin/northroot.js', import.meta.url));

const ruleFor = (tool) => [{ tools: [tool], approvers: ['human:*'] }];
const KINDS = {
  'without rules': {},
  'with a rule for another tool': { approvals: ruleFor('deploy') },
  'each call approved': { approvals: ruleFor('llm.chat'), isApproved: true },
  'approvals that nobody uses': { approvals: ruleFor('llm.chat'), isUnused: true },
};

function approvalDraft(grantId, index) {
  const { authorization } = actionDraft(grantId, index);
  return {
    event_type: 'approval',
    principal_id: 'human:olga',
    occurred_at: actionDraft(grantId, index).occurred_at,
    context_digest: sha256Digest(Buffer.from(`approval ${index}`)),
    grant_event_id: idOf(grantId),
    decision: 'approve',
    decision_code: 'REVIEWED',
    tool_name: authorization.action.tool_name,
    tool_params_digest: authorization.action.tool_params_digest,
  };
}

async function write(path, { approvals, isApproved = false, isUnused = false }) {
  const ledger = await Ledger.open(path, { create: { origin: 'example.com/bench' }, index: false });
  const grant = grantDraft();
  const bounds = { ...grant.authorization.bounds, ...(approvals && { approvals }) };
  const granted = await ledger.append({
    event: { ...grant, authorization: { ...grant.authorization, bounds } },
  });
  const { eventId: grantId } = granted;
  const appendAll = (drafts) => Promise.all(drafts.map((event) => ledger.append({ event })));
  for (let done = 0; done < calls; done += BATCH) {
    const indices = Array.from({ length: Math.min(BATCH, calls - done) }, (_, i) => done + i);
    const given =
      isApproved || isUnused ? await appendAll(indices.map((index) => approvalDraft(grantId, index))) : [];
    if (isUnused) continue;
    const actions = await appendAll(
      indices.map((index, i) => {
        const draft = actionDraft(grantId, index);
        if (given[i] !== undefined) draft.authorization.action.approval_event_ids = [idOf(given[i].eventId)];
        return draft;
      }),
    );
    await appendAll(actions.map(({ eventId }, i) => executionDraft(eventId, indices[i], done + BATCH)));
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
  const perEvent = ({ best, size }) => best / size;
  const [first] = made;
  for (const each of made)
    console.log(
      `${each.name.padEnd(32)} ${String(each.size).padStart(8)} records  ${(1000 * perEvent(each)).toFixed(1).padStart(6)} µs an event  ${(perEvent(each) / perEvent(first)).toFixed(2)}`,
    );
} finally {
  rmSync(folder, { recursive: true, force: true });
}
