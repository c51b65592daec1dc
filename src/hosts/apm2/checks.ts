/** The rules AP-1 to AP-11, checked against what the files say. */

import { printable } from '../../base/bytes/printable.js';
import { decodeUtf8 } from '../../base/bytes/text.js';
import { blake3Hex, cacBytes } from '../shared/forms/cac.js';
import { type FindingDetails, findingOf } from '../shared/findings.js';
import type { HostFinding, HostOptions } from '../shared/host.js';
import { textAt } from '../shared/values.js';
import type { Case, Cases, Episode, Of } from './cases.js';
import { Fields } from './events.js';
import { type Code, finding } from './rules.js';
import {
  domainsOf,
  GENESIS,
  type LedgerRow,
  ledgerRowHash,
  MAX_ROW_PAYLOAD_BYTES,
  verifyRowSignature,
} from './ledger-rows.js';
import { isRemark } from './profile.js';
import type { Entries, Entry } from './reader.js';
import { isKeyText, type ToolLogIndex, type ToolReceipt, verifyToolReceipt } from './receipt.js';
import type { ReadingBuilder } from '../shared/reading.js';
interface CheckContext {
  readonly builder: ReadingBuilder;
  readonly entries: Entries;
  readonly cases: Cases;
  /** Keys that the user trusts; without them a receipt's own key is all there is. */
  readonly pinned: ReadonlySet<string> | undefined;
}

/** The keys of an aid: every 64 hexadecimal digits in it. */
export function pinnedKeys({ aids }: HostOptions): ReadonlySet<string> | undefined {
  const file = aids?.['keys'];
  if (file === undefined) return undefined;
  const text = decodeUtf8(file.bytes, 0, Math.min(file.bytes.length, 1024 * 1024));
  return new Set((text.match(/\b[0-9a-fA-F]{64}\b/g) ?? []).map((key) => key.toLowerCase()));
}

/** Everything that the rules find. */
export function checkAll(context: CheckContext): void {
  new Check(context).run();
}

class Check {
  readonly #context: CheckContext;
  readonly #withReceipts = new Set<Episode>();
  #profileHashes: ReadonlySet<string | undefined> | undefined;

  constructor(context: CheckContext) {
    this.#context = context;
  }

  run(): void {
    const { cases } = this.#context;
    this.#lines();
    for (const episode of cases.episodes.values()) {
      if (episode.indexes.length > 0 || episode.cases.some(({ receipts }) => receipts.length > 0))
        this.#withReceipts.add(episode);
      for (const each of episode.cases) this.#case(each, episode);
      this.#indexes(episode);
      this.#budget(episode);
      this.#attribution(episode);
    }
    this.#profiles();
    this.#rows();
    for (const { entry, value } of cases.actuations) this.#actuation(entry, value);
    this.#exceeded();
  }

