/** Entries as claims: decisions, executions, and evidence of the rest. README.md has the table. */

import { finding } from './rules.js';
import { encodeBase64url, encodeHex, tryDecodeHex } from '../../base/bytes/encoding.js';
import { sha256, sha256Base64url } from '../../base/bytes/sha256.js';
import type { JsonObject } from '../../base/json/value.js';
import type { Digest } from '../../base/value/digest.js';
import type { Meter, MeterVector } from '../../base/value/meter.js';
import { compareTimestamps } from '../../base/value/timestamp.js';
import type { Bounds, Check } from '../../format/schema/generated/types.js';
import { keyOfCall } from '../../gate/request-key.js';
import { notStated } from '../shared/claims.js';
import { blake3Hex } from '../shared/forms/cac.js';
import type { Claim, ExecutionClaim, ForeignDigest, HostPlace } from '../shared/host.js';
import { codeOf, factText, factTexts, principalOf, toolOf, wellFormed } from '../shared/names.js';
import type { ReadingBuilder } from '../shared/reading.js';
import { amountOf, timeOf } from '../shared/values.js';
import type { Case, Cases, Episode, Of } from './cases.js';
import { decisionOf, outcomeTextOf } from './checks.js';
import type { Fields } from './events.js';
import { ledgerRowHash } from './ledger-rows.js';
import type { Entries, Entry } from './reader.js';
import type { ToolReceipt } from './receipt.js';
import { ONE_CALL } from '../shared/usage.js';
import { inTimeOrder, latestOfFile } from '../shared/order.js';

const SYSTEM = 'apm2';
const MAX_FACT_LENGTH = 512;
/** Makes claims of entries, and accounts for each. */
export function mapEntries({ entries }: Entries, cases: Cases, builder: ReadingBuilder): void {
  const mapper = new Mapper(cases, builder);
  for (const [index, entry] of entries.entries()) mapper.add(entry, index);
  mapper.finish();
}

/** Makes a claim's last members: where it is from, when and whose. */
type Base = Pick<Claim, 'at' | 'bytes' | 'occurredAt' | 'principalId'>;

class Mapper {
  readonly #claims: Claim[] = [];
  readonly #cases: Cases;
  readonly #builder: ReadingBuilder;
  readonly #ids = new Set<string>();
  readonly #grants = new Map<string, string>();
  /** What was decided of each case, and with what parameters. */
  readonly #decisions = new Map<
    Case,
    { readonly id: string; readonly time: string; readonly file: string; readonly params: Digest }
  >();
  readonly #decidedBy = new Map<Case, Of<Fields> | undefined>();
  readonly #runs = new Map<Case, ExecutionClaim>();
  readonly #receiptTimes = new Map<string, string>();
  /** When episodes were attributed, by the profile's hash. */
  readonly #profileTimes = new Map<string, string>();
  readonly #faults: ReadonlyMap<Entry, string>;
  readonly #listed: ReadonlySet<string>;

