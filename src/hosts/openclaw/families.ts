/** Families of the canonical pipeline, what each stage allows, and the hooks that came before them. */

export type HandlerClass = 'observer' | 'augmenter' | 'mutator' | 'veto' | 'resolver';

export type StageMode = 'parallel' | 'sequential' | 'sync-sequential';

export interface StageRule {
  readonly classes: readonly HandlerClass[];
  readonly mode: StageMode;
  /** What errors do where contributions do not say it: `closed` cancels. Default `open`. */
  readonly failPolicy?: 'open' | 'closed' | undefined;
}

export const HANDLER_CLASSES: readonly HandlerClass[] = [
  'observer',
  'augmenter',
  'mutator',
  'veto',
  'resolver',
];

const OBSERVED: StageRule = { classes: ['observer'], mode: 'parallel' };
const ANNOTATED: StageRule = { classes: ['observer', 'augmenter'], mode: 'sequential' };
const PREPARED: StageRule = { classes: ['observer', 'augmenter', 'mutator'], mode: 'sequential' };

/** All 39 families, and the two of interactions that follow them; `undefined` where nothing says what the stage allows. */
export const PIPELINE_FAMILIES: ReadonlyMap<string, StageRule | undefined> = new Map<
  string,
  StageRule | undefined
>([
  ['runtime.started', undefined],
  ['runtime.stopping', undefined],
  ['gateway.starting', OBSERVED],
  ['gateway.started', OBSERVED],
  ['gateway.stopping', OBSERVED],
  ['command.received', ANNOTATED],
  ['command.completed', ANNOTATED],
  ['account.started', undefined],
  ['account.stopped', undefined],
  ['ingress.received', OBSERVED],
  ['ingress.normalized', PREPARED],
  ['routing.resolving', { classes: ['augmenter', 'resolver', 'veto'], mode: 'sequential' }],
  ['routing.resolved', ANNOTATED],
  ['session.starting', PREPARED],
  ['session.started', OBSERVED],
  ['session.resetting', undefined],
  ['agent.starting', ANNOTATED],
  ['agent.model.resolving', { classes: ['mutator'], mode: 'sequential' }],
  ['agent.prompt.building', { classes: ['augmenter', 'mutator'], mode: 'sequential' }],
  ['agent.llm.input', ANNOTATED],
  ['agent.llm.output', ANNOTATED],
  ['agent.tool.calling', { classes: ['observer', 'augmenter', 'mutator', 'veto'], mode: 'sequential' }],
  ['agent.tool.called', ANNOTATED],
  ['transcript.tool-result.persisting', { classes: ['mutator'], mode: 'sync-sequential' }],
  ['transcript.message.writing', { classes: ['mutator', 'veto'], mode: 'sync-sequential' }],
  ['compaction.before', undefined],
  ['compaction.after', undefined],
  ['agent.completed', ANNOTATED],
  ['egress.preparing', { classes: HANDLER_CLASSES, mode: 'sequential' }],
  ['egress.sending', OBSERVED],
  ['egress.sent', ANNOTATED],
  ['egress.cancelled', ANNOTATED],
  ['egress.failed', ANNOTATED],
  ['interaction.received', undefined],
  ['subagent.spawning', undefined],
  ['subagent.spawned', undefined],
  ['subagent.delivery.resolving', { classes: ['augmenter', 'resolver'], mode: 'sequential' }],
  ['subagent.delivery.resolved', undefined],
  ['subagent.completed', undefined],
  ['interaction.resolved', undefined],
  ['interaction.completed', undefined],
]);

/** What a member of an event holds. */
export type MemberKind = 'text' | 'name' | 'ref' | 'time' | 'any' | 'object' | 'boolean';

/** The 16 members of the envelope. A `name` is a text or null, a `ref` also an object, an `object` also null. */
export const ENVELOPE = {
  eventId: 'text',
  family: 'text',
  occurredAt: 'time',
  workspaceId: 'name',
  agentId: 'name',
  sessionId: 'name',
  accountRef: 'ref',
  conversationRef: 'ref',
  threadRef: 'ref',
  messageRef: 'ref',
  sourceContributionId: 'name',
  correlationId: 'name',
  payload: 'any',
  metadata: 'object',
  providerMetadata: 'object',
  hotPath: 'boolean',
} as const satisfies Readonly<Record<string, MemberKind>>;

/** What must not follow a stage that was cancelled, with the same correlation. */
export const DOWNSTREAM: ReadonlyMap<string, readonly string[]> = new Map([
  ['routing.resolving', ['routing.resolved']],
  ['agent.tool.calling', ['agent.tool.called']],
  ['egress.preparing', ['egress.sending', 'egress.sent']],
]);

/** The canonical families of hooks, as far as they are mapped. */
export const FAMILIES_OF_HOOKS: ReadonlyMap<string, readonly string[]> = new Map([
  ['before_model_resolve', ['agent.model.resolving']],
  ['before_prompt_build', ['agent.prompt.building']],
  ['before_agent_start', ['agent.model.resolving', 'agent.prompt.building']],
  ['llm_input', ['agent.llm.input']],
  ['llm_output', ['agent.llm.output']],
  ['message_received', ['ingress.normalized']],
  ['message_sending', ['egress.preparing']],
  ['message_sent', ['egress.sent']],
  ['before_tool_call', ['agent.tool.calling']],
  ['after_tool_call', ['agent.tool.called']],
  ['tool_result_persist', ['transcript.tool-result.persisting']],
  ['before_message_write', ['transcript.message.writing']],
  ['before_compaction', ['compaction.before']],
  ['after_compaction', ['compaction.after']],
  ['before_reset', ['session.resetting']],
  ['gateway_start', ['gateway.started']],
  ['gateway_stop', ['gateway.stopping']],
  ['subagent_delivery_target', ['subagent.delivery.resolving']],
]);