  #find(
    code: Code,
    { at }: Entry,
    { related, ...details }: Omit<FindingDetails, 'related'> & { related?: Entry | undefined } = {},
  ): void {
    const others = related === undefined ? {} : { related: [related.at] };
    this.#add(finding(code, at, { ...details, ...others }));
  }

  /** Finds that something is stated otherwise than elsewhere, or than it must be. */
  #differ(
    code: Code,
    entry: Entry,
    about: string | undefined,
    expected: string,
    actual: string | undefined,
    related?: Entry,
  ): void {
    this.#find(code, entry, { about, expected, actual, related });
  }

  #add(found: HostFinding): void {
    const { expected = '', actual = '' } = found;
    const said = { expected: printable(expected), actual: printable(actual) };
    this.#context.builder.find({ ...found, ...said });
  }

  /** AP-1: faults of frames. */
  #lines(): void {
    const { cases } = this.#context;
    for (const { entry, fault } of cases.badLines) {
      const { code, expected, actual } = fault;
      this.#add(findingOf('AP-1', 'violation', code, entry.at, { expected, actual }));
    }
    for (const entry of cases.unverified) this.#find('NONCE_NOT_CONFIRMED', entry);
    const wrong = new Set(
      cases.badLines.flatMap(({ fault }) => (fault.code === 'NONCE_MISMATCH' ? fault.actual : [])),
    );
    if (wrong.size < GUESSES) return;
    const first = cases.badLines.find(({ fault }) => fault.code === 'NONCE_MISMATCH')!;
    this.#find('NONCE_GUESSING', first.entry, { actual: `${wrong.size} others` });
  }

  #case(each: Case, episode: Episode): void {
    this.#unique(each, episode);
    this.#order(each, episode);
    for (const receipt of each.receipts) this.#receipt(receipt);
    this.#args(each);
    this.#results(each);
    this.#tools(each, episode);
  }

  /** AP-2: one request, one decision, one answer. */
  #unique(each: Case, episode: Episode): void {
    const { request, requested, intents, decided, responses, executed, receipts } = each;
    const twice = <T>(list: readonly Of<T>[], code: Code): void => {
      for (const { entry } of list.slice(1))
        this.#find(code, entry, { about: request, related: list[0]!.entry });
    };
    twice(requested, 'REQUEST_DUPLICATE');
    twice(intents, 'REQUEST_DUPLICATE');
    twice(decided, 'DECISION_DUPLICATE');
    twice(responses, 'RESPONSE_DUPLICATE');
    twice(executed, 'EXECUTION_DUPLICATE');
    for (const { entry, value } of decided)
      if (decisionOf(value) === undefined)
        this.#find('DECISION_INVALID', entry, { about: request, actual: value.text('decision') ?? 'none' });
    const proposal = requested[0] ?? intents[0];
    const isRun = executed.length > 0 || receipts.length > 0;
    if (proposal !== undefined && decided.length === 0 && responses.length === 0 && !isRun)
      this.#find('DECISION_MISSING', proposal.entry, { about: request });
    if (proposal === undefined && decided[0] !== undefined)
      this.#find('REQUEST_MISSING', decided[0].entry, { about: request });
    if (intents.length === 0 && responses[0] !== undefined)
      this.#find('RESPONSE_UNREQUESTED', responses[0].entry, { about: request });
    if (intents[0] !== undefined && responses.length === 0 && episode.hasResponses)
      this.#find('RESPONSE_MISSING', intents[0].entry, { about: request });
    const decision = decided[0] && decisionOf(decided[0].value);
    const response = responses[0];
    if (response?.value.status === 'denied' && decision === 'allow')
      this.#find('RESPONSE_CONTRADICTS_DECISION', response.entry, {
        about: request,
        related: decided[0]!.entry,
      });
  }

  /** AP-3: what ran was allowed before it ran. */
  #order(each: Case, episode: Episode): void {
    const { request, decided, executed, receipts, responses } = each;
    const decision = decided[0];
    const said = decision === undefined ? undefined : decisionOf(decision.value);
    const run = executed[0] ?? receipts[0];
    const executedAfter = (denial: Entry): void =>
      this.#find('EXECUTED_AFTER_DENY', run!.entry, { about: request, related: denial });
    if (run !== undefined) {
      if (said === 'deny') executedAfter(decision!.entry);
      else if (decision === undefined && each.actuations.length === 0 && executed.length > 0)
        this.#find('EXECUTED_WITHOUT_DECISION', run.entry, { about: request });
      else if (
        decision !== undefined &&
        run.entry.at.file === decision.entry.at.file &&
        executed.length > 0 &&
        run.index < decision.index
      )
        this.#find('EXECUTED_BEFORE_DECISION', run.entry, { about: request, related: decision.entry });
    }
    const response = responses[0];
    if (response?.value.status === 'ok' && said === 'deny' && run === undefined)
      this.#find('OK_AFTER_DENY', response.entry, { about: request, related: decision!.entry });
    if (response?.value.status === 'denied' && run !== undefined && said === undefined)
      executedAfter(response.entry);
    for (const receipt of receipts.slice(1)) {
      const isSame = receipt.value.hash === receipts[0]!.value.hash;
      if (!isSame)
        this.#find('RECEIPT_DUPLICATE', receipt.entry, { about: request, related: receipts[0]!.entry });
    }
    const [receipt] = receipts;
    if (receipt !== undefined && executed.length === 0) {
      const weight = decision === undefined ? 'invalid' : 'warning';
      this.#find('RECEIPT_UNMATCHED', receipt.entry, { about: request, weight });
    }
    if (receipt === undefined && executed[0] !== undefined && this.#withReceipts.has(episode))
      this.#find('RECEIPT_MISSING', executed[0].entry, { about: request });
    const policy = decision?.value.hash('policy_hash');
    if (receipt !== undefined && policy !== undefined && policy !== receipt.value.policyHash)
      this.#differ(
        'POLICY_MISMATCH',
        receipt.entry,
        request,
        policy,
        receipt.value.policyHash,
        decision!.entry,
      );
  }

  /** AP-4. */
  #receipt({ entry, value }: Of<ToolReceipt>): void {
    const { pinned } = this.#context;
    const { requestId, signerIdentity } = value;
    const verdict = verifyToolReceipt(value);
    if (verdict === 'key_invalid')
      this.#find('SIGNER_INVALID', entry, { about: requestId, actual: signerIdentity });
    else if (verdict === 'signature_invalid')
      this.#find('RECEIPT_SIGNATURE_INVALID', entry, { about: requestId });
    else if (pinned !== undefined && !pinned.has(signerIdentity))
      this.#find('SIGNER_NOT_PINNED', entry, { about: requestId, actual: signerIdentity });
  }

  /** AP-6. */
  #args({ request, requested, intents, receipts }: Case): void {
    const [intent] = intents;
    const stated = requested[0]?.value.hash('tool_args_hash');
    const [receipt] = receipts;
    const ofReceipt = receipt?.value.argsHash;
    if (stated !== undefined && ofReceipt !== undefined && stated !== ofReceipt)
      this.#differ('ARGS_HASH_MISMATCH', receipt!.entry, request, stated, ofReceipt, requested[0]!.entry);
    if (intent === undefined) return;
    const canonical = cacBytes(intent.value.args);
    const sent = intent.value.argsBytes;
    const isCanonical =
      canonical.ok &&
      canonical.value.length === sent.length &&
      canonical.value.every((byte, i) => byte === sent[i]);
    if (!isCanonical)
      this.#find('ARGS_NOT_CANONICAL', intent.entry, {
        about: request,
        actual: canonical.ok ? 'JSON in another spelling' : canonical.fault.code,
      });
    const own = [blake3Hex(sent), ...(canonical.ok ? [blake3Hex(canonical.value)] : [])];
    const expected = stated ?? ofReceipt;
    if (expected !== undefined && !own.includes(expected))
      this.#differ(
        'ARGS_HASH_MISMATCH',
        intent.entry,
        request,
        expected,
        own[0],
        (requested[0] ?? receipt)!.entry,
      );
  }

  /** AP-7. */
  #results({ request, executed, receipts, responses }: Case): void {
    const said: { entry: Entry; hash: string }[] = [];
    if (receipts[0] !== undefined)
      said.push({ entry: receipts[0].entry, hash: receipts[0].value.resultHash });
    const ofEvent = executed[0]?.value.hash('result_hash');
    if (ofEvent !== undefined) said.push({ entry: executed[0]!.entry, hash: ofEvent });
    const response = responses[0];
    if (response?.value.status === 'ok')
      said.push({
        entry: response.entry,
        hash: response.value.resultHash.replace(/^(?:blake3|b3|b3-256):/, '').toLowerCase(),
      });
    const [first, ...others] = said;
    for (const { entry, hash } of others)
      if (hash !== first!.hash)
        this.#differ('RESULT_HASH_MISMATCH', entry, request, first!.hash, hash, first!.entry);
  }

  /** AP-1 and AP-3: the profile's tools. */
  #tools({ request, requested, intents, decided, receipts }: Case, { profile }: Episode): void {
    const proposal = intents[0] ?? requested[0];
    if (profile === undefined || proposal === undefined) return;
    const tool = intents[0]?.value.toolName ?? requested[0]?.value.text('tool_name');
    if (tool === undefined) return;
    const kernelClass = profile.capabilityMap.get(tool);
    const isAllowed = decided[0] !== undefined && decisionOf(decided[0].value) === 'allow';
    if (kernelClass === undefined) {
      if (intents.length > 0)
        this.#find('UNKNOWN_TOOL', proposal.entry, {
          about: request,
          actual: tool,
          weight: isAllowed ? 'violation' : 'warning',
        });
    } else if (receipts[0] !== undefined && receipts[0].value.toolClass !== kernelClass)
      this.#differ(
        'TOOL_CLASS_MISMATCH',
        receipts[0].entry,
        request,
        kernelClass,
        receipts[0].value.toolClass,
        proposal.entry,
      );
  }

  /** AP-5. */
  #indexes(episode: Episode): void {
    const chunks = [...new Map(episode.indexes.map((of) => [of.value.hash, of])).values()];
    if (chunks.length === 0) return;
    const receipts = new Map(
      episode.cases.flatMap(({ receipts: own }) => own.map((of) => [of.value.hash, of] as const)),
    );
    const ordered = [...chunks].sort((a, b) => (a.value.firstSequence < b.value.firstSequence ? -1 : 1));
    const whole = ordered.reduce((sum, { value }) => sum + BigInt(value.receiptHashes.length), 0n);
    const byRequest = new Map(episode.cases.map((each) => [each.request, each]));
    const listed = new Set<string>();
    let next = 0n;
    let isBroken = false;
    for (const { entry, value } of ordered) {
      if (value.firstSequence !== next) {
        isBroken = true;
        this.#find('INDEX_CHUNKS_BROKEN', entry, {
          expected: `a chunk that begins at ${next}`,
          actual: String(value.firstSequence),
        });
      }
      next = value.firstSequence + BigInt(value.receiptHashes.length);
      let last: ToolReceipt | undefined;
      const found: ToolReceipt[] = [];
      for (const hash of value.receiptHashes) {
        if (listed.has(hash)) this.#find('INDEX_RECEIPT_TWICE', entry, { actual: hash });
        listed.add(hash);
        const receipt = receipts.get(hash)?.value;
        if (receipt === undefined) {
          this.#find('INDEX_RECEIPT_UNRESOLVED', entry, { actual: hash });
          continue;
        }
        found.push(receipt);
        if (last !== undefined && receipt.startedAtNs < last.startedAtNs)
          this.#find('INDEX_ORDER', entry, { about: receipt.requestId, actual: hash });
        last = receipt;
      }
      this.#counts(entry, value, found, { whole, byRequest });
    }
    this.#chunks(ordered, isBroken);
    const last = ordered.at(-1)!;
    if (!last.value.isFinalChunk) return;
    for (const [hash, { entry, value }] of receipts)
      if (!listed.has(hash))
        this.#find('RECEIPT_NOT_INDEXED', entry, { about: value.requestId, related: last.entry });
  }

  #counts(
    entry: Entry,
    index: ToolLogIndex,
    found: readonly ToolReceipt[],
    { whole, byRequest }: { readonly whole: bigint; readonly byRequest: ReadonlyMap<string, Case> },
  ): void {
    const { counts, receiptHashes } = index;
    const wrong = (name: string, expected: string, actual: bigint): void =>
      this.#find('INDEX_COUNT_MISMATCH', entry, { expected: `${name} ${expected}`, actual: String(actual) });
    const isOfAll = counts.executions === whole;
    if (counts.executions !== BigInt(receiptHashes.length) && !isOfAll)
      wrong('total_executions', String(receiptHashes.length), counts.executions);
    else if (counts.successful + counts.failed !== counts.executions)
      wrong('successful and failed', String(counts.executions), counts.successful + counts.failed);
    if (found.length !== receiptHashes.length || counts.executions !== BigInt(found.length)) return;
    const ms = found.reduce((sum, { durationNs }) => sum + durationNs / 1_000_000n, 0n);
    const ns = found.reduce((sum, { durationNs }) => sum + durationNs, 0n);
    const most = (ns + 999_999n) / 1_000_000n + BigInt(found.length);
    if (counts.wallMs < ms || counts.wallMs > most) wrong('total_wall_ms', String(ms), counts.wallMs);
    const outcomes = found.map(({ requestId }) => {
      const executed = byRequest.get(requestId)?.executed[0];
      return executed === undefined ? undefined : outcomeTextOf(executed.value);
    });
    if (outcomes.some((outcome) => outcome === undefined)) return;
    const successes = BigInt(outcomes.filter((outcome) => outcome === 'SUCCESS').length);
    if (counts.successful + counts.failed === counts.executions && counts.successful !== successes)
      wrong('successful_executions', String(successes), counts.successful);
  }

  #chunks(ordered: readonly Of<ToolLogIndex>[], isBroken: boolean): void {
    const finals = ordered.filter(({ value }) => value.isFinalChunk);
    const last = ordered.at(-1)!;
    if (finals.length !== 1 || !last.value.isFinalChunk) {
      const entry = (finals.length > 1 ? finals[0]! : last).entry;
      if (!isBroken || finals.length !== 1)
        this.#find('INDEX_NOT_FINAL', entry, { actual: `${finals.length} final` });
    }
    const hashes = new Set(ordered.map(({ value }) => value.hash));
    for (const { entry, value } of ordered)
      for (const hash of value.continuationHashes)
        if (!hashes.has(hash)) this.#find('INDEX_CHUNK_UNRESOLVED', entry, { actual: hash });
  }

  /** AP-8. */
  #budget(episode: Episode): void {
    const caps = episode.budget?.value ?? episode.profile?.budget;
    if (caps === undefined) return;
    const at =
      episode.budget?.entry ?? episode.attributions[0]?.entry ?? episode.cases[0]?.receipts[0]?.entry;
    const unlimited = [...caps].flatMap(([unit, cap]) => (cap === '0' ? unit : []));
    if (unlimited.length > 0 && at !== undefined)
      this.#find('BUDGET_UNLIMITED', at, {
        about: episode.id,
        actual: `0, no cap, of ${unlimited.join(', ')}`,
      });
    let calls = 0n;
    let ns = 0n;
    const over = new Set<string>();
    const held = (unit: string, used: bigint, scale: bigint, entry: Entry): void => {
      const cap = caps.get(unit);
      if (cap === undefined || cap === '0' || used <= BigInt(cap) * scale || over.has(unit)) return;
      over.add(unit);
      const shown = scale === 1n ? String(used) : `${used} ns`;
      this.#differ('BUDGET_EXCEEDED', entry, episode.id, `at most ${cap} ${unit}`, shown);
    };
    const runs = episode.cases.flatMap((each) => {
      const run = each.executed[0] ?? each.receipts[0];
      return run === undefined ? [] : { each, run };
    });
    for (const { each, run } of runs.sort((a, b) => a.run.index - b.run.index)) {
      calls += 1n;
      const ms = each.executed[0]?.value.count('duration_ms');
      ns += each.receipts[0]?.value.durationNs ?? BigInt(ms ?? '0') * 1_000_000n;
      held('calls', calls, 1n, run.entry);
      held('time.ms', ns, 1_000_000n, run.entry);
    }
    let [tokens, bytes] = [0n, 0n];
    for (const { entry, value } of episode.indexes) {
      tokens += value.counts.tokens;
      bytes += value.counts.bytesIo;
      held('tokens', tokens, 1n, entry);
      held('bytes.io', bytes, 1n, entry);
    }
  }

  /** AP-8: what the kernel itself says. */
  #exceeded(): void {
    for (const entry of this.#context.entries.entries) {
      if (entry.said.kind !== 'event' || entry.said.event.kind !== 'budget_exceeded') continue;
      const { fields } = entry.said.event;
      const [limit, consumed] = [fields.count('limit'), fields.count('consumed')];
      const type = fields.text('budget_type') ?? 'budget';
      const about = fields.text('session_id');
      if (limit === undefined || consumed === undefined || BigInt(consumed) > BigInt(limit))
        this.#differ(
          'BUDGET_EXCEEDED',
          entry,
          about,
          `at most ${limit ?? 'the limit'} of ${type}`,
          consumed ?? 'more',
        );
      else this.#differ('BUDGET_NOT_EXCEEDED', entry, about, `more than ${limit} of ${type}`, consumed);
    }
  }

  /** AP-9. */
  #attribution(episode: Episode): void {
    const [first, ...others] = episode.attributions;
    if (first === undefined) {
      const entry = firstEntryOf(episode);
      if (entry !== undefined) this.#find('ATTRIBUTION_MISSING', entry, { about: episode.id });
      return;
    }
    const { profiles } = this.#context.cases;
    for (const name of ['work_id', 'episode_id', 'session_id', 'adapter_profile_hash']) {
      const value = name === 'adapter_profile_hash' ? first.value.hash(name) : first.value.text(name);
      if (value === undefined)
        this.#find('ATTRIBUTION_INCOMPLETE', first.entry, { about: episode.id, expected: name });
    }
    for (const { entry, value } of others) {
      const isSame = ['work_id', 'session_id'].every((name) => value.text(name) === first.value.text(name));
      if (!isSame || value.hash('adapter_profile_hash') !== first.value.hash('adapter_profile_hash'))
        this.#find('ATTRIBUTION_CONFLICT', entry, { about: episode.id, related: first.entry });
    }
    const hash = first.value.hash('adapter_profile_hash');
    if (hash === undefined || episode.profile !== undefined) return;
    this.#profileHashes ??= new Set(profiles.map(({ value }) => value.hash));
    if (this.#profileHashes.has(hash)) return;
    if (profiles.length > 0)
      this.#differ(
        'PROFILE_MISMATCH',
        profiles[0]!.entry,
        episode.id,
        hash,
        profiles[0]!.value.hash ?? 'no content address',
        first.entry,
      );
    else this.#find('PROFILE_NOT_GIVEN', first.entry, { about: hash });
  }

  #profiles(): void {
    for (const { entry, value } of this.#context.cases.profiles) {
      const fault = value.faults.find(({ code }) => !isRemark(code));
      if (fault !== undefined)
        this.#differ(
          'PROFILE_INVALID',
          entry,
          fault.code,
          `${fault.pointer}: ${fault.expected}`,
          fault.actual,
        );
    }
  }

  /** AP-10. */
  #rows(): void {
    const { entries, cases, pinned } = this.#context;
    const signers = new Set(
      [...cases.episodes.values()].flatMap((episode) =>
        episode.cases.flatMap(({ receipts }) => receipts.map(({ value }) => value.signerIdentity)),
      ),
    );
    const tried = [...signers].filter(isKeyText).slice(0, MAX_KEYS);
    const named = [...entries.keys].slice(0, MAX_NAMED_KEYS);
    const hasMore = pinned === undefined && entries.keys.size > MAX_NAMED_KEYS;
    const chains: Record<LedgerRow['table'], Chain> = { core: newChain(), daemon: newChain() };
    let unchecked: { entry: Entry; count: number } | undefined;
    for (const entry of entries.entries) {
      const { row } = entry;
      if (row === undefined) continue;
      this.#link(entry, row, chains[row.table]);
      this.#columns(entry, row);
      if (row.table === 'core') this.#signedLink(entry, row, chains.core);
      const strong = pinned ?? new Set([...named, ...(isKeyText(row.actorId) ? [row.actorId] : [])]);
      const isSigned = row.signature?.some((byte) => byte !== 0) === true;
      if (row.domain !== undefined && !domainsOf(row.eventType).includes(row.domain))
        this.#differ('LEDGER_DOMAIN_MISMATCH', entry, row.id, domainsOf(row.eventType)[0]!, row.domain);
      else if (!isSigned)
        this.#find('LEDGER_UNSIGNED', entry, {
          about: row.id,
          weight: row.table === 'core' ? 'warning' : 'invalid',
        });
      else if (strong.size > 0 && !hasMore) {
        if (verifyRowSignature(row, strong) === 'invalid')
          this.#find('LEDGER_SIGNATURE_INVALID', entry, { about: row.id });
      } else if (verifyRowSignature(row, hasMore ? strong : tried) === 'invalid')
        unchecked = { entry: unchecked?.entry ?? entry, count: (unchecked?.count ?? 0) + 1 };
    }
    if (unchecked !== undefined)
      this.#find('LEDGER_SIGNATURES_NOT_CHECKED', unchecked.entry, {
        actual: `none for ${unchecked.count} rows`,
      });
  }

  #link(entry: Entry, row: LedgerRow, chain: Chain): void {
    const own = ledgerRowHash(row);
    if (row.payload.length > MAX_ROW_PAYLOAD_BYTES)
      this.#differ(
        'LEDGER_PAYLOAD_TOO_LONG',
        entry,
        row.id,
        `at most ${MAX_ROW_PAYLOAD_BYTES} bytes`,
        `${row.payload.length} bytes`,
      );
    if (row.prevHash === undefined)
      this.#differ('LEDGER_LINK_BROKEN', entry, row.id, 'the hash of the row before', 'none', chain.entry);
    else if (chain.entry === undefined) {
      if (row.prevHash !== GENESIS)
        this.#find('LEDGER_HEAD_MISSING', entry, { about: row.id, actual: `one after ${row.prevHash}` });
    } else if (!chain.hashes.includes(row.prevHash))
      this.#differ('LEDGER_LINK_BROKEN', entry, row.id, chain.hashes[0]!, row.prevHash, chain.entry);
    else if (
      row.sequence !== undefined &&
      chain.sequence !== undefined &&
      row.sequence !== chain.sequence + 1n
    )
      this.#differ(
        'LEDGER_SEQUENCE_GAP',
        entry,
        row.id,
        String(chain.sequence + 1n),
        String(row.sequence),
        chain.entry,
      );
    if (row.eventHash === undefined)
      this.#find('LEDGER_HASH_MISSING', entry, { about: row.id, expected: own });
    else if (row.eventHash !== own)
      this.#find('LEDGER_HASH_MISMATCH', entry, { about: row.id, expected: own, actual: row.eventHash });
    chain.entry = entry;
    chain.hashes = row.eventHash === undefined || row.eventHash === own ? [own] : [row.eventHash, own];
    chain.sequence = row.sequence;
  }

  /**
   * The daemon's payloads in the core's table: the signature covers the hash of the row before, which the table's own hash, without any
   * key, does not protect. Rows that were taken over from the daemon's own table have the hashes of that one; none follows the first
   * that has this one's.
   */
  #signedLink(entry: Entry, row: LedgerRow, chain: Chain): void {
    const said = row.content === undefined ? undefined : textAt(row.content, 'prev_hash');
    if (said === undefined || row.prevHash === undefined) return;
    if (said === row.prevHash) chain.isSignedOver ||= said !== GENESIS;
    else if (chain.isSignedOver)
      this.#differ('LEDGER_ROW_CONTRADICTS_PAYLOAD', entry, row.id, `prev_hash ${said}`, row.prevHash);
  }

  /** What a row's columns say and its payload too. */
  #columns(entry: Entry, row: LedgerRow): void {
    const { content } = row;
    if (content === undefined) return;
    const isDaemons = content.has('prev_hash');
    if (isDaemons || row.table === 'daemon') {
      const canonical = cacBytes(content);
      const isCanonical = canonical.ok && decodeUtf8(canonical.value) === decodeUtf8(row.payload);
      if (!isCanonical)
        this.#find('LEDGER_PAYLOAD_NOT_CANONICAL', entry, {
          about: row.id,
          actual: canonical.ok ? 'another spelling' : canonical.fault.code,
        });
    }
    const columns: [string, string | undefined][] = [
      ['event_type', row.eventType],
      ['actor_id', row.actorId === '' ? undefined : row.actorId],
      ['work_id', row.workId === '' ? undefined : row.workId],
      ['prev_hash', row.table === 'daemon' ? row.prevHash : undefined],
    ];
    for (const [name, column] of columns) {
      const said = textAt(content, name);
      const isSessionRow = name === 'event_type' && column === 'session_event';
      if (said === undefined || column === undefined || said === column || isSessionRow) continue;
      this.#differ('LEDGER_ROW_CONTRADICTS_PAYLOAD', entry, row.id, `${name} ${said}`, column);
    }
    const time = new Fields([content]).count('timestamp_ns');
    if (time !== undefined && row.timestampNs !== '0' && time !== row.timestampNs)
      this.#differ('LEDGER_ROW_CONTRADICTS_PAYLOAD', entry, row.id, `timestamp_ns ${time}`, row.timestampNs);
  }

  /** AP-11. */
  #actuation(entry: Entry, fields: Fields): void {
    const [joined, consumed] = [fields.hash('intent_digest'), fields.hash('consume_time_intent_digest')];
    const about = fields.text('request_id') ?? entry.row?.id;
    if (joined === undefined || consumed === undefined) this.#find('INTENT_DIGEST_MISSING', entry, { about });
    else if (joined !== consumed)
      this.#find('INTENT_DIGEST_MISMATCH', entry, { about, expected: joined, actual: consumed });
  }
}