  constructor(cases: Cases, builder: ReadingBuilder) {
    this.#cases = cases;
    this.#builder = builder;
    this.#faults = new Map(cases.badLines.map(({ entry, fault }) => [entry, fault.code]));
    const indexes = [...cases.episodes.values()].flatMap((episode) => episode.indexes);
    this.#listed = new Set(indexes.flatMap(({ value }) => value.receiptHashes));
    for (const { attributions } of cases.episodes.values()) {
      const time = attributions[0]?.value.time();
      const hash = attributions[0]?.value.hash('adapter_profile_hash');
      if (time !== undefined && !this.#profileTimes.has(hash ?? '')) this.#profileTimes.set(hash ?? '', time);
    }
    for (const episode of cases.episodes.values())
      for (const each of episode.cases)
        for (const { value } of each.receipts) {
          const { time } = timeOfReceipt(each, value);
          if (time !== undefined) this.#receiptTimes.set(value.hash, time);
        }
  }

  add(entry: Entry, index: number): void {
    const { said } = entry;
    if (said.kind === 'line') this.#line(entry, said.tag);
    else if (said.kind === 'receipt') this.#receipt(entry, index, said.receipt);
    else if (said.kind === 'index') {
      const { hash, episodeId, receiptHashes, firstSequence, isFinalChunk } = said.index;
      const last = receiptHashes.findLast((each) => this.#receiptTimes.has(each));
      const episode = this.#cases.episodes.get(episodeId);
      const time = this.#receiptTimes.get(last ?? '') ?? this.#timeOfAttribution(episode);
      this.#evidence(entry, `index:${hash}`, 'tool_log_index', episodeId, time, {
        episode_id: episodeId,
        index_hash: hash,
        receipts: String(receiptHashes.length),
        first_sequence: String(firstSequence),
        is_final_chunk: isFinalChunk,
      });
    } else if (said.kind === 'profile') {
      const { hash, profile } = said.profile;
      if (hash === undefined) this.#drop(entry, 'NO_CANONICAL_FORM');
      else {
        const [anyTime] = this.#profileTimes.values();
        const time = this.#profileTimes.get(hash) ?? anyTime;
        const facts = { profile_hash: hash, ...fact('profile_id', profile?.profileId) };
        this.#evidence(entry, `profile:${hash}`, 'adapter_profile', '', time, facts);
      }
    } else if (said.kind === 'budget') {
      const episode = this.#cases.episodes.get(said.episode ?? '');
      const id = `budget:${said.episode ?? ''}:${sha256Base64url(entry.bytes)}`;
      this.#evidence(entry, id, 'episode_budget', said.episode ?? '', this.#timeOfAttribution(episode), {
        ...fact('episode_id', said.episode),
        caps: Object.fromEntries([...said.caps].map(([unit, cap]) => [unit, cap === '0' ? 'none' : cap])),
      });
    } else this.#event(entry, index);
  }

  finish(): void {
    for (const claim of inTimeOrder(this.#claims, latestOfFile())) this.#builder.claim(claim);
    for (const { cases } of this.#cases.episodes.values()) for (const each of cases) this.#observe(each);
  }

  #event(entry: Entry, index: number): void {
    if (entry.said.kind !== 'event') return;
    const { kind, type, fields } = entry.said.event;
    const found = this.#cases.caseOf.get(entry);
    if (kind === 'attributed') this.#attribution(entry, fields);
    else if (kind === 'requested' && found !== undefined) this.#requested(entry, found, fields);
    else if (kind === 'decided' && found !== undefined) this.#decided(entry, index, found, fields);
    else if (kind === 'executed' && found !== undefined) this.#executed(entry, index, found, fields);
    else if (kind === 'actuation') this.#actuation(entry, found, fields);
    else this.#other(entry, kind === 'other' ? type : kind, fields);
  }

  #attribution(entry: Entry, fields: Fields): void {
    const id = fields.text('episode_id') ?? '';
    const episode = this.#cases.episodes.get(id);
    if (episode?.attributions[0]?.entry !== entry) {
      this.#repeat(entry, 'ATTRIBUTION_REPEATED');
      return;
    }
    const base = this.#base(entry, id, fields.time());
    if (base === undefined) return;
    this.#claim({
      ...base,
      kind: 'evidence',
      id: `attribution:${id}`,
      type: 'episode_run_attributed',
      facts: {
        ...fact('work_id', fields.text('work_id')),
        ...fact('episode_id', fields.text('episode_id')),
        ...fact('session_id', fields.text('session_id')),
        ...fact('adapter_profile_hash', fields.hash('adapter_profile_hash')),
      },
      foreignDigests: digestsOfRow(entry),
    });
    const isGrant = this.#grant(base, episode, fields);
    this.#item(entry, isGrant ? 'mapped' : 'evidence');
  }

  /** The profile and the budget, as bounds. A budget of nothing but zeros bounds nothing, so it grants nothing. */
  #grant(base: Base, episode: Episode, fields: Fields): boolean {
    const { profile } = episode;
    const budget = episode.budget?.value ?? profile?.budget;
    if (profile === undefined || budget === undefined) return false;
    const tools = [...new Set([...profile.capabilityMap.values()].map(toolOf))].sort();
    const caps = [...budget].flatMap(([unit, cap]) => (cap === '0' ? [] : meterOf(unit, cap)));
    if (tools.length === 0 || caps.length === 0) return false;
    const checks = [...budget].map(([unit, cap]): Check => ({
      check: `budget.${unit}`,
      result: 'pass',
      code: cap === '0' ? 'NO_CAP' : 'CAP',
    }));
    const bounds: Bounds = {
      allowed_tools: tools,
      meter_caps: [...caps].sort((a, b) => (a.unit < b.unit ? -1 : 1)),
    };
    const id = `grant:${episode.id}`;
    this.#claim({
      ...base,
      kind: 'grant',
      id,
      decision: 'allow',
      decisionCode: 'EPISODE_RUN_ATTRIBUTED',
      policyId: `apm2:profile:${profile.profileId}`.slice(0, 256),
      policyDigest: blake3Digest(fields.hash('adapter_profile_hash')),
      bounds,
      checks,
    });
    this.#grants.set(episode.id, id);
    return true;
  }

  #requested(entry: Entry, found: Case, fields: Fields): void {
    if (found.requested[0]?.entry !== entry) {
      this.#repeat(entry, 'REQUEST_DUPLICATE');
      return;
    }
    const base = this.#base(entry, found.scope, fields.time());
    if (base === undefined) return;
    const stated = fields.hash('tool_args_hash');
    const sent = found.intents[0]?.value.argsBytes;
    const check = sent === undefined ? 'not_computed' : blake3Hex(sent) === stated ? 'match' : 'mismatch';
    const args: ForeignDigest[] =
      stated === undefined ? [] : [{ of: 'tool_args', form: 'cac-json-v1', stated, check }];
    this.#claim({
      ...base,
      kind: 'evidence',
      ...idsOf('request', found, 'event'),
      type: 'tool_requested',
      facts: {
        request_id: shown(found.request),
        ...fact('episode_id', fields.text('episode_id')),
        ...fact('session_id', fields.text('session_id')),
        ...fact('tool_name', fields.text('tool_name')),
        ...fact('tool_args_hash', stated),
        ...fact('dedupe_key_sha256', digestText(fields.text('dedupe_key'))),
      },
      foreignDigests: [...args, ...digestsOfRow(entry)],
    });
    this.#item(entry, 'evidence');
  }

  #decided(entry: Entry, index: number, found: Case, fields: Fields): void {
    const decision = decisionOf(fields);
    const first = this.#decisionIn(found);
    if (decision !== undefined && first?.entry !== entry) {
      this.#repeat(entry, 'DECISION_DUPLICATE');
      return;
    }
    const base = this.#base(entry, found.scope, fields.time());
    if (base === undefined) return;
    if (decision === undefined) {
      const id = `decision-invalid:${idOf(found)}:${sha256Base64url(entry.bytes)}`;
      const facts = { request_id: shown(found.request), ...fact('decision', fields.text('decision')) };
      this.#claim({ ...base, kind: 'evidence', id, type: 'decision_invalid', facts });
      this.#item(entry, 'evidence');
      return;
    }
    const proposal = proposalOf(found, index);
    const params = blake3Digest(proposal.argsHash) ?? notStated(SYSTEM, 'params');
    const rule = fields.text('rule_id');
    const policy = fields.hash('policy_hash');
    const code = codeOf(fields.text('rationale_code') ?? decision);
    const { id, sameAs } = idsOf('decision', found, 'event');
    this.#claim({
      ...base,
      kind: 'action',
      id,
      sameAs,
      decision,
      decisionCode: code,
      policyDigest: blake3Digest(policy),
      checks:
        rule === undefined
          ? []
          : [{ check: wellFormed(rule).slice(0, 64), result: decision === 'allow' ? 'pass' : 'fail', code }],
      tool: this.#toolOf(found, proposal.tool),
      paramsDigest: params,
      // Under a grant the intent is the grant's; an own one would have to be linked to it.
      intentDigest: this.#grants.has(found.episode) ? undefined : intentOf(proposal),
      grant: this.#grants.get(found.episode),
      reservation: budgetConsumed(fields),
      foreignDigests: digestsOfRow(entry),
    });
    this.#decisions.set(found, { id, time: base.occurredAt, file: entry.at.file, params });
    this.#item(entry, 'mapped');
  }

  #executed(entry: Entry, index: number, found: Case, fields: Fields): void {
    if (found.executed[0]?.entry !== entry) {
      this.#repeat(entry, 'EXECUTION_DUPLICATE');
      return;
    }
    const base = this.#base(entry, found.scope, fields.time());
    if (base === undefined) return;
    // A receipt counts where it stands before the event, or in a file of its own: what is added to a log changes nothing before it.
    const receipt = found.receipts.find((each) => each.entry.at.file !== entry.at.file || each.index < index);
    const stated = outcomeTextOf(fields);
    if (stated !== 'SUCCESS' && stated !== 'FAILURE' && stated !== 'TIMEOUT')
      this.#builder.find(
        finding('OUTCOME_NOT_STATED', entry.at, { about: found.request, actual: shown(stated ?? 'none') }),
      );
    const ms = fields.count('duration_ms');
    const time = receipt === undefined ? meterOf('time.ms', ms) : msOf(receipt.value);
    const outcome =
      stated === 'SUCCESS' ? 'success' : stated === 'FAILURE' || stated === 'TIMEOUT' ? 'failure' : 'unknown';
    const proposal = proposalOf(found, index);
    this.#run(found, entry, {
      ...base,
      outcome,
      ...(outcome === 'failure' ? { errorCode: stated === 'TIMEOUT' ? 'TIMEOUT' : 'FAILURE' } : {}),
      tool: this.#toolOf(found, proposal.tool ?? receipt?.value.toolClass),
      argsHash: receipt?.value.argsHash ?? proposal.argsHash,
      outputHash: fields.hash('result_hash') ?? receipt?.value.resultHash,
      startedAt: this.#startOf(found, receipt),
      meters: [...time, ...this.#consumed(found)],
      foreignDigests: digestsOfRow(entry),
      source: receipt === undefined ? 'event' : 'both',
    });
    this.#item(entry, 'mapped');
  }

  #receipt(entry: Entry, index: number, receipt: ToolReceipt): void {
    const found = this.#cases.caseOf.get(entry)!;
    const id = `receipt:${receipt.hash}`;
    if (this.#ids.has(id)) {
      this.#repeat(entry, 'RECEIPT_REPEATED');
      return;
    }
    const { time, stated, isBefore } = timeOfReceipt(found, receipt);
    if (isBefore)
      this.#builder.find(
        finding('RECEIPT_TIME_BEFORE_DECISION', entry.at, {
          about: found.request,
          expected: `a start at ${time} or later; this time stands for it`,
          actual: stated,
        }),
      );
    const base = this.#base(entry, found.scope, time);
    if (base === undefined) return;
    this.#claim({
      ...base,
      kind: 'evidence',
      id,
      type: 'tool_execution_receipt',
      facts: {
        episode_id: shown(receipt.episodeId),
        request_id: shown(receipt.requestId),
        capability_id: shown(receipt.capabilityId),
        tool_class: shown(receipt.toolClass),
        policy_hash: receipt.policyHash,
        args_hash: receipt.argsHash,
        result_hash: receipt.resultHash,
        time_envelope_ref: receipt.timeEnvelopeRef,
        started_at_ns: String(receipt.startedAtNs),
        duration_ns: String(receipt.durationNs),
        signer_identity: shown(receipt.signerIdentity),
        signature_sha256: digestText(encodeHex(receipt.signature)) ?? '',
      },
      foreignDigests: [
        // What an index lists it under, where one does.
        {
          of: 'receipt',
          form: 'serde-struct-order',
          stated: receipt.hash,
          check: this.#listed.has(receipt.hash) ? 'match' : 'not_computed',
        },
      ],
    });
    const isAlone = found.executed.length === 0 && found.receipts[0]?.entry === entry;
    if (isAlone)
      this.#run(found, entry, {
        ...base,
        outcome: 'unknown',
        tool: this.#toolOf(found, proposalOf(found, index).tool ?? receipt.toolClass),
        argsHash: receipt.argsHash,
        outputHash: receipt.resultHash,
        startedAt: isBefore ? undefined : stated,
        meters: [...msOf(receipt), ...this.#consumed(found)],
        source: 'receipt',
      });
    this.#item(entry, isAlone || found.executed.length > 0 ? 'mapped' : 'evidence');
  }

  #actuation(entry: Entry, found: Case | undefined, fields: Fields): void {
    const session = fields.text('session_id') ?? '';
    const episode = found?.episode ?? this.#cases.episodeOf.get(entry) ?? '';
    const scope = found?.scope ?? (episode === '' ? session : episode);
    const base = this.#base(entry, scope, fields.time());
    if (base === undefined) return;
    const id = `actuation:${entry.row?.eventHash ?? sha256Base64url(entry.bytes)}`;
    const foreignDigests = digestsOfRow(entry);
    if (found !== undefined && (found.decided.length > 0 || found.actuations[0]?.entry !== entry)) {
      const facts = { request_id: shown(found.request), ...fact('tool_class', fields.text('tool_class')) };
      this.#claim({ ...base, kind: 'evidence', id, type: 'kernel_tool_actuation', facts, foreignDigests });
      this.#item(entry, 'evidence');
      return;
    }
    const [joined, consumed] = [fields.hash('intent_digest'), fields.hash('consume_time_intent_digest')];
    const checks: Check[] =
      joined === undefined || consumed === undefined
        ? []
        : [{ check: 'intent_digest', result: joined === consumed ? 'pass' : 'fail', code: 'AP_11' }];
    this.#claim({
      ...base,
      kind: 'action',
      id,
      decision: 'allow',
      decisionCode: 'KERNEL_TOOL_ACTUATION',
      policyDigest: blake3Digest(fields.hash('policy_root_digest')),
      intentDigest: this.#grants.has(episode) ? undefined : blake3Digest(joined),
      checks,
      tool: fields.text('tool_class') ?? '',
      grant: this.#grants.get(episode),
      foreignDigests,
    });
    if (found !== undefined) {
      const params = notStated(SYSTEM, 'params');
      this.#decisions.set(found, { id, time: base.occurredAt, file: entry.at.file, params });
    }
    this.#item(entry, 'mapped');
  }

  #line(entry: Entry, tag: 'TI1' | 'TR1'): void {
    const line = this.#cases.lines.get(entry);
    const found = this.#cases.caseOf.get(entry);
    if (line === undefined || found === undefined) {
      this.#drop(entry, this.#faults.get(entry) ?? 'MALFORMED_FRAME');
      return;
    }
    if (tag === 'TI1') this.#intent(entry, found);
    else this.#response(entry, found);
  }

  #intent(entry: Entry, found: Case): void {
    const [intent] = found.intents;
    if (found.requested.length > 0 || intent?.entry !== entry) {
      this.#repeat(entry, found.requested.length > 0 ? 'TOOL_REQUESTED' : 'REQUEST_DUPLICATE');
      return;
    }
    const base = this.#base(entry, found.scope, undefined, this.#startOfEpisode(found));
    if (base === undefined) return;
    this.#claim({
      ...base,
      kind: 'evidence',
      ...idsOf('request', found, 'line'),
      type: 'tool_intent',
      facts: {
        request_id: shown(found.request),
        tool_name: shown(intent.value.toolName),
        args_blake3: blake3Hex(intent.value.argsBytes),
      },
    });
    this.#item(entry, 'evidence');
  }

  #response(entry: Entry, found: Case): void {
    const [response] = found.responses;
    const isDenied = response?.value.status === 'denied';
    const isKnown = isDenied
      ? found.decided.length > 0
      : found.executed.length > 0 || found.receipts.length > 0;
    if (response?.entry !== entry || isKnown) {
      this.#repeat(
        entry,
        response?.entry !== entry ? 'RESPONSE_DUPLICATE' : isDenied ? 'TOOL_DECIDED' : 'TOOL_EXECUTED',
      );
      return;
    }
    const base = this.#base(entry, found.scope, undefined, this.#startOfEpisode(found));
    if (base === undefined) return;
    const proposal = proposalOf(found, Number.MAX_SAFE_INTEGER);
    if (response.value.status === 'denied') {
      const { id, sameAs } = idsOf('decision', found, 'line');
      const params = blake3Digest(proposal.argsHash) ?? notStated(SYSTEM, 'params');
      this.#claim({
        ...base,
        kind: 'action',
        id,
        sameAs,
        decision: 'deny',
        decisionCode: codeOf(response.value.reasonCode),
        tool: this.#toolOf(found, proposal.tool),
        paramsDigest: params,
        intentDigest: intentOf(proposal),
      });
      this.#decisions.set(found, { id, time: base.occurredAt, file: entry.at.file, params });
    } else {
      this.#run(found, entry, {
        ...base,
        // An answer says that there is a result, not what it is.
        outcome: 'unknown',
        tool: this.#toolOf(found, proposal.tool),
        argsHash: proposal.argsHash,
        outputHash: response.value.resultHash,
        startedAt: undefined,
        meters: this.#consumed(found),
        source: 'line',
      });
    }
    this.#item(entry, 'mapped');
  }

  #run(
    found: Case,
    { at }: Entry,
    run: Base & {
      readonly outcome: ExecutionClaim['outcome'];
      readonly errorCode?: string;
      readonly tool: string;
      readonly argsHash: string | undefined;
      readonly outputHash: string | undefined;
      readonly startedAt: string | undefined;
      readonly meters: readonly Meter[];
      readonly foreignDigests?: readonly ForeignDigest[];
      readonly source: ClaimSource;
    },
  ): void {
    const { argsHash, outputHash, startedAt, meters, source, ...rest } = run;
    const decision = this.#decisions.get(found) ?? this.#decisionElsewhere(found, at);
    const claim: ExecutionClaim = {
      ...rest,
      kind: 'execution',
      ...idsOf('execution', found, source),
      authorization: decision?.id,
      paramsDigest: blake3Digest(argsHash) ?? decision?.params,
      outputDigest: blake3Digest(outputHash),
      startedAt,
      meters: [ONE_CALL, ...meters],
      meterBasis: 'reported',
    };
    this.#runs.set(found, claim);
    this.#claim(claim);
  }

  /** The first event that decides a request. There may be many that do not, so that it is looked for once. */
  #decisionIn(found: Case): Of<Fields> | undefined {
    if (!this.#decidedBy.has(found))
      this.#decidedBy.set(
        found,
        found.decided.find(({ value }) => decisionOf(value) !== undefined),
      );
    return this.#decidedBy.get(found);
  }

  #decisionElsewhere(
    found: Case,
    at: HostPlace,
  ): { readonly id: string; readonly params: Digest } | undefined {
    const decision = this.#decisionIn(found);
    if (decision === undefined || decision.entry.at.file === at.file) return undefined;
    const { argsHash } = proposalOf(found, decision.index);
    const params = blake3Digest(argsHash) ?? notStated(SYSTEM, 'params');
    return { id: `decision:${idOf(found)}`, params };
  }

  #other(entry: Entry, kind: string, fields: Fields): void {
    const type = kind
      .toLowerCase()
      .replace(/[^a-z0-9_.-]+/g, '_')
      .slice(0, 64);
    const id = `event:${entry.row?.eventHash ?? sha256Base64url(entry.bytes)}`;
    const time = fields.time() ?? timeOf(fields.count('spawn_time_ns'), 'ns');
    const episode = fields.text('episode_id') ?? this.#cases.episodeOf.get(entry) ?? '';
    const names = [
      'episode_id',
      'session_id',
      'work_id',
      'request_id',
      'receipt_id',
      'review_id',
      'blocked_id',
    ];
    const codes = ['reason_code', 'reason', 'budget_type', 'exit_classification', 'rationale_code'];
    this.#evidence(entry, id, type === '' ? 'event' : type, episode, time, {
      ...factTexts([...names, ...codes], (name) => fields.text(name), MAX_FACT_LENGTH),
      ...factTexts(['limit', 'consumed'], (name) => fields.count(name), MAX_FACT_LENGTH),
      ...factTexts(['changeset_digest', 'artifact_bundle_hash', 'blocked_log_hash'], (name) =>
        fields.hash(name),
      ),
    });
  }

  /** Evidence of something that states no time has `fallback`, with a remark. */
  #evidence(
    entry: Entry,
    id: string,
    type: string,
    episode: string,
    fallback: string | undefined,
    facts: JsonObject,
  ): void {
    if (this.#ids.has(id)) {
      this.#repeat(entry, 'SAME_CONTENT');
      return;
    }
    const isStated = entry.said.kind === 'event';
    const base = this.#base(entry, episode, isStated ? fallback : undefined, isStated ? undefined : fallback);
    if (base === undefined) return;
    const foreignDigests = digestsOfRow(entry);
    this.#claim({ ...base, kind: 'evidence', id, type, facts, foreignDigests });
    this.#item(entry, 'evidence');
  }

  #base(entry: Entry, scope: string, stated: string | undefined, fallback?: string): Base | undefined {
    const { at, bytes } = entry;
    let occurredAt: string | undefined;
    if (stated === undefined && fallback !== undefined) {
      occurredAt = fallback;
      this.#builder.find(
        finding('TIME_NOT_STATED', at, { actual: `none; ${fallback}, of what it belongs to, stands for it` }),
      );
    } else occurredAt = this.#builder.timeOf(stated, at);
    if (occurredAt === undefined) {
      this.#drop(entry, 'TIME_NOT_STATED');
      return undefined;
    }
    const principalId = scope === '' ? principalOf('service', SYSTEM) : principalOf('agent', SYSTEM, scope);
    return { at, bytes, occurredAt, principalId };
  }

  #startOf(found: Case, receipt: Of<ToolReceipt> | undefined): string | undefined {
    if (receipt === undefined) return undefined;
    const { stated, isBefore } = timeOfReceipt(found, receipt.value);
    return isBefore ? undefined : stated;
  }

  #startOfEpisode(found: Case): string | undefined {
    const spawn = this.#cases.episodes.get(found.episode)?.spawns[0]?.value;
    return timeOf(spawn?.count('spawn_time_ns'), 'ns');
  }

  #timeOfAttribution(episode: Episode | undefined): string | undefined {
    return episode?.attributions[0]?.value.time();
  }

  #toolOf(found: Case, tool: string | undefined): string {
    if (tool === undefined) return '';
    return this.#cases.episodes.get(found.episode)?.profile?.capabilityMap.get(tool) ?? tool;
  }

  #consumed(found: Case): readonly Meter[] {
    const decision = this.#decisionIn(found);
    return decision === undefined ? [] : budgetConsumed(decision.value);
  }

  #observe(each: Case): void {
    const { requested, intents, decided, executed, receipts, responses } = each;
    const first = [requested, intents, decided, executed, receipts, responses].flat()[0];
    if (first === undefined) return;
    const proposal = proposalOf(each, Number.MAX_SAFE_INTEGER);
    const run = this.#runs.get(each);
    const denied = responses[0]?.value.status === 'denied' ? 'deny' : undefined;
    this.#builder.observe({
      at: first.entry.at,
      callIds: [
        // The last is what the kernel that runs agents itself gives the gate.
        ...new Set([each.request, `${each.scope}/${each.request}`, keyOfCall(each.scope, each.request)]),
      ],
      tool: this.#toolOf(each, proposal.tool ?? receipts[0]?.value.toolClass),
      paramsDigest: blake3Digest(receipts[0]?.value.argsHash ?? proposal.argsHash),
      decision: (decided[0] && decisionOf(decided[0].value)) ?? denied,
      outcome: run?.outcome,
      meters: run?.meters ?? [],
      occurredAt: run?.occurredAt ?? decided[0]?.value.time() ?? requested[0]?.value.time(),
    });
  }

  /** Ids that hostile names make the same are told apart by their place. */
  #claim(claim: Claim): void {
    const isNew = !this.#ids.has(claim.id);
    const id = isNew ? claim.id : `${claim.id}#${this.#claims.length}`;
    this.#ids.add(id);
    this.#claims.push(isNew ? claim : { ...claim, id });
  }

  #item({ at, type }: Entry, fate: 'mapped' | 'evidence'): void {
    this.#builder.item({ at, type, fate });
  }

  #repeat({ at, type }: Entry, reason: string): void {
    this.#builder.repeat(at, type, reason);
  }

  #drop({ at, type }: Entry, reason: string): void {
    this.#builder.drop(at, type, reason);
  }
}

