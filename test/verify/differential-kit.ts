/** Ledgers long enough for signature tables and for rooms that are used in turn, with signatures and records of every kind among the scannable ones. */

import { createHash } from 'node:crypto';
import { canonicalBytes, meters, type AnyEvent, type EventSignature } from '../../src/api/index.js';
import type { Key } from '../../src/format/schema/generated/types.js';
import { readPrivateDer } from '../../src/format/key/private-key.js';
import { createSigner, signEvent, type Signer } from '../../src/format/signature/signer.js';
import type { Quantity } from '../../src/base/value/quantity.js';
import { formatRecord } from '../../src/format/record/record.js';
import {
  appendLeaf,
  emptyRange,
  hashToBase64url,
  leafHash,
  rangeRoot,
} from '../../src/format/tree/compact-range.js';
import { boundIfKey, checkpoint, event, genesis, keyOf, makeSigner } from '../docs/ledger-kit.js';

const ALLOW = {
  decision: 'allow',
  decision_code: 'OK',
  policy_id: 'policy/1',
  policy_digest: digest('policy'),
};
const INTENTS = { intent_digest: digest('intent') };
const TOOL = { tool_name: 'fs.read', tool_params_digest: digest('params') };
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
/** The order of the base point of Ed25519. */
const ORDER = 2n ** 252n + 27_742_317_777_372_353_535_851_937_790_883_648_493n;

/** Between signatures that are refused: as many as wait at most, one more, one less. */
const DISTANCES = [0, 1, 2, 63, 64, 65, 254, 255, 256, 257, 511, 512];
/** The same of ledgers that are shorter. */
const SHORT_DISTANCES = [0, 1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24];
const MANY_KEYS = 24;

/** The same in each run: what differs is who signs what. */
const [UNKNOWN, ...SIGNERS] = Array.from({ length: 1 + MANY_KEYS }, (_, n) => {
  const head = Buffer.from('302e020100300506032b657004220420', 'hex');
  return createSigner(readPrivateDer(Buffer.concat([head, Buffer.alloc(32, n + 1)])));
}) as [Signer, ...Signer[]];
const P256 = makeSigner('p256');

type Choose = <T>(list: readonly T[]) => T;

export interface MadeLedger {
  readonly bytes: Buffer;
  /** How many lines it was made of. */
  readonly lines: number;
  /** The lines, counted from 0, of which a signature was meant to be refused. */
  readonly refused: readonly number[];
}

function digest(text: string): object {
  return { alg: 'sha-256', b64: createHash('sha256').update(text).digest('base64url') };
}

