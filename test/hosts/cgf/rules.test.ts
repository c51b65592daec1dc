/** Each rule, broken by the smallest edit of a recording that breaks it: exactly its finding is new. */

import { describe, expect, it } from 'vitest';
import type { HostFile, HostOptions } from '../../../src/hosts/shared/host.js';
import { hasRecordings, recordedFile, recordedText } from '../recorded.js';
import {
  BUNDLE,
  codesOf,
  countsOf,
  DOWN,
  fileOf,
  HTTP,
  ledgerCodes,
  LANGGRAPH,
  LIVE,
  OPENCLAW,
  read,
  SERVER,
  verifyClaims,
} from './kit.js';

type Edit = (lines: string[]) => string[];

/** The recording with some of its lines edited; lines are counted from 1, as findings count them. */
function edited(path: string, edit: Edit): HostFile {
  const lines = recordedText(path).trimEnd().split('\n');
  return { name: path, bytes: Buffer.from(`${edit(lines).join('\n')}\n`) };
}

const without =
  (...numbers: number[]): Edit =>
  (lines) =>
    lines.filter((_, i) => !numbers.includes(i + 1));

function replacing(number: number, from: string | RegExp, to: string): Edit {
  return (lines) =>
    lines.map((line, i) => {
      if (i + 1 !== number) return line;
      const result = line.replaceAll(typeof from === 'string' ? from : new RegExp(from, 'g'), to);
      if (result === line) throw new Error(`line ${number} does not have ${from}`);
      return result;
    });
}

/** A copy of a line after it, changed. */
function adding(number: number, ...changes: [from: string | RegExp, to: string][]): Edit {
  return (lines) => {
    let copy = lines[number - 1];
    for (const [from, to] of changes)
      copy = copy.replaceAll(typeof from === 'string' ? from : new RegExp(from, 'g'), to);
    return [...lines.slice(0, number), copy, ...lines.slice(number)];
  };
}

const both =
  (...edits: Edit[]): Edit =>
  (lines) =>
    edits.reduce((all, edit) => edit(all), lines);

/** What is found in the edited files and not in the recorded ones, and the other way round, by code. */
function changes(
  recordings: readonly string[],
  edits: Readonly<Record<string, Edit>>,
  options?: HostOptions,
): Record<string, number> {
  const before = countsOf(read(recordings, options));
  const after = countsOf(
    read(
      recordings.map((path) => (edits[path] === undefined ? path : edited(path, edits[path]))),
      options,
    ),
  );
  const result: Record<string, number> = {};
  for (const code of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const difference = (after[code] ?? 0) - (before[code] ?? 0);
    if (difference !== 0) result[code] = difference;
  }
  return result;
}

const change = (path: string, edit: Edit, options?: HostOptions): Record<string, number> =>
  changes([path], { [path]: edit }, options);

