/** What `northroot/verify` loads, read from the sources: nothing of Node, whether it is imported or global. */

import { dirname, join, normalize } from 'node:path';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { readText } from '../docs/markdown.js';

const PLATFORM = 'base/platform/web.ts';
const NODES_GLOBALS = new Set(['Buffer', 'process', 'global', '__dirname', '__filename', 'setImmediate']);

interface Source {
  readonly file: string;
  /** Paths from src, and packages. */
  readonly imports: readonly string[];
  readonly globals: readonly string[];
}

function read(file: string): Source {
  const source = ts.createSourceFile(file, readText(join('src', file)), ts.ScriptTarget.ES2023, true);
  const imports: string[] = [];
  const globals: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) {
      const specifier = node.moduleSpecifier;
      if (specifier !== undefined && ts.isStringLiteral(specifier) && !isTypeOnly(node)) {
        imports.push(resolve(file, specifier.text));
      }
      return;
    }
    if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) {
      imports.push(
        resolve(file, node.arguments.map((each) => (ts.isStringLiteral(each) ? each.text : '?'))[0]),
      );
    }
    if (ts.isIdentifier(node) && NODES_GLOBALS.has(node.text) && !isMemberName(node)) globals.push(node.text);
    ts.forEachChild(node, visit);
  };
  visit(source);
  return { file, imports, globals };
}

/** As TypeScript leaves them out: `verbatimModuleSyntax` keeps everything else. */
function isTypeOnly(node: ts.ImportDeclaration | ts.ExportDeclaration): boolean {
  return ts.isImportDeclaration(node)
    ? node.importClause?.phaseModifier === ts.SyntaxKind.TypeKeyword
    : node.isTypeOnly;
}

function isMemberName({ parent, pos }: ts.Identifier): boolean {
  if (ts.isPropertyAccessExpression(parent)) return parent.name.pos === pos;
  return ts.isPropertyAssignment(parent) && parent.name.pos === pos;
}

function resolve(from: string, specifier: string): string {
  if (specifier === '#platform') return PLATFORM;
  if (specifier.startsWith('#fast/')) return `${specifier.slice(1)}.ts`;
  if (!specifier.startsWith('.')) return specifier;
  return normalize(join(dirname(from), specifier)).replace(/\.js$/, '.ts');
}

function load(file: string, loaded = new Map<string, Source>()): Map<string, Source> {
  const source = read(file);
  loaded.set(file, source);
  for (const each of source.imports) if (each.endsWith('.ts') && !loaded.has(each)) load(each, loaded);
  return loaded;
}

describe('northroot/verify', () => {
  const loaded = load('api/verify.ts');
  const sources = [...loaded.values()];

  it('loads the rules, the reports, the proofs and the notes', () => {
    expect([...loaded.keys()]).toEqual(
      expect.arrayContaining([
        'rules/verify/verify-line.ts',
        'out/text/report.ts',
        'proof/verify-proof.ts',
        'format/note/verify-note.ts',
        PLATFORM,
      ]),
    );
  });

  it('loads no file that touches the outside, and none that holds private keys', () => {
    const outside =
      /^(?:log|cli)\/|^proof\/witness\/|private-key|pkcs8|signature\/signer|saved-state|platform\/(?:node|buffer)/;
    expect([...loaded.keys()].filter((file) => outside.test(file))).toEqual([]);
  });

  it('imports nothing of Node, and of packages these', () => {
    const packages = sources.flatMap(({ imports }) => imports.filter((each) => !each.endsWith('.ts')));
    expect(packages.filter((each) => each.startsWith('node:'))).toEqual([]);
    expect(new Set(packages)).toEqual(
      new Set([
        '@noble/curves/nist.js',
        '@noble/ed25519',
        '@noble/hashes/sha2.js',
        '@noble/post-quantum/ml-dsa.js',
        'canonicalize',
        'cbor-x/index-no-eval',
      ]),
    );
  });

  it("names none of Node's globals", () => {
    const users = sources.filter(({ globals }) => globals.length > 0);
    expect(users.map(({ file, globals }) => `${file}: ${globals.join()}`)).toEqual([]);
    // What is looked for would be found.
    expect(read('base/platform/node.ts').globals).toContain('Buffer');
    expect(read('format/key/private-key.ts').imports).toContain('node:crypto');
  });

  it('exports nothing that northroot does not export', async () => {
    const [part, whole] = await Promise.all([
      import('../../src/api/verify.js'),
      import('../../src/api/index.js'),
    ]);
    const all = new Map<string, unknown>(Object.entries(whole));
    const strange = Object.entries(part).filter(([name, value]) => all.get(name) !== value);
    expect(strange.map(([name]) => name)).toEqual([]);
    expect(Object.keys(part)).toContain('verifyChunks');
  });
});
