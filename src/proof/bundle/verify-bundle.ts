/**
 * Verifies a bundle offline (docs/spec/bundle.md): its form, the exporter's signature, each record, the proof of all records against the
 * checkpoint and its signatures, and that the bundle holds what it claims. No files, no clock, no network.
 *
 * What only a whole ledger could show is listed under `not_checked`.
 */

import { equalBytes } from '../../base/bytes/compare.js';
import { encodeBase64url } from '../../base/bytes/encoding.js';
import { printable } from '../../base/bytes/printable.js';
import { sha256 } from '../../base/bytes/sha256.js';
import { encodeUtf8 } from '../../base/bytes/text.js';
import { defined } from '../../base/defined.js';
import { canonicalText } from '../../base/json/canonicalize.js';
import { ingestJson } from '../../base/json/ingest.js';
import { NorthrootError } from '../../base/error.js';
import { checkOptions, type OptionTypes } from '../../base/options.js';
import { toDigestText } from '../../base/value/digest.js';
import { VERSION } from '../../base/version.js';
import { verifyCoseSign1 } from '../../format/cose/sign1.js';
import type { Finding } from '../../format/finding/finding.js';
import { decodeCheckpoint, type SignedCheckpoint } from '../../format/note/checkpoint.js';
import { checkReport, checkTrustPolicy } from '../../format/schema/check.js';
import type { BundleResult, ReportJson } from '../../format/schema/generated/types.js';
import { defaultBackend } from '../../format/signature/default-backend.js';
import { hashToBase64url, leafHash } from '../../format/tree/compact-range.js';
import { multiProofRoot, type PlacedLeaf } from '../../format/tree/multi-proof.js';
import { EXIT_STATUS } from '../../rules/report/exit-status.js';
import { describeImported, listSliceGaps, listNotChecked } from '../../rules/report/not-checked.js';
import { buildReport, toFindingJson } from '../../rules/report/report.js';
import { isSelected, isWhole } from '../../rules/selection.js';
import { ParentLedger } from '../../rules/verify/parents.js';
import { isSignedByLog, listSigners } from '../../rules/trust/checkpoint-judge.js';
import { describeSkipped } from '../../rules/trust/witness-policy.js';
import type { Anchor } from '../../rules/verify/anchors.js';
import { VERIFY_OPTIONS, type VerifyOptions } from '../../rules/verify/run-verification.js';
import type { VerifyState } from '../../rules/verify/state.js';
import type { VerifiedRecord } from '../../rules/verify/verified-record.js';
import { type Bundle, type BundledRecord, type BundleFile, decodeBundle, namesKey } from './bundle-file.js';
import { digestOf, isSalted, listDigests, MAX_NAMED_BY, MAX_NAMED_CHARACTERS } from './contents.js';
import { holdsAll, type RecordsRun, runRecords } from './run-records.js';

export interface VerifyBundleOptions extends Pick<
  VerifyOptions,
  'trust' | 'witnessPolicy' | 'checkpoints' | 'now' | 'backend' | 'signal'
> {
  /** The name of the bundle in findings. Default: `-`. */
  readonly name?: string | undefined;
  /** Called with each record, in the ledger's order. The next record waits for the returned promise, if any. */
  readonly onRecord?:
    | ((record: VerifiedRecord, isSelected: boolean) => Promise<void> | undefined)
    | undefined;
}

const OPTIONS: OptionTypes<VerifyBundleOptions> = {
  trust: VERIFY_OPTIONS.trust,
  witnessPolicy: VERIFY_OPTIONS.witnessPolicy,
  checkpoints: VERIFY_OPTIONS.checkpoints,
  now: VERIFY_OPTIONS.now,
  backend: VERIFY_OPTIONS.backend,
  signal: VERIFY_OPTIONS.signal,
  name: 'string',
  onRecord: 'function',
};

type Problem = BundleResult['problems'][number];
type NotChecked = BundleResult['not_checked'][number];
type Exporter = NonNullable<BundleResult['bundle']['exporter']>;

/** The most principals listed of a stretch. */
const MAX_PRINCIPALS = 100;