/** @param length - In records; some may be added for the keys. */
export function makeLedger(random: () => number, length: number): MadeLedger {
  const below = (end: number): number => Math.floor(random() * end);
  const pick: Choose = (list) => list[below(list.length)];
  const signers = SIGNERS.slice(0, random() < 0.1 ? 4 + below(MANY_KEYS - 4) : 1 + below(3));
  const [owner] = signers;
  const isShort = length < 100;
  const refusals = new Refusals(pick, below, signers, isShort);
  const refusedAt = chooseRefused(below, pick, length);
  // In a short ledger there would be none otherwise.
  const oddity = pick(isShort ? [0, 0.1, 0.3, 0.6] : [0, 0.02, 0.1, 0.3]);
  const changes = pick(isShort ? [0, 0, 0.02, 0.05] : [0, 0, 0.002, 0.01]);
  const isTable = random() < 0.6;
  // As gates write them: actions with an expiry and a request key, a start, an execution that names it.
  const isGuarded = random() < 0.5;
  const maker = new Maker();
  const refused: number[] = [];

  const keys: Key[] = signers.map((signer) => keyOf(signer, { roles: ['event', 'authority', 'checkpoint'] }));
  if (random() < 0.3) keys.push(keyOf(P256));
  // The same key again, by the same keyid: with other roles, or for others.
  if (random() < 0.1)
    keys.push(keyOf(pick(signers), { roles: ['event'], principals: [pick(['*', 'agent:other'])] }));
  const first = genesis(keys, {
    signing: { events: pick(['required', 'required', 'optional']), checkpoints: 'optional' },
  });
  maker.put(first, [signEvent(canonicalBytes(first), owner)]);

  const grants: AnyEvent[] = [];
  const open: AnyEvent[] = [];
  const approvals: AnyEvent[] = [];
  const starts: { readonly start: AnyEvent; readonly under: AnyEvent }[] = [];
  let second = 0;
  const at = (): { occurred_at: string } => {
    second += random() < 0.02 ? -below(3) : below(3);
    return { occurred_at: `${new Date(Date.UTC(2026, 0, 2) + second * 1_000).toISOString().slice(0, 19)}Z` };
  };

  /** Rules of approval, near what calls reserve and use. */
  const makeRules = (): object[] =>
    Array.from({ length: 1 + below(2) }, () => ({
      tools: [pick(['fs.*', 'fs.*', 'deploy'])],
      approvers: ['human:*'],
      ...(random() < 0.8 && {
        above: meters(
          pick<Readonly<Record<string, Quantity>>>([
            { calls: { t: 'int', v: '1' } },
            { usd: { t: 'int', v: '2' } },
            { usd: { t: 'dec', m: '25', s: 1 } },
            { usd: { t: 'rat', n: '7', d: '3' } },
            { calls: { t: 'int', v: '1' }, usd: { t: 'int', v: '3' } },
          ]),
        ),
      }),
    }));
  const makeGrant = (): AnyEvent => {
    const parent = random() < 0.3 ? grants.at(-1) : undefined;
    const made = event('authorization', {
      ...ALLOW,
      ...at(),
      intents: INTENTS,
      authorization: {
        kind: 'grant',
        bounds: {
          allowed_tools: ['*'],
          meter_caps: meters({
            calls: { t: 'int', v: pick(['20', '1000000']) },
            usd: pick([
              { t: 'int', v: '5000' },
              { t: 'int', v: '5000' },
              { t: 'dec', m: '71', s: 1 },
              { t: 'rat', n: '20000', d: '3' },
              { t: 'f64', bits: '40b3880000000000' },
            ]),
          }),
          ...(random() < 0.2 && { concurrency_limit: { t: 'int', v: '2' } }),
          ...(random() < 0.2 && { expires_at: '2026-01-02T00:05:00Z' }),
          ...(random() < 0.2 && { rate_limits: meters({ 'calls.per_min': 5 }) }),
          ...(random() < 0.2 && { approvals: makeRules() }),
        },
        ...(parent && { grant_event_id: parent.event_id }),
      },
    });
    grants.push(made);
    return made;
  };
  const unusualAmounts: readonly Readonly<Record<string, Quantity>>[] = [
    { usd: { t: 'rat', n: '1', d: '3' } },
    { usd: { t: 'f64', bits: '3fb999999999999a' } },
    { usd: { t: 'dec', m: '1', s: 38 } },
    { usd: { t: 'int', v: '9'.repeat(20) } },
    Object.fromEntries([...'abcdefg'].map((unit) => [unit, { t: 'int', v: '1' }])),
  ];
  // An execution that is silent about a unit names fewer than its grant does.
  const amounts = (): unknown =>
    meters(
      pick<Readonly<Record<string, Quantity>>>([
        { calls: { t: 'int', v: '1' } },
        { calls: { t: 'int', v: '1' }, usd: { t: 'int', v: '2' } },
        { usd: { t: 'dec', m: '25', s: 1 } },
        {},
        ...(random() < oddity ? unusualAmounts : []),
      ]),
    );
  /** What makes a record unusual and changes nothing else. */
  const source = (): object =>
    random() < oddity / 4
      ? { source: { system: pick(['billing', 'other']), id: `${maker.lines.length}` } }
      : {};
  /** Far away, or at the instant of an event to come, or with a fraction of a second more. */
  const expiry = (): string => {
    if (random() < 0.8)
      return pick(['2026-01-02T00:00:20Z', '2026-03-01T00:00:00Z', '2026-03-01T00:00:00.5Z']);
    const time = new Date(Date.UTC(2026, 0, 2) + (second + below(4)) * 1_000).toISOString().slice(0, 19);
    return `${time}${pick(['', '', '.0', '.000000001'])}Z`;
  };
  const makeAction = (): AnyEvent => {
    const approved = approvals.length > 0 && random() < oddity ? [pick(approvals).event_id] : undefined;
    const isAsked = random() < oddity / 4;
    const isOtherCall = random() < oddity / 8;
    const made = event('authorization', {
      ...ALLOW,
      ...(isAsked && { decision: 'deny', decision_code: 'APPROVAL_REQUIRED' }),
      ...at(),
      intents: INTENTS,
      ...source(),
      authorization: {
        kind: 'action',
        action: {
          ...TOOL,
          ...(approved && { approval_event_ids: approved }),
          meter_reservation: amounts(),
          ...(isOtherCall && { tool_params_digest: digest('other') }),
          ...(random() < (isGuarded ? 0.8 : oddity / 4) && { expires_at: expiry() }),
          ...(random() < (isGuarded ? 0.7 : oddity / 4) && {
            request_key: `ask/${random() < oddity / 4 ? below(5) : maker.lines.length}`,
          }),
        },
        grant_event_id: pick(grants).event_id,
      },
    });
    open.push(made);
    return made;
  };
  const makeStart = (): AnyEvent => {
    // Or it takes over the one that it follows.
    const earlier = starts.length > 0 && random() < (isGuarded ? oddity / 2 : 0.4) ? pick(starts) : undefined;
    const begun = new Set(starts.map(({ under: each }) => each));
    const fresh = isGuarded ? open.filter((each) => !begun.has(each)) : [];
    const under = earlier?.under ?? pick(fresh.length > 0 ? fresh : [...open, ...grants]);
    const time = at();
    const start = event('x.northroot.start', {
      ...time,
      intents: INTENTS,
      auth_event_id: under.event_id,
      ...TOOL,
      started_at: time.occurred_at,
      meter_known: meters(pick([{}, { usd: { t: 'int', v: '1' } }])),
      recorder: pick(['recorder-00000001', 'recorder-00000002']),
      ...(earlier && { prev_event_id: earlier.start.event_id }),
    });
    starts.push({ start, under });
    return start;
  };
  /** A start; of guarded calls mostly the earliest, and once. */
  const takeStarted = (): (typeof starts)[number] => {
    if (!isGuarded || random() < oddity / 2) return pick(starts);
    const [first] = starts.splice(0, 1) as [(typeof starts)[number]];
    const place = open.indexOf(first.under);
    if (place !== -1) open.splice(place, 1);
    return first;
  };
  const makeExecution = (): AnyEvent => {
    const time = at();
    const isUnder = open.length > 0 && random() < 0.8;
    const started = starts.length > 0 && random() < (isGuarded ? 0.7 : 0.3) ? takeStarted() : undefined;
    const under = started?.under ?? (isUnder ? open.splice(below(open.length), 1)[0] : pick(grants));
    if (isUnder && random() < oddity / 4) {
      // A release.
      const end = { outcome: 'failure', error_code: 'ABANDONED', meter_used: meters({}) };
      return event('execution', {
        ...time,
        ...TOOL,
        intents: INTENTS,
        auth_event_id: under.event_id,
        ...end,
      });
    }
    const used = amounts();
    const isPriced = (used as readonly { readonly unit: string }[]).some(({ unit }) => unit === 'usd');
    return event('execution', {
      ...time,
      ...source(),
      ...(started && { prev_event_id: started.start.event_id }),
      ...TOOL,
      intents: INTENTS,
      auth_event_id: under.event_id,
      meter_used: used,
      ...(isPriced && random() < 0.5 && { meter_basis_by_unit: { usd: pick(['estimated', 'reported']) } }),
      ...pick([{ outcome: 'success' }, { outcome: 'success' }, { outcome: 'failure', error_code: 'FAILED' }]),
      ...(random() < 0.7 && { started_at: time.occurred_at, ended_at: time.occurred_at }),
    });
  };
  const makeKeyEvent = (): AnyEvent =>
    event('key', {
      ...at(),
      action: pick(['add', 'add', 'revoke']),
      key: keyOf(pick([...SIGNERS.slice(0, 5), P256]), { roles: ['event'] }),
    });
  const makeRevocation = (): AnyEvent => {
    const effect = pick(['suspend', 'resume', 'revoke']);
    return event('revocation', {
      ...at(),
      ...source(),
      grant_event_id: pick(grants).event_id,
      effect,
      ...(effect !== 'resume' && { in_flight: pick(['finish', 'stop']) }),
      reason: 'POLICY',
    });
  };
  const makeApproval = (): AnyEvent => {
    const made = event('approval', {
      ...at(),
      ...source(),
      principal_id: 'human:h1',
      grant_event_id: pick(grants).event_id,
      decision: pick(['approve', 'reject']),
      decision_code: 'OK',
      ...TOOL,
      expires_at: '2026-03-01T00:00:00Z',
    });
    approvals.push(made);
    return made;
  };
  const makeOdd = (): AnyEvent => {
    const kind = below(12);
    if (kind === 0) return makeGrant();
    if (kind === 1) return checkpoint(random() < 0.8 ? [owner] : [pick(SIGNERS)])(maker.before());
    if (kind === 2) return makeStart();
    if (kind === 3)
      return event('adjustment', {
        ...at(),
        ...source(),
        grant_event_id: pick(grants).event_id,
        direction: pick(['credit', 'debit']),
        reason: 'REFUND',
        meters: meters({ usd: { t: 'int', v: pick(['1', '700']) } }),
      });
    if (kind === 4) return event('x.other', { ...at(), prev_event_id: maker.before().tip.event_id });
    if (kind === 5) return event('x.note', { ...at(), text: '\u00e9\u4e16\ud83d\ude00 "\\' });
    if (kind === 6)
      return event('x.deep', {
        ...at(),
        list: [[{ a: [1, true, null] }]],
        more: 'x'.repeat(below(pick([20, 500, 5_000]))),
      });
    if (kind === 7) return makeStart();
    if (kind === 8 && random() < 0.4) return makeRevocation();
    if (kind === 9) return makeApproval();
    // The event before, which is there already.
    if (kind === 10) return maker.before().tip;
    return random() < changes * 20 ? makeKeyEvent() : makeGrant();
  };

  makeFirstGrant();
  while (maker.lines.length < length) {
    const seq = maker.lines.length;
    const raw = random() < changes ? below(5) : -1;
    if (raw === 4) {
      // The line before once more, or another version of it, with whatever is wrong with that.
      const before = maker.lines.at(-1) as Buffer;
      const [from, to] = pick([
        ['', ''],
        ['"signatures":[', '"signatures":[ '],
        [/"seq":\d+/, `"seq":${seq}`],
        [/"sig":"[^"]*"/, '"sig":""'],
      ] as const);
      for (let times = 1 + below(3); times > 0; times -= 1) maker.raw(before.toString().replace(from, to));
      continue;
    }
    if (raw === 0) {
      maker.raw(pick(['{}', 'no JSON', '', '[1]', '{"event":', '\u0000', `{"a":"${'x'.repeat(66_000)}"}`]));
      continue;
    }
    const isOdd = random() < oddity;
    const made = bound(isOdd ? makeOdd() : isTable ? usual() : event('x.note', { ...at(), text: `${seq}` }));
    const bytes = canonicalBytes(made);
    const signer = random() < 0.8 ? owner : pick(signers);
    const right = signEvent(bytes, signer);
    if (refusedAt.has(seq)) {
      refused.push(seq);
      maker.put(made, refusals.make(right, signer, bytes));
    } else if (random() < 0.02) {
      maker.put(made, many(bytes));
    } else {
      maker.put(made, [right], raw > 0 ? shapeOf(raw) : undefined);
    }
    refusals.passed(right);
  }
  const whole = maker.bytes();
  const torn =
    random() < 0.1 ? whole.subarray(0, Math.max(0, whole.length - 1 - below(pick([3, 200])))) : whole;
  return { bytes: torn, lines: maker.lines.length, refused };

  function makeFirstGrant(): void {
    const made = makeGrant();
    maker.put(made, [signEvent(canonicalBytes(made), owner)]);
  }
  function usual(): AnyEvent {
    const kind = random();
    if (isGuarded && kind < 0.3) return makeStart();
    if (kind < (isGuarded ? 0.6 : 0.45)) return makeAction();
    return kind < 0.9 ? makeExecution() : event('x.note', { ...at(), text: 'usual' });
  }
  function bound(made: AnyEvent): AnyEvent {
    return boundIfKey(first, made);
  }
  function many(bytes: Uint8Array): EventSignature[] {
    return [...signers, ...(random() < 0.3 ? [P256] : [])].map((each) => signEvent(bytes, each));
  }
  function shapeOf(kind: number): (line: string) => string {
    if (kind === 1) return (line) => line.replace('{', '{ ');
    if (kind === 2) return (line) => `${line}\r`;
    return (line) => line.replace(/"seq":(\d+)/, (_, seq: string) => `"seq":${Number(seq) + 1}`);
  }
}

