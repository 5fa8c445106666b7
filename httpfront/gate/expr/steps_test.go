package expr

import (
	"strings"
	"testing"
)

// TestStepsOfAnExpression: many regular expressions cost as much as a long one.
func TestStepsOfAnExpression(t *testing.T) {
	many := func(n int) string {
		return strings.TrimPrefix(strings.Repeat(` or http.request.uri.path matches ".{1,400}x"`, n), " or ")
	}
	e, err := Compile(many(2), nil)
	if err != nil || e.Steps() < 800 || e.Steps() > maxSteps {
		t.Fatalf("two of them: %v", err)
	}
	if _, err := Compile(many(80), nil); err == nil || !strings.Contains(err.Error(), "2000 are allowed") {
		t.Errorf("eighty of them: error %v, want how many steps are allowed", err)
	}
	if e, err := Compile(`http.request.uri.path eq "/"`, nil); err != nil || e.Steps() != 0 {
		t.Errorf("without any: %d steps, %v", e.Steps(), err)
	}
}
