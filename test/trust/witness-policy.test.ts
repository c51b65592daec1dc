import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { NorthrootError } from '../../src/base/error.js';
import { makePublicKey } from '../../src/format/key/public-key.js';
import { generatePrivateKey } from '../../src/format/key/private-key.js';
import { formatVkey } from '../../src/format/key/vkey.js';
import {
  describeQuorum,
  describeSkipped,
  MAX_WITNESS_POLICY_BYTES,
  MAX_WITNESS_POLICY_DEFINITIONS,
  meetsQuorum,
  namesLogs,
  parseWitnessPolicy,
  witnessPolicyKeys,
  type WitnessPolicy,
} from '../../src/rules/trust/witness-policy.js';

const keys = Array.from({ length: 12 }, () => generatePrivateKey().publicKey);
const log = (n: number, name = `log.example/${n}`) => formatVkey(name, keys[n], 'ed25519');
const witness = (n: number, name = `w${n}.example`) => formatVkey(name, keys[n], 'cosignature');

/** The two-level example of the specification, with keys. */
const TWO_LEVELS = `log ${log(0)}

witness X1 ${witness(1)}
witness X2 ${witness(2)}
witness X3 ${witness(3)}
group X-witnesses 2 X1 X2 X3

witness Y1 ${witness(4)}
witness Y2 ${witness(5)}
witness Y3 ${witness(6)}
group Y-witnesses any Y1 Y2 Y3

group X-and-Y all X-witnesses Y-witnesses
quorum X-and-Y
`;

const bytesOf = (text: string) => new Uint8Array(Buffer.from(text));
const parse = (text: string) => parseWitnessPolicy(bytesOf(text));
const meets = (policy: WitnessPolicy, ...names: string[]) =>
  meetsQuorum(policy, (name) => names.includes(name));

/** The line in which a policy is refused, or undefined when it is not. */
function refusedIn(policy: string | Uint8Array): number | undefined {
  try {
    parseWitnessPolicy(typeof policy === 'string' ? bytesOf(policy) : policy);
    return undefined;
  } catch (error) {
    if (!(error instanceof NorthrootError) || error.code !== 'WITNESS_POLICY_INVALID') throw error;
    return Number(/in line (\d+): expected .+, found ./.exec(error.message)?.[1]);
  }
}

