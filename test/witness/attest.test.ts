/** Cosignatures of a ledger's checkpoint, from witnesses that are honest, wrong, hostile or not there. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { generatePrivateKey } from '../../src/format/key/private-key.js';
import { formatPublicKey } from '../../src/format/key/public-key.js';
import { parseCheckpoint } from '../../src/format/note/checkpoint.js';
import { cosignNote, makeNoteKey, signNote, type NoteKey } from '../../src/format/note/note-key.js';
import { formatSignatureLine, parseNote, type NoteSignature } from '../../src/format/note/signed-note.js';
import { openLedgerSource } from '../../src/log/fs/source.js';
import { LedgerView } from '../../src/log/read/ledger-view.js';
import { maintainIndex } from '../../src/log/read/maintain-index.js';
import { verifyLedger } from '../../src/log/read/verify-ledger.js';
import { createSigner, type Signer } from '../../src/format/signature/signer.js';
import { appendLeaf, emptyRange, leafHash, rangeRoot } from '../../src/format/tree/compact-range.js';
import { verifyConsistency } from '../../src/format/tree/proof.js';
import { attestCheckpoint, type AttestResult, type AttestOptions } from '../../src/proof/witness/attest.js';
import { decodeAddCheckpoint } from '../../src/proof/witness/add-checkpoint.js';
import { Ledger, type CheckpointResult } from '../../src/log/writer/ledger.js';
import { valueOf } from '../value-of.js';
import { NOW, temporaryFolder, witnessKey, WITNESS_NAME, witnessSigner } from './support.js';

const URL_1 = 'http://witness.example/w1';
const URL_2 = 'http://witness.example/w2';
const ORIGIN = 'example.com/tests/attest';

interface Sealed {
  readonly path: string;
  readonly ledger: Ledger;
  readonly made: CheckpointResult;
  readonly signer: Signer;
}

/** A ledger of 6 records with a checkpoint. */
async function seal(before: (ledger: Ledger) => Promise<unknown> = () => Promise.resolve()): Promise<Sealed> {
  const path = join(temporaryFolder(), 'ledger.jsonl');
  const signer = createSigner(generatePrivateKey());
  const ledger = await Ledger.open(path, {
    signer,
    create: { origin: ORIGIN },
    checkpoints: true,
    principalId: 'service:log',
  });
  onTestFinished(() => ledger.close().catch(() => undefined));
  for (let n = 0; n < 5; n += 1) await ledger.append({ event: { event_type: 'x.test', n } });
  await before(ledger);
  return { path, ledger, signer, made: await ledger.checkpoint() };
}

type Answer = (body: string) => Response | Promise<Response>;

function lines(...signatures: readonly NoteSignature[]): Response {
  return new Response(signatures.map((signature) => `${formatSignatureLine(signature)}\n`).join(''));
}

/** Answers what is posted to each URL. */
function fakeFetch(answers: Readonly<Record<string, Answer>>): typeof fetch {
  return async (input: string | URL | Request, init?: RequestInit) => {
    const url = input instanceof Request ? input.url : input.toString();
    const answer = answers[url.replace(/\/add-checkpoint$/, '')];
    if (answer === undefined) throw new TypeError('fetch failed');
    return answer(Buffer.from(init?.body as Uint8Array).toString());
  };
}

function attest(
  { path, ledger, made }: Sealed,
  answers: Readonly<Record<string, Answer>>,
  options: Partial<AttestOptions> = {},
): Promise<AttestResult> {
  return attestCheckpoint((use) => use(ledger), made, {
    urls: Object.keys(answers),
    view: new LedgerView(path),
    timeoutMs: 60_000,
    fetch: fakeFetch(answers),
    ...options,
  });
}

async function expectSound({ path, ledger }: Sealed): Promise<void> {
  await ledger.close();
  const { verdict, findings } = await verifyLedger(path);
  const found = findings.filter(({ severity }) => severity !== 'info').map(({ code }) => code);
  expect({ verdict, found }).toEqual({ verdict: 'ok', found: [] });
}

function textOf({ made }: Sealed): string {
  return parseCheckpoint(Buffer.from(made.note)).text;
}

/** The root of the tree over the first `size` lines. */
function rootOf({ path }: Sealed, size: number): string {
  const range = emptyRange();
  for (const line of readFileSync(path, 'utf8').split('\n').slice(0, size))
    appendLeaf(range, leafHash(Buffer.from(line)));
  return rangeRoot(range);
}

/** A right cosignature. */
function cosign(sealed: Sealed, name = WITNESS_NAME, signer = witnessSigner): NoteSignature {
  return cosignNote(textOf(sealed), name, signer, NOW);
}

