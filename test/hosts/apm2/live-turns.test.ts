/** Agents under a terminal, and those that answer in turns: as messages of one process, or by a process for each turn. */

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runAgent, type EpisodeResult, type RunAgentOptions } from '../../../src/hosts/apm2/index.js';
import {
  fakeTools,
  importedVerdict,
  isAlive,
  makeFolder,
  openGate,
  profileWith,
  runScript,
  verify,
  wrongIn,
} from './live-kit.js';

const READ = 'ask r1 fs.read \'{"path":"notes.txt"}\'';
const DONE = 'echo \'{"done":true}\'';

/** Runs a program of Node as an agent. */
async function runNode(
  script: string,
  changes: Readonly<Record<string, unknown>>,
  options: Partial<RunAgentOptions> = {},
): Promise<{ result: EpisodeResult; log: string; ledger: string; folder: string }> {
  const folder = makeFolder();
  const gate = await openGate(folder);
  const agent = join(folder, 'agent.mjs');
  writeFileSync(agent, script);
  const result = await runAgent({
    gate,
    tools: fakeTools(),
    profile: profileWith({ args_template: ['{args}', '{prompt}'], ...changes }),
    command: [process.execPath, agent],
    task: 'read the notes',
    workspace: folder,
    excerptBytes: 1024,
    graceMs: 300,
    ...options,
  });
  const log = readFileSync(join(result.record, 'log.txt'), 'utf8');
  return { result, log, folder, ledger: join(folder, 'ledger.jsonl') };
}

/** A model that asks once, and is done when it has read the excerpt: of a prompt, the text that it answers. */
const MODEL = `
const nonce = process.env.TI_NONCE;
const args = Buffer.from('{"path":"notes.txt"}').toString('base64url');
const answer = (said) => {
  const [, excerpt] = /⟦TX1 [0-9a-f]{16}⟧ q1 (\\S+)\\n/.exec(said + '\\n') ?? [];
  return excerpt === undefined
    ? 'Let me look.\\n⟦TI1 ' + nonce + '⟧ q1 fs.read ' + args
    : 'It says ' + Buffer.from(excerpt, 'base64url') + '.\\n{"done":true}';
};
`;

/** As Claude Code does with stream-json. */
const MESSAGES = `${MODEL}
import { createInterface } from 'node:readline';
const say = (message) => process.stdout.write(JSON.stringify(message) + '\\n');
say({ type: 'system', subtype: 'init', tools: [] });
for await (const line of createInterface({ input: process.stdin })) {
  const { message } = JSON.parse(line);
  const text = answer(message.content.includes('read the notes') ? '' : message.content);
  say({ type: 'assistant', message: { content: [{ type: 'text', text }] } });
  say({ type: 'result', subtype: 'success', is_error: false, result: text, usage: { input_tokens: 11, output_tokens: 7 } });
}
`;

const PROCESSES = `${MODEL}
console.log(answer(process.argv.at(-1)));
`;

const STREAM = { input_mode: 'stream_json', output_mode: 'stream_json' };

describe('an agent under a terminal', () => {
  const profile = profileWith({ requires_pty: true });

  it('has one, hears its answers without an echo, and is reviewed', async () => {
    const { result, log } = await runScript(`tty; ${READ}; ${DONE}`, { profile });
    expect(log).toMatch(/^\/dev\/pts\/\d+\n⟦TI1/);
    expect(log.match(/⟦TR1/g)).toHaveLength(1);
    expect(result).toMatchObject({ review: 'recorded', exitStatus: 0 });
    expect(wrongIn(result.record)).toEqual([]);
  });

  it('may write and read lines that are longer than a terminal keeps', async () => {
    const path = 'x'.repeat(700);
    const long = `ask r1 fs.read '{"path":"${path}"}'`;
    const { result } = await runScript(`${long}; ${DONE}`, { profile });
    expect(result).toMatchObject({ review: 'recorded', counts: { allowed: 1 } });
  });

  it('is killed with all that it started', async () => {
    const folder = makeFolder();
    const pids = join(folder, 'pids');
    const short = profileWith({ requires_pty: true, budget_defaults: { max_wall_clock_ms: 1500 } });
    const script = `trap '' TERM HUP; (trap '' TERM HUP; echo $BASHPID >> ${pids}; while :; do sleep 1; done) & echo $$ >> ${pids}; ${READ}; while :; do sleep 1; done`;
    const { result } = await runScript(script, { profile: short }, folder);
    expect(result).toMatchObject({ review: 'blocked', reason: 'TIMEOUT' });
    const left = readFileSync(pids, 'utf8').trim().split('\n').map(Number).filter(isAlive);
    expect(left).toEqual([]);
  });
});

