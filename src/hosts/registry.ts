/** All hosts, and all that files can be checked as. A fifth host is one folder and one line here. */

import { cgf } from './cgf/index.js';
import { clasper } from './clasper/index.js';
import { claudeCode } from './claude-code/index.js';
import type { Checker, Host } from './host.js';
import { openclaw, openclawPipeline } from './openclaw/index.js';

/** In the order in which help lists them. */
export const HOSTS: readonly Host[] = [cgf, clasper, openclaw];
import { litellm } from './litellm/index.js';
import { otlp } from './otlp/index.js';

/** In the order in which help lists them. */
export const HOSTS: readonly Host[] = [cgf, clasper, claudeCode, otlp, litellm];

/** In the order in which help lists them. */
export const CHECKERS: readonly Checker[] = [openclawPipeline];
