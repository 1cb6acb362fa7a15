// node lossy.mjs SERVER forwards to a server of firstcome and loses answers: of each four requests to claim, it
// cuts the connection of the first, answers 503 to the second, when to ask again as a date, and cuts the third's answer
// in half, all after the server has decided. It prints its URL.
import http from "node:http";

const target = new URL(process.argv[2]);
let claims = 0;
const proxy = http.createServer((from, to) => {
  const forward = http.request({ hostname: target.hostname, port: target.port, method: from.method, path: from.url, headers: from.headers }, (answer) => {
    const body = [];
    answer.on("data", (part) => body.push(part));
    answer.on("end", () => {
      const turn = from.method === "POST" ? claims++ % 4 : 3;
      const whole = Buffer.concat(body);
      if (turn === 0) return from.socket.destroy();
      if (turn === 1) return to.writeHead(503, { "Retry-After": new Date().toUTCString() }).end("no upstream");
      to.writeHead(answer.statusCode, answer.headers);
      if (turn === 2) return to.write(whole.subarray(0, whole.length / 2), () => from.socket.destroy());
      to.end(whole);
    });
  });
  from.pipe(forward);
});
proxy.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${proxy.address().port}`));
