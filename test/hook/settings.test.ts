/** What else is in a host's settings stays, and what northroot wrote comes out again. */

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  HOOK_PROFILES,
  hookCommand,
  type HookName,
  installHooks,
  uninstallHooks,
} from '../../src/api/gate.js';

const HOSTS = Object.keys(HOOK_PROFILES) as HookName[];
const commandFor = (host: HookName): string =>
  hookCommand([
    '/usr/bin/node',
    '/opt/northroot/bin/northroot.js',
    'hook',
    host,
    '--ledger',
    "/home/o'n/l.jsonl",
  ]);

type Json = Record<string, unknown>;

describe.each(HOSTS)('%s', (host) => {
  const profile = HOOK_PROFILES[host];
  const install = (text?: string, more = ''): string =>
    installHooks(profile, text, commandFor(host) + more, 60);
  const uninstall = (text: string): string => uninstallHooks(profile, text);
  const format = (value: object): string => `${JSON.stringify(value, null, 2)}\n`;

  it('is called for each of its events', () => {
    const { hooks } = JSON.parse(install()) as { hooks: Json };
    expect(Object.keys(hooks)).toEqual(profile.events);
    for (const list of Object.values(hooks))
      expect(JSON.stringify(list)).toContain(`northroot.js hook ${host}`);
  });

  it('is installed once', () => {
    expect(install(install())).toBe(install());
    expect(install(install(undefined, ' --wait 10m'))).toBe(install());
  });

  it.each([
    ['nothing', {}],
    ['other settings', { model: 'm', permissions: { deny: ['Bash(rm *)'] }, empty: [] }],
    [
      'other hooks',
      { hooks: { [profile.decides]: [{ matcher: 'Bash', hooks: [{ type: 'command', command: 'x' }] }] } },
    ],
    ['an event of nothing', { hooks: { Odd: [] } }],
    [
      'other programs of a like name',
      { hooks: { Odd: [{ hooks: [{ command: `my-northroot hook ${host}` }] }] } },
    ],
    ['__proto__', JSON.parse('{"__proto__":{"a":1}}') as object],
  ])('leaves %s as it was', (_, settings) => {
    const before = format(settings);
    const during = JSON.parse(install(before)) as Json;
    expect(Object.keys(during)).toEqual([...new Set([...Object.keys(settings), 'hooks'])]);
    expect(uninstall(install(before))).toBe(before);
  });

  it('comes after other hooks of the same event', () => {
    const other = { matcher: 'Bash', hooks: [{ type: 'command', command: 'x' }], bash: 'x' };
    const { hooks } = JSON.parse(install(format({ hooks: { [profile.decides]: [other] } }))) as {
      hooks: Record<string, unknown[]>;
    };
    expect(hooks[profile.decides]).toHaveLength(2);
    expect(hooks[profile.decides]?.[0]).toEqual(other);
  });

  it('leaves anything as it was', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 })), (settings) => {
        const before = format(settings);
        try {
          expect(uninstall(install(before))).toBe(before);
        } catch (error) {
          expect(error).toMatchObject({ code: 'SETTINGS_INVALID' });
        }
      }),
    );
  });

  it('keeps the form of the file', () => {
    const before = '{\n\t"model": "m"\n}';
    expect(install(before)).toMatch(/^\{\n\t"model": "m",\n\t"hooks": \{\n\t\t/);
    expect(uninstall(install(before))).toBe(before);
    expect(uninstall('{"model":  "m"}')).toBe('{"model":  "m"}');
    const windows = '{\r\n  "model": "m"\r\n}\r\n';
    expect(install(windows)).not.toMatch(/[^\r]\n/);
    expect(uninstall(install(windows))).toBe(windows);
  });

  it.each([
    ['no JSON', '{"hooks":'],
    ['comments', '{} // mine'],
    ['no object', '[]'],
    ['a key twice', '{"a":1,"a":2}'],
    ['a number that would change', '{"a":12345678901234567890}'],
    ['hooks that are no object', '{"hooks":[]}'],
    ['an event that is no list', `{"hooks":{"${'Odd'}":{}}}`],
    ['nothing', ''],
  ])('refuses %s', (_, text) => {
    for (const change of [install, uninstall])
      expect(() => change(text)).toThrow(expect.objectContaining({ code: 'SETTINGS_INVALID' }));
  });
});

it.each<[HookName, object]>([
  ['claude-code', { disableAllHooks: true }],
  ['copilot', { version: 1, disableAllHooks: true }],
  ['gemini', { hooksConfig: { enabled: false } }],
  ['gemini', { hooksConfig: { disabled: ['other', 'northroot'] } }],
])('refuses settings of %s by which no hook would be called: %j', (host, off) => {
  const text = JSON.stringify(off);
  const profile = HOOK_PROFILES[host];
  const invalid = expect.objectContaining({ code: 'SETTINGS_INVALID' });
  expect(() => installHooks(profile, text, commandFor(host), 60)).toThrow(invalid);
  // To take northroot out is always possible.
  expect(uninstallHooks(profile, text)).toBe(text);
});

it('blocks where a hook of Claude Code was killed', () => {
  const { hooks } = JSON.parse(
    installHooks(HOOK_PROFILES['claude-code'], undefined, 'northroot hook claude-code', 60),
  ) as {
    hooks: Record<string, { hooks: Json[] }[]>;
  };
  expect(hooks['PreToolUse']?.[0]?.hooks[0]).toEqual({
    type: 'command',
    command: 'northroot hook claude-code',
    timeout: 60,
    onFailure: 'block',
  });
  expect(hooks['PostToolUse']?.[0]?.hooks[0]).not.toHaveProperty('onFailure');
});

it('tells Gemini CLI the time in milliseconds', () => {
  expect(installHooks(HOOK_PROFILES.gemini, undefined, 'northroot hook gemini', 60)).toContain(
    '"timeout": 60000',
  );
});

it('quotes for a shell', () => {
  expect(hookCommand(['a b', "it's", '$(x)', '-c', '/p/q.js'])).toBe(`'a b' 'it'\\''s' '$(x)' -c /p/q.js`);
});
