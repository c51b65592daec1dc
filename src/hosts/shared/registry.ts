/** All hosts, and all that files can be checked as. A further host is one folder and one line here. */

import { apm2 } from '../apm2/apm2.js';
import { episodeChecker } from '../apm2/episode-checker.js';
import { adapterProfileChecker } from '../apm2/profile-checker.js';
import { cgf } from '../cgf/cgf.js';
import { clasper } from '../clasper/clasper.js';
import { claudeCode } from '../claude-code/index.js';
import { codex } from '../codex/index.js';
import { litellm } from '../litellm/index.js';
import { openclaw } from '../openclaw/openclaw.js';
import { openclawPipeline } from '../openclaw/pipeline.js';
import { otlp } from '../otlp/index.js';
import { aar, acta, agentReceipts, cycles, epReceipt } from '../receipts/index.js';
import type { Checker, Host } from './host.js';

/** In the order in which help lists them. */
export const HOSTS: readonly Host[] = [
  cgf,
  clasper,
  openclaw,
  apm2,
  claudeCode,
  codex,
  otlp,
  litellm,
  agentReceipts,
  aar,
  epReceipt,
  cycles,
  acta,
];

/** In the order in which help lists them. */
export const CHECKERS: readonly Checker[] = [openclawPipeline, adapterProfileChecker, episodeChecker];
