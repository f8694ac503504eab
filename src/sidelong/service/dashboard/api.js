// Talking to the service: requests with the token, and the stream of events.

const KEY = "sidelong.token";

export const token = {
  get: () => sessionStorage.getItem(KEY),
  set: (value) => sessionStorage.setItem(KEY, value),
  forget: () => sessionStorage.removeItem(KEY),
};

/** What the service said instead of what was asked for; status 0 if it said nothing. */
export class Refusal extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

function headers(more) {
  const held = token.get();
  return held ? { ...more, Authorization: `Bearer ${held}` } : more;
}

async function refusal(reply) {
  let problem = {};
  try {
    problem = await reply.json();
  } catch {
    // A reply that is not ours has no problem in JSON; its status says enough.
  }
  return new Refusal(reply.status, problem.code ?? "unknown", problem.detail ?? `${reply.status} ${reply.statusText}`);
}

async function send(path, options) {
  try {
    return await fetch(path, { cache: "no-store", credentials: "omit", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refusal(0, "unreachable", "The service does not answer.");
  }
}

export async function get(path, signal) {
  const reply = await send(path, { headers: headers({ Accept: "application/json" }), signal });
  if (!reply.ok) throw await refusal(reply);
  return reply.json();
}

async function write(method, path, content) {
  const reply = await send(path, {
    method,
    headers: headers(content === undefined ? {} : { "Content-Type": "application/json" }),
    body: JSON.stringify(content),
  });
  if (!reply.ok) throw await refusal(reply);
  return reply.json();
}

export const post = (path, content) => write("POST", path, content);
export const change = (path, content) => write("PATCH", path, content);
export const remove = (path) => write("DELETE", path);

/**
 * Follow a stream of Server-Sent Events from after one on, until the returned function is called; after a break, go on
 * where it stopped.
 * EventSource would do the same, but cannot send a token.
 */
export function follow(path, after, onEvent, onState) {
  const stop = new AbortController();
  let last = String(after);
  let pause = 500;

  async function once() {
    const wanted = headers({ Accept: "text/event-stream", "Last-Event-ID": last });
    const reply = await send(path, { headers: wanted, signal: stop.signal });
    if (!reply.ok) throw await refusal(reply);
    onState("live");
    pause = 500;
    const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const blocks = (rest + value).split(/\r?\n\r?\n/);
      rest = blocks.pop();
      for (const block of blocks) {
        const lines = block.split(/\r?\n/).map((line) => line.match(/^(\w+): ?(.*)$/)).filter(Boolean);
        const data = lines.filter(([, name]) => name === "data").map(([, , text]) => text).join("\n");
        last = lines.find(([, name]) => name === "id")?.[2] ?? last;
        if (data) onEvent(JSON.parse(data));
      }
    }
  }

  (async () => {
    while (!stop.signal.aborted) {
      try {
        await once();
      } catch (error) {
        if (stop.signal.aborted) return;
        if ([401, 403, 404].includes(error.status)) return onState("lost", error);
      }
      if (stop.signal.aborted) return;
      onState("lost");
      await new Promise((resolve) => setTimeout(resolve, pause));
      pause = Math.min(2 * pause, 8000);
    }
  })();
  return () => stop.abort();
}
