// Where the numbers of a run come from: here, the server. An exported page has a source of its own.

const MOST_IMAGES = 512; // that the server decodes for one request

const sentAs = (type, body) => ({ method: "POST", headers: { "Content-Type": type }, body });

export const ask = (path, body) => answerOf(path, body && sentAs("application/json", JSON.stringify(body)));

export const sendBlob = (path, blob) => answerOf(path, sentAs("application/octet-stream", blob));

async function answerOf(path, sent) {
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

// A run with the true images that its page can start from, each with its code, where it has some.
async function withExamples(run, askExamples) {
  if (!run.example_codes) return run;
  const { bytes, ...shape } = await askExamples();
  const size = shape.channels * shape.height * shape.width;
  const examples = run.example_codes.map((code, i) => ({
    code,
    images: { ...shape, n: 1, bytes: bytes.subarray(i * size, (i + 1) * size) },
  }));
  return { ...run, examples };
}

export function serverSource(id) {
  const at = `/api/run/${id}`;
  return {
    describe: async () => withExamples(await askJson(at), () => askImages(`${at}/examples`)),
    decode: (codes) => askManyImages(`${at}/decode`, codes),
    observe: (factors) => askImages(`${at}/observe`, { factors }),
    encode: async (factors) => (await askJson(`${at}/encode`, { factors })).mean,
    swap: (sheet, levels) => askImages(`${at}/swap`, { sheet, levels }),
    intervene: (factors, factor) => askJson(`${at}/intervene`, { factors, factor }),
  };
}
