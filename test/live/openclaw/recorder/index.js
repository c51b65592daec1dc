/** The first of all handlers: records what the host tells hooks, and kills a service where the test says so. */

import { appendFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';

let n = 0;

export default {
  id: 'recorder',
  name: 'recorder',
  description: 'Records hooks.',
  register(api) {
    const record = (hook, event, ctx) => {
      const { agentId, sessionKey, sessionId, runId, toolCallId } = ctx;
      const told = {
        n: (n += 1),
        ts: Date.now(),
        hook,
        event,
        ctx: { agentId, sessionKey, sessionId, runId, toolCallId },
      };
      appendFileSync(process.env.RECORDING, `${JSON.stringify(told)}\n`);
    };
    api.on(
      'before_tool_call',
      async (event, ctx) => {
        record('before_tool_call', event, ctx);
        if (!JSON.stringify(event.params).includes(process.env.KILL_BEFORE ?? '\n')) return;
        // What was told to it before has been recorded by then.
        await setTimeout(2_000);
        process.kill(Number(process.env.SERVICE_PID), 'SIGKILL');
        await setTimeout(1_000);
      },
      { priority: 1_000 },
    );
    api.on('after_tool_call', (event, ctx) => record('after_tool_call', event, ctx));
  },
};
