/** `northroot log`: a ledger's records one a line, filtered. */

import { type Command, Option } from 'commander';
import { printable } from '../../base/bytes/printable.js';
import { defined } from '../../base/defined.js';
import type { JsonObject, JsonValue } from '../../base/json/value.js';
import { shortenDigestText } from '../../base/value/digest.js';
import { isKnownEventType } from '../../format/schema/check.js';
import { followLedger } from '../../log/fs/follow.js';
import { type ReadRecord, readRecords } from '../../log/read/read-records.js';
import { digest, list, object, quantityText, string } from '../../out/text/json.js';
import { count, inFlightText } from '../../out/text/words.js';
import { matchesSelection } from '../../rules/selection.js';
import { usageError } from '../command-error.js';
import type { Context, Outcome, Run } from '../context.js';
import { openLedgerInput, readTrustPolicy, STDIN } from '../input.js';
import { assertPatterns, assertSpan, pastInstant, SINCE, wholeNumber } from '../options.js';
import { type IndexChoice, INDEX, NO_INDEX, viewOf } from '../view.js';

interface LogOptions extends IndexChoice {
  readonly type?: string;
  readonly principal?: string;
  readonly tool?: string;
  readonly since?: string;
  readonly until?: string;
  readonly verdict?: string;
  readonly trust?: string;
  readonly limit?: number;
  readonly last?: number;
  readonly follow?: boolean;
  readonly format: 'text' | 'ndjson';
}

const VERDICTS = ['ok', 'denied', 'violation', 'invalid'];

export function addLog(program: Command, run: Run): void {
  program
    .command('log')
    .summary('list records')
    .description(
      'Lists the records of a ledger in order, all of them or those that match. With --follow, continues with new records. Nothing is verified unless --verdict or --trust is given.',
    )
    .argument('<ledger>', 'the file or folder; - for standard input')
    .option('--type <type>', 'only events of this type')
    .option('--principal <pattern>', 'only events of this principal; may end in *')
    .option('--tool <pattern>', 'only events about this tool; may end in *')
    .option('--since <time>', SINCE, pastInstant)
    .option('--until <time>', 'only events before this time', pastInstant)
    .addOption(
      new Option('--verdict <verdict>', 'verify, and list only records with this verdict').choices(VERDICTS),
    )
    .option('--trust <file>', 'verify with this trust policy')
    .option('-n, --last <n>', 'only the last n of them', wholeNumber(0))
    .option('--limit <n>', 'only the first n of them', wholeNumber(1))
    .option('-f, --follow', 'keep listing new records, until Ctrl-C')
    .addOption(
      new Option('--format <format>', 'text, or ndjson: the bytes of the records')
        .choices(['text', 'ndjson'])
        .default('text'),
    )
    .option(...INDEX)
    .option(...NO_INDEX)
    .action((ledger: string, options: LogOptions) => run((context) => log(context, ledger, options)));
}

async function log(context: Context, ledger: string, options: LogOptions): Promise<Outcome> {
  const { terminal, signal } = context;
  const { last, limit, follow = false } = options;
  if (last !== undefined && limit !== undefined)
    throw usageError('--last and --limit exclude each other: the last, or the first');
  const matches = matcher(options);
  const trust = await readTrustPolicy(options.trust);
  const verifies = options.verdict !== undefined || trust !== undefined;
  const write = (record: ReadRecord): Promise<void> =>
    terminal.write(
      options.format === 'text' ? `${renderLine(record)}\n` : Buffer.concat([record.bytes, NEWLINE]),
    );
  if (last !== undefined && last > 0 && !follow && isPlain(options)) {
    const records = await viewOf(context, ledger, undefined, options).listLast(last);
    for (const record of records ?? []) await write(record);
    if (records !== undefined) return 0;
  }
  /** The last of those that were there, until it is known which those are. */
  let held: ReadRecord[] | undefined = last === undefined ? undefined : [];
  let released: readonly ReadRecord[] = [];
  const release = (): void => {
    released = held ?? [];
    held = undefined;
  };
  const flush = async (): Promise<void> => {
    for (const record of released) await write(record);
    released = [];
  };
  // What is held is written as soon as it is known that nothing else is there.
  let flushed = Promise.resolve();
  let unread = 0;
  const tellUnread = (): void => {
    const more = unread - MAX_UNREAD_NAMED;
    unread = 0;
    if (more <= 0) return;
    terminal.say(
      `warning: ${more} more ${more === 1 ? 'line is not a record' : 'lines are not records'}; run northroot verify`,
    );
  };
  const onCaughtUp = (): void => {
    tellUnread();
    release();
    flushed = flush();
  };
  const source =
    follow && ledger !== STDIN
      ? await followLedger(ledger, { signal, onCaughtUp })
      : await openLedgerInput(ledger, context);
  const records = readRecords(source, {
    ...(verifies ? { verify: trust === undefined ? {} : { trust } } : {}),
    onUnread: ({ file, line }) => {
      if (signal.aborted) return;
      unread += 1;
      if (unread > MAX_UNREAD_NAMED) return;
      terminal.say(`warning: ${printable(file)}:${line} is not a record; run northroot verify`);
    },
  });
  let seen = 0;
  let listed = 0;
  for await (const record of records) {
    if (signal.aborted || terminal.closed) break;
    seen += 1;
    if (!matches(record)) continue;
    listed += 1;
    await flushed;
    if (held === undefined) await write(record);
    else if (last !== 0) {
      held.push(record);
      if (held.length > (last ?? 0)) held.shift();
    }
    if (listed === limit) break;
  }
  tellUnread();
  if (signal.aborted) return follow ? { stopped: 0 } : 0;
  release();
  await flush();
  if (listed === 0 && seen > 0 && !terminal.closed)
    terminal.say(`0 of ${seen} ${seen === 1 ? 'record matches' : 'records match'}`);
  const { type } = options;
  if (listed === 0 && type !== undefined && !isKnownEventType(type) && !type.startsWith('x.'))
    terminal.say(
      `hint: northroot has no type ${printable(type)}; northroot schema lists its types, others begin with x.`,
    );
  return 0;
}