/**
 * Verifies a bundle. The result reports faults of the bundle under `problems`, with the codes `BUNDLE_MALFORMED`, `BUNDLE_DIGEST_MISMATCH`, `BUNDLE_SIGNATURE_INVALID`, `BUNDLE_INCOMPLETE` (it claims more than it holds),
 * `SELECTION_MISMATCH`, `CONTENT_NOT_NAMED`, `PROOF_INVALID`, `NOTE_MALFORMED`, and those of SPEC §8 for checkpoints; faults of records are
 * under `findings`. Without a checkpoint signed by a known key of the log the result is undecided.
 *
 * @param bytes - The file.
 * @throws TypeError for an option that is not known or of the wrong type; RangeError for a bad one; NorthrootError `NOTE_MALFORMED` for
 *   one of `checkpoints`
 */
export async function verifyBundle(
  bytes: Uint8Array,
  options: VerifyBundleOptions = {},
): Promise<BundleResult> {
  checkOptions('verifyBundle', options, OPTIONS);
  const decoded = decodeBundle(bytes);
  if (!decoded.ok) {
    const { code, expected, actual } = decoded.fault;
    return brokenResult(bytes, [{ code, kind: 'invalid', expected, actual }]);
  }
  return new Judge(bytes.length, decoded.value, options).run();
}

/** A bundle that was verified, as a ledger that sets amounts aside for others. */
export interface ParentBundle {
  readonly result: BundleResult;
  /** Of a selection it says that it is a part. */
  readonly parent: ParentLedger;
}

/**
 * Verifies a bundle, so that the slices in it are held against the ledgers that spend them (SPEC §8 rule 17), where their own ledger is not at
 * hand. It holds the slice's action, its start and the grants above it.
 * @throws as {@link verifyBundle}; NorthrootError `BUNDLE_MALFORMED` for what is no bundle
 */
export async function verifyParentBundle(
  bytes: Uint8Array,
  options: VerifyBundleOptions = {},
): Promise<ParentBundle> {
  checkOptions('verifyParentBundle', options, OPTIONS);
  const decoded = decodeBundle(bytes);
  if (!decoded.ok) {
    const { code, expected, actual } = decoded.fault;
    throw new NorthrootError(code, `expected ${printable(expected)}, found ${printable(actual)}`);
  }
  const judge = new Judge(bytes.length, decoded.value, options);
  const result = await judge.run();
  return { result, parent: judge.parent(result) };
}

class Judge {
  readonly #size: number;
  readonly #file: BundleFile;
  readonly #bundle: Bundle;
  readonly #options: VerifyBundleOptions;
  readonly #problems: Problem[] = [];
  readonly #contents: ContentTally;
  readonly #stretches: StretchTally;
  readonly #seen = new Set<string>();
  #isStrayTold = false;
  #run: RecordsRun | undefined;

  constructor(size: number, file: BundleFile, options: VerifyBundleOptions) {
    this.#size = size;
    this.#file = file;
    this.#bundle = file.bundle;
    this.#options = options;
    this.#contents = new ContentTally(file.attachments);
    this.#stretches = new StretchTally(file.bundle);
  }

