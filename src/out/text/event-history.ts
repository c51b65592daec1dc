/** The history of one event for people. */

import { printable } from '../../base/bytes/printable.js';
import type { JsonObject, JsonValue } from '../../base/json/value.js';
import { listBases } from '../../format/event/meter-basis.js';
import type {
  EventHistory,
  HistoryAdjustment,
  HistoryEvent,
  HistoryGrant,
  HistoryKey,
  HistorySignature,
  HistorySigned,
} from '../../log/read/event-history.js';
import { keyText, renderBalances, renderSigners } from './accounts.js';
import type { Guide, Paint } from './guide.js';
import { approvalRuleText, checkTexts, digest, list, object, quantityText, string } from './json.js';
import { renderFinding } from './report.js';
import { inFlightText } from './words.js';

const VERDICT_STYLES = { ok: 'green', denied: 'yellow', violation: 'red', invalid: 'red' } as const;

/** The history as lines of text, each ending in `\n`. */
export function renderEventHistory(history: EventHistory, paint: Paint, guide: Guide = {}): string {
  const { event, executions, executions_total: total } = history;
  const lines = [
    `${paint('bold', text(event['event_type']))}  seq ${history.seq}  ${history.event_id}  ${paint('bold', paint(VERDICT_STYLES[history.verdict], history.verdict))}`,
    ...row('location', `${printable(history.file)}:${history.line}`),
    ...row('who', text(event['principal_id'])),
    ...row('when', times(event)),
    ...row('follows', digest(event['prev_event_id'])),
    ...row('intent', digest(object(event['intents'])['intent_digest'])),
    ...row('what', what(event)),
    ...details(event),
    ...signatures(history.signatures),
    ...row('for ledger', digest(event['ledger_id'])),
    ...continuation(event),
    ...decision(event),
    ...bounds(event),
    ...correction(event),
    ...oversight(event),
  ];
  if (history.account !== undefined && history.account.length > 0)
    lines.push('  at the end of the ledger', ...renderBalances(history.account, paint));
  if (history.authorization !== undefined)
    lines.push('', ...renderAuthorization(history.authorization, paint));
  for (const approval of history.approvals) lines.push('', ...renderSigned(approval, paint));
  for (const grant of history.grants) lines.push('', ...renderGrant(grant, paint));
  const { request, used_by: action, withdrawals, withdrawals_total: changes } = history;
  if (request !== undefined) lines.push('', ...renderExecution(request, 'asked for by', paint));
  if (action !== undefined) lines.push('', ...renderExecution(action, 'used by', paint));
  for (const each of withdrawals) lines.push('', ...renderSigned(each, paint));
  if (changes > withdrawals.length) lines.push('', `… and ${changes - withdrawals.length} more revocations`);
  const { after_stop: ran, after_stop_total: ranTotal } = history;
  for (const each of ran) lines.push('', ...renderExecution(each, 'recorded after the stop', paint));
  if (ranTotal > ran.length)
    lines.push('', `… and ${ranTotal - ran.length} more executions recorded after the stop`);
  const { adjustments, adjustments_total: corrections } = history;
  for (const adjustment of adjustments) lines.push('', ...renderAdjustment(adjustment, paint));
  if (corrections > adjustments.length)
    lines.push('', `… and ${corrections - adjustments.length} more credits and debits`);
  const done = event['decision'] === 'deny' ? 'attempted' : 'executed';
  for (const execution of executions) lines.push('', ...renderExecution(execution, done, paint));
  if (total > executions.length) lines.push('', `… and ${total - executions.length} more executions`);
  for (const { seq, tool_name: tool, started_at: at, recorder } of history.starts)
    lines.push(
      '',
      `${paint('bold', 'started')} seq ${seq}  ${printable(tool)} at ${printable(at)} by recorder ${printable(recorder)}, not recorded yet: it counts as reserved`,
    );
  if (total === 0 && history.starts.length === 0 && isOpen(event))
    lines.push('', 'not executed: it is open, and its reservation is held');
  if (history.findings.length > 0)
    lines.push(
      '',
      paint('bold', 'findings'),
      ...history.findings.flatMap((finding) => renderFinding(finding, paint, { guide })),
    );
  return lines.map((line) => `${line}\n`).join('');
}

function isOpen({ event_type: type, decision: answer, authorization }: JsonObject): boolean {
  return type === 'authorization' && answer === 'allow' && object(authorization)['kind'] === 'action';
}

