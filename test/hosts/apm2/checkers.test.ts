/** The two checkers: profiles against their schema and address, episodes against what conformance must prove. */

import { describe, expect, it } from 'vitest';
import { verdictOf } from '../../../src/hosts/shared/account.js';
import { adapterProfileChecker, episodeChecker } from '../../../src/hosts/apm2/index.js';
import { codesOf, episode, fileOf, hashOf, KEYS, profile, receipt, type Parts } from './kit.js';

type Members = Readonly<Record<string, unknown>>;

function checkProfile(text: string, hash?: string): string[] {
  const aids = hash === undefined ? {} : { aids: { hash: fileOf(`${hash}\n`, 'hash') } };
  return codesOf(adapterProfileChecker.check([fileOf(text, 'profile.json')], aids));
}

const BUDGET = { max_tool_calls: 1, max_tokens: 1, max_wall_clock_ms: 1, max_evidence_bytes: 1 };
const BRIDGE = {
  enabled: true,
  protocol_version: 'TI1',
  nonce_prefix: '',
  max_args_size: 1,
  max_result_size: 1,
  tool_timeout_ms: 1,
};

const PROFILES: readonly (readonly [string, Members, readonly string[]])[] = [
  ['nothing wrong', {}, []],
  ['no tool bridge', { tool_bridge: undefined }, []],
  ['another schema', { schema: 'apm2.agent_adapter_profile.v2' }, ['PR-1 VALUE_UNKNOWN']],
  ['a member missing', { cwd: undefined }, ['PR-1 MEMBER_MISSING']],
  ['a member too many', { model: 'x' }, ['PR-1 MEMBER_UNKNOWN']],
  ['an environment that is an object', { env_template: { A: 'b' } }, ['PR-1 TYPE_MISMATCH']],
  ['an invalid name in the environment', { env_template: [['A-B', 'c']] }, ['PR-1 ENV_NAME_INVALID']],
  ['an unknown mode', { adapter_mode: 'native' }, ['PR-1 VALUE_UNKNOWN']],
  ['the spelling of the RFC', { input_mode: 'stream-json' }, ['PR-1 SPELLING']],
  ['an empty id', { profile_id: '' }, ['PR-1 EMPTY']],
  ['a long id', { profile_id: 'ä'.repeat(129) }, ['PR-2 TOO_LONG']],
  ['many arguments', { args_template: Array<string>(257).fill('') }, ['PR-2 TOO_MANY']],
  [
    'calls beyond 32 bits',
    { budget_defaults: { ...BUDGET, max_tool_calls: 2 ** 32 } },
    ['PR-2 OUT_OF_RANGE'],
  ],
  ['a timeout of 0', { tool_bridge: { ...BRIDGE, tool_timeout_ms: 0 } }, ['PR-2 OUT_OF_RANGE']],
  [
    'arguments beyond 100 MiB',
    { tool_bridge: { ...BRIDGE, max_args_size: 104_857_601 } },
    ['PR-2 OUT_OF_RANGE'],
  ],
  ['.. in the command', { command: '/usr/../bin/agent' }, ['PR-3 PATH_TRAVERSAL']],
  ['.. in the directory', { cwd: 'a/..' }, ['PR-3 PATH_TRAVERSAL']],
  ['an invalid expression', { version_probe: { command: 'a', regex: '2\\.1(' } }, ['PR-4 REGEX_INVALID']],
  ['any version', { version_probe: { command: 'a', regex: '(\\d+\\.\\d+)' } }, ['PR-4 VERSION_NOT_PINNED']],
];

describe('adapter-profile', () => {
  it.each(PROFILES)('%s', (_, edits, codes) => {
    expect(checkProfile(profile(edits))).toEqual(codes);
  });

  it('says the content address, and which spelling has it', () => {
    const text = profile();
    const spaced = JSON.stringify(JSON.parse(text), null, 2);
    for (const each of [text, `${text}\n`, spaced]) {
      const { findings } = adapterProfileChecker.check([fileOf(each, 'p')]);
      expect(findings.find(({ code }) => code === 'CONTENT_ADDRESS')?.actual).toBe(hashOf(text));
    }
    expect(checkProfile(spaced)).toEqual(['PR-5 NOT_CANONICAL']);
    expect(checkProfile('{"x":1.5}')).toContain('PR-5 NO_CANONICAL_FORM');
    expect(checkProfile('{"x":')).toEqual(['PR-5 NO_CANONICAL_FORM']);
    expect(checkProfile('[]')).toContain('PR-1 NOT_AN_OBJECT');
  });

  it('chooses by the hash and nothing else', () => {
    const [text, other] = [profile(), profile({ cwd: '/other' })];
    expect(checkProfile(text, hashOf(text))).toEqual([]);
    expect(checkProfile(text, hashOf(other))).toEqual(['PR-6 HASH_MISMATCH']);
    expect(checkProfile(text, 'demo-agent-v1')).toEqual(['PR-6 AID_NOT_READABLE']);
  });
});

