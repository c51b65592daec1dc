/** A small ledger in which something was not authorized, something was too much, and something is open. */

import { action, dec, execution, genesis, grant, int, meters } from '../../fixtures/make/events.js';
import { ed25519Key } from '../../fixtures/make/keys.js';
import { digest, FixtureLedger, keyEntry } from '../../fixtures/make/ledger.js';

const intent = 'week';

export function mixedLedger() {
  const gateway = ed25519Key('page gateway');
  const bob = ed25519Key('page bob');
  const ledger = new FixtureLedger([gateway]);
  let minute = 0;
  const at = () => new Date(Date.UTC(2026, 2, 2, 9, minute++)).toISOString().replace('.000Z', 'Z');
  ledger.append(
    genesis('example.com/mixed', at(), [
      keyEntry(gateway, { name: 'gateway', roles: ['event'] }),
      keyEntry(bob, { name: 'Bob', roles: ['authority', 'admin'] }),
    ]),
    { by: [bob] },
  );
  const granted = ledger.append(
    grant({
      principal: 'agent:a3',
      at: at(),
      intent,
      bounds: {
        action_caps: meters({ usd: dec('0.2') }),
        allowed_tools: ['fs.write'],
        max_delegation_depth: 1,
        meter_caps: meters({ usd: dec('0.5'), calls: int(10) }),
      },
    }),
    { by: [bob] },
  );
  ledger.append(
    grant({
      principal: 'agent:a4',
      at: at(),
      intent,
      parent: granted,
      bounds: {
        action_caps: meters({ usd: dec('0.2') }),
        allowed_tools: ['fs.write'],
        meter_caps: meters({ usd: dec('0.1'), calls: int(2) }),
      },
    }),
    { by: [bob] },
  );
  const run = (auth, tool, used, more = {}) =>
    ledger.append(
      execution({
        principal: 'agent:a3',
        at: at(),
        intent,
        auth,
        tool,
        params: 'p',
        used: { usd: dec(used) },
        ...more,
      }),
    );
  run(granted, 'fs.write', '0.2');
  run(granted, 'fs.write', '0.35', { meter_basis: 'reported' });
  ledger.append(
    action({
      principal: 'agent:a3',
      at: at(),
      intent,
      tool: 'fs.write',
      params: 'p',
      reserve: { calls: int(1) },
      parent: granted,
    }),
  );
  run(digest('nowhere'), 'shell.rm', '3');
  return ledger.bytes;
}
