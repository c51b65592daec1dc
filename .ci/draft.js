/**
 * Writes the specification as an Internet-Draft: `npm run draft [FOLDER]`, by default into `dist-draft/`. From docs/spec it makes
 * xml2rfc v3 XML (RFC 7991), and where the program xml2rfc is installed, text and HTML of it. Nothing is fetched: references are here.
 */

import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const NAME = 'draft-northroot-ledger-00';
/** What an RFC's text has room for. */
const LINE = 69;

const read = (name) => readFileSync(`${root}docs/spec/${name}`, 'utf8');

/** RFC number: title, authors, month, year, and series beside it. */
const RFCS = {
  2119: ['Key words for use in RFCs to Indicate Requirement Levels', ['S. Bradner'], 'March', 1997, 'BCP 14'],
  3629: ['UTF-8, a transformation format of ISO 10646', ['F. Yergeau'], 'November', 2003, 'STD 63'],
  4648: ['The Base16, Base32, and Base64 Data Encodings', ['S. Josefsson'], 'October', 2006],
  5234: [
    'Augmented BNF for Syntax Specifications: ABNF',
    ['D. Crocker', 'P. Overell'],
    'January',
    2008,
    'STD 68',
  ],
  6838: [
    'Media Type Specifications and Registration Procedures',
    ['N. Freed', 'J. Klensin', 'T. Hansen'],
    'January',
    2013,
    'BCP 13',
  ],
  6901: ['JavaScript Object Notation (JSON) Pointer', ['P. Bryan', 'K. Zyp', 'M. Nottingham'], 'April', 2013],
  6962: ['Certificate Transparency', ['B. Laurie', 'A. Langley', 'E. Kasper'], 'June', 2013],
  7405: ['Case-Sensitive String Support in ABNF', ['P. Kyzivat'], 'December', 2014],
  7493: ['The I-JSON Message Format', ['T. Bray'], 'March', 2015],
  7638: ['JSON Web Key (JWK) Thumbprint', ['M. Jones', 'N. Sakimura'], 'September', 2015],
  8032: [
    'Edwards-Curve Digital Signature Algorithm (EdDSA)',
    ['S. Josefsson', 'I. Liusvaara'],
    'January',
    2017,
  ],
  8174: ['Ambiguity of Uppercase vs Lowercase in RFC 2119 Key Words', ['B. Leiba'], 'May', 2017, 'BCP 14'],
  8259: [
    'The JavaScript Object Notation (JSON) Data Interchange Format',
    ['T. Bray'],
    'December',
    2017,
    'STD 90',
  ],
  8610: [
    'Concise Data Definition Language (CDDL): A Notational Convention to Express Concise Binary Object Representation (CBOR) and JSON Data Structures',
    ['H. Birkholz', 'C. Vigano', 'C. Bormann'],
    'June',
    2019,
  ],
  8785: ['JSON Canonicalization Scheme (JCS)', ['A. Rundgren', 'B. Jordan', 'S. Erdtman'], 'June', 2020],
  8792: [
    'Handling Long Lines in Content of Internet-Drafts and RFCs',
    ['K. Watsen', 'E. Auerswald', 'A. Farrel', 'Q. Wu'],
    'June',
    2020,
  ],
  8949: [
    'Concise Binary Object Representation (CBOR)',
    ['C. Bormann', 'P. Hoffman'],
    'December',
    2020,
    'STD 94',
  ],
  9052: [
    'CBOR Object Signing and Encryption (COSE): Structures and Process',
    ['J. Schaad'],
    'August',
    2022,
    'STD 96',
  ],
  9162: [
    'Certificate Transparency Version 2.0',
    ['B. Laurie', 'E. Messeri', 'R. Stradling'],
    'December',
    2021,
  ],
  9942: [
    'CBOR Object Signing and Encryption (COSE) Receipts',
    ['O. Steele', 'H. Birkholz', 'A. Delignat-Lavaud', 'C. Fournet'],
    'June',
    2026,
  ],
};
const INFORMATIVE_RFCS = {
  6920: [
    'Naming Things with Hashes',
    ['S. Farrell', 'D. Kutscher', 'C. Dannewitz', 'B. Ohlman', 'A. Keranen', 'P. Hallam-Baker'],
    'April',
    2013,
  ],
  9881: [
    'Internet X.509 Public Key Infrastructure -- Algorithm Identifiers for the Module-Lattice-Based Digital Signature Algorithm (ML-DSA)',
    ['J. Massimo', 'P. Kampanakis', 'S. Turner', 'B. Westerbaan'],
    'October',
    2025,
  ],
};

