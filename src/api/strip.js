/**
 * Leaves out of `dist/` what no build made now, and of its declarations what no entry point reaches. The others keep their comments, for
 * editors. Part of `npm run build`, before bundles are made.
 */

import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const root = fileURLToPath(new URL('../../', import.meta.url));
const made = readdirSync(`${root}dist`, { recursive: true, withFileTypes: true })
  .filter((each) => each.isFile())
  .map(({ parentPath, name }) => join(parentPath, name));
const sourceOf = (file) => file.replace(`${root}dist`, `${root}src`).replace(/\.d\.ts$/, '.ts');
const declarations = made.filter((file) => file.endsWith('.d.ts') && existsSync(sourceOf(file)));
for (const file of made) if (!declarations.includes(file)) rmSync(file);

/** Files that users import. */
const isEntry = (file) => /\/dist\/(?:api\/[^/]+|gate\/sdk\/[^/]+|hosts\/[^/]+\/index)\.d\.ts$/.test(file);
const program = ts.createProgram(declarations.filter(isEntry), {
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  target: ts.ScriptTarget.ES2023,
  noLib: true,
  types: [],
});
const checker = program.getTypeChecker();
const sources = new Set(program.getSourceFiles().filter(({ fileName }) => declarations.includes(fileName)));

/** Statements that an entry point reaches. A set goes on to what is added while it is read. */
const reached = new Set();
for (const source of sources) if (isEntry(source.fileName)) reach(checker.getSymbolAtLocation(source));
for (const statement of reached) {
  visit(statement, (node) => {
    if (ts.isIdentifier(node)) reach(checker.getSymbolAtLocation(node));
    if (ts.isImportTypeNode(node))
      reach(checker.getSymbolAtLocation(node.qualifier ?? node.argument.literal));
  });
}
const kept = new Map([...sources].map((source) => [source.fileName, keptOf(source)]));
for (const file of declarations) {
  const text = kept.get(file) ?? '';
  if (text !== '' || isEntry(file))
    writeFileSync(file, /^(?:im|ex)port /m.test(text) ? text : `${text}export {};\n`);
  else rmSync(file);
}

function reach(symbol) {
  const target = targetOf(symbol);
  for (const declaration of target?.declarations ?? []) {
    if (!sources.has(declaration.getSourceFile())) continue;
    if (ts.isSourceFile(declaration)) checker.getExportsOfModule(target).forEach(reach);
    else reached.add(statementOf(declaration));
  }
}

function targetOf(symbol) {
  return symbol !== undefined && symbol.flags & ts.SymbolFlags.Alias
    ? checker.getAliasedSymbol(symbol)
    : symbol;
}

function statementOf(node) {
  return ts.isSourceFile(node.parent) ? node : statementOf(node.parent);
}

function visit(node, look) {
  look(node);
  ts.forEachChild(node, (child) => visit(child, look));
}

/** The text of a file with what is reached, and what that imports. */
function keptOf(source) {
  const used = new Set();
  for (const statement of source.statements) {
    if (reached.has(statement)) visit(statement, (node) => ts.isIdentifier(node) && used.add(node.text));
  }
  return source.statements.map((statement) => textOf(statement, source, used)).join('');
}

function textOf(statement, source, used) {
  if (ts.isImportDeclaration(statement)) {
    const { name, namedBindings, isTypeOnly } = statement.importClause ?? {};
    const from = `from ${statement.moduleSpecifier.getText()};\n`;
    const type = isTypeOnly ? 'type ' : '';
    if (namedBindings === undefined || ts.isNamespaceImport(namedBindings)) {
      const local = name ?? namedBindings?.name;
      return local === undefined || used.has(local.text) ? `${statement.getText()}\n` : '';
    }
    const names = namedBindings.elements.filter((each) => used.has(each.name.text));
    return names.length === 0 ? '' : `import ${type}{ ${textsOf(names)} } ${from}`;
  }
  if (ts.isExportDeclaration(statement)) {
    const { exportClause, moduleSpecifier, isTypeOnly } = statement;
    if (isEntry(source.fileName) || exportClause === undefined || ts.isNamespaceExport(exportClause))
      return `${statement.getText()}\n`;
    const names = exportClause.elements.filter(({ name }) =>
      targetOf(checker.getSymbolAtLocation(name))?.declarations?.some(
        (each) => !sources.has(each.getSourceFile()) || reached.has(statementOf(each)),
      ),
    );
    const from = moduleSpecifier === undefined ? '' : ` from ${moduleSpecifier.getText()}`;
    return names.length === 0 ? '' : `export ${isTypeOnly ? 'type ' : ''}{ ${textsOf(names)} }${from};\n`;
  }
  const isKept = reached.has(statement) || ts.isModuleDeclaration(statement);
  return isKept ? `${source.text.slice(statement.getFullStart(), statement.end).trim()}\n` : '';
}

function textsOf(names) {
  return names.map((name) => name.getText()).join(', ');
}
