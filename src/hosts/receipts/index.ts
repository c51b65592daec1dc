/**
 * `northroot/hosts/receipts`: signed receipts of other systems, verified by the rules of their own formats and taken over as evidence. And
 * what a further format is made with.
 */

export { aar } from './aar/aar.js';
export { acta } from './acta/acta.js';
export { agentReceipts } from './agent-receipts.js';
export { cycles } from './cycles/cycles.js';
export { epReceipt } from './ep/ep-receipt.js';
export { KeyRing, readKeyRing } from './keys.js';
export type { Receipt, ReceiptAction, ReceiptLink, ReceiptSignature } from './receipt.js';
export type { ReceiptFormat } from './receipt-format.js';
export { receiptHost } from './receipt-host.js';
export { Shape, type TextShape } from './shape.js';
export {
  chainsOf,
  checkChain,
  type ChainRules,
  digestsOf,
  type Standing,
  type Standings,
  Verification,
  verifyReceipts,
} from './verification.js';
