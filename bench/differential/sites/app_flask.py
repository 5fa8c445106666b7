"""An application with Flask, and what it sees of each request."""
import gzip
import os

from flask import Flask, Response, make_response, redirect, request, send_file

import seen

app = Flask(__name__)
METHODS = ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "PROPFIND", "PURGE"]


@app.before_request
def say():
    seen.say(request.environ, request.get_data())


@app.route("/status/<int:code>", methods=METHODS)
def status(code):
    answer = make_response("" if code in (204, 304) else "this is %d" % code, code)
    if code == 401:
        answer.headers["WWW-Authenticate"] = 'Basic realm="a"'
    if code == 429:
        answer.headers["Retry-After"] = "5"
    return answer


@app.route("/to/<int:code>", methods=METHODS)
def to(code):
    return redirect("/elsewhere?a=b", code)


@app.route("/many")
def many():
    answer = make_response("many")
    for value in ("a=1; Path=/", "b=2; HttpOnly", "c=3"):
        answer.headers.add("Set-Cookie", value)
    for value in "123":
        answer.headers.add("X-Many", value)
    return answer


@app.route("/file")
def file():
    return send_file(os.path.abspath("file.txt"), conditional=True, etag=True)


@app.route("/large")
def large():
    return Response(seen.LARGE)


@app.route("/parts")
def parts():
    return Response(seen.parts())


@app.route("/events")
def events():
    return Response(["data: a\n\n", "data: b\n\n"], mimetype="text/event-stream")


@app.route("/gzip")
def squeezed():
    answer = make_response(b"squeeze " * 1000)
    answer.vary.add("Accept-Encoding")
    if "gzip" in request.accept_encodings:
        answer.data = gzip.compress(answer.data, mtime=0)
        answer.headers["Content-Encoding"] = "gzip"
    return answer


@app.route("/bytes")
def raw():
    return Response(bytes([0, 255, 13, 10, 0]), headers={"X-Bytes": "caf\xe9", "X-Empty": ""})


@app.route("/raise")
def fail():
    raise RuntimeError("raised")


@app.route("/", methods=METHODS)
@app.route("/<path:rest>", methods=METHODS)
def rest(rest=""):
    return Response("hello", mimetype="text/plain")
