/**
 * Runs the examples of a document, in its order, in one folder and one shell. What a block is, its first line says:
 *
 * - `sh walk`: a command a line. Its exit status MUST be 0, or that of a comment `# exit N` at its end.
 * - `console`: lines `$ COMMAND`, each followed by exactly what it prints, on both streams. Exit status as above.
 * - `LANGUAGE NAME.EXTENSION`: a file that is there before the first command.
 * - `sh skip`, and every language alone: shown, not run.
 *
 * The folder has `northroot` on its path and as a package, and the repository's `fixtures/`.
 */

import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from './markdown.js';

export interface Block {
  readonly kind: string;
  readonly text: string;
}

/** A command with the status, and in a `console` block the output, that the document gives it. */
export interface Step {
  readonly command: string;
  readonly status: number;
  readonly output?: string;
}

export function blocksOf(text: string): Block[] {
  return [...text.matchAll(/^```([^\n]+)\n(.*?)^```$/gms)].map(([, kind = '', content = '']) => ({
    kind,
    text: content,
  }));
}

const fileOf = (kind: string) => /^\w+ ([\w.-]+\.\w+)$/.exec(kind)?.[1];

export const isRun = ({ kind }: Block) =>
  kind === 'sh walk' || kind === 'console' || fileOf(kind) !== undefined;

function step(line: string, output?: string): Step {
  const [, command = '', status = '0'] = /^(.*?)(?: *# exit (\d+))?$/.exec(line) ?? [];
  return { command, status: Number(status), ...(output === undefined ? {} : { output }) };
}

export function stepsOf(blocks: readonly Block[]): Step[] {
  return blocks.flatMap(({ kind, text }) => {
    if (kind === 'sh walk')
      return text
        .trim()
        .split('\n')
        .map((line) => step(line));
    if (kind !== 'console') return [];
    return [...text.matchAll(/^\$ ([^\n]*)\n(.*?)(?=^\$ |(?![^]))/gms)].map(([, line = '', output = '']) =>
      step(line, output),
    );
  });
}

/** The steps as they went: where a status is not the expected one, with what was printed. */
export function runBlocks(blocks: readonly Block[]): Step[] {
  const folder = mkdtempSync(join(tmpdir(), 'northroot-docs-'));
  try {
    const bin = join(folder, '.bin');
    mkdirSync(bin);
    writeFileSync(join(bin, 'northroot'), `#!/bin/sh\nexec node '${join(root, 'bin/northroot.js')}' "$@"\n`);
    chmodSync(join(bin, 'northroot'), 0o755);
    mkdirSync(join(folder, 'node_modules'));
    symlinkSync(root, join(folder, 'node_modules', 'northroot'));
    symlinkSync(join(root, 'fixtures'), join(folder, 'fixtures'));
    for (const { kind, text } of blocks) {
      const name = fileOf(kind);
      if (name !== undefined) writeFileSync(join(folder, name), text);
    }
    const steps = stepsOf(blocks);
    const script = steps.map(({ command }, i) => `{ ${command}\n} > .bin/${i} 2>&1; echo "$?"`).join('\n');
    const env: NodeJS.ProcessEnv = { ...process.env, PATH: `${bin}:${process.env['PATH']}` };
    delete env['NORTHROOT_KEY'];
    const { stdout, stderr } = spawnSync('bash', ['-c', script], {
      cwd: folder,
      encoding: 'utf8',
      env,
    });
    const statuses = stdout.trim().split('\n').map(Number);
    if (statuses.length !== steps.length) throw new Error(`not every command was run: ${stderr}`);
    return steps.map((expected, i) => {
      const status = statuses[i] ?? -1;
      const isShown = expected.output !== undefined || status !== expected.status;
      return {
        command: expected.command,
        status,
        ...(isShown ? { output: readFileSync(join(bin, String(i)), 'utf8') } : {}),
      };
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
