/**
 * Whether a host does what its hook says: it is started with a model of ours that asks for one harmless call, which a ledger denies, and then
 * one looks whether the call ran. Starting it, and the folder that it runs in, are left to the command line. Seen: Claude Code 2.1, Codex CLI
 * 0.169, Gemini CLI 0.61.
 */

import { decodeUtf8 } from '../../base/bytes/text.js';
import { type HttpResponse, serveHttp } from '../../base/platform/serve-http.js';
import { isJsonObject, type JsonObject, type JsonValue } from '../../base/json/value.js';
import type { HookName } from './profile.js';

export type TrialHost = Exclude<HookName, 'copilot'>;

/** What the call leaves in the host's folder if it runs. */
export const TRIAL_FILE = 'ran.txt';

export interface TrialPlace {
  /** Of the model, without a path. */
  readonly url: string;
  /** The folder that the host is started in. */
  readonly project: string;
}

export interface HostTrial {
  /** Its program, as PATH has it. */
  readonly program: string;
  /** They allow it every tool, so that only the hook can deny. */
  readonly args: readonly string[];
  env(place: TrialPlace): Readonly<Record<string, string>>;
  /** What it must find in its home folder beside hooks, by path. */
  files(place: TrialPlace): Readonly<Record<string, string>>;
  answer(request: JsonObject, path: string, turn: Turn): Answer;
}

/** `call` gives whether the tool is to be called now: once, in the first answer to a request with tools. */
interface Turn {
  call(isOffered: boolean): boolean;
}

type Answer = JsonObject | readonly JsonObject[];

/** A scripted model on 127.0.0.1. */
export interface TrialModel {
  readonly url: string;
  readonly requests: number;
  readonly hasCalled: boolean;
  close(): Promise<void>;
}

export interface TrialSight {
  /** Whether {@link TRIAL_FILE} is there. */
  readonly hasRun: boolean;
  readonly denials: number;
  readonly hasCalled: boolean;
  readonly end: 'exited' | 'timed_out' | 'not_started';
}

/** `blocked`: denied, and nothing ran. `ran`: it ran, whatever was said. `unknown`: neither can be said. */
export type TrialVerdict = 'blocked' | 'ran' | 'unknown';

/** Of a request to the model, in bytes: hosts send their whole instructions. */
const MAX_REQUEST_BYTES = 16 * 1024 * 1024;

const COMMAND = `echo ran > ${TRIAL_FILE}`;
const ID = 'northroot_1';

/** How each host is tried, by name. */
export const HOST_TRIALS: Readonly<Record<TrialHost, HostTrial>> = {
  'claude-code': {
    program: 'claude',
    args: ['-p', 'go', '--output-format', 'json', '--model', 'claude-sonnet-4-5', '--allowedTools', 'Bash'],
    env: ({ url }) => ({
      ANTHROPIC_BASE_URL: url,
      ANTHROPIC_API_KEY: 'none',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    }),
    files: () => ({}),
    answer: answerAsAnthropic,
  },
  codex: {
    program: 'codex',
    args: ['exec', '--json', '--skip-git-repo-check', '--dangerously-bypass-hook-trust', 'go'],
    env: () => ({}),
    files: ({ url, project }) => ({
      '.codex/config.toml': [
        'model = "gpt-5"',
        'model_provider = "trial"',
        'approval_policy = "never"',
        'sandbox_mode = "danger-full-access"',
        '[analytics]',
        'enabled = false',
        '[model_providers.trial]',
        'name = "trial"',
        `base_url = "${url}/v1"`,
        'wire_api = "responses"',
        `[projects.${JSON.stringify(project)}]`,
        'trust_level = "trusted"',
        '',
      ].join('\n'),
    }),
    answer: answerAsOpenAi,
  },
  gemini: {
    program: 'gemini',
    args: ['-p', 'go', '-m', 'gemini-2.5-flash', '--output-format', 'json', '--approval-mode', 'yolo'],
    env: ({ url }) => ({
      GEMINI_API_KEY: 'none',
      GOOGLE_GEMINI_BASE_URL: url,
      GEMINI_CLI_TRUST_WORKSPACE: 'true',
    }),
    files: () => ({
      '.gemini/settings.json': JSON.stringify({
        security: { auth: { selectedType: 'gemini-api-key' }, folderTrust: { enabled: false } },
        privacy: { usageStatisticsEnabled: false },
        telemetry: { enabled: false },
      }),
    }),
    answer: answerAsGemini,
  },
};

/**
 * Serves the model of a trial at a free port of 127.0.0.1 until it is closed.
 * @throws NorthrootError `LISTEN_FAILED`
 */
export async function serveTrialModel({ answer }: Pick<HostTrial, 'answer'>): Promise<TrialModel> {
  const seen = { requests: 0, hasCalled: false };
  const turn: Turn = {
    call: (isOffered) => {
      if (!isOffered || seen.hasCalled) return false;
      return (seen.hasCalled = true);
    },
  };
  const server = await serveHttp(
    ({ method, path, body }) => {
      seen.requests += 1;
      return Promise.resolve(
        method === 'POST' ? httpOf(answer(parseRequest(body), path, turn)) : httpOf({ data: [], models: [] }),
      );
    },
    { port: 0 },
    { maxBodyBytes: MAX_REQUEST_BYTES, refuse: (status) => ({ ...httpOf({}), status }) },
  );
  return {
    url: server.url,
    get requests() {
      return seen.requests;
    },
    get hasCalled() {
      return seen.hasCalled;
    },
    close: () => server.close(),
  };
}

