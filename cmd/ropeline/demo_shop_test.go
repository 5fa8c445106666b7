package main

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// browse opens a page and returns its status and text.
func browse(t *testing.T, c *http.Client, address string) (int, string) {
	t.Helper()
	resp, err := c.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func TestShop(t *testing.T) {
	server := httptest.NewServer(newShop(17*time.Second, slog.New(slog.DiscardHandler)))
	defer server.Close()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &http.Client{Jar: jar}
	for _, path := range shopPaths() {
		status, text := browse(t, c, server.URL+path)
		if status != http.StatusOK || !strings.Contains(text, "17 seconds") || !strings.Contains(text, "</html>") {
			t.Errorf("%s: got status %d and\n%s", path, status, text)
		}
		if len(text) > 12<<10 {
			t.Errorf("%s has %d bytes", path, len(text))
		}
	}
	if status, text := browse(t, c, server.URL+"/product/99"); status != http.StatusNotFound || !strings.Contains(text, "Not on our shelf") {
		t.Errorf("a product that is not there: got %d and\n%s", status, text)
	}
	for range maxBasket + 5 {
		resp, err := c.PostForm(server.URL+"/cart", url.Values{"id": {"5"}})
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	_, text := browse(t, c, server.URL+"/cart")
	if n := strings.Count(text, "<tr><td>Honey"); n != maxBasket || !strings.Contains(text, "Basket (20)") {
		t.Errorf("got %d jars of honey in the basket, want %d", n, maxBasket)
	}
}

func TestShopForeignBasket(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/cart", nil)
	r.AddCookie(&http.Cookie{Name: basketCookie, Value: "1.-3.99999999999999999999.x..2"})
	w := httptest.NewRecorder()
	newShop(time.Second, slog.New(slog.DiscardHandler)).ServeHTTP(w, r)
	if body := w.Body.String(); w.Code != http.StatusOK || strings.Count(body, "<tr>") != 2 {
		t.Errorf("got %d and\n%s, want the two products that exist", w.Code, body)
	}
}
