/**
 * OpenClaw: recordings of plugin hooks and agent events, transcripts of sessions, what `openclaw agent --json` and `openclaw audit --json`
 * print, decision receipts. README.md says what becomes of each field.
 */

import { addTo, jcsDigest, numberAt, objectAt, textAt, timeOf, valueAt } from '../shared/values.js';
import { finding, OPENCLAW_RULES } from './rules.js';
import { decodeSourceJson } from '../../base/json/source-json.js';
import { compareTimestamps } from '../../base/value/timestamp.js';
import type { Claim, Host, HostFile, HostOptions, HostReading } from '../shared/host.js';
import { principalOf } from '../shared/names.js';
import { checkReadOptions, ReadingBuilder } from '../shared/reading.js';
import { AgentEvents } from './agent-events.js';
import { Audit } from './audit.js';
import { Calls } from './calls.js';
import { Context, factsOf, type Profile, SYSTEM } from './context.js';
import { Deliveries } from './deliveries.js';
import { entriesOf, type Entry, type EntryKind, looksLikeOpenClaw } from './entries.js';
import { Hooks } from './hooks.js';
import { ModelCalls } from './model-calls.js';
import { Transcript } from './transcript.js';
import { authorityOf, inFileOrder, inTimeOrder } from '../shared/order.js';

const AIDS = {
  profile:
    'how to read: JSON such as {"nonzero_exit":"success"}; a command that ended with another status than 0 is a failure without it',
} as const;

/** The host OpenClaw: receipts, sessions and audit logs. */
export const openclaw: Host = {
  name: SYSTEM,
  title: 'OpenClaw',
  rules: OPENCLAW_RULES,
  aids: AIDS,
  recognises: looksLikeOpenClaw,
  read,
};

/** In the order of precedence: hooks say what was decided and what ran, the others less. */
const ORDER: readonly EntryKind[] = [
  'hook',
  'agent_event',
  'receipt',
  'display',
  'transcript',
  'audit',
  'cli',
];

function read(files: readonly HostFile[], options: HostOptions = {}): HostReading {
  checkReadOptions('openclaw.read', options, AIDS);
  const builder = new ReadingBuilder(options);
  const context = new Context(builder, readProfile(options, builder));
  const entries = new Map<EntryKind, Entry[]>();
  for (const file of files) for (const entry of entriesOf(file, builder)) addTo(entries, entry.kind, entry);
  const calls = new Calls(context);
  const events = new AgentEvents(context, calls);
  const models = new ModelCalls(context);
  const deliveries = new Deliveries(context);
  const audit = new Audit(context, calls);
  const hooks = new Hooks({ context, calls, events, models, deliveries, audit });
  const transcripts = new Map<string, Transcript>();
  const begun = new Set<string>();
  const known = new Map<string, string>();
  for (const { value } of inTime(entries.get('hook') ?? []))
    context.foresee(valueAt(value, 'ctx'), valueAt(value, 'event'));
  for (const kind of ORDER) {
    for (const entry of inTime(entries.get(kind) ?? [])) {
      if (kind === 'hook') hooks.read(entry);
      else if (kind === 'agent_event') {
        context.learn(entry.value);
        events.read(entry, entry.value, undefined, !begun.has(entry.at.file));
        begun.add(entry.at.file);
      } else if (kind === 'transcript') {
        let transcript = transcripts.get(entry.at.file);
        // A transcript begins with its session's header.
        if (transcript === undefined || textAt(entry.value, 'type') === 'session') {
          transcript?.finish();
          transcripts.set(entry.at.file, (transcript = new Transcript(context, calls, models, known)));
        }
        transcript.read(entry);
      } else if (kind === 'audit') audit.read(entry);
      else if (kind === 'cli') readCli(entry, context, models);
      else audit.receipt(entry);
    }
    if (kind === 'agent_event') events.finish();
  }
  for (const transcript of transcripts.values()) transcript.finish();
  audit.finish();
  models.finish();
  calls.finish();
  for (const kind of ['pipeline', 'unknown'] as const)
    for (const { at, type } of entries.get(kind) ?? [])
      builder.drop(at, type, kind === 'pipeline' ? 'PIPELINE_EVENT' : 'UNKNOWN_ITEM');
  const reading = inFileOrder(builder.finish(), files, true);
  return files.length < 2 ? reading : { ...reading, claims: inTimeOrder(reading.claims, afterAuthority()) };
}

