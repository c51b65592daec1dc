/** `northroot/hosts/openclaw`: OpenClaw's records, its canonical pipeline, and that pipeline as it runs. */

export { openclaw } from './openclaw.js';
export { openclawPipeline } from './pipeline.js';
export { fromHook, type HookContribution, type HookHandler } from './live/hook.js';
export {
  type ContributionName,
  createPipeline,
  Pipeline,
  type PipelineOptions,
  type StageGate,
  type StageInput,
  type StageOutcome,
  type StageProblem,
  type StageTrace,
} from './live/runner.js';
export { createRecorder, type RecorderOptions } from './live/recorder.js';
export { gateStages, type GateStagesOptions } from './live/gate-stages.js';
export type { Contribution, StageHandler, StageView } from './live/contribution.js';
export { createEvent, type EventInit, type PipelineEvent } from './live/event.js';
export type { HandlerClass, StageRule } from './families.js';
