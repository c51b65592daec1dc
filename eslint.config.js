import js from '@eslint/js';
import tseslint from 'typescript-eslint';

const noNodeFs = {
  paths: ['fs', 'fs/promises', 'node:fs', 'node:fs/promises'].map((name) => ({
    name,
    message: 'only src/fs touches the file system',
  })),
};

/** What `northroot/verify` may load runs without Node: what differs between hosts is `#platform`. */
const core = [
  ...['json', 'value', 'schema', 'finding', 'event', 'bytes', 'key', 'signature', 'tree', 'note', 'trust'],
  ...['ledger', 'bounds', 'verify', 'report', 'proof', 'text', 'activity', 'table', 'page/model', 'page/app'],
  ...['cbor', 'cose', 'bundle'],
].map((folder) => `src/${folder}/**/*.ts`);
const nodesOwn = [
  // Private keys, and the two that name Node's crypto by its name.
  ...[
    'src/key/private-key.ts',
    'src/key/pkcs8.ts',
    'src/signature/signer.ts',
    'src/signature/node-backend.ts',
  ],
  'src/verify/saved-state.ts',
];

export default tseslint.config(
  {
    ignores: [
      'dist/',
      'coverage/',
      'src/schema/generated/',
      'src/key/generated/',
      'src/ledger/generated/',
      'assembly/*.ts',
    ],
  },
  js.configs.recommended,
  {
    files: ['**/*.ts'],
    extends: [...tseslint.configs.recommendedTypeChecked],
    languageOptions: {
      parserOptions: { project: ['./tsconfig.json', './test/tsconfig.json', './src/page/app/tsconfig.json'] },
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
    files: ['src/**/*.ts'],
    ignores: ['src/fs/**', 'src/cli/**'],
    rules: {
      'no-restricted-imports': ['error', { ...noNodeFs, patterns: ['commander'] }],
      'no-console': 'error',
    },
  },
  {
    files: [
      ...core,
      'src/verify.ts',
      'src/export/selection.ts',
      'src/error.ts',
      'src/version.ts',
      'src/platform/{platform,spki,web,noble-*}.ts',
    ],
    ignores: nodesOwn,
    rules: {
      'no-restricted-imports': [
        'error',
        {
          ...noNodeFs,
          patterns: [
            { group: ['node:*', 'commander'], message: 'the core runs without Node: see src/platform' },
            { group: ['**/platform/{node,buffer,web}.js'], message: 'import #platform' },
          ],
        },
      ],
      'no-restricted-globals': [
        'error',
        ...['Buffer', 'process', 'global', 'setImmediate'].map((name) => ({
          name,
          message: 'the core runs without Node: see src/platform',
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
        performance: 'readonly',
      },
    },
  },
  {
    files: ['test/platform/page.js'],
    languageOptions: { globals: { Blob: 'readonly', atob: 'readonly' } },
  },
);
