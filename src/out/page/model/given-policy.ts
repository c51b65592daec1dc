/** Witness policies of the page: a file's text, or the exporter's JSON, which may have been changed since. */

import { NorthrootError } from '../../../base/error.js';
import type { JsonObject, JsonValue } from '../../../base/json/value.js';
import {
  MAX_WITNESS_POLICY_DEFINITIONS,
  parseWitnessPolicy,
  type WitnessPolicy,
} from '../../../rules/trust/witness-policy.js';
import { object } from '../../text/json.js';

/** @throws NorthrootError `WITNESS_POLICY_INVALID`; of keys that are none the codes of `parseNoteKey`, when verification begins */
export function readWitnessPolicy(given: Uint8Array | JsonObject): WitnessPolicy {
  if (given instanceof Uint8Array) return parseWitnessPolicy(given);
  const { logs, witnesses, skipped = [], groups, quorum } = given;
  const names = new Set<JsonValue | undefined>();
  const isNew = (name: JsonValue | undefined): boolean => {
    const known = names.size;
    return typeof name === 'string' && names.add(name).size > known;
  };
  const isKey = ({ vkey, url = '' }: JsonObject): boolean =>
    typeof vkey === 'string' && typeof url === 'string';
  const isSkipped = ({ role, name, type, line }: JsonObject): boolean =>
    (role === 'log' || (role === 'witness' && isNew(name))) &&
    typeof name === 'string' &&
    typeof type === 'string' &&
    Number.isSafeInteger(line);
  const isGroup = ({ name, threshold, members }: JsonObject): boolean =>
    Array.isArray(members) &&
    members.every((member) => names.has(member)) &&
    Number.isSafeInteger(threshold) &&
    (threshold as number) >= 1 &&
    (threshold as number) <= members.length &&
    isNew(name);
  const isSound =
    areAll(logs, isKey) &&
    areAll(skipped, isSkipped) &&
    areAll(witnesses, (witness) => isKey(witness) && isNew(witness['name'])) &&
    areAll(groups, isGroup) &&
    (quorum === undefined || names.has(quorum));
  if (isSound) return given as unknown as WitnessPolicy;
  throw new NorthrootError('WITNESS_POLICY_INVALID', 'the witness policy in the page is not valid');
}

function areAll(list: JsonValue | undefined, isSound: (item: JsonObject) => boolean): boolean {
  return (
    Array.isArray(list) &&
    list.length <= MAX_WITNESS_POLICY_DEFINITIONS &&
    list.every((item) => isSound(object(item)))
  );
}