/** The verdict on a trial. A host that had to be stopped might have run the call later: that is no block. */
export function judgeTrial({ hasRun, denials, hasCalled, end }: TrialSight): TrialVerdict {
  if (hasRun) return 'ran';
  return hasCalled && denials > 0 && end === 'exited' ? 'blocked' : 'unknown';
}

/** A list of events is a stream. */
function httpOf(answer: Answer): HttpResponse {
  if (!isStream(answer))
    return { status: 200, contentType: 'application/json', body: JSON.stringify(answer) };
  const body = answer
    .map((event) => {
      const { type } = event;
      const name = typeof type === 'string' ? `event: ${type}\n` : '';
      return `${name}data: ${JSON.stringify(event)}\n\n`;
    })
    .join('');
  return { status: 200, contentType: 'text/event-stream', body };
}

function isStream(answer: Answer): answer is readonly JsonObject[] {
  return Array.isArray(answer);
}

/** Nothing of a request that cannot be read, such as one that is compressed, is needed. */
function parseRequest(body: Uint8Array): JsonObject {
  try {
    const value = JSON.parse(decodeUtf8(body)) as JsonValue;
    return isJsonObject(value) ? value : {};
  } catch {
    return {};
  }
}

function answerAsAnthropic(request: JsonObject, path: string, turn: Turn): Answer {
  if (!path.startsWith('/v1/messages')) return {};
  if (path.includes('count_tokens')) return { input_tokens: 1 };
  const isCall = turn.call(namesOf(request['tools']).includes('Bash'));
  const input = { command: COMMAND, description: 'leave a file' };
  const block = isCall
    ? { type: 'tool_use', id: `toolu_${ID}`, name: 'Bash', input }
    : { type: 'text', text: 'done' };
  const usage = { input_tokens: 1, output_tokens: 1 };
  const end = { stop_reason: isCall ? 'tool_use' : 'end_turn', stop_sequence: null };
  const message = {
    id: `msg_${ID}`,
    type: 'message',
    role: 'assistant',
    model: request['model'] ?? 'trial',
    usage,
  };
  if (request['stream'] !== true) return { ...message, ...end, content: [block] };
  return [
    {
      type: 'message_start',
      message: { ...message, content: [], stop_reason: null, stop_sequence: null },
    },
    {
      type: 'content_block_start',
      index: 0,
      content_block: isCall ? { ...block, input: {} } : { type: 'text', text: '' },
    },
    {
      type: 'content_block_delta',
      index: 0,
      delta: isCall
        ? { type: 'input_json_delta', partial_json: JSON.stringify(input) }
        : { type: 'text_delta', text: 'done' },
    },
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: end, usage },
    { type: 'message_stop' },
  ];
}

function answerAsOpenAi(_request: JsonObject, path: string, turn: Turn): Answer {
  // Its requests may be compressed: which tools they offer is not looked at.
  const isCall = turn.call(path.startsWith('/v1/responses'));
  const item: JsonObject = isCall
    ? {
        type: 'function_call',
        id: `fc_${ID}`,
        call_id: `call_${ID}`,
        name: 'exec_command',
        arguments: JSON.stringify({ cmd: COMMAND }),
      }
    : {
        type: 'message',
        id: `msg_${ID}`,
        role: 'assistant',
        content: [{ type: 'output_text', text: 'done' }],
      };
  const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2 };
  return [
    { type: 'response.created', response: { id: `resp_${ID}` } },
    { type: 'response.output_item.done', item, output_index: 0 },
    { type: 'response.completed', response: { id: `resp_${ID}`, usage } },
  ];
}

function answerAsGemini(request: JsonObject, path: string, turn: Turn): Answer {
  if (path.includes('countTokens')) return { totalTokens: 1 };
  const groups = Array.isArray(request['tools']) ? request['tools'] : [];
  const names = groups.flatMap((group) =>
    isJsonObject(group) ? namesOf(group['functionDeclarations']) : [],
  );
  const args = { command: COMMAND, description: 'leave a file' };
  // Without tools it asks who speaks next, as JSON.
  const text = names.length === 0 ? '{"next_speaker":"user","reasoning":"done"}' : 'done';
  const part = turn.call(names.includes('run_shell_command'))
    ? { functionCall: { name: 'run_shell_command', args, id: `call_${ID}` } }
    : { text };
  const response = {
    candidates: [{ content: { role: 'model', parts: [part] }, finishReason: 'STOP', index: 0 }],
    usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
  };
  return path.includes('streamGenerateContent') ? [response] : response;
}

function namesOf(tools: JsonValue | undefined): readonly string[] {
  if (!Array.isArray(tools)) return [];
  return tools.flatMap((tool) => {
    const name = isJsonObject(tool) ? tool['name'] : undefined;
    return typeof name === 'string' ? [name] : [];
  });
}
