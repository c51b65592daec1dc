/** The ledgers that are measured: half authorizations, half executions, under one grant, by one key. */

import { rmSync } from 'node:fs';
import {
  Ledger,
  canonicalBytes,
  createSigner,
  generatePrivateKey,
  meters,
  sha256Digest,
} from '../dist/api/index.js';

const DIGEST = sha256Digest(canonicalBytes({ about: 'the benchmark' }));
const START = Date.parse('2026-01-01T00:00:00Z');
const BATCH = 1_000;
const SEALED_BATCH = 50;

export const idOf = (text) => ({ alg: 'sha-256', b64: text.slice('sha-256:'.length) });
const at = (second) => new Date(START + second * 1000).toISOString();
const decided = { policy_id: 'policy/1', policy_digest: DIGEST, decision: 'allow', decision_code: 'ALLOW' };
const who = {
  principal_id: 'agent:bench/worker-1',
  intents: { intent_digest: DIGEST, user_intent_digest: DIGEST },
};
const caps = meters({
  calls: 10n ** 12n,
  'time.ms': 10n ** 15n,
  usd: 10n ** 12n,
  'tokens.input': 10n ** 15n,
});
const amounts = meters({ calls: 1n, 'time.ms': 250n, usd: '0.0125', 'tokens.input': 1042n });

export function grantDraft() {
  const bounds = { allowed_tools: ['fs.*', 'llm.*'], meter_caps: caps, expires_at: '2030-01-01T00:00:00Z' };
  return {
    event_type: 'authorization',
    occurred_at: at(0),
    ...who,
    ...decided,
    authorization: { kind: 'grant', bounds },
  };
}

export function actionDraft(grantId, index) {
  const action = { tool_name: 'llm.chat', tool_params_digest: DIGEST, meter_reservation: amounts };
  return {
    event_type: 'authorization',
    occurred_at: at(index),
    context_digest: sha256Digest(Buffer.from(String(index))),
    ...who,
    ...decided,
    checks: [
      { check: 'tool', result: 'pass' },
      { check: 'spend', result: 'pass' },
    ],
    authorization: { kind: 'action', grant_event_id: idOf(grantId), action },
  };
}

/** `recorded`: when it is written down, which is later than when it was done. */
export function executionDraft(actionId, index, recorded) {
  return {
    event_type: 'execution',
    occurred_at: at(recorded),
    started_at: at(index),
    ended_at: at(index + 1),
    ...who,
    auth_event_id: idOf(actionId),
    tool_name: 'llm.chat',
    tool_params_digest: DIGEST,
    meter_used: amounts,
    outcome: 'success',
    output_digest: DIGEST,
    output_ref: { digest: DIGEST, size_bytes: 20_480, media_type: 'application/json' },
    model_id: 'model-1',
    provider: 'example',
  };
}

/** Writes a ledger of about `records` records, sealed after every hundred if asked to, under so many grants; returns how many it has. */
export async function writeLedger(path, records, signed, sealed = false, grants = 1) {
  rmSync(path, { force: true });
  const batch = sealed ? SEALED_BATCH : BATCH;
  let now = 0;
  const signer = signed ? createSigner(generatePrivateKey()) : undefined;
  const ledger = await Ledger.open(path, {
    create: { origin: 'example.com/bench' },
    now: () => at(now),
    checkpoints: sealed,
    ...(signer && { signer }),
  });
  const granted = await Promise.all(
    Array.from({ length: grants }, (_, i) =>
      ledger.append({ event: { ...grantDraft(), context_digest: sha256Digest(Buffer.from(`grant ${i}`)) } }),
    ),
  );
  const grantOf = (index) => granted[(index >> 1) % grants].eventId;
  for (let done = 1 + grants; done < records; done += 2 * batch) {
    const count = Math.min(batch, Math.ceil((records - done) / 2));
    const indices = Array.from({ length: count }, (_, i) => done + 2 * i);
    const actions = await Promise.all(
      indices.map((index) => ledger.append({ event: actionDraft(grantOf(index), index) })),
    );
    await Promise.all(
      actions.map(({ eventId }, i) =>
        ledger.append({ event: executionDraft(eventId, indices[i], done + 2 * count) }),
      ),
    );
    now = done + 2 * count;
    if (sealed) await ledger.checkpoint();
  }
  const { size } = ledger;
  await ledger.close();
  return size;
}
