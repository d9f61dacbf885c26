// Where the numbers of a run come from: here, the server. An exported page has a source of its own.

const MOST_IMAGES = 512; // that the server decodes for one request

export async function ask(path, body) {
  const sent = body && {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  };
  let answer;
  try {
    answer = await fetch(path, sent);
  } catch {
    throw new Error(
      "The server does not answer. Start “unweave explore” again and open the address that it prints.",
    );
  }
  if (!answer.ok) {
    const { error } = await answer.json().catch(() => ({ error: `the server answered ${answer.status}.` }));
    throw new Error(error);
  }
  return answer;
}

export const askJson = async (path, body) => (await ask(path, body)).json();

async function askImages(path, body) {
  const answer = await ask(path, body);
  const [n, channels, height, width] = answer.headers.get("X-Shape").split(",").map(Number);
  return { n, channels, height, width, bytes: new Uint8Array(await answer.arrayBuffer()) };
}

// Images of many codes, asked for in parts that the server accepts.
async function askManyImages(path, codes) {
  if (codes.length <= MOST_IMAGES) return askImages(path, { codes });
  const parts = [];
  for (let i = 0; i < codes.length; i += MOST_IMAGES)
    parts.push(await askImages(path, { codes: codes.slice(i, i + MOST_IMAGES) }));
  const bytes = new Uint8Array(await new Blob(parts.map((part) => part.bytes)).arrayBuffer());
  return { ...parts[0], n: codes.length, bytes };
}

export function serverSource(id) {
  const at = `/api/run/${id}`;
  return {
    describe: () => askJson(at),
    decode: (codes) => askManyImages(`${at}/decode`, codes),
    observe: (factors) => askImages(`${at}/observe`, { factors }),
    encode: async (factors) => (await askJson(`${at}/encode`, { factors })).mean,
    swap: (sheet) => askImages(`${at}/swap`, { sheet }),
    intervene: (factors, factor) => askJson(`${at}/intervene`, { factors, factor }),
  };
}
