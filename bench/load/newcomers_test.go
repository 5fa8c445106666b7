package load

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/valyala/fasthttp"
)

func TestNewcomersComeInNumbers(t *testing.T) {
	var came atomic.Int64
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		came.Add(1)
		fmt.Fprint(w, r.URL.Path)
	}))
	defer site.Close()
	address := strings.TrimPrefix(site.URL, "http://")
	ask := func(i int) []byte { return fmt.Appendf(nil, "GET /%d HTTP/1.1\r\nHost: shop.example\r\n\r\n", i) }
	for _, count := range []int{0, 1, 100, 1234} {
		came.Store(0)
		seen := make([]atomic.Int64, count)
		err := Newcomers(t.Context(), address, count, ask, func(i int, r *fasthttp.Response) error {
			seen[i].Add(1)
			if want := fmt.Sprintf("/%d", i); string(r.Body()) != want {
				return fmt.Errorf("the answer to %s is %q", want, r.Body())
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for i := range seen {
			if seen[i].Load() != 1 {
				t.Errorf("visitor %d of %d has had %d answers", i, count, seen[i].Load())
			}
		}
		if int(came.Load()) != count {
			t.Errorf("of %d came %d", count, came.Load())
		}
	}
	wrong := errors.New("wrong")
	if err := Newcomers(t.Context(), address, 1_000_000, ask, func(int, *fasthttp.Response) error { return wrong }); !errors.Is(err, wrong) {
		t.Errorf("got %v, want what told has returned", err)
	}
	site.Close()
	if err := Newcomers(t.Context(), address, 10, ask, func(int, *fasthttp.Response) error { return nil }); err == nil {
		t.Error("nobody is there, and that is no error")
	}
}
