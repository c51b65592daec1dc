/** The approvers' page: one file without other resources. It asks the service for requests, and shows texts as texts. */

import { sha256 } from '../../base/bytes/sha256.js';
import { encodeBase64 } from '../../base/bytes/encoding.js';
import { encodeUtf8 } from '../../base/bytes/text.js';

const STYLE = `
:root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif}
body{margin:0 auto;max-width:48rem;padding:1rem}
h1{font-size:1.4rem}
form{display:flex;gap:.5rem;flex-wrap:wrap;align-items:end}
label{display:grid;gap:.25rem;flex:1 1 16rem}
input,button{font:inherit;padding:.5rem;min-height:2.75rem}
article{border:1px solid currentColor;border-radius:.5rem;padding:1rem;margin:1rem 0}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.25rem 1rem;margin:0 0 1rem}
dt{font-weight:600}dd{margin:0;overflow-wrap:anywhere}
pre{margin:0;max-height:16rem;overflow:auto;white-space:pre-wrap;overflow-wrap:anywhere}
.buttons{display:flex;gap:.5rem}
@media(max-width:30rem){dl{grid-template-columns:1fr}dt{margin-top:.5rem}}
`;

const SCRIPT = `
'use strict';
const list = document.getElementById('list'), state = document.getElementById('state');
const field = document.getElementById('token');
// Each is drawn anew every few seconds.
const MOST = 100;
let timer;
async function call(path, body) {
  const response = await fetch('.' + path, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { Authorization: 'Bearer ' + field.value, ...(body === undefined ? {} : { 'Content-Type': 'application/json' }) },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error.code + ': ' + answer.error.message);
  return answer;
}
function amount(a) {
  if (a.t === 'int') return a.v;
  if (a.t === 'dec') { const m = a.m.padStart(a.s + 1, '0'); return a.s === 0 ? m : m.slice(0, -a.s) + '.' + m.slice(-a.s); }
  return a.t === 'rat' ? a.n + '/' + a.d : 'f64 ' + a.bits;
}
function safe(text) {
  return text.replace(/[\\p{Cc}\\p{Cf}\\p{Cs}\\p{Co}\\p{Cn}\\p{Zl}\\p{Zp}]/gu, (c) => (c === '\\n' ? c : '\\\\u{' + c.codePointAt(0).toString(16) + '}'));
}
const bytes = (text) => Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (c) => c.charCodeAt(0));
const text64 = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer))).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
async function sign(path, decision) {
  const asked = await call(path + '/passkey', { decision, origin: location.origin });
  if (asked.publicKey === null) return {};
  const { challenge, allowCredentials, ...rest } = asked.publicKey;
  const { id, type, response } = await navigator.credentials.get({ publicKey: {
    ...rest, challenge: bytes(challenge), allowCredentials: allowCredentials.map((each) => ({ ...each, id: bytes(each.id) })),
  } });
  const [authenticatorData, clientDataJSON, signature] = [response.authenticatorData, response.clientDataJSON, response.signature].map(text64);
  return { passkey: { event: asked.event, credential: { id, type, response: { authenticatorData, clientDataJSON, signature } } } };
}
async function register() {
  const name = document.getElementById('name').value;
  const { id, type, response } = await navigator.credentials.create({ publicKey: {
    rp: { name: 'Approvals', id: location.hostname },
    user: { id: crypto.getRandomValues(new Uint8Array(32)), name, displayName: name },
    challenge: crypto.getRandomValues(new Uint8Array(32)),
    pubKeyCredParams: [{ type: 'public-key', alg: -7 }, { type: 'public-key', alg: -8 }],
    authenticatorSelection: { residentKey: 'preferred', userVerification: 'required' },
  } });
  const [clientDataJSON, attestationObject] = [response.clientDataJSON, response.attestationObject].map(text64);
  const made = document.getElementById('made');
  made.textContent = JSON.stringify({ id, type, response: { clientDataJSON, attestationObject } });
  made.hidden = false;
  state.textContent = 'Made. Give the text below to an admin of the ledger.';
}
// Each is asked for once, not whenever it is drawn.
const known = new Map();
function parameters(request, pre) {
  if (!known.has(request.event_id)) known.set(request.event_id, ask(request));
  known.get(request.event_id).then((text) => { pre.textContent = text; });
}
async function ask(request) {
  try {
    const { tool_params: kept } = await call('/v1/approvals/' + encodeURIComponent(request.event_id));
    const text = 'value' in kept ? JSON.stringify(kept.value, null, 2) : 'text' in kept ? kept.text : undefined;
    const said = { missing: 'not kept', mismatch: 'kept, but with another digest', unreadable: 'kept, but not readable' };
    return text === undefined ? (said[kept.status] || kept.status) + ': ' + request.tool_params_digest : safe(text);
  } catch (error) { known.delete(request.event_id); return request.tool_params_digest; }
}
function show(request) {
  const article = document.createElement('article');
  article.dataset.id = request.event_id;
  const dl = document.createElement('dl');
  const row = (name, text) => {
    const dt = document.createElement('dt'), dd = document.createElement('dd');
    dt.textContent = name; dd.textContent = text; dl.append(dt, dd);
  };
  row('Who asks', request.principal_id);
  row('Tool', request.tool_name);
  row('Parameters', '');
  const pre = document.createElement('pre');
  pre.textContent = request.tool_params_digest;
  dl.lastChild.append(pre);
  parameters(request, pre);
  row('At most', request.meter_reservation.map((m) => amount(m.amount) + ' ' + m.unit).join(', ') || 'nothing reserved');
  row('Since', request.occurred_at);
  if (request.need) row('Needs', request.need.count + ' of ' + (request.need.approvers.join(' or ') || 'whom an adviser accepts'));
  const by = request.approvals.map((a) => a.principal_id).join(', ');
  const isUnknown = by && request.need && request.need.approvers.length === 0;
  row('Approved by', (by || 'nobody yet') + (isUnknown ? '; whether that is enough only the adviser knows: the call is to be asked for again' : ''));
  row('Request', request.event_id);
  row('If nothing is done', 'it stays denied, and nothing runs');
  const buttons = document.createElement('div');
  buttons.className = 'buttons';
  for (const [verb, text] of [['approve', 'Approve'], ['reject', 'Reject']]) {
    const button = document.createElement('button');
    button.type = 'button'; button.textContent = text; button.dataset.verb = verb;
    button.addEventListener('click', async () => {
      for (const each of buttons.children) each.disabled = true;
      try {
        const path = '/v1/approvals/' + encodeURIComponent(request.event_id);
        const answer = await call(path + '/' + verb, await sign(path, verb));
        state.textContent = (verb === 'approve' ? 'Approved' : 'Rejected') + ' by the record of seq ' + answer.seq + '; the request is now ' + answer.status + '.';
      } catch (error) { state.textContent = error.message; }
      await load(true);
    });
    buttons.append(button);
  }
  article.append(dl, buttons);
  return article;
}
async function load(keeps) {
  clearTimeout(timer);
  try {
    const { requests: waiting } = await call('/v1/approvals?waiting=' + MOST);
    for (const id of known.keys()) if (!waiting.some((request) => request.event_id === id)) known.delete(id);
    list.replaceChildren(...waiting.map(show));
    if (!keeps) state.textContent = waiting.length === 0 ? 'Nobody waits for approval.' : waiting.length < MOST ? waiting.length + ' waiting.' : 'The first ' + MOST + ' that wait are shown.';
    timer = setTimeout(() => load(true), 5000);
  } catch (error) { list.replaceChildren(); state.textContent = error.message; }
}
document.getElementById('open').addEventListener('submit', (event) => { event.preventDefault(); load(false); });
document.getElementById('make').addEventListener('submit', async (event) => {
  event.preventDefault();
  try { await register(); } catch (error) { state.textContent = error.message; }
});
`;

const hashOf = (text: string): string => `'sha256-${encodeBase64(sha256(encodeUtf8(text)))}'`;

/** Headers for the page: nothing but its own script and style runs, and no other site may frame it. */
export const PAGE_HEADERS = {
  'Content-Security-Policy': `default-src 'none'; script-src ${hashOf(SCRIPT)}; style-src ${hashOf(STYLE)}; connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'`,
  'Referrer-Policy': 'no-referrer',
  'X-Frame-Options': 'DENY',
} as const;

export const APPROVER_PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>northroot: approvals</title>
<style>${STYLE}</style>
</head>
<body>
<main>
<h1>Who waits for approval</h1>
<form id="open"><label>Token<input id="token" type="password" autocomplete="off" required></label><button>Show</button></form>
<p id="state" role="status"></p>
<div id="list"></div>
<details><summary>Make a passkey for approvals</summary>
<form id="make"><label>Name<input id="name" autocomplete="off" maxlength="64" required></label><button>Make</button></form>
<pre id="made" hidden></pre></details>
</main>
<script>${SCRIPT}</script>
</body>
</html>
`;
