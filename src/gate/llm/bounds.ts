/** What bounds of calls are made of, and what providers document of it. */

import type { ModelRequest } from './model-api.js';

/** What an API says of one of its requests. */
export type CallBounds = Pick<
  ModelRequest,
  'model' | 'isStream' | 'isBackground' | 'maxOutput' | 'choices' | 'images' | 'webSearches' | 'unbounded'
> & {
  /** Input tokens beyond those of the text of the body. */
  readonly addedInput: number;
};

/** Adds up what parts of a request cost, and names those that have no bound. */
export class BoundSum {
  addedInput = REQUEST_TOKENS;
  webSearches = 0;
  readonly #unbounded = new Set<string>();

  leaveOpen(...names: readonly string[]): void {
    for (const name of names) if (this.#unbounded.size < MAX_UNBOUNDED) this.#unbounded.add(name);
  }

  get unbounded(): string[] {
    return [...this.#unbounded];
  }

  /**
   * An image of which the body has `bytes` bytes. What those are as text is in the bound of the body already, and some providers did count
   * them so: the greater of both is the bound.
   */
  addImage(bytes: number, maxTokens: number): void {
    this.addedInput += Math.max(0, maxTokens - bytes);
  }

  /** The bounds of a call whose answer has no images. */
  of(call: Pick<CallBounds, 'model' | 'isStream' | 'isBackground' | 'choices' | 'maxOutput'>): CallBounds {
    const { addedInput, webSearches, unbounded } = this;
    return { ...call, images: 0, webSearches, addedInput, unbounded };
  }
}

/** The most names that are kept. */
const MAX_UNBOUNDED = 16;

/**
 * What the template of a conversation adds once, such as the start of the answer. What it adds for each message and tool, 3 to 12 tokens, is
 * less than the members of its JSON (OpenAI Cookbook, "How to count tokens").
 */
const REQUEST_TOKENS = 64;

/**
 * What any tools add: Anthropic documents system prompts of 159 to 530 tokens ("Tool use: pricing"), OpenAI no number; others have shown
 * about 100.
 */
export const TOOLS_TOKENS = 1_024;

/** What a schema of the answer adds beside itself, of which Anthropic says "an additional system prompt" ("Structured outputs"). */
export const SCHEMA_TOKENS = 1_024;

/**
 * What a tool adds that Anthropic defines and the client runs: bash 245, the text editor 700, computer use 735 and a system prompt of 499
 * ("Tool use: pricing").
 */
export const DEFINED_TOOL_TOKENS = 2_048;

/** What frames a tool that is put into a conversation, or taken out, beside its definition. Not documented. */
export const REFERENCE_TOKENS = 64;

/**
 * The most tokens of an image for Claude: 4,784 at high resolution, 1,568 else ("Images and vision: maximal native resolution").
 */
export const ANTHROPIC_IMAGE_TOKENS = 4_784;

/**
 * The most tokens of an image for the models of OpenAI that count patches: 10,000 patches (`detail: original`) by the greatest multiplier,
 * 2.46 ("Images and vision: calculating costs"). Those that count tiles need less, but for gpt-4o-mini.
 */
export const OPENAI_IMAGE_TOKENS = 24_600;

/** 2,833 and 5,667 for each tile; an image that is scaled to 768 by 2,048 pixels has 8 tiles of 512 by 512. */
export const GPT_4O_MINI_IMAGE_TOKENS = 48_169;
