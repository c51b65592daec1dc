/** `northroot authorize` and `grant --parent`: what is refused is recorded as that, or not at all. */

import { beforeEach, describe, expect, it } from 'vitest';
import { expectError, expectOk, parse, Workshop, type ResultJson } from './runner.js';

const shop = new Workshop();
let L: string;
let count = 0;

beforeEach(() => {
  L = `${(count += 1)}.jsonl`;
  expectOk(shop.run(['init', L]));
});

function grant(...args: string[]): string {
  return parse<ResultJson>(expectOk(shop.run(['grant', L, '--cap', 'usd=5', ...args]))).event_id;
}

interface Answer {
  readonly status: number | null;
  readonly code: string;
  readonly id: string;
  readonly recorded: string;
}

function authorize(...args: string[]): Answer {
  const asked = ['authorize', L, '--principal', 'agent:a1', '--tool', 'fs.read'];
  const { status, stdout } = shop.run([...asked, ...args]);
  const answer = parse<{ decision_code: string; event_id: string; status: string }>(stdout);
  return { status, code: answer.decision_code, id: answer.event_id, recorded: answer.status };
}

describe('authorize', () => {
  it('answers by its exit status, and records both answers', () => {
    grant('--to', 'agent:a1', '--tool', 'fs.*');
    const allowed = authorize('--reserve', 'usd=5', '--', 'cat', 'x');
    expect(allowed).toMatchObject({ status: 0, code: 'ALLOW', recorded: 'appended' });
    const denied = authorize('--reserve', 'usd=0.01', '--', 'cat', 'x');
    expect(denied).toMatchObject({ status: 3, code: 'RESERVATION_OVER_CAP', recorded: 'appended' });
    const ids = shop.records(L).map(({ event }) => `sha-256:${event.event_id.b64}`);
    expect(ids.slice(-2)).toEqual([allowed.id, denied.id]);
    expectOk(shop.run(['verify', L]));
  });

  it('says which units nothing caps, of what is reserved and of what was used', () => {
    grant('--to', 'agent:a1', '--tool', 'fs.*');
    const ask = ['authorize', L, '--principal', 'agent:a1', '--tool', 'fs.read', '--reserve'];
    const run = shop.run([...ask, 'usd=1,calls=1,time.ms=5', '--', 'true']);
    expectOk(run);
    expect(run.stderr).not.toContain('METER_UNCAPPED');
    const { event_id: id } = parse<ResultJson>(run.stdout);
    const used = shop.run(['record', L, '--auth', id, '--meter', 'usd=1,uds=1', '--', 'true']);
    for (const said of [used, shop.run([...ask, 'uds=1,usd=1', '--', 'true'])]) {
      expect(said.status).toBe(0);
      expect(said.stderr).toMatch(/METER_UNCAPPED: .*uds/);
    }
  });

  it('gives a repeated request its answer, and records nothing more', () => {
    grant('--to', 'agent:a1', '--tool', 'fs.*');
    const ask = (): Answer => authorize('--reserve', 'usd=3', '--request-key', 'k1', '--', 'cat');
    const first = ask();
    const before = shop.read(L);
    expect(ask()).toEqual({ ...first, recorded: 'exists' });
    expect(shop.read(L)).toBe(before);
  });

  it('denies under a grant that is suspended above, and under that of another', () => {
    const root = grant('--to', 'agent:boss', '--tool', 'fs.*');
    const part = grant('--to', 'agent:a1', '--parent', root);
    expectOk(shop.run(['suspend', L, root, '--reason', 'X']));
    expect(authorize('--grant', part, '--', 'cat')).toMatchObject({ status: 3, code: 'GRANT_REVOKED' });
    expectOk(shop.run(['resume', L, root, '--reason', 'X']));
    expect(authorize('--grant', root, '--', 'cat')).toMatchObject({ status: 3, code: 'PRINCIPAL_MISMATCH' });
    expect(authorize('--grant', part, '--', 'cat')).toMatchObject({ status: 0 });
    expectOk(shop.run(['verify', L]));
  });

  it.each([
    ['no parameters', []],
    ['two kinds of parameters', ['--params', '-', '--', 'cat']],
    ['a malformed wait', ['--wait', '10', '--', 'cat']],
    ['a wait that no timer takes', ['--wait', '999999h', '--', 'cat']],
  ])('refuses %s, and records nothing', (_, args) => {
    const before = shop.read(L);
    const asked = ['authorize', L, '--principal', 'agent:a1', '--tool', 'fs.read'];
    expectError(shop.run([...asked, ...args]), 2, 'USAGE');
    expect(shop.read(L)).toBe(before);
  });
});

describe('grant --parent', () => {
  const part = (parent: string): string[] => ['grant', L, '--to', 'agent:a2', '--parent', parent];

  it('hands nothing on, three deep either, of what is suspended or revoked', () => {
    const root = grant('--to', 'agent:a1', '--tool', 'fs.*');
    const child = grant('--to', 'agent:a2', '--parent', root);
    const deep = grant('--to', 'agent:a3', '--parent', child);
    expectOk(shop.run(['suspend', L, root, '--reason', 'X']));
    const before = shop.read(L);
    for (const each of [root, child, deep]) expectError(shop.run(part(each)), 1, 'GRANT_REVOKED');
    expect(shop.read(L)).toBe(before);
    expectOk(shop.run(['resume', L, root, '--reason', 'X']));
    expectOk(shop.run(part(deep)));
    expectOk(shop.run(['revoke', L, child, '--reason', 'X']));
    expectError(shop.run(part(deep)), 1, 'GRANT_REVOKED');
    expectOk(shop.run(part(root)));
    expectOk(shop.run(['verify', L]));
  });

  it('hands nothing on below the depth that a grant above allows', () => {
    const root = grant('--to', 'agent:a1', '--tool', 'fs.*', '--max-depth', '1');
    const child = grant('--to', 'agent:a2', '--parent', root);
    const before = shop.read(L);
    expectError(shop.run(part(child)), 1, 'DELEGATION_EXCEEDED');
    expect(shop.read(L)).toBe(before);
    expectOk(shop.run(['verify', L]));
  });
});
