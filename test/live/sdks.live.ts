/**
 * Real agent SDKs with models that are made here: `npm run test:live`. Each program of `sdks/` runs where npm has put the SDKs, prints a line
 * for each of its ledgers, and needs no network. Skipped, and said so, where they cannot be installed or need another version of Node.
 */

import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Peers } from './peers.js';

/** The version of Node that version 7 of `ai` is installed for. */
const NODE_OF_AI7 = 22;
const PACKAGES = {
  ai: 'npm:ai@^6',
  langchain: '^1.5',
  '@langchain/core': '^1.4',
  '@openai/agents': '^0.20',
  '@anthropic-ai/claude-agent-sdk': '^0.3.331',
  '@modelcontextprotocol/sdk': '^1.32',
  '@modelcontextprotocol/server': '^2.4',
  '@modelcontextprotocol/client': '^2.4',
  '@opentelemetry/api': '^1.9',
  '@opentelemetry/sdk-trace-base': '^2.12',
  zod: '^4',
  ...(hasNode(NODE_OF_AI7) ? { ai7: 'npm:ai@^7' } : {}),
};

function hasNode(major: number): boolean {
  return Number(process.versions.node.split('.')[0]) >= major;
}

const peers = new Peers('sdks', PACKAGES, process.env['SDKS']);
const obstacle = peers.findObstacle();
const hasAi7 = existsSync(join(peers.folder, 'node_modules/ai7'));
if (obstacle !== undefined) console.warn(`skipped: ${obstacle}`);
else if (!hasAi7) console.warn(`skipped: ai 7 needs Node ${NODE_OF_AI7}`);

interface Told {
  readonly verdict: string;
  /** Sorted: calls at once end in any order. */
  readonly events: readonly string[];
  readonly ran?: number;
  readonly text?: string;
  readonly said?: string;
  readonly threw?: string;
  readonly told?: readonly string[];
  readonly denied?: readonly string[];
}

/** What a program prints of each of its ledgers. */
function run(program: string, ...args: readonly string[]): Told[] {
  const { status, stdout, stderr } = spawnSync(process.execPath, [`${program}.js`, ...args], {
    cwd: peers.folder,
    encoding: 'utf8',
    timeout: 200_000,
  });
  expect(status, `${stdout}${stderr}`).toBe(0);
  const lines = stdout.split('\n').filter((line) => line.startsWith('{"verdict"'));
  return lines.map((line) => {
    const told = JSON.parse(line) as Told;
    expect(told.verdict).toBe('ok');
    return { ...told, events: [...told.events].sort() };
  });
}

const DENIED = 'RESERVATION_OVER_CAP';
/** Two calls of a budget of two, and the third. */
const budget = (tool: string): string[] => [
  `${tool}|deny|${DENIED}`,
  `${tool}|success||calls|digest`,
  `${tool}|success||calls|digest`,
];
const metered = (model: string, rest: string): string =>
  `${model}|success||calls tokens.input tokens.input.cache_read tokens.output${rest}`;
const oneDenial = [expect.stringContaining(DENIED)];

describe.skipIf(obstacle !== undefined)('agent SDKs', () => {
  it.each(hasAi7 ? ['ai', 'ai7'] : ['ai'])('%s', (name) => {
    const [two, failing, streamed, approved] = run('ai', name);
    const model = metered('llm.mock/m-1', ' usd|digest');
    expect(two).toMatchObject({ ran: 2, text: 'done', events: [model, model, ...budget('read')] });
    expect(two?.told).toEqual([expect.stringContaining('read was denied')]);
    expect(failing?.events).toEqual(['read|failure|ENOENT|calls|', 'tail|success||calls|digest']);
    expect(streamed).toMatchObject({ said: 'done' });
    expect(streamed?.events).toEqual([metered('llm.mock/m-1', '|'), 'llm.mock/m-1|unknown||calls usd|']);
    if (name === 'ai') return;
    expect(approved?.ran).toBe(2);
    expect(approved?.events).toEqual([
      `read|deny|${DENIED}`,
      'read|failure|ENOENT|calls|',
      'read|success||calls|digest',
    ]);
    expect(approved?.told).toContainEqual(oneDenial[0]);
  });

  it('langchain', () => {
    const [two, failing, throwing] = run('langchain');
    const model = 'llm.FakeBuiltModel/FakeBuiltModel';
    const [priced, unpriced] = [metered(model, ' usd|digest'), metered(model, '|digest')];
    expect(two).toMatchObject({ ran: 2, text: 'done', events: [priced, priced, ...budget('read')] });
    expect(two?.told?.filter((each) => each.startsWith('error:'))).toEqual(oneDenial);
    expect(failing).toMatchObject({ ran: 2, text: 'done' });
    expect(failing?.events).toEqual([
      ...[unpriced, unpriced],
      ...['read|failure|ENOENT|calls|', 'read|failure|TOOL_ERROR|calls|digest'],
    ]);
    expect(throwing).toMatchObject({ threw: DENIED });
  });

  it('openai-agents', () => {
    const [two, streamed, elsewhere, throwing] = run('openai-agents');
    const [whole, pieces] = [metered('llm.openai/m-1', ' usd|digest'), metered('llm.openai/m-1', ' usd|')];
    expect(two).toMatchObject({ ran: 2, text: 'done', events: [whole, whole, ...budget('read')] });
    expect(two?.told?.filter((each) => each.includes('not run'))).toEqual(oneDenial);
    expect(streamed?.events).toEqual([pieces, pieces, 'read|failure|ENOENT|calls|']);
    expect(elsewhere?.events).toContain('read|failure|TOOL_ERROR|calls|digest');
    expect(throwing).toMatchObject({ threw: DENIED, ran: 1 });
  });

  it('mcp, versions 1 and 2', () => {
    const told = run('mcp');
    expect(told).toHaveLength(6);
    for (const [served, failing, called] of [told.slice(0, 3), told.slice(3)]) {
      expect(served).toMatchObject({ ran: 2, events: budget('mcp.files.read') });
      expect(served?.told).toEqual(oneDenial);
      expect(failing?.events).toEqual([
        'mcp.files.read|failure|ENOENT|calls|',
        'mcp.files.read|failure|MCP_TOOL_ERROR|calls|digest',
      ]);
      expect(called?.events).toEqual([
        `mcp.files.read|deny|${DENIED}`,
        'mcp.files.read|failure|MCP_TOOL_ERROR|calls|digest',
        'mcp.files.read|success||calls|digest',
      ]);
    }
  });

  it('claude-agent', () => {
    const [two, blocked] = run('claude-agent');
    expect(two?.events).toEqual([
      `Bash|deny|${DENIED}`,
      'Bash|failure|EXIT_3|calls|digest',
      'Bash|success||calls|digest',
    ]);
    expect(two?.told?.at(-1)).toContain(DENIED);
    expect(blocked).toMatchObject({ events: [] });
    expect(blocked?.told).toEqual([expect.stringContaining('block')]);
  });

  it('otel', () => {
    const [two] = run('otel');
    expect(two?.denied).toEqual([DENIED]);
    expect(two?.events).toEqual([
      `read|deny|${DENIED}`,
      'read|failure|TIMEOUT|calls|',
      'read|success||calls|digest',
    ]);
  });
});
