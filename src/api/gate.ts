/**
 * `northroot/gate`: in the path of calls. It decides before a call, and settles after it. Prices of calls of models, and calls whose
 * results come in pieces. `northroot` exports all of this too.
 */

export { type Adviser, type AdviserAnswer, type AdvisedCall } from '../gate/advisers/adviser.js';
export { NorthrootError, type NorthrootErrorOptions } from '../base/error.js';

export {
  Gate,
  type CallName,
  type CallOutcome,
  type Coverage,
  type EndCallOptions,
  type GateAnswer,
  type GateCall,
  type GateDecision,
  type GateOptions,
  type OpenCall,
  type OverdueCall,
  type Settled,
  type SettleOptions,
  type UnsettledCall,
} from '../gate/gate.js';

export { cedarAdviser, type CedarModule, type CedarOptions } from '../gate/advisers/cedar.js';
export {
  authZenAdviser,
  opaAdviser,
  opaWasmAdviser,
  type HttpAdviserOptions,
  type OpaWasmPolicy,
} from '../gate/advisers/http.js';
export { serveGate, type GateServer, type ServeGateOptions } from '../gate/service/serve-gate.js';
export { serveGates, type ServedGate, type ServeGatesOptions } from '../gate/service/serve-gates.js';
export { type ServiceEvent, type SliceChoice } from '../gate/service/gate-service.js';
export { sliceClient, type SliceClientOptions } from '../gate/service/slice-client.js';
export { type SliceSource, type SupplyEvent } from '../gate/service/slice-supply.js';
export { type RoleChange } from '../gate/service/peers.js';
export { makeToken, Tokens, type TokenEntry, type TokenUse } from '../gate/service/tokens.js';

// A proxy for the APIs of models
export { modelEnvironment, serveModels, type ServeModelsOptions } from '../gate/llm/serve-models.js';
export type { ModelProxyEvent, ModelProxyOptions } from '../gate/llm/model-proxy.js';

// What calls of models cost
export { checkPrices } from '../gate/price/check-prices.js';
export { openPrices } from '../gate/price/open-prices.js';
export { parsePrices, type ModelQuery, type Prices } from '../gate/price/price-file.js';
export type { ModelPrice } from '../gate/price/model-price.js';
export { costOf, worstCaseOf, type WorstCase } from '../gate/price/cost.js';
export { readUsage, type UsageKind } from '../gate/price/read-usage.js';
export {
  importPrices,
  type ImportedPrices,
  type ImportPricesOptions,
  type PriceListKind,
} from '../gate/price/import-prices.js';
export type { LeftOutPrices } from '../gate/price/imported.js';
export type { CallPricing, ModelCall, ModelUsage, PricedCall } from '../log/agent/model-usage.js';
export type { PricedModel, PriceFile, PricePeriod, UnitPrice } from '../format/schema/generated/types.js';

// Guarded calls whose results come in pieces
export { guardStream, type StreamFunction } from '../gate/guard-stream.js';

// Hooks of coding agents
export {
  type Desk as HookDesk,
  type DeskCall as HookDeskCall,
  type DeskDecision as HookDecision,
  type DeskOutcome as HookOutcome,
} from '../gate/hook/desk.js';
export {
  HOST_TRIALS,
  judgeTrial,
  serveTrialModel,
  TRIAL_FILE,
  type HostTrial,
  type TrialHost,
  type TrialModel,
  type TrialPlace,
  type TrialSight,
  type TrialVerdict,
} from '../gate/hook/doctor.js';
export { GateDesk } from '../gate/hook/gate-desk.js';
export { type HookOptions, hostTimeout } from '../gate/hook/options.js';
export {
  type HookCall,
  type HookName,
  type HookProfile,
  type HookSettings,
  type HookStep,
  type HookVerdict,
} from '../gate/hook/profile.js';
export { HOOK_PROFILES } from '../gate/hook/profiles.js';
export { type HookEvent, readEvent as readHookEvent } from '../gate/hook/read-event.js';
export { type HookAnswer, runHook } from '../gate/hook/run-hook.js';
export { hookCommand, installHooks, uninstallHooks } from '../gate/hook/settings.js';
export { WireDesk } from '../gate/hook/wire-desk.js';

// A kernel: tools that act for an agent that has no others
export { isolate, probeIsolation } from '../gate/kernel/isolation.js';
export type { IsolatedCommand, IsolateOptions, IsolationFound } from '../gate/kernel/isolation.js';
export {
  isDenied,
  type IsolationLevel,
  type KernelDenial,
  type KernelPlan,
  type KernelResult,
  type KernelToolDefinition,
  type KernelToolName,
  type KernelTools,
  type KernelToolsOptions,
} from '../gate/kernel/kernel-tool.js';
export { openKernelTools } from '../gate/kernel/kernel-tools.js';
export {
  serveKernelTools,
  type KernelEvent,
  type ServeKernelToolsOptions,
} from '../gate/kernel/serve-kernel-tools.js';

// MCP
export type { McpSubject } from '../gate/mcp/guarded-call.js';
export { type GateToolsOptions, serveGateTools, type ServeGateToolsOptions } from '../gate/mcp/gate-tools.js';
export type { ServeToolsOptions } from '../gate/mcp/tool-server.js';
export type { McpEvent, McpGuardOptions, McpLoss } from '../gate/mcp/mcp-calls.js';
export { McpGuard } from '../gate/mcp/mcp-guard.js';
export type { McpHandling, McpLink, McpStep } from '../gate/mcp/mcp-link.js';
export { serveMcpProxy, type McpProxyOptions, type McpProxyServer } from '../gate/mcp/http-proxy.js';
export { tapMcp, type TapMcpOptions } from '../gate/mcp/stdio-tap.js';
