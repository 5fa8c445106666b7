// Command built builds programs as tests use them, and prints where: once for each argument, which has
// the name of the program and build tags, separated by commas.
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
		words := strings.Split(arg, ",")
		path, err := rig.Built(context.Background(), words[0], words[1:]...)
		if err != nil {
			fmt.Fprintln(os.Stderr, "built:", err)
			os.Exit(1)
		}
		fmt.Println(path)
	}
}
