/** Has another command run than the model asked for. */

export default {
  id: 'rewriter',
  name: 'rewriter',
  description: 'Rewrites commands.',
  register(api) {
    const { from, to } = JSON.parse(process.env.REWRITE);
    api.on(
      'before_tool_call',
      ({ params }) => (params.command === from ? { params: { command: to } } : undefined),
      { priority: 10 },
    );
  },
};
