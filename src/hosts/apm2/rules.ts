import type { HostRule } from '../shared/host.js';

/** What holds for whatever apm2 recorded, as its sources state it. */
export const APM2_RULES: readonly HostRule[] = [
  {
    id: 'AP-1',
    statement:
      "Requests of a captured log follow the grammar of ToolIntent 1, its limits and the episode's nonce.",
  },
  {
    id: 'AP-2',
    statement: 'A request id stands for one request of its episode, which has one decision and one answer.',
  },
  {
    id: 'AP-3',
    statement:
      'What was executed was allowed, under the same request id; what was denied never is; each receipt has its execution.',
  },
  { id: 'AP-4', statement: 'Receipts keep their form and limits, and the signature of each verifies.' },
  {
    id: 'AP-5',
    statement:
      'The tool log index names receipts that are there, in order, with counts that are theirs, in complete chunks.',
  },
  {
    id: 'AP-6',
    statement: 'Arguments are canonical JSON, and their BLAKE3 is the hash that events and receipts state.',
  },
  { id: 'AP-7', statement: "The answer, the event and the receipt of a request state one result's hash." },
  {
    id: 'AP-8',
    statement: 'What an episode used stays within its budget, in which 0 is no limit.',
  },
  {
    id: 'AP-9',
    statement:
      'An episode is attributed to work, session and adapter profile, and that profile is the one whose content has this hash, and valid.',
  },
  {
    id: 'AP-10',
    statement:
      'Rows of a ledger are linked, hashed, signed under the domain of their type, and say what their payload says.',
  },
  { id: 'AP-11', statement: 'The intent that was joined is the intent that was consumed.' },
];
