/**
 * Ledgers that are nearly right: whole ones, with lines and members changed, and ids, signatures, chain and checkpoints made right
 * again where that is wanted, so that a change is judged by the rules that lie behind these.
 */

import { createPrivateKey, hash } from 'node:crypto';
import type { AnyEvent } from '../../src/format/event/build.js';
import { identifyEvent } from '../../src/format/event/identity.js';
import { createSigner, parsePrivateKey, signEvent, type Signer } from '../../src/api/format.js';
import { canonicalBytes, canonicalText } from '../../src/base/json/canonicalize.js';
import { formatCheckpoint } from '../../src/format/note/checkpoint.js';
import { signNote } from '../../src/format/note/note-key.js';
import { formatNote } from '../../src/format/note/signed-note.js';
import {
  appendLeaf,
  emptyRange,
  leafHash,
  rangeRoot,
  type CompactRange,
} from '../../src/format/tree/compact-range.js';
import { meters } from '../../src/base/value/meter.js';
import type { VerifyOptions } from '../../src/rules/verify/run-verification.js';
import { attestation, boundTo, checkpoint, event, genesis, keyOf, ledger } from '../docs/ledger-kit.js';
import type { Item } from '../docs/ledger-kit.js';
import { FILE_CASES, fixtureBytes, optionsOf } from '../fixtures/cases.js';
import { changeBytes, changeRecord } from '../ledger/scan-kit.js';
import { ledgerOf, linesOf } from './support.js';

/** A ledger, and how it is verified. */
export interface Origin {
  readonly name: string;
  readonly lines: readonly Buffer[];
  /** Anew each time: what is read once is among them. */
  readonly options: () => VerifyOptions;
}

type Random = () => number;
type Members = Record<string, unknown>;

const PKCS8_ED25519 = Buffer.from('302e020100300506032b657004220420', 'hex');

/** The Ed25519 key of a name, as `fixtures/make/keys.js` makes it. */
function namedSigner(name: string): Signer {
  const secret = Buffer.from(hash('sha256', `northroot fixture key: ${name}`, 'hex'), 'hex');
  const key = createPrivateKey({
    key: Buffer.concat([PKCS8_ED25519, secret]),
    format: 'der',
    type: 'pkcs8',
  });
  return createSigner(parsePrivateKey(key.export({ format: 'pem', type: 'pkcs8' })));
}

const NAMES = [
  ...['agent-run', 'authority agent', 'authority helper', 'pipeline agents', 'pipeline keeper'],
  ...['pipeline people', 'variations', 'variations second', 'broken stranger', 'broken third'],
  ...['broken w1', 'broken w2', 'broken w3', 'fuzz'],
  ...Array.from({ length: 16 }, (_, index) => `variations ${index}`),
];
const BY_NAME = new Map(NAMES.map((name) => [name, namedSigner(name)]));
const SIGNERS = new Map([...BY_NAME.values()].map((signer) => [signer.publicKey.keyid, signer]));
const KEYIDS = [...SIGNERS.keys()];
const named = (name: string): Signer => BY_NAME.get(name) as Signer;

/** The fixtures that are no longer than so many bytes. */
export function fixtureOrigins(maxBytes: number): Origin[] {
  return FILE_CASES.map((fixture) => ({ fixture, bytes: fixtureBytes(fixture.ledger) }))
    .filter(({ bytes }) => bytes.length <= maxBytes)
    .map(({ fixture, bytes }) => ({
      name: fixture.ledger,
      lines: linesOf(bytes.at(-1) === 0x0a ? bytes : Buffer.concat([bytes, Buffer.from('\n')])),
      options: () => optionsOf(fixture),
    }));
}

const DIGESTS = Array.from({ length: 4 }, (_, n) => ({
  alg: 'sha-256',
  b64: hash('sha256', String(n), 'base64url'),
}));
const TOOLS = ['fs.read', 'fs.write', 'net.get', 'shell'];
const AGENTS = ['agent:a1', 'agent:a2', 'service:s'];