/**
 * When a receipt says that the execution began. Its clock may be another than the kernel's: where it lies before the decision, the
 * decision's time is used instead.
 */
function timeOfReceipt(
  { decided }: Case,
  { startedAtNs }: ToolReceipt,
): { readonly time: string | undefined; readonly stated: string | undefined; readonly isBefore: boolean } {
  const stated = timeOf(String(startedAtNs), 'ns');
  const decision = decided[0]?.value.time();
  const isBefore = stated !== undefined && decision !== undefined && compareTimestamps(stated, decision) < 0;
  return { time: isBefore ? decision : stated, stated, isBefore };
}

/** What was requested: as the event of the request says where one is before `index` or in another file, else as its line does. */
function proposalOf(
  found: Case,
  index: number,
): { readonly tool: string | undefined; readonly argsHash: string | undefined } {
  const requested = found.requested[0];
  const isBefore =
    requested !== undefined &&
    (requested.index < index || found.decided[0]?.entry.at.file !== requested.entry.at.file);
  const [intent] = found.intents;
  return {
    tool: (isBefore ? requested.value.text('tool_name') : undefined) ?? intent?.value.toolName,
    argsHash:
      (isBefore ? requested.value.hash('tool_args_hash') : undefined) ??
      (intent === undefined ? undefined : blake3Hex(intent.value.argsBytes)),
  };
}
function intentOf({ tool, argsHash }: ReturnType<typeof proposalOf>): Digest | undefined {
  if (tool === undefined || argsHash === undefined) return undefined;
  const text = `{"args_blake3":"${argsHash}","tool":${JSON.stringify(wellFormed(tool))}}`;
  return { alg: 'sha-256', b64: encodeBase64url(sha256(new TextEncoder().encode(text))) };
}

