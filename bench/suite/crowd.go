package suite

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/valyala/fasthttp"

	"github.com/ropeline/ropeline/bench/load"
)

// newcomers has visitors come to a server for the first time, who accept a kind of content, and returns the cookies of the
// first ones, NAME=VALUE. state is what the answers have for Ropeline-State: empty where nobody is to wait.
func newcomers(ctx context.Context, address, accept, state string, count, keep int) ([]string, error) {
	cookies := make([]string, keep)
	visitor := headFor("/", accept, "")
	return cookies, load.Newcomers(ctx, address, count, func(int) []byte { return visitor }, func(i int, r *fasthttp.Response) error {
		if r.StatusCode() != http.StatusOK {
			return fmt.Errorf("the answer to a visitor is %d", r.StatusCode())
		}
		if got := string(r.Header.Peek("Ropeline-State")); got != state {
			return fmt.Errorf("the state of a visitor is %q, and not %q", got, state)
		}
		pair := ""
		for _, header := range r.Header.Cookies() {
			c, err := http.ParseSetCookie(string(header))
			if err != nil {
				return err
			}
			pair = c.Name + "=" + c.Value
		}
		if pair == "" {
			return errors.New("a visitor has got no cookie")
		}
		if i < keep {
			cookies[i] = pair
		}
		return nil
	})
}
