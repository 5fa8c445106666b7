// Command built builds ropeline as tests use it, and prints where: once for each argument, which has
// the build tags, separated by commas.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/ropeline/ropeline/bench/rig"
)

func main() {
	for _, arg := range os.Args[1:] {
		tags := strings.FieldsFunc(arg, func(r rune) bool { return r == ',' })
		path, err := rig.Built(context.Background(), tags...)
		if err != nil {
			fmt.Fprintln(os.Stderr, "built:", err)
			os.Exit(1)
		}
		fmt.Println(path)
	}
}
