/** `northroot prices`: price files, made of price lists and asked what a call costs. */

import { type Command, Option } from 'commander';
import { printable } from '../../base/bytes/printable.js';
import { defined } from '../../base/defined.js';
import { formatDigest } from '../../base/value/digest.js';
import { formatQuantity } from '../../base/value/quantity.js';
import type { PricedModel, UnitPrice } from '../../format/schema/generated/types.js';
import { costOf } from '../../gate/price/cost.js';
import { importPrices, MAX_PRICE_LIST_BYTES, type PriceListKind } from '../../gate/price/import-prices.js';
import type { LeftOutPrices } from '../../gate/price/imported.js';
import { MAX_PRICES_BYTES, parsePrices, type Prices } from '../../gate/price/price-file.js';
import { MAX_COUNT } from '../../gate/price/usage.js';
import { writeNewFile } from '../../log/fs/file-system.js';
import { usageError } from '../command-error.js';
import type { Context, ExitStatus, Run } from '../context.js';
import { readInput } from '../input.js';
import { jsonText } from '../json-text.js';
import { instant, repeatable, textOrJson, wholeNumber } from '../options.js';

type Format = 'text' | 'json';

export function addPrices(program: Command, run: Run): void {
  const prices = program
    .command('prices')
    .summary('make a price file, or ask what a call costs')
    .description(
      'Makes a price file of a price list, shows the prices of a model, or says what a call costs.',
    );
  prices
    .command('import')
    .summary('make a price file')
    .description(
      "Makes a price file of LiteLLM's model_prices_and_context_window.json or of the data file of genai-prices. Every number is taken from its digits. Models and prices that cannot be taken over exactly are left out, and counted. The digest of the file is the pricing_snapshot_digest of what is priced by it.",
    )
    .argument('<list>', 'the price list, or - for standard input')
    .addOption(
      new Option('--from <name>', 'what it is (default: as it looks)').choices(['litellm', 'genai-prices']),
    )
    .option(
      '--as-of <time>',
      'when these were the prices: 2026-03-01, or a time with Z or an offset (default: now)',
      instant,
    )
    .option('--out <file>', 'the file to create (default: standard output)')
    .addOption(repeatable('--model <pattern>', 'only this model, or with a final * all that begin so'))
    .addOption(textOrJson('how to say what was made, with --out'))
    .action((path: string, options: ImportOptions) => run((context) => importList(context, path, options)));
  prices
    .command('show')
    .summary("show a model's prices")
    .description('Shows what the price file says of a model, of all times.')
    .argument('<prices>', 'the price file, or - for standard input')
    .argument('<model>', 'its name')
    .option('--provider <name>', 'whose model, where several providers have it')
    .addOption(textOrJson())
    .action((path: string, model: string, options: ShowOptions) =>
      run((context) => show(context, path, model, options)),
    );
  const cost = prices
    .command('cost')
    .summary('say what a call costs')
    .description(
      'Prints the exact price of a call in usd. The input is all input, cached tokens included; the output is all output, reasoning included.',
    )
    .argument('<prices>', 'the price file, or - for standard input')
    .argument('<model>', 'its name')
    .option('--provider <name>', 'whose model, where several providers have it')
    .option('--at <time>', 'when it was called (default: now)', instant)
    .requiredOption('--input <tokens>', 'all input tokens', tokens)
    .requiredOption('--output <tokens>', 'all output tokens', tokens);
  for (const [name, what] of Object.entries(PARTS)) cost.option(`--${name} <n>`, what, tokens);
  cost
    .addOption(textOrJson())
    .action((path: string, model: string, options: CostOptions) =>
      run((context) => tellCost(context, path, model, options)),
    );
}

const tokens = wholeNumber(0, MAX_COUNT);

const PARTS = {
  'cache-read': 'input tokens read from a cache',
  'cache-write': 'input tokens written to a cache',
  'cache-write-1h': 'input tokens written to a cache that keeps them for an hour',
  'input-audio': 'input tokens of audio, not from a cache',
  reasoning: 'output tokens of reasoning',
  'output-audio': 'output tokens of audio',
  'web-searches': 'searches of the web that the provider made',
} as const;

interface ImportOptions {
  readonly from?: PriceListKind;
  readonly asOf?: string;
  readonly out?: string;
  readonly model?: readonly string[];
  readonly format: Format;
}

