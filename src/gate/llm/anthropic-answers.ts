/** Answers of Anthropic's messages, in one piece and as events. */

import { isJsonObject } from '../../base/json/value.js';
import type { AnswerForm, AnswerNotes } from './answer-notes.js';
import { memberOf } from './content.js';

export const MESSAGES_ANSWER: AnswerForm = {
  picks: { values: ['model', 'usage', 'error', 'content.*.type'], sizes: ['content'] },
  eventPicks: {
    values: ['type', 'error', 'usage', 'message.model', 'message.usage', 'content_block.type'],
    sizes: ['delta', 'content_block'],
  },
  onValue: (notes, path, value) => {
    if (path === 'model') notes.setModel(value);
    else if (path === 'usage') setUsage(notes, value);
    else if (path === 'error') notes.setError(value);
    else if (path === 'content.*.type') addBlock(notes, value);
  },
  onEvent: (notes, event, data) => {
    if (data === undefined) return;
    switch (memberOf(data, 'type') ?? event) {
      case 'message_start': {
        const message = memberOf(data, 'message');
        if (!isJsonObject(message)) return;
        notes.setModel(memberOf(message, 'model'));
        notes.beginUsage(memberOf(message, 'usage'));
        return;
      }
      case 'content_block_start': {
        const block = memberOf(data, 'content_block');
        if (!isJsonObject(block)) return;
        addBlock(notes, memberOf(block, 'type'));
        notes.addOutput(block);
        return;
      }
      case 'content_block_delta':
        notes.addOutput(memberOf(data, 'delta'));
        return;
      // Its counts are those of all until then; it may come more than once.
      case 'message_delta': {
        const usage = memberOf(data, 'usage');
        if (isJsonObject(usage)) notes.isUsageFinal = false;
        setUsage(notes, usage);
        return;
      }
      case 'message_stop':
        notes.isEnded = true;
        return;
      case 'error':
        notes.setError(memberOf(data, 'error') ?? data);
        return;
      default:
    }
  },
  textOf: (data) => {
    const delta = memberOf(data, 'delta');
    if (memberOf(data, 'type') !== 'content_block_delta' || !isJsonObject(delta)) return undefined;
    const name = DELTA_TEXTS.find((each) => typeof memberOf(delta, each) === 'string');
    return name === undefined ? undefined : ['delta', name];
  },
};

const DELTA_TEXTS = ['text', 'thinking', 'partial_json'];

function setUsage(notes: AnswerNotes, usage: unknown): void {
  notes.addUsage(usage);
  if (!isJsonObject(usage)) return;
  // Calls beside those of the model itself, such as of another model, have prices of their own, and are not in the sums.
  const iterations = memberOf(usage, 'iterations');
  if (!Array.isArray(iterations)) return;
  if (iterations.some((each) => !isJsonObject(each) || memberOf(each, 'type') !== 'message'))
    notes.isPricedOtherwise = true;
}

function addBlock(notes: AnswerNotes, type: unknown): void {
  // Thinking is shown as a summary at most, and counts in full.
  if (type === 'thinking' || type === 'redacted_thinking') notes.isOutputHidden = true;
}
