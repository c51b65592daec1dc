/** A ledger whose every free text is hostile: markup, scripts, addresses, controls, other directions of writing. */

import { action, genesis, grant, int, meters } from '../../fixtures/make/events.js';
import { ed25519Key } from '../../fixtures/make/keys.js';
import { FixtureLedger, keyEntry } from '../../fixtures/make/ledger.js';

export const HOSTILE = [
  '<img src=x onerror=northroot.pwned=1>',
  '</script><script>globalThis.pwned=1</script>',
  '<svg onload=globalThis.pwned=1><style>*{display:none}</style>',
  '"><iframe src=https://example.com/></iframe>',
  'javascript:globalThis.pwned=1',
  "'onmouseover='pwned=1' url(https://example.com/a.png) @import",
  '\u202egnp.exe\u2066\u200b\u0007',
  '{{constructor.constructor("pwned=1")()}} ${pwned=1} `',
  '<!--<script>',
];

/** @param more - Further texts; lone surrogates, which no ledger can hold, are replaced. */
export function hostileLedger(more = []) {
  const texts = [...HOSTILE, ...more.map((text) => text.replace(/\p{Cs}/gu, '\ufffd') || 'empty')];
  const key = ed25519Key('page hostile');
  const ledger = new FixtureLedger([key]);
  const at = (n) => new Date(Date.UTC(2026, 2, 2, 9, 0, n)).toISOString();
  ledger.append(genesis('example.com/<svg/onload=pwned=1>', at(0), [keyEntry(key, { name: HOSTILE[0] })]));
  texts.forEach((text, index) => {
    const id = ledger.append({
      ...grant({
        principal: 'agent:a1',
        at: at(index * 2 + 1),
        intent: 'x',
        bounds: {
          allowed_tools: ['*'],
          meter_caps: meters({ calls: int(3) }),
          resources: [{ kind: text.slice(0, 256), reference: text.slice(0, 1024) }],
        },
      }),
      policy_id: text.slice(0, 256),
      source: { system: text.slice(0, 64), id: text.slice(0, 512) },
    });
    ledger.append({
      ...action({
        principal: 'agent:a1',
        at: at(index * 2 + 2),
        intent: 'x',
        tool: 't',
        params: 'p',
        reserve: { calls: int(1) },
        parent: id,
      }),
      checks: [{ check: text.slice(0, 64), result: 'pass' }],
      policy_id: text.slice(0, 256),
    });
    ledger.append({
      event_type: `x.${index}`,
      occurred_at: at(index * 2 + 2),
      principal_id: 'agent:a1',
      [text]: { [text]: [text] },
    });
  });
  ledger.appendRaw({ event_type: HOSTILE[1], occurred_at: HOSTILE[0], principal_id: HOSTILE[2] });
  return ledger.bytes;
}