/** A ledger of 5 to 40 records of every type, some of which are wrong in what they claim. */
export function makeOrigin(random: Random): Origin {
  const below = (end: number): number => Math.floor(random() * end);
  const pick = <T>(list: readonly T[]): T => list[below(list.length)];
  const [own, other, keeper] = [named('fuzz'), named('variations'), named('variations second')];
  const at = (): string => `2026-03-01T${String(10 + below(4))}:${String(below(60)).padStart(2, '0')}:00Z`;
  const amounts = (): unknown => meters({ usd: `${below(4)}.${below(100)}`, calls: below(3) });
  const grants: AnyEvent[] = [];
  const actions: AnyEvent[] = [];
  const executions: AnyEvent[] = [];
  const starts: { start: AnyEvent; readonly under: AnyEvent | undefined }[] = [];
  const latestStart = (under: AnyEvent | undefined): AnyEvent | undefined =>
    starts.findLast((each) => each.under === under)?.start;
  const decided = (): object => ({
    intents: { intent_digest: random() < 0.98 ? DIGESTS[0] : DIGESTS[1] },
    policy_id: `policy/${below(3)}`,
    policy_digest: DIGESTS[2],
    decision: random() < 0.9 ? 'allow' : 'deny',
    decision_code: 'CODE',
    occurred_at: at(),
    principal_id: random() < 0.96 ? AGENTS[0] : pick(AGENTS),
  });
  const grantEvent = (): AnyEvent => {
    const parent = random() < 0.4 ? pick(grants) : undefined;
    return event('authorization', {
      ...decided(),
      authorization: {
        kind: 'grant',
        bounds: {
          allowed_tools: random() < 0.7 ? ['fs.*', 'net.get'] : [pick(TOOLS)],
          meter_caps: meters({ usd: 2 + below(20), calls: 2 + below(20) }),
          ...(random() < 0.4
            ? { rate_limits: meters({ 'usd.per_hour': 1 + below(5), 'calls.per_min': 1 + below(3) }) }
            : {}),
          ...(random() < 0.3 ? { concurrency_limit: { t: 'int', v: String(1 + below(2)) } } : {}),
          ...(random() < 0.2 ? { action_caps: meters({ usd: 1 }) } : {}),
          ...(random() < 0.2 ? { expires_at: at() } : {}),
        },
        ...(parent === undefined ? {} : { grant_event_id: parent.event_id }),
      },
    });
  };
  const actionEvent = (): AnyEvent =>
    event('authorization', {
      ...decided(),
      authorization: {
        kind: 'action',
        ...(grants.length > 0 && random() < 0.9 ? { grant_event_id: pick(grants).event_id } : {}),
        action: {
          tool_name: random() < 0.9 ? TOOLS[0] : pick(TOOLS),
          tool_params_digest: DIGESTS[3],
          meter_reservation: amounts(),
          ...(random() < 0.15 ? { expires_at: at() } : {}),
          ...(random() < 0.2 ? { request_key: `job/${below(3)}` } : {}),
        },
      },
    });
  const executionEvent = (): AnyEvent => {
    const begun = random() < 0.3 ? starts.at(-1)?.under : undefined;
    const under = begun ?? pick(random() < 0.7 && actions.length > 0 ? actions : grants);
    const started = at();
    const isSilent = random() < (begun === undefined ? 0.15 : 0.5);
    const isAbandoned = isSilent && random() < 0.7;
    const start = random() < 0.4 ? latestStart(under) : undefined;
    return event('execution', {
      intents: { intent_digest: random() < 0.98 ? DIGESTS[0] : DIGESTS[1] },
      occurred_at: at(),
      started_at: started,
      ...(random() < 0.8 ? { ended_at: started.replace(':00Z', ':30Z') } : {}),
      auth_event_id: under?.event_id ?? DIGESTS[0],
      tool_name: random() < 0.9 ? TOOLS[0] : pick(TOOLS),
      tool_params_digest: DIGESTS[3],
      meter_used: isSilent ? [] : amounts(),
      principal_id: random() < 0.96 ? AGENTS[0] : pick(AGENTS),
      ...(isAbandoned
        ? { outcome: 'failure', error_code: 'ABANDONED', ended_at: started }
        : { outcome: pick(['success', 'success', 'unknown']) }),
      ...(random() < 0.2 ? { meter_basis: 'estimated' } : {}),
      ...(!isSilent && random() < 0.3 ? { meter_basis_by_unit: { usd: pick(['estimated', 'billed']) } } : {}),
      ...(start === undefined ? {} : { prev_event_id: start.event_id }),
    });
  };
  const adjustmentEvent = (): AnyEvent =>
    event('adjustment', {
      occurred_at: at(),
      principal_id: pick(AGENTS),
      grant_event_id: pick(grants)?.event_id ?? DIGESTS[0],
      direction: pick(['credit', 'debit']),
      meters: meters({ usd: `0.${1 + below(9)}` }),
      reason: 'REFUND',
      ...(executions.length > 0 && random() < 0.2 ? { execution_event_id: pick(executions).event_id } : {}),
    });
  const startEvent = (): AnyEvent => {
    const under = random() < 0.3 ? pick(starts)?.under : pick([...actions.slice(-3), pick(grants)]);
    const earlier = random() < 0.6 ? latestStart(under) : undefined;
    const made = event('x.northroot.start', {
      occurred_at: at(),
      auth_event_id: under?.event_id ?? DIGESTS[0],
      intents: { intent_digest: DIGESTS[0] },
      tool_name: TOOLS[0],
      tool_params_digest: DIGESTS[3],
      started_at: at(),
      meter_known: random() < 0.5 ? [] : amounts(),
      ...(random() < 0.9 ? { recorder: 'a-recorder-of-its-own' } : {}),
      ...(earlier === undefined ? {} : { prev_event_id: earlier.event_id }),
    });
    starts.push({ start: made, under });
    return made;
  };
  const isBound = random() < 0.3;
  const keys = [
    keyOf(own, { roles: random() < 0.6 ? ['event', 'authority'] : ['event'] }),
    keyOf(keeper, { roles: ['event', 'admin', 'checkpoint'] }),
  ];
  const isSigned = random() < 0.8;
  const first = genesis(isSigned ? keys : [], {
    signing: {
      events: isSigned ? pick(['required', 'optional']) : 'optional',
      checkpoints: 'optional',
      ...(isBound ? { binding: 'required' } : {}),
    },
  });
  const items: Item[] = [{ event: first, signers: [own] }];
  const signedBy = (): Signer[] =>
    random() < 0.985 ? [own] : pick<Signer[]>([[other], [], [keeper], [own, keeper], [own, own]]);
  for (let left = 4 + below(36); left > 0; left -= 1) {
    const kind = random();
    if (kind < 0.04) {
      items.push({ event: checkpoint([keeper]), signers: [keeper] });
      const cosigned = attestation((text) => [signNote(text, 'example.com/test', keeper)]);
      if (random() < 0.4) items.push({ event: cosigned, signers: [keeper] });
    } else if (kind < 0.07) {
      const key = event('key', { action: pick(['add', 'revoke']), key: keyOf(other), occurred_at: at() });
      items.push({ event: key, signers: [keeper] });
    } else {
      const isFirst = grants.length === 0;
      const known = isFirst || kind < 0.2 ? grants : kind < 0.5 ? actions : kind < 0.83 ? executions : [];
      const made =
        known === grants
          ? grantEvent()
          : known === actions
            ? actionEvent()
            : known === executions
              ? executionEvent()
              : kind < 0.88
                ? adjustmentEvent()
                : kind < 0.95
                  ? startEvent()
                  : event(pick(['mystery', 'x.note', 'x.note']), { n: left, occurred_at: at() });
      const whole = isBound ? boundTo(first, made) : made;
      known.push(whole);
      // Later events name it as it stands.
      const own = starts.at(-1);
      if (own?.start === made) own.start = whole;
      items.push({ event: whole, signers: signedBy() });
    }
  }
  return { name: 'made', lines: linesOf(ledger(...items)), options: () => ({}) };
}

