/** `northroot mcp` between a client and a server that is a script: what passes, in which order, and what is left when one of them ends. */

import { describe, expect, it, onTestFinished } from 'vitest';
import { expectError, expectOk, Workshop, type Running } from '../../cli/runner.js';
import { call, result } from './support.js';
import { SCRIPTED_SERVER } from './scripted-server.js';

const shop = new Workshop();
let count = 0;

interface Session {
  readonly ledger: string;
  readonly running: Running;
  readonly say: (...messages: unknown[]) => Promise<void>;
  /** The first message of the server that fits; waits for it. */
  readonly hear: (fits: (message: Record<string, never>) => boolean) => Promise<Record<string, never>>;
  readonly answer: (id: unknown) => Promise<Record<string, never>>;
  readonly heard: () => Record<string, never>[];
}

function makeLedger(...more: string[]): string {
  count += 1;
  const ledger = `l${count}.jsonl`;
  expectOk(shop.run(['init', ledger]));
  expectOk(
    shop.run(['grant', ledger, '--to', 'agent:mcp', '--tool', 'mcp.s.*', '--cap', 'calls=50', ...more]),
  );
  return ledger;
}

function start(ledger: string, options: readonly string[] = [], server: readonly string[] = []): Session {
  shop.write('server.mjs', SCRIPTED_SERVER);
  shop.write('seen.log', '');
  const command = [process.execPath, 'server.mjs', ...server];
  const running = shop.start(['mcp', ledger, '--server', 's', ...options, '--', ...command], {
    NORTHROOT_KEY: shop.path(`${ledger}.key`),
  });
  onTestFinished(async () => {
    running.kill('SIGKILL');
    await running.end();
  });
  const heard = (): Record<string, never>[] =>
    running.stdout
      .split('\n')
      .slice(0, -1)
      .flatMap((line) => {
        try {
          return [JSON.parse(line) as Record<string, never>];
        } catch {
          return [];
        }
      });
  const hear: Session['hear'] = (fits) =>
    expect
      .poll(() => heard().find(fits), WAIT)
      .toBeTruthy()
      .then(() => heard().find(fits)!);
  return {
    ledger,
    running,
    heard,
    hear,
    answer: (id) => hear((message) => message['id'] === id && !('method' in message)),
    say: (...messages) =>
      running.feed(
        messages.map((each) => `${typeof each === 'string' ? each : JSON.stringify(each)}\n`).join(''),
      ),
  };
}

const WAIT = { timeout: 100_000, interval: 20 };

/** How calls ended, in the order of the ledger. */
function story(ledger: string): string[] {
  return shop
    .records(ledger)
    .flatMap(({ event }) => {
      const { event_type: type, decision, outcome, error_code: code } = event as Record<string, string>;
      if (type === 'authorization') return [decision ?? ''];
      return type === 'execution' ? [[outcome, code].filter(Boolean).join(' ')] : [];
    })
    .slice(1);
}

function seen(): string[] {
  return shop.lines('seen.log').map((line) => line.trim());
}

async function end(session: Session, status: number): Promise<void> {
  session.running.endInput();
  expect((await session.running.end()).status).toBe(status);
  expectOk(shop.run(['verify', '--quiet', session.ledger]));
}

