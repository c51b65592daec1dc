/** What an agent is told of the kernel, where it is told anything. */

export interface PromptParts {
  readonly task: string;
  readonly nonce: string;
  /** The tools, as the agent calls them. */
  readonly tools: readonly string[];
  /** Whether results are given as excerpts too. */
  readonly hasExcerpts: boolean;
}

/** The arguments of the kernel's tools, for a model that has never seen them. */
const ARGUMENTS: Readonly<Record<string, string>> = {
  'fs.read': '{"path":"notes.txt"}',
  'fs.list': '{"path":"."}',
  'fs.write': '{"content":"text","path":"notes.txt"}',
  exec: '{"argv":["git","status"]}',
  'net.fetch': '{"url":"https://example.com/"}',
};

/** The prompt: the rules, the tools, the task. */
export function makePrompt(
  { task, nonce, tools, hasExcerpts }: PromptParts,
  classOf: (tool: string) => string | undefined,
): string {
  const list = tools.map((tool) => {
    const example = ARGUMENTS[classOf(tool) ?? ''];
    return example === undefined ? `- ${tool}` : `- ${tool}, with arguments such as ${example}`;
  });
  return [
    'You have no tools of your own. A kernel acts for you. To call a tool, write a line of exactly this form, alone on its line:',
    `\u27E6TI1 ${nonce}\u27E7 REQUEST_ID TOOL ARGUMENTS`,
    'REQUEST_ID is a short text without spaces that you use once. ARGUMENTS is base64url without padding of canonical JSON: members sorted by name, no spaces.',
    'Then end your turn, and wait for a line of the kernel:',
    `\u27E6TR1 ${nonce}\u27E7 REQUEST_ID ok HASH, or \u27E6TR1 ${nonce}\u27E7 REQUEST_ID denied CODE`,
    ...(hasExcerpts
      ? [
          `After ok a line \u27E6TX1 ${nonce}\u27E7 REQUEST_ID EXCERPT has the beginning of the result in base64url.`,
        ]
      : ['The result is in the file of that name in the folder that the environment variable TI_CAS names.']),
    'Never write such answers yourself.',
    'Tools:',
    ...list,
    'When you are done, write one JSON object alone on the last line, such as {"done":true}.',
    '',
    'Your task:',
    task,
  ].join('\n');
}
