/** What a record says, in a line and as labelled texts. Everything from the ledger is made printable here. */

import { printable } from '../../../base/bytes/printable.js';
import type { JsonObject, JsonValue } from '../../../base/json/value.js';
import { listBases } from '../../../format/event/meter-basis.js';
import { approvalRuleText, checkTexts, digest, list, object, quantityText, string } from '../../text/json.js';
import { effectWord, groupDigits, inFlightText } from '../../text/words.js';
import type { Kind } from './protocol.js';

/** The most characters of a text in a table, and in the account of one record. */
const MAX_LINE = 200;
const MAX_FACT = 2_000;

/** The kind of an event, by what it says of itself. */
export function kindOf(event: JsonObject | undefined): Kind {
  if (event === undefined) return 'unreadable';
  const type = event['event_type'];
  switch (type) {
    case 'authorization':
      return object(event['authorization'])['kind'] === 'grant' ? 'grant' : 'action';
    case 'x.northroot.start':
      return 'start';
    case 'genesis':
    case 'execution':
    case 'approval':
    case 'revocation':
    case 'adjustment':
    case 'checkpoint':
    case 'attestation':
    case 'key':
      return type;
    default:
      return 'other';
  }
}

/** What happened, in a few words. */
export function describeEvent(kind: Kind, event: JsonObject | undefined): string {
  return printable(event === undefined ? 'a line that cannot be read' : inWords(kind, event), MAX_LINE);
}

function inWords(kind: Kind, event: JsonObject): string {
  const authorization = object(event['authorization']);
  const isDenied = event['decision'] === 'deny';
  const denied = `denied: ${string(event['decision_code'])}`;
  switch (kind) {
    case 'genesis':
      return `the ledger begins: ${string(event['origin'])}`;
    case 'grant': {
      const bounds = object(authorization['bounds']);
      if (isDenied) return `grant ${denied}`;
      return `may use up to ${amounts(bounds['meter_caps'])}`;
    }
    case 'action': {
      if (isDenied) return denied;
      const reserved = amounts(object(authorization['action'])['meter_reservation']);
      return reserved === '' ? 'allowed' : `allowed, ${reserved} reserved`;
    }
    case 'start': {
      const known = amounts(event['meter_known']);
      return known === '' ? 'being executed' : `being executed; ${known} known`;
    }
    case 'execution': {
      const ended = [string(event['outcome']), string(event['error_code'])].filter((part) => part !== '');
      const used = amounts(event['meter_used']);
      return [ended.join(', '), used === '' ? '' : `used ${used}`].filter((part) => part !== '').join('; ');
    }
    case 'approval': {
      const most = amounts(event['meter_limit']);
      const answer = event['decision'] === 'approve' ? 'approved' : 'rejected';
      return `${answer}${most === '' ? '' : `, at most ${most}`}: ${string(event['decision_code'])}`;
    }
    case 'revocation':
      return `${describeEffect(event)}: ${string(event['reason'])}`;
    case 'adjustment':
      return `${string(event['direction'])} of ${amounts(event['meters'])}: ${string(event['reason'])}`;
    case 'checkpoint':
      return `seals the first ${numberText(event['tree_size'])} records`;
    case 'attestation':
      return 'a witness cosigned a checkpoint';
    case 'key': {
      const key = object(event['key']);
      return `key ${string(event['action'])}: ${string(key['name']) || string(key['keyid'])}`;
    }
    case 'other':
    case 'unreadable':
      return string(event['event_type']);
  }
}

function describeEffect({ effect, in_flight: inFlight }: JsonObject): string {
  return `grant ${effectWord(string(effect))}${inFlightText(string(inFlight))}`;
}

/** What a record says, label by label. */
export function listFacts(event: JsonObject): (readonly [string, string])[] {
  const authorization = object(event['authorization']);
  const action = object(authorization['action']);
  const bounds = object(authorization['bounds']);
  const key = object(event['key']);
  const evidence = object(event['evidence']);
  const source = object(event['source']);
  const depth = bounds['max_delegation_depth'];
  const facts: [string, string][] = [
    ['Principal', string(event['principal_id'])],
    ['Occurred', string(event['occurred_at'])],
    ['Started', string(event['started_at'])],
    ['Ended', string(event['ended_at'])],
    ['Tool', string(event['tool_name'] ?? action['tool_name'])],
    ['Outcome', [string(event['outcome']), string(event['error_code'])].filter(Boolean).join(', ')],
    ['Used', amounts(event['meter_used'])],
    ['Reserved', amounts(action['meter_reservation'])],
    ['Amount', amounts(event['meters'])],
    ['Direction', string(event['direction'])],
    ['Reason', string(event['reason'])],
    ['Basis', listBases(event).join(', ')],
    ['Decision', [string(event['decision']), string(event['decision_code'])].filter(Boolean).join(', ')],
    ['Policy', string(event['policy_id'])],
    ['Checks', checkTexts(event).join(', ')],
    ['Tools', list(bounds['allowed_tools']).map(string).join(', ')],
    ['Caps', amounts(bounds['meter_caps'])],
    ['Needs approval', list(bounds['approvals']).map(ruleText).join('; ')],
    ['At most', amounts(event['meter_limit'])],
    ['Effect', event['effect'] === undefined ? '' : describeEffect(event)],
    ['Per action', amounts(bounds['action_caps'])],
    ['Rates', amounts(bounds['rate_limits'])],
    ['At once', bounds['concurrency_limit'] === undefined ? '' : quantityText(bounds['concurrency_limit'])],
    ['Delegation', typeof depth === 'number' ? `${depth} deep at most` : ''],
    ['Not before', string(bounds['not_before'])],
    ['Expires', string(bounds['expires_at'] ?? action['expires_at'] ?? event['expires_at'])],
    ['Output mode', string(bounds['output_mode'])],
    ['Model', [string(event['provider']), string(event['model_id'])].filter(Boolean).join(' ')],
    ['Parameters', digest(event['tool_params_digest'] ?? action['tool_params_digest'])],
    ['Output', digest(event['output_digest'] ?? object(event['output_ref'])['digest'])],
    ['Evidence', digest(evidence['digest'])],
    ['Source', [string(source['system']), string(source['id'])].filter(Boolean).join(' ')],
    ['Origin', string(event['origin'])],
    ['Key', [string(event['action']), string(key['name']), string(key['keyid'])].filter(Boolean).join(' ')],
    ['Tree size', numberText(event['tree_size'])],
    ['Intent', digest(object(event['intents'])['intent_digest'])],
  ];
  return facts
    .filter(([, value]) => value !== '')
    .map(([label, value]) => [label, printable(value, MAX_FACT)]);
}

/** A rule for approvals of a grant in a line. */
export function ruleText(rule: JsonValue): string {
  return approvalRuleText(object(rule), amounts);
}

/** `1.50 usd, 3 calls`. */
function amounts(vector: JsonValue | undefined): string {
  return list(vector)
    .map((each) => {
      const { unit, amount } = object(each);
      return `${groupDigits(quantityText(amount))} ${string(unit)}`;
    })
    .join(', ');
}

function numberText(value: JsonValue | undefined): string {
  return typeof value === 'number' ? groupDigits(String(value)) : '';
}
