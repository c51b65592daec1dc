/** Ledgers of the fixtures as cases: findings of all, complete reports of the sound, and what holds after each record. */

import { readFileSync, readdirSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseTrustPolicy } from '../../dist/api/format.js';
import { buildReport, parseWitnessPolicy, runVerification } from '../../dist/api/verify.js';
import { balancesOf } from '../../dist/api/internals.js';
import { treeRoot } from '../../fixtures/make/ledger.js';
import { comparableReport } from '../lib/compare.js';
import { assertSame, digestText, file } from './cases.js';

const FIXTURES = fileURLToPath(new URL('../../fixtures/', import.meta.url));
const FOLDERS = ['anchors', 'broken', 'ledgers', 'trust', 'witness'];
/** Longer ledgers have no steps. */
const MAX_STEPS = 100;
/** Of the broken ones those that are about keys, amounts, approvals and withdrawals. */
const WITH_STEPS =
  /^(?:ledgers|vectors|broken\/(?:adjustment|approval|grant-revoked|key|meter|rate|release|reservation|self-credit|signature|slice))/;

/** The files of the fixtures by their path. */
export function readFixtureFiles() {
  const files = new Map();
  for (const folder of FOLDERS) {
    for (const name of readdirSync(`${FIXTURES}${folder}`, { recursive: true }).sort()) {
      const path = `${folder}/${name}`;
      if (statSync(`${FIXTURES}${path}`).isFile()) files.set(path, readFileSync(`${FIXTURES}${path}`));
    }
  }
  return files;
}

/** @param more - Further ledgers, as expected.json has them */
export async function makeVerifierCases(files, more) {
  const { cases, trust_policies: policies } = JSON.parse(readFileSync(`${FIXTURES}expected.json`));
  const made = { policy: policies.map(toPolicyCase), verify: [], report: [], steps: [] };
  for (const fixture of [...cases, ...more]) {
    const name = nameOf(fixture);
    const input = inputOf(fixture, files);
    const run = await verify(fixture, files);
    const findings = run.report.findings.map((finding) => toFinding(finding));
    checkExpected(fixture, run.report);
    const { verdict, exit_status: exitStatus } = run.report;
    const { about, intermediate } = fixture;
    const notes = intermediate === undefined ? {} : { intermediate };
    const expect = { verdict, exit_status: exitStatus, findings };
    made.verify.push({ id: `verify/${name}`, op: 'verify', about, input, expect, ...notes });
    if (verdict === 'ok')
      made.report.push({
        id: `report/${name}`,
        op: 'report',
        about,
        input,
        expect: { report: comparableReport(run.report) },
      });
    if (run.steps !== undefined)
      made.steps.push({ id: `steps/${name}`, op: 'steps', about, input, expect: { steps: run.steps } });
  }
  return [...made.policy, ...made.verify, ...made.report, ...made.steps];
}

function toPolicyCase({ file: path, about, valid }) {
  const id = `policy/${path.replace(/^trust\/|\.json$/g, '')}`;
  return { id, op: 'policy', about, input: { policy: file(path) }, expect: { valid } };
}