/** What names a request in ids of claims: the scope without slashes, then the request's own id. */
function idOf({ scope, request }: Case): string {
  return `${scope.replaceAll('%', '%25').replaceAll('/', '%2F')}/${request}`;
}

/** What a claim of a request rests on: a kernel's event, one with its receipt, a receipt alone, a line of a log. */
type ClaimSource = 'event' | 'both' | 'receipt' | 'line';

/** The prefix of the ids of executions, by what they rest on. */
const EXECUTIONS: Readonly<Record<ClaimSource, string>> = {
  both: '',
  event: 'event-',
  receipt: 'receipt-',
  line: 'line-',
};
const OTHERS: Readonly<Partial<Record<ClaimSource, string>>> = { event: '', line: 'line-' };

/** The id of a claim of a request, and those that it has where other files are given: earlier imports may have had them. */
function idsOf(
  what: 'request' | 'decision' | 'execution',
  found: Case,
  source: ClaimSource,
): { readonly id: string; readonly sameAs: readonly string[] } {
  const prefixes = what === 'execution' ? EXECUTIONS : OTHERS;
  const own = prefixes[source] ?? '';
  const id = `${what}:${idOf(found)}`;
  const others = Object.values(prefixes).filter((each) => each !== own);
  return { id: `${own}${id}`, sameAs: others.map((each) => `${each}${id}`) };
}

