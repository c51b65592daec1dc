/** What the runner holds a writer's and a decider's ledgers to, on the fixtures, whose findings are known. */

import { randomBytes } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { ml_dsa44 } from '@noble/post-quantum/ml-dsa.js';
import { describe, expect, test } from 'vitest';

const ROOT = new URL('../../', import.meta.url);
const FIXTURES = fileURLToPath(new URL('fixtures/', ROOT));

interface Read {
  readonly events?: readonly object[];
  readonly fault?: string;
}
type ReadLedger = (bytes: Uint8Array) => Read;
type FindUnlawful = (events: readonly object[], from: number) => string | undefined;
type IsRight = (key: Uint8Array, message: Uint8Array, signature: Uint8Array) => boolean;

const load = async (name: string): Promise<unknown> =>
  import(new URL(`conformance/lib/${name}.js`, ROOT).href);
const { readLedger } = (await load('check-ledger')) as { readLedger: ReadLedger };
const { findUnlawful } = (await load('check-decisions')) as { findUnlawful: FindUnlawful };
const { isRightMlDsa44 } = (await load('ml-dsa-44')) as { isRightMlDsa44: IsRight };

interface Fixture {
  readonly ledger: string;
  readonly trust?: string;
  readonly verdict: string;
  readonly findings: readonly { readonly code: string; readonly severity?: string }[];
}

const { cases } = JSON.parse(readFileSync(`${FIXTURES}expected.json`, 'utf8')) as { cases: Fixture[] };
const alone = cases.filter(
  ({ ledger, trust }, index) =>
    trust === undefined &&
    cases.findIndex((each) => each.ledger === ledger) === index &&
    statSync(`${FIXTURES}${ledger}`).isFile() &&
    // A thousand records show nothing that a few do not.
    ledger !== 'ledgers/pipeline-1000.jsonl',
);
const known = new Map<string, Read>();
/** As the runner reads it. */
function read({ ledger }: Pick<Fixture, 'ledger'>): Read {
  const found = known.get(ledger) ?? readLedger(readFileSync(`${FIXTURES}${ledger}`));
  known.set(ledger, found);
  return found;
}
const codesOf = ({ findings }: Fixture): string[] =>
  findings.filter(({ severity }) => severity === undefined).map(({ code }) => code);
const nameOf = ({ ledger }: Fixture): string => ledger;

/** What no writer of a trace may write, though a verifier takes it: unsigned and bare records, passkeys. */
const NOT_OF_TRACES = /optional|unsigned|bare|before-authority|passkey/;
/** Ledgers in which another start takes one over, or with amounts of type f64. */
const NOT_DECIDED = /starts|in-flight|taken-over|quantities|lossy/;

describe('ledgers', () => {
  const sound = alone.filter((each) => each.verdict === 'ok' && !NOT_OF_TRACES.test(each.ledger));

  test('that are sound have no fault', () => {
    expect(sound.length).toBeGreaterThan(60);
    expect(sound.filter((each) => read(each).fault !== undefined).map(nameOf)).toEqual([]);
  });

  test('and break no bound', () => {
    const decided = sound.filter(({ ledger }) => !NOT_DECIDED.test(ledger));
    const unlawful = decided.filter((each) => findUnlawful(read(each).events ?? [], 1));
    expect(unlawful.map(nameOf)).toEqual([]);
  });

  test.each([
    ...['SIGNATURE_MISSING', 'KEY_UNKNOWN', 'KEY_NOT_FOR_ROLE', 'KEY_NOT_FOR_PRINCIPAL', 'PREV_MISMATCH'],
    ...['SEQ_GAP', 'EVENT_ID_MISMATCH', 'PAYLOAD_DIGEST_MISMATCH', 'LEDGER_MISMATCH', 'LEDGER_UNBOUND'],
    ...['EVENT_DUPLICATE', 'GENESIS_MISPLACED', 'NOT_CANONICAL', 'LINE_TORN'],
  ])('with %s have one', (code) => {
    const broken = alone.filter(
      (each) =>
        codesOf(each).includes(code) &&
        each.findings.length === 1 &&
        !NOT_OF_TRACES.test(each.ledger) &&
        // Notes are not looked at.
        !/checkpoint/.test(each.ledger),
    );
    expect(broken.length).toBeGreaterThan(0);
    expect(broken.filter((each) => read(each).fault === undefined).map(nameOf)).toEqual([]);
  });

  test.each([
    ['RESERVATION_OVER_CAP', 'allowed beyond a cap'],
    ['AUTHORIZATION_REUSED', 'a second execution of an action'],
    ['REQUEST_REPEATED', 'a request key for the second time'],
    ['APPROVAL_REUSED', 'an approval used for the second time'],
    ['SLICE_REUSED', 'a second grant of one slice'],
  ])('with %s were decided wrong', (code, words) => {
    const broken = alone.filter((each) => codesOf(each).join() === code && !NOT_OF_TRACES.test(each.ledger));
    expect(broken.length).toBeGreaterThan(0);
    for (const each of broken) expect(findUnlawful(read(each).events ?? [], 1), each.ledger).toContain(words);
  });

  test('in which something was allowed under a withdrawn grant', () => {
    for (const name of ['grant-revoked', 'grant-revoked-suspended', 'grant-revoked-twice'])
      expect(findUnlawful(read({ ledger: `broken/${name}.jsonl` }).events ?? [], 1)).toContain('withdrawn');
  });

  test.each([
    [{ t: 'int', v: 'x' }],
    [{ t: 'dec', m: '1', s: 1e9 }],
    [{ t: 'rat', n: '1', d: '0' }],
    [{ t: 'int', v: '9'.repeat(1e6) }],
  ])('with an amount that is none', (amount) => {
    const event = {
      event_type: 'authorization',
      event_id: { b64: 'x' },
      decision: 'allow',
      authorization: { kind: 'grant', bounds: { meter_caps: [{ unit: 'usd', amount }] } },
    };
    expect(() => findUnlawful([event], 0)).toThrow(TypeError);
  });
});

describe('ML-DSA-44', () => {
  const { publicKey, secretKey } = ml_dsa44.keygen(randomBytes(32));
  const message = randomBytes(100);
  const signature = ml_dsa44.sign(message, secretKey);

  test('takes what another implementation signed', () => {
    expect(isRightMlDsa44(publicKey, message, signature)).toBe(true);
    const empty = new Uint8Array();
    expect(isRightMlDsa44(publicKey, empty, ml_dsa44.sign(empty, secretKey))).toBe(true);
  });

  test('refuses every changed byte, another message, key or length', () => {
    // The challenge, the response, the hints, the places where hints end, and the filling between.
    for (const at of [0, 31, 32, 1_000, 2_335, 2_336, 2_415, 2_416, 2_419]) {
      const changed = Uint8Array.from(signature, (byte, index) => (index === at ? byte ^ 1 : byte));
      expect(isRightMlDsa44(publicKey, message, changed), String(at)).toBe(false);
      expect(ml_dsa44.verify(changed, message, publicKey), String(at)).toBe(false);
    }
    expect(isRightMlDsa44(publicKey, message.subarray(1), signature)).toBe(false);
    expect(isRightMlDsa44(ml_dsa44.keygen(randomBytes(32)).publicKey, message, signature)).toBe(false);
    expect(isRightMlDsa44(publicKey, message, signature.subarray(1))).toBe(false);
    expect(isRightMlDsa44(publicKey, message, new Uint8Array(2_420).fill(255))).toBe(false);
  });
});
