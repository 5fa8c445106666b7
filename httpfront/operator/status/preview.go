package status

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/ropeline/ropeline/httpfront/page"
)

// maxPreviewWarnings is how many warnings about a template are told.
const maxPreviewWarnings = 20

// preview answers with the waiting page of a room in the situation that the query
// says. What is posted is a template that is tried instead of the room's own; it is
// not kept. Nobody gets a pass here.
func (a *handler) preview(w http.ResponseWriter, r *http.Request) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		writeText(w, http.StatusBadRequest, "the query: "+err.Error())
		return
	}
	p, err := a.cfg.Page(query.Get("room"), query.Get("event_name"))
	if err != nil {
		writeText(w, http.StatusNotFound, err.Error())
		return
	}
	var tried *page.Template
	var warnings []page.Warning
	if r.Method == http.MethodPost {
		var code int
		if tried, warnings, code, err = templateOf(w, r); err != nil {
			writeText(w, code, err.Error())
			return
		}
	}
	html, err := p.Preview(tried, query, time.Now())
	if err != nil {
		writeText(w, http.StatusBadRequest, err.Error())
		return
	}
	for _, warning := range warnings[:min(len(warnings), maxPreviewWarnings)] {
		w.Header().Add("Ropeline-Template-Warning", warning.String())
	}
	showPreview(w, html)
}

// templateOf reads the template that r brings. An error comes with its status code.
func templateOf(w http.ResponseWriter, r *http.Request) (t *page.Template, warnings []page.Warning, code int, err error) {
	if strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/") {
		return nil, nil, http.StatusUnsupportedMediaType, errors.New("the body is a form; want the template itself, as of curl --data-binary @wait.html")
	}
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, page.TemplateMax))
	switch _, tooLong := errors.AsType[*http.MaxBytesError](err); {
	case tooLong:
		return nil, nil, http.StatusRequestEntityTooLarge, fmt.Errorf("the template has more than %d bytes", page.TemplateMax)
	case err != nil:
		return nil, nil, http.StatusBadRequest, fmt.Errorf("the body did not come: %w", err)
	case len(text) == 0:
		return nil, nil, http.StatusBadRequest, errors.New("the body is empty; want a template")
	}
	if t, warnings, err = page.Compile(string(text)); err != nil {
		return nil, nil, http.StatusBadRequest, err
	}
	return t, warnings, 0, nil
}