/** What `openclaw agent --json` printed: the sum of a run, and how it ended. */
function readCli(entry: Entry, context: Context, models: ModelCalls): void {
  const { value } = entry;
  const meta = objectAt(value, 'meta') ?? objectAt(value, 'result', 'meta');
  const agentMeta = objectAt(meta, 'agentMeta');
  if (agentMeta === undefined) {
    context.builder.drop(entry.at, entry.type, 'UNKNOWN_ITEM');
    return;
  }
  const scope = textAt(agentMeta, 'sessionId') ?? '~';
  // It states no time, which what only repeats a sum does not need.
  if (models.cli(entry, undefined, scope, agentMeta) === 'compared') {
    context.fate(entry, 'repeated', 'SAME_RUN');
    return;
  }
  const base = context.base(entry, timeOf(numberAt(meta, 'endedAt'), 'ms'), principalOf('agent', SYSTEM));
  if (base === undefined) return;
  if (models.cli(entry, base, scope, agentMeta) === 'claimed') {
    context.fate(entry, 'mapped');
    return;
  }
  const facts = factsOf({ session: scope, digest: jcsDigest(value) });
  context.evidence(
    entry,
    base,
    `cli:${scope}/${jcsDigest(value)?.b64.slice(0, 22) ?? '~'}`,
    'agent_cli_output',
    facts,
  );
}

function readProfile({ aids = {} }: HostOptions, builder: ReadingBuilder): Profile {
  const file = aids['profile'];
  if (file === undefined) return { nonzeroExit: 'failure' };
  const decoded = decodeSourceJson(file.bytes);
  const stated = decoded.ok ? textAt(decoded.value, 'nonzero_exit') : undefined;
  if (stated === 'success' || stated === 'failure') return { nonzeroExit: stated };
  builder.find(
    finding(
      'PROFILE_INVALID',
      { file: file.name },
      { actual: decoded.ok ? 'another value' : decoded.fault.code },
    ),
  );
  return { nonzeroExit: 'failure' };
}

/** The files in the order of the times that they begin at, however they were given; each as it is. */
function inTime(entries: readonly Entry[]): readonly Entry[] {
  const files = new Map<string, { readonly entries: Entry[]; first: number }>();
  for (const entry of entries) {
    const { value } = entry;
    const ms = Number(numberAt(value, 'ts') ?? Date.parse(textAt(value, 'timestamp') ?? ''));
    const known = files.get(entry.at.file);
    if (known === undefined) files.set(entry.at.file, { entries: [entry], first: ms });
    else {
      known.entries.push(entry);
      if (Number.isNaN(known.first)) known.first = ms;
    }
  }
  if (files.size < 2) return entries;
  const list = [...files.values()];
  // Those that state no time stay where they are.
  if (list.every(({ first }) => !Number.isNaN(first))) list.sort((a, b) => a.first - b.first);
  return list.flatMap((file) => file.entries);
}

/** An execution counts from the time of what authorizes it, where its own is earlier. */
function afterAuthority(): (claim: Claim) => string {
  const times = new Map<string, string>();
  return (claim) => {
    const earliest = times.get(authorityOf(claim) ?? '');
    const isLater = earliest !== undefined && compareTimestamps(earliest, claim.occurredAt) > 0;
    const time = isLater ? earliest : claim.occurredAt;
    times.set(claim.id, time);
    return time;
  };
}