  async run(): Promise<BundleResult> {
    const { onRecord, name = '-', ...options } = this.#options;
    const bundle = this.#bundle;
    if (!equalBytes(sha256(this.#file.content), this.#file.digest))
      this.#add(
        'BUNDLE_DIGEST_MISMATCH',
        digestText(sha256(this.#file.content)),
        digestText(this.#file.digest),
      );
    const isSigned = this.#checkSignature();
    this.#checkProof();
    const note = this.#readNote();
    const run = await runRecords(bundle, name, note, options, (record, bundled) => {
      this.#takeRecord(record, bundled);
      return onRecord?.(record, bundled.isSelected);
    });
    this.#run = run;
    this.#checkClaims();
    this.#judgeCheckpoint(note, run);
    const claim = this.#readReport(run);
    for (const digest of this.#contents.unnamed())
      this.#add('CONTENT_NOT_NAMED', 'attached contents that a record names by their digests', digest);
    return this.#conclude(run, isSigned, claim);
  }

  /** MUST be called after {@link Judge.run}. */
  parent({ verdict }: BundleResult): ParentLedger {
    const { state, noteVerdict, whole } = this.#run as RecordsRun;
    const about = {
      name: this.#options.name ?? '-',
      ledgerId: state.ledgerId,
      isInvalid: verdict === 'invalid',
      sealedSize: isSignedByLog(noteVerdict?.signers ?? []) ? this.#bundle.tree.size : 0,
      isPart: whole === undefined,
    };
    return new ParentLedger(about, state.sliceWatch?.slices ?? new Map());
  }

  #add(code: string, expected: string, actual: string, kind: Problem['kind'] = 'invalid'): void {
    this.#problems.push({
      code,
      kind,
      expected: printable(expected, 1_024),
      actual: printable(actual, 1_024),
    });
  }

  /** Whether the exporter's signature is valid; undefined without one. */
  #checkSignature(): boolean | undefined {
    const { signature, content, bundle } = this.#file;
    const { exporter } = bundle;
    if (signature === undefined || exporter === undefined) return undefined;
    const key = (this.#options.backend ?? defaultBackend).importKey(exporter);
    const isValid = namesKey(signature, exporter) && verifyCoseSign1(signature, key, { payload: content });
    if (!isValid) this.#add('BUNDLE_SIGNATURE_INVALID', `a signature by ${exporter.keyid}`, 'another one');
    return isValid;
  }

  /** Checks that the records, in their positions, are those of the tree. */
  #checkProof(): void {
    const { records, leaves, hashes, tree } = this.#bundle;
    const own = records.map(({ seq, line }): PlacedLeaf => ({ index: seq, leafHash: leafHash(line) }));
    const known = [...own, ...leaves].sort((a, b) => a.index - b.index);
    if (multiProofRoot(known, hashes, tree.size) === tree.root) return;
    this.#add('PROOF_INVALID', `a proof of the records in the tree of ${tree.size}`, 'another');
  }

  /** The note, if it matches the tree. */
  #readNote(): SignedCheckpoint | undefined {
    const { note: bytes, tree } = this.#bundle;
    if (bytes === undefined) return undefined;
    const decoded = decodeCheckpoint(bytes);
    if (!decoded.ok) {
      this.#add('NOTE_MALFORMED', decoded.fault.expected, decoded.fault.actual);
      return undefined;
    }
    const note = decoded.value;
    const { size, root } = note.checkpoint;
    if (size !== tree.size) this.#add('CHECKPOINT_SIZE_MISMATCH', `${tree.size}`, `${size}`);
    if (root !== tree.root) {
      const of = (hash: string): string => toDigestText(hashToBase64url(hash));
      this.#add('CHECKPOINT_ROOT_MISMATCH', of(tree.root), of(root));
    }
    return size === tree.size && root === tree.root ? note : undefined;
  }

  #takeRecord(record: VerifiedRecord, bundled: BundledRecord): void {
    const { examined, ordinal } = record;
    const { selection } = this.#bundle;
    const inStretch = this.#stretches.take(record);
    // Without criteria the stretches are the selection.
    const isMeant = isWhole(selection) ? inStretch : isSelected(record, selection);
    const isStray = bundled.isSelected ? !isMeant : isMeant && inStretch;
    if (isStray && !this.#isStrayTold) {
      this.#isStrayTold = true;
      const [expected, actual] = bundled.isSelected
        ? [`records that fit the selection`, `seq ${ordinal}, which does not`]
        : [
            `every record of a stretch that fits the selection among the selected`,
            `seq ${ordinal} among others`,
          ];
      this.#add('SELECTION_MISMATCH', expected, actual);
    }
    if (examined?.eventId !== undefined) this.#seen.add(toDigestText(examined.eventId));
    const event = this.#contents.isEmpty ? undefined : examined?.json();
    if (event !== undefined) this.#contents.take(ordinal, listDigests(event));
  }