/** One line; `isRaw`: its bytes were changed, and stay as they are. */
interface Line {
  bytes: Buffer;
  isRaw: boolean;
}

/** The ledger of an origin with one to three things changed, and mended as chance has it. */
export function mutateLedger(origin: Origin, others: readonly Origin[], random: Random): Buffer {
  const below = (end: number): number => Math.floor(random() * end);
  const pick = <T>(list: readonly T[]): T => list[below(list.length)];
  const lines: Line[] = origin.lines.map((bytes) => ({ bytes, isRaw: false }));
  for (let left = 1 + below(3); left > 0 && lines.length > 0; left -= 1) {
    const at = below(lines.length);
    const line = lines[at];
    switch (below(12)) {
      case 0:
        lines[at] = { bytes: changeBytes(line.bytes, random), isRaw: true };
        break;
      case 1: {
        const to = below(lines.length);
        [lines[at], lines[to]] = [lines[to], line];
        break;
      }
      case 2:
        lines.splice(at, 1 + (random() < 0.2 ? below(3) : 0));
        break;
      case 3:
        lines.splice(below(lines.length + 1), 0, { ...line });
        break;
      case 4: {
        const from = pick(others).lines;
        const begin = below(from.length);
        const taken = from
          .slice(begin, begin + 1 + below(3))
          .map((bytes) => ({ bytes, isRaw: random() < 0.3 }));
        lines.splice(below(lines.length + 1), random() < 0.5 ? taken.length : 0, ...taken);
        break;
      }
      case 5:
        lines[at] = { bytes: pick([Buffer.alloc(0), Buffer.from('\r'), Buffer.from(' ')]), isRaw: true };
        break;
      case 6:
        lines[at] = changeJson(line, (record) => changeSignatures(record, random));
        break;
      case 7:
      case 8:
        lines[at] = changeJson(line, (record) => changeRecord(record, random));
        break;
      default:
        // A value of another event of the ledger in the place of one's own: right in form, and wrong in what it says.
        lines[at] = changeJson(line, (record) => borrow(record, toRecord(pick(lines).bytes), random));
    }
  }
  const mended = random() < 0.85 ? mend(lines, { resign: random() < 0.9 }) : lines;
  let bytes = ledgerOf(mended.map((line) => line.bytes));
  if (random() < 0.06) bytes = bytes.subarray(0, below(bytes.length + 1));
  return random() < 0.04 ? changeBytes(bytes, random) : bytes;
}

