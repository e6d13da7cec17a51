// Drives the unmodified client of mem0's hosted API, npm package mem0ai,
// against a server. It is run by TestNPMClient, which sets
//
//	REMORA_NODE_MODULES  the directory that has node_modules
//	REMORA_HOST          base URL of the server
//	REMORA_KEY           a key of it
//	MEM0_TELEMETRY       false: the client must talk to this server alone
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { join } from "node:path";

const require = createRequire(join(process.env.REMORA_NODE_MODULES, "client.js"));
const { MemoryClient } = require("mem0ai");

const host = process.env.REMORA_HOST;
const client = new MemoryClient({ apiKey: process.env.REMORA_KEY, host });
const filters = { user_id: "node user" };
const checked = [];
const check = async (name, run) => {
  try {
    await run();
  } catch (error) {
    error.message = `${name}: ${error.message}`;
    throw error;
  }
  checked.push(name);
};

// The client has no call for events.
async function settled(id) {
  for (let i = 0; i < 600; i++) {
    const r = await fetch(`${host}/v1/event/${id}/`, { headers: client.headers });
    const event = await r.json();
    if (event.status !== "PENDING") return event;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error("the event is still pending");
}

let id;
await check("ping", () => client.ping());
await check("add", async () => {
  const answer = await client.add(
    [
      { role: "user", content: "I'm a vegetarian and allergic to nuts." },
      { role: "assistant", content: "Got it! I'll remember your dietary preferences." },
      { role: "user", content: "My sister's boat is called Marbella." },
      { role: "assistant", content: "What a name." },
    ],
    { userId: "node user", metadata: { sourceApp: "chat", page_no: 3 }, timestamp: 1760000000 },
  );
  assert.equal(answer.status, "PENDING");
  const event = await settled(answer.eventId);
  assert.equal(event.status, "SUCCEEDED");
  assert.ok(event.results.length >= 2, JSON.stringify(event));
});
await check("getAll", async () => {
  const page = await client.getAll({ filters, page: 1, pageSize: 10 });
  assert.ok(page.count >= 2 && page.results.length === page.count && page.next === null);
  const boat = page.results.find((m) => m.memory === "My sister's boat is called Marbella.");
  assert.deepEqual(boat.metadata, { sourceApp: "chat", page_no: 3 });
  assert.equal(boat.userId, "node user");
  assert.ok(boat.createdAt.startsWith("2025-10-09"));
  id = boat.id;
});
await check("search", async () => {
  const { results } = await client.search("What is the boat called?", { filters, topK: 3, threshold: 0.1 });
  assert.equal(results[0].id, id);
  assert.ok(results[0].score > 0.1 && results[0].score <= 1);
});
await check("get", async () => assert.equal((await client.get(id)).memory, "My sister's boat is called Marbella."));
await check("update", async () => {
  const m = await client.update(id, { text: "My sister's boat is called Nautilus.", metadata: { seen: true } });
  assert.equal(m.memory, "My sister's boat is called Nautilus.");
  assert.deepEqual((await client.get(id)).metadata, { seen: true });
});
await check("history", async () => {
  const steps = await client.history(id);
  assert.deepEqual(steps.map((s) => s.event), ["ADD", "UPDATE"]);
  assert.equal(steps[1].oldMemory, "My sister's boat is called Marbella.");
});
await check("feedback", async () => {
  for (const feedback of ["POSITIVE", "NEGATIVE", "VERY_NEGATIVE"]) {
    assert.equal((await client.feedback({ memoryId: id, feedback, feedbackReason: "a test" })).feedback, feedback);
  }
});
await check("batchUpdate", async () => {
  await client.batchUpdate([{ memoryId: id, text: "My sister's boat is called Argo." }]);
  assert.equal((await client.get(id)).memory, "My sister's boat is called Argo.");
});
await check("add without inference", async () => {
  const answer = await client.add([{ role: "user", content: "The shed has a blue door." }], { userId: "node user", agentId: "a1", runId: "r1", infer: false });
  assert.equal(answer.results[0].data.memory, "The shed has a blue door.");
  const { results } = await client.search("shed", { filters: { AND: [{ user_id: "node user" }, { agent_id: "a1" }, { run_id: "r1" }] } });
  assert.equal(results[0].agentId, "a1");
  assert.equal(results[0].runId, "r1");
});
await check("users", async () => {
  const { results } = await client.users();
  assert.ok(results.some((e) => e.type === "user" && e.name === "node user"));
  assert.ok(results.some((e) => e.type === "agent" && e.name === "a1"));
});
await check("exports", async () => {
  const { id: exportId } = await client.createMemoryExport({ schema: { type: "object" }, filters });
  const { results } = await client.getMemoryExport({ memoryExportId: exportId });
  assert.ok(results.some((m) => m.memory === "My sister's boat is called Argo."));
  assert.ok((await client.getMemoryExport({ filters })).results.length > 0);
});
await check("delete", async () => {
  assert.ok((await client.delete(id, { deleteLinked: true })).message);
  await assert.rejects(client.get(id), { name: "MemoryNotFoundError", errorCode: "HTTP_404" });
});
await check("batchDelete", async () => {
  const { results } = await client.getAll({ filters: { ...filters, agent_id: "a1" } });
  await client.batchDelete(results.map((m) => m.id));
  assert.equal((await client.getAll({ filters: { ...filters, agent_id: "a1" } })).count, 0);
});
await check("errors", async () => {
  await assert.rejects(client.getAll({ filters: { NOT: [filters] } }), (error) => {
    assert.equal(error.name, "ValidationError");
    assert.match(error.message, /filters\.NOT: is not supported/);
    return true;
  });
  await assert.rejects(client.update(id, { expirationDate: "2030-01-01" }), /expiration_date/);
  const stranger = new MemoryClient({ apiKey: "m0-nobody-at-all-77", host });
  await assert.rejects(stranger.getAll({ filters }), { name: "AuthenticationError" });
});
await check("what has no meaning here", async () => {
  const missing = { errorCode: "HTTP_501" };
  await assert.rejects(client.getProject({ fields: ["customInstructions"] }), /organizationId/); // asks nobody: ping names none
  await assert.rejects(client.updateProject({ customInstructions: "x" }), /organizationId/);
  await assert.rejects(client.getWebhooks({ projectId: "p" }), missing);
  await assert.rejects(client.createWebhook({ name: "n", url: "https://example.com", eventTypes: [] }), /projectId/);
  await assert.rejects(client.updateWebhook({ webhookId: "w", name: "n" }), missing);
  await assert.rejects(client.deleteWebhook({ webhookId: "w" }), missing);
  await assert.rejects(client.getProfile({ entityId: "node user" }), missing);
  await assert.rejects(client.generateProfile({ entityId: "node user" }), missing);
  await assert.rejects(client.getProfileSettings(), missing);
  await assert.rejects(client.updateProfileSettings({ enabled: true }), missing);
  await assert.rejects(client.sampleProfiles({ limit: 1 }), missing);
  await assert.rejects(client.getProfileJob("j"), missing);
});
await check("deleteAll", async () => {
  assert.ok((await client.deleteAll({ userId: "node user" })).message);
  assert.equal((await client.getAll({ filters })).count, 0);
});
await check("deleteUsers", async () => {
  assert.ok((await client.deleteUsers({ userId: "node user" })).message);
  await assert.rejects(client.deleteUsers({ userId: "node user" }), /404|no such thing/);
});
console.log(checked.join("\n"));
