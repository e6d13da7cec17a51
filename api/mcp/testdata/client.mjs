// A client of the official SDK for TypeScript. It lists the tools of a server,
// saves a memory, and finds it over another connection.
//
//   node client.mjs NODE_MODULES URL TOKEN USER
//
// NODE_MODULES is the directory in which @modelcontextprotocol/sdk is. What it
// prints are lines of JSON, which official_test.go reads.
import { createRequire } from "node:module";
import path from "node:path";

const [modules, url, token, user] = process.argv.slice(2);
const require = createRequire(path.join(path.resolve(modules), "here.js"));
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");

const print = (what, value) => console.log(JSON.stringify({ what, value }));

// connected calls use with a client that is connected with a key, or without.
async function connected(key, use) {
  const headers = { "X-Remora-User": user };
  if (key) headers.Authorization = `Bearer ${key}`;
  const client = new Client({ name: "official-test", version: "1.0.0" });
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
  try {
    return await use(client);
  } finally {
    await client.close();
  }
}

await connected(token, async (client) => {
  print("server", { ...client.getServerVersion(), instructions: client.getInstructions() });
  const { tools } = await client.listTools(); // from here on, answers are checked against the schemas
  print("tools", tools.map((t) => t.name));
  const saved = await client.callTool({ name: "add_memories", arguments: { text: "My favourite mountain is the Säntis." } });
  print("saved", saved);
  const failed = await client.callTool({ name: "get_memory", arguments: { id: "nothing" } });
  print("failed", failed);
});

await connected(token, async (client) => {
  await client.listTools();
  const found = await client.callTool({ name: "search_memory", arguments: { query: "Which mountain is my favourite?" } });
  print("found", found);
  for (const [name, args] of [["context", {}], ["list_memories", { limit: 5 }], ["delete_all_memories", {}], ["search_memory", { query: "mountain" }]]) {
    print(name, await client.callTool({ name, arguments: args }));
  }
});

try {
  await connected("", () => print("refused", "no"));
} catch (e) {
  print("refused", String(e.code ?? e.message));
}
