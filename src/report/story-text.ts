/** The story of one event for people. */

import { printable } from '../bytes/printable.js';
import type { JsonObject, JsonValue } from '../json/value.js';
import { formatQuantity, type Quantity } from '../value/quantity.js';
import { renderBalances } from './accounts-text.js';
import type { Story, StoryEvent, StoryGrant } from './story.js';
import { renderFinding, type Paint } from './text.js';

/** The story as lines of text, each ending in `\n`. */
export function renderStory(story: Story, paint: Paint): string {
  const { event } = story;
  const lines = [
    `${paint('bold', text(event['event_type']))}  seq ${story.seq}  ${story.event_id}  ${paint('bold', story.verdict)}`,
    row('stands in', `${printable(story.file)}:${story.line}`),
    row('who', text(event['principal_id'])),
    row('when', times(event)),
    row('intent', digest(object(event['intents'])['intent_digest'])),
    row('what', what(event)),
    row('signed by', story.keyids.join(', ') || 'nobody'),
    ...decision(event),
  ];
  if (story.authorization !== undefined) lines.push('', ...authorization(story.authorization, paint));
  for (const grant of story.grants) lines.push('', ...renderGrant(grant, paint));
  for (const execution of story.executions) lines.push('', ...renderExecution(execution, paint));
  if (story.findings.length > 0) {
    lines.push(
      '',
      paint('bold', 'findings'),
      ...story.findings.flatMap((finding) => renderFinding(finding, paint)),
    );
  }
  return lines.map((line) => `${line}\n`).join('');
}

function authorization(event: StoryEvent, paint: Paint): string[] {
  return [
    `${paint('bold', 'decided by')} ${printable(text(event.event['policy_id']))}, seq ${event.seq}  ${event.event_id}`,
    row('for', text(event.event['principal_id'])),
    row('when', text(event.event['occurred_at'])),
    row('what', what(event.event)),
    ...decision(event.event),
  ];
}

function decision(event: JsonObject): string[] {
  if (event['event_type'] !== 'authorization') return [];
  const checks = list(event['checks']).map((each) => {
    const { check, result, code } = object(each);
    return `${text(check)} ${text(result)}${code === undefined ? '' : ` (${text(code)})`}`;
  });
  return [
    row('decision', `${text(event['decision'])}, ${text(event['decision_code'])}`),
    row('policy', `${text(event['policy_id'])}, ${digest(event['policy_digest'])}`),
    ...(checks.length === 0 ? [] : [row('checks', checks.join(', '))]),
  ];
}

function renderGrant(grant: StoryGrant, paint: Paint): string[] {
  const { event } = grant;
  const bounds = object(object(event['authorization'])['bounds']);
  const expires = bounds['expires_at'] === undefined ? '' : `, expires ${text(bounds['expires_at'])}`;
  const tools = list(bounds['allowed_tools']).map((tool) => text(tool));
  return [
    `${paint('bold', 'under grant')} seq ${grant.seq}  ${grant.event_id}`,
    row('of', `${text(event['principal_id'])}${expires}`),
    row('tools', tools.join(', ')),
    '  before',
    ...renderBalances(grant.before, paint),
    '  after',
    ...renderBalances(grant.after, paint),
  ];
}

function renderExecution({ event, seq, event_id: id }: StoryEvent, paint: Paint): string[] {
  return [
    `${paint('bold', 'executed')} seq ${seq}  ${id}`,
    row('when', times(event)),
    row('what', what(event)),
  ];
}

function what(event: JsonObject): string {
  const grant = object(event['authorization']);
  const action = object(grant['action']);
  const tool = event['tool_name'] ?? action['tool_name'];
  if (tool === undefined) return text(grant['kind']) || text(event['origin']);
  const amounts = list(event['meter_used'] ?? action['meter_reservation']).map((each) => {
    const { unit, amount } = object(each);
    return `${text(unit)}=${quantityText(amount)}`;
  });
  return [text(tool), text(event['outcome']), text(event['error_code']), ...amounts]
    .filter((part) => part !== '')
    .join(' ');
}

function times(event: JsonObject): string {
  const { started_at: started, ended_at: ended, occurred_at: occurred } = event;
  return started === undefined
    ? text(occurred)
    : `${text(started)} to ${text(ended) || '?'}, recorded ${text(occurred)}`;
}

function quantityText(value: JsonValue | undefined): string {
  try {
    return formatQuantity(value as unknown as Quantity);
  } catch {
    return '?';
  }
}

function digest(value: JsonValue | undefined): string {
  const { alg, b64 } = object(value);
  return typeof alg === 'string' && typeof b64 === 'string' ? `${alg}:${b64}` : '';
}

function row(name: string, content: string): string {
  return `  ${name.padEnd(10)} ${printable(content, 400)}`;
}

function text(value: JsonValue | undefined): string {
  return typeof value === 'string' ? printable(value) : '';
}

function list(value: JsonValue | undefined): readonly JsonValue[] {
  return Array.isArray(value) ? value : [];
}

function object(value: JsonValue | undefined): JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {};
}
