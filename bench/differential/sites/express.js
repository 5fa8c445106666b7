// What Express' router takes for a path, as it is set by default.
const app = require("express")(), fs = require("fs");

const serve = (page) => (req, res) => {
  const host = (req.hostname || "").toLowerCase().replace(/\.$/, "");
  const body = [];
  req.on("data", (part) => body.push(part)).on("end", () => {
    const shown = host === "a.example" ? page : "open";
    fs.writeSync(1, `served\t${shown}\t${host}\t${req.headers["x-id"]}\t${Buffer.concat(body).toString("hex")}\n`);
    res.end();
  });
};
app.use("/tickets", serve("tickets"));
app.use(serve("open"));
app.listen(process.argv[2], "127.0.0.1");
