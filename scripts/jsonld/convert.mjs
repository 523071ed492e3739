// Converts JSON-LD documents, one a line of standard input, to N-Quads: a line of JSON for each.
import { createInterface } from "node:readline";
import { createRequire } from "node:module";

const jsonld = createRequire(`${process.argv[2]}/`)("jsonld");
const options = {
    base: "http://base/doc/x",
    format: "application/n-quads",
    documentLoader: async (url) => {
        throw new Error(`not loaded: ${url}`);
    },
};
for await (const line of createInterface({ input: process.stdin })) {
    let answer;
    try {
        answer = { quads: await jsonld.toRDF(JSON.parse(line), options) };
    } catch (error) {
        const code = error.details?.code ?? error.message;
        answer = { error: String(code) };
    }
    console.log(JSON.stringify(answer));
}
