package dashboard

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"mime"
	"path"
	"strings"
	"sync"

	"github.com/valyala/fasthttp"
)

//go:embed static
var static embed.FS

// file is a file of the page. It is packed when somebody first asks for it so.
type file struct {
	contentType string
	etag        string
	plain       []byte
	brotli      func() []byte
	gzip        func() []byte
}

// policy allows the page what it has with it, and requests to where it is from. Nothing
// can write markup into it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'; trusted-types 'none'"

const (
	brotliLevel = 9 // better ones take seconds
	gzipLevel   = 9
	worthwhile  = 512 // bytes; less is not packed
)

// loadFiles returns the files of the page by their path below the page's.
func loadFiles() (map[string]*file, error) {
	files := map[string]*file{}
	err := fs.WalkDir(static, "static", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		b, err := static.ReadFile(name)
		if err != nil {
			return err
		}
		kind := contentType(name)
		if kind == "" {
			return fmt.Errorf("%s: no content type for this kind of file", name)
		}
		sum := sha256.Sum256(b)
		files[strings.TrimPrefix(name, "static/")] = &file{
			contentType: kind,
			etag:        `"` + hex.EncodeToString(sum[:12]) + `"`,
			plain:       b,
			brotli:      sync.OnceValue(func() []byte { return fasthttp.AppendBrotliBytesLevel(nil, b, brotliLevel) }),
			gzip:        sync.OnceValue(func() []byte { return fasthttp.AppendGzipBytesLevel(nil, b, gzipLevel) }),
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("files of the dashboard: %w", err)
	}
	files[""] = files["index.html"]
	return files, nil
}

// contentType does not ask the machine: what it says differs.
func contentType(name string) string {
	switch ext := path.Ext(name); ext {
	case ".js", ".css", ".html":
		return mime.TypeByExtension(ext)
	case ".svg":
		return "image/svg+xml"
	case ".md", "":
		return "text/plain; charset=utf-8"
	}
	return ""
}

// serve answers with the file. The page is asked for again each time, and nothing is
// sent while it is the same, so that a node that was upgraded shows its own.
func (f *file) serve(ctx *fasthttp.RequestCtx) {
	h := &ctx.Response.Header
	h.Set("Cache-Control", "no-cache")
	h.Set("ETag", f.etag)
	h.Set("Vary", "Accept-Encoding")
	h.Set("Content-Security-Policy", policy)
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Embedder-Policy", "require-corp")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	if matches(ctx.Request.Header.Peek("If-None-Match"), f.etag) {
		ctx.SetStatusCode(fasthttp.StatusNotModified)
		return
	}
	ctx.SetContentType(f.contentType)
	switch {
	case len(f.plain) < worthwhile:
		ctx.Response.SetBodyRaw(f.plain)
	case ctx.Request.Header.HasAcceptEncoding("br"):
		h.SetContentEncoding("br")
		ctx.Response.SetBodyRaw(f.brotli())
	case ctx.Request.Header.HasAcceptEncoding("gzip"):
		h.SetContentEncoding("gzip")
		ctx.Response.SetBodyRaw(f.gzip())
	default:
		ctx.Response.SetBodyRaw(f.plain)
	}
}

// matches reports whether an If-None-Match names etag, weakly or not (RFC 9110, section
// 13.1.2).
func matches(header []byte, etag string) bool {
	for tag := range strings.SplitSeq(string(header), ",") {
		tag = strings.TrimPrefix(strings.TrimSpace(tag), "W/")
		if tag == etag || tag == "*" {
			return true
		}
	}
	return false
}
