// What Node's own reader of addresses, which is that of browsers, takes for a path.
const http = require("http"), fs = require("fs");

http.createServer((req, res) => {
  const body = [];
  req.on("data", (part) => body.push(part)).on("end", () => {
    let page = "refused", host = "";
    try {
      const u = new URL(req.url, "http://" + req.headers.host);
      const path = decodeURIComponent(u.pathname);
      host = u.hostname.replace(/\.$/, "");
      page = host === "a.example" && (path === "/tickets" || path.startsWith("/tickets/")) ? "tickets" : "open";
    } catch {}
    fs.writeSync(1, `served\t${page}\t${host}\t${req.headers["x-id"]}\t${Buffer.concat(body).toString("hex")}\n`);
    res.end();
  });
}).listen(process.argv[2], "127.0.0.1");