describe.skipIf(!hasRecordings)('a broken recording of CGF', () => {
  describe('CGF-1', () => {
    it('has no decision before the action', () => {
      expect(change(OPENCLAW, without(7))).toEqual({ 'CGF-1 DECISION_MISSING': 1 });
    });

    it('has the decision after the action', () => {
      const edit: Edit = (lines) => {
        const [decision, action] = [lines[6], lines[7]];
        const swapped = [
          action.replace('1795291394.513698', '1795291394.51346'),
          decision.replace('1795291394.51346', '1795291394.513698'),
        ];
        return [...lines.slice(0, 6), ...swapped];
      };
      expect(change(OPENCLAW, edit)).toEqual({ 'CGF-1 ACTION_BEFORE_DECISION': 1 });
    });

    it('names another decision', () => {
      expect(change(OPENCLAW, replacing(8, 'dec-e5e75ba426f1', 'dec-000000000000'))).toEqual({
        'CGF-1 DECISION_MISMATCH': 1,
      });
    });

    it('constrains what was allowed', () => {
      expect(change(LIVE, replacing(21, '"CONSTRAIN"', '"ALLOW"'))).toEqual({
        'CGF-1 ACTION_NOT_OF_DECISION': 1,
      });
    });

    it('has no decision, which is one finding although it has an outcome', () => {
      expect(change(LANGGRAPH, without(7))).toEqual({ 'CGF-1 DECISION_MISSING': 1 });
    });

    it('has an execution without a decision, which the ledger shows', async () => {
      const reading = read([edited(OPENCLAW, without(7))]);
      expect(ledgerCodes(await verifyClaims(reading))).toEqual({ AUTH_NOT_FOUND: 1 });
    });
  });

  describe('CGF-2', () => {
    it.each(['BLOCK', 'DEFER'])('executes after %s, however many lines tell it', async (decision) => {
      const edit = replacing(7, '"ALLOW"', `"${decision}"`);
      expect(change(LANGGRAPH, edit)).toEqual({ [`CGF-2 EXECUTED_AFTER_${decision}`]: 1 });
      const reading = read([edited(LANGGRAPH, edit)]);
      expect(ledgerCodes(await verifyClaims(reading))).toEqual({ EXECUTION_UNDER_DENY: 1 });
    });

    it('executes what has expired', () => {
      const edit = adding(
        7,
        ['"decision_made"', '"proposal_expired"'],
        ['"decision_type"', '"expired_at": 1795291394.55, "decision_type"'],
      );
      expect(change(LANGGRAPH, edit)).toEqual({ 'CGF-2 EXECUTED_AFTER_EXPIRY': 1 });
    });

    it('executes what was rejected, which the ledger shows too', async () => {
      const edit = both(
        replacing(7, '"decision_made"', '"decision_rejected"'),
        replacing(7, '"decision_type"', '"rejection_reason": "x", "decision_type"'),
      );
      expect(change(LANGGRAPH, edit)).toEqual({
        'CGF-2 EXECUTED_AFTER_REJECTION': 1,
      });
      const reading = read([edited(LANGGRAPH, edit)]);
      expect(reading.claims.find(({ id }) => id === 'decision:dec-6902cebb22a8')).toMatchObject({
        decision: 'deny',
        decisionCode: 'CGF_REJECTED',
      });
      expect(ledgerCodes(await verifyClaims(reading))).toEqual({ EXECUTION_UNDER_DENY: 1 });
    });

    it('reports a side effect of what was blocked', () => {
      const edit = adding(
        4,
        ['"action_blocked"', '"side_effect_reported"'],
        ['"reason_code"', '"side_effect_type"'],
      );
      expect(change(LANGGRAPH, edit)).toEqual({ 'CGF-2 EXECUTED_AFTER_BLOCK': 1 });
    });
  });

  describe('CGF-3', () => {
    it('has two decisions about one proposal', () => {
      const edit = adding(7, ['dec-6902cebb22a8', 'dec-000000000000'], ['"ALLOW"', '"BLOCK"']);
      expect(change(LANGGRAPH, edit)).toEqual({ 'CGF-3 DECISION_CONFLICT': 1 });
    });

    it('has one decision in two ways', () => {
      expect(change(LANGGRAPH, adding(7, ['"ALLOW"', '"BLOCK"']))).toEqual({ 'CGF-3 DECISION_CONFLICT': 1 });
    });

    it('has one decision twice', () => {
      expect(change(LANGGRAPH, adding(7))).toEqual({ 'CGF-3 DECISION_REPEATED': 1 });
    });

    it('has one decision about two proposals', () => {
      const edit = both(
        replacing(7, 'dec-6902cebb22a8', 'dec-005774d66351'),
        replacing(8, 'dec-6902cebb22a8', 'dec-005774d66351'),
        replacing(9, 'dec-6902cebb22a8', 'dec-005774d66351'),
      );
      expect(change(LANGGRAPH, edit)).toEqual({ 'CGF-3 DECISION_REUSED': 1 });
      const ids = read([edited(LANGGRAPH, edit)]).claims.map(({ id }) => id);
      expect(new Set(ids).size).toBe(ids.length);
    });

    it.each([
      ['"reason_code": "DEFAULT_ALLOW"', '"reason_code": "READONLY_ALLOWLIST"'],
      ['"policy_version": "1.0.0"', '"policy_version": "1.0.1"'],
      ['"matched_rule_ids": ["default-allow"]', '"matched_rule_ids": []'],
      ['"constraint": null', '"constraint": {"type": "delay", "params": {}}'],
    ])('has another %s in its replay', (from, to) => {
      expect(change(HTTP, replacing(22, from, to))).toEqual({ 'CGF-3 SOURCES_DISAGREE': 1 });
    });

    it('has one decision in the log of the server and another in that of the adapter', () => {
      const edits = { [SERVER]: replacing(7, '"ALLOW"', '"BLOCK"') };
      expect(changes([SERVER, OPENCLAW], edits)).toEqual({ 'CGF-3 SOURCES_DISAGREE': 1 });
    });
  });

  describe('CGF-4', () => {
    it('ends before the decision', () => {
      expect(change(LANGGRAPH, without(7, 8, 9))).toEqual({ 'CGF-4 PROPOSAL_OPEN': 1 });
    });

    it('ends before the action', () => {
      expect(change(LANGGRAPH, without(8, 9))).toEqual({ 'CGF-4 ACTION_MISSING': 1 });
      expect(read([edited(LANGGRAPH, without(8, 9))]).findings.at(-1)?.class).toBe('none');
    });

    it('has an outcome without its action', () => {
      expect(change(LANGGRAPH, without(8))).toEqual({ 'CGF-4 ACTION_MISSING': 1 });
      expect(read([edited(LANGGRAPH, without(8))]).findings.at(-1)?.class).toBe('invalid');
    });

    it('has no outcome', () => {
      expect(change(LANGGRAPH, without(9))).toEqual({ 'CGF-4 OUTCOME_MISSING': 1 });
    });

    it('has no proposal', () => {
      expect(change(LANGGRAPH, without(6))).toEqual({ 'CGF-4 PROPOSAL_MISSING': 1 });
    });

    it('has its proposal twice, or after the decision', () => {
      expect(change(LANGGRAPH, adding(6, ['"low"', '"low" ']))).toEqual({ 'CGF-4 PROPOSAL_REPEATED': 1 });
      const edit: Edit = (lines) => {
        const decision = lines[6].replace('394.550704', '394.5').replace('394.588515', '394.571604');
        return [...lines.slice(0, 5), decision, lines[5], ...lines.slice(7)];
      };
      expect(change(LANGGRAPH, edit)).toEqual({ 'CGF-4 DECISION_BEFORE_PROPOSAL': 1 });
    });

    it('has the outcome before the action', () => {
      const edit: Edit = (lines) => {
        const outcome = lines[8].replace('394.599908', '394.588751');
        return [...lines.slice(0, 7), outcome, lines[7]];
      };
      expect(change(LANGGRAPH, edit)).toEqual({ 'CGF-4 OUTCOME_BEFORE_ACTION': 1 });
    });

    it('has an outcome twice', () => {
      expect(change(LANGGRAPH, adding(9))).toEqual({ 'CGF-4 OUTCOME_REPEATED': 1 });
    });

    it('has two outcomes', () => {
      expect(change(LANGGRAPH, adding(9, ['true', 'false']))).toEqual({ 'CGF-4 OUTCOME_CONFLICT': 1 });
    });

    it('overwrites an outcome: the first is claimed', () => {
      const reading = read([edited(HTTP, adding(16, ['"success": true', '"success": false']))]);
      expect(codesOf(reading)).toContain('CGF-4 OUTCOME_CONFLICT 17');
      const execution = reading.claims.find(({ id }) => id === 'execution:lg-prop-1795291474206-96ce94');
      expect(execution).toMatchObject({ outcome: 'success' });
      expect(reading.items[16]).toMatchObject({ fate: 'repeated', reason: 'IN_SAME_LOG' });
    });

    it('has the outcome otherwise in the log of the server', () => {
      const edits = { [SERVER]: replacing(17, '"success": true', '"success": false') };
      expect(changes([SERVER, LANGGRAPH], edits)).toEqual({ 'CGF-4 SOURCES_DISAGREE': 1 });
    });

    it('is enacted twice, enacted before it is proposed, has a side effect before its outcome', () => {
      const enacted = adding(8, ['action_allowed', 'proposal_enacted']);
      expect(change(LANGGRAPH, enacted)).toEqual({});
      expect(change(LANGGRAPH, both(enacted, adding(9, ['"host"', '"x": 1, "host"'])))).toEqual({
        'CGF-4 ENACTED_REPEATED': 1,
      });
      const before = adding(5, ['adapter_registered', 'proposal_enacted']);
      const ids = '"proposal_id": "lg-prop-1795291394571-6d710e", "decision_id": "dec-6902cebb22a8"';
      const early = both(
        before,
        replacing(
          6,
          '"proposal_id": null, "decision_id": null, "payload": {',
          `${ids}, "payload": {${ids}, `,
        ),
      );
      expect(change(LANGGRAPH, early)).toEqual({ 'CGF-4 ENDING_BEFORE_PROPOSAL': 1 });
      const effect = adding(
        8,
        ['action_allowed', 'side_effect_reported'],
        ['"host"', '"side_effect_type": "file", "host"'],
      );
      expect(change(LANGGRAPH, effect)).toEqual({ 'CGF-4 SIDE_EFFECT_BEFORE_OUTCOME': 1 });
    });

    it('executes twice, which the ledger shows too', async () => {
      const edit = adding(8, ['394.588751', '394.588752']);
      expect(change(LANGGRAPH, edit)).toEqual({ 'CGF-4 ACTION_REPEATED': 1 });
      const reading = read([edited(LANGGRAPH, edit)]);
      expect(ledgerCodes(await verifyClaims(reading))).toEqual({ AUTHORIZATION_REUSED: 1 });
    });
  });

  describe('CGF-6', () => {
    const failed: [string | RegExp, string][] = [
      ['"decision_made"', '"constraint_failed"'],
      ['"decision_type"', '"constraint_type": "x", "error": "y", "decision_type"'],
    ];

    it('executes after the constraint failed', () => {
      expect(change(LIVE, adding(21, ...failed))).toEqual({ 'CGF-6 EXECUTED_AFTER_CONSTRAINT_FAILED': 1 });
    });

    it('has no block after the constraint failed, and no execution', () => {
      const edit = both(
        without(23),
        adding(
          22,
          ['"action_constrained"', '"constraint_failed"'],
          ['"constraint_params"', '"error": "y", "constraint_params"'],
        ),
      );
      expect(change(LIVE, edit)).toEqual({ 'CGF-6 BLOCK_MISSING': 1 });
      const { claims } = read([edited(LIVE, edit)]);
      expect(claims.map(({ id }) => id)).not.toContain('execution:prop-mem-1795291446866-23484f');
    });
  });

  describe('CGF-7', () => {
    it('applies a mode that the default is not', () => {
      expect(change(DOWN, replacing(9, '"fail_closed"', '"fail_open"'))).toEqual({
        'CGF-7 FAIL_MODE_NOT_OF_TABLE': 1,
      });
    });

    it('applies a mode that the table of its registration is not', () => {
      const edits = {
        [HTTP]: replacing(
          13,
          '"memory_write", "risk_tier": "high", "fail_mode": "fail_closed"',
          '"memory_write", "risk_tier": "high", "fail_mode": "defer"',
        ),
      };
      expect(changes([DOWN, HTTP], edits)).toEqual({ 'CGF-7 FAIL_MODE_NOT_OF_TABLE': 1 });
    });

    it('applies a mode that the table of the user is not', () => {
      const aid = fileOf(
        '[{"action_type":"memory_write","risk_tier":"medium","fail_mode":"defer"}]',
        'modes.json',
      );
      const { findings } = read([DOWN], { aids: { 'fail-modes': aid } });
      expect(findings.filter(({ rule }) => rule === 'CGF-7')).toHaveLength(2);
    });

    it('executes after it failed closed', async () => {
      const edit = adding(
        9,
        ['"cgf_unreachable"', '"action_allowed"'],
        ['"payload": {', '"payload": {"decision_id": "fail-mode", '],
      );
      // What is executed then lacks an outcome as well, and nobody asks for one.
      expect(change(DOWN, edit)).toEqual({ 'CGF-7 EXECUTED_AFTER_FAIL_MODE': 1 });
      expect(ledgerCodes(await verifyClaims(read([edited(DOWN, edit)])))).toEqual({
        EXECUTION_UNDER_DENY: 1,
      });
    });

    it('blocks after it failed open', () => {
      const open = replacing(9, '"fail_closed"', '"fail_open"');
      const block = adding(
        9,
        ['"cgf_unreachable"', '"action_blocked"'],
        [
          '"payload": {',
          '"payload": {"decision_id": "fail-mode", "justification": "x", "reason_code": "Y", ',
        ],
      );
      expect(change(DOWN, both(open, block))).toEqual({
        'CGF-7 FAIL_MODE_NOT_OF_TABLE': 1,
        'CGF-7 FAIL_MODE_NOT_FOLLOWED': 1,
      });
    });

    it('names no proposal', () => {
      const edit = replacing(9, /"(proposal_id)": "[^"]*"/, '"$1": null');
      expect(change(DOWN, edit)).toEqual({
        'CGF-4 PROPOSAL_OPEN': 1,
        'CGF-7 FAIL_MODE_UNLINKED': 1,
        'CGF-11 REQUIRED_FIELD_MISSING': 1,
      });
    });
  });

  describe('CGF-8', () => {
    it('executes without evidence of the audit', () => {
      expect(change(LANGGRAPH, replacing(7, '"ALLOW"', '"AUDIT"'))).toEqual({ 'CGF-8 AUDIT_NOT_SHOWN': 1 });
      const { findings } = read([edited(LANGGRAPH, replacing(7, '"ALLOW"', '"AUDIT"'))]);
      expect(findings).toMatchObject([{ class: 'invalid' }]);
    });
  });

  describe('CGF-9', () => {
    it('applies another constraint than was decided', () => {
      const edits = { [LIVE]: replacing(26, '"source_namespace": "large_file"', '"source_namespace": "x"') };
      expect(changes([LIVE, HTTP], edits)).toEqual({ 'CGF-9 CONSTRAINT_MISMATCH': 1 });
    });

    it('executes what was to be constrained as it was', () => {
      const edit = replacing(7, '"ALLOW"', '"CONSTRAIN"');
      expect(change(LANGGRAPH, edit)).toEqual({ 'CGF-9 CONSTRAINT_NOT_SHOWN': 1 });
    });

    it.each([
      ['"tool_name": "web_search"', '"tool_name": "exec"'],
      ['"tokens": 9', '"tokens": 8'],
      ['"context_refs": ["agent:main:main"', '"context_refs": ["agent:other"'],
    ])('is proposed with another %s in its replay', (from, to) => {
      expect(change(HTTP, replacing(22, from, to))).toEqual({ 'CGF-9 SOURCES_DISAGREE': 1 });
    });

    it('has a cost in its replay that the server wrote as a float: the same', () => {
      expect(change(HTTP, replacing(22, '"tokens": 9', '"tokens": 9.0'))).toEqual({});
    });

    it('logs other params than it sent', () => {
      const edits = { [HTTP]: replacing(3, '"/etc/hosts"', '"/etc/passwd"') };
      // The replay of the same proposal is not the same either.
      expect(changes([LIVE, HTTP], edits)).toEqual({ 'CGF-9 PARAMS_HASH_MISMATCH': 1 });
      const log = { [LIVE]: replacing(5, '4810962930a99b13', '4810962930a99b14') };
      expect(changes([LIVE, HTTP], log)).toEqual({ 'CGF-9 PARAMS_HASH_MISMATCH': 1 });
    });

    it('executes other arguments than it proposed, which the ledger shows too', async () => {
      const effect = '{"tool_name": "search_web", "tool_args_hash": "00000000000000000000000000000000"}';
      const edit = replacing(16, '"errors": []', `"errors": [], "side_effects": [${effect}]`);
      expect(change(HTTP, edit)).toEqual({ 'CGF-9 EXECUTED_PARAMS_MISMATCH': 1 });
      expect(ledgerCodes(await verifyClaims(read([edited(HTTP, edit)])))).toEqual({
        METER_UNREPORTED: 2,
        TOOL_PARAMS_MISMATCH: 1,
      });
    });

    it('is of another tier in the log of the server', () => {
      const edits = { [SERVER]: replacing(6, '"medium"', '"low"') };
      expect(changes([SERVER, OPENCLAW], edits)).toEqual({ 'CGF-9 SOURCES_DISAGREE': 1 });
    });
  });

  describe('CGF-10', () => {
    it('has an outcome of another decision', () => {
      expect(change(LANGGRAPH, replacing(9, 'dec-6902cebb22a8', 'dec-000000000000'))).toEqual({
        'CGF-10 OUTCOME_DECISION_MISMATCH': 1,
      });
    });

    it('has an outcome of another adapter', () => {
      expect(change(LANGGRAPH, replacing(9, 'adp-c57ef8c3b4da', 'adp-000000000000'))).toEqual({
        'CGF-10 ADAPTER_MISMATCH': 1,
      });
    });

    it('has an outcome, and neither a decision nor an action', () => {
      const edit = both(replacing(9, '"success": true', '"success": false'), without(7, 8));
      expect(change(LANGGRAPH, edit)).toEqual({ 'CGF-10 OUTCOME_WITHOUT_DECISION': 1 });
      // Whether anything was executed is not stated, so it is not claimed.
      expect(read([edited(LANGGRAPH, edit)]).claims.filter(({ kind }) => kind === 'execution')).toEqual([]);
    });
  });

  describe('CGF-11', () => {
    it.each([
      ['"0.3.0"', '"0.4.0"', 'SCHEMA_VERSION_INCOMPATIBLE'],
      ['"0.3.0"', '"0.1.9"', 'SCHEMA_VERSION_INCOMPATIBLE'],
      ['"schema_version": "0.3.0", ', '', 'REQUIRED_FIELD_MISSING'],
      [', "risk_tier": "low"', '', 'REQUIRED_FIELD_MISSING'],
      ['"risk_tier": "low"', '"risk_tier": 3', 'REQUIRED_FIELD_MISSING'],
      ['"risk_tier": "low"', '"risk_tier": "none"', 'VALUE_UNKNOWN'],
      [
        '"payload": {"proposal_id": "lg-prop-1795291394571',
        '"payload": {"proposal_id": "lg-prop-0',
        'ID_MISMATCH',
      ],
    ])('has %s as %s', (from, to, code) => {
      expect(change(LANGGRAPH, replacing(6, from, to))).toEqual({ [`CGF-11 ${code}`]: 1 });
    });

    it('has an event of no vocabulary', () => {
      const edit = adding(6, ['"proposal_received"', '"proposal_thought_about"']);
      expect(change(LANGGRAPH, edit)).toEqual({ 'CGF-11 EVENT_TYPE_UNKNOWN': 1 });
    });

    it('has two vocabularies', () => {
      const edit = adding(1, ['"payload"', '"data"'], ['"schema_version": "0.3.0"', '"event_id": "x"']);
      expect(change(LANGGRAPH, edit)).toEqual({ 'CGF-11 VOCABULARY_MIXED': 1 });
    });

    it('has a confidence beyond 1', () => {
      expect(change(LANGGRAPH, replacing(7, '0.85', '1.85'))).toEqual({ 'CGF-11 VALUE_OUT_OF_RANGE': 1 });
    });

    it('has an amount that is none', () => {
      const outOfRange = { 'CGF-11 VALUE_OUT_OF_RANGE': 1 };
      expect(change(LANGGRAPH, replacing(9, '36.18788719177246', '-36.1'))).toEqual(outOfRange);
      expect(change(HTTP, replacing(16, '"duration_ms": 40.06385803222656', '"duration_ms": "40"'))).toEqual(
        outOfRange,
      );
      expect(change(HTTP, replacing(18, '"errors"', '"actual_cost": {"tokens": -1}, "errors"'))).toEqual(
        outOfRange,
      );
    });

    it('has an operation that is none', () => {
      expect(change(HTTP, replacing(8, '"operation": "update"', '"operation": "burn"'))).toEqual({
        'CGF-11 VALUE_UNKNOWN': 1,
      });
    });

    it('has a version that the server refused, which is a warning', () => {
      const edit = both(
        replacing(21, /"request": \{"schema_version": "0.\d.0"/, '"request": {"schema_version": "0.1.0"'),
        replacing(21, '"status": 200', '"status": 400'),
      );
      const found = read([edited(HTTP, edit)]).findings.filter(({ at }) => at.line === 21);
      expect(found).toMatchObject([
        { rule: 'CGF-11', code: 'SCHEMA_VERSION_INCOMPATIBLE', class: 'none' },
        { rule: 'CGF-4', code: 'PROPOSAL_OPEN', class: 'none' },
      ]);
    });

    it('has a decision that is none of the five, and so none', () => {
      expect(change(LANGGRAPH, replacing(7, '"ALLOW"', '"PERMIT"'))).toEqual({
        'CGF-1 DECISION_MISSING': 1,
        'CGF-11 VALUE_UNKNOWN': 1,
      });
    });
  });

  it('CGF-12: goes back in time', () => {
    expect(
      change(LANGGRAPH, replacing(8, '"timestamp": 1795291394.588751', '"timestamp": 1795291394.5')),
    ).toEqual({
      'CGF-12 TIME_REGRESSION': 1,
    });
  });

  it('CGF-13: costs more than was estimated, also where its time was measured', () => {
    const edit = replacing(10, '"errors"', '"actual_cost": {"latency_ms": 100.00000000000001}, "errors"');
    expect(change(HTTP, edit)).toEqual({ 'CGF-13 COST_OVER_ESTIMATE': 1 });
  });

  it('CGF-13: takes longer than was estimated, which the ledger shows too', async () => {
    const edit = replacing(16, '40.06385803222656', '340.06385803222656');
    expect(change(HTTP, edit)).toEqual({ 'CGF-13 COST_OVER_ESTIMATE': 1 });
    expect(ledgerCodes(await verifyClaims(read([edited(HTTP, edit)])))).toEqual({
      METER_UNREPORTED: 2,
      RESERVATION_EXCEEDED: 1,
    });
  });

  describe('CGF-14 and CGF-15', () => {
    const bundle = (text = recordedText(BUNDLE)): HostOptions => ({
      aids: { 'policy-bundle': fileOf(text, 'bundle.json') },
    });

    it('finds nothing wrong with the recorded bundle and what it decided', () => {
      expect(countsOf(read([HTTP], bundle()))).toEqual(countsOf(read([HTTP])));
    });

    it('has a bundle with another hash', () => {
      const options = bundle(recordedText(BUNDLE).replace('085b6d28', '185b6d28'));
      expect(codesOf(read([], options))).toEqual(['CGF-14 BUNDLE_HASH_MISMATCH']);
    });

    it('has a bundle with another rule than was hashed', () => {
      const options = bundle(recordedText(BUNDLE).replace('"tokens"', '"tokens" ').replace('12000', '12001'));
      expect(codesOf(read([], options))).toEqual(['CGF-14 BUNDLE_HASH_MISMATCH']);
    });

    it('takes no other file for a bundle', () => {
      expect(codesOf(read([], bundle('{"rules": 1}')))).toEqual(['CGF-14 AID_NOT_READABLE']);
    });

    it.each([
      [21, '"decision": "BLOCK"', '"decision": "DEFER"', 'DECISION_NOT_OF_POLICY'],
      [15, '["readonly-allowlist"]', '["default-allow"]', 'RULE_NOT_OF_POLICY'],
      [15, '"reason_code": "READONLY_ALLOWLIST"', '"reason_code": "DEFAULT_ALLOW"', 'RULE_NOT_OF_POLICY'],
      [11, '"_quarantine_1795291447.129216"', '"production"', 'CONSTRAINT_NOT_OF_POLICY'],
      [11, '"source_namespace": "large_file"', '"source_namespace": "other"', 'CONSTRAINT_NOT_OF_POLICY'],
      [9, '"params": {}', '"params": {"delay": 1}', 'CONSTRAINT_NOT_OF_POLICY'],
      [15, '"constraint": null', '"constraint": {"type": "delay", "params": {}}', 'CONSTRAINT_NOT_OF_POLICY'],
      [15, '"confidence": 0.95', '"confidence": 0.85', 'CONFIDENCE_NOT_OF_POLICY'],
      [15, '"policy_version": "1.0.0"', '"policy_version": "1.0.1"', 'POLICY_NOT_GIVEN'],
    ])('has in line %i another decision than the bundle makes: %s as %s', (line, from, to, code) => {
      expect(change(HTTP, replacing(line, from, to), bundle())).toEqual({ [`CGF-15 ${code}`]: 1 });
    });

    it('has a regular expression that is not decided', () => {
      const text = recordedText(BUNDLE).replace('"^(read|', '"^(?=.)(read|');
      const { findings } = read([HTTP], bundle(text));
      const policy = findings.filter(({ rule }) => rule === 'CGF-15');
      expect(policy.map(({ code }) => code)).toEqual(policy.map(() => 'POLICY_NOT_DECIDED'));
      expect(policy.length).toBeGreaterThan(3);
    });
  });

  describe('INPUT', () => {
    it('is cut in the middle of a line', () => {
      const bytes = recordedFile(LANGGRAPH).bytes;
      const reading = read([{ name: LANGGRAPH, bytes: bytes.subarray(0, bytes.length - 20) }]);
      expect(countsOf(reading)).toEqual({ 'INPUT LINE_TORN': 1, 'CGF-4 OUTCOME_MISSING': 1 });
    });

    it('has a line of something else', () => {
      expect(change(LANGGRAPH, (lines) => [...lines, '{"level":"info"}', '7'])).toEqual({
        'INPUT FORMAT_UNKNOWN': 2,
      });
    });

    it('has no time', () => {
      expect(change(LANGGRAPH, replacing(6, '"timestamp": 1795291394.571604', '"timestamp": null'))).toEqual({
        'INPUT TIME_NOT_STATED': 1,
      });
    });
  });
});
