package main

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestANodeThatIsBeingStoppedSaysSoFirst: balancers see it while visitors are served, and
// a second signal ends it at once.
func TestANodeThatIsBeingStoppedSaysSoFirst(t *testing.T) {
	t.Parallel()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "the site") }))
	defer site.Close()
	const host = "tickets.example"
	ca := newAuthority(t)
	cert, key := ca.issueFor(host, 1001)
	client := clientOf(t, pool(t, filepath.Join(ca.dir, "ca.pem")), host)
	verdicts, redirect := freeAddress(t), freeAddress(t)
	p := startNode(t, "a", "one", "--origin", site.URL, "--data-dir", t.TempDir(), "--drain-delay", "1h",
		"--verdict-listen", verdicts, "--trusted-proxies", "127.0.0.1", "--tls-cert-file", cert, "--tls-key-file", key, "--redirect-listen", redirect)
	p.await("is ready", 20*time.Second, ready)
	if code, text := getText(t, "http://"+verdicts+"/readyz"); code != 200 {
		t.Fatalf("before: %d %q", code, text)
	}
	p.Signal(syscall.SIGTERM)
	for _, url := range []string{"http://" + p.admin + "/readyz", "http://" + verdicts + "/readyz"} {
		p.awaitThat(url+" says that the node is being stopped", 20*time.Second, func() bool {
			code, text := getText(t, url)
			return code == 503 && strings.Contains(text, "this node is being stopped")
		})
	}
	for url, want := range map[string]int{
		"http://" + p.admin + "/readyz": 503, "http://" + p.admin + "/status": 200, "http://" + verdicts + "/readyz": 503,
		"http://" + verdicts + "/nginx": 403, "http://" + redirect + "/": 308, "https://" + p.http + "/": 200,
	} {
		resp, err := client.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if !resp.Close || resp.StatusCode != want {
			t.Errorf("%s answers %d, want %d, and says that its connection closes: %v", url, resp.StatusCode, want, resp.Close)
		}
	}
	s, err := p.status()
	if err != nil || s.Ready || s.Reason != "this node is being stopped" {
		t.Errorf("the status says ready %v, %q, %v", s.Ready, s.Reason, err)
	}
	p.stopAtOnce()
	select {
	case <-p.Ended():
	case <-time.After(20 * time.Second):
		t.Fatal("a second signal does not end the node")
	}
}

// stopAtOnce sends the second signal of two, once the node has taken the first.
func (p *running) stopAtOnce() {
	p.t.Helper()
	p.awaitThat("the log tells of a second signal", 20*time.Second, func() bool {
		return strings.Contains(p.Log(), "a second signal stops at once")
	})
	p.Signal(syscall.SIGTERM)
}

// TestANodeThatIsBeingStoppedEnds after its delay, and tells of it as long as a request is
// under way.
func TestANodeThatIsBeingStoppedEnds(t *testing.T) {
	t.Parallel()
	arrived, release := make(chan struct{}), make(chan struct{})
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(arrived)
		<-release
		io.WriteString(w, "the site")
	}))
	defer site.Close()
	p := startNode(t, "a", "one", "--origin", site.URL, "--data-dir", t.TempDir(), "--drain-delay", "10ms")
	p.await("is ready", 20*time.Second, ready)
	got := make(chan string, 1)
	go func() {
		_, text := getText(t, "http://"+p.http+"/")
		got <- text
	}()
	<-arrived
	p.Signal(syscall.SIGTERM)
	p.awaitThat("the node takes no visitors any more", 20*time.Second, func() bool {
		c, err := net.Dial("tcp", p.http)
		if err == nil {
			c.Close()
		}
		return err != nil
	})
	if code, text := getText(t, "http://"+p.admin+"/readyz"); code != 503 {
		t.Errorf("while a request is under way: %d %q", code, text)
	}
	close(release)
	if text := <-got; text != "the site" {
		t.Errorf("the request that was under way: %q", text)
	}
	select {
	case <-p.Ended():
	case <-time.After(20 * time.Second):
		t.Fatal("the node does not end")
	}
	if code := p.Code(); code != 0 {
		t.Errorf("the node ended with %d", code)
	}
}

// getText returns code and body; 0 if there is no answer.
func getText(t *testing.T, url string) (int, string) {
	client := http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(url)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(body)
}