function nameOf({
  ledger,
  trust,
  witness_policy: witnesses,
  checkpoints = [],
  predecessor,
  parents = [],
  now,
}) {
  const short = (path) => path.replace(/^.*\//, '').replace(/\.[a-z]+$/, '');
  const others = [trust, witnesses, ...checkpoints, predecessor, ...parents].filter(
    (path) => path !== undefined,
  );
  const time = now === undefined ? [] : [now.replaceAll(':', '')];
  return [ledger.replace(/\.jsonl$/, ''), ...others.map(short), ...time].join('+');
}

function ledgerOf(path, files) {
  if (files.has(path)) return { name: path, bytes: file(path) };
  const parts = [...files.keys()].filter((each) => each.startsWith(`${path}/`)).sort();
  const segments = parts.map((part) => ({ name: part.slice(path.length + 1), bytes: file(part) }));
  return { name: path, segments };
}

function inputOf(fixture, files) {
  const { ledger, trust, witness_policy: witnesses, checkpoints, predecessor, parents, now } = fixture;
  return {
    ledger: ledgerOf(ledger, files),
    ...(trust && { trust: file(trust) }),
    ...(witnesses && { witness_policy: file(witnesses) }),
    ...(checkpoints && { checkpoints: checkpoints.map((name) => ({ name, bytes: file(name) })) }),
    ...(predecessor && { predecessor: ledgerOf(predecessor, files) }),
    ...(parents && { parents: parents.map((path) => ledgerOf(path, files)) }),
    ...(now && { now }),
  };
}

/** One source of given bytes, for the core. */
export function sourceOf(path, files) {
  const { segments = [{ name: path }] } = ledgerOf(path, files);
  const isFolder = !files.has(path);
  const parts = segments.map(({ name }) => ({
    file: name,
    firstSeq: isFolder ? Number(/^(\d{20})\.jsonl$/.exec(name)?.[1]) : undefined,
    chunks: only(files.get(isFolder ? `${path}/${name}` : path)),
  }));
  return { paths: [path], size: undefined, segments: only(...parts) };
}

async function* only(...items) {
  yield* items;
}

async function verify(fixture, files) {
  const { ledger, trust, witness_policy: witnesses, checkpoints, predecessor, parents, now } = fixture;
  const steps = [];
  const watch = new StepWatch(steps);
  const result = await runVerification(sourceOf(ledger, files), {
    ...(trust && { trust: parseTrustPolicy(files.get(trust)) }),
    ...(witnesses && { witnessPolicy: parseWitnessPolicy(files.get(witnesses)) }),
    ...(checkpoints && { checkpoints: checkpoints.map((name) => ({ name, note: files.get(name) })) }),
    ...(predecessor && { predecessor: sourceOf(predecessor, files) }),
    ...(parents && { parents: parents.map((path) => sourceOf(path, files)) }),
    ...(now && { now }),
    maxFindings: 1_000_000,
    onRecord: (record) => watch.note(record),
  });
  const report = JSON.parse(JSON.stringify(buildReport(result)));
  const isShort = steps.length > 0 && steps.length <= MAX_STEPS && steps.length === report.ledger.records;
  const isWanted = WITH_STEPS.test(ledger) && report.ledger.origin !== null;
  if (isShort && isWanted) assertSame(steps.at(-1).root, report.ledger.root, `the last root of ${ledger}`);
  return { report, steps: isShort && isWanted ? steps : undefined };
}

/** What holds after each record. */
export class StepWatch {
  #steps;
  #lines = [];
  #accounts = new Map();
  #used = new Set();
  #clock = null;

  constructor(steps) {
    this.#steps = steps;
  }

  note({ ordinal, bytes, verdict, signatures, state }) {
    this.#lines.push(Buffer.from(bytes ?? []));
    this.#steps.push({
      seq: ordinal,
      clock: this.#clock,
      verdict,
      signatures: signatures.map(({ keyid, outcome }) => ({ keyid, outcome })),
      accounts: this.#changedAccounts(state),
      approvals: this.#usedApprovals(state),
      root: digestText(treeRoot(this.#lines)),
    });
    this.#clock = state.clock === undefined ? null : shortTime(state.clock);
    return undefined;
  }

  #changedAccounts({ links }) {
    const changed = [];
    for (const { place, accounts, decision } of links.grants.values()) {
      if (decision !== 'allow') continue;
      for (const balance of balancesOf({ accounts })) {
        const entry = {
          grant: place.eventId,
          unit: balance.unit,
          used: fraction(balance.used),
          reserved: fraction(balance.reserved),
          estimated: fraction(balance.estimated ?? { t: 'int', v: '0' }),
        };
        const key = `${entry.grant} ${entry.unit}`;
        const text = JSON.stringify(entry);
        if (this.#accounts.get(key) === text) continue;
        this.#accounts.set(key, text);
        changed.push(entry);
      }
    }
    return changed;
  }

  #usedApprovals({ links }) {
    const used = [];
    for (const { place, usedBy } of links.approvals.values()) {
      if (usedBy === undefined || this.#used.has(place.eventId)) continue;
      this.#used.add(place.eventId);
      used.push(place.eventId);
    }
    return used;
  }
}

/** A time with as few decimals as it needs. */
export function shortTime(text) {
  return text.replace(/(\.\d*?)0+Z$/, '$1Z').replace('.Z', 'Z');
}

function gcd(a, b) {
  return b === 0n ? a : gcd(b, a % b);
}

/** A quantity as `N` or `N/D` in lowest terms. */
export function fraction(quantity) {
  const [n, d] = partsOf(quantity);
  const common = gcd(n < 0n ? -n : n, d) || 1n;
  return d / common === 1n ? String(n / common) : `${n / common}/${d / common}`;
}

function partsOf({ t, v, m, s, n, d }) {
  if (t === 'int') return [BigInt(v), 1n];
  if (t === 'dec') return [BigInt(m), 10n ** BigInt(s)];
  if (t === 'rat') return [BigInt(n), BigInt(d)];
  throw new Error(`a balance of type ${t}`);
}

function toFinding({ code, severity, class: kind, seq, event_id: eventId, at, folded }) {
  const { file: name, line, byte_offset: offset, byte_length: length, pointer = null } = at;
  return {
    code,
    severity,
    class: kind,
    seq,
    event_id: eventId,
    at: { file: name, line, byte_offset: offset, byte_length: length, pointer },
    folded: folded ?? null,
  };
}

/** The fixtures state their findings from the rules: what the product gives must be these. */
function checkExpected(fixture, report) {
  const given = report.findings.map(({ code, at, severity, folded }) => ({
    code,
    line: at.line,
    ...(at.pointer === undefined ? {} : { pointer: at.pointer }),
    ...(severity === 'error' ? {} : { severity }),
    ...(folded === undefined ? {} : { folded }),
    ...(at.file === fixture.ledger ? {} : { file: at.file }),
  }));
  const sorted = (finding) =>
    Object.fromEntries(Object.entries(finding).sort(([a], [b]) => (a < b ? -1 : 1)));
  assertSame(given.map(sorted), fixture.findings.map(sorted), fixture.ledger);
  assertSame(report.verdict, fixture.verdict, fixture.ledger);
  if (fixture.root !== undefined) assertSame(report.ledger.root, fixture.root, fixture.ledger);
}
