/** Proxies for models as processes of their own, on one ledger. */

import { describe, expect, it, onTestFinished } from 'vitest';
import { ask, serveUpstream } from '../proxy/support.js';
import { model, priceFile } from '../samples.js';
import { expectOk, parse, type Running, Workshop } from '../../cli/runner.js';
import { chat, chatAnswer, type Script, send } from './proxy-support.js';

const shop = new Workshop();

/** An answer of 100 tokens costs 0.18. */
shop.write(
  'prices.json',
  priceFile([
    model({
      provider: 'openai',
      model: 'm-1',
      aliases: [],
      prefixes: [],
      periods: [
        {
          prices: [
            { unit: 'tokens.input', usd: '0' },
            { unit: 'tokens.output', usd: '0.0018' },
          ],
        },
      ],
    }),
  ]),
);
const USAGE = { prompt_tokens: 10, completion_tokens: 100, total_tokens: 110 };

function makeLedger(name: string): void {
  expectOk(shop.run(['init', name, '--origin', 'example.com/tests/llm']));
  expectOk(shop.run(['grant', name, '--to', 'agent:a1', '--tool', 'llm.*', '--cap', 'usd=1']));
}

async function startProxy(
  name: string,
  upstream: string,
): Promise<{ readonly running: Running; readonly url: string }> {
  const running = shop.start([
    ...['llm', name, '--principal', 'agent:a1', '--prices', 'prices.json'],
    ...['--upstream', upstream, '--listen', '127.0.0.1:0', '--lock-timeout', '60'],
  ]);
  onTestFinished(async () => {
    running.kill('SIGKILL');
    await running.end();
  });
  await running.until(({ stdout }) => stdout.includes('\n'));
  return { running, url: running.stdout.trim() };
}

const answer: Script = (_, response) => {
  response.setHeader('Content-Type', 'application/json');
  response.end(chatAnswer(USAGE));
};

interface Left {
  readonly grants: readonly {
    readonly meters: readonly { readonly unit: string; readonly left: unknown }[];
  }[];
}
const leftOf = (name: string): unknown => {
  const { grants } = parse<Left>(expectOk(shop.run(['budget', name, '--format', 'json'])));
  return grants[0]?.meters.find(({ unit }) => unit === 'usd')?.left;
};

it('warns where the upstream is reached without encryption over a network', async () => {
  makeLedger('clear.jsonl');
  for (const [upstream, isWarned] of [
    ['http://upstream.example', true],
    ['https://upstream.example', false],
    ['http://[::1]:9', false],
  ] as const) {
    const { running } = await startProxy('clear.jsonl', upstream);
    await running.until(({ stderr }) => stderr.includes('forwards to'));
    running.kill('SIGTERM');
    expect((await running.end()).stderr.includes('unencrypted'), upstream).toBe(isWarned);
  }
});

describe('100 calls of 0.18 against 1.00: five reach the upstream', () => {
  it('one after the other, and all at once by three processes', async () => {
    const upstream = await serveUpstream(answer);
    makeLedger('loop.jsonl');
    makeLedger('burst.jsonl');
    const [one, ...three] = await Promise.all([
      startProxy('loop.jsonl', upstream.url),
      ...['burst.jsonl', 'burst.jsonl', 'burst.jsonl'].map((name) => startProxy(name, upstream.url)),
    ]);
    const statuses: number[] = [];
    for (let n = 0; n < 100; n += 1)
      statuses.push((await send(one.url, '/v1/chat/completions', chat(100))).status);
    expect(statuses).toEqual([...Array<number>(5).fill(200), ...Array<number>(95).fill(429)]);
    expect(upstream.seen).toHaveLength(5);
    const all = await Promise.all(
      Array.from({ length: 100 }, (_, n) =>
        send(three[n % 3]?.url ?? '', '/v1/chat/completions', chat(100, { user: `u-${n}` })),
      ),
    );
    expect(all.filter(({ status }) => status === 200)).toHaveLength(5);
    expect(all.filter(({ status }) => status === 429)).toHaveLength(95);
    expect(upstream.seen).toHaveLength(10);
    for (const name of ['loop.jsonl', 'burst.jsonl']) {
      expect(leftOf(name)).toEqual({ t: 'dec', m: '1', s: 1 });
      expectOk(shop.run(['verify', '--quiet', name]));
    }
    for (const { running } of [one, ...three]) running.kill('SIGTERM');
    expect((await one.running.end()).status).toBe(0);
  });
});