/** The event that an execution names as its authorization, which it should be. */
function renderAuthorization({ event, seq, event_id: id }: HistoryEvent, paint: Paint): string[] {
  const is = event['event_type'] === 'authorization';
  const name = is ? paint('bold', 'decided by') : paint('bold', 'names');
  const by = is ? `${text(event['policy_id'])}, ` : `${text(event['event_type'])}, `;
  return [
    `${name} ${by}seq ${seq}  ${id}`,
    ...row('for', text(event['principal_id'])),
    ...row('when', text(event['occurred_at'])),
    ...row('what', what(event)),
    ...decision(event),
  ];
}

function decision(event: JsonObject): string[] {
  if (event['event_type'] !== 'authorization') return [];
  return [
    ...row('decision', `${text(event['decision'])}, ${text(event['decision_code'])}`),
    ...row('policy', `${text(event['policy_id'])}, ${digest(event['policy_digest'])}`),
    ...row('checks', checkTexts(event).join(', ')),
  ];
}

function signatures(all: readonly HistorySignature[]): string[] {
  if (all.length === 0) return row('signed by', 'no key');
  return all.flatMap((each, index) => row(index === 0 ? 'signed by' : '', signature(each)));
}

function signature(of: HistorySignature): string {
  const { outcome, code = '', roles = [], copy_of: first = 0 } = of;
  const who = keyText(of.keyid, of.name);
  switch (outcome) {
    case 'valid':
      return `${who}: valid${roles.length === 0 ? '' : `, as ${roles.join(' and ')}`}`;
    case 'invalid':
      return code === 'SIGNATURE_INVALID'
        ? `${who}: invalid, the signature is wrong (${code})`
        : `${who}: invalid, the key was not entitled (${code})`;
    case 'unverified':
      return `${who}: unverified, the key is not known`;
    case 'copy':
      return `${who}: a copy of signature ${first + 1}, which counts once`;
  }
}

function signers(keys: readonly HistoryKey[]): string[] {
  const names = new Map(keys.map(({ keyid, name }) => [keyid, name]));
  return row(
    'signed by',
    renderSigners([...names.keys()], (keyid) => names.get(keyid)),
  );
}

/** The ledger that a genesis continues. */
function continuation(event: JsonObject): string[] {
  const { ledger_id: ledger, tree_size: size, root } = object(event['continues']);
  const id = digest(ledger);
  return row('continues', id === '' ? '' : `${id}, its first ${Number(size)} records, root ${digest(root)}`);
}

/** What an approval or a revocation says. */
function oversight(event: JsonObject): string[] {
  const type = event['event_type'];
  if (type !== 'approval' && type !== 'revocation') return [];
  return [
    ...row('of grant', digest(event['grant_event_id'])),
    ...row('code', text(event['decision_code'])),
    ...row('at most', amounts(event['meter_limit'])),
    ...row('expires', text(event['expires_at'])),
    ...row('reason', [text(event['reason']), digest(event['reason_digest'])].join(' ').trim()),
  ];
}

/** An approval or a revocation beside the event that it is about. */
function renderSigned({ event, seq, event_id: id, signers: keys }: HistorySigned, paint: Paint): string[] {
  return [
    `${paint('bold', text(event['event_type']))} seq ${seq}  ${id}`,
    ...row('by', text(event['principal_id'])),
    ...row('when', times(event)),
    ...row('what', what(event)),
    ...oversight(event),
    ...signers(keys),
  ];
}

function correction(event: JsonObject): string[] {
  if (event['event_type'] !== 'adjustment') return [];
  return [
    ...row('of grant', digest(event['grant_event_id'])),
    ...row('of run', digest(event['execution_event_id'])),
    ...row('reason', text(event['reason'])),
    ...row('evidence', digest(object(event['evidence'])['digest'])),
  ];
}

function renderAdjustment(
  { event, seq, event_id: id, verdict, signers: keys }: HistoryAdjustment,
  paint: Paint,
): string[] {
  return [
    `${paint('bold', text(event['direction']))} seq ${seq}  ${id}  ${verdict}`,
    ...row('by', text(event['principal_id'])),
    ...row('when', text(event['occurred_at'])),
    ...row('what', amounts(event['meters'])),
    ...row('reason', text(event['reason'])),
    ...row('basis', text(event['meter_basis'])),
    ...row('source', source(event)),
    ...signers(keys),
  ];
}

function source(event: JsonObject): string {
  const { system, id, digest: bytes } = object(event['source']);
  return [text(system), text(id), digest(bytes)].filter((part) => part !== '').join(' ');
}

