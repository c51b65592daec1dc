/**
 * Hooks in a host's settings, as text to text: what else is there stays. A file that is not read without doubt, or whose numbers JSON cannot
 * give back, is not written.
 */

import { encodeUtf8 } from '../../base/bytes/text.js';
import { NorthrootError } from '../../base/error.js';
import { ingestJson } from '../../base/json/ingest.js';
import { isJsonObject, type JsonObject, type JsonValue } from '../../base/json/value.js';
import type { HookProfile } from './profile.js';

/** The largest settings file that is read, in bytes. */
export const MAX_SETTINGS_BYTES = 4 * 1024 * 1024;

/**
 * The settings with hooks for every event of the profile. Hooks of northroot that were there are replaced.
 * @param text - The file's text; undefined for none
 * @param command - As {@link hookCommand}
 * @param seconds - How long the host is to wait for a hook
 * @throws NorthrootError `SETTINGS_INVALID`
 */
export function installHooks(
  profile: HookProfile,
  text: string | undefined,
  command: string,
  seconds: number,
): string {
  const { settings, events, decides } = profile;
  const before = text === undefined ? settings.empty : parseSettings(text);
  const off = settings.isOff?.(before);
  if (off !== undefined) throw invalid(`${off}: the agent calls no hook of these settings`);
  const kept = without(profile, before);
  const hooks = { ...(kept['hooks'] as JsonObject | undefined) };
  for (const event of events) {
    const hook = settings.hook(command, seconds, event === decides);
    hooks[event] = [...listOf(hooks[event]), settings.isGrouped ? { hooks: [hook] } : hook];
  }
  const after = { ...kept, hooks };
  return text !== undefined && JSON.stringify(after) === JSON.stringify(before) ? text : format(after, text);
}

/**
 * The settings without the hooks of northroot, and without lists that only had such. The same text if it has none.
 * @throws NorthrootError `SETTINGS_INVALID`
 */
export function uninstallHooks(profile: HookProfile, text: string): string {
  const before = parseSettings(text);
  const after = without(profile, before);
  return JSON.stringify(after) === JSON.stringify(before) ? text : format(after, text);
}

/** Whether nothing but what a new file begins with is left. */
export function isEmptySettings({ settings: { empty } }: HookProfile, text: string): boolean {
  return JSON.stringify(parseSettings(text)) === JSON.stringify(empty);
}

/** A command line for a POSIX shell. */
export function hookCommand(words: readonly string[]): string {
  return words
    .map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`))
    .join(' ');
}

function without(profile: HookProfile, settings: JsonObject): JsonObject {
  const { hooks } = settings;
  if (hooks === undefined) return settings;
  if (!isJsonObject(hooks)) throw invalid('hooks: expected an object');
  const events = Object.entries(hooks).flatMap(([event, value]): [string, JsonValue][] => {
    const list = listOf(value);
    const left = profile.settings.isGrouped
      ? list.flatMap((group) => withoutOwn(profile, group))
      : list.filter((hook) => !isOwn(profile, hook));
    const isOnlyOwn = left.length === 0 && list.length > 0;
    return isOnlyOwn ? [] : [[event, left]];
  });
  const isOnlyOwn = events.length === 0 && Object.keys(hooks).length > 0;
  if (!isOnlyOwn) return { ...settings, hooks: Object.fromEntries(events) };
  return Object.fromEntries(Object.entries(settings).filter(([name]) => name !== 'hooks'));
}

/** A group without own hooks; nothing if it had only such. */
function withoutOwn(profile: HookProfile, group: JsonValue): JsonValue[] {
  if (!isJsonObject(group)) throw invalid('hooks: expected lists of objects');
  const hooks = listOf(group['hooks']);
  const left = hooks.filter((hook) => !isOwn(profile, hook));
  if (left.length === hooks.length) return [group];
  return left.length === 0 ? [] : [{ ...group, hooks: left }];
}

function isOwn({ name, settings }: HookProfile, hook: JsonValue): boolean {
  const command = isJsonObject(hook) ? hook[settings.command] : undefined;
  if (typeof command !== 'string') return false;
  const [, host] = /(?:^|[\s/'])northroot(?:\.js)?'? hook (?:run )?([a-z-]+)(?: |$)/.exec(command) ?? [];
  return host === name;
}

function listOf(value: JsonValue | undefined): readonly JsonValue[] {
  if (value === undefined) return [];
  if (!Array.isArray(value)) throw invalid('hooks: expected a list for each event');
  return value;
}

function parseSettings(text: string): JsonObject {
  const { value, issues } = ingestJson(encodeUtf8(text));
  const [issue] = issues;
  if (issue !== undefined) throw invalid(`${issue.code} at byte ${issue.offset}`);
  if (!isJsonObject(value)) throw invalid('expected a JSON object');
  return value;
}

/** As the file was written: its indentation, its ends of lines and its final newline. */
function format(settings: JsonObject, text: string | undefined): string {
  const [, indent = '  '] = /^\{\r?\n([ \t]+)"/.exec(text ?? '') ?? [];
  const end = text === undefined || text.endsWith('\n') ? '\n' : '';
  const written = `${JSON.stringify(settings, null, indent)}${end}`;
  return text?.includes('\r\n') === true ? written.replaceAll('\n', '\r\n') : written;
}

function invalid(message: string): NorthrootError {
  return new NorthrootError('SETTINGS_INVALID', message, {
    hint: 'correct the settings first; nothing was written',
  });
}
