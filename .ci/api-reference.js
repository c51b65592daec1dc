/**
 * The API reference: for each entry point of package.json `exports`, each exported value with its signature and its docstring,
 * read from the built declarations, in `dist/reference/NAME.md`. Fails when a value has no docstring. Needs a build.
 */

import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const root = fileURLToPath(new URL('..', import.meta.url));
const folder = `${root}dist/reference`;

/** Entry points by the name that a program imports; a name with `*` is one for each folder that matches. */
const entryPoints = Object.entries(JSON.parse(readFileSync(`${root}package.json`, 'utf8')).exports)
  .filter(([, target]) => target.types !== undefined)
  .flatMap(([name, { types }]) => {
    if (!name.includes('*')) return [[name, types]];
    const [before, after] = types.split('*');
    return readdirSync(root + before, { withFileTypes: true })
      .filter((entry) => entry.isDirectory() && ts.sys.fileExists(root + before + entry.name + after))
      .map((entry) => [name.replace('*', entry.name), before + entry.name + after]);
  })
  .map(([name, types]) => ({ name: `northroot${name.slice(1)}`, path: root + types.slice(2) }));

const program = ts.createProgram(
  entryPoints.map(({ path }) => path),
  { module: ts.ModuleKind.NodeNext, target: ts.ScriptTarget.ES2023, strict: true, types: ['node'] },
);
const checker = program.getTypeChecker();
const printer = ts.createPrinter({ removeComments: true });
const undocumented = new Set();

rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
for (const { name, path } of entryPoints) {
  const file = program.getSourceFile(path);
  if (file === undefined) throw new Error(`${path} is not built: npm run build`);
  const symbols = checker
    .getExportsOfModule(checker.getSymbolAtLocation(file))
    .map((exported) => ({ name: exported.name, symbol: declared(exported) }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  const isValue = ({ symbol }) => (symbol.flags & ts.SymbolFlags.Value) !== 0;
  const types = symbols.filter((each) => !isValue(each)).map((each) => `\`${each.name}\``);
  const sections = symbols.filter(isValue).map((each) => valueSection(each));
  writeFileSync(
    `${folder}/${name.replaceAll('/', '-')}.md`,
    [`# ${name}`, ...sections, ...(types.length === 0 ? [] : ['## Types', `${types.join(', ')}.`])].join(
      '\n\n',
    ) + '\n',
  );
  console.log(`${name}: ${sections.length} values, ${types.length} types`);
}
if (undocumented.size > 0) {
  console.error(`without a docstring: ${undocumented.size}\n${[...undocumented].sort().join('\n')}`);
  process.exitCode = 1;
}

/** An export is often an alias of what another file declares. */
function declared(symbol) {
  return symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
}

function valueSection({ name, symbol }) {
  const text = ts.displayPartsToString(symbol.getDocumentationComment(checker));
  const tags = symbol.getJsDocTags(checker).map((tag) => tagLine(tag));
  if (text === '') {
    const [{ fileName }] = symbol.declarations.map((each) => each.getSourceFile());
    undocumented.add(`${name} (${fileName.slice(root.length)})`);
  }
  const signatures = symbol.declarations.map((each) => signatureOf(each));
  const parts = [`## ${name}`, `\`\`\`ts\n${signatures.join('\n')}\n\`\`\``, text, tags.join('\n')];
  return parts.filter((part) => part !== '').join('\n\n');
}

function tagLine({ name, text }) {
  const said = ts.displayPartsToString(text).replace(/\s+/g, ' ').trim();
  return `- \`@${name}\`${said === '' ? '' : ` ${said}`}`;
}

/** The declaration as the .d.ts has it, without `export declare` and comments. */
function signatureOf(declaration) {
  const statement = ts.isVariableDeclaration(declaration) ? declaration.parent.parent : declaration;
  const source = printer.printNode(ts.EmitHint.Unspecified, statement, declaration.getSourceFile());
  return source.replace(/^export (?:declare )?/, '').replace(/;$/, '');
}
