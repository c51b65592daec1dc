/**
 * Requests to the APIs of models, and what they answer: what a call may use at most, before it is sent, and what it used, from the bytes of
 * the answer. Pure: no sockets, no ledger, no prices. Each API has a file of its own.
 */

import type { JsonValue } from '../../base/json/value.js';
import type { ModelUsage } from '../../log/agent/model-usage.js';

/** An API whose calls are read. Those of a file, a batch or speech cost what their requests do not tell. */
export type ModelApi =
  | 'openai-chat'
  | 'openai-responses'
  | 'openai-completions'
  | 'openai-embeddings'
  | 'openai-images'
  | 'openai-audio'
  | 'openai-batches'
  | 'openai-files'
  | 'anthropic-messages'
  | 'anthropic-batches';

/** Whose errors a client expects. */
export type ModelApiFamily = 'openai' | 'anthropic';

/** A call of a model, and what it may use at most. */
export interface ModelRequest {
  readonly api: ModelApi;
  /** `llm.PROVIDER/MODEL`, escaped as SPEC §2 has it: the name that the kits for SDKs give the same call. */
  readonly toolName: string;
  readonly provider: string;
  /** As the request names it. */
  readonly model: string;
  readonly isStream: boolean;
  /** Whether the work goes on where the answer breaks off. Default false. */
  readonly isBackground?: boolean | undefined;
  /** What the digest of the parameters is of: the body, strictly read. Of one that has no canonical form, its digest and length. */
  readonly params: JsonValue;
  /** A bound of the input in tokens: the bytes of the request, and what it makes the provider add. */
  readonly inputBytes: number;
  /** The most output tokens of all choices together; undefined where the caller leaves it open. */
  readonly maxOutput: number | undefined;
  /** How many answers are made of one request, each of which a limit of output holds for. */
  readonly choices: number;
  /** Images that are made. Images that are read are in {@link ModelRequest.inputBytes}. */
  readonly images: number;
  /** The most searches of the web. */
  readonly webSearches: number;
  /** The names of what cannot be bounded from the request, such as `conversation`. Such a call needs an amount from outside. */
  readonly unbounded: readonly string[];
}

export type ReadRequest =
  | { readonly kind: 'call'; readonly request: ModelRequest }
  /** Costs nothing: lists of models, counts of tokens, moderations. */
  | { readonly kind: 'free'; readonly family: ModelApiFamily }
  | {
      readonly kind: 'refuse';
      readonly family: ModelApiFamily;
      readonly status: number;
      readonly code: RefusalCode;
      readonly message: string;
    };

/** Why a request is not forwarded. */
export type RefusalCode =
  | 'PATH_UNKNOWN'
  | 'METHOD_NOT_ALLOWED'
  | 'PROTOCOL_UNSUPPORTED'
  | 'CONTENT_TYPE_UNSUPPORTED'
  | 'CONTENT_ENCODING_UNSUPPORTED'
  | 'REQUEST_NOT_JSON'
  | 'REQUEST_INVALID';

/** What is wrong with an answer, or was odd about it. */
export type AnswerProblem =
  /** No usage was stated. */
  | 'USAGE_MISSING'
  /** A usage cannot be read: negative, absurd, or parts that are more than their whole. */
  | 'USAGE_INVALID'
  /** Usage was stated more often than the API does; the greatest of each count holds. */
  | 'USAGE_REPEATED'
  /** The answer says that other prices hold than the standard ones, or that tools of the provider ran which usage does not count. */
  | 'PRICED_OTHERWISE'
  /** The answer, or an event of it, is longer than what is read, or is no JSON. */
  | 'ANSWER_UNREAD';

/** What an answer says of the call. */
export interface ModelAnswer {
  /** Undefined where there is none that can be relied on; `problems` says why. */
  readonly usage: ModelUsage | undefined;
  /**
   * Where no usage was stated: what was used at most for what came, every byte a token. Undefined where that is not known, since reasoning was
   * or may have been hidden, nothing came, or the work goes on: then what was reserved is the only bound.
   */
  readonly estimate: ModelUsage | undefined;
  /** `unknown` where the answer broke off, or the work goes on behind it. */
  readonly outcome: 'success' | 'failure' | 'unknown';
  /** As the answer names it; undefined where it does not. */
  readonly model: string | undefined;
  /** Bytes of text, reasoning and arguments that came: a bound of their tokens. Reasoning that is not shown is not in it. */
  readonly outputBytes: number;
  /** Whether the answer came to the end that its API marks. */
  readonly isComplete: boolean;
  /** A code of SPEC §2 for a failure; undefined otherwise. */
  readonly errorCode: string | undefined;
  readonly problems: readonly AnswerProblem[];
}