describe('northroot mcp', () => {
  it('lets pass what is no call, decides on calls, and ends as the server does', async () => {
    const ledger = makeLedger();
    const session = start(ledger, [], ['4']);
    const { say, answer } = session;
    await say({ jsonrpc: '2.0', id: 0, method: 'server/discover', params: {} });
    expect(await answer(0)).toMatchObject({ error: { code: -32601 } });
    await say({ jsonrpc: '2.0', id: 'i', method: 'initialize', params: {} });
    await answer('i');
    await say(
      { jsonrpc: '2.0', method: 'notifications/initialized' },
      { jsonrpc: '2.0', id: 1, method: 'tools/list' },
    );
    expect(await answer(1)).toMatchObject({ result: { tools: [{ name: 'echo' }] } });
    await say(
      call(2, 'echo', { m: 'x' }),
      call(3, 'progress', {}, { _meta: { progressToken: 'p' } }),
      call(4, 'env'),
    );
    expect(await answer(2)).toEqual(result(2, { content: [{ type: 'text', text: '{"m":"x"}' }] }));
    await answer(3);
    // What this program has for itself is not the server's.
    expect(await answer(4)).toEqual(result(4, { content: [{ type: 'text', text: '' }] }));
    expect(session.heard().flatMap((each) => each['params'] ?? [])).toEqual(
      [1, 2, 3].map((progress) => ({ progressToken: 'p', progress })),
    );
    await end(session, 4);
    expect(story(ledger)).toEqual(['allow', 'allow', 'allow', 'success', 'success', 'success'].sort());
    expect(seen()).toEqual([
      'server/discover',
      'initialize',
      'notifications/initialized',
      'tools/list',
      'tools/call echo',
      'tools/call progress',
      'tools/call env',
    ]);
  });

  it('never gives the server what is denied, and keeps a cap over calls that come at once', async () => {
    const ledger = makeLedger('--cap', 'usd=0.3');
    const session = start(ledger, ['--reserve', 'usd=0.1']);
    await session.say(...Array.from({ length: 5 }, (_, n) => call(n, 'hold')), call(9, 'release'));
    for (let id = 0; id < 5; id += 1)
      if (id > 2) expect(await session.answer(id)).toMatchObject({ result: { isError: true } });
    expect(await session.answer(9)).toMatchObject({ result: { isError: true } });
    // The answers to those denied do not wait for the server to have read the others.
    await expect.poll(seen, WAIT).toHaveLength(3);
    await end(session, 0);
    expect(seen()).toEqual(['tools/call hold', 'tools/call hold', 'tools/call hold']);
    expect(story(ledger).slice(6)).toEqual([
      'unknown MCP_CLOSED',
      'unknown MCP_CLOSED',
      'unknown MCP_CLOSED',
    ]);
  });

  it('lets answers, notifications and other calls pass one that waits for approval', async () => {
    const ledger = makeLedger('--approve-tool', 'mcp.s.hold', '--approver', 'human:olga');
    const session = start(ledger, ['--wait', '10m']);
    await session.say(call(1, 'hold'), call(2, 'echo', { a: 1 }), call(3, 'elicit'));
    await session.answer(2);
    await session.hear((message) => message['method'] === 'elicitation/create');
    await session.say(result(1, { action: 'accept' }), { jsonrpc: '2.0', id: 4, method: 'ping' });
    expect(await session.answer(3)).toMatchObject({ result: { content: [{ text: '{"action":"accept"}' }] } });
    await session.answer(4);
    expect(seen()).not.toContain('tools/call hold');
    await expect.poll(() => session.running.stderr, WAIT).toContain('waits for approval by human:olga');
    const [, id = ''] = /northroot approve \S+ (sha-256:\S+)/.exec(session.running.stderr) ?? [];
    expectOk(shop.run(['approve', ledger, id, '--principal', 'human:olga']));
    await expect.poll(seen, WAIT).toContain('tools/call hold');
    await session.say(call(5, 'release'));
    await session.answer(1);
    await end(session, 0);
  });

  it('is not deceived by a server that answers twice, to others, in pieces, or in what is no Unicode', async () => {
    const ledger = makeLedger();
    const session = start(ledger);
    await session.say(
      call(1, 'twice'),
      call(2, 'unknown'),
      call(3, 'noise'),
      call(4, 'latin'),
      call(5, 'split'),
    );
    for (const id of [1, 2, 3, 5]) await session.answer(id);
    expect(session.heard().filter(({ id }) => id === 1)).toHaveLength(1);
    expect(session.heard().filter(({ id }) => (id as unknown) === 99 || (id as unknown) === '2')).toEqual([]);
    expect(session.running.stdout).toContain('free text\n\n{"jsonrpc":"2.0","method":"notifications/x"\n');
    await end(session, 0);
    expect(story(ledger).filter((each) => each !== 'allow')).toEqual(Array(5).fill('success'));
  });

  it('answers for a message that is too long, and goes on', async () => {
    const ledger = makeLedger();
    const session = start(ledger, ['--max-message', '64KiB']);
    await session.say(
      call(1, 'endless', { bytes: 3_000_000 }),
      call(2, 'huge', { bytes: 3_000_000 }),
      call(3, 'huge', { bytes: 60_000 }),
    );
    await session.answer(1);
    expect(await session.answer(2)).toMatchObject({ error: { code: -32603 } });
    expect(await session.answer(3)).toMatchObject({ result: {} });
    await session.say(JSON.stringify(call(4, 'echo', { x: 'x'.repeat(70_000) })), call(5, 'echo'));
    expect(await session.answer(4)).toMatchObject({ error: { code: -32600 } });
    await session.answer(5);
    await end(session, 0);
    expect(story(ledger).filter((each) => each.startsWith('unknown'))).toEqual(['unknown MCP_TOO_LONG']);
  });

  it('passes what is large, both ways', async () => {
    const ledger = makeLedger();
    const session = start(ledger);
    const x = 'x'.repeat(4_000_000);
    await session.say(call(1, 'echo', { x }), call(2, 'huge', { bytes: 4_000_000 }));
    for (const id of [1, 2])
      expect(JSON.stringify(await session.answer(id)).length).toBeGreaterThan(4_000_000);
    await end(session, 0);
  });

  it.each([
    ['exit', 5],
    ['kill', 137],
  ])('settles as unknown what a server leaves that ends by %s', async (how, status) => {
    const ledger = makeLedger();
    const session = start(ledger);
    await session.say(call(1, 'hold'), call(2, how));
    expect((await session.running.end()).status).toBe(status);
    expect(story(ledger)).toEqual(['allow', 'allow', 'unknown MCP_CLOSED', 'unknown MCP_CLOSED']);
    expectOk(shop.run(['verify', '--quiet', ledger]));
  });

  it('ends a server that reads no more', async () => {
    const ledger = makeLedger();
    const session = start(ledger);
    await session.say(call(1, 'deaf'));
    await expect.poll(seen, WAIT).toEqual(['tools/call deaf']);
    void session.say(
      ...Array.from({ length: 40 }, (_, n) => call(n + 2, 'echo', { x: 'x'.repeat(100_000) })),
    );
    expect((await session.running.end()).status).toBe(9);
    expectOk(shop.run(['verify', '--quiet', ledger]));
  });

  it('ends a server that ignores the end of its input, and SIGTERM', async () => {
    const ledger = makeLedger();
    const session = start(ledger, [], ['stubborn']);
    await session.say(call(1, 'hold'));
    await expect.poll(seen, WAIT).toEqual(['tools/call hold']);
    await end(session, 137);
    expect(story(ledger)).toEqual(['allow', 'unknown MCP_CLOSED']);
  });

  it('ends the server when it is told to stop, and settles', async () => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      const ledger = makeLedger();
      const session = start(ledger);
      await session.say(call(1, 'hold'));
      await expect.poll(seen, WAIT).toEqual(['tools/call hold']);
      session.running.kill(signal);
      // By the signal, or by the end of its input, whichever it sees first.
      expect([0, 9]).toContain((await session.running.end()).status);
      expect(story(ledger)).toEqual(['allow', 'unknown MCP_CLOSED']);
    }
  });

  it('that is killed leaves a ledger that verifies, in which its open call is found', async () => {
    const ledger = makeLedger();
    const session = start(ledger);
    await session.say(call(1, 'echo'), call(2, 'hold'));
    await session.answer(1);
    await expect.poll(seen, WAIT).toContain('tools/call hold');
    session.running.kill('SIGKILL');
    await session.running.end();
    expectOk(shop.run(['verify', '--quiet', ledger]));
    const { starts } = JSON.parse(expectOk(shop.run(['budget', ledger, '--format', 'json']))) as {
      starts: object[];
    };
    expect(starts.at(-1)).toMatchObject({ tool_name: 'mcp.s.hold', principal_id: 'agent:mcp' });
    // The answer to the other may have passed before it was settled.
    expect(starts.length + story(ledger).filter((each) => each === 'success').length).toBe(2);
    expectOk(shop.run(['abandon', ledger, '--older-than', '1s']));
    // Another tap goes on with the same ledger.
    const other = start(ledger);
    await other.say(call(1, 'echo'));
    await other.answer(1);
    await end(other, 0);
  });

  it('settles the calls of a killed one as unknown, after their end', async () => {
    const ledger = makeLedger();
    const killed = start(ledger, ['--ttl', '1s']);
    await killed.say(call(1, 'hold'));
    await expect.poll(seen, WAIT).toContain('tools/call hold');
    killed.running.kill('SIGKILL');
    await killed.running.end();
    const other = start(ledger, ['--settle-after', '1s']);
    await other.say(call(1, 'echo'));
    await other.answer(1);
    await expect.poll(() => story(ledger), WAIT).toContain('unknown');
    await end(other, 0);
    expect(other.running.stderr).toContain('mcp.s.hold');
    expect(story(ledger).sort()).toEqual(['allow', 'allow', 'success', 'unknown']);
    expect(shop.run(['mcp', ledger, '--server', 's', '--settle-after', 'soon', '--', 'true']).status).toBe(2);
  });

  it('is not started where there is no ledger, unless it is to fail open', () => {
    for (const args of [
      ['--server', 's', '--', 'touch', 'begun'],
      ['--gate'],
      ['--serve-tools', '--host', 'a.example'],
    ]) {
      const { status, stderr } = shop.run(['mcp', 'none.jsonl', ...args]);
      expect({ status, stderr }).toMatchObject({
        status: 2,
        stderr: expect.stringContaining('FILE_NOT_FOUND') as string,
      });
    }
    shop.write('other.json', '{"prices_version":"1"}\n');
    const { status, stderr } = shop.run(['mcp', 'other.json', '--server', 's', '--', 'touch', 'begun']);
    expect([status, stderr]).toEqual([2, expect.stringContaining('NOT_A_LEDGER')]);
    expect(shop.has('begun')).toBe(false);
  });

  it('denies every call where the ledger cannot be asked, or forwards them where it is told to', async () => {
    // Its key is missing.
    shop.run(['init', 'broken.jsonl']);
    shop.remove('broken.jsonl.key');
    const closed = start('broken.jsonl');
    await closed.say({ jsonrpc: '2.0', id: 0, method: 'ping' }, call(1, 'echo'));
    await closed.answer(0);
    expect(await closed.answer(1)).toMatchObject({ result: { isError: true } });
    closed.running.endInput();
    expect((await closed.running.end()).stderr).toContain('error: FILE_NOT_FOUND');
    const open = start('none.jsonl', ['--fail', 'open']);
    await open.say(call(1, 'echo'));
    expect(await open.answer(1)).not.toHaveProperty('result.isError');
    open.running.endInput();
    const { stderr } = await open.running.end();
    expect(stderr).toContain('northroot: where no ledger can be asked');
    expect(stderr).toContain('forwarded without a record: FILE_NOT_FOUND');
    expect(shop.has('none.jsonl')).toBe(false);
  });

  it('says nothing of parameters and results', async () => {
    const ledger = makeLedger();
    const session = start(ledger);
    await session.say(
      call(1, 'echo', { secret: 'hunter2' }),
      '{"secret":"hunter2"',
      call(1, 'rm', { secret: 'hunter2' }),
      '{"jsonrpc":"2.0","id":2,"method":"hunter2","method":"x"}',
    );
    await session.answer(1);
    await session.answer(2);
    await end(session, 0);
    expect(session.running.stderr).not.toContain('hunter2');
    expect(shop.read(ledger)).not.toContain('hunter2');
  });

  it.each([
    [['mcp', 'x.jsonl', '--', 'true'], 'USAGE'],
    [['mcp', 'x.jsonl', '--server', 's'], 'USAGE'],
    [['mcp', 'x.jsonl', '--server', 'a.b', '--', 'true'], 'USAGE'],
    [['mcp', 'x.jsonl', '--server', 's', '--reserve', 'usd', '--', 'true'], 'USAGE'],
    [['mcp', 'x.jsonl', '--server', 's', '--guard', 'tools', '--', 'true'], 'USAGE'],
    [['mcp', 'x.jsonl', '--gate', '--server', 's'], 'USAGE'],
    [['mcp', 'x.jsonl', '--server', 's', '--fail', 'open', '--', './none'], 'MCP_SERVER_NOT_STARTED'],
  ])('refuses %j', (args, code) => {
    expectError(shop.runProcess(args), 2, code);
  });
});
