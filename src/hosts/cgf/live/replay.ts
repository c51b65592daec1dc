/** Replays: what the ledger says of a proposal, with the proposal and the outcome themselves where they are kept beside it. */

import { randomBytes } from 'node:crypto';
import { decodeUtf8 } from '../../../base/bytes/text.js';
import type { JsonValue } from '../../../base/json/value.js';
import { digestFromBase64url } from '../../../base/value/digest.js';
import { readContent } from '../../../log/contents/content-folder.js';
import { type Answer, SCHEMA_VERSION, writeAnswer } from './answer.js';
import type { Ended, Known } from './book.js';
import { type CgfEvent, decisionEvents, outcomeEvents, secondsOf } from './events.js';

/** A content that is kept beside a ledger, as text; undefined where it is not there, or another. */
export async function contentText(ledger: string, b64: string | undefined): Promise<string | undefined> {
  if (b64 === undefined || b64 === '') return undefined;
  const content = await readContent(ledger, digestFromBase64url(b64)).catch(() => undefined);
  return content?.status === 'attached' ? decodeUtf8(content.bytes) : undefined;
}

/**
 * The answer to a request for a replay.
 * @param ledger - The path of the ledger; undefined for a store
 * @param paramsHash - Of the proposal's params, where they are known
 */
export async function writeReplay(
  ledger: string | undefined,
  known: Known,
  answer: Answer,
  paramsHash: (proposal: string) => string | undefined,
): Promise<string> {
  const { ended } = known;
  const proposal = ledger === undefined ? undefined : await contentText(ledger, known.proposal);
  const report = ledger === undefined ? undefined : await contentText(ledger, ended?.report);
  const isWhole =
    proposal !== undefined && (!known.isAllowed || (ended !== undefined && report !== undefined));
  const outcome = ended === undefined ? null : (report ?? JSON.stringify(outcomeOf(answer, ended)));
  const { actionType, riskTier } = known;
  const hash = proposal === undefined ? undefined : paramsHash(proposal);
  const events: readonly CgfEvent[] = [
    ...decisionEvents(answer, { actionType, riskTier, paramsHash: hash }),
    ...(ended === undefined ? [] : outcomeEvents(answer, toReport(ended), ended.at)),
  ];
  const head = {
    schema_version: SCHEMA_VERSION,
    replay_id: `replay-${randomBytes(6).toString('hex')}`,
    created_at: Date.now() / 1_000,
    completeness: isWhole ? 'full' : 'decision-only',
  };
  // Contents are given as they were digested.
  const members = [
    JSON.stringify(head).slice(1, -1),
    `"proposal":${proposal ?? 'null'}`,
    `"decision":${JSON.stringify(writeAnswer(answer))}`,
    `"outcome":${outcome}`,
    `"events":${JSON.stringify(events)}`,
    '"errors":[]',
  ];
  return `{"schema_version":"${SCHEMA_VERSION}","replay":{${members.join(',')}}}`;
}

/** What a ledger says of an outcome whose report is not kept. */
function outcomeOf({ adapterId, proposalId, decisionId }: Answer, ended: Ended): Record<string, JsonValue> {
  return {
    adapter_id: adapterId,
    proposal_id: proposalId,
    decision_id: decisionId,
    executed: ended.executed,
    executed_at: secondsOf(ended.at),
    duration_ms: Number(ended.durationMs ?? '0'),
    success: ended.success,
  };
}

function toReport({ executed, success, durationMs = '0' }: Ended) {
  return { executed, success, durationMs };
}
