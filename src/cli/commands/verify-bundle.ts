/** What `northroot verify` does with a bundle. */

import type { BundleResult, TrustPolicy } from '../../format/schema/generated/types.js';
import { renderBundleResult } from '../../out/text/bundle-result.js';
import { verifyBundle } from '../../proof/bundle/verify-bundle.js';
import type { WitnessPolicy } from '../../rules/trust/witness-policy.js';
import type { Anchor } from '../../rules/verify/anchors.js';
import { usageError } from '../command-error.js';
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
  readonly new?: boolean;
  readonly maxFindings: number;
  readonly baseline?: string;
  readonly sarifAnchor?: string;
  readonly output: readonly unknown[];
}

/** Options that are of ledgers alone. */
const OF_LEDGERS = [
  'predecessor',
  'since',
  'until',
  'principal',
  'grant',
  'state',
  'new',
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
  if (flag !== undefined) throw usageError(`--${flag} is for ledgers, and this is a bundle`);
  const { trust, witnessPolicy, checkpoints, now, format, failOn, maxFindings } = options;
  if (format !== 'text' && format !== 'json') {
    throw usageError(
      `the result on a bundle is written as text or json, not as ${format}`,
      'northroot verify BUNDLE --format json > FILE, and go by the exit status',
    );
  }
  const found = await verifyBundle(bytes, { name: path, trust, witnessPolicy, checkpoints, now, signal });
  const result = cut(found, maxFindings);
  const text =
    format === 'json' ? `${jsonText(result, 2)}\n` : renderBundleResult(result, path, terminal.paint);
  await terminal.write(text);
  const { verdict, exit_status: status, findings } = found;
  if (failOn === 'invalid' && verdict === 'violation') return 0;
  const hasWarnings = findings.some(({ severity }) => severity === 'warning');
  return failOn === 'warning' && verdict === 'ok' && hasWarnings ? 3 : status;
}

/** The result with at most so many findings listed. */
function cut(result: BundleResult, most: number): BundleResult {
  const { report, findings } = result;
  return {
    ...result,
    findings: findings.slice(0, most),
    ...(report === undefined
      ? {}
      : { report: { ...report, findings: (report.findings ?? []).slice(0, most) } }),
  };
}
