/** Files that are imported while they are written, and again when they are whole: the same events as at once. Of CGF, see its own tests. */

import { describe, expect, it } from 'vitest';
import { claudeCode } from '../../src/hosts/claude-code/index.js';
import { clasper } from '../../src/hosts/clasper/index.js';
import { codex } from '../../src/hosts/codex/index.js';
import { litellm } from '../../src/hosts/litellm/index.js';
import { openclaw } from '../../src/hosts/openclaw/index.js';
import { otlp } from '../../src/hosts/otlp/index.js';
import { differencesOfCuts } from './cuts.js';
import { hasRecordings, recordedFile } from './recorded.js';
import { sample } from './samples.js';

it.each([
  [claudeCode, 'hooks.jsonl'],
  [claudeCode, 'transcript.jsonl'],
  [codex, 'rollout.jsonl'],
  [litellm, 'spend-logs.jsonl'],
  [otlp, 'traces.jsonl'],
] as const)('$name: $1', (host, name) => {
  expect(differencesOfCuts(host, sample(host.name, name))).toEqual([]);
});

describe.skipIf(!hasRecordings)('recordings', () => {
  it.each([
    [clasper, 'clasper/run/http.jsonl', 7],
    [openclaw, 'openclaw/run-2026.3.13/plugin-hooks.jsonl', 9],
    [openclaw, 'openclaw/run-2026.3.13/session-transcript.jsonl', 1],
  ] as const)('$name: $1', (host, path, every) => {
    expect(differencesOfCuts(host, recordedFile(path), {}, every)).toEqual([]);
  });
});