describe('parseWitnessPolicy', () => {
  test('reads a policy of two levels', () => {
    const policy = parse(TWO_LEVELS);
    expect(policy.logs).toEqual([{ vkey: log(0) }]);
    expect(policy.witnesses.map(({ name }) => name)).toEqual(['X1', 'X2', 'X3', 'Y1', 'Y2', 'Y3']);
    expect(policy.groups.map(({ threshold }) => threshold)).toEqual([2, 1, 2]);
    expect(policy.quorum).toBe('X-and-Y');
    expect(structuredClone(policy)).toEqual(policy);
    expect(describeQuorum(policy)).toBe('all of (2 of (X1, X2, X3), any of (Y1, Y2, Y3))');
  });

  test('reads a policy without quorum, logs or witnesses', () => {
    const policy = parse('quorum none\n');
    expect(policy).toEqual({ logs: [], witnesses: [], groups: [], quorum: undefined });
    expect(meets(policy)).toBe(true);
    expect(describeQuorum(policy)).toBe('no cosignature');
  });

  test('reads white space, comments, empty lines, URLs and definitions after the quorum', () => {
    const policy = parse(
      `# a comment\n\t # another\n \t \n\n  log\t${log(0)}  https://log.example/ \t\n` +
        `witness W ${witness(1)} https://w.example/\nquorum W\nlog ${log(2)}\nwitness #2 ${witness(3)}\ngroup none-at-all 1 #2\n`,
    );
    expect(policy.logs).toEqual([{ vkey: log(0), url: 'https://log.example/' }, { vkey: log(2) }]);
    expect(policy.witnesses[0]).toEqual({ name: 'W', vkey: witness(1), url: 'https://w.example/' });
    expect(policy.witnesses[1].name).toBe('#2');
    expect(meets(policy, 'W')).toBe(true);
    expect(meets(policy, '#2')).toBe(false);
    expect(describeQuorum(policy)).toBe('W');
  });

  test('takes names as octets: no normalisation, and no two different ones alike', () => {
    const kelvin = parse(`witness \u212a ${witness(1)}\nwitness K ${witness(2)}\nquorum K\n`);
    expect(meets(kelvin, 'K')).toBe(true);
    expect(meets(kelvin, '\u212a')).toBe(false);
    const line = (name: number[], n: number) =>
      Buffer.concat([Buffer.from('witness '), Buffer.from(name), Buffer.from(` ${witness(n)}\n`)]);
    const names = [
      [0xc3],
      [0xc3, 0x83],
      [0xff],
      [0xc3, 0xbf],
      [0xef, 0xbf, 0xbd],
      [0xef, 0xbb, 0xbf, 0x41],
      [0x41],
    ];
    const lines = names.map((name, n) => line(name, n));
    const policy = parseWitnessPolicy(Buffer.concat([...lines, Buffer.from('quorum none\n')]));
    expect(new Set(policy.witnesses.map(({ name }) => name)).size).toBe(names.length);
    expect(policy.witnesses[1].name).toBe('\u00c3');
    expect(structuredClone(policy)).toEqual(policy);
    const group = Buffer.concat([
      Buffer.from('group G any '),
      Buffer.from([0xc3]),
      Buffer.from('\nquorum G\n'),
    ]);
    const quorum = parseWitnessPolicy(Buffer.concat([...lines, group]));
    expect(meets(quorum, policy.witnesses[0].name)).toBe(true);
    expect(meets(quorum, '\u00c3')).toBe(false);
    expect(describeQuorum(quorum)).toBe('\\u{dcc3}');
  });

  test('takes keys with names outside ASCII', () => {
    const policy = parse(`log ${log(0, 'журнал.example')}\nquorum none\n`);
    expect(witnessPolicyKeys(policy).logs[0].name).toBe('журнал.example');
  });

  test('takes one key for a log and for a witness, and one origin with two keys', () => {
    expect(refusedIn(`log ${log(0, 'a')}\nlog ${log(1, 'a')}\nwitness W ${witness(0)}\nquorum W\n`)).toBe(
      undefined,
    );
  });

  const W = `witness W ${witness(1)}\n`;
  const smallOrder = makePublicKey('ed25519', Uint8Array.of(1, ...new Uint8Array(31)));
  const vkeyOfType = (type: number) => Buffer.from([type, ...keys[0].bytes]).toString('base64');
  test('ignores keys of unknown types and lists them', () => {
    const typed = (type: number) => Buffer.from([type, ...keys[0].bytes]).toString('base64');
    const policy = parse(
      `log l+00000000+${typed(2)}\nwitness V v+00000000+${typed(0xff)}\nwitness W ${witness(1)}\ngroup G all V W\nquorum G\n`,
    );
    expect(policy.logs).toEqual([]);
    expect(policy.witnesses.map(({ name }) => name)).toEqual(['W']);
    expect(policy.skipped).toEqual([
      { role: 'log', name: 'l', type: '0x02', line: 1 },
      { role: 'witness', name: 'V', type: '0xff', line: 2 },
    ]);
    expect(describeSkipped(policy)).toHaveLength(2);
    // What is not known never helps: the log must still have signed, the witness still have cosigned.
    expect(namesLogs(policy)).toBe(true);
    expect(meets(policy, 'W')).toBe(false);
    expect(meets(parse(`witness V v+00000000+${typed(9)}\nquorum V\n`))).toBe(false);
    expect(describeSkipped(parse(TWO_LEVELS))).toEqual([]);
    expect(namesLogs(parse(`${TWO_LEVELS.slice(TWO_LEVELS.indexOf('\n') + 1)}`))).toBe(false);
  });

  test('knows ML-DSA-44 keys of logs and of witnesses', () => {
    const { publicKey } = generatePrivateKey('ml-dsa-44');
    const { publicKey: other } = generatePrivateKey('ml-dsa-44');
    const policy = parse(
      `log ${log(0, 'l')}\nlog ${formatVkey('l', publicKey)}\nwitness W ${formatVkey('w', other)}\nquorum W\n`,
    );
    const { logs, witnesses } = witnessPolicyKeys(policy);
    expect(logs.map(({ type }) => type)).toEqual(['ed25519', 'ml-dsa-44']);
    expect(witnesses.map(({ type }) => type)).toEqual(['ml-dsa-44']);
    expect(
      refusedIn(`log ${formatVkey('l', publicKey)}\nlog ${formatVkey('m', publicKey)}\nquorum none\n`),
    ).toBe(2);
  });

  test.each([
    ['no line at all', '', 0],
    ['no quorum', `${W}`, 1],
    ['no newline at the end', `${W}quorum W`, 2],
    ['two quorums', `${W}quorum W\nquorum W\n`, 3],
    ['two quorums, one of them none', `${W}quorum none\nquorum W\n`, 3],
    ['a quorum of two', `${W}quorum W W\n`, 2],
    ['a quorum of nothing', `${W}quorum\n`, 2],
    ['a quorum that is not defined', `${W}quorum V\n`, 2],
    ['a quorum that is defined later', `quorum W\n${W}`, 1],
    ['a quorum that names a log', `log ${log(0, 'L')}\nquorum L\n`, 2],
    ['another keyword', `${W}monitor W\nquorum W\n`, 2],
    ['a keyword in capitals', `Witness W ${witness(1)}\nquorum W\n`, 1],
    ['a byte order mark', `\ufeff${W}quorum W\n`, 1],
    ['a comment after other text', `${W}quorum W # two\n`, 2],
    ['a log without key', 'log\nquorum none\n', 1],
    ['a log with too many items', `log ${log(0)} u v\nquorum none\n`, 1],
    ['a witness without key', 'witness W\nquorum W\n', 1],
    ['a witness with too many items', `witness W ${witness(1)} u v\nquorum W\n`, 1],
    ["a log with a witness's key", `log ${witness(0)}\nquorum none\n`, 1],
    ["a witness with a log's key", `witness W ${log(1)}\nquorum W\n`, 1],
    ['a key that is none', `witness W w1.example+00000000+AQAA\nquorum W\n`, 1],
    ['a key of a known type that is too short', `witness W w+00000000+${vkeyOfType(6)}\nquorum W\n`, 1],
    ['a comment after a vkey', `witness W ${witness(1)} #mine\nquorum W\n`, 1],
    ['a comment after a log', `log ${log(0)} #mine\nquorum none\n`, 1],
    ["a key with another key's hash", `log ${log(0).replace(/\+.{8}\+/, '+00000000+')}\nquorum none\n`, 1],
    ['a key that cannot sign', `log ${formatVkey('l', smallOrder, 'ed25519')}\nquorum none\n`, 1],
    ['one log twice', `log ${log(0)}\nlog ${log(0)}\nquorum none\n`, 2],
    ['one log under two names', `log ${log(0)}\nlog ${log(0, 'other')}\nquorum none\n`, 2],
    ['one witness under two names', `${W}witness V ${witness(1, 'other')}\nquorum W\n`, 2],
    ['two witnesses of one name', `${W}witness W ${witness(2)}\nquorum W\n`, 2],
    ["a group with a witness's name", `${W}group W any W\nquorum W\n`, 2],
    ['two groups of one name', `${W}witness V ${witness(2)}\ngroup G any W\ngroup G any V\nquorum G\n`, 4],
    ['a witness named none', `witness none ${witness(1)}\nquorum none\n`, 1],
    ['a group named none', `${W}group none any W\nquorum none\n`, 2],
    ['a member named none', `${W}group G any W none\nquorum G\n`, 2],
    ['a group without members', `${W}group G any\nquorum W\n`, 2],
    ['a group without rule', `${W}group G\nquorum W\n`, 2],
    ['a group without name', `${W}group\nquorum W\n`, 2],
    ['a group of 0', `${W}group G 0 W\nquorum G\n`, 2],
    ['a group of more than it has', `${W}group G 2 W\nquorum G\n`, 2],
    ['a group of 01', `${W}group G 01 W\nquorum G\n`, 2],
    ['a group of +1', `${W}group G +1 W\nquorum G\n`, 2],
    ['a group of 1e0', `${W}group G 1e0 W\nquorum G\n`, 2],
    ['a group of 10^400', `${W}group G 1${'0'.repeat(400)} W\nquorum G\n`, 2],
    ['a group of ALL', `${W}group G ALL W\nquorum G\n`, 2],
    ['a member defined later', `group G any W\n${W}quorum G\n`, 1],
    ['a group in itself', `${W}group G any W G\nquorum G\n`, 2],
    ['one member twice', `${W}group G 2 W W\nquorum G\n`, 2],
    ['one member in two groups', `${W}group G any W\ngroup H any W\nquorum G\n`, 3],
    ['a carriage return', `${W}quorum W\r\n`, 2],
    ['a null in a comment', `${W}# \0\nquorum W\n`, 2],
    ['a delete', `${W}quorum W\x7f\n`, 2],
    ['another space', `${W}quorum\u00a0W\n`, 2],
  ])('refuses %s', (_what, text, line) => {
    expect(refusedIn(text)).toBe(line);
  });

  test('refuses what is too much', () => {
    const empty = `${'\n'.repeat(MAX_WITNESS_POLICY_BYTES - 12)}`;
    expect(refusedIn(`${empty}quorum none\n`)).toBe(undefined);
    expect(refusedIn(`${empty} quorum none\n`)).toBe(1);
    const chain = (length: number) =>
      Array.from({ length }, (_, n) => `group G${n + 1} all G${n}\n`).join('');
    const start = `witness G0 ${witness(1)}\n`;
    const deep = parse(`${start}${chain(MAX_WITNESS_POLICY_DEFINITIONS - 1)}quorum G999\n`);
    expect(meets(deep, 'G0')).toBe(true);
    expect(meets(deep)).toBe(false);
    expect(describeQuorum(deep)).toBe('G0');
    expect(refusedIn(`${start}${chain(MAX_WITNESS_POLICY_DEFINITIONS)}quorum G1\n`)).toBe(1_001);
  });

  test('refuses every beginning and end of a policy, or reads another one', () => {
    const whole = bytesOf(TWO_LEVELS);
    for (let n = 0; n < whole.length; n += 1)
      expect(refusedIn(whole.subarray(0, n))).toBeGreaterThanOrEqual(0);
    const lines = new Set(TWO_LEVELS.split('\n').map((line) => TWO_LEVELS.indexOf(line)));
    for (let n = 1; n < whole.length; n += 1) {
      const isRefused = refusedIn(whole.subarray(n)) !== undefined;
      if (!isRefused) expect(lines.has(n) || TWO_LEVELS[n] === '\n').toBe(true);
    }
  });

  test('refuses every changed byte of a policy, or reads another one', () => {
    const original = parse(TWO_LEVELS);
    const whole = bytesOf(TWO_LEVELS);
    let refused = 0;
    for (let at = 0; at < whole.length; at += 1) {
      for (const change of [0x01, 0x80]) {
        const changed = Uint8Array.from(whole);
        changed[at] ^= change;
        if (refusedIn(changed) === undefined) expect(parseWitnessPolicy(changed)).not.toEqual(original);
        else refused += 1;
      }
    }
    expect(refused).toBeGreaterThan(whole.length * 1.5);
  });

  test('refuses arbitrary bytes and arbitrary lines with a reason', () => {
    const word = fc.constantFrom(
      'log',
      'witness',
      'group',
      'quorum',
      'none',
      'A',
      'B',
      'all',
      '2',
      witness(1),
      log(1),
      '#',
      '\t',
    );
    const lines = fc.array(fc.array(word, { maxLength: 6 }), { maxLength: 8 });
    fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => void refusedIn(bytes)));
    fc.assert(
      fc.property(lines, (all) => void refusedIn(all.map((line) => `${line.join(' ')}\n`).join(''))),
      { numRuns: 2_000 },
    );
  });
});