describe('a proxy that is killed', () => {
  it.each(['before the answer', 'within the answer'])(
    '%s leaves its call reserved',
    async (when) => {
      const name = `killed-${when.split(' ')[0]}.jsonl`;
      makeLedger(name);
      const upstream = await serveUpstream((_, response) => {
        if (when !== 'within the answer') return;
        response.writeHead(200, { 'Content-Type': 'text/event-stream' });
        response.write('data: {"choices":[]}\n\n');
      });
      const first = await startProxy(name, upstream.url);
      const asked = ask(
        `${first.url}/v1/chat/completions`,
        { method: 'POST', headers: { 'Content-Type': 'application/json', 'Idempotency-Key': 'k' } },
        JSON.stringify(chat(100, { stream: true })),
      );
      asked.catch(() => undefined);
      if (when === 'within the answer')
        await new Promise((resolve) => asked.request.once('response', resolve));
      while (upstream.seen.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
      first.running.kill('SIGKILL');
      await first.running.end();
      expect(leftOf(name)).toEqual({ t: 'dec', m: '82', s: 2 });
      // Its client asks again, of another process: the call may have been answered.
      const second = await startProxy(name, upstream.url);
      const again = await send(second.url, '/v1/chat/completions', chat(100, { stream: true }), {
        'Idempotency-Key': 'k',
      });
      expect([again.status, again.json.error.code]).toEqual([409, 'REQUEST_IN_PROGRESS']);
      expect(upstream.seen).toHaveLength(1);
      second.running.kill('SIGTERM');
      await second.running.end();
      expectOk(shop.run(['abandon', name, '--older-than', '1s', '--quiet']));
      expect(leftOf(name)).toEqual({ t: 'dec', m: '82', s: 2 });
      expectOk(shop.run(['verify', '--quiet', name]));
    },
    60_000,
  );
});

describe('northroot llm', () => {
  makeLedger('own.jsonl');

  it.each([
    ['no upstream', ['--listen', '127.0.0.1:0']],
    ['no URL', ['--upstream', 'nonsense']],
    ['an address of all without tokens', ['--upstream', 'http://127.0.0.1:9', '--listen', '0.0.0.0:0']],
    ['two places', ['--upstream', 'http://127.0.0.1:9', '--listen', '127.0.0.1:0', '--socket', 's']],
    ['a key that is not there', ['--upstream', 'http://127.0.0.1:9', '--upstream-key-env', 'NOT_SET']],
    ['half of a failure', ['--upstream', 'http://127.0.0.1:9', '--fail', 'half']],
  ])('2 for %s', (_, args) => {
    const run = shop.run(['llm', 'own.jsonl', ...args]);
    expect([run.status, run.stdout]).toEqual([2, '']);
    expect(run.stderr).toContain('error: USAGE');
  });

  it('2 for a ledger that is not there', () => {
    const run = shop.run([
      'llm',
      'missing.jsonl',
      '--upstream',
      'http://127.0.0.1:9',
      '--listen',
      '127.0.0.1:0',
    ]);
    expect([run.status, run.stdout]).toEqual([2, '']);
  });

  it('says how clients find it', () => {
    const listen = ['--listen', '[::1]:99'];
    expect(parse(expectOk(shop.run(['llm', 'env', ...listen, '--format', 'json'])))).toEqual({
      ANTHROPIC_BASE_URL: 'http://[::1]:99',
      OPENAI_API_BASE: 'http://[::1]:99/v1',
      OPENAI_BASE_URL: 'http://[::1]:99/v1',
    });
    const shell = 'eval "$(cat env.sh)"; echo "$OPENAI_BASE_URL"';
    shop.write('env.sh', expectOk(shop.run(['llm', 'env'])));
    expect(expectOk(shop.shell(shell))).toBe('http://127.0.0.1:8790/v1\n');
  });
});