function spoil(line: NoteSignature): NoteSignature {
  return { ...line, signature: line.signature.map((byte, index) => (index === 20 ? byte ^ 1 : byte)) };
}

const otherSigner = createSigner(generatePrivateKey());
const otherKey = makeNoteKey('witness.example/w2', otherSigner.publicKey, 'cosignature');
const keys: readonly NoteKey[] = [witnessKey, otherKey];

describe('attestCheckpoint', () => {
  test('appends right cosignatures, and gives the note with them', async () => {
    const sealed = await seal();
    const { ledger, made } = sealed;
    const [one, two] = [cosign(sealed), cosign(sealed, otherKey.name, otherSigner)];
    const answers = { [URL_1]: () => lines(one), [URL_2]: () => lines(two) };
    const attested = await attest(sealed, answers, { keys });
    expect(attested).toMatchObject({ cosignatures: [one, two], declared: [], refused: [] });
    expect(attested.attestation).toMatchObject({ seq: made.seq + 1, status: 'appended' });
    const { text, signatures } = parseNote(Buffer.from(attested.note));
    expect(text).toBe(textOf(sealed));
    expect(signatures.map(({ name }) => name)).toEqual([ORIGIN, one.name, two.name]);
    expect(attested.answers.map(({ url, error }) => [url, error])).toEqual([
      [URL_1, undefined],
      [URL_2, undefined],
    ]);
    expect(ledger.size).toBe(made.seq + 2);
    await expectSound(sealed);
  });

  test('proves to witnesses that the ledger extends what each saw: of each size once, from its index too', async () => {
    const sealed = await seal();
    const sizes: number[] = [];
    const answerOf =
      (saw: number): Answer =>
      (body) => {
        const request = valueOf(decodeAddCheckpoint(Buffer.from(body)));
        sizes.push(request.oldSize);
        if (request.oldSize === 0)
          return new Response(`${saw}\n`, { status: 409, headers: { 'Content-Type': 'text/x.tlog.size' } });
        const { size, root } = request.note.checkpoint;
        const root1 = rootOf(sealed, saw);
        const claim = { size1: saw, root1, size2: size, root2: root, proof: request.proof };
        expect(verifyConsistency(claim)).toBe(true);
        return lines(cosign(sealed));
      };
    const answers = { [URL_1]: answerOf(4), [URL_2]: answerOf(4), 'http://third.example': answerOf(2) };
    let readings = 0;
    const open = (): ReturnType<typeof openLedgerSource> => {
      readings += 1;
      return openLedgerSource(sealed.path);
    };
    const view = new LedgerView(sealed.path, { open });
    const { cosignatures } = await attest(sealed, answers, { keys, view });
    expect(cosignatures).toHaveLength(1);
    expect(sizes.sort()).toEqual([0, 0, 0, 2, 4, 4]);
    expect(readings).toBe(2);
    const index = join(temporaryFolder(), 'index');
    await maintainIndex(sealed.path, { folder: index });
    const indexed = new LedgerView(sealed.path, { open, index });
    await attest(sealed, answers, { keys, view: indexed });
    expect([sizes.length, readings]).toEqual([12, 2]);
  });

  test('leaves out what is wrong or by nobody known, and keeps the rest', async () => {
    const sealed = await seal();
    const right = cosign(sealed);
    const wrong = spoil(cosign(sealed, otherKey.name, otherSigner));
    const stranger = cosign(sealed, 'stranger.example', otherSigner);
    const answers = { [URL_1]: () => lines(right, stranger), [URL_2]: () => lines(wrong) };
    const attested = await attest(sealed, answers, { keys });
    expect(attested).toMatchObject({ cosignatures: [right], declared: [] });
    expect(attested.refused).toEqual([stranger, wrong]);
    expect(attested.unknown).toEqual([stranger]);
    await expectSound(sealed);
  });

  test('appends nothing when nothing that came counts', async () => {
    const sealed = await seal();
    const before = sealed.ledger.size;
    const attested = await attest(sealed, { [URL_1]: () => lines(spoil(cosign(sealed))) }, { keys });
    expect(attested).toMatchObject({ cosignatures: [], attestation: undefined, note: sealed.made.note });
    expect(attested.refused).toHaveLength(1);
    expect(sealed.ledger.size).toBe(before);
    await expectSound(sealed);
  });

  test('keeps what came when another witness is down, late or silly', async () => {
    const sealed = await seal();
    const urls = ['down', 'late', 'refuses', 'silly', 'not a url'].map((name) =>
      name.includes(' ') ? name : `http://${name}.example`,
    );
    const answers: Record<string, Answer> = {
      [URL_1]: () => lines(cosign(sealed)),
      'http://late.example': () =>
        new Promise<Response>((_, reject) =>
          setImmediate(() => reject(new DOMException('late', 'TimeoutError'))),
        ),
      'http://refuses.example': () => new Response('no\n', { status: 403 }),
      'http://silly.example': () => new Response('<html>'),
    };
    const told: string[] = [];
    const attested = await attest(sealed, answers, {
      keys,
      urls: [...urls, URL_1],
      onProgress: ({ url }) => told.push(url),
    });
    expect(attested.answers.map(({ error }) => error?.code)).toEqual([
      'WITNESS_UNREACHABLE',
      'WITNESS_UNREACHABLE',
      'WITNESS_REFUSED',
      'WITNESS_ANSWER_INVALID',
      'WITNESS_URL_INVALID',
      undefined,
    ]);
    expect(attested.cosignatures).toHaveLength(1);
    expect(told.sort()).toEqual([...urls, URL_1].sort());
    await expectSound(sealed);
  });

  test('takes no cosignature without a time', async () => {
    const sealed = await seal();
    const timeless = cosignNote(textOf(sealed), WITNESS_NAME, witnessSigner, 0);
    const attested = await attest(sealed, { [URL_1]: () => lines(timeless) }, { keys });
    expect(attested).toMatchObject({ cosignatures: [], refused: [timeless], unknown: [] });
    await expectSound(sealed);
  });

  test('appends a line once that several witnesses bring', async () => {
    const sealed = await seal();
    const line = cosign(sealed);
    const answers = { [URL_1]: () => lines(line), [URL_2]: () => lines(line) };
    const attested = await attest(sealed, answers, { keys });
    expect(attested.cosignatures).toEqual([line]);
    await expectSound(sealed);
  });

  test('stops when it is told to', async () => {
    const sealed = await seal();
    const controller = new AbortController();
    const answer: Answer = () => {
      controller.abort(new Error('enough'));
      return Promise.reject(controller.signal.reason as Error);
    };
    await expect(attest(sealed, { [URL_1]: answer }, { signal: controller.signal })).rejects.toThrow(
      'enough',
    );
    await expectSound(sealed);
  });
});

