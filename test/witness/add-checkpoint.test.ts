import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { generatePrivateKey } from '../../src/format/key/private-key.js';
import { makeNoteKey, signNote } from '../../src/format/note/note-key.js';
import { formatNote, formatSignatureLine, parseNote } from '../../src/format/note/signed-note.js';
import { createSigner } from '../../src/format/signature/signer.js';
import { formatConsistencyProof } from '../../src/proof/consistency-proof.js';
import { decideAddCheckpoint, decodeAddCheckpoint } from '../../src/proof/witness/add-checkpoint.js';
import { valueOf } from '../value-of.js';
import { TestLog } from './support.js';

const log = new TestLog('log.example/a');

/** The status of a request by somebody who has cosigned `last` of the log. */
function statusOf(body: Uint8Array | string, last: number | undefined, known: TestLog[] = [log]): number {
  const decoded = decodeAddCheckpoint(Buffer.from(body));
  if (!decoded.ok) return 400;
  const request = decoded.value;
  const keys = known.filter(({ origin }) => origin === request.note.checkpoint.origin).map(({ key }) => key);
  const tree = last === undefined ? undefined : { size: last, root: log.root(last) };
  return decideAddCheckpoint(request, keys.length === 0 ? undefined : keys, tree).status;
}

function body(oldSize: number, proof: readonly string[], note: string): Uint8Array {
  return formatConsistencyProof({ oldSize, hashes: proof, note: Buffer.from(note) });
}

describe('decodeAddCheckpoint', () => {
  test('reads what a client writes', () => {
    const request = decodeAddCheckpoint(log.request(3, 7));
    expect(request).toMatchObject({
      ok: true,
      value: { oldSize: 3, proof: log.proof(3, 7), note: { checkpoint: { size: 7 } } },
    });
  });

  const hash = Buffer.alloc(32).toString('base64');
  test.each([
    ['nothing', ''],
    ['no first line', `\n${log.note(1)}`],
    ['no empty line', 'old 0\n'],
    ['no checkpoint', 'old 0\n\n'],
    ['another word', `new 0\n\n${log.note(1)}`],
    ['a word in capitals', `Old 0\n\n${log.note(1)}`],
    ['two spaces', `old  0\n\n${log.note(1)}`],
    ['a leading zero', `old 00\n\n${log.note(1)}`],
    ['a sign', `old +0\n\n${log.note(1)}`],
    ['no size', `old \n\n${log.note(1)}`],
    ['hexadecimal', `old 0x0\n\n${log.note(1)}`],
    ['carriage returns', `old 0\r\n\r\n${log.note(1)}`],
    ['a size beyond 2^53 - 1', `old 9007199254740992\n\n${log.note(1)}`],
    ['a huge size', `old ${'9'.repeat(100_000)}\n\n${log.note(1)}`],
    ['a hash that is short', `old 1\n${hash.slice(4)}\n\n${log.note(2)}`],
    ['a hash in base64url', `old 1\n${Buffer.alloc(32, 255).toString('base64url')}=\n\n${log.note(2)}`],
    ['a hash with unused bits', `old 1\n${hash.replace('A=', 'B=')}\n\n${log.note(2)}`],
    ['64 lines of proof', `old 1\n${`${hash}\n`.repeat(64)}\n${log.note(2)}`],
    ['10,000 lines of proof', `old 1\n${`${hash}\n`.repeat(10_000)}\n${log.note(2)}`],
    ['two empty lines', `old 0\n\n\n${log.note(1)}`],
    ['no signatures', `old 0\n\n${log.text(1)}`],
    ['no newline at the end', `old 0\n\n${log.note(1).trimEnd()}`],
    ['a note that is no checkpoint', `old 0\n\n${log.sign('log.example/a\nhello\n')}`],
    ['a size with a leading zero', `old 0\n\n${log.sign(log.text(1).replace('\n1\n', '\n01\n'))}`],
    ['control characters', `old 0\n\n${log.note(1).replace('log', 'l\tg')}`],
  ])('refuses %s', (_what, text) => {
    expect(decodeAddCheckpoint(Buffer.from(text))).toHaveProperty('ok', false);
  });

  test('reads as many lines of proof as are allowed', () => {
    const text = `old 9007199254740991\n${`${hash}\n`.repeat(63)}\n${log.note(2)}`;
    expect(decodeAddCheckpoint(Buffer.from(text))).toHaveProperty('value.proof.length', 63);
  });

  test('says what is wrong without repeating it', () => {
    const fault = decodeAddCheckpoint(Buffer.from(`old <script>\n\n${log.note(1)}`));
    expect(JSON.stringify(fault)).not.toContain('script');
  });
});

