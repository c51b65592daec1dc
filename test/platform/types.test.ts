/** What users of `northroot/verify` compile needs no types of Node, whichever way their compiler resolves modules. */

import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

const USER = `
import { verifyChunks, verifyProof, parseProofKey, type Report } from 'northroot/verify';
export async function show(file: File, proof: Uint8Array): Promise<Report['verdict']> {
  verifyProof(proof, { keys: [parseProofKey('x')] }).verdict satisfies string;
  await verifyChunks(file.stream());
  await verifyChunks([new Uint8Array()]);
  return (await verifyChunks(file, { name: file.name, signal: new AbortController().signal })).verdict;
}`;

const parsed = new Map<string, ts.SourceFile | undefined>();

/** What the compiler says of a file that stands in the package, and so may import it by its name. */
function compile(text: string, options: ts.CompilerOptions): string[] {
  const file = `${ROOT}user.ts`;
  const whole: ts.CompilerOptions = {
    target: ts.ScriptTarget.ES2022,
    lib: ['lib.es2023.d.ts', 'lib.dom.d.ts', 'lib.dom.iterable.d.ts'],
    types: [],
    strict: true,
    exactOptionalPropertyTypes: true,
    noEmit: true,
    // The declarations of the package themselves are looked at.
    skipLibCheck: false,
    skipDefaultLibCheck: true,
    ...options,
  };
  const host = ts.createCompilerHost(whole);
  const inherited = { ...host };
  host.fileExists = (name) => name === file || inherited.fileExists(name);
  host.readFile = (name) => (name === file ? text : inherited.readFile(name));
  host.getSourceFile = (name, version, ...rest) => {
    if (name === file) return ts.createSourceFile(name, text, version);
    if (!parsed.has(name)) parsed.set(name, inherited.getSourceFile(name, version, ...rest));
    return parsed.get(name);
  };
  const program = ts.createProgram([file], whole, host);
  return ts
    .getPreEmitDiagnostics(program)
    .map(
      ({ messageText, file: at }) => `${at?.fileName}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`,
    );
}

describe('the types of northroot/verify', () => {
  it.each([
    ['bundler', { module: ts.ModuleKind.ESNext, moduleResolution: ts.ModuleResolutionKind.Bundler }],
    ['nodenext', { module: ts.ModuleKind.NodeNext, moduleResolution: ts.ModuleResolutionKind.NodeNext }],
  ])('need no types of Node by %s', (_, options) => {
    expect(compile(USER, options)).toEqual([]);
    // What is missing would be said.
    const wrong = "import { verifyChunks } from 'northroot/verify'; void verifyChunks(1);";
    expect(compile(wrong, options)).toHaveLength(1);
  });
});