/** Places of signatures to refuse: at random, in runs, and so far apart as rooms are used again. */
function chooseRefused(below: (end: number) => number, pick: Choose, length: number): Set<number> {
  const places = new Set<number>();
  const distances =
    length < 100 || below(2) === 0 ? SHORT_DISTANCES : [...DISTANCES, ...SHORT_DISTANCES, below(300)];
  const kind = below(5);
  if (kind === 0 && (length < 100 || below(3) === 0)) return places;
  if (kind === 1) {
    for (let n = 0; n < 1 + below(40); n += 1) places.add(1 + below(length));
  } else if (kind === 2) {
    for (let at = 1 + below(Math.min(length, 100)); at < length; at += 1 + pick(distances)) places.add(at);
  } else if (kind === 3) {
    const share = pick([2, 3, 10]);
    for (let at = 1; at < length; at += 1) if (below(share) === 0) places.add(at);
  } else {
    for (
      let at = length < 100 ? below(length) : 64 + below(100);
      at < length;
      at += Math.max(1, pick(distances))
    )
      for (let run = 0; run < 1 + below(3); run += 1) places.add(at + run);
    places.add(length - 1);
  }
  return places;
}

/** Signatures that are refused, each in its own way. */
class Refusals {
  readonly #pick: Choose;
  readonly #below: (end: number) => number;
  readonly #signers: readonly Signer[];
  /** In one ledger most are of one kind. */
  readonly #usual: number;
  readonly #isShort: boolean;
  #before: EventSignature | undefined;

