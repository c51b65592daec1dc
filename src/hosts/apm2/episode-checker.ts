/**
 * `northroot check --as episode`: what the conformance tests of an adapter profile must prove of an episode, from its files. What the files
 * do not show has not been proved, so it fails; and what fails must be recorded as a blocked review, by a reason's name.
 */

import { findingOf, rulesOf, type Weight } from '../shared/findings.js';
import { printable } from '../../base/bytes/printable.js';
import type { Checker, HostFile, HostFinding, HostItem, HostOptions, HostPlace } from '../shared/host.js';
import { checkReadOptions, ReadingBuilder } from '../shared/reading.js';
import { type Case, type Cases, casesOf, type Episode } from './cases.js';
import { checkAll, decisionOf, pinnedKeys } from './checks.js';
import type { Fields } from './events.js';
import { pinsVersion } from './profile-checker.js';
import { type Entries, type Entry, readEntries } from './reader.js';
import { verifyToolReceipt } from './receipt.js';
import { APM2_RULES } from './rules.js';

/** Why reviews are blocked, by name: the numbers of the protobuf and of the code disagree. The last is the seed's alone. */
const BLOCKED_REASONS = [
  ...['APPLY_FAILED', 'TOOL_FAILED', 'BINARY_UNSUPPORTED', 'MISSING_ARTIFACT', 'INVALID_BUNDLE', 'TIMEOUT'],
  ...[
    'POLICY_DENIED',
    'CONTEXT_MISS',
    'MISSING_VIEW_COMMITMENT',
    'CONTEXT_PACK_MISSING',
    'CONTEXT_PACK_INVALID',
  ],
  ...['ADAPTER_MISCONFIGURED', 'TAINT_FLOW_DENIED', 'MERGE_CONFLICT', 'ADAPTER_PROTOCOL_VIOLATION'],
] as const;

const EPISODE_RULES = rulesOf({
  'EP-0': ['The version probe passes.', 'the files do not have the output of the probe: it must be run'],
  'EP-1': 'The profile exists and is valid, and its version probe pins a major and a minor version.',
  'EP-2': 'The agent emits at least one ToolIntent, and every frame of its log is valid.',
  'EP-3': 'The kernel executes a requested and allowed tool, with a receipt that verifies.',
  'EP-4': 'The agent terminates with a structured final output.',
  'EP-5': 'The review receipt is recorded in a ledger, and everything that it names exists.',
  'EP-6': 'The ledger attributes the episode to work, episode, session and adapter profile.',
  'EP-7': 'A failure is recorded as a blocked review with a reason, and not as a review.',
});

/** The reason for which a broken rule blocks a review. */
const REASON_OF_RULE: Readonly<Record<string, string>> = {
  'AP-1': 'ADAPTER_PROTOCOL_VIOLATION',
  'AP-2': 'ADAPTER_PROTOCOL_VIOLATION',
  'AP-3': 'POLICY_DENIED',
  'AP-4': 'INVALID_BUNDLE',
  'AP-5': 'INVALID_BUNDLE',
  'AP-6': 'ADAPTER_PROTOCOL_VIOLATION',
  'AP-7': 'INVALID_BUNDLE',
  'AP-8': 'POLICY_DENIED',
  'AP-9': 'ADAPTER_MISCONFIGURED',
  'AP-10': 'INVALID_BUNDLE',
  'AP-11': 'POLICY_DENIED',
  INPUT: 'INVALID_BUNDLE',
};

const AIDS = {
  profile: 'the adapter profile of the episode',
  keys: 'public keys that are trusted, as 64 hexadecimal digits each',
} as const;

/** Checks an episode against its conformance rules. */
export const episodeChecker: Checker = {
  name: 'episode',
  title: 'Conformance of an adapter episode',
  rules: [...EPISODE_RULES, ...APM2_RULES],
  aids: AIDS,
  check: checkEpisodes,
};

function checkEpisodes(
  files: readonly HostFile[],
  options: HostOptions = {},
): { items: readonly HostItem[]; findings: readonly HostFinding[] } {
  checkReadOptions('episode.check', options, AIDS);
  const builder = new ReadingBuilder(options);
  const entries = readEntries(files, builder);
  const cases = casesOf(entries, options, builder);
  checkAll({ builder, entries, cases, pinned: pinnedKeys(options) });
  const { items: others, findings: found } = builder.finish();
  const checked = entries.entries.map(({ at, type }): HostItem => ({ at, type, fate: 'evidence' }));
  const items = [...checked, ...others];
  // No file, no item: nothing to be decided about.
  if (items.length === 0) return { items, findings: found };
  const conformance = new Conformance(entries, cases, found, { file: files[0]!.name });
  return { items, findings: [...found, ...conformance.check()] };
}
/**
 * Why the review of an episode must be blocked, by what its files show without any review; undefined where nothing stands against it.
 * @returns the reason's name, and the code of what was found
 */
