/** Reports of outcomes, as adapters send them. */

import { encodeUtf8 } from '../../../base/bytes/text.js';
import { type Digest, sha256Digest } from '../../../base/value/digest.js';
import type { AmountsByUnit } from '../../../base/value/meter.js';
import { pythonJson } from '../../shared/forms/python.js';
import { amountOf } from '../../shared/values.js';
import { costOf } from '../amounts.js';
import { type Fields, MAX_ID, MAX_TEXT } from './fields.js';

export interface OutcomeReport {
  readonly adapterId: string;
  readonly proposalId: string;
  readonly decisionId: string;
  readonly executed: boolean;
  readonly success: boolean;
  readonly committed: boolean;
  readonly quarantined: boolean;
  /** The text of a number, in milliseconds. */
  readonly durationMs: string;
  /** What was used, with the time as it is written. */
  readonly used: AmountsByUnit;
  /** The report as Python writes it, with sorted members: what a replay has. */
  readonly content: Uint8Array;
  /** Of that. */
  readonly digest: Digest;
}

/** @throws Refusal 422 */
export function readOutcome(fields: Fields): OutcomeReport {
  const [adapterId, proposalId, decisionId] = ['adapter_id', 'proposal_id', 'decision_id'].map((name) =>
    name === 'proposal_id' ? fields.id(name) : fields.text(name, MAX_ID),
  );
  const [executed, success] = [fields.flag('executed'), fields.flag('success')];
  fields.number('executed_at');
  const durationMs = fields.number('duration_ms', false);
  const [committed, quarantined] = ['committed', 'quarantined'].map((name) => fields.optionalFlag(name));
  fields.optionalTexts('errors', MAX_TEXT);
  fields.optionalText('result_summary', MAX_TEXT);
  const time = amountOf(durationMs);
  if (durationMs !== undefined && time === undefined)
    fields.fault('duration_ms', 'value is not a valid float', 'type_error.float');
  fields.optionalFields('actual_cost');
  fields.end();
  const { object } = fields;
  const content = encodeUtf8(pythonJson(object.without('schema_version'), 'py-json-sorted-compact-ascii'));
  const costs = Object.fromEntries(costOf(object).map(({ unit, amount }) => [unit, amount]));
  return {
    adapterId: adapterId ?? '',
    proposalId: proposalId ?? '',
    decisionId: decisionId ?? '',
    executed: executed === true,
    success: success === true,
    committed: committed === true,
    quarantined: quarantined === true,
    durationMs: durationMs ?? '0',
    used: { ...costs, ...(time === undefined ? {} : { 'time.ms': time }) },
    content,
    digest: sha256Digest(content),
  };
}
