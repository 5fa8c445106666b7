"""What Flask's router takes for a path, behind gunicorn."""
import os

from flask import Flask, request

app = Flask(__name__)
METHODS = ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"]


def serve(page):
    host = request.host.split(":")[0].lower().rstrip(".")
    shown = page if host == "a.example" else "open"
    body = request.get_data().hex()
    os.write(1, f"served\t{shown}\t{host}\t{request.headers.get('X-Id')}\t{body}\n".encode(errors="replace"))
    return ""


@app.route("/tickets", methods=METHODS)
@app.route("/tickets/", methods=METHODS)
@app.route("/tickets/<path:rest>", methods=METHODS)
def tickets(rest=""):
    return serve("tickets")


@app.route("/", methods=METHODS)
@app.route("/<path:rest>", methods=METHODS)
def rest(rest=""):
    return serve("open")
