/** The real OpenClaw under the plugin of examples/, with a scripted model: `npm run test:live`. Skipped, and said so, where it cannot run. */

import { afterEach, describe, expect, it } from 'vitest';
import { findObstacle, OpenClawRun, type Step } from './run-openclaw.js';

const obstacle = findObstacle();
if (obstacle !== undefined) console.warn(`skipped: ${obstacle}`);

const exec = (command: string): Step => ({ tool: 'exec', input: { command } });
const make = (name: string): Step => exec(`echo ${name} > ${name}.txt`);
/** A tool that no grant here allows. */
const DENIED: Step = { tool: 'process', input: { action: 'list' } };

describe.skipIf(obstacle !== undefined)('openclaw', () => {
  let run: OpenClawRun | undefined;
  afterEach(() => run?.remove());
  const start = async (...grant: readonly string[]): Promise<OpenClawRun> => {
    run = new OpenClawRun(...grant);
    await run.serve();
    return run;
  };

  it('runs what is allowed, and nothing without the service; what it recorded itself says the same', async () => {
    const own = await start('--tool', 'exec', '--cap', 'calls=9');
    const said = await own.turn([make('one'), DENIED, exec('exit 3'), make('two')], {
      killBefore: 'two.txt',
    });
    expect(own.files(), said).toEqual(['one.txt']);
    const first = [
      'exec allow ALLOW',
      'exec success',
      'process deny TOOL_NOT_ALLOWED',
      'exec allow ALLOW',
      'exec failure EXIT_3',
    ];
    expect(own.records()).toEqual(first);
    expect(own.northroot('verify', own.ledger).status).toBe(0);
    expect(own.reconcile(own.hooks())).toEqual({ status: 0, codes: [] });
    expect(own.reconcile(own.transcript()).codes).not.toContain('EXECUTION_NOT_IN_LEDGER');
    await own.serve();
    // The model uses its ids again, in another turn of the same session.
    await own.turn([make('three'), make('one')]);
    expect(own.files()).toEqual(['one.txt', 'three.txt']);
    expect(own.records()).toEqual([
      ...first,
      ...['exec allow ALLOW', 'exec success', 'exec allow ALLOW', 'exec success'],
    ]);
    expect(own.northroot('verify', own.ledger).status).toBe(0);
    expect(own.reconcile(own.hooks())).toEqual({ status: 0, codes: [] });
  });

  it('records what another plugin had run instead', async () => {
    const own = await start('--tool', 'exec', '--cap', 'calls=9');
    const [mine, other] = [make('mine'), make('other')].map(
      ({ input }) => (input as { command: string }).command,
    );
    const rewrite = { from: mine ?? '', to: other ?? '' };
    const said = await own.turn([make('mine')], { rewrite });
    expect(own.files(), said).toEqual(['other.txt']);
    const { status, stdout } = own.northroot('verify', own.ledger);
    expect({ status, said: /EXECUTION_UNDER_DENY/.test(stdout) }).toEqual({ status: 3, said: true });
    expect(own.records()).toEqual([
      ...['exec allow ALLOW', 'exec unknown TOOL_PARAMS_MISMATCH'],
      ...['exec deny TOOL_PARAMS_MISMATCH', 'exec success'],
    ]);
  });

  it('runs what was authorized where its parameters are pinned', async () => {
    const own = await start('--tool', 'exec', '--cap', 'calls=9');
    const rewrite = { from: 'echo mine > mine.txt', to: 'echo other > other.txt' };
    const said = await own.turn([make('mine')], { rewrite, config: { pin: true } });
    expect(own.files(), said).toEqual(['mine.txt']);
    expect(own.northroot('verify', own.ledger).status).toBe(0);
    expect(own.records()).toEqual(['exec allow ALLOW', 'exec success']);
  });

  it('decides on a tool that is called by another one', async () => {
    const own = await start('--tool', 'tool_call', '--cap', 'calls=9');
    const { input } = make('indirect');
    const said = await own.turn([{ tool: 'tool_call', input: { id: 'exec', args: input } }]);
    expect(own.files(), said).toEqual([]);
    expect(own.records()).toEqual(
      expect.arrayContaining(['tool_call allow ALLOW', 'exec deny TOOL_NOT_ALLOWED']),
    );
    expect(own.northroot('verify', own.ledger).status).toBe(0);
  });
});
