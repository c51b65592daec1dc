/** The commands on single values: `canonicalize`, `digest`, `event-id`. */

import { Option, type Command } from 'commander';
import { NorthrootError } from '../../error.js';
import { identifyEvent } from '../../event/identity.js';
import { EventError, validateEvent } from '../../event/validate.js';
import { canonicalBytes } from '../../json/canonicalize.js';
import { ingestJson, type Ingested, type NumberMode } from '../../json/ingest.js';
import type { JsonValue } from '../../json/value.js';
import { formatDigest, sha256Digest } from '../../value/digest.js';
import type { Context, ExitStatus } from '../context.js';
import { readInput, STDIN } from '../input.js';

type Run = (action: (context: Context) => Promise<ExitStatus>) => Promise<void>;

export function addCanonicalize(program: Command, run: Run): void {
  program
    .command('canonicalize')
    .summary('write JSON as RFC 8785 canonical bytes')
    .description(
      'Writes the canonical bytes of a JSON text, without a final newline, and says on standard error what was found on the way (the hygiene report). Ambiguous and invalid texts are refused.',
    )
    .argument('[file]', 'the JSON text; - or none for standard input', STDIN)
    .addOption(
      new Option(
        '--numbers <mode>',
        'exact: refuse numbers that lose digits; double: round them, as RFC 8785 does; quantity: turn them into exact quantities',
      )
        .choices(['exact', 'double', 'quantity'])
        .default('double'),
    )
    .action((file: string, options: { numbers: NumberMode }) =>
      run(async ({ terminal }) => {
        const ingested = ingestJson(await readInput(file), { numbers: options.numbers });
        terminal.say(JSON.stringify(ingested.report));
        await terminal.write(canonicalBytes(valueOf(ingested)));
        if (process.stdout.isTTY) await terminal.write('\n');
        return 0;
      }),
    );
}

export function addDigest(program: Command, run: Run): void {
  program
    .command('digest')
    .summary('write the SHA-256 digest of bytes or of JSON')
    .description(
      'Writes the digest of a file as sha-256:…; with --json that of its canonical JSON, as intents and parameters are digested.',
    )
    .argument('[file]', 'the content; - or none for standard input', STDIN)
    .option('--json', 'the content is JSON: digest its canonical bytes')
    .option('--object', 'write the digest as events have it, {"alg","b64"}')
    .action((file: string, options: { json?: boolean; object?: boolean }) =>
      run(async ({ terminal }) => {
        const bytes = await readInput(file);
        const digest = sha256Digest(options.json ? canonicalBytes(valueOf(ingestJson(bytes))) : bytes);
        await terminal.write(`${options.object ? JSON.stringify(digest) : formatDigest(digest)}\n`);
        return 0;
      }),
    );
}

export function addEventId(program: Command, run: Run): void {
  program
    .command('event-id')
    .summary("write the id that an event's content has")
    .description(
      'Reads one event, or a draft of one with its whole envelope, and writes its event_id. An event that carries its ids is checked.',
    )
    .argument('[file]', 'the event; - or none for standard input', STDIN)
    .action((file: string) =>
      run(async ({ terminal }) => {
        const event = valueOf(ingestJson(await readInput(file)));
        if (typeof event !== 'object' || event === null || Array.isArray(event)) {
          throw new NorthrootError('SCHEMA', 'expected an event object', { exitStatus: 1 });
        }
        if (Object.hasOwn(event, 'event_id') || Object.hasOwn(event, 'payload_digest')) {
          const [first, ...rest] = validateEvent(event);
          if (first !== undefined) throw new EventError([first, ...rest]);
        }
        await terminal.write(`sha-256:${identifyEvent(event).eventId}\n`);
        return 0;
      }),
    );
}

function valueOf({ value, report, issues }: Ingested): JsonValue {
  if (value !== undefined) return value;
  const issue = issues.find(({ code }) => code !== 'NUMBER_COERCED');
  const place = issue?.pointer ? ` (${issue.pointer})` : '';
  throw new NorthrootError(
    issue?.code ?? 'NOT_JSON',
    `the JSON text is ${report.status} at byte ${issue?.offset}${place}`,
    {
      exitStatus: 1,
      hint: 'the text has no single meaning that could be hashed; mend it where it is made',
    },
  );
}
