/** Telegram as a channel: its updates become events, and stages prepare what is sent. Nothing here calls Telegram itself. */

/** The longest text of a message, in UTF-16 code units. */
const MAX_TEXT = 4_096;

/** The event of an update, for `ingress.received`; undefined for one without a text. */
export function toEvent(update, { agentId }) {
  const message = update.message ?? update.edited_message;
  if (message?.chat === undefined || typeof message.text !== 'string') return undefined;
  return {
    family: 'ingress.received',
    agentId,
    correlationId: `telegram:${update.update_id}`,
    conversationRef: String(message.chat.id),
    threadRef: message.message_thread_id === undefined ? null : String(message.message_thread_id),
    messageRef: String(message.message_id),
    occurredAt: message.date * 1_000,
    payload: message,
    metadata: { channelId: 'telegram' },
  };
}

/** The request that sends a message, as the Bot API has it. */
export function toRequest({ to, threadId, text, accountId }) {
  const thread = threadId === undefined || threadId === null ? {} : { message_thread_id: Number(threadId) };
  return { accountId, method: 'sendMessage', body: { chat_id: to, ...thread, text } };
}

/** @param {{ accounts: Record<string, string[]> }} options - the chats of each bot account; the first account has all others */
export function telegram({ accounts }) {
  const names = Object.keys(accounts);
  /** The last messages that were delivered, by conversation. */
  const delivered = new Map();
  const base = { extensionId: 'telegram' };
  const isTelegram = ({ metadata }) => metadata?.channelId === 'telegram';
  const contributions = [
    {
      ...base,
      contributionId: 'normalize',
      stage: 'ingress.normalized',
      class: 'mutator',
      handler(event) {
        if (!isTelegram(event)) return undefined;
        const { text, from, chat } = event.payload;
        return {
          patch: { text: text.trim(), from: String(from?.id ?? ''), isGroup: chat.type !== 'private' },
        };
      },
    },
    {
      ...base,
      contributionId: 'sender',
      stage: 'ingress.normalized',
      class: 'augmenter',
      handler(event) {
        if (!isTelegram(event)) return undefined;
        const { from } = event.payload;
        return from === undefined ? undefined : { add: { senders: [from.username ?? String(from.id)] } };
      },
    },
    {
      ...base,
      contributionId: 'account',
      stage: 'egress.preparing',
      class: 'resolver',
      handler(event, { to }) {
        if (!isTelegram(event)) return undefined;
        return {
          candidates: names.map((target, index) => ({
            target,
            rank: accounts[target].includes(to) ? 1 : 0,
            valid: index === 0 || accounts[target].includes(to),
          })),
        };
      },
    },
    {
      ...base,
      contributionId: 'text',
      stage: 'egress.preparing',
      class: 'mutator',
      handler(event, { text }) {
        if (!isTelegram(event) || typeof text !== 'string' || text.length <= MAX_TEXT) return undefined;
        return { patch: { text: `${text.slice(0, MAX_TEXT - 1).toWellFormed()}…` } };
      },
    },
    {
      ...base,
      contributionId: 'delivered',
      stage: 'egress.sent',
      class: 'observer',
      handler(event) {
        if (isTelegram(event)) delivered.set(event.conversationRef, event.messageRef);
      },
    },
  ];
  return { contributions, delivered };
}
