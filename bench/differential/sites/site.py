"""What Python's http.server takes for a file."""
import os
import sys
import urllib.parse
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer


class Site(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __getattr__(self, name):
        if name.startswith("do_"):
            return self.serve
        raise AttributeError(name)

    def serve(self):
        body = "-"
        if "Transfer-Encoding" in self.headers:
            self.close_connection = True  # it reads no chunks
        else:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0))).hex()
        try:
            host = (urllib.parse.urlsplit("//" + self.headers.get("Host", "")).hostname or "").rstrip(".")
        except ValueError:
            host = ""
        path = os.path.relpath(self.translate_path(self.path), self.directory)
        page = "tickets" if host == "a.example" and path.split("/")[0] == "tickets" else "open"
        os.write(1, f"served\t{page}\t{host}\t{self.headers.get('X-Id')}\t{body}\n".encode(errors="replace"))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_HEAD = serve

    def log_message(self, *_):
        pass


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Site).serve_forever()