/** So many nonces that are not the episode's are no accident. */
const GUESSES = 3;
/** The most keys that a signature is tried with where none is trusted. */
const MAX_KEYS = 8;
/** So many of the keys that the files name are tried on each row: of rows by others it is said that they were not checked. */
const MAX_NAMED_KEYS = 16;

interface Chain {
  entry: Entry | undefined;
  /** What the next row may name: the hash that the row states, and the one that it ought to have. */
  hashes: readonly string[];
  sequence: bigint | undefined;
  /** Whether payloads in the core's table name its hashes. */
  isSignedOver: boolean;
}

function newChain(): Chain {
  return { entry: undefined, hashes: [], sequence: undefined, isSignedOver: false };
}

function firstEntryOf(episode: Episode): Entry | undefined {
  const [first] = episode.cases;
  if (first === undefined) return episode.indexes[0]?.entry ?? episode.spawns[0]?.entry;
  const { requested, intents, decided, executed, receipts, responses, actuations } = first;
  return [requested, intents, decided, executed, receipts, responses, actuations].flat()[0]?.entry;
}

/** What an event says of how an execution ended, without what protobuf's names of it begin with. */
export function outcomeTextOf(fields: Fields): string | undefined {
  return fields
    .text('outcome')
    ?.replace(/^(?:TOOL_)?OUTCOME_/i, '')
    .toUpperCase();
}

/** What a decision says; undefined for anything but ALLOW and DENY. */
export function decisionOf(fields: Fields): 'allow' | 'deny' | undefined {
  const text = fields
    .text('decision')
    ?.replace(/^(?:TOOL_)?DECISION_/i, '')
    .toUpperCase();
  if (text === 'ALLOW') return 'allow';
  return text === 'DENY' ? 'deny' : undefined;
}