function digestsOfRow({ row }: Entry): readonly ForeignDigest[] {
  if (row?.eventHash === undefined) return [];
  const check = ledgerRowHash(row) === row.eventHash ? 'match' : 'mismatch';
  const form = row.table === 'core' ? 'apm2-events' : 'apm2-ledger-events';
  return [{ of: 'event', form, stated: row.eventHash, check }];
}

function blake3Digest(hex: string | undefined): Digest | undefined {
  const bytes = hex === undefined || !/^[0-9a-f]{64}$/i.test(hex) ? undefined : tryDecodeHex(hex);
  return bytes && { alg: 'blake3', b64: encodeBase64url(bytes) };
}

function meterOf(unit: string, count: string | undefined): readonly Meter[] {
  const amount = amountOf(count);
  return amount === undefined ? [] : [{ unit, amount }];
}

function msOf({ durationNs }: ToolReceipt): readonly Meter[] {
  return meterOf('time.ms', `${durationNs}e-6`);
}

/** A number without a unit in the source; 0 is what protobuf has for none. */
function budgetConsumed(fields: Fields): MeterVector {
  const count = fields.count('budget_consumed');
  return count === undefined || count === '0' ? [] : meterOf('budget', count);
}

function shown(text: string): string {
  return factText(text, MAX_FACT_LENGTH);
}

function fact(name: string, value: string | undefined): JsonObject {
  return value === undefined ? {} : { [name]: shown(value) };
}

function digestText(text: string | undefined): string | undefined {
  return text === undefined ? undefined : sha256Base64url(new TextEncoder().encode(text));
}
