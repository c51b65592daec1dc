/**
 * The tables of approvals of a state in memory (SPEC §8 rule 15). None of their entries can be forgotten: the report lists every approval,
 * and one that is used up is known to be. So each takes little: an approval about 150 bytes, a call that was approved or rejected about 90.
 */

import { fromDigestText, toDigestText } from '../../base/value/digest.js';
import type { Approval } from '../bounds/approval.js';
import type { Amounts, Approved, EventPlace } from '../bounds/grant.js';
import { type Packing, PackedTable } from './packed-table.js';
import { type Reader, readPlace, type Writer, writePlace } from './packing.js';

export interface RejectEntry {
  readonly seq: number;
}

/** What was said of one call under one grant, for live decisions. */
export interface CallEntry {
  /** The ids of the last approvals that are not used up, base64url; at most {@link MAX_CALL_APPROVALS}. */
  readonly approvals: readonly string[];
  readonly rejected: { readonly place: EventPlace; readonly principalId: string } | undefined;
  /** The place of the last action that used one up. */
  readonly usedAt: number | undefined;
}

export const MAX_CALL_APPROVALS = 64;

/**
 * A denied action that asks for approval: the first of its call that nothing has allowed since, that nobody has rejected, and than which none
 * has asked for more.
 */
export interface RequestedApproval extends Pick<
  Approval,
  'place' | 'principalId' | 'occurredAt' | 'grant' | 'toolName' | 'params'
> {
  readonly reservation: Amounts;
  /** The rule that an adviser added when it was last asked for; undefined where none did. */
  readonly advised: AdvisedRule | undefined;
}

/** Patterns of principals, none where they are not recorded, and how many must approve. */
export interface AdvisedRule {
  readonly approvers: readonly string[];
  readonly count: number;
}

/** A call under a grant. @param grant - The grant's number. @param params - The digest of the parameters, as text. */
export function callName(grant: number, toolName: string, params: string): string {
  return `${grant} ${toolName} ${params}`;
}

/** The name of who awaits approval of a call. @param params - The digest of the parameters, as text. */
export function requestOfCall(principalId: string, grant: number, toolName: string, params: string): string {
  return `${principalId} ${callName(grant, toolName, params)}`;
}

/** A call with more approvals is not packed: it would be packed again for each of them. */
const MAX_PACKED_APPROVALS = 2;
/** Takes the room of the action that will use an approval up. */
const NO_ID = 'A'.repeat(43);

function writeCall(writer: Writer, grant: string, toolName: string, params: string): void {
  writer.number(Number(grant));
  writer.name(toolName);
  writer.digest(params);
}

function readCall(reader: Reader): string {
  return callName(reader.number(), reader.name(), reader.digest() as string);
}

export const ID_KEY = {
  writeKey: (writer: Writer, id: string): void => {
    writer.id(id);
  },
  readKey: (reader: Reader): string => reader.id(),
};

/** Keys of `callName`. */
const CALL_KEY = {
  writeKey: (writer: Writer, name: string): void => {
    const [grant, toolName, params] = name.split(' ') as [string, string, string];
    writeCall(writer, grant, toolName, params);
  },
  readKey: readCall,
};

/** The same with a principal before it. */
const PRINCIPAL_CALL_KEY = {
  writeKey: (writer: Writer, name: string): void => {
    const [principal, grant, toolName, params] = name.split(' ') as [string, string, string, string];
    writer.name(principal);
    writeCall(writer, grant, toolName, params);
  },
  readKey: (reader: Reader): string => `${reader.name()} ${readCall(reader)}`,
};