describe('without keys', () => {
  test('takes no line, as nobody could say whose it is', async () => {
    const sealed = await seal();
    const line = cosign(sealed);
    const attested = await attest(sealed, { [URL_1]: () => lines(line) });
    expect(attested).toMatchObject({ cosignatures: [], refused: [line], unknown: [line] });
    expect(attested.attestation).toBeUndefined();
    await expectSound(sealed);
  });

  test('takes no line in the name of the log: it could make the ledger invalid for good', async () => {
    const sealed = await seal();
    const { signer } = sealed;
    const own = signNote(textOf(sealed), ORIGIN, signer);
    const forged = [spoil(own), { ...own, keyId: '00000000' }];
    const attested = await attest(sealed, { [URL_1]: () => lines(...forged, own) });
    expect(attested).toMatchObject({ cosignatures: [], attestation: undefined });
    expect(attested.refused).toHaveLength(3);
    await expectSound(sealed);
  });

  const add = (ledger: Ledger, change: 'add' | 'revoke') =>
    ledger.append({
      event: {
        event_type: 'key',
        action: change,
        key: {
          keyid: witnessSigner.publicKey.keyid,
          public_key: formatPublicKey(witnessSigner.publicKey),
          roles: ['witness'],
          principals: ['*'],
          name: WITNESS_NAME,
        },
      },
    });

  test('knows the witnesses that the ledger declares', async () => {
    const sealed = await seal((ledger) => add(ledger, 'add'));
    const [right, wrong] = [cosign(sealed), spoil(cosign(sealed))];
    const answers = { [URL_1]: () => lines(wrong), [URL_2]: () => lines(right) };
    const attested = await attest(sealed, answers);
    expect(attested).toMatchObject({
      cosignatures: [right],
      declared: [right],
      refused: [wrong],
      unknown: [],
    });
    await expectSound(sealed);
  });

  test('nothing of a witness that the ledger revoked', async () => {
    const sealed = await seal(async (ledger) => {
      await add(ledger, 'add');
      await add(ledger, 'revoke');
    });
    const attested = await attest(sealed, { [URL_1]: () => lines(cosign(sealed)) });
    expect(attested).toMatchObject({ cosignatures: [], attestation: undefined });
    await expectSound(sealed);
  });
});
