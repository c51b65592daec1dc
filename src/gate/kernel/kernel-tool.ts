/**
 * What a kernel does on behalf of an agent that has no other actuator. A tool is planned first: its arguments are looked at, and nothing
 * is touched, so that it can be decided on. Then it runs, once. What is known only at the moment of the act (a link, a file that is gone)
 * is an outcome, not a denial.
 */

import type { AmountsByUnit } from '../../base/value/meter.js';
import type { ResourceRef } from '../../format/schema/generated/types.js';

/** The tools, by the names that grants give them. */
export type KernelToolName = 'fs.read' | 'fs.list' | 'fs.write' | 'exec' | 'net.fetch';

/** A call that may be decided on, and then run once. */
export interface KernelPlan {
  readonly toolName: KernelToolName;
  /**
   * What it touches: `path`, relative to the root, for files; `program`, its resolved path; `host`, such as `https://example.com:443`.
   */
  readonly resources: readonly ResourceRef[];
  /** The most that it may use: one of `calls`, `time.ms` and `bytes.evidence`. */
  readonly reserve: AmountsByUnit;
  /**
   * Does it.
   * @param signal - Aborting ends it: it is a failure `CANCELLED`
   * @returns Never rejects but for misuse: the second time, TypeError
   */
  run(signal?: AbortSignal): Promise<KernelResult>;
}

/** Why a call cannot be asked for at all. */
export interface KernelDenial {
  /**
   * A Code (SPEC §2): `UNKNOWN_TOOL`, `TOOL_DISABLED`, `INVALID_ARGUMENTS`, `PATH_INVALID`, `PATH_OUTSIDE_ROOT`, `PROGRAM_NOT_ALLOWED`,
   * `HOST_NOT_ALLOWED`, `METHOD_NOT_ALLOWED`, `CONTENT_TOO_LARGE`.
   */
  readonly denied: string;
  /** In words, without the arguments. */
  readonly reason: string;
}

export interface KernelResult {
  readonly outcome: 'success' | 'failure' | 'unknown';
  /** A Code, for a failure. */
  readonly errorCode?: string | undefined;
  /**
   * What the agent is given: of `fs.read` the bytes, of the others JSON in UTF-8. Of a failure JSON too, `{"error":CODE}` at least; what
   * an ended program wrote is in it. At most `maxOutputBytes`.
   */
  readonly output: Uint8Array;
  /** `calls`, `time.ms`, `bytes.evidence`. */
  readonly used: AmountsByUnit;
}

/** How what acts is kept apart from the rest of the machine; docs/guide/kernel-tools.md says what each holds. */
export type IsolationLevel = 'none' | 'netns' | 'container';

export interface KernelToolDefinition {
  readonly name: KernelToolName;
  readonly title: string;
  /** To the model: what it does, and with which programs or hosts. */
  readonly description: string;
  /** The JSON Schema of its arguments. */
  readonly inputSchema: object;
}

/** Tools over one root, a list of programs and a list of hosts. */
export interface KernelTools {
  /** Those that can be called, in a fixed order: `exec` only with programs, `net.fetch` only with hosts. */
  readonly names: readonly KernelToolName[];
  /** Of each of `names`. */
  readonly definitions: readonly KernelToolDefinition[];
  /** What is in force for programs. */
  readonly isolation: IsolationLevel;
  /**
   * Plans a call. Touches nothing.
   * @param args - JSON from an agent: anything
   */
  plan(tool: string, args: unknown): KernelPlan | KernelDenial;
  /** Lets go of the root. What runs is ended first. */
  close(): Promise<void>;
}

export interface KernelToolsOptions {
  /** The one folder that files are read and written in, and programs run in. Without it there are neither `fs.*` nor `exec`. */
  readonly root?: string | undefined;
  /** Whether files may be written. Default true. */
  readonly write?: boolean | undefined;
  /** Paths that must not lie within the root, such as the ledger, its key and its contents. */
  readonly keepOut?: readonly string[] | undefined;
  /** Programs that may be run: absolute paths, by which or by whose last names agents call them. They must not lie within the root. At most 64. */
  readonly programs?: readonly string[] | undefined;
  /** All that programs get as environment. Default: `PATH` of the system's folders, and `LANG=C.UTF-8`. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** How programs are isolated. Refused where it is not to be had. Default `none`. */
  readonly isolation?: IsolationLevel | undefined;
  /**
   * Hosts that may be fetched from: `example.com` (https, port 443), `example.com:8443`, `*.example.com` (any below it, not itself),
   * `http://example.com`, an address such as `http://127.0.0.1:8080` or `https://[::1]`. At most 256.
   */
  readonly hosts?: readonly string[] | undefined;
  /** Methods of HTTP. Default GET and HEAD. */
  readonly methods?: readonly string[] | undefined;
  /** Certificates in PEM to trust instead of the system's. */
  readonly ca?: string | readonly string[] | undefined;
  /** How long one call may take, in milliseconds. Default 60,000. */
  readonly timeoutMs?: number | undefined;
  /** The most that one call gives back, in bytes. Default 262,144 (256 KiB); at most 1 MiB. */
  readonly maxOutputBytes?: number | undefined;
  /** The largest file that is written, in bytes. Default 1,048,576 (1 MiB); at most 16 MiB. */
  readonly maxWriteBytes?: number | undefined;
}

/** Whether a plan was denied. */
export function isDenied(plan: KernelPlan | KernelDenial): plan is KernelDenial {
  return 'denied' in plan;
}
