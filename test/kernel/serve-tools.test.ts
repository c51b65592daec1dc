/** A kernel's tools over MCP: decided, done, settled, and only then told; and what is left when one of these fails. */

import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { type KernelEvent, serveKernelTools, type ServeKernelToolsOptions } from '../../src/api/gate.js';
import type { Gate, GateOptions } from '../../src/gate/gate.js';
import { AGENT, filePlace } from '../agent/support.js';
import { openGate } from '../gate/support.js';
import { expectError, expectOk, Workshop } from '../cli/runner.js';
import { NorthrootError } from '../../src/base/error.js';
import { type Kernel, openKernel } from './support.js';
import type { GrantOptions } from '../../src/log/policy/draft-grant.js';

interface Answer {
  readonly id: unknown;
  readonly result?: { readonly content: [{ readonly text: string }]; readonly isError?: boolean };
  readonly error?: { readonly code: number };
}

interface Opened extends Kernel {
  readonly gate: Gate;
  readonly path: string;
  readonly events: KernelEvent[];
  /** Answers of these messages, served to the end of the input. */
  readonly say: (...messages: unknown[]) => Promise<Answer[]>;
}

const BOUNDS: Partial<GrantOptions> = { allowedTools: ['fs.*', 'exec'], meterCaps: { calls: 5 } };

async function open(
  bounds = BOUNDS,
  gateOptions: GateOptions = {},
  more: Partial<ServeKernelToolsOptions> = {},
): Promise<Opened> {
  const place = filePlace();
  const { gate } = await openGate(place, bounds, gateOptions);
  const kernel = await openKernel({ programs: ['/bin/sh'] });
  const events: KernelEvent[] = [];
  const say: Opened['say'] = async (...messages) => {
    const [input, output] = [new PassThrough(), new PassThrough()];
    let text = '';
    output.on('data', (piece: Buffer) => (text += piece.toString()));
    input.end(messages.map((each) => `${JSON.stringify(each)}\n`).join(''));
    await serveKernelTools({
      tools: kernel.tools,
      open: () => Promise.resolve(gate),
      principal: AGENT,
      howToApprove: (id) => `approve ${id}`,
      onEvent: (event) => void events.push(event),
      input,
      output,
      ...more,
    });
    return text
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Answer);
  };
  return { ...kernel, gate, path: place.path, events, say };
}

const call = (name: string, args: object, id: unknown = 1): object => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name, arguments: args },
});

/** The text that is told, marked where it is an error. */
function told({ result, error }: Answer): string {
  if (result === undefined) return `error ${error?.code}`;
  return `${result.isError === true ? '! ' : ''}${result.content[0].text}`;
}

/** What the ledger has of calls: tool, decision or outcome, code. */
function recorded(path: string): string[] {
  return readFileSync(path, 'utf8')
    .split('\n')
    .slice(0, -1)
    .flatMap((line) => {
      const { event } = JSON.parse(line) as { event: Record<string, never> };
      const {
        event_type: type,
        authorization,
        decision_code: code,
        outcome,
        error_code: error,
      } = event as {
        [name: string]: string & { action?: { tool_name: string } };
      };
      if (type === 'authorization' && authorization?.action !== undefined)
        return [`${authorization.action.tool_name} ${code}`];
      return type === 'execution' ? [`${outcome}${error === undefined ? '' : ` ${error}`}`] : [];
    });
}

