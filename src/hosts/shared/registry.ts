/** All hosts, and all that files can be checked as. A further host is one folder and one line here. */

import { adapterProfileChecker, apm2, episodeChecker } from '../apm2/index.js';
import { cgf } from '../cgf/index.js';
import { clasper } from '../clasper/index.js';
import { claudeCode } from '../claude-code/index.js';
import { codex } from '../codex/index.js';
import { litellm } from '../litellm/index.js';
import { openclaw, openclawPipeline } from '../openclaw/index.js';
import { otlp } from '../otlp/index.js';
import type { Checker, Host } from './host.js';

/** In the order in which help lists them. */
export const HOSTS: readonly Host[] = [cgf, clasper, openclaw, apm2, claudeCode, codex, otlp, litellm];

/** In the order in which help lists them. */
export const CHECKERS: readonly Checker[] = [openclawPipeline, adapterProfileChecker, episodeChecker];