async function importList(
  context: Context,
  path: string,
  { from, asOf = new Date().toISOString(), out, model: models, format }: ImportOptions,
): Promise<ExitStatus> {
  const { terminal } = context;
  if (format === 'json' && out === undefined)
    throw usageError('--format json needs --out, as standard output has the price file');
  const list = await readInput(path, context, MAX_PRICE_LIST_BYTES);
  const { bytes, prices, leftOut } = importPrices(list, { asOf, ...defined({ from, models }) });
  if (out === undefined) await terminal.write(bytes);
  else await writeNewFile(out, bytes, 0o644);
  const { digest, source, size } = prices;
  if (format === 'json') {
    const made = {
      file: out,
      digest: formatDigest(digest),
      as_of: prices.asOf,
      source: source.name,
      models: size,
    };
    await terminal.write(`${jsonText({ ...made, left_out: leftOut })}\n`);
    return 0;
  }
  for (const line of describeLeftOut(leftOut)) terminal.say(line);
  const where = out === undefined ? '' : `wrote ${printable(out)}: `;
  terminal.say(`${where}${counted(size, 'model')} of ${source.name}, ${formatDigest(digest)}`);
  return 0;
}

const MAX_REASONS = 3;

function describeLeftOut(leftOut: readonly LeftOutPrices[]): string[] {
  return (['model', 'price', 'pattern'] as const).flatMap((what) => {
    const all = leftOut.filter((each) => each.what === what).sort((a, b) => b.count - a.count);
    if (all.length === 0) return [];
    const reasons = all.slice(0, MAX_REASONS).map(({ reason, count }) => `${reason} ${count}`);
    const more = all.length > MAX_REASONS ? ', and others' : '';
    const sum = all.reduce((before, { count }) => before + count, 0);
    return [`left out ${counted(sum, what)}: ${reasons.join(', ')}${more}`];
  });
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`;
}

interface ShowOptions {
  readonly provider?: string;
  readonly format: Format;
}

async function readPrices(path: string, context: Context): Promise<Prices> {
  return parsePrices(await readInput(path, context, MAX_PRICES_BYTES));
}

async function show(
  context: Context,
  path: string,
  model: string,
  { provider, format }: ShowOptions,
): Promise<ExitStatus> {
  const prices = await readPrices(path, context);
  const entry = refuseMisuse(() => prices.entry({ model, ...defined({ provider }) }));
  await context.terminal.write(
    format === 'json'
      ? `${jsonText({ prices: formatDigest(prices.digest), as_of: prices.asOf, ...entry }, 2)}\n`
      : render(prices, entry),
  );
  return 0;
}

function render(
  { digest, asOf, source }: Prices,
  { model, provider, periods, ...names }: PricedModel,
): string {
  const { aliases = [], prefixes = [] } = names;
  const lines = [
    `${model} of ${provider}`,
    ...(aliases.length === 0 ? [] : [`also: ${aliases.join(', ')}`]),
    ...(prefixes.length === 0 ? [] : [`and what begins with: ${prefixes.join(', ')}`]),
    `by ${source.name} as of ${asOf}, ${formatDigest(digest)}`,
  ];
  for (const { from, prices } of periods) {
    lines.push('', from === undefined ? 'usd for one:' : `usd for one, from ${from}:`);
    const width = Math.max(...prices.map(({ unit }) => unit.length));
    for (const price of prices) lines.push(`  ${price.unit.padEnd(width)}  ${describePrice(price)}`);
  }
  return lines.map((line) => `${line}\n`).join('');
}

function describePrice({ usd, tiers = [] }: UnitPrice): string {
  return [usd, ...tiers.map((tier) => `${tier.usd} above ${tier.above} input tokens`)].join(', ');
}

interface CostOptions extends ShowOptions {
  readonly at?: string;
  readonly input: number;
  readonly output: number;
  readonly cacheRead?: number;
  readonly cacheWrite?: number;
  readonly cacheWrite1h?: number;
  readonly inputAudio?: number;
  readonly reasoning?: number;
  readonly outputAudio?: number;
  readonly webSearches?: number;
}

async function tellCost(
  context: Context,
  path: string,
  model: string,
  { provider, at, format, ...usage }: CostOptions,
): Promise<ExitStatus> {
  const prices = await readPrices(path, context);
  const price = refuseMisuse(() => prices.find({ model, ...defined({ provider, at }) }));
  const usd = formatQuantity(refuseMisuse(() => costOf(price, usage)));
  await context.terminal.write(
    format === 'json'
      ? `${jsonText({ model: price.model, provider: price.provider, usd, prices: formatDigest(prices.digest) })}\n`
      : `${usd} usd\n`,
  );
  return 0;
}

/** Names that are none, and parts that are more than their whole. */
function refuseMisuse<T>(run: () => T): T {
  try {
    return run();
  } catch (error) {
    if (error instanceof RangeError) throw usageError(error.message.replace(/^\w+: /, ''));
    throw error;
  }
}