describe('a call', () => {
  it('is decided, done and settled, and told', async () => {
    const { say, path, root } = await open();
    const answers = await say(
      call('fs_write', { path: 'a', content: 'hello' }),
      call('fs_read', { path: 'a' }),
      call('exec', { argv: ['sh', '-c', 'exit 3'] }),
      call('fs_read', { path: 'none' }),
    );
    expect(answers.map(told).slice(1)).toEqual([
      'hello',
      '! {"error":"EXIT_STATUS","status":3,"stdout":"","stderr":""}',
      '! {"error":"FILE_NOT_FOUND"}',
    ]);
    expect(recorded(path)).toEqual([
      ...['fs.write ALLOW', 'success', 'fs.read ALLOW', 'success'],
      ...['exec ALLOW', 'failure EXIT_STATUS', 'fs.read ALLOW', 'failure FILE_NOT_FOUND'],
    ]);
    expect(readFileSync(path, 'utf8')).not.toContain('hello');
    expect(readFileSync(path, 'utf8')).toContain('"code":"KERNEL"');
    expect(readFileSync(path, 'utf8')).toContain('{"check":"isolation","code":"NONE","result":"pass"}');
    expect(readdirSync(root)).toEqual(['a']);
  });

  it('that is denied touches nothing, and is recorded', async () => {
    const { say, path, root } = await open({ allowedTools: ['fs.read'], meterCaps: { calls: 5 } });
    const answers = await say(
      call('fs_write', { path: 'a', content: 'x' }),
      call('fs_read', { path: '../secret' }),
      call('fs_read', { path: 'a', x: 1 }),
      call('net_fetch', { url: 'https://example.com/' }),
      call('fs.read', { path: 'a' }),
    );
    expect(answers.map((each) => told(each).split('"')[3] ?? told(each))).toEqual([
      ...['TOOL_NOT_ALLOWED', 'PATH_OUTSIDE_ROOT', 'INVALID_ARGUMENTS', 'error -32602', 'error -32602'],
    ]);
    expect(recorded(path)).toEqual([
      ...['fs.write TOOL_NOT_ALLOWED', 'fs.read PATH_OUTSIDE_ROOT', 'fs.read INVALID_ARGUMENTS'],
    ]);
    expect(readdirSync(root)).toEqual([]);
  });

  it('of an id that was there is another call', async () => {
    const { say, path, root } = await open();
    await say(
      call('fs_write', { path: 'a', content: '1' }, 7),
      call('fs_write', { path: 'a', content: '1' }, 7),
    );
    expect(recorded(path)).toEqual(['fs.write ALLOW', 'success', 'fs.write ALLOW', 'success']);
    await say(call('fs_write', { path: 'b', content: '1' }, 7));
    expect(readdirSync(root)).toEqual(['a', 'b']);
    // Beyond the cap nothing is done.
    await say(...[1, 2, 3].map(() => call('fs_write', { path: 'c', content: '1' })));
    expect(recorded(path).slice(-1)).toEqual(['fs.write RESERVATION_OVER_CAP']);
  });

  it('that needs an approval waits for it', async () => {
    const { say, path } = await open({
      ...BOUNDS,
      approvals: [{ tools: ['exec'], approvers: ['human:olga'] }],
    });
    const [answer] = await say(call('exec', { argv: ['sh', '-c', 'echo x'] }));
    expect(told(answer)).toContain('approve sha-256:');
    expect(recorded(path)).toEqual(['exec APPROVAL_REQUIRED']);
  });

  it('that an adviser rewrites is planned anew', async () => {
    const rewrite = (params: object): GateOptions => ({
      advisers: [{ name: 'r', advise: () => ({ effect: 'rewrite', params }) }],
    });
    const asked = call('fs_read', { path: 'a' });
    const one = await open(BOUNDS, rewrite({ path: 'a', limit: 1 }));
    writeFileSync(join(one.root, 'a'), 'AB');
    expect((await one.say(asked)).map(told)).toEqual(['A']);
    for (const [path, code] of [
      ['../secret', 'PATH_OUTSIDE_ROOT'],
      // What the grants did not judge.
      ['b', 'RESOURCE_NOT_GRANTED'],
    ] as const) {
      const two = await open(BOUNDS, rewrite({ path }));
      expect(told((await two.say(asked))[0])).toContain(code);
      expect(recorded(two.path)).toEqual(['fs.read ALLOW', `failure ${code}`]);
    }
  });

  it('whose end cannot be recorded gives no result', async () => {
    const { say, gate, root, events } = await open();
    writeFileSync(join(root, 'a'), 'hello');
    gate.settle = () => Promise.reject(new NorthrootError('LEDGER_FAILED', 'x'));
    const [answer] = await say(call('fs_read', { path: 'a' }));
    expect(told(answer)).toMatch(/^! .*LEDGER_FAILED/s);
    expect(told(answer)).not.toContain('hello');
    expect(events.at(-1)).toEqual({ event: 'unsettled', tool: 'fs.read', code: 'LEDGER_FAILED' });
  });

  it('that nobody can decide on does nothing', async () => {
    const { say, root } = await open(
      BOUNDS,
      {},
      {
        open: () => Promise.reject(new NorthrootError('LEDGER_LOCKED', 'x')),
      },
    );
    expect(told((await say(call('fs_write', { path: 'a', content: 'x' })))[0])).toContain('LEDGER_LOCKED');
    expect(readdirSync(root)).toEqual([]);
  });

  it('keeps what it gave, where it is to', async () => {
    const { say, path } = await open(BOUNDS, { attach: true }, { attach: true });
    await say(call('exec', { argv: ['sh', '-c', 'echo kept'] }));
    const kept = readdirSync(`${path}.contents`).map((name) =>
      readFileSync(join(`${path}.contents`, name), 'utf8'),
    );
    expect(kept.sort()).toEqual([
      '{"argv":["sh","-c","echo kept"]}',
      '{"status":0,"stdout":"kept\\n","stderr":""}',
    ]);
  });

  it('that runs when it is stopped ends, and is settled', async () => {
    const stop = new AbortController();
    const { say, path } = await open(BOUNDS, {}, { signal: stop.signal });
    setTimeout(() => stop.abort(), 500);
    await say(call('exec', { argv: ['sh', '-c', 'sleep 600'] }));
    expect(recorded(path)).toEqual(['exec ALLOW', 'failure CANCELLED']);
  });
});

