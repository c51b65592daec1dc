/** `northroot check --as adapter-profile`: adapter profiles against their schema, limits, canonical form and content address. */

import { findingOf, rulesOf, type Weight } from '../shared/findings.js';
import { finding } from './rules.js';
import { printable } from '../../base/bytes/printable.js';
import { decodeUtf8 } from '../../base/bytes/text.js';
import { decodeCacSource } from '../shared/forms/cac.js';
import type { Checker, HostFile, HostFinding, HostItem, HostOptions, HostPlace } from '../shared/host.js';
import { checkReadOptions, MAX_ITEM_BYTES, splitLines } from '../shared/reading.js';
import { isRemark, readAdapterProfile } from './profile.js';
import { RULE_OF } from './checked.js';

const RULES = rulesOf({
  'PR-1':
    'A profile has the 16 members of its schema, and optionally tool_bridge, of their types, and no others.',
  'PR-2': 'Texts, lists and numbers stay within their limits; limits of the tool bridge are not 0.',
  'PR-3': 'The command and the working directory contain no "..".',
  'PR-4': 'The version probe has a regular expression that names a major and a minor version.',
  'PR-5': 'A profile has a canonical form and is stored in it.',
  'PR-6': 'A profile is selected by the BLAKE3 of its canonical form.',
});
const REASON = 'ADAPTER_MISCONFIGURED';

const AIDS = { hash: 'the content address that the profile is chosen by, 64 hexadecimal digits' } as const;

/** Checks adapter profiles. */
export const adapterProfileChecker: Checker = {
  name: 'adapter-profile',
  title: 'AgentAdapterProfileV1',
  rules: RULES,
  aids: AIDS,
  check: checkProfiles,
};

/** Whether a regular expression names a major and a minor version: `2\.1\.`. One that takes any version pins none. */
export function pinsVersion(regex: string): boolean {
  return /\d\\?\.\d/.test(regex);
}

function checkProfiles(
  files: readonly HostFile[],
  options: HostOptions = {},
): { items: HostItem[]; findings: HostFinding[] } {
  checkReadOptions('adapter-profile.check', options, AIDS);
  const items: HostItem[] = [];
  const findings: HostFinding[] = [];
  const hashes: { at: HostPlace; hash: string | undefined }[] = [];
  for (const file of files)
    for (const { at, bytes } of profilesOf(file)) {
      items.push({ at, type: 'adapter_profile', fate: 'evidence' });
      hashes.push({ at, hash: checkOne(at, bytes, findings) });
    }
  checkHash(options.aids?.['hash'], hashes, findings);
  return { items, findings };
}

/** A file is a profile, or one on each line. */
function* profilesOf(file: HostFile): Generator<{ at: HostPlace; bytes: Uint8Array }, void, void> {
  const lines = [...splitLines(file)];
  const isOfLines =
    lines.length > 1 && lines.every(({ bytes }) => bytes[0] === 0x7b && bytes.at(-1) === 0x7d);
  if (isOfLines) for (const { at, bytes } of lines) yield { at, bytes };
  else if (lines.length > 0) yield { at: { file: file.name }, bytes: file.bytes };
}

function checkOne(at: HostPlace, bytes: Uint8Array, findings: HostFinding[]): string | undefined {
  const find = (
    rule: string,
    code: string,
    weight: Weight,
    pointer: string,
    expected: string,
    actual: string,
  ): void => {
    const about = weight === 'invalid' ? REASON : undefined;
    findings.push(findingOf(rule, weight, code, { ...at, pointer }, { about, expected, actual }));
  };
  if (bytes.length > MAX_ITEM_BYTES) {
    find('PR-2', 'TOO_LONG', 'invalid', '', `at most ${MAX_ITEM_BYTES} bytes`, `${bytes.length} bytes`);
    return undefined;
  }
  // A line feed at the end belongs to the file.
  const text = bytes.at(-1) === 0x0a ? bytes.subarray(0, -1) : bytes;
  const decoded = decodeCacSource(text);
  const { faults, hash, profile } = readAdapterProfile(text);
  for (const { code, pointer, expected, actual } of faults)
    find(
      decoded.ok ? RULE_OF[code] : 'PR-5',
      code,
      isRemark(code) ? 'warning' : 'invalid',
      pointer,
      expected,
      actual,
    );
  if (profile !== undefined && !pinsVersion(profile.versionRegex)) {
    const expected = 'a major and a minor version';
    const actual = printable(profile.versionRegex, 80);
    find('PR-4', 'VERSION_NOT_PINNED', 'warning', '/version_probe/regex', expected, actual);
  }
  return hash;
}

function checkHash(
  file: HostFile | undefined,
  found: readonly { at: HostPlace; hash: string | undefined }[],
  findings: HostFinding[],
): void {
  for (const { at, hash } of found) {
    const named = /(?:^|[/\\!])([0-9a-f]{64})(?:\.[A-Za-z0-9]{1,8})?$/.exec(at.file)?.[1];
    if (named !== undefined && hash !== undefined && named !== hash)
      findings.push(finding('HASH_MISMATCH', at, { about: REASON, expected: named, actual: hash }));
    else if (hash !== undefined) findings.push(finding('CONTENT_ADDRESS', at, { actual: hash }));
  }
  if (file === undefined) return;
  const at = { file: file.name };
  const stated = decodeUtf8(file.bytes, 0, Math.min(file.bytes.length, 1024))
    .trim()
    .replace(/^blake3:/, '');
  if (!/^[0-9a-f]{64}$/.test(stated)) {
    const actual = printable(stated, 80);
    findings.push(finding('AID_NOT_READABLE', at, { actual }));
  } else if (!found.some(({ hash }) => hash === stated)) {
    const actual = found
      .map(({ hash }) => hash ?? 'none')
      .slice(0, 8)
      .join(', ');
    const place = found[0]?.at ?? at;
    findings.push(finding('HASH_MISMATCH', place, { about: REASON, expected: stated, actual }));
  }
}
