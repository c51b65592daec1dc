/** Examples of every command, for its help and for the manual. */

import type { Command } from 'commander';

/** By the command's words after `northroot`. */
export const EXAMPLES: Readonly<Record<string, readonly [string, ...string[]]>> = {
  init: [
    'northroot init ledger.jsonl --origin example.com/agents/prod',
    'northroot init ledger.jsonl --key prod.pem --recovery-key offline.pub',
    'northroot init imported.jsonl --at 2026-03-01',
    'northroot init 2027.jsonl --origin example.com/agents/2027 --continues 2026.jsonl',
    "northroot init child.jsonl --slice parent.jsonl --grant 1 --cap usd=10 --tool 'fs.*' --expires 1d",
  ],
  append: [
    `echo '{"event_type":"x.build","commit":"4f2a9c"}' | northroot append ledger.jsonl --principal service:ci`,
    'northroot append ledger.jsonl events.nrj --foreign-as x.journal',
    'northroot append ledger.jsonl events.json --principal service:ci --type x.build --existing refuse',
    'tail -F events.ndjson | northroot append ledger.jsonl - --strict --checkpoint-every 1h',
  ],
  import: [
    'northroot import --from cgf --check events.jsonl',
    'northroot import --from clasper --ledger ledger.jsonl --create http.jsonl',
    'northroot import --from openclaw hooks.jsonl | northroot append ledger.jsonl',
    'northroot import --from agent-receipts --aid keys=keys.json --ledger ledger.jsonl receipts.jsonl',
  ],
  reconcile: [
    'northroot reconcile ledger.jsonl cgf=events.jsonl clasper=http.jsonl',
    'northroot reconcile ledger.jsonl events.jsonl --expect promised.json --output json=reconcile.json',
  ],
  check: ['northroot check --as adapter-profile profile.json'],
  checkpoint: [
    'northroot checkpoint ledger.jsonl',
    'northroot checkpoint ledger.jsonl --witness https://witness.example/w1 --witness-policy policy.txt',
  ],
  copy: [
    'northroot copy ledger.jsonl backup/',
    'northroot copy ledger.jsonl postgres://app@db.example/ledgers#shop',
  ],
  repair: ['northroot repair ledger.jsonl'],
  index: ['northroot index ledger.jsonl --check'],
  'hook run': [
    'northroot hook run claude-code --ledger ledger.jsonl < call.json',
    'northroot hook run codex --socket ledger.jsonl.sock --fail open < call.json',
  ],
  'hook install': [
    'northroot hook install claude-code --ledger ledger.jsonl',
    'northroot hook install claude-code --project --ledger ledger.jsonl --wait 10m',
    'northroot hook install codex --ledger ledger.jsonl --principal agent:a1 --key agent.pem --print',
  ],
  'hook uninstall': ['northroot hook uninstall claude-code'],
  doctor: [
    'northroot doctor claude-code',
    'northroot doctor codex --bin ./node_modules/.bin/codex --project --timeout 5m --format json',
  ],
  grant: [
    "northroot grant ledger.jsonl --to agent:a1 --tool 'fs.*' --cap usd=5 --cap calls=100 --expires 2h",
    "northroot grant ledger.jsonl --to agent:a1 --tool '*' --cap tokens.output=1000000 --rate tokens.output.per_5h=100000 --action-cap tokens.output=20000",
    'northroot grant ledger.jsonl --to agent:a2 --parent 4 --cap usd=1 --expires 30m --key a1.pem',
    "northroot grant ledger.jsonl --to agent:a1 --tool net.get --cap calls=10 --intent 'release 1.2' --expires 2026-12-31T18:00:00+01:00",
    "northroot grant ledger.jsonl --to agent:a1 --tool deploy --cap usd=1000 --approve-tool deploy --approve-above usd=100 --approver 'human:*'",
  ],
  simulate: [
    'northroot simulate ledger.jsonl --grant bounds.json --principal agent:a1',
    'northroot simulate --from claude-code session.jsonl --grant bounds.json --format json',
  ],
  slice: [
    'northroot slice parent.jsonl --grant 1 --to child.jsonl --cap usd=10 --expires 1d > slice.json',
    'northroot slice parent.jsonl --grant 1 --to sha-256:47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU --cap usd=10 --request-key week-7',
  ],
  settle: [
    'northroot settle parent.jsonl child.jsonl',
    'northroot settle parent.jsonl child.jsonl --wait 10m --abandon',
  ],
  anchor: ['northroot anchor parent.jsonl child.jsonl'],
  'fleet verify': [
    'northroot fleet verify ledgers/',
    'northroot fleet verify paths.txt --trust trust.json --output json=fleet.json',
  ],
  'draft-grant': [
    'northroot draft-grant --from claude-code session.jsonl > bounds.json',
    'northroot draft-grant --prefixes ledger.jsonl > bounds.json',
  ],
  authorize: [
    'northroot authorize ledger.jsonl --principal agent:a1 --tool fs.read --params params.json --reserve calls=1',
    'northroot authorize ledger.jsonl --principal agent:a1 --tool shell.make --reserve usd=0.5 --expires 15m -- make test',
    'northroot authorize ledger.jsonl --principal agent:a1 --tool deploy --params params.json --attach --reserve usd=500 --wait 10m',
  ],
  record: [
    'northroot record ledger.jsonl --auth 7 -- make test',
    'northroot record ledger.jsonl --auth 4 --tool net.get --outcome success --meter usd=0.02 --started-at 2026-03-01T12:00:00Z --ended-at 2026-03-01T12:00:02Z',
    'northroot record ledger.jsonl --auth 4 --tool llm.chat --outcome success --meter tokens.output=812 --basis reported --model m-1 --provider Example',
    'northroot record ledger.jsonl --auth 7 --abandon',
  ],
  abandon: [
    'northroot abandon ledger.jsonl --expired',
    'northroot abandon ledger.jsonl --older-than 1h --grant 4',
  ],
  adjust: [
    'northroot adjust ledger.jsonl --grant 4 --credit usd=0.3 --reason REFUND --execution 9',
    'northroot adjust ledger.jsonl --grant 4 --debit usd=0.12 --reason INVOICE --basis billed --evidence bill.pdf',
  ],
  approvals: [
    'northroot approvals ledger.jsonl',
    'northroot approvals ledger.jsonl 12',
    'northroot approvals ledger.jsonl --all --format json',
  ],
  approve: [
    'northroot approve ledger.jsonl 12 --key owner.pem',
    'northroot approve ledger.jsonl 12 --limit usd=100 --expires 1h --code REVIEWED --key owner.pem',
    'northroot approve ledger.jsonl 12 --passkey https://approve.example.com --principal human:olga > asked.json',
    'northroot approve ledger.jsonl 12 --assertion signed.json',
  ],
  reject: ['northroot reject ledger.jsonl 12 --code TOO_EXPENSIVE --key owner.pem'],
  revoke: [
    'northroot revoke ledger.jsonl 4 --reason PROJECT_ENDED',
    'northroot revoke ledger.jsonl --all --in-flight stop --reason INCIDENT',
  ],
  suspend: ['northroot suspend ledger.jsonl 4 --in-flight stop --reason INCIDENT'],
  resume: ['northroot resume ledger.jsonl 4 --reason INCIDENT_OVER'],
  budget: [
    'northroot budget ledger.jsonl',
    'northroot budget ledger.jsonl --grant 4 --at 2026-03-01T12:00:00Z --format json',
  ],
  'prices import': [
    'northroot prices import model_prices_and_context_window.json --out prices.json',
    "northroot prices import data.json --from genai-prices --as-of 2026-03-01 --model 'claude-*' --out prices.json",
  ],
  'prices show': ['northroot prices show prices.json claude-sonnet-4-5 --provider anthropic'],
  'prices cost': [
    'northroot prices cost prices.json claude-sonnet-4-5 --input 1000 --output 100 --cache-read 200',
  ],
  why: ['northroot why ledger.jsonl 17', 'northroot why ledger.jsonl sha-256:6QJw61M4h8'],
  verify: [
    'northroot verify ledger.jsonl',
    'northroot verify ledger.jsonl --trust trust.json --checkpoint kept.checkpoint',
    "northroot verify ledger.jsonl --since 7d --principal 'agent:*' --format json",
    'northroot verify ledger.jsonl --state monitor.state --fail-on warning',
    'northroot verify ledger.jsonl --output sarif=northroot.sarif --output junit=northroot.xml',
    'northroot verify ledger.jsonl --baseline known.json --format brief',
    'northroot verify ledger.jsonl --decisions --prices prices.json',
    'curl -s https://example.com/ledger.jsonl | northroot verify -',
  ],
  export: [
    'northroot export ledger.jsonl --html report.html --trust trust.json --checkpoint kept.checkpoint',
    'northroot export ledger.jsonl --dsse events.dsse.jsonl',
    'northroot export ledger.jsonl --bundle audit.nrb --grant 3 --key auditor.pem',
    'northroot export ledger.jsonl --journal events.nrj',
    'northroot export ledger.jsonl --in-toto verified.json --key auditor.pem --trust trust.json',
    'northroot export ledger.jsonl --receipts receipts --key log.pem --grant 3',
    'northroot export ledger.jsonl --no-contents --bundle week.nrb --complete 100..199',
    'northroot export ledger.jsonl --bundle one.nrb --event 17 --event 18',
    'northroot export ledger.jsonl --last 4w --csv tables --parquet tables',
    'northroot export ledger.jsonl --since 2026-03-01 --until 2026-04-01 --focus costs.csv --currency-unit usd=USD',
    'northroot export ledger.jsonl --trust trust.json --ocsf events.ndjson --otlp spans.json',
  ],
  report: [
    'northroot report ledger.jsonl --principal agent:a1 --last 7d',
    'northroot report ledger.jsonl --by grant --trust trust.json --checkpoint kept.checkpoint',
    'northroot report ledger.jsonl --since 2026-03-01 --until 2026-04-01 --by day --format csv',
    'northroot report ledger.jsonl --output html=report.html --output markdown=report.md',
    'northroot report ledger.jsonl --bill costs.json --bill-provider openai',
  ],
  status: ['northroot status ledger.jsonl', 'northroot status ledger.jsonl --trust trust.json --format json'],
  show: ['northroot show ledger.jsonl 17', 'northroot show ledger.jsonl sha-256:6QJw61M4h8 --format dsse'],
  log: [
    "northroot log ledger.jsonl --tool 'fs.*' --since 7d",
    'northroot log ledger.jsonl --verdict violation --trust trust.json',
    'northroot log ledger.jsonl -f -n 20',
  ],
  diff: ['northroot diff ledger.jsonl copy.jsonl'],
  prove: [
    'northroot prove ledger.jsonl 17 --out event.tlog-proof',
    'northroot prove ledger.jsonl --consistency kept.checkpoint --out grown.proof',
    'northroot prove ledger.jsonl 17 --format cose --key log.pem --out event.cose --entry-out event.json',
  ],
  'verify-proof': [
    'northroot verify-proof event.tlog-proof --key log.pub',
    'northroot verify-proof event.cose --key log.pub --entry event.json',
    'northroot verify-proof grown.proof --consistency kept.checkpoint --trust trust.json',
    'northroot verify-proof verified.json --key auditor.pub --ledger ledger.jsonl',
  ],
  disclose: [
    'northroot disclose audit.nrb --content params.json --out audit-with-params.nrb',
    'northroot disclose audit.nrb --content ledger.jsonl.contents --out audit-with-params.nrb',
    'northroot disclose ledger.jsonl --check report.pdf',
  ],
  keygen: ['northroot keygen --out agent.pem', 'northroot keygen --out log.pem --type ml-dsa-44'],
  'key show': [
    'northroot key show agent.pem',
    'northroot key show ledger.jsonl.key --form openssh --name prod',
  ],
  'key list': ['northroot key list ledger.jsonl', 'northroot key list ledger.jsonl --format json'],
  'key add': [
    'northroot key add ledger.jsonl agent.pem --role event --for agent:a1',
    "northroot key add ledger.jsonl lead.pem --role authority --for 'agent:*' --name lead",
    'northroot key add ledger.jsonl next.pem --role event --role authority --role checkpoint --role admin',
  ],
  'key revoke': ['northroot key revoke ledger.jsonl 56P5TQ8G --key next.pem --reason rotation'],
  'trust init': [
    'northroot trust init ledger.jsonl --out trust.json',
    'northroot trust init ledger.jsonl --out trust.json --anchor-out kept.checkpoint --yes',
  ],
  'trust show': ['northroot trust show trust.json'],
  tiles: [
    'northroot tiles ledger.jsonl --out public/',
    'northroot tiles ledger.jsonl --to s3://my-logs/agents',
  ],
  witness: [
    "northroot witness --key witness.pem --name witness.example/w1 --state state/ --log 'example.com/log+530d903a+AekyWA4…'",
  ],
  serve: [
    'northroot serve ledger.jsonl --principal agent:a1',
    'northroot serve ledger.jsonl --tokens tokens.json --listen 127.0.0.1:8788 --approver-key human:olga=olga.pem',
    'northroot serve ledger.jsonl --tokens tokens.json --listen 10.0.0.1:8788 --peer https://gate2.example.com',
    'northroot serve ledger.jsonl --face clasper --clasper-secrets secrets.env --listen 127.0.0.1:8081',
    'northroot serve ledger.jsonl --principal agent:a1 --opa http://127.0.0.1:8181/v1/data/agents/allow --shadow',
    'northroot serve ledger.jsonl --principal agent:a1 --face cgf --cgf-policy policy.json --listen 127.0.0.1:8080 --cgf-anonymous',
  ],
  llm: [
    'northroot llm ledger.jsonl --principal agent:a1 --prices prices.json --upstream https://api.openai.com',
    'northroot llm ledger.jsonl --tokens tokens.json --upstream-key-env ANTHROPIC_API_KEY --prices prices.json --upstream https://api.anthropic.com',
    'northroot llm ledger.jsonl --principal agent:a1 --prices prices.json --upstream https://api.openai.com --dry-run',
  ],
  'llm env': ['eval "$(northroot llm env)"', 'northroot llm env --listen 127.0.0.1:9000 --format json'],
  'run-agent': [
    'northroot run-agent ledger.jsonl --profile local.json --workspace work -- ./agent.sh',
    'northroot run-agent ledger.jsonl --profile claude-code.json --task @task.txt --workspace work --excerpt 16KiB',
    'northroot run-agent ledger.jsonl --profile blake3:8e80439b7b5ff2f7b1f8ad0b7a3d1c2e4f5061728394a5b6c7d8e9f0a1b2c3d4 --profiles profiles --workspace work --program git --isolation container -- ./agent.sh',
  ],
  mcp: [
    'northroot mcp ledger.jsonl --server files -- npx -y @modelcontextprotocol/server-filesystem .',
    'northroot mcp ledger.jsonl --server files --principal agent:a1 --wait 10m --pin --hide -- node server.js',
    'northroot mcp ledger.jsonl --server files --guard resources,prompts,sampling --reserve usd=0.01 -- ./server',
    'northroot mcp ledger.jsonl --server search --http https://mcp.example/mcp --legacy',
    'northroot mcp ledger.jsonl --server search --http https://mcp.example/mcp --listen 127.0.0.1:9001 --allow-origin https://app.example',
    'northroot mcp ledger.jsonl --gate --principal agent:a1',
    'northroot mcp ledger.jsonl --serve-tools --workspace work --program git --host api.example.com --isolation container',
  ],
  'gate status': [
    'northroot gate status ledger.jsonl -f',
    'northroot gate status ledger.jsonl --format json',
  ],
  'gate token': [
    "northroot gate token tokens.json ci --principal 'agent:ci*' --tool 'fs.*'",
    'northroot gate token tokens.json olga --principal human:olga --may approve --may read',
  ],
  canonicalize: ['northroot canonicalize draft.json', `echo '{"b":1,"a":1e2}' | northroot canonicalize`],
  digest: ['northroot digest report.pdf', `echo '"nightly release"' | northroot digest --json`],
  'event-id': ['northroot event-id event.json'],
  schema: ['northroot schema', 'northroot schema execution'],
  explain: ['northroot explain PREV_MISMATCH'],
  completion: ['source <(northroot completion bash)', 'northroot completion fish | source'],
};

/** Shows the examples at the end of each command's help. */
export function addExamples(program: Command): void {
  for (const { words, command } of leavesOf(program)) {
    const examples = EXAMPLES[words];
    if (examples === undefined) continue;
    command.addHelpText(
      'after',
      `\nExamples:\n${examples.map((example) => `  ${example}\n`).join('')}`.trimEnd(),
    );
  }
}

/** The commands that do something, as they are typed after `northroot`. */
export function leavesOf(program: Command): { readonly words: string; readonly command: Command }[] {
  return program.commands.flatMap((command) => {
    const subs = command.commands.map((sub) => ({ words: `${command.name()} ${sub.name()}`, command: sub }));
    // One with subcommands may do something by itself too.
    const isOwn = subs.length === 0 || command.registeredArguments.length > 0;
    return [...(isOwn ? [{ words: command.name(), command }] : []), ...subs];
  });
}