/** Other references: title, organization, date, target; and how the documents name them. */
const OTHERS = {
  'FIPS180-4': [
    'Secure Hash Standard (SHS)',
    'NIST',
    { month: 'August', year: 2015 },
    'https://doi.org/10.6028/NIST.FIPS.180-4',
  ],
  'FIPS186-5': [
    'Digital Signature Standard (DSS)',
    'NIST',
    { month: 'February', year: 2023 },
    'https://doi.org/10.6028/NIST.FIPS.186-5',
  ],
  FIPS204: [
    'Module-Lattice-Based Digital Signature Standard',
    'NIST',
    { month: 'August', year: 2024 },
    'https://doi.org/10.6028/NIST.FIPS.204',
  ],
  DSSE: [
    'DSSE: Dead Simple Signing Envelope',
    'Secure Systems Lab',
    {},
    'https://github.com/secure-systems-lab/dsse',
  ],
  'SIGNED-NOTE': ['Note', 'C2SP', {}, 'https://c2sp.org/signed-note'],
  'TLOG-CHECKPOINT': ['Transparency Log Checkpoints', 'C2SP', {}, 'https://c2sp.org/tlog-checkpoint'],
  'TLOG-COSIGNATURE': ['Transparency Log Cosignatures', 'C2SP', {}, 'https://c2sp.org/tlog-cosignature'],
  'TLOG-TILES': ['Tiled Transparency Logs', 'C2SP', {}, 'https://c2sp.org/tlog-tiles'],
  'TLOG-WITNESS': ['Transparency Log Witness Protocol', 'C2SP', {}, 'https://c2sp.org/tlog-witness'],
  'TLOG-PROOF': ['Transparency Log Proofs', 'C2SP', {}, 'https://c2sp.org/tlog-proof'],
  'TLOG-POLICY': ['Transparency Log Policies', 'C2SP', {}, 'https://c2sp.org/tlog-policy'],
  WEBAUTHN: [
    'Web Authentication: An API for accessing Public Key Credentials - Level 3',
    'W3C',
    {},
    'https://www.w3.org/TR/webauthn-3/',
  ],
};
const INFORMATIVE_OTHERS = {
  'IN-TOTO': [
    'in-toto: A framework to secure the integrity of software supply chains',
    'in-toto',
    {},
    'https://in-toto.io',
  ],
  'SLSA-VSA': [
    'SLSA Verification Summary Attestation',
    'OpenSSF',
    {},
    'https://slsa.dev/verification_summary/v1',
  ],
};
const BY_TARGET = new Map(
  Object.entries({ ...OTHERS, ...INFORMATIVE_OTHERS }).map(([anchor, [, , , target]]) => [target, anchor]),
);

/** The documents of the draft's middle, and headings that are left out: what only programs do, or what an appendix holds. */
const DOCUMENTS = [
  'format',
  'verification',
  'bundle',
  'proofs',
  'witness',
  'passkeys',
  'registries',
  'security',
].filter((name) => existsSync(`${root}docs/spec/${name}.md`));
const LEFT_OUT = new Set(['Worked bytes', 'Schemas', 'Media types', 'Northroot journals']);

const cited = new Set();
const anchors = new Map();

function slugOf(heading) {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}_ -]/gu, '')
    .replaceAll(' ', '-');
}

