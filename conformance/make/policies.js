/** One ledger under policies that give its keys other roles, principals and times: what each record is then. */

import { AGENT, entryOf, Overseen } from '../../fixtures/make/overseen.js';
import { KEY, at } from '../../fixtures/make/variations.js';

const LEDGER = 'vectors/policies.jsonl';
const SIGNATURE = '/signatures/0';
const ALL = ['event', 'authority', 'checkpoint', 'admin'];
/** Records by their line: a grant, an action under it, its execution, a revocation of the grant, one of the agent's key, a checkpoint. */
const [GRANT, ACTION, EXECUTION, REVOCATION, KEY_EVENT, CHECKPOINT] = [2, 3, 4, 5, 6, 7];

/** Cases as expected.json has them; the ledger and the policies are added to the files. */
export function makePolicyLedgers(files) {
  const scene = new Overseen('policies');
  const grantId = scene.grant();
  scene.run(scene.allow(grantId));
  scene.revoke(grantId, 'stop');
  scene.revokeKey(entryOf(AGENT, ['agent:a1']));
  scene.seal();
  files.set(LEDGER, scene.ledger.bytes);
  const manager = (roles, principals = ['*'], more = {}) => ({ ...entryOf(KEY, principals, roles), ...more });
  const agent = (roles = ['event'], principals = ['agent:a1'], more = {}) => ({
    ...entryOf(AGENT, principals, roles),
    ...more,
  });
  const without = (role) => ALL.filter((each) => each !== role);
  const rows = [
    ['as-declared', 'the keys as genesis has them', [manager(ALL), agent()], []],
    [
      'no-authority',
      'no key with role authority: any key for events may grant',
      [manager(without('authority')), agent()],
      [],
    ],
    [
      'no-events',
      'the owner has no role for events, and signs none',
      [manager(without('event')), agent()],
      [],
    ],
    [
      'no-admin',
      'the owner may not revoke keys',
      [manager(without('admin')), agent()],
      [['KEY_NOT_FOR_ROLE', KEY_EVENT, SIGNATURE]],
    ],
    [
      'narrow',
      'the owner is for services alone',
      [manager(ALL, ['service:*']), agent()],
      [
        ['KEY_NOT_FOR_PRINCIPAL', GRANT, SIGNATURE],
        ['KEY_NOT_FOR_PRINCIPAL', REVOCATION, SIGNATURE],
      ],
    ],
    [
      'narrow-enough',
      'the owner is for those that it signs for',
      [manager(ALL, ['service:ledger', 'human:owner', 'agent:a*']), agent()],
      [],
    ],
    [
      'agent-of-authority',
      'the agent has the role authority alone: it may act, and record nothing that was done',
      [manager(ALL), agent(['authority'])],
      [['KEY_NOT_FOR_ROLE', EXECUTION, SIGNATURE]],
    ],
    [
      'agent-of-others',
      'the agent is another one',
      [manager(ALL), agent(['event'], ['agent:a2'])],
      [
        ['KEY_NOT_FOR_PRINCIPAL', ACTION, SIGNATURE],
        ['KEY_NOT_FOR_PRINCIPAL', EXECUTION, SIGNATURE],
      ],
    ],
    [
      'agent-unknown',
      'the agent is not known',
      [manager(ALL)],
      [
        // Its execution, folded; and the revocation of a key that was never there.
        ['KEY_UNKNOWN', ACTION, SIGNATURE, { folded: 1 }],
        ['KEY_UNKNOWN', KEY_EVENT, '/event/key/keyid', { severity: 'warning' }],
      ],
    ],
    [
      'agent-ended',
      'the key of the agent is valid until its execution',
      [manager(ALL), agent(['event'], ['agent:a1'], { valid_until: at(EXECUTION - 1) })],
      [['KEY_NOT_VALID_HERE', EXECUTION, SIGNATURE]],
    ],
    [
      'agent-begins',
      'the key of the agent is valid from its execution on',
      [manager(ALL), agent(['event'], ['agent:a1'], { valid_from: at(EXECUTION - 1) })],
      [['KEY_NOT_VALID_HERE', ACTION, SIGNATURE]],
    ],
    [
      'no-checkpoints',
      'the owner signs notes of checkpoints, and may not',
      [manager(without('checkpoint')), agent()],
      [
        ['KEY_NOT_FOR_ROLE', CHECKPOINT, '/event/note'],
        // Nothing seals the records of the key that was revoked.
        ['KEY_NOT_VALID_HERE', ACTION, SIGNATURE, { folded: 1 }],
      ],
    ],
  ];
  return rows.map(([name, about, keys, findings]) => {
    const trust = `vectors/policies/${name}.json`;
    files.set(trust, Buffer.from(`${JSON.stringify({ keys, trust_version: '1' })}\n`));
    return {
      ledger: LEDGER,
      trust,
      about,
      verdict: findings.length === 0 ? 'ok' : 'invalid',
      findings: findings.map(([code, line, pointer, more]) => ({ code, line, pointer, ...more })),
    };
  });
}
