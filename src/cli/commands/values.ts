/** The commands on single values: `canonicalize`, `digest`, `event-id`. */

import { createHash } from 'node:crypto';
import { type Command, Option } from 'commander';
import { canonicalBytes } from '../../base/json/canonicalize.js';
import { type Ingested, ingestJson, type NumberMode } from '../../base/json/ingest.js';
import type { JsonValue } from '../../base/json/value.js';
import { type Digest, digestFromBase64url, formatDigest, sha256Digest } from '../../base/value/digest.js';
import { buildEvent } from '../../format/event/build.js';
import { assertEvent } from '../../format/event/validate.js';
import { CommandError } from '../command-error.js';
import type { Context, Run } from '../context.js';
import { ingestError } from '../ingest-error.js';
import { openInput, readInput, STDIN } from '../input.js';

export function addCanonicalize(program: Command, run: Run): void {
  program
    .command('canonicalize')
    .summary('write JSON as RFC 8785 canonical bytes')
    .description(
      'Writes the canonical bytes of a JSON text, without a final newline, and a report on what was found in it (the hygiene report) to standard error. Ambiguous and invalid texts are refused.',
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
      run(async (context) => {
        const { terminal } = context;
        const ingested = ingestJson(await readInput(file, context), { numbers: options.numbers });
        terminal.say(JSON.stringify(ingested.report));
        await terminal.write(canonicalBytes(valueOf(ingested)));
        if (terminal.isShown) await terminal.write('\n');
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
      run(async (context) => {
        const digest = options.json
          ? sha256Digest(canonicalBytes(valueOf(ingestJson(await readInput(file, context)), NOT_FOR_DIGEST)))
          : await digestOf(file, context);
        await context.terminal.write(`${options.object ? JSON.stringify(digest) : formatDigest(digest)}\n`);
        return 0;
      }),
    );
}

export function addEventId(program: Command, run: Run): void {
  program
    .command('event-id')
    .summary('write the id of an event')
    .description(
      'Reads one event or draft, and writes its event_id. The event and the ids in it are checked; a draft must have its time and principal.',
    )
    .argument('[file]', 'the event; - or none for standard input', STDIN)
    .action((file: string) =>
      run(async (context) => {
        const event = valueOf(ingestJson(await readInput(file, context)));
        if (typeof event !== 'object' || event === null || Array.isArray(event))
          throw new CommandError('SCHEMA', 'expected an event object');
        if (Object.hasOwn(event, 'event_id') || Object.hasOwn(event, 'payload_digest')) assertEvent(event);
        await context.terminal.write(`${formatDigest(buildEvent(event).event_id)}\n`);
        return 0;
      }),
    );
}

function valueOf(ingested: Ingested, hint = 'correct the text where it is made'): JsonValue {
  if (ingested.value !== undefined) return ingested.value;
  throw ingestError(ingested, hint);
}

const NOT_FOR_DIGEST = 'correct the text, or leave --json out to digest its bytes';

async function digestOf(file: string, context: Context): Promise<Digest> {
  const hash = createHash('sha256');
  for await (const chunk of openInput(file, context)) hash.update(chunk);
  return digestFromBase64url(hash.digest('base64url'));
}