/** Whether every record is listed, and none is judged. */
function isPlain({ type, principal, tool, since, until, verdict, trust }: LogOptions): boolean {
  return [type, principal, tool, since, until, verdict, trust].every((option) => option === undefined);
}

/** Of so many lines that are not records it is said where they are; the others are counted. */
const MAX_UNREAD_NAMED = 10;
const NEWLINE = Buffer.from('\n');

function matcher(options: LogOptions): (record: ReadRecord) => boolean {
  const { type, principal, tool, since, until, verdict } = options;
  assertSpan(since, until);
  assertPatterns({ principal, tool });
  return ({ event, verdict: own }) => {
    const subject = {
      occurredAt: string(event['occurred_at']),
      principalId: string(event['principal_id']),
      toolName: toolOf(event),
      eventId: undefined,
      grantIds: [],
    };
    if (type !== undefined && event['event_type'] !== type) return false;
    if (verdict !== undefined && own !== verdict) return false;
    return matchesSelection(subject, defined({ principal, tool, since, until }));
  };
}

/** That of `x.northroot.start`, which stands before each execution. */
const TYPE_WIDTH = 17;

function renderLine({ seq, event, eventId, verdict }: ReadRecord): string {
  const columns = [
    String(seq).padStart(6),
    string(event['occurred_at']).padEnd(24),
    (verdict ?? '').padEnd(verdict === undefined ? 0 : 9),
    string(event['event_type']).padEnd(TYPE_WIDTH),
    shortenDigestText(eventId, 10),
    string(event['principal_id']).padEnd(20),
    summarise(event),
  ];
  return printable(columns.filter((column) => column !== '').join('  '), 400).trimEnd();
}

/** What an event is about, in a few words. */
function summarise(event: JsonObject): string {
  const tool = toolOf(event) ?? '';
  switch (event['event_type']) {
    case 'authorization':
      return `${string(event['decision'])} ${string(object(event['authorization'])['kind'])} ${tool} ${string(event['decision_code'])}`.replace(
        / +/g,
        ' ',
      );
    case 'execution':
      return `${tool} ${string(event['outcome'])} ${amounts(event['meter_used'])}`.trim();
    case 'x.northroot.start':
      return tool;
    case 'approval': {
      const { decision, meter_limit: limit, request_event_id: request } = event;
      const most = amounts(limit);
      const asked = request === undefined ? '' : `, asked for by ${shortDigest(request)}`;
      return `${string(decision)} ${tool}${most === '' ? '' : ` at most ${most}`}${asked}`;
    }
    case 'revocation': {
      const { effect, in_flight: inFlight, grant_event_id: grant, reason } = event;
      return `${string(effect)} grant ${shortDigest(grant)}${inFlightText(string(inFlight))}: ${string(reason)}`;
    }
    case 'adjustment': {
      const { direction, meters, grant_event_id: grant, reason } = event;
      return `${string(direction)} ${amounts(meters)} under grant ${shortDigest(grant)}: ${string(reason)}`;
    }
    case 'checkpoint':
      return `of ${count(Number(event['tree_size']), 'record')}`;
    case 'attestation':
      return `of checkpoint ${shortDigest(event['checkpoint_event_id'])}`;
    case 'genesis':
      return string(event['origin']);
    case 'key':
      return summariseKey(string(event['action']), object(event['key']));
    default:
      return '';
  }
}

function shortDigest(value: JsonValue | undefined): string {
  return shortenDigestText(digest(value), 10);
}

/** What becomes of a key: its name, its roles, and in whose name it signs. */
function summariseKey(action: string, key: JsonObject): string {
  const { keyid, name, roles, principals } = key;
  const joined = (values: JsonValue | undefined): string => list(values).map(string).join(',');
  const named = name === undefined ? '' : ` (${string(name)})`;
  return `${action} ${string(keyid).slice(0, 12)}${named} ${joined(roles)} for ${joined(principals)}`;
}

function amounts(vector: JsonValue | undefined): string {
  return list(vector)
    .map((meter) => `${string(object(meter)['unit'])}=${quantityText(object(meter)['amount'])}`)
    .join(' ');
}

function toolOf(event: JsonObject): string | undefined {
  const name = event['tool_name'] ?? object(object(event['authorization'])['action'])['tool_name'];
  return typeof name === 'string' ? name : undefined;
}
