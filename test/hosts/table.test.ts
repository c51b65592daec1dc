/** Tables where JSON is read: told of as such, once, and nothing else is taken for one. */

import { describe, expect, it } from 'vitest';
import { recogniseHost } from '../../src/hosts/shared/reconcile-sources.js';
import { HOSTS } from '../../src/hosts/shared/registry.js';
import { litellm } from '../../src/hosts/litellm/index.js';
import { found } from './samples.js';

const file = (text: string) => ({ name: 'f', bytes: Buffer.from(text) });

// Logs of a terminal may hold any text.
const hosts = HOSTS.filter(({ name }) => name !== 'apm2');

describe.each(hosts.map((host) => [host.name, host] as const))('%s', (_name, host) => {
  it.each([
    'request_id,spend,startTime\nr1,0.5,2026-03-01 10:00:00\nr2,0.5,2026-03-01 10:01:00\n',
    '"request_id";"spend"\r\n"r1";0.5\r\n',
    'request_id\tspend\nr1\t0.5\n',
    '\ufefftype,uuid\nuser,u1',
    'a,b\n"{""x"":1}",2\n',
  ])('calls a table one: %j', (text) => {
    const { items, findings } = host.read([file(text)]);
    expect(items).toMatchObject([{ fate: 'dropped', reason: 'TABLE' }]);
    expect(findings.map(({ code }) => code)).toContain('TABLE');
  });

  it.each([
    '{"a":1,"b":2}\n',
    '[1,2]\n',
    '"a,b"\n',
    '"b":1,"c":2}\n{"a":1}\n',
    'note, see below\n{"a":1}\n',
    '',
  ])('and nothing else: %j', (text) => {
    expect(found(host.read([file(text)]))).not.toContain('INPUT TABLE');
  });
});

it('says so where no host takes it for its own', () => {
  const table = file('request_id,spend\nr1,0.5\n');
  expect(litellm.recognises(table)).toBe(false);
  expect(() => recogniseHost(table, HOSTS)).toThrow(
    expect.objectContaining({
      code: 'HOST_UNKNOWN',
      hint: expect.stringContaining('CSV') as unknown,
    }) as Error,
  );
});
