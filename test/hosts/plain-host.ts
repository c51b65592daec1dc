/** A host for tests of what all hosts share, by what anyone can use who writes one: lines such as `{"id":"1","ms":1767225600000,"allow":true,"tool":"t","ran":"success","usd":0.5}`. */

import {
  amountOf,
  numberAt,
  principalOf,
  ReadingBuilder,
  textAt,
  timeOf,
  valueAt,
  type Host,
  type HostFile,
  type HostReading,
} from '../../src/api/hosts.js';
import { jcsDigest } from '../../src/hosts/shared/values.js';

export const plainHost: Host = {
  name: 'plain',
  title: 'Plain test host',
  rules: [
    { id: 'PL-1', statement: 'what was refused does not run' },
    { id: 'PL-2', statement: 'what ran was decided', undecidable: 'such files say no more' },
  ],
  aids: { names: 'names' },
  recognises: () => true,
  read(files: readonly HostFile[], options = {}): HostReading {
    const reading = new ReadingBuilder(options);
    for (const file of files) {
      for (const { at, bytes, value } of reading.lines(file)) {
        const id = textAt(value, 'id');
        const occurredAt = reading.timeOf(timeOf(numberAt(value, 'ms'), 'ms'), at, id);
        if (id === undefined || occurredAt === undefined) {
          reading.drop(at, 'action', id === undefined ? 'ID_NOT_STATED' : 'TIME_NOT_STATED');
          continue;
        }
        const base = { at, bytes, occurredAt, principalId: principalOf('agent', 'plain', 'a1') };
        const allow = valueAt(value, 'allow');
        const tool = textAt(value, 'tool') ?? 't';
        const paramsDigest = jcsDigest(valueAt(value, 'params') ?? null);
        if (typeof allow === 'boolean') {
          const decision = allow ? 'allow' : 'deny';
          const decisionCode = allow ? 'YES' : 'NO';
          reading.claim({
            ...base,
            kind: 'action',
            id: `decision:${id}`,
            decision,
            decisionCode,
            tool,
            paramsDigest,
          });
        }
        const ran = textAt(value, 'ran');
        if (ran === 'success' || ran === 'failure' || ran === 'unknown') {
          const usd = amountOf(numberAt(value, 'usd'));
          reading.claim({
            ...base,
            kind: 'execution',
            id: `run:${id}`,
            authorization: typeof allow === 'boolean' ? `decision:${id}` : undefined,
            tool,
            paramsDigest,
            outcome: ran,
            meters: usd === undefined ? [] : [{ unit: 'usd', amount: usd }],
            foreignDigests: [{ of: 'line', form: 'plain', stated: 'abc', check: 'match' }],
          });
          if (allow === false) {
            reading.find({
              rule: 'PL-1',
              code: 'RAN_AFTER_NO',
              severity: 'error',
              class: 'violation',
              at,
              about: id,
            });
          }
        }
        if (typeof allow === 'boolean' || ran !== undefined) {
          const usd = amountOf(numberAt(value, 'usd'));
          const params = valueAt(value, 'params');
          reading.observe({
            at,
            callIds: [id],
            tool: textAt(value, 'tool'),
            paramsDigest: params === undefined ? undefined : jcsDigest(params),
            decision: typeof allow === 'boolean' ? (allow ? 'allow' : 'deny') : undefined,
            outcome: ran === 'success' || ran === 'failure' || ran === 'unknown' ? ran : undefined,
            meters: usd === undefined ? [] : [{ unit: 'usd', amount: usd }],
            occurredAt,
          });
        }
        const fate = typeof allow === 'boolean' || ran !== undefined ? 'mapped' : 'evidence';
        if (fate === 'evidence')
          reading.claim({ ...base, kind: 'evidence', id, type: 'note', facts: { tool } });
        reading.item({ at, type: 'action', fate });
      }
    }
    return reading.finish();
  },
};

/** A file of such lines. */
export function plainFile(...lines: readonly (object | string)[]): HostFile {
  const text = lines.map((line) => `${typeof line === 'string' ? line : JSON.stringify(line)}\n`).join('');
  return { name: 'plain.jsonl', bytes: Buffer.from(text) };
}
