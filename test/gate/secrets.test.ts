/** What is secret is nowhere: not in logs, errors, answers, metrics or the ledger, whichever way a call comes. */

import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { createSigner, Gate, parsePrivateKey } from '../../src/api/index.js';
import { expectOk, Workshop } from '../cli/runner.js';
import { event } from '../hook/events.js';
import { errorOf } from '../writer/support.js';
import { newLedger, Service } from './service-process.js';

const shop = new Workshop({ ownProcesses: true });
/** Planted in prompts, parameters, outputs and errors of tools. */
const SECRET = 'PLANTED-7f3a9c';

/** All files below a folder. */
function filesIn(folder: string): string[] {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    const found = statSync(path);
    if (found.isDirectory()) return filesIn(path);
    return found.isFile() ? [path] : [];
  });
}

it('planted secrets are found nowhere after a run through every face', async () => {
  const ledger = newLedger(shop, 'calls=20', 'usd=1');
  const tokens = ['caller', 'reader'].map((name) =>
    expectOk(
      shop.run([
        'gate',
        'token',
        'tokens.json',
        name,
        '--principal',
        'agent:a1',
        ...(name === 'reader' ? ['--may', 'read'] : []),
      ]),
    ).trim(),
  );
  const [token = '', reader = ''] = tokens;
  const said: string[] = [];
  const service = await Service.start(shop, ledger, { args: ['--tokens', 'tokens.json'] });
  const params = { prompt: SECRET, nested: { [SECRET]: [SECRET] } };
  const ask = async (path: string, body?: unknown, own = token): Promise<void> => {
    said.push(JSON.stringify(await service.ask(path, body, own)));
  };
  const call = { session: 's', tool: 'fs.read', params, intent: SECRET, reserve: { usd: '0.1' } };

  // The service: allowed, repeated, in conflict, denied, malformed, of strangers.
  await ask('/v1/decide', { ...call, ref: 'c1' });
  await ask('/v1/decide', { ...call, ref: 'c1' });
  await ask('/v1/decide', { ...call, ref: 'c1', params: { other: SECRET } });
  await ask('/v1/decide', { ...call, ref: 'c2', tool: 'net.get' });
  await ask('/v1/decide', { ...call, ref: 'c3', reserve: { usd: '99' } });
  await ask('/v1/decide', `{"tool":"fs.read","params":{"a":"${SECRET}","a":1}}`);
  await ask('/v1/decide', `{"tool":"fs.read","params":"${SECRET}`);
  await ask('/v1/decide', { ...call, ref: 'c4' }, `${token}x`);
  await ask('/v1/settle', { ref: 'c1', session: 's', outcome: 'success', output: { text: SECRET } });
  await ask('/v1/settle', { ref: 'c9', tool: 'fs.read', params, outcome: 'failure', error_code: SECRET });
  await ask('/v1/open?session=s');
  await ask('/v1/budget', undefined, reader);
  await ask('/v1/approvals', undefined, reader);
  await ask('/metrics', undefined, reader);
  await ask('/access/v1/evaluation', {
    subject: { type: 'agent', id: 'a1' },
    action: { name: 'call', properties: params },
    resource: { type: 'tool', id: 'fs.read' },
  });
  // Another service on the same socket is refused.
  said.push(JSON.stringify(shop.run(['serve', ledger])));
  const { stdout, stderr } = await service.stop();
  said.push(stdout, stderr);
  expect(stderr).toContain('"route":"POST /v1/decide"');

  // Hooks, as allowed, denied, reported, and of what is no call.
  const hook = (text: string): void => {
    const run = shop.run(['hook', 'claude-code', '--ledger', ledger, '--principal', 'agent:a1'], {
      input: text,
    });
    said.push(run.stdout, run.stderr);
  };
  const input = { tool_use_id: 'h1', tool_input: { command: SECRET } };
  hook(event('PreToolUse', input));
  hook(event('PostToolUse', { ...input, tool_response: { stdout: SECRET } }));
  hook(event('PreToolUse', { ...input, tool_use_id: 'h2', tool_name: 'Write' }));
  hook(event('PostToolUseFailure', { ...input, tool_use_id: 'h1', error: SECRET }));
  hook(`{"hook_event_name":"PreToolUse","tool_input":{"a":"${SECRET}","a":1}`);

  // A program.
  const gate = await Gate.open(shop.path(ledger), {
    signer: createSigner(parsePrivateKey(shop.read(`${ledger}.key`))),
    principalId: 'agent:a1',
  });
  onTestFinished(() => gate.close());
  await gate.decide({ ...call, ref: 'p1' });
  for (const fails of [
    () => gate.decide({ ...call, ref: 'p1', params: { other: SECRET } }),
    () => gate.settle({ ref: 'none' }, { outcome: 'success', output: SECRET }),
    () =>
      gate.ledger.guard('fs.read', params, () =>
        Promise.reject(Object.assign(new Error(SECRET), { code: 'EIO' })),
      ),
    () => gate.ledger.guard('net.get', params, () => SECRET),
  ]) {
    const error = await errorOf(fails());
    expect(error).toBeInstanceOf(Error);
    // What the function itself threw is its caller's.
    if ((error as Error).message !== SECRET) said.push(String(error), JSON.stringify(error));
  }
  await gate.settle({ ref: 'p1', session: 's' }, { outcome: 'success', output: SECRET });
  await gate.close();

  // What people and tools are shown of it.
  for (const args of [
    ['verify', ledger, '--format', 'json'],
    ['report', ledger],
    ['gate', 'status', ledger],
    ['log', ledger],
  ]) {
    const run = shop.run(args);
    expect([args[0], run.status]).toEqual([args[0], 0]);
    said.push(run.stdout, run.stderr);
  }

  const digested = readFileSync(shop.path('tokens.json'), 'utf8');
  for (const text of [...said, digested]) {
    expect(text).not.toContain(SECRET);
    for (const each of tokens) expect(text).not.toContain(each);
  }
  const files = filesIn(shop.folder);
  expect(files).toContain(shop.path(ledger));
  for (const path of files) {
    const text = readFileSync(path, 'latin1');
    expect([path, text.includes(SECRET), tokens.some((each) => text.includes(each))]).toEqual([
      path,
      false,
      false,
    ]);
  }
});
