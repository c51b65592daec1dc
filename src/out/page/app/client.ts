/** The page's side of the messages: starts the verifier in a worker or, where that is refused, beside the page. */

import { CORE_ID } from '../embedded.js';
import type { Methods, Progress } from '../model/protocol.js';
import { decodeBlock, inflateText } from './blocks.js';
import type { Answer, Failure, Port, Question, Serve } from './messages.js';

/** What the verifier could not do. */
export class ClientError extends Error {
  readonly code: string;
  readonly hint: string | undefined;

  constructor({ code, message, hint }: Failure) {
    super(message);
    this.code = code;
    this.hint = hint;
  }
}

interface TrustedTypes {
  createPolicy(
    name: string,
    rules: { createScriptURL(url: string): string },
  ): { createScriptURL(url: string): string };
}

interface Waiting {
  readonly method: keyof Methods;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: ClientError) => void;
}

/** The one place where a text becomes a script: the verifier that the page itself holds. */
const scripts = (globalThis as { trustedTypes?: TrustedTypes }).trustedTypes?.createPolicy('northroot', {
  createScriptURL: (url) => {
    if (!url.startsWith('blob:')) throw new TypeError('only the verifier of this page is run');
    return url;
  },
}) ?? { createScriptURL: (url: string): string => url };

let verifier: Promise<string> | undefined;

/** The verifier, as an address that can be run. */
function verifierUrl(): Promise<string> {
  verifier ??= inflateText(decodeBlock(document.getElementById(CORE_ID)?.textContent ?? '')).then((text) =>
    URL.createObjectURL(new Blob([text], { type: 'text/javascript' })),
  );
  return verifier;
}

export class Client {
  readonly #waiting = new Map<number, Waiting>();
  #port: Port | undefined;
  #worker: Worker | undefined;
  #last = 0;
  onProgress: (progress: Progress) => void = () => undefined;

  static async start(): Promise<Client> {
    const client = new Client();
    const url = await verifierUrl();
    try {
      await client.#startWorker(url);
    } catch {
      await client.#startBeside(url);
    }
    return client;
  }

  call<M extends keyof Methods>(
    method: M,
    argument: Parameters<Methods[M]>[0],
  ): Promise<Awaited<ReturnType<Methods[M]>>> {
    const id = (this.#last += 1);
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { method, resolve: resolve as (result: unknown) => void, reject });
      this.#port?.postMessage({ id, method, argument } satisfies Question);
    });
  }

  /** Whether no call is pending. */
  get isIdle(): boolean {
    return this.#waiting.size === 0;
  }

  /** Ends the worker. Pending calls get no answer. */
  stop(): void {
    this.#worker?.terminate();
    for (const [id, { method }] of this.#waiting) if (!method.startsWith('verify')) this.#waiting.delete(id);
    this.#fail('it was stopped');
  }

  #fail(message: string): void {
    for (const { reject } of this.#waiting.values())
      reject(new ClientError({ code: 'INTERNAL', message, hint: undefined }));
    this.#waiting.clear();
  }

  #listen(port: Port): void {
    this.#port = port;
    port.onmessage = ({ data }) => {
      const answer = data as Answer;
      if ('progress' in answer) {
        this.onProgress(answer.progress);
        return;
      }
      const waiting = this.#waiting.get(answer.id);
      this.#waiting.delete(answer.id);
      if ('error' in answer) waiting?.reject(new ClientError(answer.error));
      else waiting?.resolve(answer.result);
    };
  }

  /** Some browsers refuse a worker at once, others later: it has started once it answers. */
  async #startWorker(url: string): Promise<void> {
    const worker = new Worker(scripts.createScriptURL(url));
    this.#worker = worker;
    this.#listen(worker as Port);
    const refused = new Promise<never>((_, reject) => {
      worker.onerror = (event) => {
        reject(new Error(event.message));
        this.#fail(`the verifier ended: ${event.message}`);
      };
    });
    await Promise.race([this.call('grants', { offset: 0 }), refused]);
  }

  async #startBeside(url: string): Promise<void> {
    this.#worker = undefined;
    this.#waiting.clear();
    const scope = globalThis as { northrootCore?: Serve };
    if (scope.northrootCore === undefined) {
      const script = document.createElement('script');
      // The page's policy knows it by its hash.
      script.integrity = document.getElementById(CORE_ID)?.dataset['hash'] ?? '';
      script.src = scripts.createScriptURL(url);
      await new Promise((resolve, reject) => {
        script.onload = resolve;
        script.onerror = () =>
          reject(new Error('this browser runs neither a worker nor the verifier beside the page'));
        document.head.append(script);
      });
    }
    const { port1, port2 } = new MessageChannel();
    scope.northrootCore?.(port2 as Port, false);
    this.#listen(port1 as Port);
  }
}
