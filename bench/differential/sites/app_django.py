"""An application with Django, as its settings and middleware are by default, and what it sees of each request."""
import os

import django
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import FileResponse, HttpResponse, HttpResponseRedirect, JsonResponse, StreamingHttpResponse
from django.middleware.gzip import GZipMiddleware
from django.urls import path, re_path
from django.views.static import serve

import seen

GZipMiddleware.max_random_bytes = 0  # newer ones make each answer another length


def saying(get_response):
    def middleware(request):
        seen.say(request.environ, request.body)
        return get_response(request)
    return middleware


def status(request, code):
    answer = HttpResponse("" if code in (204, 304) else "this is %d" % code, status=code)
    if code == 401:
        answer["WWW-Authenticate"] = 'Basic realm="a"'
    if code == 429:
        answer["Retry-After"] = "5"
    return answer


def to(request, code):
    answer = HttpResponseRedirect("/elsewhere?a=b")
    answer.status_code = code
    return answer


def many(request):
    answer = JsonResponse({"many": request.GET.getlist("a")})
    for name in "abc":
        answer.set_cookie(name, "1", httponly=name == "b")
    answer["Vary"] = "Accept, Cookie"
    return answer


def fail(request):
    raise RuntimeError("raised")


def raw(request):
    answer = HttpResponse(bytes([0, 255, 13, 10, 0]), content_type="application/octet-stream")
    answer["X-Empty"] = ""
    return answer


urlpatterns = [
    path("status/<int:code>", status),
    path("to/<int:code>", to),
    path("many", many),
    path("file", lambda request: serve(request, "file.txt", os.getcwd())),
    path("download", lambda request: FileResponse(open("file.txt", "rb"), as_attachment=True)),
    path("large", lambda request: HttpResponse(seen.LARGE)),
    path("parts", lambda request: StreamingHttpResponse(seen.parts())),
    path("events", lambda request: StreamingHttpResponse(["data: a\n\n", "data: b\n\n"], content_type="text/event-stream")),
    path("gzip", lambda request: HttpResponse("squeeze " * 1000)),
    path("bytes", raw),
    path("raise", fail),
    re_path("", lambda request: HttpResponse("hello", content_type="text/plain")),
]
settings.configure(
    ALLOWED_HOSTS=["*"], ROOT_URLCONF=__name__, SECRET_KEY="for tests", USE_TZ=True, LOGGING_CONFIG=None,
    DATA_UPLOAD_MAX_MEMORY_SIZE=None,
    MIDDLEWARE=["app_django.saying", "django.middleware.gzip.GZipMiddleware", "django.middleware.security.SecurityMiddleware",
                "django.middleware.http.ConditionalGetMiddleware", "django.middleware.common.CommonMiddleware"])
django.setup()
application = get_wsgi_application()