function toRecord(bytes: Buffer): Members | undefined {
  try {
    const value: unknown = JSON.parse(bytes.toString());
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Members)
      : undefined;
  } catch {
    return undefined;
  }
}

function tryCanonical(record: unknown): Buffer | undefined {
  try {
    return Buffer.from(canonicalText(record as never));
  } catch {
    return undefined;
  }
}

function changeJson(line: Line, change: (record: Members) => Members): Line {
  const record = toRecord(line.bytes);
  const bytes = record && tryCanonical(change(record));
  return bytes === undefined ? line : { bytes, isRaw: false };
}

function changeSignatures(record: Members, random: Random): Members {
  const list = Array.isArray(record['signatures']) ? [...(record['signatures'] as unknown[])] : [];
  const how = random();
  const any = KEYIDS[Math.floor(random() * KEYIDS.length)];
  if (how < 0.3) list.splice(Math.floor(random() * list.length), 1);
  else if (how < 0.6) list.push({ keyid: any, sig: 'A'.repeat(86) });
  else if (how < 0.8) list.push(...list);
  else list.splice(0, 1, { keyid: any, sig: 'A'.repeat(86) });
  return { ...record, signatures: list };
}

/** `record` with a value of `other` that stands in the same place there, or in another of that name. */
function borrow(record: Members, other: Members | undefined, random: Random): Members {
  if (other === undefined) return record;
  const changed = structuredClone(record);
  const valuesOf = (value: unknown, found: [Members, string][] = []): [Members, string][] => {
    if (typeof value !== 'object' || value === null) return found;
    for (const key of Object.keys(value)) {
      if (key !== 'sig' && key !== 'event_id' && key !== 'payload_digest')
        found.push([value as Members, key]);
      if (key !== 'signatures') valuesOf((value as Members)[key], found);
    }
    return found;
  };
  const theirs = new Map(valuesOf(other['event']).map(([holder, key]) => [key, holder[key]]));
  const mine = valuesOf(changed['event']).filter(([, key]) => theirs.has(key));
  const [holder, key] = mine[Math.floor(random() * mine.length)] ?? [];
  if (holder !== undefined && key !== undefined) holder[key] = structuredClone(theirs.get(key));
  return changed;
}