describe('northroot mcp --serve-tools', () => {
  const shop = new Workshop();

  it('does so, and keeps the ledger out of the workspace', () => {
    expectOk(shop.run(['init', 'l.jsonl']));
    expectOk(shop.run(['grant', 'l.jsonl', '--to', 'agent:mcp', '--tool', 'fs.*', '--cap', 'calls=2']));
    mkdirSync(shop.path('work'));
    const input = `${JSON.stringify(call('fs_write', { path: 'a', content: 'x' }))}\n`;
    const options = ['mcp', 'l.jsonl', '--serve-tools'];
    const out = expectOk(shop.run([...options, '--workspace', 'work', '--program', 'cat'], { input }));
    expect(out).toContain('"id":1');
    expect(existsSync(shop.path('work/a'))).toBe(true);
    expectError(shop.run([...options, '--workspace', '.']), 2, 'ROOT_HOLDS_KEPT_OUT');
    expectError(shop.run([...options, '--workspace', 'none']), 2, 'FILE_NOT_FOUND');
    expectError(
      shop.run([...options, '--workspace', 'work', '--program', 'no-such']),
      2,
      'PROGRAM_NOT_FOUND',
    );
  });

  it.each([
    ['--serve-tools'],
    ['--serve-tools', '--workspace', 'work', '--gate'],
    ['--serve-tools', '--workspace', 'work', '--server', 'x'],
    ['--serve-tools', '--workspace', 'work', '--ttl', '5m'],
    ['--serve-tools', '--workspace', 'work', '--fail', 'open'],
    ['--serve-tools', '--workspace', 'work', '--', 'true'],
    ['--serve-tools', '--program', 'cat'],
    ['--serve-tools', '--host', 'a b'],
    ['--serve-tools', '--workspace', 'work', '--max-output', '1KiB'],
    ['--serve-tools', '--workspace', 'work', '--env', '1=x'],
    ['--workspace', 'work', '--server', 'x', '--', 'true'],
    ['--isolation', 'none', '--gate'],
  ])('%j %j %j %j is misuse', (...options) => {
    expectError(shop.run(['mcp', 'l.jsonl', ...options]), 2, 'USAGE');
  });
});
