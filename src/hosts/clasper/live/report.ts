/** A report of an adapter, as the parts of the face hand it on. */

import type { SourceObject } from '../../../base/json/source-json.js';

export interface Report {
  readonly type: ReportType;
  readonly payload: SourceObject;
  readonly executionId: string;
  readonly traceId: string;
  /** Of the payload, `sha256:…`. */
  readonly hash: string;
  readonly isSigned: boolean;
  readonly bytes: Uint8Array;
}

export type ReportType = 'trace' | 'audit' | 'cost' | 'metrics' | 'violations';