/**
 * Makes ids, links to them, checkpoints, signatures, `seq` and `prev` right for the lines as they are now, but for those whose bytes are
 * to stay.
 */
function mend(lines: readonly Line[], { resign }: { readonly resign: boolean }): Line[] {
  const renamed = new Map<string, string>();
  const tree = emptyRange();
  let prev = hash('sha256', '', 'base64url');
  let origin = 'example.com/test';
  let tip: unknown;
  return lines.map((line) => {
    let { bytes } = line;
    if (!line.isRaw) {
      let text = bytes.toString();
      for (const [from, to] of renamed) text = text.replaceAll(from, to);
      const record = toRecord(Buffer.from(text));
      const whole = record?.['event'];
      if (record !== undefined && typeof whole === 'object' && whole !== null) {
        const members = { ...(whole as Members) };
        if (members['event_type'] === 'genesis' && typeof members['origin'] === 'string')
          ({ origin } = members as { origin: string });
        bytes = rewrite(record, members, { prev, tree, tip, origin, renamed, resign }) ?? bytes;
        tip = members['event_id'];
      }
    }
    if (bytes.length > 0) {
      const leaf = leafHash(bytes);
      appendLeaf(tree, leaf);
      prev = Buffer.from(leaf, 'latin1').toString('base64url');
    }
    return { bytes, isRaw: true };
  });
}

/** What a line is made right for. */
interface Mending {
  readonly prev: string;
  readonly tree: CompactRange;
  readonly tip: unknown;
  readonly origin: string;
  /** Ids that have become others. */
  readonly renamed: Map<string, string>;
  readonly resign: boolean;
}

/** Undefined for what cannot be made right. */
function rewrite(record: Members, members: Members, mending: Mending): Buffer | undefined {
  const { prev, tree, renamed, resign } = mending;
  try {
    if (members['event_type'] === 'checkpoint' && resign) reseal(record, members, mending);
    const before = (members['event_id'] as { b64?: unknown } | undefined)?.b64;
    const { eventId, payloadDigest } = identifyEvent(members);
    if ('event_id' in members) members['event_id'] = { alg: 'sha-256', b64: eventId };
    if ('payload_digest' in members) members['payload_digest'] = { alg: 'sha-256', b64: payloadDigest };
    const isChanged = before !== eventId;
    if (typeof before === 'string' && before.length === 43 && isChanged) renamed.set(before, eventId);
    const event = canonicalBytes(members);
    const signatures = Array.isArray(record['signatures'])
      ? (record['signatures'] as { keyid?: string; sig?: string }[]).map((each) => {
          const signer = SIGNERS.get(String(each?.keyid));
          const isOpen = isChanged || each?.sig === 'A'.repeat(86);
          return resign && isOpen && signer !== undefined ? signEvent(event, signer) : each;
        })
      : record['signatures'];
    return tryCanonical({
      ...record,
      event: members,
      ...('signatures' in record ? { signatures } : {}),
      prev: { alg: 'sha-256', b64: prev },
      seq: tree.size,
    });
  } catch {
    return undefined;
  }
}

function reseal(record: Members, members: Members, { tree, tip, origin }: Mending): void {
  const { size } = tree;
  const root = rangeRoot(tree);
  const [first] = (record['signatures'] ?? []) as { keyid?: string }[];
  const signer = SIGNERS.get(String(first?.keyid));
  if (signer === undefined || members['tree_size'] === size) return;
  const text = formatCheckpoint({ origin, size, root, extensions: [] });
  members['tree_size'] = size;
  members['root'] = { alg: 'sha-256', b64: Buffer.from(root, 'latin1').toString('base64url') };
  if (tip !== undefined) members['chain_tip_event_id'] = tip;
  members['note'] = formatNote({ text, signatures: [signNote(text, origin, signer)] });
}
