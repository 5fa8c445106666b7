// An application with Express, and what it sees of each request.
const express = require("express"), fs = require("fs"), http = require("http"), zlib = require("zlib"), crypto = require("crypto");

const said = (req, body) => {
  const fields = [];
  for (let i = 0; i < req.rawHeaders.length; i += 2) fields.push([req.rawHeaders[i], req.rawHeaders[i + 1]]);
  for (let i = 0; i < req.rawTrailers.length; i += 2) fields.push(["trailer " + req.rawTrailers[i], req.rawTrailers[i + 1]]);
  const digest = crypto.createHash("sha256").update(body).digest("hex");
  const json = JSON.stringify({ method: req.method, target: req.url, fields, length: body.length, body: digest });
  fs.writeSync(1, `served\t${json}\t-\t${req.headers["x-id"]}\t-\n`);
};
const app = express(), root = process.argv[3];
app.use((req, res, next) => {
  const parts = [];
  req.on("data", (part) => parts.push(part)).on("end", () => { said(req, Buffer.concat(parts)); next(); });
});
app.all("/status/:code", (req, res) => {
  if (req.params.code === "401") res.set("WWW-Authenticate", 'Basic realm="a"');
  if (req.params.code === "429") res.set("Retry-After", "5");
  res.status(+req.params.code).send([204, 304].includes(+req.params.code) ? "" : "this is " + req.params.code);
});
app.all("/to/:code", (req, res) => res.redirect(+req.params.code, "/elsewhere?a=b"));
app.all("/many", (req, res) => {
  res.append("Set-Cookie", ["a=1; Path=/", "b=2; HttpOnly", "c=3"]).append("X-Many", ["1", "2", "3"]).append("Vary", ["Accept", "Cookie"]);
  res.send("many");
});
app.get("/file", (req, res) => res.sendFile("file.txt", { root }));
app.get("/large", (req, res) => res.send(Buffer.alloc(3 << 20, "0123456789abcdef")));
app.get("/parts", async (req, res) => {
  for (let i = 0; i < 20; i++) res.write(`part ${i}\n`.repeat(100));
  res.end();
});
app.get("/events", (req, res) => res.type("text/event-stream").set("Cache-Control", "no-cache").end("data: a\n\ndata: b\n\n"));
app.get("/gzip", (req, res) => {
  res.vary("Accept-Encoding").type("text");
  if (req.acceptsEncodings("gzip", "identity") === "gzip") res.set("Content-Encoding", "gzip").end(zlib.gzipSync("squeeze ".repeat(1000)));
  else res.end("squeeze ".repeat(1000));
});
app.get("/early", (req, res) => {
  res.writeEarlyHints({ link: "</a.css>; rel=preload" }, () => res.send("early"));
});
app.get("/trailers", (req, res) => {
  res.set("Trailer", "X-Sum").write("with trailers");
  res.addTrailers({ "X-Sum": "1234" });
  res.end();
});
app.get("/close", (req, res) => res.set("Connection", "close").send("bye"));
app.get("/bytes", (req, res) => res.set("X-Bytes", "caf\xe9").set("X-Empty", "").type("bin").send(Buffer.from([0, 255, 13, 10, 0])));
app.get("/raise", () => { throw new Error("raised"); });
app.use((req, res) => res.type("text").send("hello"));
app.use((err, req, res, next) => res.status(500).send("failed"));

http.createServer(app).on("upgrade", (req, socket) => {
  if (req.headers.upgrade.toLowerCase() !== "websocket") return socket.end("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
  said(req, Buffer.alloc(0));
  const accept = crypto.createHash("sha1").update(req.headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest("base64");
  socket.write(`HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`);
  socket.pipe(socket);
}).listen(process.argv[2], "127.0.0.1");
