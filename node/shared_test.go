package node

import (
	"fmt"
	"os"
	"reflect"
	"testing"
)

// TestMain looks, after all tests, whether what thousands of rooms share for want of
// anything of their own is still nothing: whoever wrote to it would have written to them all.
func TestMain(m *testing.M) {
	code := m.Run()
	for _, shared := range []any{noDemand, noneAbroad, noTally, noFacts, noLeaders} {
		if v := reflect.ValueOf(shared).Elem(); !v.IsZero() {
			fmt.Printf("FAIL: the %v that rooms share was written to\n", v.Type())
			code = 1
		}
	}
	os.Exit(code)
}
