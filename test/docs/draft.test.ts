/** The Internet-Draft that `npm run draft` makes of docs/spec. */

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { CODE_PAGES } from '../../src/api/index.js';
import { headings, namedBlocks, readText, root } from './markdown.js';

const folder = mkdtempSync(join(tmpdir(), 'northroot-draft-'));
const made = spawnSync(process.execPath, [join(root, '.ci/draft.js'), folder], { encoding: 'utf8' });
const path = made.stdout.split('\n')[0] ?? '';
const xml = made.status === 0 ? readFileSync(path, 'utf8') : '';

afterAll(() => rmSync(folder, { recursive: true }));

/** Whether a program is there to be run. */
function has(program: string): boolean {
  const isThere = spawnSync(program, ['--version']).error === undefined;
  if (!isThere) console.warn(`notice: ${program} is not installed; the test with it is skipped`);
  return isThere;
}

const source = [
  ...xml.matchAll(/<sourcecode(?: type="(\w+)")?><!\[CDATA\[\n([^]*?)\n\]\]><\/sourcecode>/g),
].map(([, type, text = '']) => ({ type, text }));
const markup = xml.replace(/<!\[CDATA\[[^]*?\]\]>/g, '').replace(/<\?xml.*?\?>/, '');
const valuesOf = (attribute: string) =>
  [...markup.matchAll(new RegExp(` ${attribute}="([^"]*)"`, 'g'))].map(([, value = '']) => value);

/** Takes back what RFC 8792 folded. */
function unfolded(text: string): string {
  const [first = '', , ...rest] = text.split('\n');
  if (!first.includes('RFC 8792')) return text;
  return rest.join('\n').replace(/\\\n */g, '');
}

/** The documents that require something. */
const REQUIRING = [
  ...['format', 'verification', 'bundle', 'proofs', 'witness', 'passkeys', 'registries', 'security', 'codes'],
  'ed25519-verdicts',
];

/** Words alone, one space between them. */
function wordsOf(text: string): string {
  return (text.replace(/\b_|_\b/g, ' ').match(/[A-Za-z0-9_]+/g) ?? []).join(' ');
}

/** Markdown whose links are their texts, and whose references, which have other names in the draft, are left out. */
function withoutReferences(markdown: string): string {
  return markdown
    .replace(/\[([^\]]*)\]\([^)]*\)/g, (_, text: string) =>
      /^(?:format )?§|\.(?:md|cddl|abnf)$/.test(text) ? ' ' : text,
    )
    .replace(/\bRFC \d+(?: §\d+)?|FIPS [\d-]+|(?:format )?§[\d.]+/g, ' ');
}

/** Elements of RFC 7991, each with those that may be in it. */
const INLINE = ['tt', 'em', 'strong', 'xref', 'eref', 'bcp14'];
const BLOCKS = ['t', 'ul', 'ol', 'dl', 'table', 'sourcecode', 'section'];
const CONTENT: Readonly<Record<string, readonly string[]>> = {
  '': ['rfc'],
  rfc: ['front', 'middle', 'back'],
  front: ['title', 'seriesInfo', 'author', 'date', 'keyword', 'abstract'],
  abstract: ['t'],
  author: ['organization'],
  middle: ['section'],
  back: ['references', 'section'],
  references: ['name', 'references', 'reference'],
  reference: ['front', 'seriesInfo'],
  section: ['name', ...BLOCKS],
  name: INLINE,
  t: INLINE,
  strong: INLINE,
  em: INLINE,
  ul: ['li'],
  ol: ['li'],
  dl: ['dt', 'dd'],
  li: BLOCKS,
  dt: INLINE,
  dd: INLINE,
  table: ['thead', 'tbody'],
  thead: ['tr'],
  tbody: ['tr'],
  tr: ['th', 'td'],
  th: INLINE,
  td: INLINE,
};