  /** Checks that the bundle holds what it claims. */
  #checkClaims(): void {
    const { selection, records, tree } = this.#bundle;
    const incomplete = (expected: string, actual: string): void =>
      this.#add('BUNDLE_INCOMPLETE', expected, actual);
    // Genesis defines what all other records need; its hash alone does not.
    if (tree.size > 0 && records[0]?.seq !== 0) {
      const isHash = this.#bundle.leaves[0]?.index === 0;
      incomplete('the first record of the ledger', isHash ? 'its hash only' : 'none');
    }
    const { grantId, eventIds } = selection;
    if (grantId !== undefined && !this.#seen.has(grantId)) incomplete(`the grant ${grantId}`, 'none');
    const missing = [...(eventIds ?? [])].find((id) => !this.#seen.has(id));
    if (missing !== undefined) incomplete(`the event ${missing}`, 'none');
    const gap = this.#stretches.findGap();
    if (gap !== undefined)
      incomplete(`every place from seq ${gap.from} to ${gap.to}`, `none at seq ${gap.missing}`);
  }

  #judgeCheckpoint(note: SignedCheckpoint | undefined, { state, noteVerdict, whole }: RecordsRun): void {
    const { tree } = this.#bundle;
    if (note === undefined || noteVerdict === undefined) {
      if (this.#bundle.note === undefined)
        this.#add('CHECKPOINT_MISSING', 'a signed checkpoint of the tree', 'none', 'undecided');
    } else {
      const { origin } = note.checkpoint;
      const origins = state.policy?.origins;
      // The verification of a whole ledger has judged its checkpoint already.
      if (whole === undefined) {
        if (state.origin !== undefined && state.origin !== origin)
          this.#add('ORIGIN_MISMATCH', state.origin, origin);
        else if (state.origin === undefined && origins !== undefined && !origins.includes(origin))
          this.#add('ORIGIN_MISMATCH', origins.join(' or '), origin);
        for (const { code, severity, expected = '', actual = '' } of noteVerdict.problems)
          if (severity === undefined) this.#add(code, expected, actual);
        const { requirements } = state;
        for (const unmet of [
          requirements.findMissingLogKeys(noteVerdict.signers),
          requirements.findMissingWitnesses(noteVerdict.signers),
        ])
          if (unmet !== undefined) this.#add(unmet.code, unmet.expected, unmet.actual);
      }
      if (!isSignedByLog(noteVerdict.signers) && noteVerdict.problems.length === 0) {
        const actual = `${noteVerdict.unknown} by unknown keys`;
        this.#add(
          'KEY_UNKNOWN',
          `a signature of the checkpoint by a known key of ${origin}`,
          actual,
          'undecided',
        );
      }
    }
    if (whole !== undefined) return;
    for (const anchor of this.#options.checkpoints ?? []) this.#holdAgainst(anchor, tree);
  }

  /** A selection can only be compared with a checkpoint of the same size. */
  #holdAgainst({ name, note }: Anchor, tree: Bundle['tree']): void {
    const decoded = decodeCheckpoint(note);
    if (!decoded.ok) {
      this.#add('NOTE_MALFORMED', `${decoded.fault.expected} in ${name}`, decoded.fault.actual);
      return;
    }
    const held = decoded.value;
    if (held.checkpoint.size === tree.size && held.checkpoint.root !== tree.root) {
      const of = (hash: string): string => toDigestText(hashToBase64url(hash));
      const expected = `root ${of(held.checkpoint.root)} of ${tree.size} records, as ${name} says`;
      this.#add('FORKED', expected, of(tree.root));
    }
  }

  /** The exporter's report of the whole ledger; checks only that it is about this ledger. */
  #readReport({ state }: RecordsRun): ReportJson | undefined {
    const report = readJson(this.#bundle.report);
    const policy = this.#bundle.policy === undefined ? undefined : readJson(this.#bundle.policy);
    if (policy !== undefined && (policy.value === undefined || checkTrustPolicy(policy.value).length > 0))
      this.#add('BUNDLE_MALFORMED', 'a trust policy in canonical JSON', 'another text');
    if (report.value === undefined || checkReport(report.value).length > 0) {
      this.#add('BUNDLE_MALFORMED', 'a report in canonical JSON', 'another text');
      return undefined;
    }
    const claim = report.value as unknown as ReportJson;
    const { origin, records } = claim.ledger;
    if (origin !== (state.origin ?? null))
      this.#add(
        'BUNDLE_INCOMPLETE',
        `a report of ${state.origin ?? 'a ledger without an origin'}`,
        `one of ${origin}`,
      );
    else if (records < this.#bundle.tree.size)
      this.#add('BUNDLE_INCOMPLETE', `a report of ${this.#bundle.tree.size} records`, `one of ${records}`);
    return claim;
  }