describe('an agent that answers in turns', () => {
  it('as messages to one process hears answers as the next message', async () => {
    const { result, log, ledger } = await runNode(MESSAGES, STREAM);
    expect(log).toMatch(/^Let me look\.\n⟦TI1 [^\n]+\n⟦TR1 [^\n]+ ok [0-9a-f]{64}\n⟦TX1 /);
    expect(log).toContain('It says notes.txt.\n{"done":true}\n');
    expect(result).toMatchObject({ review: 'recorded', counts: { requests: 1, allowed: 1 } });
    expect(wrongIn(result.record)).toEqual([]);
    expect((await verify(ledger)).verdict).toBe('ok');
    expect(await importedVerdict(result.record)).toBe('ok');
    const index = JSON.parse(readFileSync(join(result.record, 'index.json'), 'utf8')) as { counts: object };
    expect(index.counts).toMatchObject({ total_tokens: 36 });
  });

  it('that uses more tokens than its budget is ended', async () => {
    const { result, ledger } = await runNode(MESSAGES, { ...STREAM, budget_defaults: { max_tokens: 20 } });
    expect(result).toMatchObject({ review: 'blocked', reason: 'POLICY_DENIED', detail: 'TOKENS_EXCEEDED' });
    expect((await verify(ledger)).verdict).toBe('violation');
    expect(wrongIn(result.record)).toContain('AP-8 BUDGET_EXCEEDED');
  });

  it('as messages that are none is ended', async () => {
    const { result } = await runNode('console.log("no message"); setTimeout(() => {}, 60000)', STREAM);
    expect(result).toMatchObject({ reason: 'ADAPTER_PROTOCOL_VIOLATION', detail: 'TURN_MALFORMED' });
  });

  it('with an error has no review', async () => {
    const failing =
      'console.log(JSON.stringify({ type: "result", is_error: true, result: "no credit" })); setTimeout(() => {}, 60000)';
    const { result } = await runNode(failing, STREAM);
    expect(result).toMatchObject({ reason: 'TOOL_FAILED', detail: 'TURN_FAILED' });
  });

  it('by a process for each turn is told all that was said', async () => {
    const { result, log, ledger } = await runNode(PROCESSES, { input_mode: 'arg' });
    expect(log).toContain('It says notes.txt.\n{"done":true}\n');
    expect(result).toMatchObject({ review: 'recorded', counts: { requests: 1, allowed: 1 } });
    expect(wrongIn(result.record)).toEqual([]);
    expect((await verify(ledger)).verdict).toBe('ok');
  });

  it('by a prompt in a file reads lines as they come', async () => {
    const script = `${MODEL}
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
if (!readFileSync(process.argv.at(-1), 'utf8').includes('read the notes')) process.exit(9);
console.log(answer(''));
let said = '';
for await (const line of createInterface({ input: process.stdin })) {
  said += line + '\\n';
  if (!line.includes('TX1')) continue;
  console.log(answer(said));
  process.exit(0);
}`;
    const { result, log } = await runNode(script, {
      input_mode: 'file',
      args_template: ['{args}', '{prompt_file}'],
    });
    expect(log).toContain('It says notes.txt.');
    expect(result.review).toBe('recorded');
  });

  it('that goes on for ever is ended by its time', async () => {
    const { result } = await runNode(`${MODEL}console.log(answer(''))`, {
      input_mode: 'arg',
      budget_defaults: { max_wall_clock_ms: 2500 },
    });
    expect(result.review).toBe('blocked');
  });

  it('needs a task', async () => {
    await expect(runNode(PROCESSES, { input_mode: 'arg' }, { task: undefined })).rejects.toThrow(TypeError);
  });
});