describe('the Internet-Draft', () => {
  it('is made', () => {
    expect([made.status, /warning|error/i.exec(made.stderr)]).toEqual([0, null]);
    expect(path).toMatch(/draft-northroot-ledger-\d\d\.xml$/);
  });

  it('is of elements in their places', () => {
    const open: string[] = [];
    const wrong: string[] = [];
    for (const [, close, name = '', empty] of markup.matchAll(/<(\/)?([a-zA-Z0-9]+)[^<>]*?(\/)?>/g)) {
      if (close !== undefined) {
        if (open.pop() !== name) wrong.push(`</${name}>`);
        continue;
      }
      const above = open.at(-1) ?? '';
      if (CONTENT[above]?.includes(name) !== true) wrong.push(`<${above}><${name}>`);
      if (empty === undefined) open.push(name);
    }
    expect([wrong, open]).toEqual([[], []]);
    // Whatever is left is text.
    expect(
      markup
        .replace(/<\/?[a-zA-Z0-9]+(?: [a-zA-Z:]+="[^"<>]*")*\/?>/g, '')
        .match(/[<>]|&(?!(?:amp|lt|gt|quot);)/g),
    ).toBeNull();
  });

  it('has what an Internet-Draft needs', () => {
    expect(markup).toContain(' ipr="trust200902"');
    const name = /docName="([^"]+)"/.exec(markup)?.[1] ?? '';
    expect(path.endsWith(`/${name}.xml`)).toBe(true);
    expect(markup).toContain(`<seriesInfo name="Internet-Draft" value="${name}"/>`);
    for (const part of [
      'Security Considerations',
      'IANA Considerations',
      'Normative References',
      'CDDL',
      'ABNF',
    ]) {
      expect(markup).toContain(`<name>${part}</name>`);
    }
    expect(markup.match(/<name>application\/[^<]+<\/name>/g)).toHaveLength(3);
    expect(markup).toContain('<bcp14>NOT RECOMMENDED</bcp14>');
  });

  it('refers to what is there, and to all of its references', () => {
    const anchors = valuesOf('anchor');
    expect(anchors.filter((each, at) => anchors.indexOf(each) !== at)).toEqual([]);
    const targets = [...markup.matchAll(/<xref target="([^"]*)"/g)].map(([, target]) => target);
    expect(targets.filter((each) => !anchors.includes(each ?? ''))).toEqual([]);
    const references = [...markup.matchAll(/<reference anchor="([^"]*)"/g)].map(([, anchor]) => anchor);
    expect(references.length).toBeGreaterThan(20);
    expect(references.filter((each) => !targets.includes(each))).toEqual([]);
    const text = markup.replace(/<references>[^]*<\/references>/, '').replace(/<[^>]*>/g, ' ');
    // Documents are sections here, and their numbers others.
    expect(text.match(/\S*\.md\b|§ ?\d\S*|\bRFC \d{4}/g)).toBeNull();
    // Nor is what is beside them in the project.
    expect(
      text.match(/\breport\.json|\S*ed25519-verdicts\.json|has a schema|The guide|fixtures\/|\bsrc\//g),
    ).toBeNull();
    for (const needed of [
      'RFC2119',
      'RFC8174',
      'RFC8785',
      'RFC8032',
      'RFC6962',
      'RFC8610',
      'FIPS204',
      'DSSE',
      'WEBAUTHN',
    ]) {
      expect(references).toContain(needed);
    }
  });

  it('has every code, every step and the grammars', () => {
    for (const code of Object.keys(CODE_PAGES)) expect(markup).toContain(`<tr><td><tt>${code}</tt></td>`);
    for (const heading of headings(readText('docs/spec/verification.md'))) {
      if (/^Step \d/.test(heading)) expect(markup).toContain(`<name>${heading}</name>`);
    }
    for (const type of ['cddl', 'abnf']) {
      const texts = source.filter((each) => each.type === type).map(({ text }) => unfolded(text));
      const own = readText(`docs/spec/northroot.${type}`).replace(/^; Generated .*\n\n/, '');
      expect(texts).toContain(own.trimEnd());
      // A file of the project says nothing in a standard.
      expect(texts.join('\n').match(/\S+\.(?:js|json|md|cddl|abnf)\b/g)).toBeNull();
    }
  });

  it('has every requirement of the documents', () => {
    const said = wordsOf(xml.replace(/<xref[^>]*\/>|<!\[CDATA\[|<[^>]*>|&[a-z]+;/g, ' '));
    const missing: string[] = [];
    let count = 0;
    for (const name of REQUIRING) {
      const [text = ''] = readText(`docs/spec/${name}.md`)
        .replace(/^```[^]*?^```$/gm, '')
        .split(/^## (?:Northroot journals|Media types|Schemas)$/m);
      const clauses = withoutReferences(text).split(/\n|[.;:|](?=\s|$)/);
      for (const clause of clauses) {
        if (!/\b(?:MUST|SHOULD|MAY|REQUIRED|RECOMMENDED|OPTIONAL)\b/.test(clause)) continue;
        // The draft says in its own words how these are meant.
        if (/\bwords of\b/.test(clause)) continue;
        count += 1;
        if (!said.includes(wordsOf(clause))) missing.push(clause.trim());
      }
    }
    expect(missing).toEqual([]);
    expect(count).toBeGreaterThan(140);
  });

  it('has the worked bytes, byte for byte', () => {
    const texts = new Set(source.map(({ text }) => unfolded(text)));
    const blocks = ['format', 'passkeys'].flatMap((name) => [
      ...namedBlocks(readText(`docs/spec/${name}.md`)).values(),
    ]);
    expect(blocks.length).toBeGreaterThan(40);
    expect(blocks.filter((each) => !texts.has(each))).toEqual([]);
    for (const { text } of source) {
      for (const line of text.split('\n')) expect(line.length).toBeLessThanOrEqual(72);
    }
  });

  it.skipIf(!has('xmllint'))('is well-formed XML', () => {
    const { status, stderr } = spawnSync('xmllint', ['--noout', '--nonet', path], { encoding: 'utf8' });
    expect([status, stderr]).toEqual([0, '']);
  });

  it.skipIf(!has('xml2rfc'))('is what xml2rfc reads without a warning', () => {
    expect(`${made.stdout}${made.stderr}`.match(/warning|error/i)).toBeNull();
    const text = path.replace(/xml$/, 'txt');
    expect(readFileSync(text, 'utf8')).toContain('Status of This Memo');
  });
});
