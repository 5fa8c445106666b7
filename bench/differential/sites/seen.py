"""What an application behind gunicorn sees of a request."""
import hashlib
import json
import os


def say(environ, body):
    fields = [[k, v] for k, v in sorted(environ.items()) if k.startswith("HTTP_") or k in ("CONTENT_TYPE", "CONTENT_LENGTH")]
    seen = {"method": environ["REQUEST_METHOD"], "target": environ["RAW_URI"], "fields": fields,
            "length": len(body), "body": hashlib.sha256(body).hexdigest()}
    os.write(1, f"served\t{json.dumps(seen)}\t-\t{environ.get('HTTP_X_ID')}\t-\n".encode())


TEXTS = {"/status/%d" % code: "this is %d" % code for code in range(200, 600)}
LARGE = b"0123456789abcdef" * (3 << 16)


def parts():
    for i in range(20):
        yield ("part %d\n" % i) * 100
