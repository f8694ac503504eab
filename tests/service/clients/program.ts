// What a program in TypeScript does with a generated client. It must compile with --strict, and then runs against a server.
import { readFileSync } from "node:fs";

import { createExperiment, decide, downloadLog, feedback, lookUp, showState, uploadGraph } from "./client";
import { client } from "./client/client.gen";
import type { DecisionState, Problem } from "./client";

const [address, token, graphFile] = process.argv.slice(2);
client.setConfig({ baseUrl: address, auth: () => token });

// An enum: whoever forgets a status does not compile.
const words: Record<DecisionState["status"], string> = {
  outstanding: "waits",
  told: "is told",
  cancelled: "was cancelled",
  expired: "has expired",
  late: "came too late",
};

function good<T>(reply: { data?: T; error?: unknown }): NonNullable<T> {
  if (reply.data === undefined || reply.data === null) throw new Error(JSON.stringify(reply.error));
  return reply.data;
}

async function main(): Promise<void> {
  // A file, not a text.
  const body: Blob = new Blob([readFileSync(graphFile)]);
  const graph = good(await uploadGraph({ body, query: { format: "npz" } }));
  // What has a default can be left out.
  const made = good(await createExperiment({ body: { name: "typed", graph: { id: graph.id } } }));
  const decision = good(await decide({ path: { name: made.name }, headers: { "Idempotency-Key": "first" } }));
  const again = good(await decide({ path: { name: made.name }, body: {}, headers: { "Idempotency-Key": "first" } }));
  const told = good(await feedback({ path: { id: decision.id }, body: { losses: decision.reveals.map(() => 0.25) } }));
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
