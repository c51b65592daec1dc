/** What the command line makes of an error's code: the exit status, and what to do. */

import { describe, expect, it } from 'vitest';
import { CommandError } from '../../src/cli/command-error.js';
import { exitStatusFor, exitStatusForRefusal } from '../../src/cli/exit-status.js';
import { hintFor } from '../../src/cli/hints.js';
import { commandGuide, remedyFor } from '../../src/cli/remedies.js';
import {
  CODE_PAGES,
  EventError,
  NorthrootError,
  StrictError,
  type FindingCode,
} from '../../src/api/index.js';
import { OtherFileError } from '../../src/log/fs/other-file.js';

const error = (code: string, hint?: string): NorthrootError =>
  new NorthrootError(code, 'it failed', { hint });

describe('the exit status of an error', () => {
  const lacking = ['CHECKPOINT_MISSING', 'SIGNATURE_MISSING', 'WITNESS_QUORUM'];
  const codes = Object.keys(CODE_PAGES);

  it.each(codes.filter((code) => !lacking.includes(code)))('is 1 for evidence that is %s', (code) => {
    expect(exitStatusFor(error(code))).toBe(1);
  });

  it.each([
    ...['AUTHORIZATION_AMBIGUOUS', 'AUTHORIZATION_STARTED', 'GRANT_UNSOUND', 'STARTS_UNSETTLED'],
    ...['START_AMBIGUOUS', 'START_NOT_FOUND', 'NOT_REACHED', 'LEDGER_INVALID', 'LEDGER_TAIL_INVALID'],
    ...['SEGMENT_MISPLACED', 'SEGMENT_MISSING', 'ENVELOPE_MALFORMED', 'ENVELOPE_UNSUPPORTED'],
    ...['PROOF_MALFORMED', 'DUPLICATE_KEYS', 'NEGATIVE_ZERO', 'NON_FINITE_NUMBER', 'NUMBER_COERCED'],
    ...['NUMBER_INEXACT', 'UNSAFE_INTEGER', 'JOURNAL_EVENT_TOO_LARGE', 'JOURNAL_FOREIGN'],
    ...['JOURNAL_MALFORMED', 'JOURNAL_TORN'],
  ])('is 1 for %s', (code) => {
    expect(exitStatusFor(error(code))).toBe(1);
  });

  it.each([
    ...lacking,
    ...[
      'USAGE',
      'FILE_NOT_FOUND',
      'FILE_CHANGED',
      'IO_FAILED',
      'DISK_FULL',
      'INTERNAL_ERROR',
      'NOT_A_LEDGER',
    ],
    ...[
      'LEDGER_EMPTY',
      'LEDGER_FAILED',
      'LEDGER_LOCKED',
      'LOCK_UNAVAILABLE',
      'RECORD_NOT_FOUND',
      'STATE_INVALID',
    ],
    ...[
      'NOTE_MALFORMED',
      'TRUST_POLICY_INVALID',
      'WITNESS_POLICY_INVALID',
      'KEY_MALFORMED',
      'KEY_UNSUPPORTED',
    ],
    ...['INDEX_UNUSABLE', 'OUT_OF_MEMORY', 'A_CODE_THAT_IS_NEW'],
  ])('is 2 for %s, by which nothing is decided', (code) => {
    expect(exitStatusFor(error(code))).toBe(2);
  });

  it('is what a command says, where a code means another thing to it', () => {
    expect(exitStatusFor(new CommandError('GRANT_NOT_FOUND', ''))).toBe(1);
    expect(exitStatusFor(new CommandError('GRANT_NOT_FOUND', '', { exitStatus: 2 }))).toBe(2);
  });

  it('is 1 for a refused attestation of a checkpoint that is not there', () => {
    expect(exitStatusForRefusal(error('CHECKPOINT_MISSING'))).toBe(1);
    expect(exitStatusForRefusal(error('SIGNATURE_MISSING'))).toBe(2);
    expect(exitStatusForRefusal(error('SCHEMA'))).toBe(1);
  });
});

describe('the hint for an error', () => {
  it('names the flag or the command, and the ledger where it is known', () => {
    expect(hintFor(error('SIGNATURE_MISSING', 'give a signer'))).toContain('--key');
    expect(hintFor(error('LEDGER_INVALID'))).toContain('northroot verify LEDGER ');
    expect(hintFor(error('LEDGER_INVALID'), 'a b.jsonl')).toContain("northroot verify 'a b.jsonl' ");
    for (const unnamed of ['-', '\u001b[2J']) {
      expect(hintFor(error('LEDGER_INVALID'), unnamed)).toContain('northroot verify LEDGER ');
    }
  });

  it("is the error's own where the command line knows no better, or a command made it", () => {
    expect(hintFor(error('KEY_ENCRYPTED', 'LEDGER'), 'a.jsonl')).toBe('LEDGER');
    expect(hintFor(new CommandError('LEDGER_INVALID', '', { hint: 'x' }))).toBe('x');
    expect(hintFor(new CommandError('X', '', { hint: 'northroot log LEDGER' }), 'a.jsonl')).toBe(
      'northroot log a.jsonl',
    );
    expect(hintFor(new CommandError('LEDGER_INVALID', ''))).toBeUndefined();
    expect(hintFor(error('RECORD_NOT_FOUND', 'it has 3 records'))).toMatch(
      /^it has 3 records; northroot log /,
    );
  });

  it('names --strict where that is why an event was refused', () => {
    expect(hintFor(new StrictError([]))).toContain('--strict');
  });

  it('explains the code of a finding that has no other', () => {
    const issue = {
      code: 'TIMESTAMP_INVALID',
      pointer: '/occurred_at',
      expected: 'a time',
      actual: '1',
    } as const;
    expect(hintFor(new EventError([issue]))).toBe('northroot explain TIMESTAMP_INVALID');
    for (const code of ['IO_FAILED', 'constructor']) expect(hintFor(error(code))).toBeUndefined();
  });

  it('says what a file of another kind is given with', () => {
    const policy = new OtherFileError('x', 'a trust policy', 'give the ledger');
    expect(hintFor(policy)).toContain('--trust');
    const secret = new OtherFileError('x', 'a private key', 'check the path');
    expect(hintFor(secret)).toBe('check the path');
    expect(hintFor(error('NOT_A_LEDGER', 'check the path'))).toBe('check the path');
  });
});

describe('what to do about a finding', () => {
  it('is said for every code, with commands where one helps', () => {
    for (const code of Object.keys(CODE_PAGES) as FindingCode[]) expect(remedyFor(code)).toMatch(/\.$/);
    expect(remedyFor('LINE_TORN')).toContain('northroot repair');
    expect(remedyFor('DUPLICATE_KEY')).toBe(CODE_PAGES.DUPLICATE_KEY.remedy);
  });

  it('names the flags that have checked what was not', () => {
    expect(commandGuide.notChecked?.('TRUST')).toContain('--trust');
    expect(commandGuide.notChecked?.('constructor')).toBeUndefined();
  });
});
