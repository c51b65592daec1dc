/** Records that a writer has to make, byte by byte, and events that it has to refuse. */

import { buildEvent } from '../../dist/api/format.js';
import { execution, genesis, grant, int, meters } from '../../fixtures/make/events.js';
import { ed25519Key, sha256 } from '../../fixtures/make/keys.js';
import { digest, FixtureLedger, keyEntry, treeRoot } from '../../fixtures/make/ledger.js';
import { checkpointText, logLine, noteOf } from '../../fixtures/make/notes.js';
import { base64, utf8 } from './cases.js';
import { secretOf } from './secrets.js';

const LEDGERS = [
  'agent-run',
  'authority',
  'approvals',
  'revocations',
  'stated',
  'starts',
  'quantities',
  'slices',
  'bound',
  'meta',
  'names-at-their-limits',
  'key-rotation',
];
const NAMES = [
  ...['agent-run', 'authority agent', 'authority helper', 'broken stranger', 'overseen stranger'],
  ...['overseen ada', 'overseen ben', 'variations', 'variations second', 'broken third', 'broken'],
];
/** Faults that an event has by itself. */
const OWN_FAULTS = new Set([
  ...['SCHEMA', 'TIMESTAMP_INVALID', 'QUANTITY_INVALID', 'METER_UNIT_DUPLICATE', 'METER_NEGATIVE'],
  ...['PROFILE_UNKNOWN', 'EVENT_VERSION_UNKNOWN'],
]);
const KEY = ed25519Key('conformance');
const ORIGIN = 'conformance.example/writer';
const at = (second) => `2026-01-01T00:00:${String(second).padStart(2, '0')}Z`;

export function makeWriterCases(files, verifierCases) {
  return [
    ...makeRecords(files),
    ...makeRefusals(files, verifierCases),
    ...makeAppends(),
    ...makeCheckpoints(),
  ];
}

function withoutIds({ event_id: id, payload_digest: payload, ...event }) {
  void [id, payload];
  return event;
}

function makeRecords(files) {
  const names = new Map(NAMES.map((name) => [ed25519Key(name).keyid, name]));
  const cases = [];
  for (const ledger of LEDGERS) {
    const lines = files.get(`ledgers/${ledger}.jsonl`).toString().trimEnd().split('\n');
    for (const [seq, line] of lines.entries()) {
      const { event, meta, signatures } = JSON.parse(line);
      if (!signatures.every(({ keyid }) => names.has(keyid))) continue;
      cases.push({
        id: `record/${ledger}-${seq}`,
        op: 'record',
        about: `${event.event_type} with ${signatures.length} signatures`,
        input: {
          previous: seq === 0 ? null : utf8(lines[seq - 1]),
          seq,
          event: withoutIds(event),
          secrets: signatures.map(({ keyid }) => secretOf(names.get(keyid))),
          ...(meta && { meta }),
        },
        expect: { line: utf8(line) },
      });
    }
  }
  return cases;
}

/** Of the broken ledgers: events that are at fault by themselves. */
function makeRefusals(files, verifierCases) {
  const cases = [];
  for (const { id, input, expect } of verifierCases) {
    const [finding] = expect.findings ?? [];
    if (!id.startsWith('verify/broken/') || expect.findings.length !== 1 || input.trust !== undefined)
      continue;
    const { code, at: place } = finding;
    if (!OWN_FAULTS.has(code) || !place.pointer?.startsWith('/event/') || input.ledger.bytes === undefined)
      continue;
    const line = files.get(input.ledger.name).toString().split('\n')[place.line - 1];
    const event = withoutIds(JSON.parse(line).event);
    if (!isOwnFault(event, code)) continue;
    cases.push({
      id: id.replace('verify/broken/', 'record/refused-'),
      op: 'record',
      about: `an event that is ${code} at ${place.pointer}`,
      input: { previous: null, seq: 0, event, secrets: [secretOf('conformance')] },
      expect: { refused: code },
    });
  }
  return cases;
}

/** A key that is there already, say, is the fault of the ledger. */
function isOwnFault(event, code) {
  try {
    buildEvent(event);
    return false;
  } catch (error) {
    if (error.code === code) return true;
    throw error;
  }
}

function begin(more = {}) {
  const ledger = new FixtureLedger([KEY]);
  const signing = { binding: 'required', checkpoints: 'optional', events: 'required' };
  ledger.append(genesis(ORIGIN, at(0), [keyEntry(KEY)], { signing, ...more }));
  return ledger;
}

