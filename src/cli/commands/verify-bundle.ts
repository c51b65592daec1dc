/** What `northroot verify` does with a bundle. */

import {
  renderBundleResult,
  verifyBundle,
  type Anchor,
  type TrustPolicy,
  type WitnessPolicy,
} from '../../index.js';
import { CommandError } from '../command-error.js';
import type { Context, ExitStatus } from '../context.js';
import { jsonText } from '../json-text.js';

/** The options of `verify`, as far as they are about bundles, or must not be given with one. */
interface BundleVerifyOptions {
  readonly trust: TrustPolicy | undefined;
  readonly witnessPolicy: WitnessPolicy | undefined;
  readonly checkpoints: readonly Anchor[];
  readonly now?: string;
  readonly format: string;
  readonly failOn: 'invalid' | 'violation' | 'warning';
  readonly predecessor?: string;
  readonly since?: string;
  readonly until?: string;
  readonly principal?: string;
  readonly grant?: string;
  readonly state?: string;
  readonly baseline?: string;
  readonly sarifAnchor?: string;
  readonly output: readonly string[];
}

/** Options that are of ledgers alone. */
const OF_LEDGERS = [
  'predecessor',
  'since',
  'until',
  'principal',
  'grant',
  'state',
  'baseline',
  'sarifAnchor',
] as const;

export async function verifyBundleFile(
  { terminal, signal }: Context,
  path: string,
  bytes: Uint8Array,
  options: BundleVerifyOptions,
): Promise<ExitStatus> {
  const wrong = OF_LEDGERS.find((name) => options[name] !== undefined);
  const flag =
    wrong === 'sarifAnchor' ? 'sarif-anchor' : (wrong ?? (options.output.length > 0 ? 'output' : undefined));
  if (flag !== undefined) throw new CommandError('USAGE', `--${flag} is for ledgers, and this is a bundle`);
  const { trust, witnessPolicy, checkpoints, now, format, failOn } = options;
  if (format !== 'text' && format !== 'json') {
    throw new CommandError('USAGE', 'the result on a bundle is written as text or json');
  }
  const result = await verifyBundle(bytes, { name: path, trust, witnessPolicy, checkpoints, now, signal });
  const text =
    format === 'json' ? `${jsonText(result, 2)}\n` : renderBundleResult(result, path, terminal.paint);
  await terminal.write(text);
  const { verdict, exit_status: status, findings } = result;
  if (failOn === 'invalid' && verdict === 'violation') return 0;
  const hasWarnings = findings.some(({ severity }) => severity === 'warning');
  return failOn === 'warning' && verdict === 'ok' && hasWarnings ? 3 : status;
}
