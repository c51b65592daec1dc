/** docs/spec/registries.md against the constants of the code and the schemas. */

import { describe, expect, it } from 'vitest';
import { schemaDocument } from '../../src/format/schema/documents.js';
import { NOT_CHECKED_CODES } from '../../src/rules/report/not-checked.js';
import { codeOf, headings, lists, listsOf, readText } from './markdown.js';

const document = readText('docs/spec/registries.md');

function names(heading: string): (string | undefined)[] {
  const [rows = []] = listsOf(document, heading);
  return rows.map(([name = '']) => codeOf(name));
}

interface Schema {
  readonly const?: string;
  readonly pattern?: string;
  readonly items?: { readonly enum?: readonly string[] };
  readonly properties: Readonly<Record<string, Schema>>;
  readonly $defs: Readonly<Record<string, Schema>>;
  readonly allOf: readonly { readonly if: Schema }[];
}

const schema = (name: string) => schemaDocument(name) as unknown as Schema;

describe('docs/spec/registries.md', () => {
  it('lists the event types', () => {
    const known = schema('any-event').allOf.map((each) => each.if.properties['event_type']?.const);
    expect(names('Event types').slice(0, -1).sort()).toEqual(known.sort());
    expect(names('Event types').at(-1)).toBe('x.northroot.start');
  });

  it('lists profiles, roles and algorithms', () => {
    const { properties } = schema('key');
    expect(names('Roles')).toEqual(properties['roles']?.items?.enum);
    const prefixes = properties['public_key']?.pattern?.match(/[a-z0-9-]+(?=:)/g);
    expect(names('Key algorithms')).toEqual(prefixes);
    expect(names('Canonical profiles')).toEqual([schema('common').$defs['canonical_profile_id']?.const]);
    expect(names('Digest algorithms')).toEqual(['sha-256']);
  });

  it.each([
    ['Tool names', 'northroot.slice', 'src/rules/bounds/tool-set.ts'],
    ['Units', 'calls', 'src/format/event/meter-basis.ts'],
    ['Units', 'time.ms', 'src/format/event/meter-basis.ts'],
    ['Decision and reason codes', 'APPROVAL_REQUIRED', 'src/rules/verify/approvals.ts'],
    ['Decision and reason codes', 'ABANDONED', 'src/format/event/outline.ts'],
    ['Media types', 'application/vnd.northroot.event+json', 'src/format/signature/dsse.ts'],
    ['Media types', 'application/vnd.northroot.ledger', 'src/out/page/embedded.ts'],
    ['Media types', 'application/vnd.northroot.bundle+cbor', 'src/proof/bundle/bundle-file.ts'],
  ])('%s: %s is a name that %s knows', (heading, name, path) => {
    expect(names(heading)).toContain(name);
    expect(readText(path)).toContain(`'${name}'`);
  });

  it.each([
    ['x.northroot.start', 'src/rules/verify/starts.ts'],
    ['x.northroot.anchor', 'src/log/fleet/anchor-event.ts'],
    ['x.northroot.late_report', 'src/rules/verify/late-reports.ts'],
  ])('lists the extension %s', (type, path) => {
    expect(document).toContain(`\`${type}\``);
    expect(readText(path)).toContain(`'${type}'`);
  });

  it('leads to the lists of the others', () => {
    const codes = listsOf(readText('docs/spec/verification.md'), 'Not checked')[0]?.map(([code = '']) =>
      codeOf(code),
    );
    expect(codes).toEqual([...NOT_CHECKED_CODES]);
    const [index] = lists(document);
    expect(index?.rows.length).toBeGreaterThan(10);
    for (const [name = ''] of index?.rows ?? []) {
      const section = /\(\[below\]\(#([a-z-]+)\)\)$/.exec(name)?.[1];
      if (section === undefined) continue;
      const anchors = headings(document).map((heading) => heading.toLowerCase().replaceAll(' ', '-'));
      expect(anchors).toContain(section);
    }
  });
});