export function reasonToBlock(
  files: readonly HostFile[],
): { readonly reason: string; readonly code: string } | undefined {
  const broken = checkEpisodes(files).findings.filter(
    ({ rule, severity }) => severity === 'error' && !ABOUT_REVIEWS.has(rule),
  );
  const own = broken.find(({ rule }) => rule.startsWith('EP-'));
  if (own !== undefined) return { reason: own.code, code: own.rule };
  const [first] = broken;
  return first && { reason: REASON_OF_RULE[first.rule] ?? 'INVALID_BUNDLE', code: first.code };
}

const ABOUT_REVIEWS: ReadonlySet<string> = new Set(['EP-5', 'EP-7']);

interface Facts {
  readonly hasIntent: boolean;
  /** Whether a tool was requested, allowed and executed, with its receipt. */
  readonly hasRun: boolean;
  readonly hasLog: boolean;
  /** Whether a log ends as it should. */
  readonly hasEnding: boolean;
}

function isRun({ executed, receipts, decided }: Case): boolean {
  return (
    executed.length > 0 &&
    receipts.some(({ value }) => verifyToolReceipt(value) === 'ok') &&
    decided.some(({ value }) => decisionOf(value) === 'allow')
  );
}

class Conformance {
  readonly #entries: Entries;
  readonly #cases: Cases;
  readonly #found: readonly HostFinding[];
  readonly #at: HostPlace;
  readonly #findings: HostFinding[] = [];
  /** Requests of which no episode is stated: they may be of any. */
  readonly #unnamed: Facts;
  readonly #hasEnding: boolean;

  constructor(entries: Entries, cases: Cases, found: readonly HostFinding[], at: HostPlace) {
    this.#entries = entries;
    this.#cases = cases;
    this.#found = found;
    this.#at = at;
    this.#unnamed = this.#factsOf(cases.episodes.get(''));
    this.#hasEnding = [...entries.endings.values()].some((ending) => ending !== undefined);
  }

  check(): readonly HostFinding[] {
    const named = [...this.#cases.episodes.values()].filter(({ id }) => id !== '');
    if (named.length === 0)
      this.#fail('EP-6', 'ADAPTER_MISCONFIGURED', this.#at, 'an episode', 'none in the files');
    for (const episode of named) this.#episode(episode, episode === named[0]);
    this.#review();
    this.#closed();
    return this.#findings;
  }
  #factsOf(episode: Episode | undefined): Facts {
    const cases = episode?.cases ?? [];
    const logs = [...(episode?.logs ?? [])];
    return {
      hasIntent: cases.some(({ intents }) => intents.length > 0),
      hasRun: cases.some((each) => (each.requested.length > 0 || each.intents.length > 0) && isRun(each)),
      hasLog: logs.length > 0,
      hasEnding: logs.some((name) => this.#entries.endings.get(name) !== undefined),
    };
  }

  /** @param isFirst - Whether it is told here what is wrong with requests of no stated episode. */
  #episode(episode: Episode, isFirst: boolean): void {
    const { id, attributions, profile } = episode;
    const first = attributions[0];
    const at = first?.entry.at ?? this.#at;
    const isComplete = ['work_id', 'episode_id', 'session_id'].every(
      (name) => first?.value.text(name) !== undefined,
    );
    const fail = (rule: string, reason: string, expected: string, actual = 'none'): void =>
      this.#fail(rule, reason, at, expected, actual, id);
    if (!isComplete || first?.value.hash('adapter_profile_hash') === undefined)
      fail('EP-6', 'ADAPTER_MISCONFIGURED', 'work, episode, session and profile', 'not all of them');
    else if (first.entry.row === undefined)
      fail('EP-6', 'ADAPTER_MISCONFIGURED', 'an attribution in a ledger', 'an event outside of one');
    if (profile === undefined)
      fail('EP-1', 'ADAPTER_MISCONFIGURED', 'the profile of the hash that is attributed, valid');
    else if (!pinsVersion(profile.versionRegex))
      fail('EP-1', 'ADAPTER_MISCONFIGURED', 'a major and a minor version', profile.versionRegex);
    const [own, unnamed] = [this.#factsOf(episode), this.#unnamed];
    if (!own.hasIntent && !unnamed.hasIntent) fail('EP-2', 'ADAPTER_PROTOCOL_VIOLATION', 'a ToolIntent');
    if (!own.hasRun && !unnamed.hasRun)
      fail('EP-3', 'TOOL_FAILED', 'a tool requested, allowed and executed, with its receipt');
    this.#executions(episode.cases);
    if (isFirst) this.#executions(this.#cases.episodes.get('')?.cases ?? []);
    const isStructured = own.hasLog || unnamed.hasLog ? own.hasEnding || unnamed.hasEnding : this.#hasEnding;
    if (!isStructured) fail('EP-4', 'ADAPTER_PROTOCOL_VIOLATION', 'a JSON object at the end of the log');
  }

  #executions(all: readonly Case[]): void {
    for (const each of all) {
      const [execution] = each.executed;
      if (execution === undefined || each.receipts.length > 0) continue;
      this.#fail('EP-3', 'MISSING_ARTIFACT', execution.entry.at, 'a receipt', 'none', each.request);
    }
  }

