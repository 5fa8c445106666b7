package check_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"path"
	"strings"

	"github.com/ropeline/ropeline/httpfront/gate/proof/check"
)

// A site that answers only visitors whom the room "shop" has let in.
func Example() {
	verifier, err := check.New(check.Config{
		JWKS: []string{"http://a1.internal:9081/jwks.json", "http://b1.internal:9081/jwks.json"},
		Room: "shop",
	})
	if err != nil {
		log.Fatal(err)
	}
	go verifier.Run(context.Background()) // fetches the keys now and then

	shop := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if proof, ok := check.FromContext(r.Context()); ok {
			fmt.Fprintf(w, "Welcome. You were let in at %v.", proof.AdmittedAt)
		}
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:3000", verifier.Handler(shop)))
}

// A site whose room has a rule for images, which come without a proof then, as do the
// health checks of whoever watches the site.
func ExampleConfig_exempt() {
	cfg := check.Config{
		JWKS: []string{"http://a1.internal:9081/jwks.json"},
		Room: "shop",
		// The rule is: starts_with(http.request.uri.path, "/static/"). It sees the path
		// without "/../" and "//", and so does this.
		Exempt: func(r *http.Request) bool {
			p := path.Clean(r.URL.Path)
			return p == "/healthz" || strings.HasPrefix(p, "/static/")
		},
	}
	for _, target := range []string{"/static/logo.svg", "/static/../cart", "/healthz", "/cart"} {
		r, err := http.NewRequest(http.MethodGet, target, nil)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(target, cfg.Exempt(r))
	}
	// Output:
	// /static/logo.svg true
	// /static/../cart false
	// /healthz true
	// /cart false
}