function checkEpisode(parts: Parts): string[] {
  return codesOf(episodeChecker.check(episode(parts), KEYS));
}

const blocked = (reason_code: string) => ({
  type: 'review_blocked_recorded',
  payload: { blocked_id: 'b-1', reason_code },
});

describe('episode', () => {
  it('passes where all of it is proved', () => {
    const report = episodeChecker.check(episode(), KEYS);
    expect(codesOf(report)).toEqual([]);
    expect(verdictOf(report)).toBe('ok');
    expect(episodeChecker.check([]).items).toEqual([]);
  });

  it.each<[string, Parts, string[]]>([
    [
      'no version is pinned',
      { profile: profile({ version_probe: { command: 'a', regex: '\\d+' } }) },
      ['EP-1 ADAPTER_MISCONFIGURED', 'EP-7 NOT_FAILED_CLOSED'],
    ],
    [
      'the agent asks for nothing',
      { log: 'Thinking.\n{"verdict":\n"approve"}\n' },
      ['EP-2 ADAPTER_PROTOCOL_VIOLATION', 'EP-7 NOT_FAILED_CLOSED'],
    ],
    [
      'nothing is recorded at the end',
      { events: (e) => Object.values(e).filter(({ type }) => type !== 'review_receipt_recorded') },
      ['EP-5 MISSING_ARTIFACT', 'EP-7 REVIEW_BLOCKED_MISSING'],
    ],
    [
      'the review is blocked',
      {
        events: (e) => [
          ...Object.values(e).filter(({ type }) => type !== 'review_receipt_recorded'),
          blocked('ADAPTER_PROTOCOL_VIOLATION'),
        ],
      },
      ['EP-5 ADAPTER_PROTOCOL_VIOLATION'],
    ],
    [
      'blocked for no known reason',
      {
        events: (e) => [
          ...Object.values(e).filter(({ type }) => type !== 'review_receipt_recorded'),
          blocked('BORED'),
        ],
      },
      ['EP-7 REASON_UNKNOWN'],
    ],
    [
      'the review names what is not there',
      {
        events: (e) =>
          Object.values({
            ...e,
            reviewed: {
              ...e.reviewed,
              payload: { ...e.reviewed.payload, artifact_bundle_hash: '77'.repeat(32) },
            },
          }),
      },
      ['EP-5 MISSING_ARTIFACT', 'EP-7 NOT_FAILED_CLOSED'],
    ],
    [
      'a receipt is forged, and the review stands',
      { receipts: [receipt({}, new Uint8Array(64).fill(7))] },
      ['AP-4 RECEIPT_SIGNATURE_INVALID', 'EP-3 TOOL_FAILED', 'EP-7 NOT_FAILED_CLOSED'],
    ],
  ])('%s', (_, parts, codes) => {
    expect(checkEpisode(parts)).toEqual(codes);
  });

  it('wants a JSON object at the end', () => {
    const files = episode().map((file) =>
      file.name === 'agent.log' ? fileOf(`${Buffer.from(file.bytes).toString()}Bye.\n`, 'agent.log') : file,
    );
    expect(codesOf(episodeChecker.check(files, KEYS))).toEqual([
      'EP-4 ADAPTER_PROTOCOL_VIOLATION',
      'EP-7 NOT_FAILED_CLOSED',
    ]);
  });

  it('fails where there is hardly anything', () => {
    expect(codesOf(episodeChecker.check([fileOf('hello\n', 'a.log')]))).toEqual([
      'EP-6 ADAPTER_MISCONFIGURED',
      'EP-5 MISSING_ARTIFACT',
      'EP-7 REVIEW_BLOCKED_MISSING',
    ]);
  });
});