/** A document as a tree of headings with the lines under each. */
function outline(name) {
  const sections = [];
  let isCode = false;
  for (const line of read(`${name}.md`).split('\n')) {
    if (line.startsWith('```')) isCode = !isCode;
    const [, marks, title] = (isCode ? undefined : /^(#+) (.+)$/.exec(line)) ?? [];
    if (title !== undefined)
      sections.push({ level: marks.length, title, lines: [], anchor: `${name}-${slugOf(title)}` });
    else sections.at(-1)?.lines.push(line);
  }
  return withoutLeftOut(sections);
}

function withoutLeftOut(sections) {
  let above;
  return sections.filter(({ level, title }) => {
    if (above !== undefined && level > above) return false;
    above = LEFT_OUT.has(title) ? level : undefined;
    return above === undefined;
  });
}

const outlines = new Map([...DOCUMENTS, 'ed25519-verdicts'].map((name) => [name, outline(name)]));
for (const [name, sections] of outlines) {
  for (const { title, anchor } of sections) {
    anchors.set(`${name}.md#${slugOf(title)}`, anchor);
    const number = /^(\d+(?:\.\d+)?)[. ]/.exec(title)?.[1];
    if (number !== undefined) anchors.set(`§${number}`, anchor);
  }
}
for (const [name, [top]] of outlines) anchors.set(`${name}.md`, top.anchor);
// Their titles are no sections of the draft.
anchors.set('format.md', anchors.get('§1'));
anchors.set('verification.md', anchors.get('§8'));
anchors.set('security.md', 'security');
anchors.set('codes.md', 'codes');
anchors.set('northroot.cddl', 'cddl');
anchors.set('northroot.abnf', 'abnf');

/** The paragraphs of a document before its first section. */
function opening(name) {
  const [top] = outlines.get(name);
  return top.lines
    .join('\n')
    .split(/\n\n+/)
    .map((each) => each.trim())
    .filter((each) => each !== '');
}

function escaped(text) {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}

/** Signs that a text of an RFC has no room for. */
const ASCII = {
  // References are made of it.
  '§': '§',
  '‖': '||',
  '→': '->',
  '−': '-',
  '–': '-',
  '…': '...',
  '·': '*',
  '÷': '/',
  '≤': '<=',
  '≥': '>=',
  '×': 'x',
  '’': "'",
  '“': '"',
  '”': '"',
  '≠': '!=',
  '±': '+/-',
  '—': '--',
};

function plain(text) {
  return text
    .replace(/[\u0080-\u{10ffff}] \((U\+[0-9A-F]+)\)/gu, '$1')
    .replace(
      /[\u0080-\u{10ffff}]/gu,
      (sign) => ASCII[sign] ?? `U+${sign.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}`,
    );
}

function xref(target, text) {
  if (/^RFC|^[A-Z0-9-]+$/.test(target)) cited.add(target);
  return text === undefined ? `<xref target="${target}"/>` : `<xref target="${target}">${text}</xref>`;
}

/** Inline Markdown as XML. */
function inline(markdown, file) {
  const parts = markdown.split(/(`[^`]+`|\[[^\]]*\]\([^)]+\))/);
  return parts.map((part, index) => (index % 2 === 0 ? words(part) : spanOf(part, file))).join('');
}

function spanOf(part, file) {
  if (part.startsWith('`')) return `<tt>${escaped(plain(part.slice(1, -1)))}</tt>`;
  const [, text, target] = /^\[(.*)\]\(([^)]+)\)$/s.exec(part);
  const known = BY_TARGET.get(target);
  if (known !== undefined) return `${words(text)} ${xref(known)}`;
  if (/^https:/.test(target)) return `<eref target="${escaped(target)}">${words(text)}</eref>`;
  const key = target.startsWith('#') ? `${file}.md${target}` : target;
  const anchor = anchors.get(key);
  // What is beside the documents, such as schemas, is not in the draft.
  if (anchor === undefined) return inline(text, file);
  return /^(?:format )?§|\.(?:md|cddl|abnf)$/.test(text)
    ? xref(anchor)
    : xref(anchor, words(text.replaceAll('`', '')));
}

function words(text) {
  return escaped(plain(text))
    .replace(/\*\*(.+?)\*\*/g, '<strong>$1</strong>')
    .replace(/(?<![A-Za-z0-9])_([^_]+)_(?![A-Za-z0-9])/g, '<em>$1</em>')
    .replace(
      /RFC (\d{4}) §(\d+)/g,
      (_, number, section) =>
        `${xref(`RFC${number}`).replace('/>', ` section="${section}" sectionFormat="of"/>`)}`,
    )
    .replace(/RFC (\d{4})/g, (whole, number) =>
      number in RFCS || number in INFORMATIVE_RFCS ? xref(`RFC${number}`) : whole,
    )
    .replace(/FIPS (180-4|186-5|204)/g, (_, number) => xref(`FIPS${number}`))
    .replace(/(?:format )?§(\d+(?:\.\d+)?)/g, (whole, number) => {
      const anchor = anchors.get(`§${number}`);
      return anchor === undefined ? whole.replace('§', 'Section ') : xref(anchor);
    });
}

function blocks(lines, file) {
  const out = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at];
    if (line.trim() === '' || line.startsWith('<!--')) {
      at += 1;
    } else if (line.startsWith('```')) {
      const end = lines.indexOf('```', at + 1);
      const type = line.slice(3).split(' ')[0];
      out.push(code(lines.slice(at + 1, end).join('\n'), type === 'text' ? '' : type));
      at = end + 1;
    } else if (line.startsWith('|')) {
      const end = at + lines.slice(at).findIndex((each) => !each.startsWith('|'));
      const rows = lines.slice(at, end < at ? undefined : end);
      out.push(table(rows, file));
      at += rows.length;
    } else if (/^(?:- |\d+\. )/.test(line)) {
      const [xml, used] = list(lines.slice(at), file);
      out.push(xml);
      at += used;
    } else {
      const text = withoutGuides(line);
      if (text !== '') out.push(`<t>${inline(text, file)}</t>`);
      at += 1;
    }
  }
  return out.join('\n');
}

