/**
 * What a proxy for models costs beside a plain reverse proxy of Node: time to the first byte and to the last, streams at once, flat out event
 * by event and in blocks of 64 KiB, and at the pace of a model, memory of a long stream. `node bench/llm.js [--calls 1000] [--streams 64] [--megabytes 1024]`, after a build.
 */

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { Agent, createServer, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { clearInterval, setInterval } from 'node:timers';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import {
  createSigner,
  draftGrant,
  Gate,
  generatePrivateKey,
  Ledger,
  parsePrices,
  serveModels,
} from '../dist/api/index.js';

const SELF = fileURLToPath(import.meta.url);
const { values } = parseArgs({
  options: {
    calls: { type: 'string', default: '1000' },
    streams: { type: 'string', default: '64' },
    megabytes: { type: 'string', default: '1024' },
    role: { type: 'string' },
    upstream: { type: 'string', default: '' },
    ledger: { type: 'string', default: '' },
  },
});

const PRICES = {
  prices_version: '1',
  as_of: '2026-03-01T00:00:00Z',
  currency_unit: 'usd',
  source: { name: 'bench' },
  models: [
    {
      provider: 'openai',
      model: 'm-1',
      periods: [
        {
          prices: [
            { unit: 'tokens.input', usd: '0' },
            { unit: 'tokens.output', usd: '0.0000001' },
          ],
        },
      ],
    },
  ],
};

const PIECE = `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: 'x'.repeat(40) } }] })}\n\n`;
const LAST = `data: ${JSON.stringify({ choices: [], usage: { prompt_tokens: 10, completion_tokens: 20 } })}\n\ndata: [DONE]\n\n`;
const ANSWER = JSON.stringify({
  model: 'm-1',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hello.' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 10, completion_tokens: 20 },
});

/** Calls of each proxy that are not counted: Node still compiles what they run. */
const WARM_UP = 200;
const PACE_MS = 20;
const PACED_EVENTS = 100;

/**
 * The user says how many megabytes of events come, each written by itself or in blocks, or that they come at a pace, each with the time at
 * which it was sent.
 */
function serveUpstream() {
  return createServer((asked, response) => {
    const chunks = [];
    asked.on('data', (chunk) => chunks.push(chunk));
    asked.on('end', () => {
      const { stream, user = '0' } = JSON.parse(Buffer.concat(chunks).toString());
      if (stream !== true) {
        response.setHeader('Content-Type', 'application/json');
        response.end(ANSWER);
        return;
      }
      response.setHeader('Content-Type', 'text/event-stream');
      if (user === 'paced') {
        let count = 0;
        const timer = setInterval(() => {
          count += 1;
          const content = `${performance.timeOrigin + performance.now()} `;
          if (count <= PACED_EVENTS)
            response.write(`data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }] })}\n\n`);
          else {
            clearInterval(timer);
            response.end(LAST);
          }
        }, PACE_MS);
        return;
      }
      const [size, unit] = user.split(' ');
      const block = Buffer.from(PIECE.repeat(unit === 'events' ? 1 : Math.ceil(65_536 / PIECE.length)));
      let left = Number(size) * 1_048_576;
      const next = () => {
        while (left > 0) {
          left -= block.length;
          if (!response.write(block)) {
            response.once('drain', next);
            return;
          }
        }
        response.end(LAST);
      };
      response.write(PIECE);
      next();
    });
  });
}

function servePlain(upstream) {
  const agent = new Agent({ keepAlive: true });
  return createServer((asked, response) => {
    const { method, url: path, headers } = asked;
    const passed = request(upstream + path, { method, headers, agent }, (answer) => {
      response.writeHead(answer.statusCode, answer.rawHeaders);
      answer.pipe(response);
    });
    asked.pipe(passed);
  });
}

async function listen(server) {
  // A connection that is closed while one proxy waits for the other's turn is no part of what is measured.
  server.keepAliveTimeout = 600_000;
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${server.address().port}`;
}

async function serveGuarded(upstream, path) {
  const signer = createSigner(generatePrivateKey());
  const ledger = await Ledger.open(path, { signer, create: { origin: 'example.com/bench/llm' } });
  const caps = { principalId: 'agent:a1', allowedTools: ['llm.*'], meterCaps: { usd: '1000000' } };
  await ledger.append({ event: draftGrant(caps), principalId: 'human:owner' });
  await ledger.close();
  const gate = await Gate.open(path, { signer, principalId: 'agent:a1' });
  const prices = parsePrices(Buffer.from(JSON.stringify(PRICES)));
  const { url } = await serveModels({ gate, prices, upstream, place: { port: 0 } });
  return url;
}

/** A process of this script, whose first line is its URL. */
function start(role, ...args) {
  const child = spawn(process.execPath, ['--expose-gc', SELF, '--role', role, ...args], {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  });
  return new Promise((resolve) =>
    child.stdout.once('data', (text) => resolve({ child, url: String(text).trim() })),
  );
}

const rssOf = (child) =>
  new Promise((resolve) => {
    child.once('message', resolve);
    child.send('rss');
  });

if (values.role !== undefined) {
  const { role, upstream, ledger } = values;
  const url =
    role === 'upstream'
      ? await listen(serveUpstream())
      : role === 'plain'
        ? await listen(servePlain(upstream))
        : await serveGuarded(upstream, ledger);
  let most = 0;
  setInterval(() => (most = Math.max(most, process.memoryUsage.rss())), 20).unref();
  process.on('message', () => {
    globalThis.gc();
    process.send({ now: process.memoryUsage.rss(), most });
    most = 0;
  });
  console.log(url);
} else {
  const folder = mkdtempSync(join(tmpdir(), 'bench-llm-'));
  const children = [];
  try {
    const upstream = await start('upstream');
    const plain = await start('plain', '--upstream', upstream.url);
    const guarded = await start('guarded', '--upstream', upstream.url, '--ledger', join(folder, 'l.jsonl'));
    children.push(upstream, plain, guarded);
    await measure(plain, guarded);
  } finally {
    for (const { child } of children) child.kill();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function measure(plain, guarded) {
  const agent = new Agent({ keepAlive: true, maxSockets: 256 });
  const call = (url, stream, user = '0', onData = () => undefined) =>
    new Promise((resolve, reject) => {
      const began = performance.now();
      let first;
      let bytes = 0;
      const asked = request(
        `${url}/v1/chat/completions`,
        { method: 'POST', agent, headers: { 'Content-Type': 'application/json' } },
        (answer) => {
          if (answer.statusCode !== 200) reject(new Error(`status ${answer.statusCode}`));
          answer.on('data', (chunk) => {
            first ??= performance.now() - began;
            bytes += chunk.length;
            onData(chunk);
          });
          answer.on('end', () => resolve({ first, bytes, ms: performance.now() - began }));
          answer.on('error', reject);
        },
      );
      asked.on('error', reject);
      const messages = [{ role: 'user', content: 'Say hello.' }];
      asked.end(
        JSON.stringify({
          model: 'm-1',
          max_completion_tokens: 50,
          stream,
          user,
          messages,
        }),
      );
    });
  const median = (list) => list.sort((a, b) => a - b)[Math.floor(list.length / 2)];
  for (const stream of [false, true]) {
    const times = { plain: [], guarded: [] };
    const wholes = { plain: [], guarded: [] };
    for (let n = 0; n < Number(values.calls) + WARM_UP; n += 1)
      for (const [name, { url }] of Object.entries({ plain, guarded })) {
        const { first, ms } = await call(url, stream);
        if (n < WARM_UP) continue;
        times[name].push(first);
        wholes[name].push(ms);
      }
    for (const [what, found] of Object.entries({ first: times, last: wholes })) {
      const [a, b] = [median(found.plain), median(found.guarded)];
      console.log(
        `${what} byte, ${stream ? 'streamed' : 'whole'}: plain ${a.toFixed(2)} ms, guarded ${b.toFixed(2)} ms, +${(b - a).toFixed(2)} ms`,
      );
    }
  }
  for (const user of ['0.5 events', '8 blocks']) {
    const rates = { plain: [], guarded: [] };
    for (let round = 0; round < 3; round += 1)
      for (const [name, { url }] of Object.entries({ plain, guarded })) {
        const began = performance.now();
        const all = await Promise.all(
          Array.from({ length: Number(values.streams) }, () => call(url, true, user)),
        );
        const bytes = all.reduce((sum, each) => sum + each.bytes, 0);
        rates[name].push(bytes / 1_048_576 / ((performance.now() - began) / 1_000));
      }
    const [p, g] = [Math.max(...rates.plain), Math.max(...rates.guarded)];
    console.log(
      `${values.streams} streams of ${user.split(' ')[1]}: plain ${p.toFixed(0)} MB/s, guarded ${g.toFixed(0)} MB/s, ${(g / p).toFixed(2)} times`,
    );
  }
  const delays = { plain: [], guarded: [] };
  for (const [name, { url }] of Object.entries({ plain, guarded })) {
    const onData = (chunk) => {
      const now = performance.timeOrigin + performance.now();
      for (const [, sent] of String(chunk).matchAll(/"content":"([\d.]+) "/g)) delays[name].push(now - sent);
    };
    await Promise.all(Array.from({ length: Number(values.streams) }, () => call(url, true, 'paced', onData)));
  }
  const of = (list, q) => list.sort((a, b) => a - b)[Math.floor(q * list.length)].toFixed(1);
  console.log(
    `${values.streams} streams of ${1_000 / PACE_MS} events a second: an event takes ${of(delays.plain, 0.5)} ms plain (p99 ${of(delays.plain, 0.99)}), ${of(delays.guarded, 0.5)} ms guarded (p99 ${of(delays.guarded, 0.99)})`,
  );
  const before = await rssOf(guarded.child);
  const { bytes, ms } = await call(guarded.url, true, `${values.megabytes} blocks`);
  const after = await rssOf(guarded.child);
  const mb = (count) => (count / 1_048_576).toFixed(1);
  console.log(
    `a stream of ${mb(bytes)} MB in ${(ms / 1_000).toFixed(1)} s: memory ${mb(before.now)} MB before, at most ${mb(after.most)} MB within, +${mb(after.most - before.now)} MB`,
  );
}
