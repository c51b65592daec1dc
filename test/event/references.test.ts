/** Digests and other events in drafts, as people write them. */

import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { EventError, buildEvent, sha256Digest, formatDigest } from '../../src/api/index.js';
import { resolveReferences } from '../../src/format/event/references.js';

const digest = sha256Digest(Buffer.from('x'));
const text = formatDigest(digest);
const hex = Buffer.from(digest.b64, 'base64url').toString('hex');
const by = { occurredAt: '2026-01-01T00:00:00Z', principalId: 'agent:a1' };

it.each([text, `sha-256:${hex}`, hex])('a digest may be the text %s', (written) => {
  const draft = { intents: { intent_digest: written }, auth_event_id: written, tool_name: 'fs.read' };
  const end = { event_type: 'execution', meter_used: [], outcome: 'success' };
  const objects = { intents: { intent_digest: digest }, auth_event_id: digest, tool_name: 'fs.read', ...end };
  expect(buildEvent({ ...draft, ...end }, by)).toEqual(buildEvent(objects, by));
});

it('at any depth of the known types, and in the envelope of all others', () => {
  const grant = buildEvent(
    {
      event_type: 'authorization',
      intents: { intent_digest: text, user_intent_digest: text },
      policy_id: 'manual',
      policy_digest: text,
      decision: 'deny',
      decision_code: 'NO',
      authorization: {
        kind: 'action',
        grant_event_id: text,
        action: { tool_name: 't', tool_params_digest: text },
      },
      source: { system: 's', id: 'i', digest: text },
    },
    by,
  );
  expect(JSON.stringify(grant)).not.toContain('sha-256:');
  const other = buildEvent(
    { event_type: 'x.n', prev_event_id: text, output_digest: text, a: { digest: text } },
    by,
  );
  expect(other).toMatchObject({ prev_event_id: digest, output_digest: text, a: { digest: text } });
});

it('every member of the schemas that is a digest may be one', () => {
  const names = new Set<string>();
  const lists = new Set<string>();
  const visit = (node: unknown, of: string): void => {
    if (typeof node !== 'object' || node === null) return;
    for (const [name, value] of Object.entries(node)) {
      const reference = (value as { $ref?: string } | null)?.$ref ?? '';
      const isDigest = /\/(?:sha256_)?digest$/.test(reference);
      if (isDigest && name === 'items') lists.add(of);
      if (isDigest) names.add(name === 'items' ? of : name);
      visit(value, name);
    }
  };
  const types = [
    'adjustment',
    'approval',
    'attestation',
    'authorization',
    'checkpoint',
    'execution',
    'common',
  ];
  for (const type of [...types, 'revocation'])
    visit(JSON.parse(readFileSync(`schemas/${type}.json`, 'utf8')), '');
  names.delete('event_id');
  names.delete('payload_digest');
  expect(names.size).toBeGreaterThan(10);
  for (const name of names) {
    const draft = { event_type: 'execution', nested: { [name]: lists.has(name) ? [text] : text } };
    const refusal = ((): unknown => {
      try {
        return buildEvent(draft, by);
      } catch (error) {
        return error;
      }
    })();
    // The member is not one of executions; but what was there when it was judged is the object.
    expect(refusal).toBeInstanceOf(EventError);
    const [fault] = (refusal as EventError).faults.filter(({ pointer }) => pointer === '/nested');
    expect([name, fault?.actual.includes('"alg"')]).toEqual([name, true]);
  }
});

it('what is no digest is refused as it stands', () => {
  const draft = { event_type: 'x.n', prev_event_id: 'sha-256:abc' };
  expect(() => buildEvent(draft, by)).toThrow(EventError);
});

it('another event may be named by its seq, or by the beginning of its id', async () => {
  const asked: string[] = [];
  const find = async (wanted: string): Promise<string> => {
    asked.push(wanted);
    return Promise.resolve(text);
  };
  const draft = {
    event_type: 'execution',
    auth_event_id: 7,
    prev_event_id: '7',
    tool_name: 'x',
    n: { a_event_id: 1 },
  };
  expect(await resolveReferences(draft, find)).toEqual({
    ...draft,
    auth_event_id: digest,
    prev_event_id: digest,
  });
  expect(asked).toEqual(['7']);
  const other = { event_type: 'x.n', prev_event_id: 'abc', auth_event_id: 3, context_digest: 'abc' };
  expect(await resolveReferences(other, find)).toEqual({ ...other, prev_event_id: digest });
  const known = { event_type: 'x.n', prev_event_id: text };
  expect(await resolveReferences(known, () => Promise.reject(new Error('not asked')))).toEqual(known);
  const unknown = { event_type: 'x.n', prev_event_id: 9 };
  await expect(resolveReferences(unknown, () => Promise.reject(new Error('no 9')))).rejects.toThrow('no 9');
});

it('an event that is refused is told of with all its faults', () => {
  const draft = { event_type: 'execution', outcom: 'success', meter_used: [{ unit: 'usd', amount: 5 }] };
  const refusal = ((): EventError | undefined => {
    try {
      buildEvent(draft, by);
      return undefined;
    } catch (error) {
      return error as EventError;
    }
  })();
  expect(refusal?.schema).toBe('execution');
  expect(refusal?.messages).toHaveLength(refusal?.faults.length ?? 0);
  expect(refusal?.faults.map(({ pointer }) => pointer)).toEqual([
    '/auth_event_id',
    '/intents',
    '/meter_used/0/amount',
    '/outcom',
    '/outcome',
    '/tool_name',
  ]);
  for (const fault of refusal?.messages ?? []) expect(refusal?.message).toContain(fault);
  expect(refusal?.messages[2]).toContain('{"t":"int","v":"5"}');
  expect(refusal?.messages[3]).toContain('did you mean outcome?');
});

it('a member that is missing is told of with one that was misspelt', () => {
  const refuse = (draft: object): EventError => {
    try {
      buildEvent(draft, by);
    } catch (error) {
      return error as EventError;
    }
    return expect.fail('expected to be refused');
  };
  const misspelt = refuse({ event_tpye: 'x.note', note: 'tpye' });
  expect(misspelt.faults.map(({ pointer }) => pointer)).toEqual(['/event_type']);
  expect(misspelt.message).toContain('"event_tpye"');
  expect(misspelt.message).toContain('did you mean event_type?');
  expect(refuse({ note: 'tpye' }).message).not.toContain('did you mean');
  // Closed types name what they do not know.
  expect(refuse({ event_type: 'execution', outcom: 'success' }).faults.map(({ actual }) => actual)).toContain(
    'absent',
  );
});
