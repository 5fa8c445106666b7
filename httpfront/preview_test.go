package httpfront

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ropeline/ropeline/httpfront/browsertest"
	"github.com/ropeline/ropeline/httpfront/operator/status"
	"github.com/ropeline/ropeline/httpfront/page"
	"github.com/ropeline/ropeline/httpfront/page/lang"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/room"
)

// previews starts an admin listener before a front that knows the rooms, and returns
// where it is.
func previews(t *testing.T, rooms ...room.Settings) string {
	t.Helper()
	f := judges(t, fakeRooms{})
	for _, s := range rooms {
		configure(t, f, s)
	}
	srv := httptest.NewServer(status.New(status.Config{
		Status: func() node.Status { return node.Status{} }, Logger: testLogger(t), Page: f.Page,
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

func TestPreviews(t *testing.T) {
	sale := "<p>Sale: {{operatorMessage}}</p>"
	tickets := newRoom(never).settings
	tickets.Name = "tickets"
	tickets.Front = room.Front{CustomPage: "<p>{{room}} {{queueingMethod}} {{waitTime}} {{operatorMessage}} {{language}}</p>", Message: "Sold <out>", Language: "de-DE"}
	tickets.Events = []room.Event{{Name: "sale", CustomPage: &sale}}
	at, client := previews(t, tickets, newRoom(never).settings), newClient(t)
	for _, tt := range []struct{ method, query, body, want string }{
		{"GET", "room=tickets", "", "<p>tickets fifo 10 Sold &lt;out&gt; de-DE</p>"},
		{"GET", "room=tickets&queueing_method=random&waitTime=3&language=fr-FR", "", "<p>tickets random 3 Sold &lt;out&gt; fr-FR</p>"},
		{"GET", "room=tickets&event=started&event_name=sale", "", "<p>Sale: Sold &lt;out&gt;</p>"},
		{"GET", "room=shop&language=he-IL", "", `<html lang="he-IL" dir="rtl">`},
		{"POST", "room=tickets", "<p>Tried: {{operatorMessage}} {{language}}</p>", "<p>Tried: Sold &lt;out&gt; de-DE</p>"},
		{"GET", "room=tickets&force_queue=true", "", "<p>tickets fifo 0 Sold"}, // the one that was tried is not kept
	} {
		got := send(t, client, tt.method, at+"/preview?"+tt.query, strings.NewReader(tt.body))
		got.is(t, 200, tt.want, "\r\nCache-Control: no-store\r\n", "\r\nContent-Type: text/html; charset=utf-8\r\n",
			"\r\nContent-Security-Policy: "+page.PreviewPolicy+"\r\n")
		lacks(t, tt.query, got.text(), "\r\nSet-Cookie: ", "\r\nRefresh: ", "\r\n"+stateField)
	}
}

func TestPreviewsThatAreRefused(t *testing.T) {
	shop, other := newRoom(never).settings, newRoom(never).settings
	other.Name = "other"
	at, client := previews(t, shop, other), newClient(t)
	for _, tt := range []struct {
		method, query, body string
		code                int
		want                string
	}{
		{"GET", "", "", 404, "which room is missing; there are other, shop"},
		{"GET", "room=shoe", "", 404, `there is no room "shoe"; there are other, shop`},
		{"GET", "room=shop&event_name=sale", "", 404, `room "shop" has no event "sale" with a page of its own`},
		{"GET", "room=shop&colour=red", "", 400, `unknown parameter "colour": allowed are event, event_name, force_queue, language,`},
		{"GET", "room=shop&waitTime=0&event=soon", "", 400, "event=\"soon\": want none, prequeueing, started\nwaitTime=\"0\": want minutes"},
		{"GET", "room=shop;x", "", 400, "the query: "},
		{"POST", "room=shop", "", 400, "the body is empty"},
		{"POST", "room=shop", "<p>\n{{> x}}", 400, "template: line 2: {{> x}}: templates cannot include others"},
		{"POST", "room=shop", strings.Repeat("a", page.TemplateMax+1), 413, "the template has more than 1048576 bytes"},
		{"PUT", "room=shop", "a", 405, ""},
	} {
		got := send(t, client, tt.method, at+"/preview?"+tt.query, strings.NewReader(tt.body)).is(t, tt.code, tt.want)
		if tt.code != 405 {
			equal(t, tt.query, got.Header.Get("Content-Type"), "text/plain; charset=utf-8")
		}
	}
	form := []string{"Content-Type", "multipart/form-data; boundary=x"}
	send(t, client, "POST", at+"/preview?room=shop", strings.NewReader("--x"), form...).is(t, 415, "--data-binary")
}

func TestPreviewsTellOfUnknownNames(t *testing.T) {
	at, client := previews(t, newRoom(never).settings), newClient(t)
	warnings := func(template string) []string {
		return send(t, client, "POST", at+"/preview", strings.NewReader(template)).is(t, 200).Header.Values("Ropeline-Template-Warning")
	}
	got := warnings("{{waitTime}}\n{{positon}} {{a\"☁}}")
	if len(got) != 2 || got[0] != `line 2: "positon" is not known here and shows nothing; did you mean "position"?` {
		t.Errorf("got %q", got)
	}
	var many strings.Builder
	for i := range 50 {
		many.WriteString("{{unknown" + strings.Repeat("x", i) + "}}")
	}
	equal(t, "warnings of many", len(warnings(many.String())), 20)
}

// TestPreviewsInABrowser: the built-in page shows and stays still, and a template's
// script runs but can read nothing of the node's.
func TestPreviewsInABrowser(t *testing.T) {
	b := newTab(t, newBrowser(t))
	own := newRoom(never).settings
	own.Name = "own"
	own.Front.CustomPage = `<!doctype html><h1>asks</h1>
<script>fetch('/status').then(r => r.text()).then(() => 'has read', () => 'has read nothing').then(s => { document.querySelector('h1').innerText = s })</script>`
	at := previews(t, newRoom(never).settings, own)
	b.open(at + "/preview?room=shop&language=ar-EG&event=prequeueing")
	b.Shows("h1", lang.Of("ar-EG").Text(lang.TitleBeforeStart))
	equal(t, "direction", browsertest.See[string](b.Tab, "getComputedStyle(document.querySelector('main')).direction"), "rtl")
	b.open(at + "/preview?room=own")
	b.Awaits("document.querySelector('h1').innerText !== 'asks'")
	equal(t, "the script of a template", b.Text("h1"), "has read nothing")
}
