/** A call to the service as curl, Python and JavaScript, each ready to run. */

const quoteShell = (text) => `'${text.replaceAll("'", `'\\''`)}'`;

/** @param {{path: string, body?: object, form?: Record<string, string>}} call `form` has the file's name under `file`. */
export function snippets(call, origin) {
  return call.form ? formSnippets(call, origin) : jsonSnippets(call, origin);
}

function jsonSnippets({ path, body }, origin) {
  const url = origin + path;
  const json = JSON.stringify(body);
  return {
    curl: `curl ${url} \\\n  -H 'Content-Type: application/json' \\\n  -d ${quoteShell(json)}`,
    Python: `import requests\n\nresponse = requests.post("${url}", json=${python(body)})\nresponse.raise_for_status()\nprint(response.json())`,
    JavaScript: `const response = await fetch("${url}", {\n  method: "POST",\n  headers: { "Content-Type": "application/json" },\n  body: JSON.stringify(${JSON.stringify(body, null, 2).replaceAll("\n", "\n  ")}),\n});\nconsole.log(await response.json());`,
  };
}

function formSnippets({ path, form }, origin) {
  const url = origin + path;
  const { file, ...fields } = form;
  const entries = Object.entries(fields);
  const curlFields = entries.map(([name, value]) => ` -F ${name}=${value}`).join("");
  const appended = entries.map(([name, value]) => `form.append("${name}", "${value}");\n`).join("");
  return {
    curl: `curl ${url} -F ${quoteShell(`file=@${file}`)}${curlFields}\ncurl ${url}/ID\ncurl ${url}/ID/result -o ${quoteShell(`translated-${file}`)}`,
    Python: `import requests\n\nwith open(${JSON.stringify(file)}, "rb") as file:\n    job = requests.post("${url}", files={"file": file}, data=${python(fields)}).json()\nprint(requests.get("${url}/" + job["id"]).json())\n# once its status is "done":\nresult = requests.get("${url}/" + job["id"] + "/result").content`,
    JavaScript: `const form = new FormData();\nform.append("file", file);\n${appended}const job = await (await fetch("${url}", { method: "POST", body: form })).json();\nconsole.log(await (await fetch(\`${url}/\${job.id}\`)).json());`,
  };
}

/** JSON is Python too, as long as it holds texts, numbers, lists and objects only. */
const python = (body) => JSON.stringify(body, null, 4);
