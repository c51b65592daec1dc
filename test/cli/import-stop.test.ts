/** An import that is told to stop: it ends soon, wherever it is, and what it leaves is whole. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { CLI, expectOk, parse, Workshop } from './runner.js';

/** Within this it must have ended, also on a machine that does much else. */
const SOON_MS = 60_000;

const shop = new Workshop();

function rows(count: number): string {
  return Array.from({ length: count }, (_, i) =>
    JSON.stringify({
      request_id: `r${i}`,
      spend: 0.25,
      prompt_tokens: 10,
      completion_tokens: 2,
      startTime: new Date(1_772_359_200_000 + i * 1000).toISOString(),
      model: 'gpt-5',
      metadata: { usage_object: { prompt_tokens: 10, text: 'x'.repeat(200) } },
    }),
  ).join('\n');
}

shop.write('many.jsonl', `${rows(12_000)}\n`);
shop.write('some.jsonl', `${rows(3_000)}\n`);

/** 128 and the number of SIGTERM; none where the signal itself ended the process. */
const STOPPED: readonly (number | null)[] = [143, null];

it.each([200, 700, 1200, 2000])('ends when it is told to after %i ms', async (ms) => {
  const name = `l${ms}.jsonl`;
  const args = ['--ledger', name, '--create', '--unsigned', 'many.jsonl'];
  const running = shop.start(['import', '--from', 'litellm', ...args]);
  await sleep(ms);
  const at = performance.now();
  running.kill('SIGTERM');
  const { status } = await running.end();
  expect(performance.now() - at).toBeLessThan(SOON_MS);
  expect([0, ...STOPPED]).toContain(status);
  if (!shop.has(name)) return;
  // Its last line is whole, and the same import goes on behind it.
  const before = shop.records(name).length;
  expectOk(shop.run(['verify', '--quiet', name]));
  const again = shop.run(['import', '--from', 'litellm', '--format', 'json', ...args]);
  expectOk(again);
  const { events } = parse<{ events: { appended: number; made: number } }>(again.stdout);
  expect(before - 1 + events.appended).toBe(events.made);
});

it('ends while nobody reads its output', async () => {
  const child = spawn(process.execPath, [CLI, 'import', '--from', 'litellm', 'some.jsonl'], {
    cwd: shop.folder,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  // What has begun is more than a pipe holds, and nothing more of it is taken.
  await once(child.stdout, 'readable');
  await sleep(500);
  const at = performance.now();
  child.kill('SIGTERM');
  const [status] = (await once(child, 'exit')) as [number | null];
  expect(performance.now() - at).toBeLessThan(SOON_MS);
  expect(STOPPED).toContain(status);
});