  #conclude(run: RecordsRun, isSigned: boolean | undefined, claim: ReportJson | undefined): BundleResult {
    const { state, noteVerdict, counts } = run;
    const { tool, createdAt, tree, records, leaves, selection, beyond } = this.#bundle;
    const { since, until, principal, tool: toolPattern, grantId, eventIds } = selection;
    const selected = records.filter((record) => record.isSelected).length;
    const verdict = this.#verdictOf(run);
    return {
      result_version: '1',
      tool: { name: 'northroot', version: VERSION },
      verdict,
      exit_status: EXIT_STATUS[verdict],
      bundle: {
        size_bytes: this.#size,
        digest: digestText(this.#file.digest),
        created_at: createdAt ?? null,
        made_by: `${tool.name} ${tool.version}`,
        ...defined({ exporter: this.#describeExporter(run, isSigned) }),
      },
      ledger: {
        origin: state.origin ?? null,
        ledger_id: state.ledgerId === undefined ? null : toDigestText(state.ledgerId),
      },
      tree: {
        tree_size: tree.size,
        root: toDigestText(hashToBase64url(tree.root)),
        has_checkpoint: this.#bundle.note !== undefined,
        signers: listSigners(noteVerdict?.signers ?? []).map(({ keyid, name, role, source }) => ({
          keyid,
          name,
          role,
          source,
        })),
        unknown: noteVerdict?.unknown ?? 0,
      },
      scope: holdsAll(this.#bundle) ? 'whole' : 'selection',
      selection: {
        ...defined({ since, until, principal, tool: toolPattern, grant_event_id: grantId }),
        ...(eventIds === undefined ? {} : { event_ids: [...eventIds] }),
      },
      records: {
        held: records.length,
        selected,
        linked: records.length - selected,
        hashes_only: leaves.length,
        beyond,
      },
      stretches: this.#stretches.list(),
      trust: describeTrust(state),
      counts: {
        by_type: Object.fromEntries([...state.countsByType].sort(([a], [b]) => (a < b ? -1 : 1))),
        by_verdict: { ...counts },
      },
      contents: this.#contents.list(),
      ...defined({
        report_at_export: claim && toClaim(claim),
        report: run.whole && buildReport(run.whole),
      }),
      not_checked: this.#listNotChecked(run, isSigned),
      problems: this.#problems,
      findings: run.findings.map((finding: Finding) => toFindingJson(finding)),
      findings_total: run.total,
    };
  }

  #describeExporter({ state }: RecordsRun, isSigned: boolean | undefined): Exporter | undefined {
    const { exporter } = this.#bundle;
    if (exporter === undefined) return undefined;
    const { keyid } = exporter;
    const entry = state.keyring.find(keyid);
    const isPinned = state.requirements.sourceOf(keyid) === 'trust-policy';
    return {
      keyid,
      signature: isSigned === true ? 'valid' : 'invalid',
      known_by: entry === undefined ? 'nobody' : isPinned ? 'trust-policy' : 'ledger',
      ...defined({ name: entry?.key.name }),
    };
  }

  #verdictOf({ hasInvalid, hasViolation, state }: RecordsRun): BundleResult['verdict'] {
    if (hasInvalid || this.#problems.some(({ kind }) => kind === 'invalid')) return 'invalid';
    if (this.#problems.length > 0 || state.records === 0) return 'undecided';
    return hasViolation ? 'violation' : 'ok';
  }

  /** Whether a key that does not descend from a revoked key signed the checkpoint. */
  #isSealedByOthers({ state: { keyring }, noteVerdict }: RecordsRun): boolean {
    const unrevoked = keyring.keysWithUnrevokedLineage();
    return (noteVerdict?.signers ?? []).some(
      // Keys of the witness policy need not be in the keyring.
      ({ keyid }) => unrevoked.has(keyid) || keyring.find(keyid) === undefined,
    );
  }

  /** What was not checked, most important first. */
  #listNotChecked(run: RecordsRun, isSigned: boolean | undefined): NotChecked[] {
    const { state, whole } = run;
    const { tree, beyond, exporter } = this.#bundle;
    const list = whole === undefined ? this.#listOfSelection(run) : [...listNotChecked(whole)];
    const add = adderTo(list);
    add(
      this.#options.trust?.require?.checkpoint_max_age_seconds !== undefined,
      'CHECKPOINT_AGE',
      'how old the checkpoint is, which your trust policy bounds: its record comes after the tree',
    );
    add(
      this.#stretches.hashes > 0,
      'HASHES_ONLY',
      `records of stretches that are here as hashes only: ${this.#stretches.hashes}; that each stands in its place is proven, and what it says, and whose it is, cannot be said`,
    );
    add(
      true,
      'AFTER_CHECKPOINT',
      `what came after the first ${tree.size} records${beyond > 0 ? `; selected records that come later, which the exporter left out, as nothing proves them: ${beyond}` : ''}`,
    );
    add(
      isSigned === undefined,
      'EXPORTER',
      "who put this bundle together: it is not signed; the ledger's own signatures vouch for its records, and nothing for its selection and its report",
    );
    if (isSigned === true && exporter !== undefined) {
      const revocation = state.keyring.find(exporter.keyid)?.revokedBy;
      add(
        state.requirements.sourceOf(exporter.keyid) !== 'trust-policy',
        'EXPORTER',
        'whose key signed this bundle: your trust policy does not pin it',
      );
      add(
        revocation !== undefined,
        'EXPORTER_REVOKED',
        `whether this bundle was signed before its key was revoked at seq ${revocation?.seq ?? 0}: whoever got hold of the key may have signed it`,
      );
    }
    add(
      true,
      'REPORT_AT_EXPORT',
      'the report inside is what the exporter says of the whole ledger; it is shown, and not verified',
    );
    return list;
  }

  /** What a selection of records cannot show. */
  #listOfSelection(run: RecordsRun): NotChecked[] {
    const { state, noteVerdict, openLinks } = run;
    const { tree, records } = this.#bundle;
    const { signatures } = state;
    const list: NotChecked[] = [];
    const add = adderTo(list);
    add(
      true,
      'SELECTION',
      `this is a selection, not the ledger: ${records.length} of its first ${tree.size} records are here, and nothing is said of the others`,
    );
    add(
      true,
      'BUDGETS',
      'whether caps, reservations, rate limits and concurrency limits were kept: that takes every record under a grant, its credits and debits too; only what these records break by themselves is found',
    );
    add(
      true,
      'SINGLE_USE',
      'whether an authorized action was executed only once, and what is still open: another execution may be among the records that are not here',
    );
    add(
      true,
      'ABSENCE',
      'whether something did not happen: that a record is not here does not mean that the ledger has none',
    );
    add(
      true,
      'KEY_CHANGES',
      'whether records that are not here added or revoked keys; validity is judged by the times that the records state themselves, and by the checkpoints that are here',
    );
    add(
      true,
      'WITHDRAWALS',
      'whether records that are not here revoked or suspended a grant, rejected or used up an approval, or ended a start; whether an approval had expired is judged by the times that the records state themselves, and by the checkpoints that are here',
    );
    add(openLinks > 0, 'LINKS', `events named by records that are only linked, and not here: ${openLinks}`);
    add(
      state.mode === 'self-declared',
      'TRUST',
      "the keys are the ledger's own claim (self-declared): whoever wrote the ledger chose them; only a trust policy of your own pins them",
    );
    add(state.mode === 'none', 'SIGNATURES', 'no keys are known, so no signature was checked');
    add(
      state.mode !== 'none' && signatures.unverified > 0,
      'SIGNATURES_UNVERIFIED',
      `signatures by unknown keys, which could not be checked: ${signatures.unverified}`,
    );
    add(
      signatures.missing > 0 && !state.signaturesRequired,
      'SIGNATURES_MISSING',
      `records without a signature, where none is required: ${signatures.missing}`,
    );
    add(
      state.selfIssuable > 0,
      'AUTHORITY',
      `no key with the role authority was known, so that whoever acts may have issued their own grants: ${state.selfIssuable}`,
    );
    add(state.importedSystems.size > 0, 'IMPORTED_AUTHORITY', describeImported(state));
    add(
      noteVerdict !== undefined &&
        !noteVerdict.signers.some(({ role, source }) => role === 'witness' && source !== 'ledger'),
      'WITNESSES',
      'no witness that you pinned cosigned the checkpoint: nothing shows that everybody is shown the same ledger',
    );
    const continues = state.genesis?.continues;
    add(
      continues !== undefined,
      'PREDECESSOR',
      `the ledger goes on from ${toDigestText(continues?.ledger_id.b64 ?? '')}: whether that one ended as genesis says was not checked`,
    );
    for (const { code, message } of listSliceGaps(state)) add(true, code, message);
    const checkpoints = state.countsByType.get('checkpoint') ?? 0;
    add(
      checkpoints > 0,
      'CHECKPOINT_ROOTS',
      `whether the roots that checkpoints among these records state are those of the ledger before them: ${checkpoints}`,
    );
    add(
      run.byRevoked > 0 && !this.#isSealedByOthers(run),
      'REVOKED_KEYS',
      `records that only keys signed which were revoked later: ${run.byRevoked}; the checkpoint is by revoked keys too, or by keys that these added`,
    );
    const skipped = state.witnessPolicy === undefined ? [] : describeSkipped(state.witnessPolicy);
    add(
      skipped.length > 0,
      'WITNESS_POLICY_KEYS',
      `keys of the witness policy that are of unknown types, and so never count: ${skipped.join('; ')}`,
    );
    const others = (this.#options.checkpoints ?? []).filter(({ note }) => {
      const held = decodeCheckpoint(note);
      return held.ok && held.value.checkpoint.size !== tree.size;
    });
    add(
      others.length > 0,
      'ANCHORS',
      `checkpoints that you hold and that are not of this tree's size, which a selection cannot be held against: ${others.length}`,
    );
    return list;
  }
}

