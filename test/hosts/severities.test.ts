/** The same situation is judged alike, whichever host recorded it. */

import { expect, it } from 'vitest';
import type { Host } from '../../src/hosts/shared/host.js';
import { reportImport } from '../../src/hosts/shared/import-report.js';
import { planImport } from '../../src/hosts/shared/import.js';
import { claudeCode } from '../../src/hosts/claude-code/index.js';
import { openclaw } from '../../src/hosts/openclaw/index.js';
import { fileOf, verifyPlan } from './samples.js';

const AT = '2026-03-01T10:00:00.000Z';

/** A transcript of each, in which a tool ran and nobody decided. */
const TRANSCRIPTS: readonly (readonly [Host, readonly object[]])[] = [
  [
    claudeCode,
    [
      {
        type: 'assistant',
        uuid: 'a',
        sessionId: 's',
        timestamp: AT,
        message: {
          id: 'm',
          role: 'assistant',
          model: 'x',
          content: [{ type: 'tool_use', id: 't1', name: 'Read', input: {} }],
        },
      },
      {
        type: 'user',
        uuid: 'b',
        parentUuid: 'a',
        sessionId: 's',
        timestamp: AT,
        message: { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't1', content: 'r' }] },
      },
    ],
  ],
  [
    openclaw,
    [
      { type: 'session', version: 3, id: 's', timestamp: AT },
      {
        type: 'message',
        id: 'a',
        parentId: null,
        timestamp: AT,
        message: {
          role: 'assistant',
          content: [{ type: 'toolCall', id: 't1', name: 'read', arguments: {} }],
        },
      },
      {
        type: 'message',
        id: 'b',
        parentId: 'a',
        timestamp: AT,
        message: { role: 'toolResult', toolCallId: 't1', toolName: 'read', content: [], isError: false },
      },
    ],
  ],
];

it.each(TRANSCRIPTS.map(([host, lines]) => [host.name, host, lines] as const))(
  'a tool that ran without a decision lacks evidence, by the import and by the ledger: %s',
  async (_name, host, lines) => {
    const plan = planImport(host, [fileOf('f', lines)]);
    expect(plan.findings.filter(({ lacks }) => lacks === 'decision')).toMatchObject([
      { severity: 'error', class: 'invalid' },
    ]);
    expect(reportImport(plan).verdict).toBe('invalid');
    const report = await verifyPlan(plan);
    expect(report.findings.map(({ code }) => code)).toContain('AUTH_NOT_FOUND');
    expect(report.verdict).toBe('invalid');
  },
);
