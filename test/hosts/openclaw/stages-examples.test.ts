/** The extensions of examples/openclaw-stages, as they run. */

import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { openclawPipeline } from '../../../src/hosts/openclaw/index.js';
import { temporaryFolder } from '../../writer/support.js';
import { fileOf } from './kit.js';

const RUN = fileURLToPath(new URL('../../../examples/openclaw-stages/run.js', import.meta.url));

it('thread ownership and telegram run in one pipeline, whose recording passes the checks', () => {
  const cwd = temporaryFolder();
  const { stdout, stderr, status } = spawnSync(process.execPath, [RUN], { cwd, encoding: 'utf8' });
  expect([stderr, status]).toEqual(['', 0]);
  expect(stdout.split('\n')).toEqual([
    // Another agent's thread; one where this one is mentioned; a free one; one of which nobody can tell.
    'cancel - the thread is another agent’s',
    'allow - -',
    'allow - -',
    'problem HANDLER_FAILED at egress.preparing',
    'allow - -',
    // Telegram: normalized, an account of its own for the chat, and the request.
    'hi true olga',
    'allow support -',
    'support {"chat_id":"99","message_thread_id":3,"text":"hi olga"} 13',
    '',
  ]);
  const text = readFileSync(join(cwd, 'stages.jsonl'), 'utf8');
  const { items, findings } = openclawPipeline.check([fileOf('stages.jsonl', text)]);
  expect(findings).toEqual([]);
  expect(items.filter(({ type }) => type === 'stage')).toHaveLength(17);
  expect(text).not.toContain('olga');
});
