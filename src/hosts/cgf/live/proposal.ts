/** A proposal as a call: the same tool, parameters, intent and amounts as an import of the recorded request has. */

import { encodeUtf8 } from '../../../base/bytes/text.js';
import { SourceNumber, type SourceObject } from '../../../base/json/source-json.js';
import type { JsonObject, JsonValue } from '../../../base/json/value.js';
import { type Digest, sha256Digest } from '../../../base/value/digest.js';
import { MAX_METERS, type AmountsByUnit } from '../../../base/value/meter.js';
import { pythonJson } from '../../shared/forms/python.js';
import { toolOf } from '../../shared/names.js';
import { amountOf, objectAt, plainJson, textAt } from '../../shared/values.js';
import { estimateOf } from '../amounts.js';
import { intentIn, ACTION_TYPES, PARAM_VALUES, RISK_TIERS } from '../vocabulary.js';
import type { Fields } from './fields.js';

const MAX_REFERENCE = 1_024;
const MAX_PRIORITY = 100;

export interface Proposal {
  readonly id: string;
  readonly adapterId: string | undefined;
  readonly actionType: string;
  readonly riskTier: string;
  /** As a ledger has it. */
  readonly tool: string;
  /** `action_params` as proposed. */
  readonly params: JsonObject;
  readonly intent: JsonObject;
  readonly reserve: AmountsByUnit;
  readonly body: SourceObject;
  readonly signals: SourceObject | undefined;
  /** The proposal as Python writes it, with sorted members: what a replay has. */
  readonly content: Uint8Array;
  /** Of that. */
  readonly digest: Digest;
}

/** @throws Refusal 422 */
export function readProposal(request: Fields): Proposal {
  const adapterId = request.optionalText('adapter_id');
  readHostConfig(request.fields('host_config'));
  const proposal = request.fields('proposal');
  const context = request.fields('context');
  const signals = request.fields('capacity_signals');
  readContext(context);
  for (const name of ['token_rate', 'tool_call_rate', 'error_rate']) signals?.optionalNumber(name, false);
  signals?.optionalNumber('memory_growth');
  signals?.version();
  const known = proposal && readKnown(proposal);
  request.end();
  const { params, intent, ...rest } = known as NonNullable<typeof known>;
  const { object: body } = proposal as Fields;
  const content = encodeUtf8(pythonJson(body, 'py-json-sorted-compact-ascii'));
  return {
    ...rest,
    adapterId,
    params: params as JsonObject,
    intent: intent as JsonObject,
    tool: toolIn(body, rest.actionType),
    reserve: Object.fromEntries(estimateOf(body).map(({ unit, amount }) => [unit, amount])),
    body,
    signals: signals?.object,
    content,
    digest: sha256Digest(content),
  };
}

function readKnown(proposal: Fields) {
  proposal.version();
  const id = proposal.id('proposal_id');
  proposal.number('timestamp');
  const actionType = proposal.choice('action_type', ACTION_TYPES);
  const params = proposal.fields('action_params');
  const refs = proposal.texts('context_refs', MAX_REFERENCE);
  const cost = proposal.optionalFields('estimated_cost');
  const riskTier = proposal.object.has('risk_tier') ? proposal.choice('risk_tier', RISK_TIERS) : 'medium';
  const priority = proposal.optionalNumber('priority', false);
  if (priority !== undefined && !(Number.isInteger(Number(priority)) && Number(priority) <= MAX_PRIORITY))
    proposal.fault('priority', `ensure this value is less than or equal to ${MAX_PRIORITY}`, 'value_error');
  if (params !== undefined && actionType !== undefined) readParams(params, actionType);
  const plain = params && plainJson(params.object);
  if (params !== undefined && plain === undefined)
    proposal.fault('action_params', 'a number or text of it has no exact form', 'value_error');
  if (cost !== undefined) readCost(cost);
  const intent = plainJson(intentIn(proposal.object));
  if (refs !== undefined && plain !== undefined && intent === undefined)
    proposal.fault('context_refs', 'a text of it is not well-formed', 'value_error');
  return { id: id ?? '', actionType: actionType ?? '', riskTier: riskTier ?? '', params: plain, intent };
}

/** Names and values that a policy rests on are of their types. */
function readParams(params: Fields, actionType: string): void {
  for (const name of ['tool_name', 'tool', 'target_path', 'namespace'])
    params.optionalText(name, MAX_REFERENCE);
  params.optionalNumber('size_bytes', false);
  for (const [name, values] of Object.entries(PARAM_VALUES[actionType] ?? {}))
    if (params.object.has(name)) params.choice(name, values);
}

/** Of a free form; but what counts must be an amount, and none is left out. */
function readCost(cost: Fields): void {
  const entries = cost.object.entries();
  if (entries.length > MAX_METERS - 4)
    cost.fault('estimated_cost', `ensure this value has at most ${MAX_METERS - 4} items`, 'value_error');
  for (const [name, value] of entries)
    if (value instanceof SourceNumber && amountOf(value.text) === undefined)
      cost.fault(name.slice(0, 64), 'expected an amount of at least 0', 'value_error');
}

function readContext(context: Fields | undefined): void {
  context?.version();
  for (const name of ['agent_id', 'session_id']) context?.optionalText(name, MAX_REFERENCE);
  for (const name of ['turn_number', 'recent_errors', 'memory_growth_rate']) context?.optionalNumber(name);
}

export interface HostConfig {
  readonly hostType: string;
  readonly namespace: string | undefined;
  readonly version: string | undefined;
}

export function readHostConfig(config: Fields | undefined): HostConfig {
  const hostType = config?.text('host_type');
  const [namespace, version] = ['namespace', 'version'].map((name) => config?.optionalText(name));
  config?.optionalTexts('capabilities');
  config?.optionalFields('host_metadata');
  return { hostType: hostType ?? '', namespace, version };
}

function toolIn(body: SourceObject, actionType: string): string {
  const params = objectAt(body, 'action_params');
  const name = textAt(params, 'tool_name') ?? textAt(params, 'tool') ?? '';
  return toolOf(name === '' ? `cgf.${actionType}` : name);
}

/** What may run under a constraint, as an import has it. */
export function constrainedParams(params: JsonValue, constraint: JsonObject): JsonObject {
  return { action_params: params, constraint };
}
