/**
 * `northroot/verify` bundled for a browser as its users would bundle it, and run where there is no Node: in a context that has
 * ECMAScript and little else, and in a real Chromium. It gives the fixtures' verdicts.
 */

import { existsSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { createContext, runInContext } from 'node:vm';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { formatPublicKeyAs } from '../../src/format/key/public-key.js';
import { makeProof } from '../../src/proof/make-proof.js';
import { verifyProof } from '../../src/proof/verify-proof.js';
import type { Report } from '../../src/rules/report/report.js';
import { CASES, findingsOf, FIXTURES, fixtureBytes, type LedgerCase } from '../fixtures/cases.js';
import { logKey, makeLines, opener, signer } from '../proof/support.js';
import { sample } from '../slow.js';
import { CHROMIUM, Page } from './chromium.js';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

interface Outcome {
  readonly report?: Report;
  readonly hasText?: boolean;
  readonly error?: string;
}

/** The case with the names and numbers of its segments, where it has some, and every file that it names. */
function withFiles(fixture: LedgerCase): {
  readonly fixture: object;
  readonly files: Record<string, string>;
} {
  const { ledger, trust, witness_policy: witnesses, checkpoints = [], predecessor, parents = [] } = fixture;
  const isFile = ledger.endsWith('.jsonl');
  const names = isFile ? [] : readdirSync(`${FIXTURES}${ledger}`).sort();
  const segments = names.map((name) => ({ file: `${ledger}/${name}`, firstSeq: Number.parseInt(name, 10) }));
  const paths = [...(isFile ? [ledger] : []), ...segments.map(({ file }) => file)];
  for (const path of [trust, witnesses, ...checkpoints, predecessor, ...parents])
    if (path !== undefined) paths.push(path);
  const files = Object.fromEntries(paths.map((path) => [path, fixtureBytes(path).toString('base64')]));
  return { fixture: isFile ? fixture : { ...fixture, segments }, files };
}

function call(fixture: LedgerCase): string {
  const { fixture: named, files } = withFiles(fixture);
  return `verifyCase(${JSON.stringify(named)}, ${JSON.stringify(files)})`;
}

function expectVerdict(fixture: LedgerCase, { report, hasText, error }: Outcome): void {
  expect({ error, hasText }).toEqual({ error: undefined, hasText: true });
  expect(findingsOf(report!, fixture.ledger)).toEqual(fixture.findings);
  expect(report).toMatchObject({ verdict: fixture.verdict, exit_status: fixture.exit_status });
}

/** A proof, as bytes and as a broken one, and what is said of both here: in a browser the same is said. */
async function proofCalls(): Promise<{ readonly call: string; readonly result: unknown }[]> {
  const { bytes } = await makeProof(opener(await makeLines({ events: [2, 1] })), '1');
  const broken = Buffer.from(Buffer.from(bytes).toString().replace('index 1', 'index 0'));
  const key = formatPublicKeyAs(signer.publicKey, 'pem');
  return [bytes, broken].map((proof) => ({
    call: `verifyProofFile(${JSON.stringify(Buffer.from(proof).toString('base64'))}, ${JSON.stringify(key)})`,
    result: verifyProof(proof, { keys: [logKey] }),
  }));
}

describe('bundled for a browser', () => {
  let bundle = '';

  beforeAll(async () => {
    const { outputFiles, warnings } = await build({
      entryPoints: [`${ROOT}test/platform/page.js`],
      bundle: true,
      format: 'iife',
      platform: 'browser',
      target: 'es2022',
      minify: true,
      write: false,
      logLevel: 'silent',
    });
    expect(warnings).toEqual([]);
    bundle = outputFiles[0].text;
  });

  it('has less than 550 kB', () => {
    expect(bundle.length).toBeLessThan(550_000);
  });

  describe('in a context with nothing but ECMAScript, TextEncoder, TextDecoder and atob', () => {
    let context: object;

    beforeAll(() => {
      context = createContext({ TextEncoder, TextDecoder, atob });
      runInContext(bundle, context);
    });

    it('finds nothing of Node', () => {
      expect(runInContext('namesOfNode().join()', context)).toBe('');
    });

    it('judges proofs as northroot does', async () => {
      for (const { call: proof, result } of await proofCalls()) {
        expect(JSON.parse(runInContext(`JSON.stringify(${proof})`, context) as string)).toEqual(result);
      }
    });

    // One for each code and each kind of ledger; all of them are verified in the browser.
    const codes = new Set<string>();
    const some = CASES.filter(({ ledger, findings }) => {
      if (ledger.includes('pipeline')) return false;
      const isNew = findings.length === 0 || findings.some(({ code }) => !codes.has(code));
      for (const { code } of findings) codes.add(code);
      return isNew;
    });

    it.each(some)('gives the verdict on $ledger $trust $witness_policy', async (fixture) => {
      expectVerdict(fixture, (await runInContext(call(fixture), context)) as Outcome);
    });
  });

  describe.skipIf(!existsSync(CHROMIUM))('in Chromium', () => {
    let page: Page;

    beforeAll(async () => {
      page = await Page.open();
      await page.evaluate(`${bundle};undefined`);
    });

    afterAll(() => page.close());

    it('finds nothing of Node', async () => {
      expect(await page.evaluate('namesOfNode()')).toEqual([]);
    });

    it('judges proofs as northroot does', async () => {
      const made = await proofCalls();
      expect(made.map(({ result }) => (result as { readonly verdict: string }).verdict)).toEqual([
        'ok',
        'invalid',
      ]);
      for (const { call: proof, result } of made) expect(await page.evaluate(proof)).toEqual(result);
    });

    it.each(sample(CASES, 120))(
      'gives the verdict on $ledger $trust $witness_policy $checkpoints $predecessor $now',
      async (fixture) => {
        expectVerdict(fixture, (await page.evaluate(call(fixture))) as Outcome);
      },
    );
  });
});
