/** What was found of a proof, for people: the verdict first, then what it rests on, and what it leaves open. */

import { printable } from '../../base/bytes/printable.js';
import type { JsonValue } from '../../base/json/value.js';
import type { CheckpointSigners, ProofProblem } from '../../proof/proof-keys.js';
import type { StatementResult } from '../../proof/statement/verify-statement.js';
import type { ConsistencyResult } from '../../proof/verify-consistency.js';
import type { ProofResult, ProofVerdict, StatedTree } from '../../proof/verify-proof.js';
import type { ReceiptResult } from '../../proof/verify-receipt.js';
import { type Guide, notCheckedLines, type Paint } from './guide.js';
import { object } from './json.js';
import { count } from './words.js';

const VERDICT_STYLES = { ok: 'green', invalid: 'red', undecided: 'yellow' } as const;

/** The result as lines of text, each ending in `\n`. Everything that comes from the file is made printable. */
export function renderProofResult(
  result: ProofResult,
  file: string,
  paint: Paint,
  guide: Guide = {},
): string {
  const { verdict, origin, index, tree, entry } = result;
  const isRecord = entry?.kind === 'record';
  const log = printable(origin ?? '');
  const proven = isRecord
    ? `${log} has this record at seq ${index} of its ${tree?.tree_size} records`
    : `${log} has this entry, which is not a record of this format, at index ${index} of its ${tree?.tree_size} entries`;
  return toText([
    renderHead(verdict, file, proven, paint),
    ...renderPlace(result, isRecord ? 'seq' : 'index'),
    ...renderSigners('signed by', result.checkpoint_signers),
    ...renderEvent(result),
    ...notCheckedLines(result.not_checked, paint),
    ...renderProblems(result.problems, paint, guide),
  ]);
}

/** The result of a COSE receipt as lines of text, each ending in `\n`. Everything that comes from the files is made printable. */
export function renderReceiptResult(
  result: ReceiptResult,
  file: string,
  paint: Paint,
  guide: Guide = {},
): string {
  const { verdict, origin, entry } = result;
  const log = origin === null ? 'the log of this key' : printable(origin);
  const what = entry?.kind === 'record' ? 'this record' : 'this entry, which is not a record of this format,';
  return toText([
    renderHead(verdict, file, `${log} has ${what} in its tree (COSE receipt)`, paint),
    ...renderPlace(result, 'index'),
    ...result.receipt_signers.map((keyid) => row('signed by', printable(keyid))),
    ...renderEvent(result),
    ...notCheckedLines(result.not_checked, paint),
    ...renderProblems(result.problems, paint, guide),
  ]);
}

/** The result as lines of text, each ending in `\n`. Everything that comes from the files is made printable. */
export function renderConsistencyResult(
  result: ConsistencyResult,
  file: string,
  paint: Paint,
  guide: Guide = {},
): string {
  const { verdict, origin, old_tree: old, tree } = result;
  const proven = `the tree of ${tree?.tree_size} records of ${printable(origin ?? '')} extends that of ${old?.tree_size}`;
  return toText([
    renderHead(verdict, file, proven, paint),
    ...(origin === null ? [] : [row('origin', printable(origin))]),
    ...renderTree('old tree', old),
    ...renderSigners('signed by', result.old_checkpoint_signers),
    ...renderTree('tree', tree),
    ...renderSigners('signed by', result.checkpoint_signers),
    ...notCheckedLines(result.not_checked, paint),
    ...renderProblems(result.problems, paint, guide),
  ]);
}

/** The most entries of each list of a statement. */
const MAX_LISTED = 8;

/** The result of an in-toto statement as lines of text, each ending in `\n`. Everything that comes from the file is made printable. */
export function renderStatementResult(
  result: StatementResult,
  file: string,
  paint: Paint,
  guide: Guide = {},
): string {
  const { verdict, statement, signers, problems, not_checked: gaps } = result;
  const predicate = object(statement?.['predicate']);
  const said = predicate['verificationResult'];
  const own = object(predicate['northroot']);
  const isHeld = gaps.every(({ code }) => code !== 'SUBJECT');
  const subject = isHeld ? 'the ledger' : 'the ledger that it names';
  const isRefused = problems.length > 0 && problems.every(({ code }) => code === 'NOT_PASSED');
  const broken = isRefused
    ? `the signer does not say that ${subject} PASSED`
    : 'the statement is broken and proves nothing';
  const listed = (
    name: string,
    value: JsonValue | undefined,
    show: (each: JsonValue) => string,
  ): string[] => {
    if (!Array.isArray(value)) return [];
    const more = value.length - MAX_LISTED;
    return [
      ...value.slice(0, MAX_LISTED).map((each) => row(name, show(each))),
      ...(more > 0 ? [row(name, `… and ${more} more`)] : []),
    ];
  };
  const optional = (name: string, value: JsonValue | undefined): string[] =>
    value === undefined ? [] : [row(name, text(value))];
  const notChecked = own['not_checked'];
  const codes = Array.isArray(notChecked) ? notChecked.map((each) => text(object(each)['code'])) : [];
  return toText([
    renderHead(verdict, file, `the signer says that ${subject} ${text(said)}`, paint, broken),
    ...(statement === null
      ? []
      : [
          ...listed('subject', statement['subject'], describeResource),
          row('result', `${text(said)}${own['verdict'] === undefined ? '' : `, ${text(own['verdict'])}`}`),
          ...optional('verifier', object(predicate['verifier'])['id']),
          ...optional('when', predicate['timeVerified']),
          ...listed('level', predicate['verifiedLevels'], text),
          ...listed('held to', predicate['inputAttestations'], describeResource),
          ...(codes.length === 0 ? [] : [row('left open', codes.slice(0, MAX_LISTED).join(' '))]),
        ]),
    ...signers.map((keyid) => row('signed by', printable(keyid))),
    ...notCheckedLines(gaps, paint),
    ...renderProblems(problems, paint, {
      proof: (code) => guide.proof?.(code) ?? SIGNER_MISSING[code],
    }),
  ]);
}