  #eventsOf(kind: 'review_receipt' | 'review_blocked' | 'terminated'): { entry: Entry; fields: Fields }[] {
    return this.#entries.entries.flatMap((entry) =>
      entry.said.kind === 'event' && entry.said.event.kind === kind
        ? [{ entry, fields: entry.said.event.fields }]
        : [],
    );
  }

  #review(): void {
    for (const { entry, fields } of this.#eventsOf('terminated')) {
      const classification = fields.text('exit_classification') ?? fields.text('class');
      if (classification !== undefined && classification.toUpperCase() !== 'SUCCESS')
        this.#fail('EP-4', 'TOOL_FAILED', entry.at, 'SUCCESS', classification, fields.text('session_id'));
    }
    const receipts = this.#eventsOf('review_receipt');
    const blocked = this.#eventsOf('review_blocked');
    if (receipts.length === 0 && blocked.length === 0)
      this.#fail('EP-5', 'MISSING_ARTIFACT', this.#at, 'ReviewReceiptRecorded', 'not in the files');
    for (const { entry, fields } of receipts) {
      const about = fields.text('receipt_id') ?? fields.text('review_id');
      const bundle = fields.hash('artifact_bundle_hash');
      if (entry.row === undefined)
        this.#fail('EP-5', 'INVALID_BUNDLE', entry.at, 'a row of a ledger', 'an event outside of one', about);
      else if (bundle === undefined || !this.#entries.stored.has(bundle))
        this.#fail('EP-5', 'MISSING_ARTIFACT', entry.at, 'its artifact bundle', 'not in the files', about);
    }
    for (const { entry, fields } of blocked) {
      const about = fields.text('blocked_id');
      const stated = fields.text('reason_code') ?? fields.text('reason');
      const reason = stated === undefined ? undefined : nameOfReason(stated);
      if (reason === undefined) {
        const actual = stated ?? fields.count('reason_code') ?? 'none';
        this.#find('EP-7', 'REASON_UNKNOWN', 'invalid', entry.at, "a reason's name", actual, about);
      } else this.#fail('EP-5', reason, entry.at, 'a review', 'a blocked review', about);
    }
  }

  /** Fails closed: a failure without a blocked review was not noticed, and one with a review was passed over. */
  #closed(): void {
    const own = this.#findings.find(({ severity }) => severity === 'error')?.code;
    const broken = this.#found.find(({ severity }) => severity === 'error');
    const reason = own ?? (broken && (REASON_OF_RULE[broken.rule] ?? 'INVALID_BUNDLE'));
    if (reason === undefined) return;
    const blocked = this.#eventsOf('review_blocked');
    const [receipt] = this.#eventsOf('review_receipt');
    const expected = `a blocked review: ${reason}`;
    if (receipt !== undefined)
      this.#find('EP-7', 'NOT_FAILED_CLOSED', 'violation', receipt.entry.at, expected, 'a review');
    else if (blocked.length === 0)
      this.#find('EP-7', 'REVIEW_BLOCKED_MISSING', 'invalid', this.#at, expected, 'none');
  }

  #fail(rule: string, reason: string, at: HostPlace, expected: string, actual: string, about?: string): void {
    this.#find(rule, reason, 'invalid', at, expected, actual, about);
  }

  #find(
    rule: string,
    code: string,
    weight: Weight,
    at: HostPlace,
    expected: string,
    actual: string,
    about?: string,
  ): void {
    const details = { about, expected, actual: printable(actual, 80) };
    this.#findings.push(findingOf(rule, weight, code, at, details));
  }
}

/** `AdapterMisconfigured`, `REVIEW_BLOCKED_REASON_ADAPTER_MISCONFIGURED` and the like are one name. */
function nameOfReason(text: string): string | undefined {
  const plain = text
    .replace(/^.*REASON(?:_CODE)?_/, '')
    .toLowerCase()
    .replace(/[^a-z0-9]/g, '');
  return BLOCKED_REASONS.find((reason) => reason.toLowerCase().replaceAll('_', '') === plain);
}
