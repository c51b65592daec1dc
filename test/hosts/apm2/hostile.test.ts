/** Files of apm2 that cost as much as they can for their size, and what is told once however many episodes there are. */

import { expect, it } from 'vitest';
import { episodeChecker } from '../../../src/hosts/apm2/index.js';
import { inTime } from '../../in-time.js';
import { fileOf, profile, read } from './kit.js';

const HASH = 'ab'.repeat(32);

/** A row whose links and signature are none. */
function row(type: string, payload: object): string {
  return JSON.stringify({
    ...{ event_id: type, event_type: type, work_id: 'W-1', actor_id: 'kernel' },
    ...{ timestamp_ns: '1700000000000000000', prev_hash: 'genesis', event_hash: HASH },
    ...{ signature: '11'.repeat(64), payload: JSON.stringify({ event_type: type, ...payload }) },
  });
}

function rows(count: number, of: (n: number) => string, name = 'ledger.jsonl') {
  return fileOf(`${Array.from({ length: count }, (_, n) => of(n)).join('\n')}\n`, name);
}

it('many decisions of one request that decide nothing cost what their number is', () => {
  const file = rows(12_000, () =>
    row('tool_decided', { request_id: 'q', episode_id: 'e', decision: 'PERHAPS' }),
  );
  const { findings } = inTime(() => read([file], {}));
  expect(findings.filter(({ code }) => code === 'DECISION_INVALID')).toHaveLength(12_000);
});

it('not every prefix is tried for every start of an episode', () => {
  const profiles = Array.from({ length: 2_500 }, (_, n) =>
    fileOf(
      profile({
        tool_bridge: {
          ...{ enabled: true, protocol_version: 'TI1', nonce_prefix: `prefix-${n}` },
          ...{ max_args_size: 1000, max_result_size: 1000, tool_timeout_ms: 1000 },
        },
      }),
      `profile-${n}.json`,
    ),
  );
  const starts = rows(2_500, (n) =>
    row('episode_spawned', { episode_id: `e${n}`, session_id: 's', spawn_time_ns: '1700000000000000000' }),
  );
  const log = fileOf('\u27E6TI1 0123456789abcdef\u27E7 r tool e30\n', 'agent.log');
  const { findings } = inTime(() => read([...profiles, starts, log], {}));
  expect(findings.filter(({ rule }) => rule === 'AP-1').map(({ code }) => code)).toEqual([
    'NONCE_NOT_CONFIRMED',
  ]);
});

it('not every key that the files name is tried on every row', () => {
  const keys = rows(
    2_000,
    (n) => JSON.stringify({ public_hex: n.toString(16).padStart(64, '0') }),
    'keys.jsonl',
  );
  const ledger = rows(40, () => row('episode_spawned', { episode_id: 'e', session_id: 's' }));
  const { findings } = inTime(() => read([keys, ledger], {}));
  const told = findings.filter(({ code }) => code.startsWith('LEDGER_SIGNATURE'));
  expect(told.map(({ code, actual }) => `${code} ${actual}`)).toEqual([
    'LEDGER_SIGNATURES_NOT_CHECKED none for 40 rows',
  ]);
});

it('an execution of no stated episode without a receipt is told of once, however many episodes there are', () => {
  const file = rows(6, (n) =>
    n === 0
      ? row('tool_executed', { request_id: 'q', outcome: 'SUCCESS' })
      : row('episode_run_attributed', {
          ...{ work_id: 'W-1', episode_id: `e${n}`, session_id: `s${n}`, adapter_profile_hash: HASH },
        }),
  );
  const { findings } = episodeChecker.check([file], {});
  const missing = findings.filter(({ code, about }) => code === 'MISSING_ARTIFACT' && about === 'q');
  expect(missing).toHaveLength(1);
  expect(findings.filter(({ rule, code }) => rule === 'EP-3' && code === 'TOOL_FAILED')).toHaveLength(5);
});
