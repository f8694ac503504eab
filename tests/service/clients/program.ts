// What a program in TypeScript does with a generated client. It must compile with --strict, and then runs against a server.
import { readFileSync } from "node:fs";

import { createExperiment, decide, downloadLog, feedback, lookUp, showState, tellMany, uploadGraph } from "./client";
import { client } from "./client/client.gen";
import type { DecisionBatch, DecisionReply, DecisionState, Problem } from "./client";

const [address, token, graphFile] = process.argv.slice(2);
client.setConfig({ baseUrl: address, auth: () => token });

// An enum: whoever forgets a status does not compile.
const words: Record<DecisionState["status"], string> = {
  outstanding: "waits",
  told: "is told",
  cancelled: "was cancelled",
  expired: "has expired",
  late: "came too late",
  defaulted: "got the default loss",
};

function good<T>(reply: { data?: T; error?: unknown }): NonNullable<T> {
  if (reply.data === undefined || reply.data === null) throw new Error(JSON.stringify(reply.error));
  return reply.data;
}

// One decision, or several if a count was given.
function one(reply: DecisionReply | DecisionBatch): DecisionReply {
  if ("ids" in reply) throw new Error("several");
  return reply;
}

function several(reply: DecisionReply | DecisionBatch): DecisionBatch {
  if (!("ids" in reply)) throw new Error("one");
  return reply;
}

async function main(): Promise<void> {
  // A file, not a text.
  const body: Blob = new Blob([readFileSync(graphFile)]);
  const graph = good(await uploadGraph({ body, query: { format: "npz" } }));
  // What has a default can be left out.
  const made = good(await createExperiment({ body: { name: "typed", graph: { id: graph.id } } }));
  const path = { name: made.name };
  const decision = one(good(await decide({ path, headers: { "Idempotency-Key": "first" } })));
  const again = one(good(await decide({ path, body: {}, headers: { "Idempotency-Key": "first" } })));
  const told = good(await feedback({ path: { id: decision.id }, body: { losses: decision.reveals.map(() => 0.25) } }));
  const { ids, arms, reveals } = several(good(await decide({ path, body: { count: 3 } })));
  const sizes = arms.map((arm) => (reveals[arm] ?? []).length);
  const losses = sizes.flatMap((size) => Array<number>(size).fill(0.5));
  const batch = good(await tellMany({ body: { ids, sizes, losses } }));
  const seen = good(await lookUp({ path: { id: decision.id } }));
  const state = good(await showState({ path: { name: made.name }, query: { sort: "plays", limit: 2 } }));
  const log = good(await downloadLog({ path: { name: made.name }, parseAs: "blob" }));
  const refused = await decide({ path: { name: "nothing" } });
  const problem: Problem | undefined = refused.error;
  const code: "not_found" | undefined = problem?.code === "not_found" ? problem.code : undefined;
  console.log(
    JSON.stringify({
      same: again.duplicate && again.id === decision.id,
      learned: told.learned,
      batch: batch.learned,
      word: words[seen.status],
      lasts: Date.parse(decision.expires_at ?? "") - Date.parse(seen.decided_at),
      learner: state.learner,
      arms: state.arms.items.length,
      log: (log as Blob).size,
      code,
    }),
  );
}

main();