/** As the ledger makes it, bound to it. */
function add(ledger, draft) {
  return ledger.append(draft, { bind: true });
}

const GRANT = {
  principal: 'agent:a',
  at: at(1),
  intent: 'write',
  bounds: { allowed_tools: ['t'], meter_caps: meters({ usd: int(10) }) },
};

function makeAppends() {
  const secret = secretOf('conformance');
  const append = (name, about, ledger, drafts, results, after) => ({
    id: `append/${name}`,
    op: 'append',
    about,
    input: { ledger: { name: 'ledger.jsonl', bytes: base64(ledger) }, secret, drafts },
    expect: { results, bytes: base64(after) },
  });
  const run = (auth, second, more = {}) =>
    execution({
      principal: 'agent:a',
      at: at(second),
      intent: 'write',
      tool: 't',
      auth,
      used: { usd: int(1) },
      ...more,
    });
  const start = () => {
    const ledger = begin();
    const auth = add(ledger, grant(GRANT));
    return { ledger, auth, before: ledger.bytes };
  };
  const cases = [];
  {
    const { ledger, auth, before } = start();
    const drafts = [
      run(auth, 2),
      run(auth, 3),
      { event_type: 'x.note', principal_id: 'agent:a', occurred_at: at(4), text: 'é\u2028' },
    ];
    for (const draft of drafts) add(ledger, draft);
    cases.push(
      append(
        'three',
        'three drafts, bound and chained',
        before,
        drafts,
        [{ seq: 2 }, { seq: 3 }, { seq: 4 }],
        ledger.bytes,
      ),
    );
  }
  {
    const { ledger, auth, before } = start();
    const drafts = [run(auth, 2), run(auth, 3), run(auth, 2)];
    for (const draft of drafts.slice(0, 2)) add(ledger, draft);
    cases.push(
      append(
        'again',
        'the same event again is no new record',
        before,
        drafts,
        [{ seq: 2 }, { seq: 3 }, { exists: 2 }],
        ledger.bytes,
      ),
    );
  }
  {
    const { ledger, auth, before } = start();
    const unknown = digest('no such authorization');
    const wrong = { ...run(auth, 2), meter_used: [{ unit: 'usd', amount: { t: 'int', v: '+1' } }] };
    const other = { ...run(auth, 2), ledger_id: digest('another ledger') };
    const drafts = [run(unknown, 2), wrong, other, run(auth, 5)];
    add(ledger, drafts[3]);
    const results = [
      { refused: 'AUTH_NOT_FOUND' },
      { refused: 'QUANTITY_INVALID' },
      { refused: 'LEDGER_MISMATCH' },
      { seq: 2 },
    ];
    cases.push(
      append(
        'refused',
        'what would make the ledger invalid is refused, and the writer goes on',
        before,
        drafts,
        results,
        ledger.bytes,
      ),
    );
  }
  {
    const { ledger, before } = start();
    const again = genesis(ORIGIN, at(9), [keyEntry(KEY)]);
    cases.push(
      append(
        'second-genesis',
        'a second genesis is refused',
        before,
        [again],
        [{ refused: 'GENESIS_MISPLACED' }],
        ledger.bytes,
      ),
    );
  }
  return cases;
}

function makeCheckpoints() {
  return [1, 2, 5].map((size) => {
    const ledger = begin();
    for (let seq = 1; seq < size; seq += 1)
      add(ledger, { event_type: 'x.note', principal_id: 'agent:a', occurred_at: at(seq), n: seq });
    const before = ledger.bytes;
    const root = treeRoot(ledger.lines);
    const text = checkpointText(ORIGIN, size, root);
    add(ledger, {
      chain_tip_event_id: ledger.lastId,
      event_type: 'checkpoint',
      note: noteOf(text, [logLine(KEY, text)]),
      occurred_at: at(30),
      principal_id: 'service:ledger',
      root: { alg: 'sha-256', b64: root.toString('base64url') },
      tree_size: size,
    });
    return {
      id: `checkpoint/${size}`,
      op: 'checkpoint',
      about: `a checkpoint of ${size} records`,
      input: {
        ledger: { name: 'ledger.jsonl', bytes: base64(before) },
        secret: secretOf('conformance'),
        principal_id: 'service:ledger',
        now: at(30),
      },
      expect: { line: utf8(ledger.lines.at(-1).toString()) },
      intermediate: {
        root: root.toString('hex'),
        note_text: text,
        note_digest: sha256(text).toString('hex'),
      },
    };
  });
}
