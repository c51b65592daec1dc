/** What the runner holds a writer's and a decider's ledgers to, on the fixtures, whose findings are known. */

import { createHash, createPrivateKey, randomBytes, sign } from 'node:crypto';
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

interface Step {
  readonly op: string;
  readonly input: Input;
  readonly expect: object;
  readonly save?: Readonly<Record<string, string>>;
}
type Input = Record<string, unknown>;
type Operation = (input: Input) => Promise<Input>;
const { DECIDER } = (await import(new URL('conformance/adapter/decider.js', ROOT).href)) as {
  DECIDER: Record<string, Operation>;
};
const { makeDeciderCases } = (await import(new URL('conformance/make/decider.js', ROOT).href)) as {
  makeDeciderCases: () => { readonly id: string; readonly steps: readonly Step[] }[];
};
interface Answered {
  note: (op: string, input: Input, result: Input) => void;
}
const { Answers } = (await load('check-decisions')) as { Answers: new () => Answered };
const { findFault } = (await load('judge')) as {
  findFault: (expect: object, result: Input, answers: Answered) => string | undefined;
};
const { expand } = (await load('content')) as {
  expand: <T>(value: T, files: ReadonlyMap<string, Buffer>, saved: ReadonlyMap<string, string>) => T;
};
const { canonicalText, keyidOf, paeOf } = (await load('check-ledger')) as {
  canonicalText: (value: unknown) => string;
  keyidOf: (secret: { readonly alg: string; readonly seed: string }) => string;
  paeOf: (event: Buffer) => Buffer;
};

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

const deciderCases = makeDeciderCases();
type Change = (op: string, input: Input, result?: Input) => void;

/** What the runner says of the ledgers of a trace when the product heard what `hear` makes of each request, and said what `say` does. */
async function faultOf(
  name: string,
  hear: Change,
  say: Change = () => undefined,
): Promise<string | undefined> {
  const { steps = [] } = deciderCases.find(({ id }) => id === `decider/${name}`) ?? {};
  const [answers, saved] = [new Answers(), new Map<string, string>()];
  for (const { op, input, expect: expected, save = {} } of steps) {
    const asked = expand(input, new Map(), saved);
    const heard = structuredClone(asked);
    hear(op, heard);
    const result = structuredClone(await DECIDER[op](heard));
    say(op, asked, result);
    if (op === 'close') return findFault(expand(expected, new Map(), saved), result, answers);
    for (const [id, member] of Object.entries(save)) saved.set(id, String(result[member]));
    answers.note(op, asked, result);
  }
  throw new Error(`no case ${name}`);
}

const hashed = (...parts: (string | Uint8Array)[]): { alg: string; b64: string } => {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return { alg: 'sha-256', b64: hash.digest('base64url') };
};

/** The ledger and one more event, rightly signed by the key of the decider. */
function withEvent(bytes: string, event: Input): string {
  const lines = Buffer.from(bytes, 'base64').toString().trimEnd().split('\n');
  const [genesis, grant] = lines.map((line) => (JSON.parse(line) as { event: Input }).event);
  const [key] = genesis['keys'] as Input[];
  const body = {
    canonical_profile_id: 'northroot-jcs-v1',
    event_version: '1',
    ledger_id: genesis['event_id'],
    occurred_at: '2026-01-01T01:00:00Z',
    principal_id: 'service:gate',
    ...event,
    ...(event['event_type'] === 'key' ? { key } : { grant_event_id: grant['event_id'] }),
  };
  const text = canonicalText(body);
  const whole = { ...body, payload_digest: hashed(text), event_id: hashed('northroot:event:v1\0', text) };
  const seed = createHash('sha256').update('northroot fixture key: conformance gate').digest();
  const der = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), seed]);
  const signer = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
  const signature = {
    keyid: keyidOf({ alg: 'ed25519', seed: seed.toString('base64') }),
    sig: sign(null, paeOf(Buffer.from(canonicalText(whole))), signer).toString('base64url'),
  };
  const prev = hashed(Buffer.of(0), lines.at(-1) ?? '');
  lines.push(canonicalText({ event: whole, prev, seq: lines.length, signatures: [signature] }));
  return Buffer.from(`${lines.join('\n')}\n`).toString('base64');
}

describe('a decider is found out', () => {
  const usd = (m: string): object[] => [{ unit: 'usd', amount: { t: 'dec', m, s: 3 } }];
  const only =
    (wanted: string, change: Input): Change =>
    (op, input) =>
      void (op === wanted && Object.assign(input, change));

  test('if it changes nothing, of nothing', async () => {
    for (const name of ['life', 'approval', 'delegate', 'start-in-time', 'slice-exceeded', 'slice-in-time'])
      expect(await faultOf(name, () => undefined), name).toBeUndefined();
  });

  test.each<[string, string, Change, string]>([
    ['another intent', 'no-key', only('decide', { intent_digest: `sha-256:${'A'.repeat(43)}` }), 'decide'],
    ['a call for ever', 'start-in-time', only('decide', { expires_at: undefined }), 'another expiry'],
    ['less than was asked', 'no-key', only('decide', { meters: usd('1') }), 'another reservation'],
    [
      'less in a grant',
      'delegate-revoked-below',
      only('delegate', { meter_caps: usd('999') }),
      'another grant',
    ],
    ['a smaller slice', 'slice-exceeded', only('slice', { meter_caps: usd('500') }), 'another reservation'],
    ['a whole slice', 'slice-exceeded', only('spend', { meter_caps: undefined }), 'another grant'],
    ['other tools', 'slice-open', only('spend', { allowed_tools: ['*'] }), 'another grant'],
    [
      'the name of another',
      'revoke-stop-here-before',
      only('open', { principal_id: 'human:eve' }),
      'principal',
    ],
  ])('that records %s', async (_, name, hear, why) => {
    expect(await faultOf(name, hear)).toContain(why);
  });

  test('that signs with the key of another', async () => {
    let first: unknown;
    const hear: Change = (op, input) => {
      if (op === 'open') input['secret'] = first ??= input['secret'];
    };
    expect(await faultOf('approval', hear)).toContain('not signed by the key that was given');
  });

  test.each<[string, Input]>([
    ['a key', { event_type: 'key', action: 'add' }],
    ['a revocation', { event_type: 'revocation', effect: 'revoke', in_flight: 'stop', reason: 'X' }],
    [
      'a credit',
      {
        event_type: 'adjustment',
        direction: 'credit',
        meters: [{ unit: 'usd', amount: { t: 'int', v: '1' } }],
      },
    ],
  ])('that adds %s which nobody asked for', async (_, event) => {
    const say: Change = (op, _input, result) => {
      const { gate } = (result?.['ledgers'] ?? {}) as { gate?: string };
      if (op === 'close' && gate !== undefined && result !== undefined)
        result['ledgers'] = { gate: withEvent(gate, event) };
    };
    expect(await faultOf('no-key', () => undefined, say)).toContain('nobody was told of it');
  });

  test('that tells another code than it records', async () => {
    const code: Change = (op, _, result) =>
      void (op === 'decide' && Object.assign(result ?? {}, { decision_code: 'X' }));
    expect(await faultOf('no-key', () => undefined, code)).toContain('decision_code');
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