/** What says only where something of the project is, such as guides, schemas or tests, says nothing in the draft. */
function withoutGuides(text) {
  return text
    .replace(/^Normative, in the words of RFC 2119[^.]*\. ?/, '')
    .replace(/, described by \[[^\]]*\]\(\.\.\/[^)]*\)/, '')
    .split(/(?<=\.) (?=[A-Z[`])/)
    .filter((sentence) => !/\]\(\.\.\/(?:guide\/|\.\.\/)|`(?:test|fixtures|src)\//.test(sentence))
    .join(' ')
    .trim();
}

/** A list, items with a second level under them. */
function list(lines, file) {
  const isNumbered = /^\d/.test(lines[0]);
  const marker = isNumbered ? /^\d+\. / : /^- /;
  const items = [];
  let at = 0;
  for (; at < lines.length; at += 1) {
    const line = lines[at];
    if (marker.test(line)) items.push({ text: line.replace(marker, ''), below: [] });
    else if (/^ {2,}- /.test(line) && items.length > 0) items.at(-1).below.push(line.trim().slice(2));
    else break;
  }
  const tag = isNumbered ? 'ol' : 'ul';
  const xml = items.map(({ text, below }) => {
    const first = `<t>${inline(text, file)}</t>`;
    const more = below.map((each) => `<li><t>${inline(each, file)}</t></li>`).join('\n');
    return `<li>${first}${more === '' ? '' : `<ul>\n${more}\n</ul>`}</li>`;
  });
  return [`<${tag}>\n${xml.join('\n')}\n</${tag}>`, at];
}

function table(rows, file) {
  const cells = (row) =>
    row
      .slice(1, -1)
      .split(/(?<!\\)\|/)
      .map((cell) => cell.trim().replaceAll('\\|', '|'));
  const [head, , ...body] = rows;
  const line = (row, tag) =>
    `<tr>${cells(row)
      .map((cell) => `<${tag}>${inline(cell, file)}</${tag}>`)
      .join('')}</tr>`;
  return `<table><thead>${line(head, 'th')}</thead><tbody>\n${body.map((row) => line(row, 'td')).join('\n')}\n</tbody></table>`;
}

/** Source, its long lines folded as RFC 8792 says (the strategy of one backslash). */
function code(text, type = '') {
  const lines = text.split('\n').flatMap(fold);
  const isFolded = lines.some((line) => line.endsWith('\\') && line.length === LINE);
  const head = isFolded ? "=============== NOTE: '\\' line wrapping per RFC 8792 ===============\n\n" : '';
  const attribute = type === '' ? '' : ` type="${type}"`;
  return `<sourcecode${attribute}><![CDATA[\n${head}${lines.join('\n')}\n]]></sourcecode>`;
}

function fold(line) {
  const lines = [];
  let rest = line;
  while (rest.length > LINE) {
    let cut = LINE - 1;
    // The next line's leading spaces would be lost, and a character of two units be cut.
    while (rest[cut] === ' ' || /[\udc00-\udfff]/.test(rest[cut])) cut -= 1;
    const part = rest.slice(0, cut);
    lines.push(`${part}\\`);
    rest = rest.slice(cut);
  }
  return [...lines, rest];
}

/** Sections nested by level: `base` is the level of the outermost. */
function nested(sections, file, isAppendix = false) {
  const out = [];
  const open = [];
  for (const { level, title, lines, anchor } of sections) {
    while (open.length > 0 && open.at(-1) >= level) {
      out.push('</section>');
      open.pop();
    }
    const name = inline(title.replace(/^\d+(?:\.\d+)?[. ]+/, ''), file);
    out.push(`<section anchor="${anchor}"${isAppendix ? ' numbered="true"' : ''}><name>${name}</name>`);
    out.push(blocks(lines, file));
    open.push(level);
  }
  return [...out, ...open.map(() => '</section>')].join('\n');
}

/** A document without its title, whose text goes before its first section. */
function body(name) {
  const [top, ...rest] = outlines.get(name);
  const hasParts = ['format', 'verification'].includes(name);
  if (!hasParts) return nested([top, ...rest], name);
  // The first paragraph says what the draft says itself; the second of format.md is among its conventions.
  const paragraphs = opening(name).slice(name === 'format' ? 2 : 1);
  const [first, ...others] = rest;
  const lines = [...paragraphs.flatMap((each) => [each, '']), ...first.lines];
  return nested([{ ...first, lines }, ...others], name);
}

function author(name) {
  const [initials, surname] = [name.slice(0, name.lastIndexOf(' ')), name.slice(name.lastIndexOf(' ') + 1)];
  return `<author initials="${initials}" surname="${surname}"/>`;
}

function reference(number, [title, authors, month, year, series]) {
  const info = [['RFC', number], ...(series === undefined ? [] : [series.split(' ')])];
  return `<reference anchor="RFC${number}" target="https://www.rfc-editor.org/info/rfc${number}"><front><title>${escaped(title)}</title>${authors.map(author).join('')}<date month="${month}" year="${year}"/></front>${info.map(([name, value]) => `<seriesInfo name="${name}" value="${value}"/>`).join('')}</reference>`;
}

function otherReference(anchor, [title, organization, { month, year }, target]) {
  const date = year === undefined ? '' : `<date month="${month}" year="${year}"/>`;
  return `<reference anchor="${anchor}" target="${target}"><front><title>${escaped(title)}</title><author><organization>${organization}</organization></author>${date}</front></reference>`;
}

/** The references that are cited, and those that every draft of this kind cites. */
function references(name, rfcs, others) {
  const list = [
    ...Object.entries(rfcs).map(([number, each]) => [`RFC${number}`, reference(number, each)]),
    ...Object.entries(others).map(([anchor, each]) => [anchor, otherReference(anchor, each)]),
  ].filter(([anchor]) => cited.has(anchor));
  return `<references><name>${name}</name>\n${list.map(([, xml]) => xml).join('\n')}\n</references>`;
}

const introduction = read('introduction.md')
  .split('\n')
  .filter((line) => !line.startsWith('#') && !line.startsWith('- ['));

const KEYWORDS = [
  'MUST',
  'MUST NOT',
  'REQUIRED',
  'SHALL',
  'SHALL NOT',
  'SHOULD',
  'SHOULD NOT',
  'RECOMMENDED',
  'NOT RECOMMENDED',
  'MAY',
  'OPTIONAL',
].map((word) => `<bcp14>${word}</bcp14>`);

function conventions() {
  const [, notation] = opening('format');
  return `<section anchor="conventions"><name>Conventions and Definitions</name>
<t>The key words &quot;${KEYWORDS.slice(0, -1).join('&quot;, &quot;')}&quot;, and &quot;${KEYWORDS.at(-1)}&quot; in this document are to be interpreted as described in BCP 14 ${xref('RFC2119')} ${xref('RFC8174')} when, and only when, they appear in all capitals, as shown here.</t>
<t>${inline(notation, 'format')}</t>
<t>CDDL is that of ${xref('RFC8610')}, ABNF that of ${xref('RFC5234')} and ${xref('RFC7405')}. Long lines of source are folded as ${xref('RFC8792')} says.</t>
</section>`;
}

/** A grammar without the line that says what made it. */
function grammar(name) {
  return read(name)
    .replace(/^; Generated .*\n\n/, '')
    .trimEnd();
}

/** The codes of findings, each with its weight. */
function codes() {
  const text = read('codes.md');
  const rows = [...text.matchAll(/^- ([a-z ]+): (`.+)$/gm)].flatMap(([, weight, names]) =>
    names.split(', ').map((name) => `| ${name} | ${weight} |`),
  );
  const [, , paragraph = ''] = text.split('\n');
  const [opening = ''] = paragraph.split(' Generated from ');
  return blocks([opening, '', '| code | weight |', '| - | - |', ...rows, ''], 'codes');
}

/** The worked bytes at the ends of format.md and passkeys.md. */
function vectors() {
  const sections = [{ level: 1, title: 'Worked Bytes', lines: [], anchor: 'vectors' }];
  const add = (title) => sections.push({ level: 2, title, lines: [], anchor: `vectors-${slugOf(title)}` });
  for (const file of ['format.md', 'passkeys.md']) {
    const text = read(file);
    if (file === 'passkeys.md') add("A passkey's approval");
    for (const line of text.slice(text.indexOf('## Worked bytes')).split('\n').slice(1)) {
      const [, title] = /^### (.+)$/.exec(line) ?? [];
      if (title === undefined) sections.at(-1).lines.push(line);
      else add(title);
    }
  }
  anchors.set('format.md#worked-bytes', 'vectors');
  return nested(sections, 'format');
}

/** The registration templates of RFC 6838 for the media types of registries.md. */
function iana() {
  const section = /^## Media types\n(.*)/ms.exec(read('registries.md'))?.[1] ?? '';
  const types = [...section.matchAll(/^- `application\/([^`]+)`: (.+)$/gm)];
  const template = ([
    ,
    subtype,
    use,
  ]) => `<section anchor="media-${slugOf(subtype.replaceAll('+', '-'))}"><name>application/${subtype}</name>
<dl>
${[
  ['Type name', 'application'],
  ['Subtype name', subtype],
  ['Required parameters', 'N/A'],
  ['Optional parameters', 'N/A'],
  ['Encoding considerations', subtype.endsWith('cbor') ? 'binary' : '8bit; UTF-8 text'],
  ['Security considerations', `see ${xref('security')}`],
  ['Interoperability considerations', 'N/A'],
  ['Published specification', 'this document'],
  ['Applications that use this media type', `${words(use)}: producers and verifiers of ledgers`],
  ['Fragment identifier considerations', 'N/A'],
  [
    'Additional information',
    `deprecated alias names: N/A; magic numbers: ${subtype.endsWith('cbor') ? `see ${xref('bundle-the-file')}` : 'N/A'}; file extensions: N/A; Macintosh file type codes: N/A`,
  ],
  ['Person and email address to contact for further information', 'the authors of this document'],
  ['Intended usage', 'COMMON'],
  ['Restrictions on usage', 'N/A'],
  ['Author', 'the authors of this document'],
  ['Change controller', 'the authors of this document'],
]
  .map(([term, text]) => `<dt>${term}:</dt><dd>${text}</dd>`)
  .join('\n')}
</dl></section>`;
  return `<section anchor="iana"><name>IANA Considerations</name>
<t>IANA is asked to register these media types in the vendor tree ${xref('RFC6838')}. The registries of ${xref('registries-registries')} are kept with this specification, not by IANA.</t>
${types.map(template).join('\n')}
</section>`;
}

function security() {
  const [top] = outlines.get('security');
  return `<section anchor="security"><name>Security Considerations</name>\n${blocks(top.lines.slice(3), 'security')}\n</section>`;
}

function render(date) {
  const middle = [
    `<section anchor="introduction"><name>Introduction</name>\n${blocks(introduction, 'introduction')}\n</section>`,
    conventions(),
    ...DOCUMENTS.slice(0, -1).map(body),
    security(),
    iana(),
  ].join('\n');
  const appendices = [
    `<section anchor="cddl"><name>CDDL</name>\n${code(grammar('northroot.cddl'), 'cddl')}\n</section>`,
    `<section anchor="abnf"><name>ABNF</name>\n${code(grammar('northroot.abnf'), 'abnf')}\n</section>`,
    `<section anchor="codes"><name>Codes of Findings</name>\n${codes()}\n</section>`,
    body('ed25519-verdicts'),
    vectors(),
  ].join('\n');
  return `<?xml version="1.0" encoding="UTF-8"?>
<rfc xmlns:xi="http://www.w3.org/2001/XInclude" version="3" ipr="trust200902" submissionType="independent" category="info" docName="${NAME}" tocInclude="true" tocDepth="3" sortRefs="true" symRefs="true" xml:lang="en">
<front>
<title abbrev="Verifiable Ledger of Authorized Acts">A Verifiable Ledger of Authorized Acts</title>
<seriesInfo name="Internet-Draft" value="${NAME}"/>
<author><organization>northroot authors</organization></author>
<date day="${date.getUTCDate()}" month="${date.toLocaleString('en', { month: 'long', timeZone: 'UTC' })}" year="${date.getUTCFullYear()}"/>
<keyword>audit</keyword><keyword>authorization</keyword><keyword>transparency log</keyword><keyword>verification</keyword>
<abstract><t>This document defines a ledger of what agents and services were allowed to do, within which bounds, and what they did: its bytes, its signatures, the checkpoints and witnesses that fix its order, and the rules by which anyone verifies it from files alone. Implementations give the same verdict, findings and accounts for the same bytes.</t></abstract>
</front>
<middle>
${middle}
</middle>
<back>
<references><name>References</name>
${references('Normative References', RFCS, OTHERS)}
${references('Informative References', INFORMATIVE_RFCS, INFORMATIVE_OTHERS)}
</references>
${appendices}
</back>
</rfc>
`;
}

const [folder = `${root}dist-draft`] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });
const target = `${folder}/${NAME}.xml`;
writeFileSync(target, render(new Date()));
console.log(target);
const version = spawnSync('xml2rfc', ['--version'], { encoding: 'utf8' });
if (version.error !== undefined) {
  console.log('notice: xml2rfc is not installed; no text was made');
} else {
  for (const form of ['--text', '--html']) {
    const { status } = spawnSync('xml2rfc', ['--no-network', form, target], { stdio: 'inherit' });
    if (status !== 0) process.exitCode = 1;
  }
}
