/** What the tests of the running pipeline share: a pipeline with its recording, and what checking that finds. */

import {
  createPipeline,
  createRecorder,
  openclawPipeline,
  type Contribution,
  type HandlerClass,
  type Pipeline,
  type PipelineOptions,
  type StageHandler,
  type StageProblem,
} from '../../../src/hosts/openclaw/index.js';
import { fileOf } from './kit.js';

export interface Recorded {
  readonly pipeline: Pipeline;
  readonly lines: string[];
  /** The same without contents. */
  readonly hidden: string[];
  readonly problems: StageProblem[];
}

/** A pipeline that records all that it does, with contents and without. */
export function recorded(options: PipelineOptions = {}): Recorded {
  const [lines, hidden, problems] = [[] as string[], [] as string[], [] as StageProblem[]];
  const full = createRecorder((line) => lines.push(line), { contents: true });
  const bare = createRecorder((line) => hidden.push(line));
  const pipeline = createPipeline({
    ...options,
    record: (item) => {
      full(item);
      bare(item);
    },
    onProblem: (problem) => problems.push(problem),
  });
  return { pipeline, lines, hidden, problems };
}

/** Rules and codes of what `check --as openclaw-pipeline` finds in lines. */
export function findingsOf(lines: readonly string[]): string[] {
  const { findings } = openclawPipeline.check([fileOf('p.jsonl', lines.join(''))]);
  return findings.map(({ rule, code }) => `${rule} ${code}`);
}

let count = 0;

/** A contribution with an id of its own. */
export function contribution(
  stage: string,
  kind: HandlerClass,
  handler: StageHandler,
  more: Partial<Contribution> = {},
): Contribution {
  count += 1;
  return { extensionId: 'x', contributionId: `c${count}`, stage, class: kind, handler, ...more };
}

/** The code of what a function throws. */
export function codeOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    return (error as { code?: string }).code ?? (error as Error).name;
  }
  return 'nothing';
}

/** The code of what a promise rejects with. */
export async function codeOfLater(run: Promise<unknown>): Promise<string> {
  return run.then(
    () => 'nothing',
    (error: { code?: string; name?: string }) => error.code ?? error.name ?? 'unknown',
  );
}