describe('decideAddCheckpoint', () => {
  test('200: the first checkpoint, a larger one, the same again, an empty one', () => {
    expect(statusOf(log.request(0, 5), undefined)).toBe(200);
    expect(statusOf(log.request(5, 9), 5)).toBe(200);
    expect(statusOf(log.request(9, 9), 9)).toBe(200);
    expect(statusOf(log.request(0, 0), undefined)).toBe(200);
    expect(statusOf(log.request(0, 0), 0)).toBe(200);
    expect(statusOf(log.request(0, 4), 0)).toBe(200);
  });

  test('200 from every size to every other', () => {
    for (let size = 0; size <= 20; size += 1) {
      for (let old = 0; old <= size; old += 1) expect(statusOf(log.request(old, size), old)).toBe(200);
    }
  });

  test('400: an old size larger than the checkpoint, also when it is the one cosigned last', () => {
    expect(statusOf(body(6, [], log.note(5)), 6)).toBe(400);
    expect(statusOf(body(6, [], log.note(5)), 1)).toBe(400);
  });

  test('404: an unknown origin, whoever signed', () => {
    expect(statusOf(new TestLog('log.example/b', log.signer).request(0, 1), undefined)).toBe(404);
  });

  test('403: no signature by a known key', () => {
    const stranger = new TestLog(log.origin);
    expect(statusOf(stranger.request(0, 1), undefined)).toBe(403);
  });

  test('403: a wrong signature by a known key, also beside a right one', () => {
    const note = parseNote(Buffer.from(log.note(1)));
    const [right] = note.signatures;
    const wrong = {
      ...right,
      signature: Uint8Array.from(right.signature, (byte, n) => (n === 9 ? byte ^ 1 : byte)),
    };
    for (const signatures of [[wrong], [right, wrong], [wrong, right]]) {
      expect(statusOf(body(0, [], formatNote({ text: note.text, signatures })), undefined)).toBe(403);
    }
    const other = new TestLog(log.origin);
    const both = formatNote({
      text: note.text,
      signatures: [signNote(note.text, log.origin, other.signer), wrong],
    });
    expect(statusOf(body(0, [], both), undefined, [log, other])).toBe(403);
  });

  test('ignores signatures by unknown keys', () => {
    const text = log.text(2);
    const stranger = createSigner(generatePrivateKey());
    const signatures = [
      signNote(text, 'somebody.example', stranger),
      signNote(text, log.origin, stranger),
      signNote(text, log.origin, log.signer),
      { name: 'w.example', keyId: '00000000', signature: Uint8Array.of(1) },
    ];
    const request = valueOf(decodeAddCheckpoint(body(0, [], formatNote({ text, signatures }))));
    const decision = decideAddCheckpoint(request, [log.key], undefined);
    expect(decision).toEqual({ status: 200, logSignatures: [expect.objectContaining({ name: log.origin })] });
    if (decision.status !== 200) throw new Error();
    expect(decision.logSignatures.map(formatSignatureLine)).toEqual([
      formatSignatureLine(signNote(text, log.origin, log.signer)),
    ]);
  });

  test('keeps one signature by each key of the log', () => {
    const second = createSigner(generatePrivateKey());
    const text = log.text(2);
    const signatures = [signNote(text, log.origin, second), signNote(text, log.origin, log.signer)];
    const request = valueOf(decodeAddCheckpoint(body(0, [], formatNote({ text, signatures }))));
    const keys = [log.key, makeNoteKey(log.origin, second.publicKey, 'ed25519')];
    expect(decideAddCheckpoint(request, keys, undefined)).toHaveProperty('logSignatures.length', 2);
  });

  test('409: another old size, with the one cosigned last', () => {
    const request = valueOf(decodeAddCheckpoint(log.request(3, 9)));
    expect(decideAddCheckpoint(request, [log.key], { size: 5, root: log.root(5) })).toEqual({
      status: 409,
      body: '5\n',
    });
    expect(decideAddCheckpoint(request, [log.key], undefined)).toEqual({ status: 409, body: '0\n' });
    expect(statusOf(log.request(0, 9), 5)).toBe(409);
    expect(statusOf(body(0, ['x'.repeat(32)], log.note(9)), 5)).toBe(409);
  });

  test('422: an empty tree with another root', () => {
    const text = log.text(1).replace('\n1\n', '\n0\n');
    expect(statusOf(body(0, [], log.sign(text)), undefined)).toBe(422);
  });

  test('422: a proof from nothing', () => {
    expect(statusOf(body(0, log.proof(3, 9), log.note(9)), undefined)).toBe(422);
    expect(statusOf(body(0, [log.root(1)], log.note(0)), undefined)).toBe(422);
  });

  test('422: a proof that does not verify', () => {
    const proof = log.proof(5, 9);
    expect(statusOf(body(5, [], log.note(9)), 5)).toBe(422);
    expect(statusOf(body(5, proof.slice(1), log.note(9)), 5)).toBe(422);
    expect(statusOf(body(5, [...proof, proof[0]], log.note(9)), 5)).toBe(422);
    expect(statusOf(body(5, log.proof(4, 9), log.note(9)), 5)).toBe(422);
    expect(statusOf(log.fork('b').request(5, 9), 5)).toBe(422);
    expect(statusOf(log.fork('b', 4).request(5, 9), 5)).toBe(422);
    expect(statusOf(log.fork('b', 5).request(5, 9), 5)).toBe(200);
  });

  test('409: another root of the same size', () => {
    expect(statusOf(log.fork('b').request(5, 5), 5)).toBe(409);
  });

  test('422: a proof where none is needed', () => {
    expect(statusOf(body(5, [log.root(5)], log.note(5)), 5)).toBe(422);
  });

  test('checks in the order of the protocol', () => {
    const stranger = new TestLog(log.origin);
    const elsewhere = new TestLog('log.example/b');
    expect(statusOf(body(6, [], elsewhere.note(5)), 1)).toBe(404);
    expect(statusOf(body(6, [], stranger.note(5)), 1)).toBe(403);
    expect(statusOf(body(6, [], log.fork('b').note(5)), 1)).toBe(400);
    expect(statusOf(body(3, [], log.fork('b').note(5)), 1)).toBe(409);
  });

  test('no changed byte and no part of a request is taken for another one that is right', () => {
    const whole = log.request(5, 9);
    const statuses = new Set<number>();
    for (let at = 0; at < whole.length; at += 1) {
      for (const change of [0x01, 0x80]) {
        const changed = Uint8Array.from(whole);
        changed[at] ^= change;
        const status = statusOf(changed, 5);
        statuses.add(status);
        expect(status).toBeGreaterThanOrEqual(400);
      }
      expect(statusOf(whole.subarray(0, at), 5)).toBe(400);
      if (at > 0) expect(statusOf(whole.subarray(at), 5)).toBe(400);
    }
    expect([...statuses].sort()).toEqual([400, 403, 404, 409, 422]);
  });

  test('whatever is asked, two views are never accepted one after the other', () => {
    const views = [log, log.fork('b', 4), log.fork('c', 8)];
    const step = fc.record({
      view: fc.nat(2),
      old: fc.option(fc.nat(12)),
      size: fc.nat(12),
      proofOf: fc.nat(2),
    });
    let accepted = 0;
    fc.assert(
      fc.property(fc.array(step, { minLength: 20, maxLength: 40 }), (steps) => {
        let last: { size: number; root: string } | undefined;
        const signed: { size: number; root: string }[] = [];
        for (const { view, size, proofOf, ...step } of steps) {
          const old = step.old ?? last?.size ?? 0;
          const proof = old <= size ? views[proofOf].proof(old, size) : [];
          const request = valueOf(decodeAddCheckpoint(body(old, proof, views[view].note(size))));
          const decision = decideAddCheckpoint(request, [log.key], last);
          if (decision.status !== 200) continue;
          last = request.note.checkpoint;
          signed.push(last);
          accepted += 1;
        }
        // All that was accepted is of one view.
        expect(views.some((each) => signed.every(({ size, root }) => each.root(size) === root))).toBe(true);
        expect(signed.every(({ size }, n) => n === 0 || size >= signed[n - 1].size)).toBe(true);
      }),
      { numRuns: 150 },
    );
    expect(accepted).toBeGreaterThan(150);
  });
});
