/** What a ledger says is shown, never obeyed: no escape sequence, no trick with the order of text, no line of its own. */

import { describe, expect, it } from 'vitest';
import { canonicalText } from '../../src/base/json/canonicalize.js';
import { identifyEvent } from '../../src/format/event/identity.js';
import { formatRecord } from '../../src/format/record/record.js';
import { digestFromBase64url } from '../../src/base/value/digest.js';
import type { ReportJson } from '../../src/format/schema/generated/types.js';
import { parse, Workshop, type Run } from './runner.js';

const shop = new Workshop();

/** Moves the cursor, sets the title, turns text round, hides it, and begins a line that a build server would obey. */
const EVIL =
  'a\u001b[31m\u001b]0;title\u0007\u009b2J\u202edlrow\u2066\u200b\u2028\r\n::error::pwned\n##[error]pwned\u0085\ufeff\u{e0041}';

const envelope = {
  event_version: '1',
  canonical_profile_id: 'northroot-jcs-v1',
  occurred_at: '2026-01-01T00:00:00Z',
  principal_id: 'agent:a1',
};
const digest = digestFromBase64url('47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU');

/** A record of an event that is hostile in these members, its ids right. */
function record(seq: number, members: object, signatures: { keyid: string; sig: string }[] = []): Uint8Array {
  const payload = { ...envelope, ...members };
  const { eventId, payloadDigest } = identifyEvent(payload);
  const event = {
    ...payload,
    event_id: digestFromBase64url(eventId),
    payload_digest: digestFromBase64url(payloadDigest),
  };
  return formatRecord({
    eventText: canonicalText(event),
    prev: digest.b64,
    seq,
    signatures,
    meta: { [EVIL]: EVIL },
  });
}

const genesis = {
  event_type: 'genesis',
  ledger_version: '1',
  keys: [],
  signing: { events: 'optional', checkpoints: 'optional' },
};
const lines = [
  record(0, { ...genesis, origin: EVIL }),
  record(1, { event_type: EVIL }),
  record(2, { event_type: 'x.evil', [EVIL]: EVIL, text: EVIL }, [{ keyid: EVIL, sig: EVIL }]),
  record(3, { event_type: 'x.evil', principal_id: EVIL, occurred_at: EVIL, canonical_profile_id: EVIL }),
  record(4, { event_type: 'execution', tool_name: EVIL, outcome: EVIL, [EVIL]: { [EVIL]: EVIL } }),
  record(5, {
    event_type: 'authorization',
    decision: EVIL,
    decision_code: EVIL,
    authorization: { kind: EVIL },
  }),
  Buffer.from('{"event":\u001b[2J\u202e::error::pwned}\n'),
  Buffer.from('\r\u001b[2K::error::pwned\r\n'),
  Buffer.concat([Buffer.from('"\u009b'), Buffer.of(0xff, 0x1b), Buffer.from('::error::pwned\n')]),
  Buffer.from('\u202e::error::torn'),
];
shop.write('hostile.jsonl', Buffer.concat(lines));
shop.write('events.jsonl', JSON.stringify({ event_type: EVIL }));
const evilName = 'a\u001b[31m\u202e\n::error::name.jsonl';
shop.write(evilName, Buffer.concat(lines));

const UNSAFE =
  /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\u{e0000}-\u{e007f}]/u;

function expectTame({ status, stdout, stderr }: Run): void {
  expect([0, 1, 2]).toContain(status);
  for (const text of [stdout, stderr]) {
    expect(UNSAFE.exec(text)?.[0]).toBeUndefined();
    expect(text.split('\n').filter((line) => /^\s*::|^##\[/.test(line))).toEqual([]);
  }
  expect(stdout + stderr).not.toBe('');
}

describe('a hostile ledger', () => {
  it.each(['text', 'json', 'ndjson'])('is tame in a report: %s', (format) => {
    for (const name of ['hostile.jsonl', evilName]) {
      expectTame(shop.run(['verify', name, '--format', format]));
    }
  });

  it('keeps its strings as they are in a JSON report', () => {
    const { stdout } = shop.run(['verify', 'hostile.jsonl', '--format', 'json']);
    expect(Object.keys(parse<ReportJson>(stdout).counts.by_type)).toContain(EVIL);
  });

  it.each(['hostile.jsonl', evilName])('is tame in a log', (name) => {
    const run = shop.run(['log', name]);
    expectTame(run);
    expect(run.stdout.trim().split('\n')).toHaveLength(6);
  });

  it('is tame when a record is shown, which keeps its value', () => {
    for (const seq of ['0', '2', '4']) {
      const run = shop.run(['show', 'hostile.jsonl', seq]);
      expectTame(run);
      const [, ...json] = run.stdout.split('\n');
      expect(JSON.parse(json.join('\n'))).toEqual(JSON.parse(lines[Number(seq)].toString()));
    }
    expectTame(shop.run(['show', evilName, '1']));
  });
});

describe('a hostile argument or input', () => {
  it.each<string[]>([
    ['show', 'hostile.jsonl', EVIL],
    ['verify', EVIL],
    ['verify', 'hostile.jsonl', '--trust', evilName],
    ['verify', `--${EVIL}`],
    [EVIL],
    ['log', 'hostile.jsonl', '--since', EVIL],
    ['log', 'hostile.jsonl', '--tool', EVIL],
    ['explain', EVIL],
    ['schema', EVIL],
    ['init', 'new.jsonl', '--origin', EVIL],
    ['init', evilName],
    ['key', 'show', evilName],
    ['append', 'hostile.jsonl', 'events.jsonl', '--unsigned'],
    ['append', 'new.jsonl', evilName, '--unsigned', '--create'],
    ['append', 'new.jsonl', 'events.jsonl', '--unsigned', '--create'],
    ['canonicalize', evilName],
    ['event-id', 'events.jsonl'],
    ['repair', evilName],
  ])('is tame in what is said of it: %#', (...args) => {
    expectTame(shop.run(args));
  });
});
