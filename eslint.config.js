import js from '@eslint/js';
import tseslint from 'typescript-eslint';

const noNodeFs = {
  paths: ['fs', 'fs/promises', 'node:fs', 'node:fs/promises'].map((name) => ({
    name,
    message: 'only src/log/fs touches the file system',
  })),
};

/** What `northroot/verify` may load runs without Node: what differs between hosts is `#platform`. */
const core = [
  ...['base', 'format', 'rules', 'fast', 'proof/bundle'],
  ...['out/text', 'out/activity', 'out/export/table', 'out/page/model', 'out/page/app'],
].map((folder) => `src/${folder}/**/*.ts`);
const nodesOwn = [
  // Private keys, and the two that name Node's crypto by its name.
  ...[
    'src/format/key/private-key.ts',
    'src/format/key/pkcs8.ts',
    'src/format/signature/signer.ts',
    'src/format/signature/node-backend.ts',
  ],
  'src/base/platform/{node,buffer,serve-http}.ts',
  'src/fast/blocks/worker.ts',
  'src/rules/verify/saved-state.ts',
];

/** Rules that ask for the type of nearly every expression, as long as compiling takes. */
const COSTLY = [
  ...['argument', 'assignment', 'call', 'member-access', 'return'].map((use) => `no-unsafe-${use}`),
  ...['no-base-to-string', 'unbound-method'],
];

export default tseslint.config(
  {
    ignores: ['dist/', 'coverage/', 'src/**/generated/', 'assembly/*.ts'],
  },
  js.configs.recommended,
  {
    files: ['**/*.ts'],
    extends: [...tseslint.configs.recommendedTypeChecked],
    languageOptions: {
      parserOptions: {
        project: ['./tsconfig.json', './test/lint/tsconfig.json', './src/out/page/app/tsconfig.json'],
      },
    },
    rules: {
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-misused-promises': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': [
        'error',
        { considerDefaultExhaustiveForUnions: true },
      ],
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_' }],
      '@typescript-eslint/restrict-template-expressions': [
        'error',
        { allowNumber: true, allowBoolean: true },
      ],
      'no-control-regex': 'off',
      eqeqeq: 'error',
    },
  },
  {
    // A test that takes an `any` for what it is not fails. One that waits for no promise cannot.
    files: ['test/**/*.ts'],
    rules: {
      ...Object.fromEntries(COSTLY.map((name) => [`@typescript-eslint/${name}`, 'off'])),
      // What `expect` takes has another type here than for the compiler: see test/lint/vitest.d.ts.
      '@typescript-eslint/no-unnecessary-type-assertion': 'off',
      '@typescript-eslint/no-misused-promises': ['error', { checksVoidReturn: false }],
    },
  },
  {
    files: ['src/**/*.ts'],
    ignores: ['src/log/fs/**', 'src/cli/**'],
    rules: {
      'no-restricted-imports': ['error', { ...noNodeFs, patterns: ['commander'] }],
      'no-console': 'error',
    },
  },
  {
    files: [...core, 'src/api/verify.ts', 'src/proof/*.ts'],
    ignores: nodesOwn,
    rules: {
      'no-restricted-imports': [
        'error',
        {
          ...noNodeFs,
          patterns: [
            { group: ['node:*', 'commander'], message: 'the core runs without Node: see src/base/platform' },
            { group: ['**/platform/{node,buffer,web}.js'], message: 'import #platform' },
          ],
        },
      ],
      'no-restricted-globals': [
        'error',
        ...['Buffer', 'process', 'global', 'setImmediate'].map((name) => ({
          name,
          message: 'the core runs without Node: see src/base/platform',
        })),
      ],
    },
  },
  { files: ['src/cli/**/*.ts'], rules: { 'no-restricted-imports': ['error', noNodeFs] } },
  {
    files: ['**/*.js'],
    languageOptions: {
      globals: {
        process: 'readonly',
        console: 'readonly',
        Buffer: 'readonly',
        URL: 'readonly',
        AbortController: 'readonly',
        AbortSignal: 'readonly',
        performance: 'readonly',
        fetch: 'readonly',
        setTimeout: 'readonly',
      },
    },
  },
  {
    files: ['test/platform/page.js'],
    languageOptions: { globals: { Blob: 'readonly', atob: 'readonly' } },
  },
);