  /** @param isShort - In a long ledger most are such as cannot be decoded: they are refused before others are waited for. */
  constructor(pick: Choose, below: (end: number) => number, signers: readonly Signer[], isShort: boolean) {
    this.#pick = pick;
    this.#below = below;
    this.#signers = signers;
    this.#isShort = isShort;
    this.#usual = isShort || below(4) === 0 ? below(KINDS) : 0;
  }

  /** A valid signature, that is none of the next event. */
  passed(signature: EventSignature): void {
    this.#before = signature;
  }

  make(right: EventSignature, signer: Signer, bytes: Uint8Array): EventSignature[] {
    const { keyid, sig } = right;
    const isUsual = this.#isShort ? this.#below(2) === 0 : this.#below(5) > 0;
    const wrong = this.#wrong(right, bytes, isUsual ? this.#usual : this.#below(KINDS));
    const kind = this.#below(this.#isShort ? 12 : 40);
    if (kind === 0) return [right, { keyid, sig: wrong.sig }];
    if (kind === 1) return [{ keyid, sig: wrong.sig }, right];
    if (kind === 2) return [...this.#signers.map((each) => signEvent(bytes, each)), wrong];
    if (kind === 3)
      return [
        wrong,
        ...this.#signers.filter((each) => each !== signer).map((each) => signEvent(bytes, each)),
      ];
    if (kind === 4)
      return [
        { keyid, sig },
        { keyid, sig },
      ];
    return [wrong];
  }

  #wrong({ keyid, sig }: EventSignature, bytes: Uint8Array, kind: number): EventSignature {
    const raw = Buffer.from(sig, 'base64url');
    switch (kind) {
      case 0: {
        const last = ALPHABET.indexOf(sig.slice(-1));
        return { keyid, sig: `${sig.slice(0, -1)}${ALPHABET[last + 1 + this.#below(15)]}` };
      }
      case 1:
        return { keyid, sig: `${sig.slice(0, 40)}${this.#pick(['!', '+', '/', '=', '.'])}${sig.slice(41)}` };
      case 2:
        return { keyid, sig: this.#pick([sig.slice(0, -1), `${sig}A`, '', `${sig}==`, sig.slice(0, 40)]) };
      case 3:
        return { keyid, sig: withLargeS(raw).toString('base64url') };
      case 4:
        return { keyid, sig: signEvent(bytes, UNKNOWN).sig };
      case 5:
        return { keyid, sig: this.#before?.sig ?? signEvent(bytes, UNKNOWN).sig };
      case 6:
        raw[this.#below(64)] ^= 1 << this.#below(8);
        return { keyid, sig: raw.toString('base64url') };
      case 7:
        return signEvent(bytes, UNKNOWN);
      case 8:
        return { keyid, sig: Buffer.alloc(64).toString('base64url') };
      default:
        return {
          keyid,
          sig: Buffer.from(Array.from({ length: 64 }, () => this.#below(256))).toString('base64url'),
        };
    }
  }
}
const KINDS = 10;

/** The same point and S + L: congruent, and not to be accepted. */
function withLargeS(signature: Buffer): Buffer {
  const s = BigInt(`0x${Buffer.from(signature.subarray(32)).reverse().toString('hex')}`) + ORDER;
  const large = Buffer.from(s.toString(16).padStart(64, '0'), 'hex').reverse();
  return Buffer.concat([signature.subarray(0, 32), large]);
}

/** Chains records and lines of any kind. */
class Maker {
  readonly lines: Buffer[] = [];
  readonly #tree = emptyRange();
  #prev = hashToBase64url(rangeRoot(this.#tree));
  #tip: AnyEvent | undefined;

  put(made: AnyEvent, signatures: readonly EventSignature[], shape = (line: string): string => line): void {
    const record = formatRecord({
      eventText: Buffer.from(canonicalBytes(made)).toString(),
      prev: this.#prev,
      seq: this.lines.length,
      signatures,
    });
    this.#tip = made;
    this.raw(shape(Buffer.from(record.subarray(0, -1)).toString()));
  }

  /** A line as it is; an empty one takes no place. */
  raw(text: string): void {
    const line = Buffer.from(text);
    this.lines.push(line);
    if (line.length === 0) return;
    const leaf = leafHash(line);
    appendLeaf(this.#tree, leaf);
    this.#prev = hashToBase64url(leaf);
  }

  before(): { size: number; root: string; tip: AnyEvent } {
    return { size: this.#tree.size, root: rangeRoot(this.#tree), tip: this.#tip as AnyEvent };
  }

  bytes(): Buffer {
    return Buffer.concat(this.lines.flatMap((line) => [line, Buffer.from('\n')]));
  }
}
