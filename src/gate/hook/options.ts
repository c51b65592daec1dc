/** What a hook is told beside the call. */

export interface HookOptions {
  /** Who acts: a PrincipalID (SPEC §2). */
  readonly principal: string;
  /** What the principals of subagents begin with. Default: they act as the session does. */
  readonly subagents?: string | undefined;
  /** What is said of an allowed call: nothing, so that the host's own rules decide, or that it may run. Default `none`. */
  readonly onAllow?: 'none' | 'allow' | undefined;
  /** What is said of a call that needs an approval. `ask` has the host ask its user, whose answer the ledger does not know. Default `deny`. */
  readonly onAsk?: 'deny' | 'ask' | undefined;
  /** What happens to a call where nobody can be asked. Default `closed`. */
  readonly fail?: 'closed' | 'open' | undefined;
  /** How long to wait for approvals, in milliseconds. Default 0. */
  readonly waitMs?: number | undefined;
  /** How long the rest may take, in milliseconds. Default 25,000. */
  readonly deadlineMs?: number | undefined;
  /** How the denied action (`sha-256:…`) is approved, in words. */
  readonly howToApprove?: ((authorization: string) => string) | undefined;
}

/** Hosts give a hook 60 seconds unless told otherwise; the shortest, 30. */
export const DEFAULT_DEADLINE_MS = 25_000;
/** For a process to begin and to end on a busy machine. */
const GRACE_MS = 35_000;

/** How long a host must wait for a hook with these options, in seconds. */
export function hostTimeout({
  waitMs = 0,
  deadlineMs = DEFAULT_DEADLINE_MS,
}: Pick<HookOptions, 'waitMs' | 'deadlineMs'>): number {
  return Math.ceil((waitMs + deadlineMs + GRACE_MS) / 1000);
}