const SIGNER_MISSING: Readonly<Record<string, string>> = {
  KEY_UNKNOWN: "give the signer's public key",
};

/** A name or a URI, and the digest. */
function describeResource(value: JsonValue): string {
  const { name, uri, digest } = object(value);
  const { sha256 } = object(digest);
  return `${text(name ?? uri)}${sha256 === undefined ? '' : `  sha256 ${text(sha256)}`}`;
}

function renderHead(
  verdict: ProofVerdict,
  file: string,
  proven: string,
  paint: Paint,
  broken = 'the proof is broken and proves nothing',
): string {
  const words = {
    ok: proven,
    invalid: broken,
    undecided: 'not proven: something is missing',
  };
  const head = paint('bold', paint(VERDICT_STYLES[verdict], verdict));
  return `${head}  ${printable(file)}: ${words[verdict]}`;
}

function renderPlace(
  { origin, index, entry, tree }: Pick<ProofResult, 'origin' | 'index' | 'entry' | 'tree'>,
  label: 'seq' | 'index',
): string[] {
  return [
    ...(origin === null ? [] : [row('origin', printable(origin))]),
    ...(index === null ? [] : [row(label, String(index))]),
    ...(entry === null || entry.kind === 'record'
      ? []
      : [row('entry', `${entry.size_bytes} bytes, ${entry.digest}`)]),
    ...renderTree('tree', tree),
  ];
}

function renderEvent({
  event,
  event_id: id,
  event_signatures: signatures,
}: Pick<ProofResult, 'event' | 'event_id' | 'event_signatures'>): string[] {
  if (event === null) return [];
  return [
    row('event', `${text(event['event_type'])}  ${id ?? 'without an id'}`),
    row('who', text(event['principal_id'])),
    row('when', text(event['occurred_at'])),
    ...signatures.map(({ keyid, result: found, code }) =>
      row('signature', `${printable(keyid)} ${found}${code === undefined ? '' : ` (${code})`}`),
    ),
  ];
}

function renderTree(name: string, tree: StatedTree | null): string[] {
  if (tree === null) return [];
  const { tree_size: size, root } = tree;
  return [row(name, `${size} ${size === 1 ? 'record' : 'records'}, root ${root}`)];
}

function renderSigners(name: string, { log, witnesses, unverified }: CheckpointSigners): string[] {
  return [
    ...log.map((vkey) => row(name, printable(vkey))),
    ...witnesses.map(({ vkey, timestamp }) =>
      row('witness', `${printable(vkey)} at ${formatTime(timestamp)}`),
    ),
    ...(unverified === 0
      ? []
      : [row('unverified', `${count(unverified, 'signature')} of the checkpoint by unknown keys`)]),
  ];
}

/** What would decide it. */
const MISSING: Readonly<Record<string, string>> = {
  KEY_UNKNOWN: "give the log's key, or a trust policy that has it",
  ENTRY_MISSING: 'the proof does not carry its entry: give it',
};

function renderProblems(problems: readonly ProofProblem[], paint: Paint, guide: Guide): string[] {
  if (problems.length === 0) return [];
  const lines = problems.map(({ code, kind, expected, actual }) => {
    const style = kind === 'invalid' ? 'red' : 'yellow';
    return `  ${paint(style, code)}: expected ${printable(expected)}, found ${printable(actual)}`;
  });
  const hint = problems.flatMap(({ code, kind }) => {
    const words = kind === 'undecided' ? (guide.proof?.(code) ?? MISSING[code]) : undefined;
    return words === undefined ? [] : [`  hint: ${words}`];
  });
  return ['', paint('bold', 'problems'), ...lines, ...hint];
}

/** The latest time that a Date can have, in seconds since 1970. */
const LAST_SECOND = 8_640_000_000_000;

function formatTime(seconds: number): string {
  if (seconds > LAST_SECOND) return `${seconds} seconds after 1970`;
  return new Date(seconds * 1_000).toISOString().replace('.000Z', 'Z');
}

function row(name: string, value: string): string {
  return `  ${name.padEnd(10)}  ${value}`;
}

function text(value: unknown): string {
  return typeof value === 'string' ? printable(value) : 'unreadable';
}

function toText(lines: readonly string[]): string {
  return lines.map((line) => `${line}\n`).join('');
}
