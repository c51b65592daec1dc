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
  type GateAnswer,
  type GateCall,
  type GateDecision,
  type GateOptions,
  type OpenCall,
  type Settled,
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
export { type ServiceEvent } from '../gate/service/gate-service.js';
export { makeToken, Tokens, type TokenEntry, type TokenUse } from '../gate/service/tokens.js';
// What calls of models cost
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