describe('meetsQuorum', () => {
  test('asks for the thresholds of both levels', () => {
    const policy = parse(TWO_LEVELS);
    expect(meets(policy, 'X1', 'X3', 'Y2')).toBe(true);
    expect(meets(policy, 'X1', 'X2', 'X3')).toBe(false);
    expect(meets(policy, 'X1', 'Y1', 'Y2', 'Y3')).toBe(false);
    expect(meets(policy, 'X-witnesses', 'Y-witnesses', 'X-and-Y')).toBe(false);
  });

  test('is met by every set of five witnesses that is a quorum, and by none that collude and are fewer', () => {
    const names = ['w0', 'w1', 'w2', 'w3', 'w4'];
    const witnesses = names.map((name, index) => `witness ${name} ${witness(index)}\n`).join('');
    let count = 0;
    for (let left = 1; left <= 3; left += 1) {
      for (let right = 1; right <= 2; right += 1) {
        for (let both = 1; both <= 2; both += 1) {
          const groups = `group l ${left} w0 w1 w2\ngroup r ${right} w3 w4\ngroup all-of ${both} l r\n`;
          const policy = parse(`log ${log(9)}\n${witnesses}${groups}quorum all-of\n`);
          const least = both === 2 ? left + right : Math.min(left, right);
          for (let bits = 0; bits < 32; bits += 1) {
            const cosigned = names.filter((_, index) => ((bits >> index) & 1) === 1);
            const of = (group: readonly string[]): number =>
              group.filter((name) => cosigned.includes(name)).length;
            const met = [of(['w0', 'w1', 'w2']) >= left, of(['w3', 'w4']) >= right].filter(Boolean).length;
            expect(meets(policy, ...cosigned)).toBe(met >= both);
            // What fewer than a quorum sign, they may sign of a fork too.
            if (cosigned.length < least) expect(meets(policy, ...cosigned)).toBe(false);
            count += 1;
          }
        }
      }
    }
    expect(count).toBe(384);
  });

  test('agrees with a naive evaluation', () => {
    // Each step makes a group of some of the names that are in no group yet.
    const step = fc.record({ picks: fc.array(fc.nat(), { minLength: 1, maxLength: 5 }), k: fc.nat() });
    const arbitrary = fc.record({
      witnesses: fc.integer({ min: 1, max: keys.length }),
      steps: fc.array(step, { maxLength: 8 }),
      quorum: fc.nat(),
      cosigned: fc.array(fc.boolean(), { minLength: keys.length, maxLength: keys.length }),
    });
    const seen = new Set<boolean>();
    fc.assert(
      fc.property(arbitrary, ({ witnesses, steps, quorum, cosigned }) => {
        type Node = { name: string; k: number; members: Node[] };
        const all: Node[] = Array.from({ length: witnesses }, (_, n) => ({
          name: `w${n}`,
          k: 0,
          members: [],
        }));
        const free = [...all];
        let text = all.map(({ name }, n) => `witness ${name} ${witness(n)}\n`).join('');
        for (const { picks, k } of steps) {
          const members: Node[] = [];
          for (const pick of picks) if (free.length > 0) members.push(...free.splice(pick % free.length, 1));
          if (members.length === 0) break;
          const node = { name: `g${all.length}`, k: 1 + (k % members.length), members };
          const rule =
            node.k === members.length && k % 2 === 0 ? 'all' : node.k === 1 && k % 2 === 0 ? 'any' : node.k;
          text += `group ${node.name} ${rule} ${members.map(({ name }) => name).join(' ')}\n`;
          all.push(node);
          free.push(node);
        }
        const root = all[quorum % all.length];
        const naive = ({ name, k, members }: Node): boolean =>
          members.length === 0 ? cosigned[Number(name.slice(1))] : members.filter(naive).length >= k;
        const result = meetsQuorum(
          parse(`${text}quorum ${root.name}\n`),
          (name) => cosigned[Number(name.slice(1))],
        );
        seen.add(result);
        expect(result).toBe(naive(root));
      }),
      { numRuns: 300 },
    );
    expect(seen.size).toBe(2);
  });
});

test('witnessPolicyKeys prepares the keys in the order of the policy', () => {
  const policy = parse(TWO_LEVELS);
  const { logs, witnesses } = witnessPolicyKeys(policy);
  expect(logs.map(({ name, type }) => [name, type])).toEqual([['log.example/0', 'ed25519']]);
  expect(witnesses.map(({ publicKey }) => publicKey.keyid)).toEqual(
    keys.slice(1, 7).map(({ keyid }) => keyid),
  );
  expect(witnesses.every(({ type, verification }) => type === 'cosignature' && verification.usable)).toBe(
    true,
  );
});

test('describeQuorum stays one short printable line', () => {
  const name = '\u202eX'.repeat(100);
  const all = Array.from({ length: 12 }, (_, n) => `witness ${name}${n} ${witness(n)}\n`).join('');
  const members = Array.from({ length: 12 }, (_, n) => `${name}${n}`).join(' ');
  const words = describeQuorum(parse(`${all}group G 3 ${members}\nquorum G\n`));
  expect(words).toMatch(/^3 of \([\x20-\x7e…]+$/);
  expect(words.length).toBeLessThanOrEqual(400);
});
