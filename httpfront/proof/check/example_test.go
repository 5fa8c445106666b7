package check_test

import (
	"context"
	"fmt"
	"log"
	"net/http"

	"github.com/ropeline/ropeline/httpfront/proof/check"
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