/** Adds an item on a condition. */
function adderTo(list: NotChecked[]): (when: boolean, code: string, message: string) => void {
  return (when, code, message) => {
    if (when) list.push({ code, message });
  };
}

function describeTrust({ mode, signatures, signers, keyring }: VerifyState): BundleResult['trust'] {
  return {
    mode,
    signatures: { ...signatures },
    signers: [...signers.values()].map(({ keyid, principals, records }) => ({
      keyid,
      ...defined({ name: keyring.find(keyid)?.key.name }),
      principals: [...principals],
      records,
    })),
  };
}

/** Records which records name attached contents. */
class ContentTally {
  readonly #contents: Map<
    string,
    { readonly bytes: Uint8Array; total: number; readonly by: { seq: number; pointer: string }[] }
  >;
  #characters = 0;

  constructor(attachments: readonly Uint8Array[]) {
    this.#contents = new Map(attachments.map((bytes) => [digestOf(bytes), { bytes, total: 0, by: [] }]));
  }

  get isEmpty(): boolean {
    return this.#contents.size === 0;
  }

  take(seq: number, named: readonly { readonly digest: string; readonly pointer: string }[]): void {
    for (const { digest, pointer } of named) {
      const content = this.#contents.get(digest);
      if (content === undefined) continue;
      content.total += 1;
      const characters = this.#characters + pointer.length;
      if (content.by.length === MAX_NAMED_BY || characters > MAX_NAMED_CHARACTERS) continue;
      this.#characters = characters;
      content.by.push({ seq, pointer });
    }
  }

