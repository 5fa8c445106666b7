package status

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ropeline/ropeline/httpfront/page"
)

// PreviewsPath is where templates that are kept for a while are shown, each below it.
const PreviewsPath = "/previews/"

const (
	previewsMax  = 32
	previewsKept = time.Hour
)

// Previews keeps templates for a while, so that they can be looked at in a browser: at most
// 32 of them, each for an hour. Their addresses cannot be guessed, so whoever has one may
// look. The zero value is ready, and safe for use by several goroutines.
type Previews struct {
	Logger *slog.Logger // default slog.Default()

	mu   sync.Mutex // guards the following
	kept []kept     // oldest first
}

type kept struct {
	id    string
	page  *page.Page
	until time.Time
}

// Keep compiles a template and returns the path under which it is shown.
func (p *Previews) Keep(html string, now time.Time) (path string, err error) {
	t, _, err := page.Compile(html)
	if err != nil {
		return "", err
	}
	made, err := page.New(page.Config{Template: t, Logger: p.Logger})
	if err != nil {
		return "", err
	}
	var id [16]byte
	rand.Read(id[:])
	k := kept{hex.EncodeToString(id[:]), made, now.Add(previewsKept)}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kept = slices.DeleteFunc(p.kept, func(k kept) bool { return !now.Before(k.until) })
	p.kept = append(p.kept[max(0, len(p.kept)+1-previewsMax):], k)
	return PreviewsPath + k.id, nil
}

func (p *Previews) find(id string, now time.Time) *page.Page {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, k := range p.kept {
		if k.id == id && now.Before(k.until) {
			return k.page
		}
	}
	return nil
}

var errNoPreview = errors.New("there is no such preview here: they are kept for an hour, by the node that was asked for them")

// ServeHTTP shows a template in the situation that the query says.
func (p *Previews) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	now := time.Now()
	found := p.find(strings.TrimPrefix(r.URL.Path, PreviewsPath), now)
	if found == nil {
		writeText(w, http.StatusNotFound, errNoPreview.Error())
		return
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		writeText(w, http.StatusBadRequest, fmt.Sprintf("the query: %v", err))
		return
	}
	html, err := found.Preview(nil, query, now)
	if err != nil {
		writeText(w, http.StatusBadRequest, err.Error())
		return
	}
	showPreview(w, html)
}

func showPreview(w http.ResponseWriter, html []byte) {
	writeHeader(w, "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", page.PreviewPolicy)
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.Write(html)
}
