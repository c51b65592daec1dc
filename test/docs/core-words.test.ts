/** The library speaks to programs: none of its words names a flag or a command. What does is in `src/cli/`. */

import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { GROUPS } from '../../src/cli/main.js';
import { makeProgram } from '../../src/cli/program.js';
import { readText, root } from './markdown.js';

const files = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts') && !/^(?:cli|format\/schema\/generated)\//.test(path))
  .sort();

/** The texts of strings and templates; what a template fills in stands as a blank. */
function stringsOf(source: string): string[] {
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isTemplateExpression(node)) {
      found.push(
        [node.head, ...node.templateSpans.map(({ literal }) => literal)].map(({ text }) => text).join(' '),
      );
    } else if (ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node)) found.push(node.text);
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile('source.ts', source, ts.ScriptTarget.Latest, false));
  return found;
}

const commands = makeProgram(GROUPS, () => Promise.resolve()).commands.map((command) => command.name());
const FLAG = /(?<![\w-])--[a-z]/;
const COMMAND = new RegExp(`\\bnorthroot (?:${commands.join('|')})\\b`);

/** They give other programs flags of theirs. */
const STARTS_OTHERS = ['gate/hook/doctor.ts', 'gate/kernel/exec-tool.ts', 'gate/kernel/isolation.ts'];

const namesCli = (text: string): boolean => FLAG.test(text) || COMMAND.test(text);

describe('the words of the library', () => {
  it.each([
    ["const a = 'give the key with --key'", 1],
    ['const a = `${name}: northroot verify says more`', 1],
    [
      "// --key\nconst a = '-----BEGIN PUBLIC KEY-----', b = 'a northroot that knows', c = 'northroot-state'",
      0,
    ],
  ])('are told in %s', (source, count) => {
    expect(stringsOf(source).filter(namesCli)).toHaveLength(count);
  });

  it('name neither flags nor commands', () => {
    expect(files.length).toBeGreaterThan(100);
    expect(commands).toContain('verify');
    const sources = files.map((file) => [file, readText(join('src', file))] as const);
    const found = sources
      .filter(([, source]) => namesCli(source))
      .flatMap(([file, source]) => stringsOf(source).map((text) => [file, text] as const))
      .filter(([file, text]) => namesCli(text) && !(STARTS_OTHERS.includes(file) && text.startsWith('--')));
    expect(found).toEqual([]);
  });
});