const APPROVAL: Packing<Approval> = {
  ...ID_KEY,
  write: (writer, approval) => {
    const { place, principalId, occurredAt, grant, toolName, params, limit, expiresAt } = approval;
    const { signers, system = '', usedBy } = approval;
    writePlace(writer, place);
    writer.name(principalId);
    writer.time(occurredAt);
    writer.number(grant);
    writer.name(toolName);
    writer.digest(params);
    writer.number(limit === undefined ? 0 : 1);
    if (limit !== undefined) writer.amounts(limit);
    writer.time(expiresAt);
    writer.number(signers.length);
    for (const keyid of signers) writer.name(keyid);
    writer.text(system);
    writer.number(usedBy === undefined ? 0 : 1);
    writer.id(usedBy === undefined ? NO_ID : fromDigestText(usedBy));
    return true;
  },
  read: (reader, id) => ({
    place: readPlace(reader, toDigestText(id)),
    principalId: reader.name(),
    occurredAt: reader.time() as string,
    grant: reader.number(),
    toolName: reader.name(),
    params: reader.digest() as string,
    limit: reader.number() === 0 ? undefined : reader.amounts(),
    expiresAt: reader.time(),
    signers: Array.from({ length: reader.number() }, () => reader.name()),
    system: reader.text() || undefined,
    usedBy: reader.number() === 0 ? undefined : toDigestText(reader.id()),
  }),
};

const APPROVED: Packing<Approved> = {
  ...ID_KEY,
  write: (writer, { ids, limits, instant, hasAuthority }) => {
    writer.number(ids.length);
    for (const id of ids) writer.id(id);
    writer.amounts(limits);
    writer.time(instant);
    writer.number(hasAuthority ? 1 : 0);
    return true;
  },
  read: (reader) => ({
    ids: Array.from({ length: reader.number() }, () => reader.id()),
    limits: reader.amounts(),
    instant: reader.time() as string,
    hasAuthority: reader.number() === 1,
  }),
};

const REJECT: Packing<RejectEntry> = {
  ...PRINCIPAL_CALL_KEY,
  write: (writer, { seq }) => {
    writer.number(seq);
    return true;
  },
  read: (reader) => ({ seq: reader.number() }),
};

const CALL: Packing<CallEntry> = {
  ...CALL_KEY,
  write: (writer, { approvals, rejected, usedAt }) => {
    if (approvals.length > MAX_PACKED_APPROVALS) return false;
    writer.number(approvals.length);
    for (const id of approvals) writer.id(id);
    writer.number(usedAt === undefined ? 0 : usedAt + 1);
    writer.number(rejected === undefined ? 0 : 1);
    if (rejected === undefined) return true;
    writer.id(fromDigestText(rejected.place.eventId));
    writePlace(writer, rejected.place);
    writer.name(rejected.principalId);
    return true;
  },
  read: (reader) => {
    const approvals = Array.from({ length: reader.number() }, () => reader.id());
    const used = reader.number();
    const rejected =
      reader.number() === 0
        ? undefined
        : { place: readPlace(reader, toDigestText(reader.id())), principalId: reader.name() };
    return { approvals, rejected, usedAt: used === 0 ? undefined : used - 1 };
  },
};

const REQUESTED: Packing<RequestedApproval> = {
  ...PRINCIPAL_CALL_KEY,
  write: (writer, { place, occurredAt, reservation, advised }) => {
    writer.id(fromDigestText(place.eventId));
    writePlace(writer, place);
    writer.time(occurredAt);
    writer.amounts(reservation);
    writer.number(advised?.count ?? 0);
    writer.number(advised?.approvers.length ?? 0);
    for (const pattern of advised?.approvers ?? []) writer.name(pattern);
    return true;
  },
  read: (reader, name) => {
    const [principalId, grant, toolName, params] = name.split(' ') as [string, string, string, string];
    const place = readPlace(reader, toDigestText(reader.id()));
    const occurredAt = reader.time() as string;
    const reservation = reader.amounts();
    const count = reader.number();
    const approvers = Array.from({ length: reader.number() }, () => reader.name());
    const advised = count === 0 ? undefined : { approvers, count };
    return { place, principalId, occurredAt, grant: Number(grant), toolName, params, reservation, advised };
  },
};

/** The tables of a new state. */
export interface ApprovalTables {
  readonly approvals: PackedTable<Approval>;
  readonly approved: PackedTable<Approved>;
  readonly rejects: PackedTable<RejectEntry>;
  readonly calls: PackedTable<CallEntry>;
  readonly awaiting: PackedTable<RequestedApproval>;
}

/** Empty tables. */
export function approvalTables(): ApprovalTables {
  return {
    approvals: new PackedTable(APPROVAL),
    approved: new PackedTable(APPROVED),
    rejects: new PackedTable(REJECT),
    calls: new PackedTable(CALL),
    awaiting: new PackedTable(REQUESTED),
  };
}