  unnamed(): string[] {
    return [...this.#contents].filter(([, { total }]) => total === 0).map(([digest]) => digest);
  }

  list(): BundleResult['contents'] {
    return [...this.#contents].map(([digest, { bytes, total, by }]) => ({
      digest,
      size_bytes: bytes.length,
      salted: isSalted(bytes),
      named_by: by,
      named_total: total,
    }));
  }
}

/** Counts the included positions of the claimed stretches. */
class StretchTally {
  readonly #stretches: readonly {
    readonly from: number;
    readonly to: number;
    held: number;
    readonly principals: Map<string, number>;
  }[];
  readonly #leaves: readonly number[];
  readonly #places: ReadonlySet<number>;
  #at = 0;

  constructor({ stretches, leaves, records }: Bundle) {
    this.#stretches = stretches.map((stretch) => ({
      ...stretch,
      held: 0,
      principals: new Map<string, number>(),
    }));
    this.#leaves = leaves.map(({ index }) => index);
    this.#places = new Set([...records.map(({ seq }) => seq), ...this.#leaves]);
  }

  /** Takes records in order. @returns whether the record is in a stretch */
  take({ ordinal, examined }: VerifiedRecord): boolean {
    while ((this.#stretches[this.#at]?.to ?? Infinity) < ordinal) this.#at += 1;
    const stretch = this.#stretches[this.#at];
    if (stretch === undefined || ordinal < stretch.from) return false;
    stretch.held += 1;
    if (examined?.wellFormed === true) {
      const { principalId } = examined;
      stretch.principals.set(principalId, (stretch.principals.get(principalId) ?? 0) + 1);
    }
    return true;
  }

  findGap(): { readonly from: number; readonly to: number; readonly missing: number } | undefined {
    for (const { from, to } of this.#stretches)
      for (let place = from; place <= to; place += 1)
        if (!this.#places.has(place)) return { from, to, missing: place };
    return undefined;
  }

  /** How many leaf hashes are within stretches. Both ascend. */
  get hashes(): number {
    let at = 0;
    return this.#leaves.filter((index) => {
      while ((this.#stretches[at]?.to ?? Infinity) < index) at += 1;
      return index >= (this.#stretches[at]?.from ?? Infinity);
    }).length;
  }

  /** Principals are listed only if all records of a stretch are included. */
  list(): BundleResult['stretches'] {
    return this.#stretches.map(({ from, to, held, principals }) => {
      const records = to - from + 1;
      const common = { from, to, records, held };
      if (held < records) return { ...common, claim: 'positions' };
      const listed = [...principals]
        .sort(([a, n], [b, m]) => m - n || (a < b ? -1 : 1))
        .slice(0, MAX_PRINCIPALS);
      return {
        ...common,
        claim: 'complete',
        principals: listed.map(([principal, count]) => ({ principal_id: principal, records: count })),
        principals_total: principals.size,
      };
    });
  }
}

function toClaim({
  verdict,
  ledger,
  findings_total: total,
  not_checked: open,
}: ReportJson): NonNullable<BundleResult['report_at_export']> {
  const { records, tree_size: size, root } = ledger;
  return {
    verified: false,
    verdict,
    records,
    tree_size: size,
    root,
    findings_total: total,
    not_checked: open.map(({ code }) => code),
  };
}

/** JSON in canonical form; otherwise no value. */
function readJson(text: string): { readonly value: unknown } {
  const { value } = ingestJson(encodeUtf8(text));
  return { value: value !== undefined && canonicalText(value) === text ? value : undefined };
}

function digestText(bytes: Uint8Array): string {
  return toDigestText(encodeBase64url(bytes));
}

/** The result for a malformed file. */
function brokenResult(bytes: Uint8Array, problems: Problem[]): BundleResult {
  return {
    result_version: '1',
    tool: { name: 'northroot', version: VERSION },
    verdict: 'invalid',
    exit_status: 1,
    bundle: { size_bytes: bytes.length, digest: null, created_at: null, made_by: null },
    ledger: { origin: null, ledger_id: null },
    scope: 'none',
    selection: {},
    records: { held: 0, selected: 0, linked: 0, hashes_only: 0, beyond: 0 },
    stretches: [],
    trust: { mode: 'none', signatures: { valid: 0, invalid: 0, unverified: 0, missing: 0 }, signers: [] },
    counts: { by_type: {}, by_verdict: { ok: 0, denied: 0, violation: 0, invalid: 0 } },
    contents: [],
    not_checked: [],
    problems: problems.map((each) => ({
      ...each,
      expected: printable(each.expected, 1_024),
      actual: printable(each.actual, 1_024),
    })),
    findings: [],
    findings_total: 0,
  };
}
