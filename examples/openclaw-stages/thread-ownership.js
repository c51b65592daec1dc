/**
 * Thread ownership: of several agents in one Slack thread, one answers. Who is mentioned may; anybody else claims the thread first, and a
 * message into another agent's thread is cancelled.
 */

const MENTION_MS = 5 * 60_000;
const MAX_MENTIONS = 1_000;

/**
 * @param {{ name: string, claim: (thread: string, signal: AbortSignal) => Promise<boolean>, now?: () => number }} options - `claim` says
 *   whether the thread is this agent's. Where it fails, the message is sent: the veto fails open.
 */
export function threadOwnership({ name, claim, now = Date.now }) {
  /** When the agent was mentioned last, by thread. */
  const mentions = new Map();
  const base = { extensionId: 'thread-ownership' };
  return [
    {
      ...base,
      contributionId: 'mentions',
      stage: 'ingress.normalized',
      class: 'observer',
      handler(event, working) {
        const thread = threadOf(event);
        if (thread === undefined || !mentionsAgent(String(working.text ?? ''), name)) return;
        mentions.delete(thread);
        mentions.set(thread, now());
        if (mentions.size > MAX_MENTIONS) mentions.delete(mentions.keys().next().value);
      },
    },
    {
      ...base,
      contributionId: 'owner',
      stage: 'egress.preparing',
      class: 'veto',
      timeoutMs: 3_000,
      async handler(event, _working, { signal }) {
        const thread = threadOf(event);
        if (thread === undefined) return undefined;
        if (now() - (mentions.get(thread) ?? -Infinity) <= MENTION_MS) return { decision: 'allow' };
        const isOurs = await claim(thread, signal);
        return isOurs
          ? { decision: 'allow' }
          : { decision: 'cancel', reason: 'the thread is another agent’s' };
      },
    },
  ];
}

/** The thread that a message of Slack is in. */
function threadOf({ metadata, conversationRef, threadRef }) {
  if (metadata?.channelId !== 'slack' || typeof conversationRef !== 'string' || typeof threadRef !== 'string')
    return undefined;
  return `${conversationRef}:${threadRef}`;
}

function mentionsAgent(text, name) {
  const at = text.toLowerCase().indexOf(`@${name.toLowerCase()}`);
  return at >= 0 && !/\w/.test(text.charAt(at + name.length + 1)) && !/\w/.test(text.charAt(at - 1));
}
