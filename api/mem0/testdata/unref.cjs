// Loaded before the mem0 command by TestCLI. The command waits for a key that it
// validates, 5 s at most, and leaves the timer behind: each call would take as
// long. The command itself is not changed.
const { setTimeout: set } = globalThis;
globalThis.setTimeout = Object.assign((run, delay, ...args) => {
  const timer = set(run, delay, ...args);
  return delay === 5000 ? timer.unref() : timer;
}, set);