function bounds(event: JsonObject): string[] {
  const allowed = object(object(event['authorization'])['bounds']);
  const limit = allowed['concurrency_limit'];
  const depth = allowed['max_delegation_depth'];
  return [
    ...row('tools', list(allowed['allowed_tools']).map(text).join(', ')),
    ...row('caps', amounts(allowed['meter_caps'])),
    ...row('per action', amounts(allowed['action_caps'])),
    ...row('rates', amounts(allowed['rate_limits'])),
    ...row('at once', limit === undefined ? '' : quantityText(limit)),
    ...row('delegates', typeof depth === 'number' ? `${depth} deep at most` : ''),
    ...row('not before', text(allowed['not_before'])),
    ...row('expires', text(allowed['expires_at'])),
    ...row('output', text(allowed['output_mode'])),
    ...list(allowed['approvals']).flatMap((rule) =>
      row('approvals', approvalRuleText(object(rule), amounts)),
    ),
  ];
}

function renderGrant(grant: HistoryGrant, paint: Paint): string[] {
  const { event } = grant;
  const accounts = [grant.before, grant.after].map((balances) => renderBalances(balances, paint));
  const [before = [], after = []] = accounts;
  const isSame = before.join('\n') === after.join('\n');
  return [
    `${paint('bold', 'under grant')} seq ${grant.seq}  ${grant.event_id}`,
    ...row('of', text(event['principal_id'])),
    ...signers(grant.signers),
    ...bounds(event),
    ...(isSame ? ['  before and after', ...before] : ['  before', ...before, '  after', ...after]),
  ];
}

function renderExecution(
  { event, seq, event_id: id }: HistoryEvent,
  done: 'attempted' | 'executed' | 'asked for by' | 'used by' | 'recorded after the stop',
  paint: Paint,
): string[] {
  return [
    `${paint('bold', done)} seq ${seq}  ${id}`,
    ...row('when', times(event)),
    ...row('what', what(event)),
  ];
}

function what(event: JsonObject): string {
  const grant = object(event['authorization']);
  const action = object(grant['action']);
  switch (text(event['event_type'])) {
    case 'genesis':
      return text(event['origin']);
    case 'key':
      return `${text(event['action'])} ${text(object(event['key'])['keyid'])}`;
    case 'checkpoint':
      return `the first ${Number(event['tree_size'])} records`;
    case 'x.northroot.start':
      return `${text(event['tool_name'])} started`;
    case 'attestation':
      return digest(event['checkpoint_event_id']);
    case 'approval':
      return `${text(event['decision'])} ${text(event['tool_name'])}`;
    case 'revocation':
      return `${text(event['effect'])}${inFlightText(string(event['in_flight']))}`;
    case 'adjustment':
      return `${text(event['direction'])} ${amounts(event['meters'])}`;
  }
  const used = amounts(event['meter_used'] ?? action['meter_reservation']);
  const tool = text(event['tool_name'] ?? action['tool_name']) || text(grant['kind']);
  return [tool, text(event['outcome']), text(event['error_code']), used]
    .filter((part) => part !== '')
    .join(' ');
}

function details(event: JsonObject): string[] {
  const action = object(object(event['authorization'])['action']);
  const touched = list(event['resources_touched']).map((each) => {
    const { kind, reference } = object(each);
    return `${text(kind)} ${text(reference)}`;
  });
  return [
    ...row('params', digest(event['tool_params_digest'] ?? action['tool_params_digest'])),
    ...row('model', [text(event['provider']), text(event['model_id'])].join(' ').trim()),
    ...row('output', digest(event['output_digest'] ?? object(event['output_ref'])['digest'])),
    ...row('touched', touched.join(', ')),
    ...row('basis', listBases(event).join(', ')),
    ...row('source', source(event)),
  ];
}

function amounts(vector: JsonValue | undefined): string {
  return list(vector)
    .map((each) => {
      const { unit, amount } = object(each);
      return `${text(unit)}=${quantityText(amount)}`;
    })
    .join(' ');
}

function times(event: JsonObject): string {
  const { started_at: started, ended_at: ended, occurred_at: occurred } = event;
  return started === undefined
    ? text(occurred)
    : `${text(started)} to ${text(ended) || '?'}, recorded ${text(occurred)}`;
}

/** One line, or none where there is nothing to say. */
function row(name: string, content: string): string[] {
  return content === '' ? [] : [`  ${name.padEnd(10)} ${printable(content, 400)}`];
}

function text(value: JsonValue | undefined): string {
  return printable(string(value));
}
