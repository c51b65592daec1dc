/** What the bundle does where there is no Node: verifies cases whose files it is given, and a proof. */

import {
  NorthrootError,
  parseProofKey,
  parseTrustPolicy,
  parseWitnessPolicy,
  renderReport,
  verifyChunks,
  verifyProof,
} from 'northroot/verify';

/** A case's paths, its files in base64 by path, its ledger's segments where it is a folder. */
globalThis.verifyCase = async (fixture, files) => {
  const bytesOf = (path) => decode(files[path]);
  const { trust, witness_policy: witnesses, checkpoints, predecessor, parents, now } = fixture;
  try {
    const report = await verifyChunks(ledgerOf(fixture.ledger, fixture.segments, bytesOf), {
      name: fixture.ledger,
      ...(trust && { trust: parseTrustPolicy(bytesOf(trust)) }),
      ...(witnesses && { witnessPolicy: parseWitnessPolicy(bytesOf(witnesses)) }),
      ...(checkpoints && { checkpoints: checkpoints.map((name) => ({ name, note: bytesOf(name) })) }),
      ...(predecessor && { predecessor: bytesOf(predecessor) }),
      ...(parents && { parents: parents.map(bytesOf) }),
      ...(now && { now }),
    });
    return { report, hasText: renderReport(report).length > 0 };
  } catch (error) {
    return { error: error instanceof NorthrootError ? error.code : String(error) };
  }
};

globalThis.verifyProofFile = (proof, key) => verifyProof(decode(proof), { keys: [parseProofKey(key)] });

/** Names of Node that are there. */
globalThis.namesOfNode = () =>
  ['Buffer', 'process', 'require', 'global', 'setImmediate'].filter((name) => name in globalThis);

function ledgerOf(path, segments, bytesOf) {
  if (segments === undefined) return asWebHasIt(bytesOf(path));
  return {
    paths: [path],
    size: undefined,
    segments: each(
      segments.map(({ file, firstSeq }) => ({
        file,
        firstSeq: firstSeq ?? undefined,
        chunks: each([bytesOf(file)]),
      })),
    ),
  };
}

/** A blob where there are blobs. */
function asWebHasIt(bytes) {
  return typeof Blob === 'undefined' ? bytes : new Blob([bytes]);
}

async function* each(items) {
  for (const item of items) yield await item;
}

function decode(base64) {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}
